//! Tests that pages of deleted records come back: whatever happened before, a store takes at most one and a half
//! times the pages that its records take in a new store.

use crate::common::{all, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Durability, Options, Store, Table};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A change to a record: its key, and its new length or `None` for a delete.
type Change = (u32, Option<usize>);

fn options(place: &str) -> Options {
    let place = place.parse().unwrap();
    Options { memory_bytes: 2 << 20, log_bytes: 2 << 20, place, ..Options::default() }
}

fn value(key: u32, len: usize) -> Vec<u8> {
    // Bytes that hardly compress, so that pages out of place take as much as in place.
    let mut value = vec![0; len];
    let mut prng = Prng::new(u64::from(key), "value");
    value.fill_with(|| prng.below(256) as u8);
    value
}

async fn change(store: &Store, table: Table, changes: &[Change]) {
    for part in changes.chunks(100) {
        let transaction = store.begin();
        for (key, len) in part {
            match len {
                Some(len) => transaction.put(table, &key.to_be_bytes(), &value(*key, *len)).await.unwrap(),
                None => transaction.delete(table, &key.to_be_bytes()).await.unwrap(),
            }
        }
        transaction.commit().await.unwrap();
    }
}

/// Returns the number of pages that a store has in use after these changes, and checks its records.
fn pages_after(place: &'static str, changes: Vec<Change>) -> u64 {
    let mut expected = BTreeMap::new();
    for (key, len) in &changes {
        match len {
            Some(len) => drop(expected.insert(*key, *len)),
            None => drop(expected.remove(key)),
        }
    }
    let executor = Executor::new(MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10)));
    run(&executor, move |handle| async move {
        let store = Store::create(handle.clone(), options(place)).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        change(&store, table, &changes).await;
        // Closing puts pending records into their leaves.
        store.close().await.unwrap();
        let store = Store::open(handle, options(place)).await.unwrap();
        let found = all(&store, "t").await.unwrap();
        let records = expected.iter().map(|(key, len)| (key.to_be_bytes().to_vec(), value(*key, *len)));
        assert!(found.into_iter().eq(records));
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty() && check.unused_pages == 0, "{check:?}");
        store.statistics().pages_used
    })
}

/// Checks that a history leaves at most one and a half times the pages that the remaining records need.
fn check(name: &str, changes: Vec<Change>) {
    let mut live = BTreeMap::new();
    for (key, len) in &changes {
        match len {
            Some(len) => drop(live.insert(*key, *len)),
            None => drop(live.remove(key)),
        }
    }
    let live: Vec<Change> = live.into_iter().map(|(key, len)| (key, Some(len))).collect();
    for place in ["in-place", "out-of-place"] {
        // Without the pages that an empty store has.
        let empty = pages_after(place, Vec::new());
        let needed = pages_after(place, live.clone()) - empty;
        let used = pages_after(place, changes.clone()) - empty;
        assert!(used * 2 <= needed * 3 + 2, "{name} {place}: {used} pages for {needed}");
    }
}

const LEN: usize = 200;

fn puts(keys: impl Iterator<Item = u32>) -> impl Iterator<Item = Change> {
    keys.map(|key| (key, Some(LEN)))
}

fn deletes(keys: impl Iterator<Item = u32>) -> impl Iterator<Item = Change> {
    keys.map(|key| (key, None))
}

fn shuffle(keys: &mut [u32]) {
    Prng::new(5, "order").shuffle(keys);
}

#[test]
fn a_queue_takes_the_pages_of_its_rows() {
    let mut changes: Vec<Change> = puts(0..1000).collect();
    for round in 0..60 {
        changes.extend(puts(1000 + round * 200..1200 + round * 200));
        changes.extend(deletes(round * 200..(round + 1) * 200));
    }
    check("queue", changes.clone());
    let rest: Vec<u32> = (60 * 200..60 * 200 + 1000).collect();
    changes.extend(deletes(rest.into_iter()));
    check("emptied queue", changes);
}

/// The rule: a change of the structure finds frames for all of its pages, also when the record cache has borrowed
/// as many as it may.
#[test]
fn many_deletes_end_with_little_memory() {
    let executor = Executor::new(MemDevice::new(8192, 4096, 64, Nanos::from_micros(10)));
    run(&executor, |handle| async move {
        let options = Options { memory_bytes: 400 << 10, log_bytes: 64 * 4096, ..Options::default() };
        let store = Store::create(handle, options).await.unwrap();
        let table = store.create_table("t").await.unwrap();
        let by_value: fulgurite_engine::Extract = Rc::new(|_, value, keys| keys.push(value[..8].to_vec()));
        store.create_index(table, "i", by_value).await.unwrap();
        change(&store, table, &puts(0..4000).map(|(key, _)| (key, Some(60))).collect::<Vec<_>>()).await;
        for from in (0..4000u32).step_by(500) {
            let transaction = store.begin();
            for key in from..from + 500 {
                transaction.delete(table, &key.to_be_bytes()).await.unwrap();
            }
            transaction.commit().await.unwrap();
        }
        assert!(all(&store, "t").await.unwrap().is_empty());
        store.close().await.unwrap();
    });
}

#[test]
fn an_emptied_table_gives_its_pages_back_in_whatever_order() {
    let mut keys: Vec<u32> = (0..8000).collect();
    for order in ["ascending", "descending", "random"] {
        match order {
            "descending" => keys.reverse(),
            "random" => shuffle(&mut keys),
            _ => {}
        }
        check(order, puts(0..8000).chain(deletes(keys.clone().into_iter())).collect());
    }
}

/// The rule: however many leaves wait for a merge, each merge asks for room in the log, and none is forgotten. A
/// program puts and deletes so fast here that most leaves become sparse in a single checkpoint.
#[test]
fn a_mass_delete_neither_fills_the_log_nor_leaves_pages() {
    for place in ["in-place", "out-of-place"] {
        for log in [8, 16] {
            let executor = Executor::new(MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10)));
            let used = run(&executor, move |handle| async move {
                let options = Options {
                    memory_bytes: 32 << 20,
                    log_bytes: log << 20,
                    durability: Durability::Relaxed,
                    ..options(place)
                };
                let store = Store::create(handle.clone(), options).await.unwrap();
                let table = store.create_table("t").await.unwrap();
                let mut keys: Vec<u32> = (0..100_000).collect();
                let puts: Vec<Change> = puts(keys.iter().copied()).collect();
                shuffle(&mut keys);
                let deletes: Vec<Change> = deletes(keys.into_iter()).collect();
                for changes in puts.chunks(100).chain(deletes.chunks(100)) {
                    change(&store, table, changes).await;
                    handle.sleep_until(handle.now() + Nanos::from_micros(500)).await;
                }
                store.checkpoint().await.unwrap();
                store.statistics().pages_used
            });
            assert!(used < 30, "{place}, log of {log} MiB: {used} pages for no record");
        }
    }
}

/// Each share of a dense table leaves some leaves that have no room for a neighbour alone.
#[test]
fn a_table_of_which_a_share_remains_is_packed() {
    for share in [30, 45, 50, 60, 80, 97] {
        let deleted = (0..8000).filter(move |key| key * 61 % 100 < share);
        check(&format!("{share} % in order"), puts(0..8000).chain(deletes(deleted.clone())).collect());
        let mut random: Vec<u32> = deleted.collect();
        shuffle(&mut random);
        check(&format!("{share} % at random"), puts(0..8000).chain(deletes(random.into_iter())).collect());
    }
}

/// A record that becomes shorter leaves as much room as one that is deleted.
#[test]
fn records_that_shrink_give_pages_back() {
    let shrunk = (0..8000).map(|key| (key, Some(40)));
    check("shrunk", puts(0..8000).chain(shrunk).collect());
}

#[test]
fn random_churn_takes_the_pages_of_its_rows() {
    for seed in 0..3 {
        let mut prng = Prng::new(seed, "churn");
        let (mut changes, mut live): (Vec<Change>, VecDeque<u32>) = (Vec::new(), VecDeque::new());
        for _ in 0..20_000 {
            if live.len() < 2000 || prng.below(2) == 0 {
                let key = prng.below(1 << 30) as u32;
                changes.push((key, Some(50 + prng.below(300) as usize)));
                live.push_back(key);
            } else {
                let at = prng.below(live.len() as u64) as usize;
                live.swap(0, at);
                changes.extend(live.pop_front().map(|key| (key, None)));
            }
            if live.len() > 4000 {
                // A mass delete of the older half.
                changes.extend(live.drain(..2000).map(|key| (key, None)));
            }
        }
        check(&format!("churn {seed}"), changes);
    }
}
