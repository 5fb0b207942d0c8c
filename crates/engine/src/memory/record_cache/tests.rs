//! Tests that compare the record cache with a map, and tests of its reservations.

use super::cache::*;
use super::cost::in_log;
use super::ring::*;
use super::sweep::Outcome;
use crate::Lsn;
use fulgurite_base::PageId;
use fulgurite_base::{Nanos, NoOptions, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_pool::{BufferPool, Departures, PoolConfig, PrefetchConfig, ReplacementConfig, WriteBack};
use std::collections::BTreeMap;

type Key = (u32, Vec<u8>);

/// The expected contents of the cache: pending values by key with their leaves, and clean values, which may
/// have been evicted.
#[derive(Default)]
struct Model {
    pending: BTreeMap<Key, (Option<Vec<u8>>, PageId, Lsn)>,
    clean: BTreeMap<Key, Vec<u8>>,
}

impl Model {
    fn compare(&self, records: &RecordCache) {
        for ((tree, key), (value, leaf, _)) in &self.pending {
            assert_eq!(records.peek(*tree, key), Some(value.as_deref()), "what is pending stays");
            assert!(records.of_leaf(*leaf).any(|entry| entry.tree == *tree && entry.key == *key));
        }
        for ((tree, key), value) in &self.clean {
            assert!(records.peek(*tree, key).is_none_or(|found| found == Some(value)), "an old value");
        }
        assert_eq!(records.pending(), self.pending.len() as u64);
        let logged = self
            .pending
            .iter()
            .map(|((tree, key), (value, ..))| in_log(Record { tree: *tree, key, value: value.as_deref() }));
        let listed: usize = records.leaves().into_iter().map(|leaf| records.of_leaf(leaf).count()).sum();
        assert_eq!((records.pending_bytes, listed), (logged.sum::<u64>(), self.pending.len()));
        // The bound may be older than the oldest pending record but never newer, because it limits the redo
        // point.
        let least = self.pending.values().map(|(.., since)| *since).min();
        assert!(least.is_none() == records.least().is_none() && records.least() <= least);
        assert!(records.bytes() <= records.most_bytes + records.ring.chunk_bytes() as u64);
    }
}

/// Creates a record cache in the frames of a pool that has enough of them.
fn records(most_bytes: u64, log_bytes: u64) -> RecordCache {
    let executor = Executor::new(MemDevice::new(64, 4096, 64, Nanos::from_micros(10)));
    let config = PoolConfig {
        frames: 64,
        page_bytes: 4096,
        replacement: ReplacementConfig::Lru(NoOptions).start(64).unwrap(),
        write_back: WriteBack::ace(1),
        prefetch: PrefetchConfig::None(NoOptions).start().unwrap(),
        store: None,
    };
    let pool = BufferPool::new(executor.handle(), config).unwrap();
    RecordCache::new(most_bytes, 4096, log_bytes, pool.borrower(u32::MAX))
}

fn leaf_of(key: &[u8], division: u8) -> PageId {
    PageId(if key.first().is_some_and(|first| *first >= division) { 7 } else { 6 })
}

#[test]
fn the_cache_agrees_with_a_map() {
    let mut prng = Prng::new(1, "records");
    let mut records = records(40_000, 1 << 20);
    let (mut model, mut division, mut refused) = (Model::default(), 128, 0);
    for number in 0..20_000u64 {
        let (tree, key) = (2 + prng.below(2) as u32, prng.below(2_000).to_be_bytes()[6..].to_vec());
        let value = vec![number as u8; prng.below(90) as usize];
        let at = (tree, key.clone());
        match prng.below(100) {
            0..40 => {
                let value = (prng.below(5) > 0).then_some(value);
                let (leaf, since) = (leaf_of(&key, division), Lsn(number));
                let entry = Record { tree, key: &key, value: value.as_deref() };
                if records.put(entry, leaf, since) == Put::Done {
                    let since = model.pending.get(&at).map_or(since, |(.., since)| *since);
                    model.clean.remove(&at);
                    model.pending.insert(at, (value, leaf, since));
                } else {
                    refused += 1;
                }
            }
            40..70 => {
                let value = model.clean.get(&at).unwrap_or(&value).clone();
                if !model.pending.contains_key(&at) && records.peek(tree, &key).is_none() {
                    records.keep(tree, &key, &value);
                    model.clean.insert(at, value);
                }
            }
            70..85 => drop(records.get(tree, &key).map(|found| found.map(<[u8]>::to_vec))),
            85..90 => {
                let since = records.forget(tree, &key);
                assert_eq!(since, model.pending.remove(&at).map(|(.., since)| since));
                model.clean.remove(&at);
            }
            90..93 => {
                let mut behind = Vec::new();
                records.sweep(prng.below(3) as usize, (prng.below(2) == 0).then_some(&mut behind));
                assert!(behind.iter().all(|leaf| records.lacks(*leaf)));
            }
            93 => {
                division = prng.below(256) as u8;
                let leaves = [PageId(6), PageId(7)];
                assert!(records.redistribute(&leaves, |entry| Some(leaf_of(entry.key, division))));
                for ((_, key), (_, leaf, _)) in &mut model.pending {
                    *leaf = leaf_of(key, division);
                }
            }
            94 => merge(&mut records, &mut model, leaf_of(&key, division), prng.below(40)),
            _ => {}
        }
        if number % 512 == 0 {
            model.compare(&records);
        }
    }
    model.compare(&records);
    let RecordCounters { merged, kept, .. } = records.counters();
    assert!(refused > 30 && merged > 300 && kept > 1_000, "{refused} {merged} {kept}");
}

/// Merges the pending records of a leaf until `room` records are in it.
fn merge(records: &mut RecordCache, model: &mut Model, leaf: PageId, room: u64) {
    let (mut merged, mut least) = (0, Lsn(u64::MAX));
    let done = records.merge(leaf, |entry| {
        if merged == room {
            return Ok(false);
        }
        merged += 1;
        let at = (entry.tree, entry.key.to_vec());
        let (value, of, since) = model.pending.remove(&at).expect("it is pending");
        assert_eq!((value.as_deref(), of), (entry.value, leaf));
        least = least.min(since);
        model.clean.extend(value.map(|value| (at, value)));
        Ok(true)
    });
    done.outcome.expect("no error was made");
    assert_eq!((done.since, done.records, done.too_large.is_some()), (least, merged, records.lacks(leaf)));
}

#[test]
fn used_records_outlive_unused_ones() {
    let mut records = records(80_000, 1 << 20);
    for number in 0..20_000u32 {
        records.keep(2, &number.to_be_bytes(), &[1; 40]);
        assert!(records.get(2, &7u32.to_be_bytes()).is_some() || number < 7);
    }
    assert!(records.peek(2, &8u32.to_be_bytes()).is_none() && records.len() > 400);
}

#[test]
fn reservations_hold_and_leave_space_for_deletions() {
    let mut records = records(80_000, 30_000);
    let (mut reserved, key) = (0, 5u32.to_be_bytes());
    let put = Record { tree: 2, key: &key, value: Some(&[0; 100]) };
    while let Some(bytes) = records.reserve(put) {
        reserved += bytes;
    }
    // The log may take a third of its size, without a sixteenth of that for deletions.
    assert!((9_000..=9_375).contains(&reserved), "{reserved}");
    assert_eq!(records.needed_log(), reserved);
    assert!(records.reserve(Record { value: None, ..put }).is_some());
}

#[test]
fn reserved_space_is_kept_when_pages_get_memory() {
    let mut records = records(200_000, 1 << 20);
    records.begin_to_divide(4);
    let entry = Record { tree: 2, key: b"k", value: Some(&[1; 1_000]) };
    while records.reserve(entry).is_some() {}
    let held = records.held(records.reserved);
    assert!(records.limit() - held < 16_000, "nearly all is reserved: {held} of {}", records.limit());
    for round in 1..20 {
        let departures = Departures { left: 1_000 * round, came_back: 100 * round };
        records.division.inserted(8);
        records.divide((departures, 0), 1);
    }
    assert!(
        records.share_bytes < held / 2,
        "pages have come back, records have not: {}",
        records.share_bytes
    );
    assert!(records.limit() >= held && records.reserve(entry).is_none(), "{held} of {}", records.limit());
    // A deletion still gets space.
    assert!(records.reserve(Record { value: None, ..entry }).is_some());
    records.release(records.reserved);
    records.division.inserted(8);
    records.divide((Departures { left: 30_000, came_back: 5_000 }, 0), 1);
    assert!(records.limit() < held / 2, "nothing is reserved any more: {}", records.limit());
}

/// Inserts a record of `leaf` that is pending since `since`. The key of the record is its number.
fn put(records: &mut RecordCache, number: u32, leaf: u64, since: u64) {
    let entry = Record { tree: 2, key: &number.to_be_bytes(), value: Some(&[1; 60]) };
    assert_eq!(records.put(entry, PageId(leaf), Lsn(since)), Put::Done);
}

#[test]
fn neighbours_with_enough_cold_records_are_merged_too() {
    let mut records = records(200_000, 1 << 20);
    let behind = [(17, 1), (18, 2), (20, 1), (21, 2), (22, 1), (31, 3), (32, 2)];
    let leaves = behind.into_iter().flat_map(|(leaf, count)| std::iter::repeat_n(leaf, count));
    for (number, leaf) in leaves.enumerate() {
        put(&mut records, number as u32, leaf, 500);
    }
    // The only pending record of leaf 20 was used, and one of the two of leaf 21.
    assert!([3u32, 5].iter().all(|number| records.get(2, &number.to_be_bytes()).is_some()));
    // A neighbourhood has sixteen pages of 4 KiB. The first one is 16 to 31. The second one is 32 to 47,
    // because of leaf 40, which has no pending record any more.
    assert_eq!(records.neighbourhood(), 16);
    for (least, expected) in [(1, &[17, 18, 21, 22, 31, 32, 40][..]), (2, &[17, 18, 31, 32, 40])] {
        let mut all = Vec::new();
        records.add_neighbourhood(&[PageId(17)], least, &mut all);
        records.add_neighbourhood(&[PageId(40)], least, &mut all);
        assert!(all.iter().map(|leaf| &leaf.0).eq(expected), "{least}: {all:?}");
    }
}

#[test]
fn a_new_entry_in_reused_memory_is_clean() {
    let mut records = records(200_000, 1 << 20);
    let ring = &mut records.ring;
    let entry = Record { tree: 2, key: &[0; 4], value: Some(&[1; 60]) };
    let first = ring.push(entry, true).unwrap();
    ring.set_pending(first, Lsn(50));
    ring.set_settled(first);
    // The first chunk is full, is freed, and is the next one to be begun.
    while ring.push(entry, false).is_some() {}
    ring.push(entry, true).unwrap();
    let chunk = ring.take(0).unwrap();
    ring.free(chunk);
    while ring.push(entry, false).is_some() {}
    let again = ring.push(entry, true).unwrap();
    assert_eq!((again, ring.since(again)), (first, Lsn(0)));
}

/// The state of an entry in a chunk.
#[derive(Clone, Copy, PartialEq)]
enum Entries {
    Read,
    /// The entry is pending, together with nine others of its leaf or as the only one.
    WaitsWithMany,
    WaitsAlone,
    Merged,
    MergedAndAskedFor,
}

/// Merged records that are not in use are evicted. Single pending records are moved and keep their LSNs. A
/// leaf is to be merged if its neighbourhood reaches the threshold.
#[test]
fn a_leaf_with_many_pending_records_is_merged() {
    use Entries::*;
    let mut records = records(200_000, 1 << 20);
    let entry = Record { tree: 2, key: &[0; 4], value: Some(&[1; 60]) };
    let in_chunk = (records.ring.chunk_bytes() / entry.bytes()) as u32;
    let state = |number: u32| match number {
        0..10 => WaitsWithMany,
        10..20 => WaitsAlone,
        20..25 => Read,
        25..30 => MergedAndAskedFor,
        _ => Merged,
    };
    for number in 0..in_chunk {
        match state(number) {
            Read => records.keep(2, &number.to_be_bytes(), &[1; 60]),
            WaitsWithMany => put(&mut records, number, 2, 50),
            WaitsAlone => put(&mut records, number, 16 * (100 + u64::from(number)), 50),
            Merged | MergedAndAskedFor => put(&mut records, number, 1, 50),
        }
    }
    // Fill the next chunks, so that the first one is full.
    let full = records.ring.oldest_first().count();
    (1_000..1_000 + 2 * in_chunk).for_each(|number| put(&mut records, number, 500, 60));
    assert!(full == 0 && records.ring.oldest_first().count() >= 2);
    records.merge(PageId(1), |_| Ok(true)).outcome.expect("no error was made");
    for number in (0..in_chunk).filter(|number| state(*number) == MergedAndAskedFor) {
        assert!(records.get(2, &number.to_be_bytes()).is_some());
    }
    // Most swept records are of a neighbourhood with ten pending records.
    (0..1024).for_each(|_| records.merge_threshold.count_swept(2));
    let mut behind = Vec::new();
    assert_eq!(records.sweep(0, Some(&mut behind)), Outcome::Stays);
    assert_eq!(behind, [PageId(2); 10], "of the leaf that lacks ten, and of no other");
    let is_here = |records: &RecordCache, number: u32| records.peek(2, &number.to_be_bytes()).is_some();
    for number in 0..in_chunk {
        let stays = !matches!(state(number), Read | Merged);
        assert_eq!(is_here(&records, number), stays, "{number}");
        let waits = matches!(state(number), WaitsWithMany | WaitsAlone);
        assert_eq!(records.is_pending(2, &number.to_be_bytes()), waits, "{number}");
    }
    assert_eq!(records.least(), Some(Lsn(50)), "what has moved on is as old as before");
    records.merge(PageId(2), |_| Ok(true)).outcome.expect("no error was made");
    let chunks = records.ring.used();
    assert_eq!(records.sweep(0, None), Outcome::Freed);
    assert_eq!(records.ring.used(), chunks - 1);
    assert!((0..10).all(|number| !is_here(&records, number)));
    // A chunk other than the oldest can be swept. Older chunks keep their order.
    let first = records.ring.oldest_first().next();
    records.sweep(1, None);
    assert_eq!(records.ring.oldest_first().next(), first);
}

/// The rule: a pending record holds the log from the oldest record on that its leaf lacks. A write that was prepared
/// before a copy of the value that it replaces is older in the log than the copy.
#[test]
fn a_write_that_is_older_than_a_copy_holds_the_log() {
    for longer in [8, 80] {
        let mut records = records(80_000, 1 << 20);
        let (old, new) = (vec![1; 8], vec![2; longer]);
        let entry = |value| Record { tree: 2, key: b"key", value };
        assert!(records.put(entry(Some(&old)), PageId(7), Lsn(50)) == Put::Done);
        records.carried(2, b"key", Lsn(200));
        assert!(records.put(entry(Some(&new)), PageId(7), Lsn(100)) == Put::Done);
        assert!(records.least() <= Some(Lsn(100)) && records.pending() == 1);
        assert_eq!(records.forget(2, b"key"), Some(Lsn(100)));
    }
}
