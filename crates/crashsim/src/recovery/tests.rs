//! Tests that a violation of each rule of `recovery` is found.

use super::*;

fn key(number: u32) -> Key {
    Key::new(TableName::Registers, number)
}

/// Creates a history of transactions 1, 2, … that run one after the other. Each reads and writes its key, and
/// writes its marker.
fn history(keys: &[u32]) -> History {
    let mut history = History::new(BTreeMap::new());
    let mut last: BTreeMap<Key, Version> = BTreeMap::new();
    for (at, number) in keys.iter().enumerate() {
        let id = TxnId(at as u32 + 1);
        let [version, marker] = [0, 1].map(|nth| Version::new(id, nth));
        let seen = last.insert(key(*number), version);
        let at = history.begin(id, 0, Kind::Locking);
        history.txns[at].actions = vec![
            Action::Read { key: key(*number), seen },
            Action::Write { key: key(*number), version, deletes: false },
            Action::Write { key: Key::marker(id), version: marker, deletes: false },
        ];
        history.txns[at].committing = Some(history.tick());
        history.end(at, Outcome::Committed);
    }
    history
}

/// Returns the records that exist if the transactions in `ids` survived.
fn found(history: &History, ids: &[u32]) -> BTreeMap<Key, Version> {
    let mut found = BTreeMap::new();
    for txn in history.txns.iter().filter(|txn| ids.contains(&txn.id.0)) {
        for action in &txn.actions {
            if let Action::Write { key, version, .. } = action {
                found.insert(*key, *version);
            }
        }
    }
    found
}

fn kind(history: &History, found: &BTreeMap<Key, Version>, allowed: Allowed) -> Option<ViolationKind> {
    judge(history, found, allowed).err().map(|violation| violation.kind)
}

const NOTHING: Allowed = Allowed { errors: false, damage: false, lost_tail: false };
const TAIL: Allowed = Allowed { errors: true, damage: true, lost_tail: true };

#[test]
fn a_missing_acknowledged_transaction_is_lost() {
    let history = history(&[1, 2, 1]);
    assert_eq!(kind(&history, &found(&history, &[1, 2, 3]), NOTHING), None);
    assert_eq!(kind(&history, &found(&history, &[1, 2]), NOTHING), Some(ViolationKind::Lost));
    assert_eq!(kind(&history, &found(&history, &[1, 2]), TAIL), None);
}

/// The rule: shards lose their ends independently, but no shard keeps a commit behind one that it has lost.
#[test]
fn the_survivors_of_each_shard_are_a_prefix() {
    let mut history = history(&[1, 2, 3]);
    for (txn, shards) in history.txns.iter_mut().zip([0b001, 0b010, 0b110]) {
        (txn.relaxed, txn.shards) = (true, shards);
    }
    assert_eq!(kind(&history, &found(&history, &[2, 3]), NOTHING), None);
    assert_eq!(kind(&history, &found(&history, &[1]), NOTHING), None);
    assert_eq!(kind(&history, &found(&history, &[1, 3]), NOTHING), Some(ViolationKind::NotAPrefix));
}

#[test]
fn the_survivors_are_a_prefix() {
    let mut history = history(&[1, 2, 1]);
    for txn in &mut history.txns {
        txn.relaxed = true;
    }
    for prefix in [&[][..], &[1], &[1, 2], &[1, 2, 3]] {
        assert_eq!(kind(&history, &found(&history, prefix), NOTHING), None);
    }
    assert_eq!(kind(&history, &found(&history, &[2]), NOTHING), Some(ViolationKind::NotAPrefix));
    // Even if no end is known in real time, a transaction comes after those whose writes it read.
    for txn in &mut history.txns {
        txn.outcome = Outcome::Unknown;
    }
    assert_eq!(kind(&history, &found(&history, &[2]), NOTHING), None);
    assert_eq!(kind(&history, &found(&history, &[3]), NOTHING), Some(ViolationKind::NotAPrefix));
}

#[test]
fn an_earlier_generation_loses_its_end_only_with_all_later_commits() {
    let mut history = history(&[1]);
    let earlier = TxnId(77);
    history.initial.insert(Key::marker(earlier), Version::new(earlier, 0));
    history.initial.insert(key(9), Version::new(earlier, 1));
    let all: BTreeMap<Key, Version> =
        found(&history, &[1]).into_iter().chain(history.initial.clone()).collect();
    assert_eq!(kind(&history, &all, NOTHING), None);
    let without = |keys: &[Key]| -> BTreeMap<Key, Version> {
        all.iter().filter(|(key, _)| !keys.contains(key)).map(|(key, version)| (*key, *version)).collect()
    };
    let early = [Key::marker(earlier), key(9)];
    assert_eq!(kind(&history, &without(&early), TAIL), Some(ViolationKind::NotAPrefix));
    let later: Vec<Key> = found(&history, &[1]).into_keys().collect();
    let both = [&early[..], &later].concat();
    assert_eq!(kind(&history, &without(&both), TAIL), None);
    assert!(kind(&history, &without(&both), NOTHING).is_some());
}

#[test]
fn failed_and_uncommitted_transactions_do_not_survive() {
    let mut failed = history(&[1]);
    failed.txns[0].outcome = Outcome::Failed;
    assert_eq!(kind(&failed, &found(&failed, &[1]), NOTHING), Some(ViolationKind::Unissued));
    assert_eq!(kind(&failed, &found(&failed, &[]), NOTHING), None);
    let mut under_way = history(&[1]);
    under_way.txns[0].outcome = Outcome::Unknown;
    assert_eq!(kind(&under_way, &found(&under_way, &[1]), NOTHING), None);
    under_way.txns[0].committing = None;
    assert_eq!(kind(&under_way, &found(&under_way, &[1]), NOTHING), Some(ViolationKind::Unissued));
}

#[test]
fn transactions_survive_completely() {
    let history = history(&[1, 2]);
    let mut partly = found(&history, &[1, 2]);
    partly.remove(&key(2));
    assert_eq!(kind(&history, &partly, TAIL), Some(ViolationKind::NotSerialisable));
    let mut old = found(&history, &[1, 2]);
    old.insert(key(2), Version::new(TxnId(1), 0));
    assert_eq!(kind(&history, &old, TAIL), Some(ViolationKind::WrongData));
}

#[test]
fn an_older_version_of_a_record_is_noticed() {
    let history = history(&[1, 1, 1]);
    let mut old = found(&history, &[1, 2, 3]);
    old.insert(key(1), Version::new(TxnId(2), 0));
    assert_eq!(kind(&history, &old, TAIL), Some(ViolationKind::NotSerialisable));
}

#[test]
fn writes_that_a_reader_saw_survive_unless_they_were_relaxed() {
    for (snapshot, relaxed, expected) in [
        (Kind::Snapshot, true, None),
        (Kind::Snapshot, false, Some(ViolationKind::SeenAndLost)),
        (Kind::Locking, true, None),
        (Kind::Locking, false, Some(ViolationKind::SeenAndLost)),
    ] {
        let mut history = history(&[1]);
        history.txns[0].relaxed = relaxed;
        history.txns[0].outcome = if relaxed { Outcome::Committed } else { Outcome::Unknown };
        let at = history.begin(TxnId(9), 0, snapshot);
        let seen = Some(Version::new(TxnId(1), 0));
        history.txns[at].actions = vec![Action::Read { key: key(1), seen }];
        history.end(at, Outcome::Committed);
        assert_eq!(kind(&history, &found(&history, &[]), NOTHING), expected);
        assert_eq!(kind(&history, &found(&history, &[1]), NOTHING), None);
    }
}

#[test]
fn a_reader_may_have_seen_a_deletion_that_was_lost() {
    // Transaction 1 writes, transaction 2 deletes and is lost, and transaction 3 finds no record.
    for (outcome, kind_of_reader, expected) in [
        (Outcome::Committed, Kind::Locking, None),
        (Outcome::Unknown, Kind::Locking, None),
        (Outcome::Unknown, Kind::Snapshot, None),
    ] {
        let mut history = history(&[1, 2]);
        history.txns[1].relaxed = true;
        history.txns[1].outcome = outcome;
        history.txns[1].actions[1] =
            Action::Write { key: key(1), version: Version::new(TxnId(2), 0), deletes: true };
        history.txns[1].actions.remove(0);
        let at = history.begin(TxnId(9), 0, kind_of_reader);
        history.txns[at].actions = vec![Action::Scan { first: key(0), last: key(9), rows: Vec::new() }];
        history.end(at, Outcome::Committed);
        assert_eq!(kind(&history, &found(&history, &[1]), NOTHING), expected);
    }
}

#[test]
fn a_scan_is_divided_at_uncertain_keys_without_a_row() {
    let row = |number: u32| (key(number), Version(1));
    let uncertain = BTreeSet::from([0, 4, 5, 7, 9].map(key));
    let mut actions = vec![Action::Scan { first: key(0), last: key(9), rows: vec![row(2), row(7)] }];
    forget_absences(&mut actions, &uncertain);
    let scan = |first: u32, last: u32, rows: &[(Key, Version)]| Action::Scan {
        first: key(first),
        last: key(last),
        rows: rows.to_vec(),
    };
    assert_eq!(actions, [scan(1, 3, &[row(2)]), scan(6, 8, &[row(7)])]);
}
