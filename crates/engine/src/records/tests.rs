//! Records beside a map, and the promises that they make.

use super::*;
use fulgurite_base::{Nanos, NoOptions, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_pool::{BufferPool, Departures, PoolConfig, PrefetchConfig, ReplacementConfig, WriteBack};
use std::collections::BTreeMap;

type Key = (u32, Vec<u8>);

/// What should be there: pending values by key with their leaves, and clean ones, which may have gone.
#[derive(Default)]
struct Model {
    pending: BTreeMap<Key, (Option<Vec<u8>>, PageId, Lsn)>,
    clean: BTreeMap<Key, Vec<u8>>,
}

impl Model {
    fn compare(&self, records: &Records) {
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
            .map(|((tree, key), (value, ..))| in_log(Entry { tree: *tree, key, value: value.as_deref() }));
        let listed: usize = records.leaves().into_iter().map(|leaf| records.of_leaf(leaf).count()).sum();
        assert_eq!((records.pending_bytes, listed), (logged.sum::<u64>(), self.pending.len()));
        // It may be older than the oldest, never newer: the redo point depends on it.
        let least = self.pending.values().map(|(.., since)| *since).min();
        assert!(least.is_none() == records.least().is_none() && records.least() <= least);
        assert!(records.bytes() <= records.most_bytes + records.ring.chunk_bytes() as u64);
    }
}

/// Records in the frames of a pool that has enough of them.
fn records(most_bytes: u64, log_bytes: u64) -> Records {
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
    Records::new(most_bytes, 4096, log_bytes, pool.borrower())
}

fn leaf_of(key: &[u8], division: u8) -> PageId {
    PageId(if key.first().is_some_and(|first| *first >= division) { 7 } else { 6 })
}

#[test]
fn records_are_what_a_map_says_whatever_comes_and_goes() {
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
                let entry = Entry { tree, key: &key, value: value.as_deref() };
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
                let mut lacking = Vec::new();
                records.sweep((prng.below(2) == 0).then_some(&mut lacking));
                assert!(lacking.iter().all(|leaf| records.lacks(*leaf)));
            }
            93 => {
                division = prng.below(256) as u8;
                let leaves = [PageId(6), PageId(7)];
                assert!(records.share_out(&leaves, |entry| Some(leaf_of(entry.key, division))));
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

/// Merges as many records as a leaf has room for.
fn merge(records: &mut Records, model: &mut Model, leaf: PageId, room: u64) {
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
fn what_is_asked_for_outlives_what_is_not() {
    let mut records = records(80_000, 1 << 20);
    for number in 0..20_000u32 {
        records.keep(2, &number.to_be_bytes(), &[1; 40]);
        assert!(records.get(2, &7u32.to_be_bytes()).is_some() || number < 7);
    }
    assert!(records.peek(2, &8u32.to_be_bytes()).is_none() && records.len() > 400);
}

#[test]
fn a_promise_is_kept_and_leaves_room_for_those_that_take_records_away() {
    let mut records = records(80_000, 30_000);
    let (mut promised, key) = (0, 5u32.to_be_bytes());
    let put = Entry { tree: 2, key: &key, value: Some(&[0; 100]) };
    while let Some(bytes) = records.promise(put) {
        promised += bytes;
    }
    // A third of the log, without a sixteenth of that.
    assert!((9_000..=9_375).contains(&promised), "{promised}");
    assert_eq!(records.needed_log(), promised);
    assert!(records.promise(Entry { value: None, ..put }).is_some());
}

#[test]
fn what_is_promised_keeps_its_room_when_pages_get_memory() {
    let mut records = records(200_000, 1 << 20);
    records.begin_to_divide(4);
    let entry = Entry { tree: 2, key: b"k", value: Some(&[1; 1_000]) };
    while records.promise(entry).is_some() {}
    let held = records.held(records.promised);
    assert!(records.limit() - held < 16_000, "nearly all is promised: {held} of {}", records.limit());
    for round in 1..20 {
        let departures = Departures { left: 1_000 * round, came_back: 100 * round };
        records.division.come(8);
        records.divide((departures, 0), 1);
    }
    assert!(
        records.share_bytes < held / 2,
        "pages have come back, records have not: {}",
        records.share_bytes
    );
    assert_eq!(records.limit(), held);
    assert!(records.promise(entry).is_none());
    records.release(records.promised);
    records.division.come(8);
    records.divide((Departures { left: 30_000, came_back: 5_000 }, 0), 1);
    assert!(records.limit() < held / 2, "nothing is promised any more: {}", records.limit());
}

/// Puts a record of `leaf` that is pending since `since`; its key is its number.
fn put(records: &mut Records, number: u32, leaf: u64, since: u64) {
    let entry = Entry { tree: 2, key: &number.to_be_bytes(), value: Some(&[1; 60]) };
    assert_eq!(records.put(entry, PageId(leaf), Lsn(since)), Put::Done);
}

#[test]
fn neighbours_are_merged_along_if_they_lack_several_cold_records_and_an_old_one() {
    let mut records = records(200_000, 1 << 20);
    // What is older than 600 is old.
    let lacking: [(u64, &[u64]); 7] = [
        (17, &[200]),
        (18, &[599, 900]),
        (19, &[600, 900]),
        (20, &[300]),
        (21, &[300, 900]),
        (31, &[900, 500, 950]),
        (32, &[300, 400]),
    ];
    let mut number = 0;
    for (leaf, sinces) in lacking {
        for since in sinces {
            put(&mut records, number, leaf, *since);
            number += 1;
        }
    }
    // One of the two that leaf 21 lacks was asked for: the fifth that was put, and the one after.
    assert!(records.get(2, &6u32.to_be_bytes()).is_some());
    assert_eq!(records.oldest_of(&[PageId(40), PageId(21), PageId(17)]), Some(Lsn(200)));
    assert_eq!((records.oldest_of(&[PageId(40)]), records.neighbourhood()), (None, 16));
    // A neighbourhood has sixteen pages of 4 KiB: 16 to 31, and 32 to 47 because of 40, which lacks nothing any more.
    let mut all = Vec::new();
    records.add_neighbourhood(&[PageId(17)], Lsn(600), &mut all);
    records.add_neighbourhood(&[PageId(40)], Lsn(600), &mut all);
    assert_eq!(all, [17, 18, 31, 32, 40].map(PageId));
}

#[test]
fn leaves_are_read_at_once_by_so_many_commands() {
    // Ten runs of three leaves; eight commands read the first eight of them.
    let leaves: Vec<PageId> =
        (0..10).flat_map(|run| (0..3).map(move |leaf| PageId(10 * run + leaf))).collect();
    let parts = |most: usize| {
        let (part, rest) = merge::next_part(&leaves, most);
        let (next, none) = merge::next_part(rest, most);
        (part.len(), next.len(), none.len())
    };
    assert_eq!(parts(30), (24, 6, 0));
    assert_eq!(parts(20), (20, 10, 0), "no more than there are frames for");
    assert_eq!(merge::next_part(&[], 20).0.len(), 0);
}

#[test]
fn an_entry_has_never_waited_whatever_its_memory_held_before() {
    let mut records = records(200_000, 1 << 20);
    let ring = &mut records.ring;
    let entry = Entry { tree: 2, key: &[0; 4], value: Some(&[1; 60]) };
    let first = ring.push(entry, true).unwrap();
    ring.set_pending(first, Lsn(50));
    ring.set_settled(first);
    // The chunk is full, is freed, and is the next that is begun.
    while ring.push(entry, false).is_some() {}
    ring.push(entry, true).unwrap();
    let chunk = ring.take_oldest().unwrap();
    ring.free(chunk);
    while ring.push(entry, false).is_some() {}
    let again = ring.push(entry, true).unwrap();
    assert_eq!((again, ring.since(again)), (first, Lsn(0)));
}

/// What becomes of a full chunk whose entries are kept or pending, settled, and asked for as `state` says of each number.
fn sweep(state: impl Fn(u32) -> Entries) -> (Records, Vec<PageId>, Swept) {
    let mut records = records(200_000, 1 << 20);
    let entry = Entry { tree: 2, key: &[0; 4], value: Some(&[1; 60]) };
    let in_chunk = (records.ring.chunk_bytes() / entry.bytes()) as u32;
    for number in 0..in_chunk {
        match state(number) {
            Entries::Read => records.keep(2, &number.to_be_bytes(), &[1; 60]),
            Entries::Waits => put(&mut records, number, 2, 50),
            Entries::Merged | Entries::MergedAndAskedFor => put(&mut records, number, 1, 50),
        }
    }
    // A further chunk begins, so that the first is full.
    put(&mut records, 1_000, 3, 60);
    records.merge(PageId(1), |_| Ok(true)).outcome.expect("no error was made");
    for number in (0..in_chunk).filter(|number| state(*number) == Entries::MergedAndAskedFor) {
        assert!(records.get(2, &number.to_be_bytes()).is_some());
    }
    let mut lacking = Vec::new();
    let swept = records.sweep(Some(&mut lacking));
    (records, lacking, swept)
}

/// What was done with an entry.
#[derive(Clone, Copy, PartialEq)]
enum Entries {
    Read,
    Waits,
    Merged,
    MergedAndAskedFor,
}

#[test]
fn spent_entries_make_room_without_a_merge() {
    let is_spent = |number: u32| number.is_multiple_of(4);
    let (records, lacking, swept) =
        sweep(|number| if is_spent(number) { Entries::Merged } else { Entries::Waits });
    assert!(matches!(swept, Swept::Freed) && lacking.is_empty(), "nothing was to be merged: {lacking:?}");
    // What waits has moved, and is as old as before; the rest is gone.
    let (gone, waits): (Vec<u32>, Vec<u32>) = (0..40).partition(|number| is_spent(*number));
    assert!(waits.iter().all(|number| records.is_pending(2, &number.to_be_bytes())));
    assert!(gone.iter().all(|number| records.peek(2, &number.to_be_bytes()).is_none()));
    assert!(records.of_leaf(PageId(2)).count() >= waits.len());
    assert_eq!(records.least(), Some(Lsn(50)));
}

#[test]
fn a_chunk_is_merged_where_few_entries_are_spent() {
    let few = |number: u32| if number.is_multiple_of(5) { Entries::Merged } else { Entries::Waits };
    let read = |number: u32| if number.is_multiple_of(2) { Entries::Read } else { Entries::Waits };
    let asked =
        |number: u32| if number.is_multiple_of(2) { Entries::MergedAndAskedFor } else { Entries::Waits };
    let states: [&dyn Fn(u32) -> Entries; 3] = [&few, &read, &asked];
    for (case, state) in states.into_iter().enumerate() {
        let (_, lacking, swept) = sweep(state);
        assert!(matches!(swept, Swept::Stays(_)) && lacking.contains(&PageId(2)), "case {case}: {lacking:?}");
    }
}
