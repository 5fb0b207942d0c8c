//! Tests each anomaly with a history that was written by hand. Compares small random histories with a search
//! of all serial orders.

use super::{Anomaly, AnomalyName, Verdict, check};
use crate::history::{Action, History, Kind, Outcome, Txn};
use crate::value::{Key, TableName, TxnId, Version};
use fulgurite_base::Prng;
use std::collections::BTreeMap;

fn key(number: u32) -> Key {
    Key::new(TableName::Registers, number)
}

fn version(txn: u32, nth: u32) -> Version {
    Version::new(TxnId(txn), nth)
}

fn read(number: u32, seen: Option<Version>) -> Action {
    Action::Read { key: key(number), seen }
}

fn write(number: u32, version: Version) -> Action {
    Action::Write { key: key(number), version, deletes: false }
}

fn delete(number: u32, version: Version) -> Action {
    Action::Write { key: key(number), version, deletes: true }
}

fn scan(first: u32, last: u32, rows: &[(u32, Version)]) -> Action {
    let rows = rows.iter().map(|(number, version)| (key(*number), *version)).collect();
    Action::Scan { first: key(first), last: key(last), rows }
}

/// Returns a history of transactions 1, 2, … that all overlap in time.
fn overlapping(initial: &[(u32, Version)], txns: &[&[Action]]) -> History {
    let mut history =
        History::new(initial.iter().map(|(number, version)| (key(*number), *version)).collect());
    for (at, actions) in txns.iter().enumerate() {
        let at = history.begin(TxnId(at as u32 + 1), 0, Kind::Locking);
        history.txns[at].actions = actions.to_vec();
    }
    for at in 0..txns.len() {
        history.end(at, Outcome::Committed);
    }
    history
}

/// Returns a history of transactions 1, 2, … that follow each other in time.
fn in_turn(initial: &[(u32, Version)], txns: &[&[Action]]) -> History {
    let mut history = overlapping(initial, txns);
    for (at, txn) in history.txns.iter_mut().enumerate() {
        txn.invoked = at as u64 * 2;
        txn.ended = Some(at as u64 * 2 + 1);
    }
    history
}

fn committed(history: &History) -> Vec<bool> {
    history.txns.iter().map(|txn| txn.outcome == Outcome::Committed).collect()
}

fn found(history: &History) -> Anomaly {
    check(history, &committed(history)).expect_err("an anomaly stands in the history")
}

#[track_caller]
fn finds(history: &History, name: AnomalyName, realtime: bool) {
    let anomaly = found(history);
    assert_eq!((anomaly.name, anomaly.realtime), (name, realtime), "{anomaly}");
}

#[track_caller]
fn passes(history: &History) {
    assert_eq!(check(history, &committed(history)), Ok(Verdict::Serialisable));
}

const OLD: Version = Version(1);

#[test]
fn a_serial_history_passes() {
    let history = in_turn(
        &[(0, OLD), (1, OLD)],
        &[
            &[read(0, Some(OLD)), write(0, version(1, 0))],
            &[read(0, Some(version(1, 0))), write(1, version(2, 0)), delete(0, version(2, 1))],
            &[scan(0, 9, &[(1, version(2, 0))]), write(0, version(3, 0))],
            &[scan(0, 9, &[(0, version(3, 0)), (1, version(2, 0))])],
        ],
    );
    passes(&history);
}

#[test]
fn g0_is_a_cycle_of_writes() {
    // Each transaction read the version that it overwrote, which determines the order of the versions.
    let history = overlapping(
        &[(0, OLD), (1, OLD)],
        &[
            &[
                read(0, Some(OLD)),
                write(0, version(1, 0)),
                read(1, Some(version(2, 1))),
                write(1, version(1, 1)),
            ],
            &[
                read(0, Some(version(1, 0))),
                write(0, version(2, 0)),
                read(1, Some(OLD)),
                write(1, version(2, 1)),
            ],
        ],
    );
    finds(&history, AnomalyName::G0, false);
}

#[test]
fn g1a_is_a_read_of_what_did_not_commit() {
    let mut history = overlapping(&[], &[&[write(0, version(1, 0))], &[read(0, Some(version(1, 0)))]]);
    history.txns[0].outcome = Outcome::Failed;
    finds(&history, AnomalyName::G1a, false);
}

#[test]
fn g1b_is_a_read_of_what_was_written_over_at_once() {
    let history = overlapping(
        &[],
        &[&[write(0, version(1, 0)), write(0, version(1, 1))], &[read(0, Some(version(1, 0)))]],
    );
    finds(&history, AnomalyName::G1b, false);
}

#[test]
fn g1c_is_two_that_read_each_other() {
    let history = overlapping(
        &[],
        &[
            &[write(0, version(1, 0)), read(1, Some(version(2, 0)))],
            &[write(1, version(2, 0)), read(0, Some(version(1, 0)))],
        ],
    );
    finds(&history, AnomalyName::G1c, false);
}

#[test]
fn g_single_is_read_skew() {
    let history = overlapping(
        &[(0, OLD), (1, OLD)],
        &[
            &[write(0, version(1, 0)), write(1, version(1, 1))],
            &[read(0, Some(OLD)), read(1, Some(version(1, 1)))],
        ],
    );
    finds(&history, AnomalyName::GSingle, false);
}

#[test]
fn a_lost_update_is_found() {
    let history = overlapping(
        &[(0, OLD)],
        &[&[read(0, Some(OLD)), write(0, version(1, 0))], &[read(0, Some(OLD)), write(0, version(2, 0))]],
    );
    finds(&history, AnomalyName::LostUpdate, false);
}

#[test]
fn g2_item_is_write_skew() {
    let history = overlapping(
        &[(0, OLD), (1, OLD)],
        &[&[read(0, Some(OLD)), write(1, version(1, 0))], &[read(1, Some(OLD)), write(0, version(2, 0))]],
    );
    finds(&history, AnomalyName::G2Item, false);
}

#[test]
fn g2_is_write_skew_over_ranges() {
    // Each transaction counts the rows of the range and inserts one.
    let history = overlapping(
        &[],
        &[&[scan(0, 9, &[]), write(3, version(1, 0))], &[scan(0, 9, &[]), write(4, version(2, 0))]],
    );
    finds(&history, AnomalyName::G2, false);
    let history = overlapping(
        &[],
        &[
            &[scan(0, 9, &[]), write(3, version(1, 0))],
            &[scan(0, 9, &[(3, version(1, 0))]), write(4, version(2, 0))],
        ],
    );
    passes(&history);
}

#[test]
fn a_stale_read_is_a_realtime_anomaly() {
    let stale: [&[Action]; 2] =
        [&[read(0, Some(OLD)), write(0, version(1, 0))], &[read(0, Some(OLD)), write(1, version(2, 0))]];
    passes(&overlapping(&[(0, OLD)], &stale));
    finds(&in_turn(&[(0, OLD)], &stale), AnomalyName::GSingle, true);
}

#[test]
fn a_commit_of_unknown_outcome_may_take_effect_later() {
    let stale: [&[Action]; 2] = [&[read(0, Some(OLD)), write(0, version(1, 0))], &[read(0, Some(OLD))]];
    let mut history = in_turn(&[(0, OLD)], &stale);
    history.txns[0].outcome = Outcome::Unknown;
    assert_eq!(check(&history, &[true, true]), Ok(Verdict::Serialisable));
}

#[test]
fn a_snapshot_may_miss_only_relaxed_commits() {
    let mut history =
        in_turn(&[(0, OLD)], &[&[read(0, Some(OLD)), write(0, version(1, 0))], &[read(0, Some(OLD))]]);
    finds(&history, AnomalyName::GSingle, true);
    history.txns[1].kind = Kind::Snapshot;
    finds(&history, AnomalyName::GSingle, true);
    history.txns[0].relaxed = true;
    passes(&history);
    // There is only one log: if a commit is durable, all earlier ones are.
    let mut history = in_turn(
        &[(0, OLD)],
        &[&[read(0, Some(OLD)), write(0, version(1, 0))], &[write(1, version(2, 0))], &[read(0, Some(OLD))]],
    );
    history.txns[0].relaxed = true;
    history.txns[2].kind = Kind::Snapshot;
    finds(&history, AnomalyName::GSingle, true);
}

#[test]
fn reads_of_unwritten_values_and_missing_rows_are_found() {
    finds(&overlapping(&[], &[&[read(0, Some(version(9, 0)))]]), AnomalyName::Unwritten, false);
    finds(&overlapping(&[(0, OLD)], &[&[read(0, None)]]), AnomalyName::Unwritten, false);
    finds(&overlapping(&[(0, OLD)], &[&[scan(0, 5, &[])]]), AnomalyName::Unwritten, false);
    // The version that was read exists, but under another key.
    let elsewhere = overlapping(&[(0, OLD)], &[&[write(1, version(1, 0))], &[read(0, Some(version(1, 0)))]]);
    finds(&elsewhere, AnomalyName::Unwritten, false);
}

#[test]
fn own_writes_must_be_seen() {
    finds(
        &overlapping(&[(0, OLD)], &[&[write(0, version(1, 0)), read(0, Some(OLD))]]),
        AnomalyName::Internal,
        false,
    );
    let scanned = overlapping(&[(0, OLD)], &[&[delete(0, version(1, 0)), scan(0, 3, &[(0, OLD)])]]);
    finds(&scanned, AnomalyName::Internal, false);
    let missed = overlapping(&[], &[&[write(2, version(1, 0)), scan(0, 3, &[])]]);
    finds(&missed, AnomalyName::Internal, false);
}

/// Whether some order of the transactions explains every read and respects real time.
fn serialisable_by_search(history: &History) -> bool {
    let mut rest: Vec<&Txn> = history.txns.iter().filter(|txn| txn.outcome == Outcome::Committed).collect();
    extends(&history.initial, &mut rest)
}

fn extends(state: &BTreeMap<Key, Version>, rest: &mut Vec<&Txn>) -> bool {
    if rest.is_empty() {
        return true;
    }
    (0..rest.len()).any(|at| {
        let next = rest.remove(at);
        let in_time = rest.iter().all(|other| other.ended.is_none_or(|ended| ended >= next.invoked));
        let after = if in_time { executed(state, next) } else { None };
        let fits = after.is_some_and(|state| extends(&state, rest));
        rest.insert(at, next);
        fits
    })
}

/// Returns the state after `txn`; `None` if its reads contradict `state`.
fn executed(state: &BTreeMap<Key, Version>, txn: &Txn) -> Option<BTreeMap<Key, Version>> {
    let mut state = state.clone();
    for action in &txn.actions {
        let agrees = match action {
            Action::Read { key, seen } => state.get(key) == seen.as_ref(),
            Action::Scan { first, last, rows } => {
                state.range(*first..=*last).map(|(key, version)| (*key, *version)).eq(rows.iter().copied())
            }
            Action::Write { key, version, deletes: false } => {
                state.insert(*key, *version);
                true
            }
            Action::Write { key, deletes: true, .. } => {
                state.remove(key);
                true
            }
        };
        if !agrees {
            return None;
        }
    }
    Some(state)
}

/// Returns a history of up to five transactions over three keys. It is serialisable before `lies` of its
/// reads are changed.
fn random_history(prng: &mut Prng, lies: u64) -> History {
    let initial: BTreeMap<Key, Version> =
        (0..3).filter(|_| prng.below(2) == 0).map(|number| (key(number), version(100, number))).collect();
    let mut history = History::new(initial.clone());
    let mut state = initial;
    let mut written: Vec<(Key, Version)> = state.iter().map(|(key, version)| (*key, *version)).collect();
    for at in 0..2 + prng.below(4) as u32 {
        let mut txn = Txn::new(TxnId(at), 0, Kind::Locking, 0);
        let before = state.clone();
        for nth in 0..1 + prng.below(3) as u32 {
            let action = random_action(prng, &mut state, version(at, nth));
            if let Action::Write { key, version, deletes: false } = action {
                written.push((key, version));
            }
            txn.actions.push(action);
        }
        if prng.below(8) == 0 {
            txn.outcome = Outcome::Failed;
            state = before;
        } else {
            txn.outcome = Outcome::Committed;
        }
        // The moment at which the transaction took effect is within its interval.
        let point = u64::from(at) * 10 + 100;
        txn.invoked = point - prng.below(40);
        txn.ended = (prng.below(6) != 0).then(|| point + 1 + prng.below(40));
        history.txns.push(txn);
    }
    for _ in 0..lies {
        lie(prng, &mut history, &written);
    }
    history
}

fn random_action(prng: &mut Prng, state: &mut BTreeMap<Key, Version>, version: Version) -> Action {
    let key = key(prng.below(3) as u32);
    match prng.below(8) {
        0..=2 => Action::Read { key, seen: state.get(&key).copied() },
        3 => {
            let last = Key { number: key.number + prng.below(2) as u32, ..key };
            let rows = state.range(key..=last).map(|(key, version)| (*key, *version)).collect();
            Action::Scan { first: key, last, rows }
        }
        4..=6 => {
            state.insert(key, version);
            Action::Write { key, version, deletes: false }
        }
        _ => {
            state.remove(&key);
            Action::Write { key, version, deletes: true }
        }
    }
}

/// Changes the result of one read.
fn lie(prng: &mut Prng, history: &mut History, written: &[(Key, Version)]) {
    let at = prng.below(history.txns.len() as u64) as usize;
    let actions = &mut history.txns[at].actions;
    let step = prng.below(actions.len() as u64) as usize;
    match &mut actions[step] {
        Action::Read { key, seen } => {
            let here: Vec<Version> =
                written.iter().filter(|(other, _)| other == key).map(|(_, version)| *version).collect();
            let pick = prng.below(here.len() as u64 + 1) as usize;
            *seen = here.get(pick).copied();
        }
        Action::Scan { rows, .. } => {
            rows.pop();
        }
        Action::Write { .. } => {}
    }
}

fn shown(history: &History) -> String {
    let mut text = format!("{:?}\n", history.initial);
    for txn in &history.txns {
        let Txn { id, invoked, ended, outcome, actions, .. } = txn;
        text += &format!("{id} {invoked}..{ended:?} {outcome:?} {actions:?}\n");
    }
    text
}

#[test]
fn small_histories_agree_with_a_search_of_all_orders() {
    let mut prng = Prng::new(7, "serial");
    let mut counts = [0u32; 2];
    let cases = 100_000;
    for case in 0..cases {
        let lies = prng.below(5);
        let history = random_history(&mut prng, lies);
        let expected = serialisable_by_search(&history);
        let answer = check(&history, &committed(&history));
        assert_ne!(answer, Ok(Verdict::Undecided), "case {case} gave up");
        assert_eq!(answer.is_ok(), expected, "case {case}: {answer:?}\n{}", shown(&history));
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|count| *count > cases / 6), "too few of one kind: {counts:?}");
}
