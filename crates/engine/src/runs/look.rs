//! What runs have of a key, or of a range.

use super::{Run, value};
use crate::Error;
use crate::page;
use crate::page::node::{Node, NodeMut};
use crate::shard::Shard;
use crate::tree::{Applied, Seek, Tree, leaf};
use crate::wait::together;
use fulgurite_base::PageId;
use fulgurite_device::Device;
use fulgurite_pool::{ReadGuard, WriteGuard};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Leaves of a run that are read at once.
const READ_TOGETHER: usize = 16;

/// What was found of a key beyond its leaf.
#[derive(Default)]
pub struct Beyond {
    /// Compare with [`super::Runs::changes`]: what was found holds as long as that stays.
    changes: u64,
    /// Runs that have the key, the newest first, each with the page where it lies.
    holders: Vec<(Rc<Run>, PageId)>,
    /// What the newest of them says.
    value: Option<Vec<u8>>,
}

impl Beyond {
    /// What a run says of the key, if that is newer than what the leaf says.
    pub fn over(&self, leaf: Node<'_>) -> Option<Option<&[u8]>> {
        let (run, _) = self.holders.first()?;
        (run.number > leaf.merged_runs()).then_some(self.value.as_deref())
    }
}

/// What runs have of a range of keys.
pub struct Overlay {
    changes: u64,
    /// The range; nothing where it ends with the least key.
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    /// The newest run when this was gathered.
    pub newest: u32,
    /// By key: the number of the run, and what it says.
    pub records: BTreeMap<Vec<u8>, (u32, Option<Vec<u8>>)>,
}

impl Default for Overlay {
    fn default() -> Overlay {
        let (low, high) = (Vec::new(), Some(Vec::new()));
        Overlay { changes: 0, low, high, newest: 0, records: BTreeMap::new() }
    }
}

impl Overlay {
    /// Whether all keys of a leaf lie in the range.
    pub fn covers(&self, leaf: Node<'_>) -> bool {
        let ends = |high: &Vec<u8>| leaf.high().is_some_and(|end| *end <= **high);
        *self.low <= *leaf.low() && self.high.as_ref().is_none_or(ends)
    }

    /// What is newer than what a leaf has, of its keys.
    pub fn over<'a>(&'a self, leaf: Node<'a>) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let range = (Included(leaf.low()), leaf.high().map_or(Unbounded, Excluded));
        let merged = leaf.merged_runs();
        let newer = self.records.range::<[u8], _>(range).filter(move |(_, (number, _))| *number > merged);
        newer.map(|(key, (_, value))| (&key[..], value.as_deref()))
    }
}

impl<D: Device + 'static> Shard<D> {
    /// Whether what was found still holds.
    pub fn holds(&self, beyond: &Beyond) -> bool {
        self.runs.borrow().changes() == beyond.changes
    }

    /// Whether what was gathered still holds.
    pub fn is_current(&self, overlay: &Overlay) -> bool {
        self.runs.borrow().changes() == overlay.changes
    }

    /// The newest record of a key in the runs.
    #[inline]
    pub async fn beyond(&self, tree: Tree, key: &[u8]) -> Result<Beyond, Error> {
        if self.runs.borrow().is_empty() {
            return Ok(Beyond { changes: self.runs.borrow().changes(), ..Beyond::default() });
        }
        self.look_in_runs(tree, key, false).await
    }

    /// The leaf that covers a key, and what runs have beyond it.
    pub async fn find_with_beyond(&self, tree: Tree, key: &[u8]) -> Result<(ReadGuard<D>, Beyond), Error> {
        loop {
            let beyond = self.beyond(tree, key).await?;
            let guard = self.find(tree, Seek::At(key), 0).await?;
            if self.holds(&beyond) {
                return Ok((guard, beyond));
            }
        }
    }

    async fn look_in_runs(&self, tree: Tree, key: &[u8], all: bool) -> Result<Beyond, Error> {
        loop {
            let (changes, runs) = {
                let runs = self.runs.borrow();
                (runs.changes(), runs.may_have(tree.id, key))
            };
            let mut beyond = Beyond { changes, ..Beyond::default() };
            if !runs.is_empty() {
                // The leaf is needed too, and is read meanwhile. What cannot be read is met again where it is needed.
                let _ = self.fetch_leaves(tree, &[key]).await;
            }
            match self.find_holders(&mut beyond, runs, key, all).await {
                // A run was given back meanwhile, and others have its pages.
                _ if !self.holds(&beyond) => {}
                outcome => return outcome.map(|()| beyond),
            }
        }
    }

    async fn find_holders(
        &self,
        beyond: &mut Beyond,
        runs: Vec<Rc<Run>>,
        key: &[u8],
        all: bool,
    ) -> Result<(), Error> {
        for run in runs {
            let guard = self.find(run.tree, Seek::At(key), 0).await?;
            let node = leaf(guard.bytes())?;
            let Ok(index) = node.search(key) else { continue };
            if beyond.holders.is_empty() {
                beyond.value = value(node.value(index)).map(<[u8]>::to_vec);
            }
            beyond.holders.push((run, page::number(guard.bytes())));
            if !all {
                break;
            }
        }
        Ok(())
    }

    /// The leaf that is wanted, and what runs have of its keys that is newer.
    pub async fn find_with_overlay(
        &self,
        tree: Tree,
        seek: Seek<'_>,
    ) -> Result<(ReadGuard<D>, Overlay), Error> {
        let mut overlay = Overlay::default();
        loop {
            let guard = self.find(tree, seek, 0).await?;
            let node = leaf(guard.bytes())?;
            if !self.is_behind_runs(node) {
                return Ok((guard, Overlay::default()));
            }
            if self.is_current(&overlay) && overlay.covers(node) {
                self.runs.borrow_mut().count_hit(tree.id);
                return Ok((guard, overlay));
            }
            let (low, high) = (node.low().to_vec(), node.high().map(<[u8]>::to_vec));
            drop(guard);
            overlay = self.overlay(tree.id, &low, high.as_deref()).await?;
        }
    }

    /// The leaf that covers a key, to change, and what runs have beyond it, with the page of the run where the key is newer than in
    /// the leaf. Where several runs have the key, it is taken out of all but the newest, since the log's `at` has something newer.
    pub async fn find_for_change_with_runs(
        &self,
        tree: Tree,
        key: &[u8],
        at: Applied,
    ) -> Result<(WriteGuard<D>, Beyond, Option<WriteGuard<D>>), Error> {
        let mut turn = None;
        loop {
            let beyond = self.look_in_runs(tree, key, true).await?;
            if turn.is_none() && !beyond.holders.is_empty() {
                // One at a time: many would take the same page of a run from each other again and again. No run is given back
                // meanwhile, so its pages stay its own.
                turn = Some(self.taking_out.take().await);
                continue;
            }
            // The page of a run first, then the leaf: nobody who has a leaf waits for a run.
            let held = match beyond.holders.last() {
                Some((_, page)) => Some(self.write_page(*page).await?),
                None => None,
            };
            match held {
                Some(older) if beyond.holders.len() > 1 => self.take_out_of_run(key, older, at)?,
                held => {
                    let guard = self.find_for_change(tree, key).await?;
                    if self.holds(&beyond) {
                        let is_newer = beyond.over(leaf(guard.bytes())?).is_some();
                        return Ok((guard, beyond, held.filter(|_| is_newer)));
                    }
                }
            }
        }
    }

    /// Takes a key out of the page of a run that has it, since something newer is in the log from `at` on.
    pub fn take_out_of_run(&self, key: &[u8], mut page: WriteGuard<D>, at: Applied) -> Result<(), Error> {
        let bytes = page.bytes_mut();
        if let Ok(index) = leaf(bytes)?.search(key) {
            NodeMut::new(bytes).remove(index);
        }
        let number = page::number(bytes);
        self.note_change(bytes, number, at);
        self.runs.borrow_mut().changes += 1;
        Ok(())
    }

    /// What runs have of the keys of a tree from `low` on up to, and without, `high`.
    pub async fn overlay(&self, of: u32, low: &[u8], high: Option<&[u8]>) -> Result<Overlay, Error> {
        loop {
            let (changes, newest, runs) = {
                let runs = self.runs.borrow();
                let behind: Vec<Rc<Run>> = runs.behind(of, 0, (low, high)).cloned().collect();
                (runs.changes(), runs.newest(), behind)
            };
            let (from, to) = (low.to_vec(), high.map(<[u8]>::to_vec));
            let mut overlay = Overlay { changes, low: from, high: to, newest, records: BTreeMap::new() };
            let reads = runs.iter().map(|run| self.read_run(run, low, high)).collect();
            let read = together(reads).await;
            if !self.is_current(&overlay) {
                continue;
            }
            // The oldest first, so that the newest stays.
            for (run, records) in std::iter::zip(runs, read) {
                let numbered = records?.into_iter().map(|(key, value)| (key, (run.number, value)));
                overlay.records.extend(numbered);
            }
            return Ok(overlay);
        }
    }

    /// The records of a run in a range.
    async fn read_run(
        &self,
        run: &Run,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<Vec<(Vec<u8>, Option<Vec<u8>>)>, Error> {
        let mut found = Vec::new();
        let mut from = low.to_vec();
        if let Some(leaves) = self.leaves(run.tree, Seek::At(low), high, READ_TOGETHER).await? {
            self.pool.fetch(&leaves.pages).await?;
        }
        loop {
            let guard = self.find(run.tree, Seek::At(&from), 0).await?;
            let node = leaf(guard.bytes())?;
            let first = node.search(&from).unwrap_or_else(|index| index);
            let end = high.map_or(node.len(), |high| node.search(high).unwrap_or_else(|index| index));
            for index in first..end {
                found.push((node.key(index), value(node.value(index)).map(<[u8]>::to_vec)));
            }
            match node.high().filter(|next| high.is_none_or(|high| *next < high)) {
                Some(next) => from = next.to_vec(),
                None => return Ok(found),
            }
        }
    }
}
