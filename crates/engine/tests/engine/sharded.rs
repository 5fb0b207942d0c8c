//! Tests the store of several shards on one executor. `crashsim` cuts its power.

use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::sharded::{Attempts, Index, Store, Table, divide};
use fulgurite_engine::{Direction, Durability, Error, Options, Statistics};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound::{self, Unbounded};
use std::rc::Rc;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Unbounded, Unbounded);

fn options() -> Options {
    Options { memory_bytes: 4 << 20, log_bytes: 1 << 20, ..Options::default() }
}

/// Runs `test` on a new store of several shards, then checks it and opens it again.
fn on_shards(shards: u32, test: impl AsyncFnOnce(&Store, Table) + 'static) {
    let executor = Executor::with_cores(MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10)), shards);
    let handle = executor.handle();
    let work = async move {
        let handles = divide(handle, shards).unwrap();
        let store = Store::create(handles.clone(), options()).await.unwrap();
        let table = store.create_table("records").await.unwrap();
        test(&store, table).await;
        assert_eq!(store.statistics().locks, 0, "nothing is left");
        assert_eq!(store.check().await.unwrap().problems, []);
        let before = store.snapshot().await.scan(table, ALL, Direction::Forward).all().await.unwrap();
        store.close().await.unwrap();
        let store = Store::open(handles, options()).await.unwrap();
        let table = store.table("records").await.unwrap();
        let after = store.snapshot().await.scan(table, ALL, Direction::Forward).all().await.unwrap();
        assert_eq!(before, after);
        store.close().await.unwrap();
    };
    executor.block_on(work).unwrap();
}

/// Returns a key of each shard that begins with these bytes.
fn in_each(store: &Store, name: &str) -> Vec<Vec<u8>> {
    let key = |shard| {
        let mut keys = (0..).map(|number: u32| format!("{name} {number}").into_bytes());
        keys.find(|key| store.shard_of(key) == shard).unwrap()
    };
    (0..store.shards()).map(key).collect()
}

/// Compares every way to read with a model, in a snapshot and in a transaction.
async fn compare(
    store: &Store,
    table: Table,
    index: Index,
    model: &BTreeMap<Vec<u8>, Vec<u8>>,
    limit: usize,
) {
    let keys: Vec<Vec<u8>> = (0..200u32).map(|key| key.to_be_bytes().to_vec()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut rows: Vec<_> = model.iter().map(|(key, value)| (value.clone(), key.clone())).collect();
    rows.sort_unstable();
    let forward: Vec<_> = model.clone().into_iter().take(limit).collect();
    let backward: Vec<_> = model.clone().into_iter().rev().take(limit).collect();
    macro_rules! compare {
        ($reader:ident) => {
            let scan = |direction| $reader.scan(table, ALL, direction).limit(limit).all();
            assert_eq!(scan(Direction::Forward).await.unwrap(), forward);
            assert_eq!(scan(Direction::Backward).await.unwrap(), backward);
            let found = $reader.get_many(table, &keys).await.unwrap();
            assert!(found.into_iter().eq(keys.iter().map(|key| model.get(*key).cloned())));
            let found = $reader.index_scan(index, ALL, Direction::Forward).limit(limit).all().await.unwrap();
            let found: Vec<_> = found.into_iter().map(|row| (row.index_key, row.key)).collect();
            assert_eq!(found, rows[..rows.len().min(limit)]);
            for key in &keys[..10] {
                assert_eq!($reader.get(table, key).await.unwrap(), model.get(*key).cloned());
            }
        };
    }
    let snapshot = store.snapshot().await;
    compare!(snapshot);
    let transaction = store.begin();
    compare!(transaction);
    transaction.commit().await.unwrap();
    assert_eq!(store.get(table, keys[3]).await.unwrap(), model.get(keys[3]).cloned());
}

/// The rule: transactions, snapshots, scans and index scans of any number of shards agree with an ordered map.
#[test]
fn a_store_of_several_shards_agrees_with_a_map() {
    for shards in [1, 2, 3] {
        on_shards(shards, async move |store, table| {
            let mut model = BTreeMap::new();
            let loaded = (0..50u32).map(|key| (key.to_be_bytes().to_vec(), b"loaded".to_vec()));
            model.extend(loaded.clone());
            store.bulk_load(table, loaded).await.unwrap();
            let by_value =
                Rc::new(|_: &[u8], value: &[u8], keys: &mut Vec<Vec<u8>>| keys.push(value.to_vec()));
            let index = store.create_index(table, "by value", by_value).await.unwrap();
            let mut prng = Prng::new(shards.into(), "model");
            for round in 0..150u32 {
                let (mut after, transaction) = (model.clone(), store.begin());
                for _ in 0..prng.below(20) {
                    let key = (prng.below(200) as u32).to_be_bytes().to_vec();
                    let value = [prng.below(5) as u8].repeat(1 + prng.below(60) as usize);
                    match prng.below(6) {
                        0 => {
                            transaction.delete(table, &key).await.unwrap();
                            after.remove(&key);
                        }
                        1 => {
                            assert_eq!(transaction.get(table, &key).await.unwrap(), after.get(&key).cloned())
                        }
                        2 => {
                            let found = transaction.get_for_update(table, &key).await.unwrap();
                            assert_eq!(found, after.get(&key).cloned());
                        }
                        _ => {
                            transaction.put(table, &key, &value).await.unwrap();
                            after.insert(key, value);
                        }
                    }
                }
                if prng.below(4) > 0 {
                    let all = [Durability::Flush, Durability::Group, Durability::Relaxed];
                    transaction.commit_with(all[round as usize % 3]).await.unwrap();
                    model = after;
                } else {
                    drop(transaction);
                }
                if round % 10 == 0 {
                    compare(store, table, index, &model, 1 + prng.below(100) as usize).await;
                }
            }
        });
    }
}

/// The rule: a snapshot is one state of all shards. While tasks move amounts between shards, the sum of every snapshot
/// and of every transaction that reads all accounts is the same.
#[test]
fn every_snapshot_has_one_state() {
    on_shards(3, async |store, table| {
        let accounts: Rc<Vec<Vec<u8>>> = Rc::new((0..12u8).map(|number| vec![number]).collect());
        for key in accounts.iter() {
            let transaction = store.begin();
            transaction.put(table, key, &100u64.to_le_bytes()).await.unwrap();
            transaction.commit().await.unwrap();
        }
        let number = |value: Option<Vec<u8>>| u64::from_le_bytes(value.unwrap().try_into().unwrap());
        let busy = Rc::new(Cell::new(4));
        for seed in 0..4 {
            let (store, accounts, busy) = (store.clone(), Rc::clone(&accounts), Rc::clone(&busy));
            store.handle().clone().spawn(async move {
                let mut prng = Prng::new(seed, "transfers");
                for _ in 0..60 {
                    let attempts = Rc::new(Attempts::default());
                    let [from, to] = [0, 1].map(|_| accounts[prng.below(12) as usize].clone());
                    loop {
                        store.wait_for_turn(&attempts).await;
                        let transaction = store.begin_attempt(&attempts);
                        let moved = async {
                            let held = number(transaction.get(table, &from).await?);
                            transaction.put(table, &from, &(held - 1).to_le_bytes()).await?;
                            let held = number(transaction.get(table, &to).await?);
                            transaction.put(table, &to, &(held + 1).to_le_bytes()).await
                        };
                        let outcome = match moved.await {
                            Ok(()) => transaction.commit().await,
                            Err(error) => {
                                drop(transaction);
                                Err(error)
                            }
                        };
                        match outcome {
                            Err(Error::Deadlock) => continue,
                            outcome => break outcome.unwrap(),
                        }
                    }
                }
                busy.set(busy.get() - 1);
            });
        }
        let sum = |records: Vec<(Vec<u8>, Vec<u8>)>| -> u64 {
            records.into_iter().map(|(_, value)| number(Some(value))).sum()
        };
        let mut sums = 0;
        while busy.get() > 0 {
            let snapshot = store.snapshot().await;
            assert_eq!(sum(snapshot.scan(table, ALL, Direction::Forward).all().await.unwrap()), 1_200);
            let reader = store.begin();
            match reader.scan(table, ALL, Direction::Forward).all().await {
                Ok(records) => assert_eq!(sum(records), 1_200),
                Err(error) => assert_eq!(error, Error::Deadlock),
            }
            drop(reader);
            store.handle().sleep_until(store.handle().now() + Nanos::from_micros(7)).await;
            sums += 1;
        }
        let Statistics { deadlocks, .. } = store.statistics();
        assert!(sums > 50 && deadlocks > 0 && store.commits_across() > 100, "{sums} {deadlocks}");
    });
}

/// The rule: a deadlock over several shards ends, whichever wait closes its cycle, also that of a transaction with one
/// side. One transaction is aborted, and it is the youngest of those that cross.
#[test]
fn deadlocks_over_shards_end() {
    // Each transaction locks its first keys, and then asks for its last one. Keys are shard and number.
    type Work = (&'static [(usize, usize)], (usize, usize));
    let cases: [(&[Work], usize); 3] = [
        (&[(&[(0, 0)], (1, 0)), (&[(1, 0)], (0, 0))], 1),
        // The middle one has one side.
        (&[(&[(0, 0), (1, 0)], (0, 1)), (&[(0, 1)], (0, 2)), (&[(0, 2), (1, 2)], (1, 0))], 2),
        (&[(&[(0, 0)], (1, 0)), (&[(1, 0)], (2, 0)), (&[(2, 0)], (0, 0))], 2),
    ];
    for (works, victim) in cases {
        for last in 0..works.len() {
            on_shards(3, async move |store, table| {
                let keys: Vec<_> = (0..3).map(|number| in_each(store, &format!("key {number}"))).collect();
                let keys = Rc::new(keys);
                let aborted = Rc::new(RefCell::new(Vec::new()));
                for (place, (first, then)) in works.iter().enumerate() {
                    let transaction = store.begin();
                    for (shard, number) in *first {
                        transaction.put(table, &keys[*number][*shard], b"own").await.unwrap();
                    }
                    let (keys, aborted) = (Rc::clone(&keys), Rc::clone(&aborted));
                    let handle = store.handle().clone();
                    store.handle().spawn(async move {
                        let wait = if place == last { 50 } else { 10 };
                        handle.sleep_until(handle.now() + Nanos::from_micros(wait)).await;
                        match transaction.put(table, &keys[then.1][then.0], b"new").await {
                            Ok(()) => transaction.commit().await.unwrap(),
                            Err(error) => {
                                assert_eq!(error, Error::Deadlock);
                                assert_eq!(transaction.get(table, &keys[0][0]).await, Err(Error::Deadlock));
                                aborted.borrow_mut().push(place);
                                assert_eq!(transaction.commit().await, Err(Error::Deadlock));
                            }
                        }
                    });
                }
                store.handle().sleep_until(store.handle().now() + Nanos::from_micros(10_000)).await;
                assert_eq!(*aborted.borrow(), [victim], "closed by {last}");
                assert_eq!(store.statistics().deadlocks, 1);
            });
        }
    }
}

/// The rule: the future of a call or of a commit may be dropped at any moment. The transaction is then committed in all
/// shards or in none, and leaves nothing behind.
#[test]
fn a_commit_that_is_given_up_is_whole() {
    on_shards(3, async |store, table| {
        let keys = in_each(store, "key");
        let (mut committed, mut aborted) = (0, 0);
        for patience in 1..60u64 {
            let value = patience.to_le_bytes();
            let work = async {
                let transaction = store.begin();
                for key in &keys {
                    transaction.put(table, key, &value).await?;
                }
                transaction.commit_with(Durability::Flush).await
            };
            let _ = store.handle().within(Nanos(patience * 1_000), work).await;
            store.handle().sleep_until(store.handle().now() + Nanos::from_micros(500)).await;
            let snapshot = store.snapshot().await;
            let mut found = Vec::new();
            for key in &keys {
                found.push(snapshot.get(table, key).await.unwrap() == Some(value.to_vec()));
            }
            assert!(found.iter().all(|own| *own == found[0]), "{patience}: {found:?}");
            *(if found[0] { &mut committed } else { &mut aborted }) += 1;
        }
        assert!(committed > 5 && aborted > 5, "{committed} {aborted}");
    });
}

/// The rule: a transaction of one shard pays nothing for the others. With one shard, and with three of which a
/// transaction uses one, it takes the same time, the same log and the same flushes.
#[test]
fn a_transaction_of_one_shard_pays_nothing() {
    let costs = Rc::new(RefCell::new(Vec::new()));
    for shards in [1, 3] {
        let costs = Rc::clone(&costs);
        on_shards(shards, async move |store, table| {
            let key = in_each(store, "key").swap_remove(0);
            let before = store.statistics();
            let begin = store.handle().now();
            for value in 0..20u8 {
                let transaction = store.begin();
                transaction.get_for_update(table, &key).await.unwrap();
                transaction.put(table, &key, &[value]).await.unwrap();
                transaction.commit_with(Durability::Flush).await.unwrap();
            }
            let after = store.statistics();
            costs.borrow_mut().push((
                store.handle().now() - begin,
                after.log_bytes_written - before.log_bytes_written,
                after.flushes - before.flushes,
                store.commits_across(),
            ));
        });
    }
    let costs = costs.borrow();
    assert_eq!(costs[0], costs[1]);
}

/// The rule: a shard is opened only as what it is: a drive that is too small to be divided is refused, and so are
/// shards in another order, a part of them, and one of several as a store.
#[test]
fn shards_are_opened_as_they_were_created() {
    let executor = Executor::new(MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10)));
    let handle = executor.handle();
    let work = async move {
        let refused = divide(handle.clone(), 20_000).err().map(|error| error.to_string());
        assert_eq!(
            refused.as_deref(),
            Some("the drive cannot be divided into 20000 shards; accepted: 1 to 16384")
        );
        assert!(Store::create(Vec::new(), options()).await.is_err());
        let handles = divide(handle.clone(), 3).unwrap();
        Store::create(handles.clone(), options()).await.unwrap().close().await.unwrap();
        let swapped = vec![handles[1].clone(), handles[0].clone(), handles[2].clone()];
        for wrong in [swapped, handles[..2].to_vec(), handles[..1].to_vec()] {
            let Err(Error::Options(_)) = Store::open(wrong, options()).await else { panic!() };
        }
        let other = Store::open(handles, options()).await.unwrap();
        assert_eq!(other.tables().await.unwrap(), [""; 0]);
        assert_eq!(other.only().map(|_| ()), None);
        other.close().await.unwrap();
    };
    executor.block_on(work).unwrap();
}
