//! A property test of the lock manager against a slow model that follows the definitions.
//!
//! The model is a list of locks and a list of requests. A lock is a set of keys out of a small key space, so
//! that two locks overlap if their sets do. The model recomputes the edges from the rules each time, and
//! finds cycles in the transitive closure. It takes only the choice among several victims from the lock
//! manager, and then checks that choice.

use super::{Locks, Mode, OWN_RANGES, Outcome, TxnId};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};

const TXNS: u64 = 6;

/// Returns all strings of up to three letters out of two. One letter is zero, so that no other key is between
/// `k` and `k` with a zero appended.
fn universe() -> Vec<Vec<u8>> {
    let mut keys = vec![vec![]];
    for at in 0..7 {
        let key: &Vec<u8> = &keys[at];
        let longer = [0, 1].map(|letter| [key.as_slice(), &[letter]].concat());
        keys.extend(longer);
    }
    keys
}

#[derive(Clone, Debug)]
struct Lock {
    txn: u64,
    table: u32,
    /// The locked keys, with one bit for each key of the key space.
    keys: u16,
    is_range: bool,
    mode: Mode,
}

impl Lock {
    fn conflicts(&self, other: &Lock) -> bool {
        let exclusive = self.mode == Mode::Exclusive || other.mode == Mode::Exclusive;
        self.txn != other.txn && self.table == other.table && self.keys & other.keys != 0 && exclusive
    }

    fn covers(&self, other: &Lock) -> bool {
        let strong = self.mode == Mode::Exclusive || other.mode == Mode::Shared;
        let wide = self.table == other.table && other.keys & !self.keys == 0;
        self.txn == other.txn && self.is_range == other.is_range && strong && wide
    }
}

#[derive(Debug)]
struct Request {
    lock: Lock,
    arrival: u64,
    overtook: BTreeSet<u64>,
    /// The number of arrivals when the transaction became a victim; `None` if it is none. Only earlier
    /// requests still wait for the request of a victim.
    doomed: Option<u64>,
}

impl Request {
    fn is_before(&self, other: &Request) -> bool {
        let first = other.arrival > self.arrival && !other.overtook.contains(&self.arrival);
        self.lock.conflicts(&other.lock)
            && (first || self.overtook.contains(&other.arrival))
            && self.doomed.is_none_or(|at| other.arrival < at)
    }
}

#[derive(Debug, Default)]
struct Oracle {
    held: Vec<Lock>,
    requests: Vec<Request>,
    doomed: BTreeSet<u64>,
    arrivals: u64,
}

type Closure = [[bool; TXNS as usize + 1]; TXNS as usize + 1];

impl Oracle {
    fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.doomed.is_none())
    }

    /// Returns the transactions that a request waits for.
    fn blockers(&self, request: &Request) -> BTreeSet<u64> {
        let held = self.held.iter().filter(|lock| lock.conflicts(&request.lock)).map(|lock| lock.txn);
        let queued = self.requests.iter().filter(|other| other.is_before(request));
        held.chain(queued.map(|other| other.lock.txn)).collect()
    }

    /// Returns the transitive closure of the edges, over transactions not above `youngest`.
    fn closure(&self, youngest: u64) -> Closure {
        let mut reach = [[false; TXNS as usize + 1]; TXNS as usize + 1];
        for request in self.waiting().filter(|request| request.lock.txn <= youngest) {
            for blocker in self.blockers(request).into_iter().filter(|blocker| *blocker <= youngest) {
                reach[request.lock.txn as usize][blocker as usize] = true;
            }
        }
        for through in 0..reach.len() {
            for from in 0..reach.len() {
                for to in 0..reach.len() {
                    reach[from][to] |= reach[from][through] && reach[through][to];
                }
            }
        }
        reach
    }

    /// Applies the rules to a request, and checks that `outcome` agrees.
    fn request(&mut self, lock: Lock, outcome: &Outcome) {
        let me = lock.txn as usize;
        if self.doomed.contains(&lock.txn) {
            assert_eq!(*outcome, Outcome::Deadlock { victims: vec![TxnId(lock.txn)] });
            return;
        }
        let own = self.held.iter().rev().filter(|own| own.txn == lock.txn && own.is_range == lock.is_range);
        let compared = if lock.is_range { OWN_RANGES } else { usize::MAX };
        if lock.keys == 0 || own.take(compared).any(|own| own.covers(&lock)) {
            assert_eq!(*outcome, Outcome::Granted);
            return;
        }
        let holders: BTreeSet<usize> =
            self.held.iter().filter(|held| held.conflicts(&lock)).map(|held| held.txn as usize).collect();
        let older = self.closure(lock.txn);
        if holders.iter().any(|holder| older[*holder][me]) {
            assert_eq!(*outcome, Outcome::Deadlock { victims: vec![TxnId(lock.txn)] });
            return;
        }
        self.arrivals += 1;
        let victims = if let Outcome::Deadlock { victims } = outcome { victims.as_slice() } else { &[] };
        for victim in victims {
            self.doom(victim.0, me, &holders);
        }
        let reach = self.closure(TXNS);
        assert!(!holders.iter().any(|holder| reach[*holder][me]), "a cycle was not found");
        let queue: Vec<&Request> = self.waiting().filter(|other| other.lock.conflicts(&lock)).collect();
        let (overtook, behind): (Vec<&Request>, Vec<&Request>) =
            queue.iter().partition(|other| reach[other.lock.txn as usize][me]);
        let overtook = overtook.iter().map(|other| other.arrival).collect();
        if holders.is_empty() && behind.is_empty() {
            assert_eq!(*outcome, Outcome::Granted);
            self.hold(lock);
        } else {
            assert!(*outcome == Outcome::Waiting || !victims.is_empty(), "{outcome:?} and not Waiting");
            self.requests.push(Request { lock, arrival: self.arrivals, overtook, doomed: None });
        }
    }

    /// Checks that `victim` is the youngest transaction of a cycle that the request of `me` closes, and
    /// withdraws the request of `victim`.
    fn doom(&mut self, victim: u64, me: usize, holders: &BTreeSet<usize>) {
        let reach = self.closure(victim);
        let v = victim as usize;
        assert!(
            holders.iter().any(|holder| *holder == v || reach[*holder][v]),
            "the cycle leads to the victim"
        );
        assert!(me < v && reach[v][me], "the victim is its youngest");
        let request = self.requests.iter_mut().find(|request| request.lock.txn == victim).expect("it waits");
        request.doomed = Some(self.arrivals);
        self.doomed.insert(victim);
    }

    fn hold(&mut self, lock: Lock) {
        let same = |held: &&mut Lock| (held.txn, held.table, held.keys) == (lock.txn, lock.table, lock.keys);
        match self.held.iter_mut().filter(|held| !held.is_range && !lock.is_range).find(same) {
            Some(held) => held.mode = lock.mode,
            None => self.held.push(lock),
        }
    }

    /// Removes the request of a transaction, and its locks if `ends` is true. Returns the transactions whose
    /// requests are granted.
    fn leave(&mut self, txn: u64, ends: bool) -> Vec<TxnId> {
        self.requests.retain(|request| request.lock.txn != txn);
        if ends {
            self.held.retain(|lock| lock.txn != txn);
            self.doomed.remove(&txn);
        }
        let mut granted = Vec::new();
        let free = |oracle: &Oracle| {
            oracle.requests.iter().position(|r| r.doomed.is_none() && oracle.blockers(r).is_empty())
        };
        while let Some(position) = free(self) {
            let request = self.requests.remove(position);
            granted.push(TxnId(request.lock.txn));
            self.hold(request.lock);
        }
        granted
    }

    /// Checks the invariants, and that the lock manager agrees with the model.
    fn check(&self, locks: &Locks) {
        for (at, lock) in self.held.iter().enumerate() {
            assert!(!self.held[..at].iter().any(|other| other.conflicts(lock)), "two hold what conflicts");
        }
        let reach = self.closure(TXNS);
        for txn in 1..=TXNS {
            let waits = self.waiting().any(|request| request.lock.txn == txn);
            assert_eq!(locks.is_waiting(TxnId(txn)), waits, "whether {txn} waits");
            assert!(!reach[txn as usize][txn as usize], "{txn} is in a cycle");
            let runs = |other: u64| !self.waiting().any(|request| request.lock.txn == other);
            let has_chain = (1..=TXNS).any(|other| reach[txn as usize][other as usize] && runs(other));
            assert!(!waits || has_chain, "{txn} waits for nobody who runs");
        }
        assert_eq!(locks.held(), self.held.len());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Key(u32, usize, Mode),
    Range(u32, Bound<usize>, Bound<usize>, Mode),
    Release,
    Cancel,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let table = || 0..2u32;
    let mode = || prop_oneof![Just(Mode::Shared), Just(Mode::Exclusive)];
    let mostly_shared = || prop_oneof![4 => Just(Mode::Shared), 1 => Just(Mode::Exclusive)];
    let bound = || {
        prop_oneof![
            3 => (0..7usize).prop_map(Bound::Included),
            3 => (0..7usize).prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded)
        ]
    };
    let step = prop_oneof![
        12 => (table(), 0..7usize, mode()).prop_map(|(table, key, mode)| Step::Key(table, key, mode)),
        5 => (table(), bound(), bound(), mostly_shared()).prop_map(|(t, from, to, m)| Step::Range(t, from, to, m)),
        2 => Just(Step::Release),
        1 => Just(Step::Cancel)
    ];
    prop::collection::vec((1..=TXNS, step), 1..120)
}

/// Executes a step on the lock manager and on the model, and compares the two.
fn play(locks: &mut Locks, oracle: &mut Oracle, keys: &[Vec<u8>], txn: u64, step: &Step) {
    let asks = matches!(step, Step::Key(..) | Step::Range(..));
    if asks && locks.is_waiting(TxnId(txn)) {
        return;
    }
    let set = |range: (Bound<&[u8]>, Bound<&[u8]>)| {
        let inside = keys.iter().enumerate().filter(|(_, key)| range.contains(key.as_slice()));
        inside.fold(0, |set, (bit, _)| set | 1 << bit)
    };
    match step.clone() {
        Step::Key(table, key, mode) => {
            let outcome = locks.lock_key(TxnId(txn), table, &keys[key], mode);
            oracle.request(Lock { txn, table, keys: 1 << key, is_range: false, mode }, &outcome);
        }
        Step::Range(table, from, to, mode) => {
            let range = (from.map(|key| keys[key].as_slice()), to.map(|key| keys[key].as_slice()));
            let outcome = locks.lock_range(TxnId(txn), table, range, mode);
            oracle.request(Lock { txn, table, keys: set(range), is_range: true, mode }, &outcome);
        }
        Step::Release => {
            let mut granted = Vec::new();
            locks.release(TxnId(txn), &mut granted);
            assert_eq!(granted, oracle.leave(txn, true));
        }
        Step::Cancel => {
            let mut granted = Vec::new();
            locks.cancel(TxnId(txn), &mut granted);
            assert_eq!(granted, oracle.leave(txn, false));
        }
    }
    oracle.check(locks);
}

proptest! {
    // Deadlocks with several cycles are rare, so there are more cases than by default.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(1000)))]

    /// Every outcome, every grant and the order of grants follow the rules, and no request waits for ever.
    #[test]
    fn agrees_with_the_rules(steps in steps()) {
        let (mut locks, mut oracle, keys) = (Locks::new(), Oracle::default(), universe());
        for (txn, step) in &steps {
            play(&mut locks, &mut oracle, &keys, *txn, step);
        }
        // End all running transactions. After that, no request waits, and no memory is in use.
        for _ in 0..TXNS {
            for txn in (1..=TXNS).filter(|txn| !oracle.waiting().any(|r| r.lock.txn == *txn)).collect::<Vec<_>>() {
                play(&mut locks, &mut oracle, &keys, txn, &Step::Release);
            }
        }
        prop_assert_eq!((locks.held(), oracle.requests.len(), locks.bytes()), (0, 0, 0));
    }
}
