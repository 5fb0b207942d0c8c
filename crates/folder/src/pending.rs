//! The changes that are not durable, in their order, and which of them need which. A change needs only earlier ones,
//! so one pass in their order finds everything that is lost with a change.

use crate::rules::{Model, Rules};
use crate::tree::{Change, Inode, Name, Tree, Verb};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A change that is not durable.
#[derive(Clone)]
pub(crate) struct Pending {
    pub(crate) change: Change,
    /// The changes that become durable before it.
    pub(crate) after: Vec<u64>,
    /// The creations of the folders whose names it changes. A sync of the folder leaves them losable.
    pub(crate) within: Vec<u64>,
    /// Whether it is lost only with a change of `within`.
    pub(crate) is_synced: bool,
    /// The number of the first change that the same call made.
    pub(crate) call: u64,
}

/// All changes that are not durable. Numbers in `after` and `within` that are not here stand for durable changes.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// The changes by inode.
    touches: BTreeSet<(u64, u64)>,
    /// The last change of each name.
    names: BTreeMap<(u64, Name), u64>,
    /// The last change that made the bytes of a file from an offset on part of it: (offset, change), both ascending.
    owners: BTreeMap<u64, VecDeque<(u64, u64)>>,
    /// The changes that are synced and not durable.
    waiting: BTreeSet<u64>,
    /// The last change of the order that a journal keeps, and the last that moved a folder; 0 for none.
    last_ordered: u64,
    last_move: u64,
}

impl Journal {
    /// Returns the pending changes of an inode, in their order.
    pub(crate) fn of(&self, inode: u64) -> impl DoubleEndedIterator<Item = (u64, &Change)> {
        let numbers = self.touches.range((inode, 0)..=(inode, u64::MAX));
        numbers.filter_map(|(_, number)| Some((*number, &self.pending.get(number)?.change)))
    }

    /// Returns the last pending change of a file's size.
    fn size_of(&self, file: u64) -> Option<u64> {
        self.owners.get(&file)?.back().map(|(_, number)| *number)
    }

    /// Returns the pending change of size without which the byte at `offset` would not be part of the file, and the
    /// offset of the next byte with another.
    pub(crate) fn owner(&self, file: u64, offset: u64) -> (Option<u64>, u64) {
        let Some(owners) = self.owners.get(&file) else { return (None, u64::MAX) };
        let next = owners.partition_point(|(from, _)| *from <= offset);
        let owner = next.checked_sub(1).map(|at| owners[at].1);
        (owner, owners.get(next).map_or(u64::MAX, |(from, _)| *from))
    }

    /// Returns the last change in the order that a journal keeps.
    pub(crate) fn last_ordered(&self) -> u64 {
        self.last_ordered
    }

    /// Adds a change. `live` is the tree before it.
    pub(crate) fn insert(&mut self, number: u64, call: u64, change: Change, rules: &Rules, live: &Tree) {
        let mut pending =
            Pending { after: Vec::new(), within: Vec::new(), is_synced: false, call, change: change.clone() };
        match (&change, rules.model) {
            (Change::Data { file, offset, .. }, _) => {
                pending.after.extend(self.owner(*file, *offset).0);
            }
            (Change::Size { .. } | Change::Mode { .. }, Model::Strict) => {
                let inode = change.inodes();
                let attributes = self.of(inode[0]).rev();
                let is_attribute =
                    |change: &Change| matches!(change, Change::Size { .. } | Change::Mode { .. });
                pending.after.extend(
                    attributes.filter(|(_, change)| is_attribute(change)).map(|(last, _)| last).take(1),
                );
            }
            (Change::Names { .. }, Model::Strict) => self.need_names(&mut pending, live),
            (_, Model::Journaled) => self.need_journal(&mut pending, rules),
        }
        self.track(number, &change);
        self.pending.insert(number, pending);
    }

    /// Adds the needs of a change in a journal.
    fn need_journal(&self, pending: &mut Pending, rules: &Rules) {
        pending.after.push(self.last_ordered);
        match &pending.change {
            Change::Size { file, .. } => pending.after.extend(self.size_of(*file)),
            Change::Names { verb: Verb::Rename, entries, removes: None, .. } if rules.rename_syncs => {
                let replaced = entries.iter().filter(|entry| entry.before.is_some());
                for file in replaced.filter_map(|entry| entry.after) {
                    pending.after.extend(self.of(file).map(|(number, _)| number));
                }
            }
            _ => {}
        }
    }

    /// Adds the needs of a change of names without a journal.
    fn need_names(&self, pending: &mut Pending, live: &Tree) {
        let Change::Names { entries, moves, removes, .. } = &pending.change else { return };
        for entry in entries {
            pending.after.extend(self.names.get(&(entry.folder, entry.name.clone())));
            pending.within.extend(live.inodes.get(&entry.folder).map(|Inode { born, .. }| born));
        }
        pending.after.extend(moves.then_some(self.last_move));
        if let Some(folder) = *removes {
            let inside = self.of(folder).filter(|(_, change)| change.is_in(folder));
            pending.after.extend(inside.map(|(number, _)| number));
        }
    }

    /// Enters a change into the indexes.
    fn track(&mut self, number: u64, change: &Change) {
        self.touches.extend(change.inodes().into_iter().map(|inode| (inode, number)));
        if let Change::Names { entries, moves, .. } = change {
            for entry in entries {
                self.names.insert((entry.folder, entry.name.clone()), number);
            }
            if *moves {
                self.last_move = number;
            }
        }
        if let Change::Size { file, from, to, .. } = change {
            let owners = self.owners.entry(*file).or_default();
            let from = *from.min(to);
            owners.truncate(owners.partition_point(|(earlier, _)| *earlier < from));
            owners.push_back((from, number));
        }
        if change.is_ordered() {
            self.last_ordered = number;
        }
    }

    /// Makes changes durable, with all that become durable before them, and returns those that are durable now, in
    /// their order. A change in a folder whose creation is losable stays, and is lost only with that.
    pub(crate) fn store(&mut self, numbers: Vec<u64>) -> Vec<(u64, Change)> {
        let mut next = numbers;
        while let Some(number) = next.pop() {
            let Some(pending) = self.pending.get_mut(&number).filter(|pending| !pending.is_synced) else {
                continue;
            };
            pending.is_synced = true;
            next.extend(&pending.after);
            self.waiting.insert(number);
        }
        let mut durable = Vec::new();
        for number in std::mem::take(&mut self.waiting) {
            let Some(pending) = self.pending.get(&number) else { continue };
            if pending.after.iter().chain(&pending.within).any(|needed| self.pending.contains_key(needed)) {
                self.waiting.insert(number);
            } else if let Some(change) = self.forget(number) {
                durable.push((number, change));
            }
        }
        durable
    }

    /// Removes a change.
    pub(crate) fn forget(&mut self, number: u64) -> Option<Change> {
        let Pending { change, .. } = self.pending.remove(&number)?;
        for inode in change.inodes() {
            self.touches.remove(&(inode, number));
        }
        if let Change::Size { file, .. } = &change
            && let Some(owners) = self.owners.get_mut(file)
        {
            // The changes of a file's size become durable in their order.
            owners.drain(..owners.partition_point(|(_, owner)| *owner <= number));
            if owners.is_empty() {
                self.owners.remove(file);
            }
        }
        if let Change::Names { entries, .. } = &change {
            for entry in entries {
                let key = (entry.folder, entry.name.clone());
                if self.names.get(&key) == Some(&number) {
                    self.names.remove(&key);
                }
            }
        }
        Some(change)
    }

    /// Whether nothing is pending, in the indexes too.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
            && self.touches.is_empty()
            && self.names.is_empty()
            && self.owners.is_empty()
            && self.waiting.is_empty()
    }
}
