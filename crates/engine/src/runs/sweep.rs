//! Leaves get what runs have of them, and runs that no leaf needs any longer are given back.

use super::known::Known;
use super::look::Overlay;
use super::{Run, Runs, Sweep};
use crate::log::{Delta, Op, OpRef};
use crate::page;
use crate::page::node::NodeMut;
use crate::shard::Shard;
use crate::tree::{CATALOGUE, Seek, Tree, change, leaf};
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Leaves that get what runs have of them in one step. What runs have of so many is in memory meanwhile.
const SWEPT_TOGETHER: u32 = 64;
/// Times that a leaf is looked at again, since runs or the leaf have changed meanwhile.
const MOST_ATTEMPTS: u32 = 100;
/// Free pages below which no leaf is divided for what runs have of it.
const PAGES: u64 = 32;
/// Maps that one record may change.
const MAPS: usize = 8;

/// What has become of a step.
enum Step {
    /// Leaves up to this key have what runs had of them; `None` at the end of the tree.
    Next(Option<Vec<u8>>),
    /// A leaf could not be brought up to date.
    Failed,
}

impl<D: Device + 'static> Shard<D> {
    /// Sweeps in a task of its own while runs take more than their share, unless one does so already.
    pub fn sweep_runs_later(self: &Rc<Self>) {
        if !self.has_too_many_runs() || self.sweeping.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            shard.sweep_runs().await;
            shard.sweeping.set(false);
        });
    }

    fn has_too_many_runs(&self) -> bool {
        let runs = self.runs.borrow();
        2 * runs.unswept_pages() > self.pages_for_runs() || runs.unwanted().is_some()
    }

    async fn sweep_runs(self: &Rc<Self>) {
        // Trees that cannot be swept now: what stands in the way may not later, when there are more runs. Others go on.
        let mut passed_over = FxHashSet::default();
        while self.has_too_many_runs() && self.health.check().is_ok() {
            let Some(of) = self.runs.borrow().next_to_sweep(&passed_over) else { return };
            let swept = match self.tree(of) {
                Ok(tree) => self.sweep_step(tree).await,
                Err(error) => Err(error),
            };
            if !matches!(swept, Ok(Step::Next(_))) {
                passed_over.insert(of);
                continue;
            }
            let awaiting = {
                let runs = self.runs.borrow();
                runs.size().1 - runs.unswept_pages() > self.pages_for_runs()
            };
            if awaiting {
                self.checkpoint_later(Lsn(self.log.tail().0));
            }
        }
    }

    /// Brings everything that runs have of a tree into its leaves, as far as that can be done. Whether it was.
    pub async fn settle_runs(self: &Rc<Self>, tree: Tree) -> Result<bool, Error> {
        let has_some = |shard: &Shard<D>| shard.runs.borrow().has_of(tree.id);
        if !has_some(self) {
            return Ok(true);
        }
        self.runs.borrow_mut().cursors.remove(&tree.id);
        // Others may sweep too. Who comes to the end twice has been everywhere.
        let mut ends = 0;
        while has_some(self) && ends < 2 {
            self.health.check()?;
            match self.sweep_step(tree).await? {
                Step::Next(Some(_)) => {}
                Step::Next(None) => ends += 1,
                Step::Failed => return Ok(false),
            }
        }
        Ok(!has_some(self))
    }

    /// Brings what runs have of the next leaves of a tree into them.
    async fn sweep_step(self: &Rc<Self>, tree: Tree) -> Result<Step, Error> {
        let _turn = self.sweep_turn.take().await;
        let low = self.runs.borrow().cursors.get(&tree.id).cloned().unwrap_or_default();
        let high = self.fetch_next(tree, &low).await?;
        // The drive reads the leaves of the next step while these get what they lack.
        if let Some(high) = &high {
            self.fetch_next(tree, high).await?;
        }
        let newest = self.runs.borrow().newest();
        self.runs.borrow_mut().sweep_begins(tree.id, &low);
        let before = self.runs.borrow().counters.leaves;
        let caught_up = self.catch_up(tree, &low, high.as_deref()).await;
        let mut runs = self.runs.borrow_mut();
        self.records.borrow_mut().swept(runs.counters.leaves - before, runs.unswept_pages());
        // A leaf that cannot be read does not keep those behind it from being swept.
        runs.cursors.insert(tree.id, high.clone().unwrap_or_default());
        if caught_up != Ok(true) {
            runs.sweep_failed(tree.id, &low, high.as_deref());
            return caught_up.map(|_| Step::Failed);
        }
        runs.swept(tree.id, newest, high.as_deref(), self.log.tail());
        Ok(Step::Next(high))
    }

    /// Begins to read the next leaves from a key on. Returns the key behind them; `None` at the end of the tree.
    async fn fetch_next(&self, tree: Tree, low: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let most = self.most_ahead(SWEPT_TOGETHER);
        let Some(leaves) = self.leaves(tree, Seek::At(low), None, most).await? else { return Ok(None) };
        let mut pages = leaves.pages;
        pages.sort_unstable();
        // What cannot be read is met again where it is needed.
        let _ = self.pool.fetch(&pages).await;
        Ok(leaves.end)
    }

    /// Brings what runs have of a range into its leaves. Whether that could be done.
    pub async fn catch_up(&self, tree: Tree, low: &[u8], high: Option<&[u8]>) -> Result<bool, Error> {
        let mut overlay = Overlay::default();
        let (mut from, mut attempts) = (low.to_vec(), 0);
        loop {
            let (own_low, next, is_behind, is_known) = {
                let guard = self.find(tree, Seek::At(&from), 0).await?;
                let node = leaf(guard.bytes())?;
                let is_known = self.is_current(&overlay) && overlay.covers(node);
                let next = node.high().map(<[u8]>::to_vec);
                (node.low().to_vec(), next, self.is_behind_runs(node), is_known)
            };
            if is_behind {
                // What it lacked is there, and it is looked at again: it may have been divided before that, and the other
                // half would still lack it.
                if is_known && self.bring(tree, &from, &overlay).await? {
                    continue;
                }
                attempts += 1;
                if attempts > MOST_ATTEMPTS || (is_known && !self.has_room_to_bring()) {
                    return Ok(false);
                }
                if !is_known {
                    let end = match (&next, high) {
                        (Some(next), Some(high)) => Some(high.max(next)),
                        _ => None,
                    };
                    overlay = self.overlay(tree.id, &own_low, end).await?;
                }
                continue;
            }
            self.handle.pause().await;
            match next {
                Some(next) if high.is_none_or(|high| *next < *high) => (from, attempts) = (next, 0),
                _ => return Ok(true),
            }
        }
    }

    /// Whether a leaf may be divided for what runs have of it.
    fn has_room_to_bring(&self) -> bool {
        self.space.available() >= PAGES && self.has_room_in_log(self.change_bytes())
    }

    /// Brings what was gathered of the leaf that covers a key into it. False where the leaf must be looked at again: it was divided, or runs have
    /// changed.
    async fn bring(&self, tree: Tree, key: &[u8], overlay: &Overlay) -> Result<bool, Error> {
        let (too_large, sparse) = {
            let mut guard = self.find_for_change(tree, key).await?;
            let node = leaf(guard.bytes())?;
            if !self.is_current(overlay) || !overlay.covers(node) {
                return Ok(false);
            }
            let (number, bytes) = (page::number(guard.bytes()), guard.bytes_mut());
            let too_large = self.put_over(tree, bytes, overlay)?;
            // What memory has of the leaf comes along. What does not fit stays pending.
            if too_large.is_none() && self.records.borrow().lacks(number) && !self.has_spilled(number) {
                let _ = self.merge_into(number, bytes)?;
            }
            (too_large, self.sparse_key(bytes)?)
        };
        if let Some((key, cost)) = too_large {
            if self.has_room_to_bring() {
                self.make_room(tree, &key, cost).await?;
            }
            return Ok(false);
        }
        if let Some((tree, key)) = sparse
            && self.has_room_to_bring()
        {
            self.shrink(tree, &key).await?;
        }
        Ok(true)
    }

    /// Puts what runs have of a leaf into its bytes. Returns the key of a record for which there is no room, and what it takes.
    fn put_over(
        &self,
        tree: Tree,
        bytes: &mut [u8],
        overlay: &Overlay,
    ) -> Result<Option<(Vec<u8>, usize)>, Error> {
        let copy = bytes.to_vec();
        let (mut merged, mut too_large) = (0, None);
        for (key, value) in overlay.over(leaf(&copy)?) {
            if !change(bytes, OpRef { tree: tree.id, key, value, large: false })? {
                let cost = leaf(bytes)?.cost(key.len(), value.map_or(0, <[u8]>::len));
                too_large = Some((key.to_vec(), cost));
                break;
            }
            merged += 1;
        }
        if too_large.is_none() {
            NodeMut::new(bytes).set_merged_runs(overlay.newest);
        }
        let counters = &mut self.runs.borrow_mut().counters;
        counters.merged += merged;
        counters.leaves += u64::from(merged > 0);
        self.mark_from_runs(bytes);
        Ok(too_large)
    }

    /// A leaf has got something from runs. They stay until the redo point is behind this: then the drive has the leaf, and recovery makes it from
    /// no older image.
    fn mark_from_runs(&self, bytes: &mut [u8]) {
        let (number, tail) = (page::number(bytes), self.log.tail());
        let lsn = page::lsn(bytes).max(tail);
        page::set_lsn(bytes, lsn);
        self.mark(number, tail);
    }

    /// Gives runs back that were swept, in a task of its own, where the drive has their leaves.
    pub fn give_runs_back_later(self: &Rc<Self>) {
        if self.runs.borrow().to_give_back(self.redo_for_runs()).is_none() || self.giving_back.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            // What stands in the way now may not after the next checkpoint.
            while let Ok(true) = shard.give_run_back().await {}
            shard.giving_back.set(false);
        });
    }

    /// Leaves that got something before this are on the drive.
    fn redo_for_runs(&self) -> Lsn {
        if planted!(self.options, RunGivenBackEarly) { Lsn(u64::MAX) } else { self.log.redo() }
    }

    /// Gives the next run back, if there is one. A backup may be reading its pages.
    async fn give_run_back(&self) -> Result<bool, Error> {
        let has_room = self.log_left() >= self.change_bytes() + self.log.capacity() / 32;
        let run = self.runs.borrow().to_give_back(self.redo_for_runs());
        let Some(run) = run.filter(|_| has_room && self.watch.borrow().is_none()) else { return Ok(false) };
        self.check_open()?;
        let mut by_map: BTreeMap<PageId, Vec<Delta>> = BTreeMap::new();
        for page in self.pages_of_run(run.tree).await? {
            let (map, index) = self.space.place(page);
            let free = Delta::Map { page: map, from: index, count: 1, used: false };
            by_map.entry(map).or_default().push(free);
        }
        let (name, _) = Known { number: run.number, of: run.of, root: run.tree.root }.write();
        let removal = Op { tree: CATALOGUE, key: name.into(), value: None, large: false };
        let by_map: Vec<(PageId, Vec<Delta>)> = by_map.into_iter().collect();
        // The root goes with the first record, and with it the run.
        let mut first = Some(removal);
        for part in by_map.chunks(MAPS) {
            // Who takes a key out of a run relies on its pages.
            let turns = (self.taking_out.take().await, self.structure.take().await);
            let mut pages: Vec<PageId> = part.iter().map(|(map, _)| *map).collect();
            let mut deltas: Vec<Delta> = part.iter().flat_map(|(_, frees)| frees.clone()).collect();
            let ops: Vec<Op> = first.take().into_iter().collect();
            if !ops.is_empty() {
                pages.push(run.tree.root);
                deltas.push(Delta::Free { page: run.tree.root });
            }
            let held = self.hold(&pages, &[]).await?;
            let places = self.restructure(held, deltas, ops.clone())?;
            if ops.is_empty() {
                continue;
            }
            self.commits.borrow_mut().append(places.0, places.1, true);
            self.runs.borrow_mut().remove(run.number);
            drop(turns);
            // Before anything else that may fail: all commits behind it wait for this one.
            self.apply_own(&ops, places).await?;
            self.make_own_durable(places.1).await?;
        }
        Ok(true)
    }
}

impl Runs {
    /// The tree whose leaves get what runs have of it next: one whose runs should go, else that of the oldest run.
    pub(super) fn next_to_sweep(&self, passed_over: &FxHashSet<u32>) -> Option<u32> {
        let mut runs = self.all.iter().filter(|run| run.is_needed() && !passed_over.contains(&run.of));
        let oldest = runs.clone().next();
        runs.find(|run| !self.are_left_alone(run.of)).or(oldest).map(|run| run.of)
    }

    /// Sweeping a tree goes on from `low`.
    fn sweep_begins(&self, of: u32, low: &[u8]) {
        for run in self.all.iter().filter(|run| run.of == of && *low <= *run.low) {
            if run.sweep.get() == Sweep::Not {
                run.sweep.set(Sweep::Begun);
            }
        }
    }

    /// Some leaves of a range do not have everything.
    fn sweep_failed(&self, of: u32, low: &[u8], high: Option<&[u8]>) {
        for run in self.all.iter().filter(|run| run.of == of && run.overlaps(low, high)) {
            if run.sweep.get() == Sweep::Begun {
                run.sweep.set(Sweep::Not);
            }
        }
    }

    /// Leaves up to `high` have everything that runs up to `newest` had of them, as of `at`.
    fn swept(&self, of: u32, newest: u32, high: Option<&[u8]>, at: Lsn) {
        let is_behind = |run: &&Rc<Run>| high.is_none_or(|high| *run.high < *high);
        let ours = self.all.iter().filter(|run| run.of == of && run.number <= newest);
        for run in ours.filter(is_behind).filter(|run| run.sweep.get() == Sweep::Begun) {
            run.sweep.set(Sweep::Done(at));
        }
    }

    /// A run that was swept, and whose leaves the drive has where the redo point is at `redo`.
    fn to_give_back(&self, redo: Lsn) -> Option<Rc<Run>> {
        let is_due = |run: &&Rc<Run>| matches!(run.sweep.get(), Sweep::Done(at) if at < redo);
        self.all.iter().find(is_due).cloned()
    }
}
