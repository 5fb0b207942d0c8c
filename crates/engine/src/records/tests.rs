//! Records beside a map, and the promises that they make.

use super::*;
use fulgurite_base::{Nanos, NoOptions, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_pool::{BufferPool, PoolConfig, PrefetchConfig, ReplacementConfig, WriteBack};
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
