//! Old values, for readers of older states.
//!
//! A tree has the newest value of every key. What a commit replaces is kept here, under the commit's LSN, in the same step
//! in which the tree changes, until nobody can ask for a state before that commit. A reader of the state at some LSN
//! takes the value that the first later commit replaced, and where there was no later one, the tree's.
//!
//! Memory is bounded: when old values take more than they may, the oldest snapshots are given up.

use crate::format::page::node::Cell;
use crate::{Error, Lsn};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// Old values that are forgotten at once.
const FORGOTTEN_TOGETHER: usize = 4096;

/// What a commit replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Old {
    /// There was no value.
    Absent,
    /// This one.
    Here(Box<[u8]>),
    /// What the leaf has: the commit's record is not merged into it.
    Beneath,
}

/// What a commit replaces, as it is found.
#[derive(Clone, Copy, Debug)]
pub enum Replaced<'a> {
    /// This value, or none.
    Cell(Option<Cell<'a>>),
    /// What the leaf has, which nobody has looked at.
    Beneath,
}

/// A key of a tree and the commit that replaces its value.
type Place = (u32, Box<[u8]>, Lsn);

/// The old values of one key: each with the commit that replaced it, in order.
type History = Vec<(Lsn, Old)>;

/// A state that somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u64);

/// The old values of a store.
#[derive(Debug, Default)]
pub struct Versions {
    trees: FxHashMap<u32, BTreeMap<Box<[u8]>, History>>,
    /// What was kept, in order of keeping.
    kept: VecDeque<(Lsn, u32, Box<[u8]>)>,
    /// Large values that commits replace, read before those were appended.
    large: BTreeMap<Place, Box<[u8]>>,
    /// Old values that leaves have.
    beneath: u64,
    bytes: u64,
    most_bytes: u64,
    /// States that are read, by reader.
    readers: BTreeMap<ReaderId, Lsn>,
    drawn: u64,
    /// Readers of states before this are given up.
    oldest: Lsn,
}

impl Versions {
    /// Room for so many bytes.
    pub fn new(most_bytes: u64) -> Versions {
        Versions { most_bytes, ..Versions::default() }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Somebody begins to read the state at `lsn`.
    pub fn open(&mut self, lsn: Lsn) -> ReaderId {
        self.drawn += 1;
        let reader = ReaderId(self.drawn);
        self.readers.insert(reader, lsn);
        reader
    }

    /// The reader is done.
    pub fn close(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
    }

    /// Fails where the state at `lsn` can no longer be read.
    pub fn check(&self, lsn: Lsn) -> Result<(), Error> {
        if lsn < self.oldest { Err(Error::SnapshotTooOld) } else { Ok(()) }
    }

    /// A large value that the commit at `lsn` will replace.
    pub fn keep_large(&mut self, tree: u32, key: &[u8], lsn: Lsn, value: Vec<u8>) {
        self.bytes += value.len() as u64;
        self.large.insert((tree, key.into(), lsn), value.into());
    }

    /// Keeps what the commit at `lsn` replaces.
    pub fn keep(&mut self, tree: u32, key: &[u8], lsn: Lsn, replaced: Replaced<'_>) {
        let history = self.trees.entry(tree).or_default().entry(key.into()).or_default();
        // An operation that found no room the first time comes again.
        if history.iter().any(|(at, _)| *at == lsn) {
            return;
        }
        let old = match replaced {
            Replaced::Cell(Some(Cell { large: true, .. })) => {
                self.large.remove(&(tree, key.into(), lsn)).map_or(Old::Absent, Old::Here)
            }
            Replaced::Cell(Some(Cell { bytes, .. })) => {
                self.bytes += bytes.len() as u64;
                Old::Here(bytes.into())
            }
            Replaced::Cell(None) => Old::Absent,
            Replaced::Beneath => {
                self.beneath += 1;
                Old::Beneath
            }
        };
        self.bytes += cost(key);
        history.push((lsn, old));
        self.kept.push_back((lsn, tree, key.into()));
    }

    /// The leaf gets a newer value in place of `old`, which was beneath it.
    pub fn settle(&mut self, tree: u32, key: &[u8], old: Option<Cell<'_>>) {
        if self.beneath == 0 {
            return;
        }
        let history = self.trees.get_mut(&tree).and_then(|keys| keys.get_mut(key));
        let beneath = history.and_then(|history| history.iter_mut().find(|(_, kept)| *kept == Old::Beneath));
        if let Some((_, kept)) = beneath {
            self.beneath -= 1;
            *kept = old.map_or(Old::Absent, |old| Old::Here(old.bytes.into()));
            self.bytes += bytes_of(kept);
        }
    }

    /// What a reader of the state at `lsn` finds under a key, where that is not what the tree has.
    pub fn find(&self, tree: u32, key: &[u8], lsn: Lsn) -> Option<&Old> {
        let history = self.trees.get(&tree)?.get(key)?;
        history.iter().find(|(at, _)| *at > lsn).map(|(_, old)| old)
    }

    /// The keys of a range whose values at `lsn` are not what the tree has, with those values.
    pub fn range(&self, tree: u32, range: (Bound<&[u8]>, Bound<&[u8]>), lsn: Lsn) -> Vec<(&[u8], &Old)> {
        let Some(keys) = self.trees.get(&tree) else { return Vec::new() };
        let old = |history: &'_ History| history.iter().position(|(at, _)| *at > lsn);
        keys.range::<[u8], _>(range)
            .filter_map(|(key, history)| old(history).map(|place| (&**key, &history[place].1)))
            .collect()
    }

    /// Forgets what nobody can ask for: readers have the states that were opened, or come for `visible`.
    pub fn trim(&mut self, visible: Lsn) {
        let needed =
            |versions: &Versions| versions.readers.values().copied().min().unwrap_or(visible).min(visible);
        let mut least = needed(self);
        if self.bytes > self.most_bytes {
            // Half of the room is made free, so that this does not happen at every commit.
            while self.bytes > self.most_bytes / 2 && least < visible {
                let Some((lsn, ..)) = self.kept.front() else { break };
                least = (*lsn).min(visible);
                self.oldest = self.oldest.max(least);
                self.forget(least);
            }
            let oldest = self.oldest;
            self.readers.retain(|_, lsn| *lsn >= oldest);
        }
        self.forget(least);
    }

    /// Forgets what commits up to `lsn` replaced: a part of it at once, since a reader may have kept very much. The rest goes next time.
    fn forget(&mut self, lsn: Lsn) {
        for _ in 0..FORGOTTEN_TOGETHER {
            // Commits are applied out of order at times, so the front may be newer than what follows; that goes later.
            if self.kept.front().is_none_or(|(at, ..)| *at > lsn) {
                return;
            }
            let Some((at, tree, key)) = self.kept.pop_front() else { return };
            let Some(keys) = self.trees.get_mut(&tree) else { continue };
            let Some(history) = keys.get_mut(&key) else { continue };
            if let Some(place) = history.iter().position(|(replaced, _)| *replaced == at) {
                let (_, old) = history.remove(place);
                self.bytes -= cost(&key) + bytes_of(&old);
                self.beneath -= u64::from(old == Old::Beneath);
            }
            if history.is_empty() {
                keys.remove(&key);
            }
        }
    }
}

fn bytes_of(old: &Old) -> u64 {
    match old {
        Old::Here(bytes) => bytes.len() as u64,
        Old::Absent | Old::Beneath => 0,
    }
}

/// Bytes that are kept beside a value: the key twice and the tables.
fn cost(key: &[u8]) -> u64 {
    2 * key.len() as u64 + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(versions: &mut Versions, key: &[u8], lsn: u64, old: Option<&[u8]>) {
        versions.keep(5, key, Lsn(lsn), Replaced::Cell(old.map(Cell::inline)));
    }

    fn find(versions: &Versions, key: &[u8], lsn: u64) -> Option<Option<Vec<u8>>> {
        versions.find(5, key, Lsn(lsn)).map(|old| match old {
            Old::Here(old) => Some(old.to_vec()),
            Old::Absent => None,
            Old::Beneath => panic!("the leaf has it"),
        })
    }

    #[test]
    fn what_is_beneath_a_record_is_kept_when_the_leaf_gets_the_record() {
        let mut versions = Versions::new(1 << 20);
        versions.keep(5, b"k", Lsn(10), Replaced::Beneath);
        keep(&mut versions, b"k", 20, Some(b"two"));
        assert_eq!(versions.find(5, b"k", Lsn(5)), Some(&Old::Beneath));
        versions.settle(5, b"other", Some(Cell::inline(b"wrong")));
        versions.settle(5, b"k", Some(Cell::inline(b"one")));
        versions.settle(5, b"k", Some(Cell::inline(b"wrong")));
        assert_eq!(find(&versions, b"k", 5), Some(Some(b"one".to_vec())));
        assert_eq!(find(&versions, b"k", 15), Some(Some(b"two".to_vec())));
        versions.keep(5, b"k", Lsn(30), Replaced::Beneath);
        versions.trim(Lsn(30));
        assert_eq!((versions.bytes(), versions.beneath), (0, 0));
    }

    /// The rule: what a reader has kept goes in parts once that reader is gone, and all of it goes.
    #[test]
    fn what_was_kept_for_a_reader_is_forgotten_in_parts() {
        let mut versions = Versions::new(64 << 20);
        let reader = versions.open(Lsn(0));
        let count = 2 * FORGOTTEN_TOGETHER as u64 + 10;
        for lsn in 1..=count {
            keep(&mut versions, &lsn.to_le_bytes(), lsn, Some(b"old"));
        }
        versions.trim(Lsn(count));
        let whole = versions.bytes();
        versions.close(reader);
        let left: Vec<u64> = std::iter::repeat_with(|| {
            versions.trim(Lsn(count));
            versions.bytes() * count / whole
        })
        .take(3)
        .collect();
        assert_eq!(left, [count - FORGOTTEN_TOGETHER as u64, 10, 0]);
    }

    #[test]
    fn a_reader_finds_what_the_first_later_commit_replaced() {
        let mut versions = Versions::new(1 << 20);
        keep(&mut versions, b"k", 10, None);
        keep(&mut versions, b"k", 20, Some(b"one"));
        keep(&mut versions, b"k", 30, Some(b"two"));
        assert_eq!(find(&versions, b"k", 5), Some(None));
        assert_eq!(find(&versions, b"k", 10), Some(Some(b"one".to_vec())));
        assert_eq!(find(&versions, b"k", 29), Some(Some(b"two".to_vec())));
        assert_eq!(find(&versions, b"k", 30), None, "the tree has it");
        let reader = versions.open(Lsn(15));
        versions.trim(Lsn(30));
        assert_eq!(find(&versions, b"k", 15), Some(Some(b"one".to_vec())));
        assert_eq!(find(&versions, b"k", 5), Some(Some(b"one".to_vec())), "what nobody reads is forgotten");
        versions.close(reader);
        versions.trim(Lsn(30));
        assert_eq!((versions.bytes(), versions.kept.len(), versions.trees[&5].len()), (0, 0, 0));
    }

    #[test]
    fn readers_are_given_up_before_memory_is() {
        let mut versions = Versions::new(10_000);
        let (old, new) = (versions.open(Lsn(1)), versions.open(Lsn(95)));
        for lsn in 2..100 {
            keep(&mut versions, b"k", lsn, Some(&[0; 100]));
            versions.trim(Lsn(lsn));
        }
        assert!(versions.bytes() <= 10_000, "{}", versions.bytes());
        assert_eq!(versions.check(Lsn(1)), Err(Error::SnapshotTooOld));
        assert_eq!(versions.check(Lsn(95)), Ok(()));
        assert!(find(&versions, b"k", 95).is_some());
        versions.close(old);
        versions.close(new);
    }
}
