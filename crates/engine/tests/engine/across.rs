//! Tests transactions of several shards: they are isolated from each other, whole in every snapshot, end their
//! deadlocks, and leave nothing behind when they are given up. `across_cuts` cuts the power.

use crate::common::powered::{LATENCY, Medium, Power};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice, Operation};
use fulgurite_engine::blocking::{Db, Table, Transaction};
use fulgurite_engine::{Direction, Durability, Error, Options, Statistics, Store};
use std::collections::BTreeMap;
use std::ops::Bound::{self, Unbounded};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Unbounded, Unbounded);

pub(crate) fn options() -> Options {
    // There is memory for the old versions that a snapshot needs beside busy writers.
    Options { memory_bytes: 16 << 20, log_bytes: 1 << 20, ..Options::default() }
}

pub(crate) fn made(shards: usize) -> (Db, Table) {
    let drives = (0..shards).map(|_| MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10))).collect();
    let db = Db::create(drives, options()).unwrap();
    let table = db.create_table("records").unwrap();
    (db, table)
}

/// Returns a key of each shard that begins with these bytes.
pub(crate) fn in_each(db: &Db, name: &str) -> Vec<Vec<u8>> {
    let key = |shard| {
        (0..).map(|number: u32| format!("{name} {number}").into_bytes()).find(|key| db.shard_of(key) == shard)
    };
    (0..db.shards()).map(|shard| key(shard).unwrap()).collect()
}

pub(crate) fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

fn statistics(db: &Db) -> Vec<Statistics> {
    db.statistics().unwrap()
}

/// Tells other threads to stop when it is dropped, also by a failed check.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Checks that no transaction has left a lock or reserved space, and that every key can be written.
fn nothing_is_left(db: &Db, table: &Table) {
    assert!(statistics(db).iter().all(|shard| shard.locks == 0));
    db.transact(|transaction| {
        in_each(db, "later").iter().try_for_each(|key| transaction.put(table, key, &[0; 8]))
    })
    .unwrap();
}

/// The rule: a transaction of several shards is an ordinary one. It sees its own writes, and others see all of them or
/// none. The model is an ordered map.
#[test]
fn a_transaction_of_several_shards_agrees_with_a_map() {
    for shards in [2, 3] {
        let (db, table) = made(shards);
        let by_value: fulgurite_engine::blocking::Extract =
            Arc::new(|_, value, keys| keys.push(value.to_vec()));
        let index = db.create_index(&table, "by value", by_value).unwrap();
        let (mut model, mut prng) = (BTreeMap::new(), Prng::new(shards as u64, "model"));
        for round in 0..300u32 {
            let (mut after, mut transaction) = (model.clone(), db.begin());
            for _ in 0..=prng.below(20) {
                let key = (prng.below(200) as u32).to_be_bytes().to_vec();
                let value = [prng.below(5) as u8].repeat(1 + prng.below(60) as usize);
                match prng.below(6) {
                    0 => {
                        transaction.delete(&table, &key).unwrap();
                        after.remove(&key);
                    }
                    1 => assert_eq!(transaction.get(&table, &key).unwrap(), after.get(&key).cloned()),
                    _ => {
                        transaction.put(&table, &key, &value).unwrap();
                        after.insert(key, value);
                    }
                }
            }
            if round % 7 == 0 {
                let (low, high) = ([0, 0, 0, prng.below(200) as u8], [0, 0, 0, prng.below(200) as u8]);
                let range = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
                let before = after.len();
                after.retain(|key, _| !(low[..] <= key[..] && key[..] < high[..]));
                assert_eq!(transaction.delete_range(&table, range).unwrap(), (before - after.len()) as u64);
            }
            let records = |direction, transaction: &mut Transaction| -> Vec<_> {
                transaction.scan(&table, ALL, direction).unwrap().map(Result::unwrap).collect()
            };
            if round % 5 == 0 {
                assert!(records(Direction::Forward, &mut transaction).into_iter().eq(after.clone()));
                let backward = records(Direction::Backward, &mut transaction).into_iter();
                assert!(backward.eq(after.clone().into_iter().rev()));
                let keys: Vec<Vec<u8>> = (0..200u32).map(|key| key.to_be_bytes().to_vec()).collect();
                let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                let found = transaction.get_many(&table, &keys).unwrap();
                assert!(found.into_iter().eq(keys.iter().map(|key| after.get(*key).cloned())));
                let mut expected: Vec<_> =
                    after.iter().map(|(key, value)| (value.clone(), key.clone())).collect();
                expected.sort_unstable();
                let rows = transaction.index_scan(&index, ALL, Direction::Forward, 50).unwrap();
                assert!(
                    rows.into_iter().map(|row| (row.index_key, row.key)).eq(expected.into_iter().take(50))
                );
            }
            if prng.below(4) > 0 {
                let durability =
                    [Durability::Flush, Durability::Group, Durability::Relaxed][round as usize % 3];
                transaction.commit_with(durability).unwrap();
                model = after;
            } else {
                drop(transaction);
            }
            assert!(
                db.scan(&table, ALL, Direction::Forward).map(Result::unwrap).eq(model.clone()),
                "{round}"
            );
        }
        nothing_is_left(&db, &table);
        db.close().unwrap();
    }
}

/// The rule: every snapshot is one state. While threads move amounts between shards, the sum of each snapshot, of each
/// scan and of each transaction that reads all is the same. Two records that a thread writes in order, in transactions
/// of their own, are in this order in each snapshot.
#[test]
fn a_snapshot_is_one_state_of_all_shards() {
    for shards in [2, 3] {
        let (db, table) = made(shards);
        let accounts: Vec<Vec<u8>> =
            (0..40u8).map(|number| format!("account {number}").into_bytes()).collect();
        accounts.iter().for_each(|key| db.put(&table, key, &100u64.to_le_bytes()).unwrap());
        let (first, second) = (in_each(&db, "first"), in_each(&db, "second"));
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..3 {
                let (db, table, accounts, stop) = (&db, &table, &accounts, &stop);
                scope.spawn(move || {
                    let mut prng = Prng::new(seed, "transfers");
                    while !stop.load(Relaxed) {
                        let (from, to) =
                            (&accounts[prng.below(40) as usize], &accounts[prng.below(40) as usize]);
                        if from == to {
                            continue;
                        }
                        db.transact(|transaction| {
                            let left = number(transaction.get(table, from)?);
                            let right = number(transaction.get(table, to)?);
                            let moved = left.min(7);
                            transaction.put(table, from, &(left - moved).to_le_bytes())?;
                            transaction.put(table, to, &(right + moved).to_le_bytes())
                        })
                        .unwrap();
                    }
                });
            }
            let (own, table_of_writer, ends) = (&db, &table, &stop);
            let (before, after) = (&second[0], &first[shards - 1]);
            scope.spawn(move || {
                for number in 1u64.. {
                    if ends.load(Relaxed) {
                        return;
                    }
                    // The shard that a snapshot locks last is written first.
                    own.put(table_of_writer, after, &number.to_le_bytes()).unwrap();
                    own.put(table_of_writer, before, &number.to_le_bytes()).unwrap();
                }
            });
            let _stop = Stop(&stop);
            let keys: Vec<&[u8]> = accounts.iter().map(|key| &key[..]).collect();
            for _ in 0..300 {
                let snapshot = db.snapshot().unwrap();
                let sum: u64 = keys.iter().map(|key| number(snapshot.get(&table, key).unwrap())).sum();
                assert_eq!(sum, 4_000);
                let get = |key: &[u8]| number(snapshot.get(&table, key).unwrap());
                assert!(get(after) >= get(before), "{} before {}", get(before), get(after));
                let many: u64 = db.get_many(&table, &keys).unwrap().into_iter().map(number).sum();
                assert_eq!(many, 4_000);
                let range = (Bound::Included(&b"account"[..]), Bound::Excluded(&b"accounu"[..]));
                let scanned: u64 =
                    db.scan(&table, range, Direction::Forward).map(|row| number(Some(row.unwrap().1))).sum();
                assert_eq!(scanned, 4_000);
                let few = db.scan(&table, range, Direction::Backward).limit(40);
                assert_eq!(few.map(|row| number(Some(row.unwrap().1))).sum::<u64>(), 4_000);
            }
            let locked = db.transact(|transaction| -> Result<u64, Error> {
                Ok(transaction.get_many(&table, &keys)?.into_iter().map(number).sum())
            });
            assert_eq!(locked, Ok(4_000));
        });
        nothing_is_left(&db, &table);
    }
}

/// The rule: transactions of several shards are serialisable. Each reads the records of both shards and writes one, if
/// their sum allows it (write skew), or inserts a record into a range that it has found empty (phantoms).
#[test]
fn neither_write_skew_nor_phantoms() {
    let (db, table) = made(2);
    let (pair, spare) = (in_each(&db, "pair"), in_each(&db, "spare"));
    for round in 0..60u8 {
        let name = format!("only {round:03}");
        let (low, high) = (format!("{name} "), format!("{name}!"));
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for side in 0..2usize {
                let (db, table, pair, both, name, low, high) =
                    (&db, &table, &pair, &both, &name, &low, &high);
                scope.spawn(move || {
                    both.wait();
                    db.transact(|transaction| {
                        let sum = number(transaction.get(table, &pair[0])?)
                            + number(transaction.get(table, &pair[1])?);
                        thread::yield_now();
                        match sum <= u64::from(round) {
                            true => {
                                transaction.put(table, &pair[side], &(u64::from(round) + 1).to_le_bytes())
                            }
                            false => Ok(()),
                        }
                    })
                    .unwrap();
                    let range = (Bound::Included(low.as_bytes()), Bound::Excluded(high.as_bytes()));
                    db.transact(|transaction| {
                        if transaction.scan(table, range, Direction::Forward)?.count() == 0 {
                            thread::yield_now();
                            transaction.put(table, &in_each(db, name)[side], &[0; 8])?;
                        }
                        Ok::<(), Error>(())
                    })
                    .unwrap();
                });
            }
        });
        let sum: u64 = pair.iter().map(|key| number(db.get(&table, key).unwrap())).sum();
        assert!(sum <= 2 * u64::from(round) + 1, "both wrote in round {round}: {sum}");
        pair.iter()
            .for_each(|key| db.put(&table, key, &(sum / 2).min(u64::from(round) / 2).to_le_bytes()).unwrap());
        let range = (Bound::Included(low.as_bytes()), Bound::Excluded(high.as_bytes()));
        assert_eq!(db.scan(&table, range, Direction::Forward).count(), 1, "a phantom in round {round}");
    }
    assert!(spare.iter().all(|key| db.get(&table, key) == Ok(None)));
    nothing_is_left(&db, &table);
}

/// The rule: of transactions that wait for each other in several shards one is aborted, the youngest, and `transact`
/// repeats it until all are committed. The turn of a shard is passed on.
#[test]
fn a_deadlock_over_several_shards_ends() {
    for shards in [2, 3] {
        let (db, table) = made(shards);
        let keys = in_each(&db, "key");
        let (all, attempts) = (Barrier::new(shards), AtomicU64::new(0));
        thread::scope(|scope| {
            for begin in 0..shards {
                let (db, table, keys, all, attempts) = (&db, &table, &keys, &all, &attempts);
                scope.spawn(move || {
                    let mut is_first = true;
                    db.transact(|transaction| {
                        attempts.fetch_add(1, Relaxed);
                        // Each has the lock of its own shard, and wants that of the next one.
                        let old = number(transaction.get_for_update(table, &keys[begin])?);
                        if std::mem::take(&mut is_first) {
                            all.wait();
                        }
                        let next = &keys[(begin + 1) % shards];
                        let other = number(transaction.get_for_update(table, next)?);
                        transaction.put(table, &keys[begin], &(old + 1).to_le_bytes())?;
                        transaction.put(table, next, &(other + 1).to_le_bytes())
                    })
                    .unwrap();
                });
            }
        });
        let sum: u64 = keys.iter().map(|key| number(db.get(&table, key).unwrap())).sum();
        assert_eq!(sum, 2 * shards as u64);
        assert!(attempts.load(Relaxed) > shards as u64);
        let deadlocks: u64 = statistics(&db).iter().map(|shard| shard.deadlocks).sum();
        assert_eq!(deadlocks, attempts.load(Relaxed) - shards as u64);
        nothing_is_left(&db, &table);
    }
}

/// The rule: many threads that change the same records of two shards, in any order, get through.
#[test]
fn a_crowd_on_the_same_records_gets_through() {
    let (db, table) = made(2);
    let keys = in_each(&db, "key");
    thread::scope(|scope| {
        for thread in 0..8usize {
            let (db, table, keys) = (&db, &table, &keys);
            scope.spawn(move || {
                for _ in 0..20 {
                    db.transact(|transaction| {
                        for side in [thread % 2, 1 - thread % 2] {
                            let old = number(transaction.get(table, &keys[side])?);
                            transaction.put(table, &keys[side], &(old + 1).to_le_bytes())?;
                        }
                        Ok::<(), Error>(())
                    })
                    .unwrap();
                }
            });
        }
    });
    assert!(keys.iter().all(|key| number(db.get(&table, key).unwrap()) == 160));
    nothing_is_left(&db, &table);
}

/// The rule: a drop of a table and a bulk load wait for a transaction in one shard and hold the lock of another. If the
/// transaction wants that lock, it is aborted.
#[test]
fn a_drop_and_a_load_do_not_wait_for_ever() {
    let (db, table) = made(2);
    let keys = in_each(&db, "key");
    for is_drop in [false, true] {
        let mut transaction = db.begin();
        transaction.get(&table, &keys[1]).unwrap();
        thread::scope(|scope| {
            let (own, of_all) = (&db, &table);
            let other = scope.spawn(move || match is_drop {
                true => own.drop_table("records"),
                false => own.bulk_load(of_all, [(b"key".to_vec(), b"value".to_vec())]).map(drop),
            });
            // The other thread has the lock of the first shard once a lock there is in its way.
            while statistics(own)[0].locks == 0 {
                thread::yield_now();
            }
            assert_eq!(transaction.get(&table, &keys[0]), Err(Error::Deadlock));
            assert_eq!(transaction.get(&table, &keys[1]), Err(Error::Deadlock), "it cannot continue");
            drop(transaction);
            other.join().unwrap().unwrap();
        });
    }
    assert_eq!(db.tables().unwrap(), Vec::<String>::new());
}

/// The rule: a transaction that is given up while it waits, or that fails in its commit, leaves nothing in any shard.
#[test]
fn a_call_that_is_given_up_leaves_nothing() {
    let (db, table) = made(3);
    let keys = in_each(&db, "key");
    // It waits for a lock with its first write, with its last one, and in its commit.
    for held in 0..3 {
        for in_commit in [false, true] {
            let mut holder = db.begin();
            holder.get_for_update(&table, &keys[held]).unwrap();
            let asked = AtomicU64::new(0);
            let own = db.asking(move || asked.fetch_add(1, Relaxed) < 2);
            let mut transaction = own.begin();
            let outcome = keys.iter().try_for_each(|key| {
                transaction.put(&table, key, b"never")?;
                if in_commit { Ok(()) } else { transaction.get(&table, key).map(drop) }
            });
            assert_eq!(
                outcome.and_then(|()| transaction.commit()),
                Err(Error::GivenUp),
                "{held} {in_commit}"
            );
            drop(holder);
            assert!(statistics(&db).iter().all(|shard| shard.locks == 0));
        }
    }
    // A side that is too large for its log is refused when the others may have their space already.
    let mut transaction = db.begin();
    let mut outcome = Ok(());
    for number in 0..4_000u32 {
        let key = [&keys[0][..], &number.to_be_bytes()].concat();
        outcome = outcome.and_then(|()| transaction.put(&table, &key, &[7; 300]));
    }
    let outcome = outcome.and_then(|()| transaction.commit());
    assert!(matches!(outcome, Err(Error::TransactionTooLarge { .. })), "{outcome:?}");
    assert_eq!(db.scan(&table, ALL, Direction::Forward).count(), 0);
    nothing_is_left(&db, &table);
    db.close().unwrap();
    assert_eq!(db.begin().commit(), Ok(()));
    let mut late = db.begin();
    let outcome = keys.iter().try_for_each(|key| late.put(&table, key, b"late")).and_then(|()| late.commit());
    assert_eq!(outcome, Err(Error::Closed));
}

/// The rule: a commit of several shards that is given up while the other shards prepare it is aborted in all shards.
/// From the decision on it is not given up. It says which of them it was, also if the power is cut then.
#[test]
fn a_commit_that_is_given_up_is_whole_or_absent() {
    const FLUSH: u64 = 100_000_000;
    let (mut given_up, mut committed) = (0, 0);
    for questions in 0..6 {
        let media: Vec<Medium> = (0..3).map(|_| Medium::empty()).collect();
        let power = Power::new(u64::MAX);
        let slow = Arc::new(AtomicBool::new(false));
        let drives = media.iter().map(|medium| {
            let slow = Arc::clone(&slow);
            medium.drive(&power).with_hook(move |operation| match operation {
                Operation::Flush if slow.load(Relaxed) => FLUSH,
                _ => LATENCY,
            })
        });
        let db = Db::create(drives.collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let (keys, asked) = (in_each(&db, "key"), AtomicU64::new(0));
        slow.store(true, Relaxed);
        let own = db.asking(move || asked.fetch_add(1, Relaxed) < questions);
        let mut transaction = own.begin();
        keys.iter().for_each(|key| transaction.put(&table, key, &7u64.to_le_bytes()).unwrap());
        let outcome = transaction.commit();
        let expected = match outcome {
            Ok(()) => [7; 3],
            Err(Error::GivenUp) => [0; 3],
            Err(error) => panic!("{error}"),
        };
        *if outcome.is_ok() { &mut committed } else { &mut given_up } += 1;
        let found = |db: &Db, table: &Table| -> Vec<u64> {
            keys.iter().map(|key| number(db.get(table, key).unwrap())).collect()
        };
        assert_eq!(found(&db, &table), expected, "{questions}");
        nothing_is_left(&db, &table);
        drop(db);
        media.iter().for_each(|medium| medium.cut(questions * 20, &mut Prng::new(questions, "given up")));
        let db = Db::open(media.iter().map(|medium| medium.drive(&power)).collect(), options()).unwrap();
        let table = db.table("records").unwrap();
        assert_eq!(found(&db, &table), expected, "{questions}, after a crash");
        nothing_is_left(&db, &table);
    }
    // There is a question at the end of each of the two flushes that prepare the transaction.
    assert_eq!((given_up, committed), (2, 4));
}

/// The rule: a commit of several shards flushes each log once. A store that is closed needs no recovery, whichever of
/// its shards decided last. A transaction of one shard
/// writes the same number of bytes and flushes, whether there are others or not.
#[test]
fn a_closed_store_is_clean_and_one_shard_pays_nothing() {
    let media: Vec<Medium> = (0..2).map(|_| Medium::empty()).collect();
    let power = Power::new(u64::MAX);
    let drives = || media.iter().map(|medium| medium.drive(&power)).collect();
    let db = Db::create(drives(), options()).unwrap();
    let table = db.create_table("records").unwrap();
    let flushes = || statistics(&db).iter().map(|shard| shard.log_flushes).collect::<Vec<u64>>();
    let before = flushes();
    for round in 0..50u64 {
        db.transact(|transaction| {
            in_each(&db, "key").iter().try_for_each(|key| transaction.put(&table, key, &round.to_le_bytes()))
        })
        .unwrap();
    }
    // One flush in each shard: the decision of the prepared side goes with the next one.
    assert_eq!(flushes(), [before[0] + 50, before[1] + 50]);
    db.close().unwrap();
    drop(db);
    let db = Db::open(drives(), options()).unwrap();
    assert!(statistics(&db).iter().all(|shard| shard.recovered_ops == 0 && shard.log_bytes_used < 8192));
    assert_eq!(number(db.get(&db.table("records").unwrap(), &in_each(&db, "key")[1]).unwrap()), 49);
    let cost = |shards: usize| {
        let (db, table) = made(shards);
        let keys: Vec<_> =
            (0..400u32).map(|key| key.to_be_bytes()).filter(|key| fnv(key).is_multiple_of(6)).collect();
        let shard = db.shard_of(&keys[0]);
        let before = statistics(&db)[shard];
        for pair in keys.chunks_exact(2) {
            let mut transaction = db.begin();
            pair.iter().for_each(|key| transaction.put(&table, key, b"value").unwrap());
            transaction.commit_with(Durability::Flush).unwrap();
        }
        let after = statistics(&db)[shard];
        (
            after.log_bytes_written - before.log_bytes_written,
            after.log_flushes - before.log_flushes,
            after.commits - before.commits,
        )
    };
    assert_eq!((cost(1), cost(1)), (cost(2), cost(3)));
}

/// Returns the hash that selects the shard of a key.
fn fnv(key: &[u8]) -> u64 {
    fulgurite_base::fnv1a(key)
}

/// The rule: a shard that is opened without the others does not drop a transaction in doubt; its opening fails. The
/// whole store keeps it if the coordinator decided, and as a whole.
#[test]
fn a_shard_in_doubt_says_so() {
    let mut doubts = 0;
    for commands in 0..40 {
        let media: Vec<Medium> = (0..2).map(|_| Medium::empty()).collect();
        let power = Power::new(u64::MAX);
        let db = Db::create(media.iter().map(|medium| medium.drive(&power)).collect(), options()).unwrap();
        let table = db.create_table("records").unwrap();
        let keys = in_each(&db, "key");
        db.put_with(&table, b"first", b"value", Durability::Flush).unwrap();
        power.set(commands);
        let mut transaction = db.begin();
        keys.iter().for_each(|key| transaction.put(&table, key, &7u64.to_le_bytes()).unwrap());
        let outcome = transaction.commit();
        drop(db);
        let mut prng = Prng::new(1, "in doubt");
        media.iter().for_each(|medium| medium.cut(0, &mut prng));
        let executor = Executor::new(media[1].clone().drive(&Power::new(u64::MAX)));
        let handle = executor.handle();
        let opened =
            executor.block_on(async move { Store::open(handle, options()).await.map(drop) }).unwrap();
        if opened == Err(Error::InDoubt { transactions: 1 }) {
            doubts += 1;
            assert!(opened.unwrap_err().to_string().contains("open the store with all its drives"));
        } else {
            assert_eq!(opened, Ok(()));
        }
        let power = Power::new(u64::MAX);
        let db = Db::open(media.iter().map(|medium| medium.drive(&power)).collect(), options()).unwrap();
        let table = db.table("records").unwrap();
        let found = keys.iter().map(|key| number(db.get(&table, key).unwrap())).collect::<Vec<_>>();
        assert!(found == [7, 7] || (found == [0, 0] && outcome.is_err()), "{found:?}, {outcome:?}");
    }
    assert!(doubts > 1, "{doubts}");
}
