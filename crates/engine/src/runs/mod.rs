//! Sorted runs on the drive, between records in memory and their leaves.
//!
//! A record that waits in memory is merged into its leaf together with the few others that wait for the same leaf: of a uniform load
//! two or three, for a page that is read and written. Where so few would come together, the cold ones leave memory for a *run*: a
//! small tree of its own, written in the order of the keys. A run is in the log's stead: what it has is not pending any more. Many
//! runs wait on the drive for far more records than memory has room for, and a leaf gets what all of them have of its keys at once.
//!
//! - A *read* that memory does not answer asks the runs, the newest first, and then the leaf. A filter in memory says of nearly all keys which runs
//!   do not have them.
//! - A *scan* puts what runs have over each leaf, and what memory has over that.
//! - *Spilling* (`spill.rs`) makes runs from records in memory. Only those that nobody asks for go.
//! - *Sweeping* (`sweep.rs`) goes through the leaves of a tree in their order, again and again while runs take more than their share
//!   of the store, and brings into each what runs have of it. A run that was swept from its first key to its last is given back once
//!   the drive has those leaves for sure.
//!
//! **Which is newer.** Runs are numbered. What a leaf has of its keys is at least as new as what runs up to its own number have
//! ([`Node::merged_runs`]); what a run behind that has is newer than what the leaf has. The number lies in the leaf, so it is durable with what
//! it says, splits and images of the log take it along, and sweeping needs no record of the log. To merge a run again changes
//! nothing.
//!
//! **Writes to leaves.** A record that goes to its leaf by itself, since memory has no room or its value is large, is taken out of the runs
//! that have an older one, in the same step. That needs no room.
//!
//! **Old versions.** What a pending record replaces for readers of older states is *beneath* it, in a run or in the leaf. A record with something
//! beneath it that a reader may ask for stays in memory.
//!
//! **Durable.** The pages of a run are written and flushed before one record of the log names it, in the catalogue, and its records leave memory
//! when that is durable. A few runs are made together, for one flush of their pages and one of the log. A crash in between leaves them in the log. The root page goes when a run is given back, so recovery
//! tells a run that is gone from one that is there whatever it has read of the catalogue so far.
//!
//! The tiers of a log-structured merge tree (O'Neil et al., Acta Informatica 1996) over the leaves of a B-tree; Bε-trees (Brodal and
//! Fagerberg, SODA 2003) hold such records in their inner nodes.

mod filter;
mod known;
mod look;
mod spill;
mod sweep;
#[cfg(test)]
mod tests;

pub use known::{Known, is_own};
pub use look::{Beyond, Overlay};
pub use spill::Which;

use crate::Lsn;
use crate::locks::hash_of_key;
use crate::page::node::{Cell, Node};
use crate::shard::Shard;
use crate::tree::Tree;
use filter::Filter;
use fulgurite_device::Device;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell as Flag;
use std::rc::Rc;

/// Trees from this number on are runs: their number is added.
pub const FIRST_RUN_TREE: u32 = 1 << 31;
/// Runs are numbered up to this: a leaf has three bytes for a number.
pub const MOST_RUNS: u32 = (1 << 24) - 1;

/// Of records in runs, not more than one in so many may be asked for.
const MOST_ASKED_FOR: u64 = 4;
/// Attempts to spill that leave out a tree of which more were.
const LEFT_OUT: u32 = 100;
/// Attempts that are not made where one has found nothing: to look through memory takes time.
const PASSED_OVER: u32 = 32;

/// What a record of a run is as a cell of a node: a key without a value is marked like a large one.
pub fn cell(value: Option<&[u8]>) -> Cell<'_> {
    Cell { bytes: value.unwrap_or_default(), large: value.is_none() }
}

/// What such a cell says.
pub fn value(cell: Cell<'_>) -> Option<&[u8]> {
    (!cell.large).then_some(cell.bytes)
}

/// A run.
pub struct Run {
    /// Its number. Runs with higher ones are newer.
    pub number: u32,
    /// The tree whose records it has.
    pub of: u32,
    /// Its own tree.
    pub tree: Tree,
    /// Its least and its largest key.
    low: Vec<u8>,
    high: Vec<u8>,
    pages: u64,
    /// None where the run could not be read.
    filter: Option<Filter>,
    sweep: Flag<Sweep>,
}

/// How far a run has been swept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sweep {
    /// Not from its first key on.
    Not,
    /// From its first key on to where the sweep is.
    Begun,
    /// Whole. The drive has the leaves once the redo point is behind this.
    Done(Lsn),
}

impl Run {
    /// Whether leaves may lack something of it.
    fn is_needed(&self) -> bool {
        !matches!(self.sweep.get(), Sweep::Done(_))
    }

    /// Whether keys of a range may be in it.
    fn overlaps(&self, low: &[u8], high: Option<&[u8]>) -> bool {
        *low <= *self.high && high.is_none_or(|high| *self.low < *high)
    }

    fn may_have(&self, key: &[u8], hash: u64) -> bool {
        *self.low <= *key
            && *key <= *self.high
            && self.filter.as_ref().is_none_or(|filter| filter.may_have(hash))
    }
}

/// The runs of a store.
#[derive(Default)]
pub struct Runs {
    /// The oldest first.
    all: Vec<Rc<Run>>,
    newest: u32,
    /// Hashes of keys in the runs that are being made. Their leaves get nothing newer before the run counts: it would come over that.
    making: FxHashSet<u64>,
    /// Counts what comes, goes or is taken out: who waited in between looks again.
    changes: u64,
    /// By tree: where sweeping goes on.
    cursors: FxHashMap<u32, Vec<u8>>,
    /// By tree: what came of its records in runs lately.
    uses: FxHashMap<u32, Use>,
    /// Attempts to spill that are not made.
    passed_over: u32,
    counters: RunCounters,
}

/// What came of a tree's records in runs.
#[derive(Default)]
struct Use {
    spilled: u64,
    /// Reads, and leaves of scans, for which runs had to be read.
    asked_for: u64,
    /// Attempts to spill that leave the tree out, since too much was asked for.
    left_out: u32,
}

/// What was done with runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunCounters {
    /// Runs made.
    pub made: u64,
    /// Records that went from memory into runs.
    pub spilled: u64,
    /// Leaves that got what runs had of them.
    pub leaves: u64,
    /// Records that leaves got from runs.
    pub merged: u64,
    /// Reads that a run has answered.
    pub hits: u64,
}

impl Runs {
    /// The number of the newest run that there ever was.
    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Counts every change.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// What was done since the store was opened.
    pub fn counters(&self) -> RunCounters {
        self.counters
    }

    /// Their trees, each with the tree whose records it has.
    pub fn trees(&self) -> Vec<(Tree, u32)> {
        self.all.iter().map(|run| (run.tree, run.of)).collect()
    }

    /// Whether runs have something of a tree that leaves may lack.
    pub fn has_of(&self, of: u32) -> bool {
        self.all.iter().any(|run| run.of == of && run.is_needed())
    }

    /// Runs, and the pages that they take.
    pub fn size(&self) -> (u64, u64) {
        (self.all.len() as u64, self.all.iter().map(|run| run.pages).sum())
    }

    /// Bytes of memory for filters.
    fn filter_bytes(&self) -> u64 {
        self.all.iter().filter_map(|run| run.filter.as_ref()).map(Filter::bytes).sum()
    }

    /// Pages of runs that are not swept yet.
    fn unswept_pages(&self) -> u64 {
        self.all.iter().filter(|run| run.is_needed()).map(|run| run.pages).sum()
    }

    /// Runs that may have a key, the newest first.
    fn may_have(&self, of: u32, key: &[u8]) -> Vec<Rc<Run>> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let hash = hash_of_key(of, key);
        let runs =
            self.all.iter().rev().filter(|run| run.of == of && run.is_needed() && run.may_have(key, hash));
        runs.cloned().collect()
    }

    /// Whether some run may have a key.
    pub fn may_be_in_one(&self, of: u32, key: &[u8]) -> bool {
        !self.all.is_empty() && !self.may_have(of, key).is_empty()
    }

    fn is_being_spilled(&self, of: u32, key: &[u8]) -> bool {
        !self.making.is_empty() && self.making.contains(&hash_of_key(of, key))
    }

    /// Runs behind `number` with keys of a range, the oldest first.
    fn behind<'a>(
        &'a self,
        of: u32,
        number: u32,
        (low, high): (&'a [u8], Option<&'a [u8]>),
    ) -> impl Iterator<Item = &'a Rc<Run>> {
        let needed =
            self.all.iter().filter(move |run| run.of == of && run.number > number && run.is_needed());
        needed.filter(move |run| run.overlaps(low, high))
    }

    /// A run has answered a read, or had something of a leaf that was scanned.
    pub fn count_hit(&mut self, of: u32) {
        self.counters.hits += 1;
        self.uses.entry(of).or_default().asked_for += 1;
    }

    fn count_spilled(&mut self, of: u32, records: u64) {
        self.counters.spilled += records;
        self.uses.entry(of).or_default().spilled += records;
    }

    /// Whether a tree's records in runs are mostly left alone. Who asks for one has to read a page more, which is what a run spares.
    fn are_left_alone(&self, of: u32) -> bool {
        self.uses.get(&of).is_none_or(|of| of.left_out == 0)
    }

    /// Looks what has come of runs before others are made. A tree that is left out gets runs again some time: what is asked for changes.
    fn look_at_uses(&mut self) {
        for of in self.uses.values_mut() {
            match of.left_out {
                0 if of.asked_for * MOST_ASKED_FOR > of.spilled => of.left_out = LEFT_OUT,
                0 => {}
                1 => *of = Use::default(),
                _ => of.left_out -= 1,
            }
        }
    }

    /// Whether an attempt to spill is not made, since one has found nothing lately.
    fn passes_over(&mut self) -> bool {
        let passes_over = self.passed_over > 0;
        self.passed_over = self.passed_over.saturating_sub(1);
        passes_over
    }

    /// A tree whose runs should go, since its records are asked for.
    fn unwanted(&self) -> Option<u32> {
        self.all.iter().find(|run| run.is_needed() && !self.are_left_alone(run.of)).map(|run| run.of)
    }

    fn add(&mut self, run: Run) {
        self.newest = self.newest.max(run.number);
        self.changes += 1;
        self.all.push(Rc::new(run));
        self.all.sort_by_key(|run| run.number);
    }

    fn remove(&mut self, number: u32) {
        self.changes += 1;
        self.all.retain(|run| run.number != number);
    }
}

impl<D: Device + 'static> Shard<D> {
    /// Whether a key is on its way into a run.
    pub fn is_being_spilled(&self, of: u32, key: &[u8]) -> bool {
        self.runs.borrow().is_being_spilled(of, key) && !planted!(self.options, MergedWhileSpilled)
    }

    /// Whether runs may have something of a leaf's keys that it lacks.
    pub fn is_behind_runs(&self, leaf: Node<'_>) -> bool {
        let runs = self.runs.borrow();
        leaf.level() == 0
            && !runs.is_empty()
            && runs
                .behind(crate::page::tree(leaf.bytes()), leaf.merged_runs(), (leaf.low(), leaf.high()))
                .next()
                .is_some()
    }
}
