//! Measures the cost of locks: a point lock and its release without contention, beside other locks; a range
//! lock; and one key that many transactions request.
//!
//! `cargo bench -p fulgurite-engine --bench locks`; `--test` makes a short run.

use fulgurite_engine::locks::{Locks, Mode, Outcome, TxnId};
use std::ops::Bound;
use std::time::Instant;

/// Returns a key of 16 bytes. Keys order like their numbers.
fn key(number: u64) -> [u8; 16] {
    let mut key = *b"customer00000000";
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Returns the nanoseconds per operation.
fn time(operations: u64, mut operation: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..operations).for_each(&mut operation);
    start.elapsed().as_secs_f64() * 1e9 / operations as f64
}

/// Locks `keys` keys in `mode`, ten in each transaction. The keys have odd numbers.
fn hold_keys(locks: &mut Locks, keys: u64, mode: Mode) {
    for number in 0..keys {
        drop(locks.lock_key(TxnId(1 + number / 10), 1, &key(number * 2 + 1), mode));
    }
}

/// Measures point locks, each with its release, on keys that no other transaction has locked.
fn points(name: &str, locks: &mut Locks, operations: u64, mode: Mode) {
    let mut granted = Vec::new();
    let each = time(operations, |number| {
        let txn = TxnId(1_000_000 + number);
        // The multiplication steps through all even keys, so that consecutive keys are not adjacent.
        let key = key(number.wrapping_mul(0x9e37_79b1) % 100_000 * 2);
        assert_eq!(locks.lock_key(txn, 1, &key, mode), Outcome::Granted);
        locks.release(txn, &mut granted);
    });
    let (held, bytes) = (locks.held(), locks.bytes());
    println!("{name:50} {each:7.1} ns  ({held} held, {bytes} bytes)");
}

/// Locks `ranges` ranges of ten keys each, every one for a transaction of its own. The ranges are disjoint,
/// or all overlap.
fn hold_ranges(locks: &mut Locks, ranges: u64, apart: bool) {
    for number in 0..ranges {
        let first = if apart { 1_000_000 + number * 10 } else { 1_000_000 };
        let (from, to) = (key(first), key(first + 9));
        let range = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        drop(locks.lock_range(TxnId(500_000 + number), 1, range, Mode::Shared));
    }
}

/// Measures a transaction that locks ten keys and a range of ten others.
fn transactions(locks: &mut Locks, operations: u64) {
    let mut granted = Vec::new();
    let each = time(operations, |number| {
        let txn = TxnId(1_000_000 + number);
        let first = number.wrapping_mul(0x9e37_79b1) % 100_000 * 100;
        for at in 0..10 {
            drop(locks.lock_key(txn, 2, &key(first + at), Mode::Exclusive));
        }
        let (from, to) = (key(first + 50), key(first + 60));
        let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        drop(locks.lock_range(txn, 2, range, Mode::Shared));
        locks.release(txn, &mut granted);
    });
    println!("{:44} {each:7.1} ns", "ten exclusive keys, one range, release");
}

/// Measures a key that `users` transactions queue for. The owner locks a second contended key, and ends.
fn hot_key(users: u64, operations: u64) {
    let mut locks = Locks::new();
    let mut granted = Vec::new();
    for user in 0..users {
        drop(locks.lock_key(TxnId(user), 1, b"warehouse", Mode::Exclusive));
    }
    let each = time(operations, |number| {
        drop(locks.lock_key(TxnId(number), 1, b"district", Mode::Exclusive));
        locks.release(TxnId(number), &mut granted);
        drop(locks.lock_key(TxnId(number + users), 1, b"warehouse", Mode::Exclusive));
    });
    assert_eq!(granted.len() as u64, operations);
    println!("one hot key, {users:4} users: a transaction          {each:7.1} ns  ({} bytes)", locks.bytes());
}

/// Measures a wait of the owner of the hot key for a transaction that runs (`runs`), or that waits itself.
/// Only the latter needs a search for a deadlock, which visits all transactions that wait for the hot key.
fn hot_search(users: u64, operations: u64, runs: bool) {
    let mut locks = Locks::new();
    let mut granted = Vec::new();
    drop(locks.lock_key(TxnId(users), 1, b"district", Mode::Exclusive));
    if !runs {
        drop(locks.lock_key(TxnId(users + 1), 1, b"customer", Mode::Exclusive));
        drop(locks.lock_key(TxnId(users), 1, b"customer", Mode::Exclusive));
    }
    for user in 0..users {
        drop(locks.lock_key(TxnId(user), 1, b"warehouse", Mode::Exclusive));
    }
    let each = time(operations, |_| {
        assert_eq!(locks.lock_key(TxnId(0), 1, b"district", Mode::Exclusive), Outcome::Waiting);
        locks.cancel(TxnId(0), &mut granted);
    });
    let whom = if runs { "runs" } else { "waits" };
    println!("one hot key, {users:4} users: its owner waits for one who {whom:5} {each:9.1} ns");
}

fn main() {
    let short = std::env::args().any(|argument| argument == "--test");
    let operations = if short { 10_000 } else { 5_000_000 };
    for (name, mode) in [("shared", Mode::Shared), ("exclusive", Mode::Exclusive)] {
        for held in [0, 100, 10_000] {
            let mut locks = Locks::new();
            hold_keys(&mut locks, held, mode);
            points(&format!("{name} key, {held} keys held"), &mut locks, operations, mode);
        }
        for apart in [true, false] {
            let mut locks = Locks::new();
            hold_ranges(&mut locks, 1_000, apart);
            let place = if apart { "apart" } else { "over each other" };
            points(&format!("{name} key, 1,000 ranges held, {place}"), &mut locks, operations, mode);
        }
    }
    for held in [0, 10_000] {
        let mut locks = Locks::new();
        hold_keys(&mut locks, held, Mode::Exclusive);
        hold_ranges(&mut locks, 1_000, true);
        print!("{held:6} keys, 1,000 ranges held: ");
        transactions(&mut locks, operations / 10);
    }
    for users in [20, 200, 1_000] {
        hot_key(users, operations / 100);
        hot_search(users, operations / 1_000, true);
        hot_search(users, operations / 1_000, false);
    }
}
