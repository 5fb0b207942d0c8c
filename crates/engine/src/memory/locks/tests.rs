//! Tests with one small scenario for each rule.

use super::Mode::{Exclusive, Shared};
use super::Outcome::{Granted, Waiting};
use super::{Locks, Mode, Outcome, TxnId};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

const TABLE: u32 = 7;

/// Short names for the operations of the lock manager. Transactions are numbers, and keys are text.
#[derive(Default)]
struct Scene(Locks);

impl Scene {
    fn key(&mut self, txn: u64, key: &str, mode: Mode) -> Outcome {
        self.0.lock_key(TxnId(txn), TABLE, key.as_bytes(), mode)
    }

    fn range(&mut self, txn: u64, from: Bound<&str>, to: Bound<&str>, mode: Mode) -> Outcome {
        self.0.lock_range(TxnId(txn), TABLE, (from.map(str::as_bytes), to.map(str::as_bytes)), mode)
    }

    /// Ends a transaction. Returns the transactions whose requests are granted.
    fn release(&mut self, txn: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        self.0.release(TxnId(txn), &mut granted);
        granted.into_iter().map(|txn| txn.0).collect()
    }

    fn cancel(&mut self, txn: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        self.0.cancel(TxnId(txn), &mut granted);
        granted.into_iter().map(|txn| txn.0).collect()
    }
}

fn deadlock(victims: &[u64]) -> Outcome {
    Outcome::Deadlock { victims: victims.iter().copied().map(TxnId).collect() }
}

#[test]
fn shared_locks_are_compatible_and_exclusive_ones_are_not() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "k", Shared), Granted);
    assert_eq!(scene.key(2, "k", Shared), Granted);
    assert_eq!(scene.key(3, "k", Exclusive), Waiting);
    assert_eq!(scene.key(4, "other", Exclusive), Granted);
    assert_eq!(scene.0.lock_key(TxnId(4), TABLE + 1, b"k", Exclusive), Granted, "another table");
    assert_eq!(scene.release(1), []);
    assert_eq!(scene.release(2), [3]);
}

#[test]
fn a_held_lock_is_granted_again() {
    let mut scene = Scene::default();
    for _ in 0..2 {
        assert_eq!(scene.key(1, "k", Exclusive), Granted);
        assert_eq!(scene.key(1, "k", Shared), Granted);
        assert_eq!(scene.range(1, Included("a"), Included("c"), Shared), Granted);
        assert_eq!(scene.range(1, Excluded("a"), Excluded("c"), Shared), Granted);
        assert_eq!(scene.0.held(), 2);
    }
    assert_eq!(scene.key(2, "k", Shared), Waiting, "the exclusive lock is still one");
}

#[test]
fn an_upgrade_goes_before_other_waiters() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "k", Shared), Granted);
    assert_eq!(scene.key(2, "k", Shared), Granted);
    assert_eq!(scene.key(3, "k", Exclusive), Waiting);
    assert_eq!(scene.key(1, "k", Exclusive), Waiting);
    assert_eq!(scene.release(2), [1]);
    assert_eq!(scene.0.held(), 1);
    assert_eq!(scene.release(1), [3]);
}

#[test]
fn two_upgrades_are_a_deadlock() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "k", Shared), Granted);
    assert_eq!(scene.key(2, "k", Shared), Granted);
    assert_eq!(scene.key(1, "k", Exclusive), Waiting);
    assert_eq!(scene.key(2, "k", Exclusive), deadlock(&[2]));
    assert!(!scene.0.is_waiting(TxnId(2)));
    assert_eq!(scene.release(2), [1]);
}

/// The rule: the victim is the youngest by age. A transaction that repeats an aborted one has the age of the
/// latter, not that of its own number; both as the requester and as one that waits.
#[test]
fn a_repeated_transaction_keeps_its_age() {
    let mut scene = Scene::default();
    scene.0.begin_again(TxnId(9), TxnId(1));
    for txn in [9, 5] {
        assert_eq!(scene.key(txn, "k", Shared), Granted);
    }
    assert_eq!(scene.key(5, "k", Exclusive), Waiting);
    assert_eq!(scene.key(9, "k", Exclusive), deadlock(&[5]), "5 is younger than 1");
    assert_eq!(scene.release(5), [9]);
    assert_eq!(scene.release(9), []);
    scene.0.begin_again(TxnId(10), TxnId(2));
    for txn in [10, 6] {
        assert_eq!(scene.key(txn, "k", Shared), Granted);
    }
    assert_eq!(scene.key(10, "k", Exclusive), Waiting);
    assert_eq!(scene.key(6, "k", Exclusive), deadlock(&[6]), "6 is younger than 2");
    assert_eq!((scene.release(6), scene.release(10)), (vec![10], vec![]));
    assert_eq!(scene.0.bytes(), 0);
}

#[test]
fn nobody_overtakes_a_waiting_request() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "k", Shared), Granted);
    assert_eq!(scene.key(2, "k", Exclusive), Waiting);
    assert_eq!(scene.key(3, "k", Shared), Waiting);
    assert_eq!(scene.key(4, "k", Shared), Waiting);
    assert_eq!(scene.release(1), [2]);
    assert_eq!(scene.release(2), [3, 4]);
}

#[test]
fn a_writer_overtakes_the_scan_that_waits_for_it() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "b", Exclusive), Granted);
    assert_eq!(scene.range(2, Included("a"), Included("z"), Shared), Waiting);
    assert_eq!(scene.key(1, "c", Exclusive), Granted);
    assert_eq!(scene.key(3, "d", Exclusive), Waiting, "the scan does not wait for this one");
    assert_eq!(scene.release(1), [2]);
    assert_eq!(scene.release(2), [3]);
}

#[test]
fn an_overtaken_request_waits_for_the_new_lock_too() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "a", Exclusive), Granted);
    assert_eq!(scene.key(2, "b", Shared), Granted);
    assert_eq!(scene.key(2, "a", Shared), Waiting);
    // Transaction 3 waits for 2, and 2 waits for 1. So 1 overtakes 3, and 3 still waits after the end of 2.
    assert_eq!(scene.range(3, Included("b"), Included("z"), Exclusive), Waiting);
    assert_eq!(scene.key(1, "c", Shared), Granted);
    assert_eq!(scene.release(2), []);
    assert_eq!(scene.release(1), [3]);
}

#[test]
fn a_range_keeps_out_keys_that_do_not_exist() {
    let mut scene = Scene::default();
    assert_eq!(scene.range(1, Included("b"), Excluded("d"), Shared), Granted);
    assert_eq!(scene.key(2, "c", Shared), Granted);
    assert_eq!(scene.key(3, "c\0", Exclusive), Waiting);
    assert_eq!(scene.key(4, "d", Exclusive), Granted, "the bound is excluded");
    assert_eq!(scene.key(5, "az", Exclusive), Granted);
    assert_eq!(scene.release(1), [3]);
}

#[test]
fn bounds_of_ranges_are_respected() {
    for (from, to, inside, outside) in [
        (Included("b"), Included("d"), ["b", "d"], ["a", "d\0"]),
        (Excluded("b"), Excluded("d"), ["b\0", "c"], ["b", "d"]),
        (Unbounded, Excluded("b"), ["", "a"], ["b", "c"]),
        (Excluded("b"), Unbounded, ["b\0", "z"], ["", "b"]),
    ] {
        // The range is locked first in one case, and the key is locked first in the other.
        for (at, (key, expected)) in
            inside.map(|k| (k, Waiting)).iter().chain(&outside.map(|k| (k, Granted))).enumerate()
        {
            let mut scene = Scene::default();
            assert_eq!(scene.range(1, from, to, Shared), Granted);
            assert_eq!(scene.key(2, key, Exclusive), *expected, "{at}: {key:?} in {from:?}..{to:?}");
            let mut scene = Scene::default();
            assert_eq!(scene.key(1, key, Exclusive), Granted);
            assert_eq!(scene.range(2, from, to, Shared), *expected, "{at}: {key:?} in {from:?}..{to:?}");
        }
    }
}

#[test]
fn an_empty_range_is_granted_and_locks_nothing() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "b", Exclusive), Granted);
    for (from, to) in
        [(Excluded("b"), Excluded("b")), (Included("c"), Included("a")), (Unbounded, Excluded(""))]
    {
        assert_eq!(scene.range(2, from, to, Exclusive), Granted);
    }
    assert_eq!(scene.0.held(), 1);
}

#[test]
fn exclusive_ranges_conflict_with_ranges_and_shared_keys() {
    let mut scene = Scene::default();
    assert_eq!(scene.range(1, Included("b"), Included("d"), Exclusive), Granted);
    assert_eq!(scene.range(2, Included("d"), Included("f"), Shared), Waiting);
    assert_eq!(scene.key(3, "c", Shared), Waiting);
    assert_eq!(scene.key(4, "x", Shared), Granted);
    assert_eq!(scene.range(5, Included("w"), Unbounded, Exclusive), Waiting);
    assert_eq!(scene.release(1), [2, 3]);
    assert_eq!(scene.release(4), [5]);
}

#[test]
fn the_youngest_of_a_cycle_is_the_victim() {
    let mut scene = Scene::default();
    for (txn, key) in [(1, "a"), (2, "b"), (9, "c")] {
        assert_eq!(scene.key(txn, key, Exclusive), Granted);
    }
    assert_eq!(scene.key(2, "c", Exclusive), Waiting);
    assert_eq!(scene.key(9, "a", Exclusive), Waiting);
    assert_eq!(scene.key(1, "b", Exclusive), deadlock(&[9]));
    assert!(!scene.0.is_waiting(TxnId(9)));
    assert!(scene.0.is_waiting(TxnId(1)));
    assert_eq!(scene.key(9, "new", Shared), deadlock(&[9]), "a victim has to end");
    assert_eq!(scene.release(9), [2]);
    assert_eq!(scene.release(2), [1]);
    assert_eq!(scene.key(9, "new", Shared), Granted, "the number can be used again");
}

#[test]
fn a_deadlock_through_a_queue_is_found() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "a", Shared), Granted);
    assert_eq!(scene.key(3, "b", Exclusive), Granted);
    // Transaction 2 waits for 1. Transaction 3 waits only for 2, because its request is compatible with the
    // lock of 1.
    assert_eq!(scene.key(2, "a", Exclusive), Waiting);
    assert_eq!(scene.key(3, "a", Shared), Waiting);
    assert_eq!(scene.key(1, "b", Shared), deadlock(&[3]));
    assert_eq!(scene.release(3), [1]);
    assert_eq!(scene.release(1), [2]);
}

#[test]
fn one_request_can_close_several_cycles() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "a", Exclusive), Granted);
    for txn in [5, 6] {
        assert_eq!(scene.key(txn, "b", Shared), Granted);
        assert_eq!(scene.key(txn, "a", Shared), Waiting);
    }
    assert_eq!(scene.key(1, "b", Exclusive), deadlock(&[5, 6]));
    assert_eq!(scene.release(5), []);
    assert_eq!(scene.release(6), [1]);
}

#[test]
fn the_requester_is_the_only_victim_if_it_is_one() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(5, "a", Exclusive), Granted);
    for txn in [1, 6] {
        assert_eq!(scene.key(txn, "b", Shared), Granted);
        assert_eq!(scene.key(txn, "a", Shared), Waiting);
    }
    assert_eq!(scene.key(5, "b", Exclusive), deadlock(&[5]));
    assert!(scene.0.is_waiting(TxnId(6)));
    assert_eq!(scene.release(5), [1, 6]);
}

#[test]
fn a_cancelled_request_lets_others_pass() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "k", Shared), Granted);
    assert_eq!(scene.key(2, "own", Exclusive), Granted);
    assert_eq!(scene.key(2, "k", Exclusive), Waiting);
    assert_eq!(scene.key(3, "k", Shared), Waiting);
    assert_eq!(scene.key(4, "own", Exclusive), Waiting);
    assert_eq!(scene.cancel(2), [3]);
    assert_eq!(scene.cancel(2), []);
    assert_eq!(scene.release(2), [4], "its locks stayed");
}

#[test]
fn edges_of_cancelled_requests_take_no_memory() {
    let mut scene = Scene::default();
    assert_eq!(scene.key(1, "k", Exclusive), Granted);
    assert_eq!(scene.key(2, "k", Exclusive), Waiting);
    let bytes = scene.0.bytes();
    for _ in 0..10_000 {
        assert_eq!(scene.key(3, "k", Exclusive), Waiting);
        assert_eq!(scene.cancel(3), []);
    }
    assert!(scene.0.bytes() < bytes + 2_000, "{} bytes after {bytes}", scene.0.bytes());
    assert_eq!(scene.release(1), [2]);
}

/// With many locks, the hash table grows, the index and the tree become deep, and the memory of long keys is
/// freed.
#[test]
fn many_locks() {
    let mut scene = Scene::default();
    let key = |number: u64| format!("{number:06}{}", "x".repeat((number % 100) as usize));
    for number in 0..10_000 {
        assert_eq!(scene.key(1 + number % 7, &key(number), Exclusive), Granted);
    }
    for number in 0..1_000 {
        let (from, to) = (format!("2{number:05}"), format!("2{:05}", number + 3));
        assert_eq!(scene.range(100 + number, Included(&from), Excluded(&to), Shared), Granted);
    }
    assert_eq!(scene.0.held(), 11_000);
    assert!(scene.0.bytes() > 11_000 * 100);
    assert_eq!(scene.key(2_000, "200500x", Exclusive), Waiting);
    assert_eq!(scene.range(2_001, Included(&key(500)), Included(&key(500)), Shared), Waiting);
    assert_eq!((scene.release(598), scene.release(599), scene.release(600)), (vec![], vec![], vec![2_000]));
    assert_eq!(scene.release(1 + 500 % 7), [2_001]);
    (1..=2_001).for_each(|txn| assert_eq!(scene.release(txn), []));
    assert_eq!((scene.0.held(), scene.0.bytes()), (0, 0));
}
