//! Old versions of records, for snapshots.
//!
//! A tree has the newest value of every key. When a commit changes the tree, this module keeps the replaced
//! value under the LSN of the commit, until no snapshot can read a state before that commit. A reader of the
//! state at an LSN takes the value that the first later commit replaced. If there was no later commit, the
//! reader takes the value in the tree.
//!
//! The memory for old values is bounded. If it is exceeded, the oldest snapshots are given up.

use crate::format::page::node::Cell;
use crate::{Error, Lsn};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

/// The largest number of old values that are dropped in one step.
const FORGOTTEN_TOGETHER: usize = 4096;

/// An old value: the value that a commit replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Old {
    /// The key had no value.
    Absent,
    /// The key had this value.
    Here(Box<[u8]>),
    /// The value is in the leaf, into which the pending record of the commit is not merged
    /// yet.
    InLeaf,
}

/// The value that a commit replaces, as passed by the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Replaced<'a> {
    /// The replaced value was read: this cell, or `None` if the key had no value.
    Cell(Option<Cell<'a>>),
    /// The replaced value is in the leaf, which was not read.
    InLeaf,
}

/// The number of a tree, a key, and the LSN of the commit that replaces the value of the key.
type VersionKey = (u32, Box<[u8]>, Lsn);

/// The old values of one key, with the LSNs of the commits that replaced them, in the order of these LSNs.
type History = Vec<(Lsn, Old)>;

/// The identity of a reader of a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ReaderId(u64);

/// A state of the store that a reader sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// The LSN of the last commit in the state.
    pub lsn: Lsn,
    /// The reader, which was registered before any later bulk load.
    pub reader: ReaderId,
}

/// A bulk load of a tree, which was empty before.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    /// The LSN of the load.
    at: Lsn,
    /// The last reader that was registered before the load. A load is no commit, so LSNs of states do not tell
    /// who sees it.
    before: ReaderId,
}

/// The old values of a store, and the readers that need them.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    trees: FxHashMap<u32, BTreeMap<Box<[u8]>, History>>,
    /// The commit, tree and key of each old value, in the order of insertion.
    kept: VecDeque<(Lsn, u32, Box<[u8]>)>,
    /// The large values that commits will replace, which were read before the commits were appended.
    large: BTreeMap<VersionKey, Box<[u8]>>,
    /// The number of old values that are [`Old::InLeaf`].
    in_leaf: u64,
    bytes: u64,
    most_bytes: u64,
    /// The LSN of the state that each reader reads.
    readers: BTreeMap<ReaderId, Lsn>,
    /// The trees that were loaded while there were readers, which see them as they were before.
    loaded: FxHashMap<u32, Loaded>,
    drawn: u64,
    /// The LSN of the oldest state that can still be read. Readers of older states were given up.
    oldest: Lsn,
}

impl Versions {
    /// Creates a store of old values of at most `most_bytes` in memory.
    pub(crate) fn new(most_bytes: u64) -> Versions {
        Versions { most_bytes, ..Versions::default() }
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Registers a reader of the state at `lsn`.
    pub(crate) fn open(&mut self, lsn: Lsn) -> ReaderId {
        self.drawn += 1;
        let reader = ReaderId(self.drawn);
        self.readers.insert(reader, lsn);
        reader
    }

    /// Returns the reader that was registered last.
    pub(crate) fn newest_reader(&self) -> ReaderId {
        ReaderId(self.drawn)
    }

    /// Returns the oldest registered reader; `None` if there is none.
    pub(crate) fn oldest_reader(&self) -> Option<ReaderId> {
        self.readers.keys().next().copied()
    }

    pub(crate) fn close(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
    }

    /// Fails if the state at `lsn` can no longer be read.
    pub(crate) fn check(&self, lsn: Lsn) -> Result<(), Error> {
        if lsn < self.oldest { Err(Error::SnapshotTooOld) } else { Ok(()) }
    }

    /// Keeps a large value that the commit at `lsn` will replace.
    pub(crate) fn keep_large(&mut self, tree: u32, key: &[u8], lsn: Lsn, value: Vec<u8>) {
        self.bytes += value.len() as u64;
        self.large.insert((tree, key.into(), lsn), value.into());
    }

    /// Keeps the value that the commit at `lsn` replaces.
    pub(crate) fn keep(&mut self, tree: u32, key: &[u8], lsn: Lsn, replaced: Replaced<'_>) {
        let history = self.trees.entry(tree).or_default().entry(key.into()).or_default();
        // The value is kept already: an operation that did not fit at first is applied again.
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
            Replaced::InLeaf => {
                self.in_leaf += 1;
                Old::InLeaf
            }
        };
        self.bytes += cost(key);
        history.push((lsn, old));
        self.kept.push_back((lsn, tree, key.into()));
    }

    /// Whether a reader of an older state may find its value of a key in the leaf, beneath a pending record.
    pub(crate) fn is_in_leaf(&self, tree: u32, key: &[u8]) -> bool {
        let history = || self.trees.get(&tree).and_then(|keys| keys.get(key));
        self.in_leaf > 0
            && history().is_some_and(|history| history.iter().any(|(_, kept)| *kept == Old::InLeaf))
    }

    /// Keeps the value `old` of a leaf when a pending record is merged into the leaf and replaces it. Readers
    /// of older states found that value beneath the record.
    pub(crate) fn settle(&mut self, tree: u32, key: &[u8], old: Option<Cell<'_>>) {
        if self.in_leaf == 0 {
            return;
        }
        let history = self.trees.get_mut(&tree).and_then(|keys| keys.get_mut(key));
        let found = history.and_then(|history| history.iter_mut().find(|(_, kept)| *kept == Old::InLeaf));
        if let Some((_, kept)) = found {
            self.in_leaf -= 1;
            *kept = old.map_or(Old::Absent, |old| Old::Here(old.bytes.into()));
            self.bytes += bytes_of(kept);
        }
    }

    /// Notes that a tree, which was empty, was loaded at `at`.
    pub(crate) fn note_load(&mut self, tree: u32, at: Lsn) {
        if !self.readers.is_empty() {
            self.loaded.insert(tree, Loaded { at, before: self.newest_reader() });
        }
    }

    /// Returns the LSN of a bulk load that the reader of a state does not see; `None` if it sees all of the tree.
    fn unseen_load(&self, tree: u32, state: State) -> Option<Lsn> {
        self.loaded.get(&tree).filter(|loaded| state.reader <= loaded.before).map(|loaded| loaded.at)
    }

    /// Whether a state has none of the records in the leaves of a tree, because these were loaded later.
    pub(crate) fn hides_leaves(&self, tree: u32, state: State) -> bool {
        self.unseen_load(tree, state).is_some()
    }

    /// Returns the old value of a key in a state; `None` if that state has the value in the tree.
    pub(crate) fn find(&self, tree: u32, key: &[u8], state: State) -> Option<&Old> {
        let history = self.trees.get(&tree).and_then(|keys| keys.get(key));
        let first = history.and_then(|history| history.iter().find(|(at, _)| *at > state.lsn));
        match self.unseen_load(tree, state) {
            // The first change of the key after the state is the load.
            Some(load) if first.is_none_or(|(at, _)| *at > load) => Some(&Old::Absent),
            _ => first.map(|(_, old)| old),
        }
    }

    /// Returns the keys of a range whose values in a state are not those in the tree, with their old values. A
    /// state that [`Versions::hides_leaves`] has no other keys.
    pub(crate) fn range(
        &self,
        tree: u32,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        state: State,
    ) -> Vec<(&[u8], &Old)> {
        let Some(keys) = self.trees.get(&tree) else { return Vec::new() };
        let keys = keys.range::<[u8], _>(range).map(|(key, _)| &**key);
        keys.filter_map(|key| self.find(tree, key, state).map(|old| (key, old))).collect()
    }

    /// Drops values that no reader can need. Registered readers need theirs, and new readers may begin to
    /// read the state at `visible`. If memory is exceeded, also gives up the oldest readers.
    pub(crate) fn trim(&mut self, visible: Lsn) {
        let needed =
            |versions: &Versions| versions.readers.values().copied().min().unwrap_or(visible).min(visible);
        let mut least = needed(self);
        if self.bytes > self.most_bytes {
            // Free half of the memory, so that readers are not given up at every commit.
            while self.bytes > self.most_bytes / 2 && least < visible {
                let Some((lsn, ..)) = self.kept.front() else { break };
                least = (*lsn).min(visible);
                self.oldest = self.oldest.max(least);
                self.forget(least);
            }
            let oldest = self.oldest;
            self.readers.retain(|_, lsn| *lsn >= oldest);
        }
        let first = self.oldest_reader();
        self.loaded.retain(|_, loaded| first.is_some_and(|first| first <= loaded.before));
        self.forget(least);
    }

    /// Drops values that commits up to `lsn` replaced. One call drops only [`FORGOTTEN_TOGETHER`] of them,
    /// because one reader may have kept many. The next call drops more.
    fn forget(&mut self, lsn: Lsn) {
        for _ in 0..FORGOTTEN_TOGETHER {
            // Commits may be applied out of order, so the first value may be newer than those after it. These
            // are dropped later.
            if self.kept.front().is_none_or(|(at, ..)| *at > lsn) {
                return;
            }
            let Some((at, tree, key)) = self.kept.pop_front() else { return };
            let Some(keys) = self.trees.get_mut(&tree) else { continue };
            let Some(history) = keys.get_mut(&key) else { continue };
            if let Some(place) = history.iter().position(|(replaced, _)| *replaced == at) {
                let (_, old) = history.remove(place);
                self.bytes -= cost(&key) + bytes_of(&old);
                self.in_leaf -= u64::from(old == Old::InLeaf);
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
        Old::Absent | Old::InLeaf => 0,
    }
}

/// Returns the memory that an old value takes in addition to its own bytes: its key twice, and the tables.
fn cost(key: &[u8]) -> u64 {
    2 * key.len() as u64 + 128
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(versions: &mut Versions, key: &[u8], lsn: u64, old: Option<&[u8]>) {
        versions.keep(5, key, Lsn(lsn), Replaced::Cell(old.map(Cell::inline)));
    }

    /// Returns a state whose reader was registered after every load.
    fn at(lsn: u64) -> State {
        State { lsn: Lsn(lsn), reader: ReaderId(u64::MAX) }
    }

    fn find(versions: &Versions, key: &[u8], lsn: u64) -> Option<Option<Vec<u8>>> {
        versions.find(5, key, at(lsn)).map(|old| match old {
            Old::Here(old) => Some(old.to_vec()),
            Old::Absent => None,
            Old::InLeaf => panic!("the leaf has it"),
        })
    }

    #[test]
    fn a_merge_keeps_the_value_beneath() {
        let mut versions = Versions::new(1 << 20);
        versions.keep(5, b"k", Lsn(10), Replaced::InLeaf);
        keep(&mut versions, b"k", 20, Some(b"two"));
        assert_eq!(versions.find(5, b"k", at(5)), Some(&Old::InLeaf));
        assert!(versions.is_in_leaf(5, b"k") && !versions.is_in_leaf(5, b"other"));
        versions.settle(5, b"other", Some(Cell::inline(b"wrong")));
        versions.settle(5, b"k", Some(Cell::inline(b"one")));
        versions.settle(5, b"k", Some(Cell::inline(b"wrong")));
        assert_eq!(find(&versions, b"k", 5), Some(Some(b"one".to_vec())));
        assert_eq!(find(&versions, b"k", 15), Some(Some(b"two".to_vec())));
        versions.keep(5, b"k", Lsn(30), Replaced::InLeaf);
        versions.trim(Lsn(30));
        assert_eq!((versions.bytes(), versions.in_leaf), (0, 0));
    }

    /// After the end of a reader, the values kept for it are dropped in several steps until none is left.
    #[test]
    fn old_values_are_dropped_in_parts() {
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
    fn readers_are_given_up_to_bound_memory() {
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

    /// The rule: a reader that was registered before a bulk load sees the tree as it was before it.
    #[test]
    fn a_reader_sees_no_later_load() {
        let mut versions = Versions::new(1 << 20);
        keep(&mut versions, b"k", 5, None);
        let before = versions.open(Lsn(5));
        keep(&mut versions, b"k", 10, Some(b"one"));
        versions.note_load(5, Lsn(20));
        let after = versions.open(Lsn(10));
        keep(&mut versions, b"k", 30, Some(b"loaded"));
        keep(&mut versions, b"other", 30, Some(b"loaded"));
        let (old, new) = (State { lsn: Lsn(5), reader: before }, State { lsn: Lsn(10), reader: after });
        assert_eq!(versions.find(5, b"k", old), Some(&Old::Here(b"one"[..].into())));
        assert_eq!(versions.find(5, b"other", old), Some(&Old::Absent));
        assert_eq!(versions.find(5, b"never changed", old), Some(&Old::Absent));
        assert_eq!(versions.find(5, b"other", new), Some(&Old::Here(b"loaded"[..].into())));
        assert_eq!(versions.find(5, b"never changed", new), None);
        assert!(versions.hides_leaves(5, old) && !versions.hides_leaves(5, new));
        versions.close(before);
        versions.trim(Lsn(30));
        assert!(versions.loaded.is_empty());
    }
}
