//! Records leave memory for runs.

use super::filter::Filter;
use super::known::{self, Known};
use super::{FIRST_RUN_TREE, MOST_RUNS, PASSED_OVER, Run, Sweep, cell};
use crate::locks::hash_of_key;
use crate::log::Op;
use crate::records::Place;
use crate::shard::Shard;
use crate::tree::{Applied, CATALOGUE, FIRST_USER_TREE, Load, Tree};
use crate::wait::{insist, to_its_end};
use crate::{Error, Lsn};
use fulgurite_device::Device;
use std::cell::Cell as Flag;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// Runs that there may be at once: who reads looks through them.
const MOST_AT_ONCE: u64 = 512;
/// Of the share of runs, a run takes one in so many pages: it is given back as a whole, so the narrower its keys, the sooner.
const RUN_PART: u64 = 128;
/// Runs whose pages are flushed together, and which are durable together: one by one, memory would be full before there is room.
const MADE_TOGETHER: usize = 4;
/// Pages of a run.
const RUN_PAGES: (u64, u64) = (16, 4096);
/// Pages that runs may take in a small store.
const LEAST_SHARE: u64 = 64;
/// The same, and a run, where even the smallest are made.
const EAGER_PAGES: u64 = 4;
/// Entries that are sorted at once, and that leave memory at once.
const SORTED_TOGETHER: usize = 512;
/// Entries that are put into a run before others have a turn.
const PUT_TOGETHER: usize = 64;

/// Which records leave memory.
#[derive(Clone, Copy)]
pub enum Which {
    /// The oldest, for others to have their memory.
    Oldest,
    /// Those that have been pending since before this, for their place in the log.
    Before(Lsn),
}

/// The first entry of a piece: its tree, its key, where it is, and the piece.
type First = (u32, Vec<u8>, Place, usize);

/// A run whose pages are written.
struct Made<D: Device + 'static> {
    run: Run,
    load: Load<D>,
    /// The root's bytes.
    root: Vec<u8>,
    /// The entries that it has.
    places: Vec<Place>,
}

/// Entries in the order of their trees and keys, from pieces that are sorted each by itself.
struct Sorted {
    pieces: Vec<std::vec::IntoIter<Place>>,
    /// The first of each piece.
    heads: BinaryHeap<Reverse<First>>,
}

impl Sorted {
    /// The tree of the next entry.
    fn tree(&self) -> Option<u32> {
        self.heads.peek().map(|Reverse((tree, ..))| *tree)
    }
}

impl<D: Device + 'static> Shard<D> {
    /// Pages that runs may take. A store that is opened without runs sweeps those that it finds.
    pub(super) fn pages_for_runs(&self) -> u64 {
        if self.options.runs == 0 {
            return 0;
        }
        let least = if self.options.are_runs_eager() { EAGER_PAGES } else { LEAST_SHARE };
        (self.space.used() / 100 * u64::from(self.options.runs)).max(least)
    }

    /// Pages of a run, about.
    fn pages_of_a_run(&self) -> u64 {
        if self.options.are_runs_eager() {
            return EAGER_PAGES;
        }
        (self.pages_for_runs() / RUN_PART).clamp(RUN_PAGES.0, RUN_PAGES.1)
    }

    /// Bytes of a tree's records below which no run is made of them: there would be too many runs to look into.
    fn least_bytes(&self) -> u64 {
        if self.options.are_runs_eager() {
            1
        } else {
            self.pages_of_a_run() / 2 * u64::from(self.page_bytes())
        }
    }

    /// Whether pending records should go into runs in place of their leaves: where few wait for each leaf, and the drive has room.
    fn is_worth_spilling(&self) -> bool {
        let is_eager = self.options.are_runs_eager();
        let least_pages = if is_eager { EAGER_PAGES } else { RUN_PAGES.0 };
        let runs = self.runs.borrow();
        self.options.runs > 0
            && runs.newest() + MADE_TOGETHER as u32 <= MOST_RUNS
            && runs.unswept_pages() < self.pages_for_runs()
            && runs.filter_bytes() < self.options.filter_bytes()
            && runs.size().0 < MOST_AT_ONCE
            && self.records.borrow().are_enough(self.least_bytes())
            // Merging needs pages for splits, and what fills the store must not find itself without.
            && self.space.available() > self.space.pages() / 16 + 4 * least_pages
            && self.log_left() >= MADE_TOGETHER as u64 * self.change_bytes() + self.log.capacity() / 32
    }

    /// Has records leave memory for runs. Whether any has.
    pub async fn spill(self: &Rc<Self>, which: Which) -> bool {
        if !self.is_worth_spilling() || self.runs.borrow_mut().passes_over() {
            return false;
        }
        let shard = Rc::clone(self);
        // What is in the log must be in the catalogue, also if who waits for that gives up.
        to_its_end(&self.handle, async move {
            let _turn = shard.spilling.take().await;
            shard.records.borrow_mut().pin(true);
            shard.runs.borrow_mut().look_at_uses();
            let any = shard.spill_in_turn(which).await;
            shard.records.borrow_mut().pin(false);
            if !any && !shard.options.are_runs_eager() {
                shard.runs.borrow_mut().passed_over = PASSED_OVER;
            }
            shard.sweep_runs_later();
            shard.room.notify();
            any
        })
        .await
    }

    async fn spill_in_turn(self: &Rc<Self>, which: Which) -> bool {
        let mut sorted = self.sort(which).await;
        let (mut any, mut goes_on) = (false, true);
        while goes_on && self.health.check().is_ok() && self.is_worth_spilling() {
            // Without pages, or where the drive refuses, records stay where they are.
            let mut made = Vec::new();
            while goes_on
                && made.len() < MADE_TOGETHER
                && let Some(of) = sorted.tree()
            {
                let number = self.runs.borrow().newest() + 1 + made.len() as u32;
                let run = self.make_run(&mut sorted, of, number).await;
                goes_on = run.is_ok();
                made.extend(run.ok().flatten());
            }
            goes_on &= sorted.tree().is_some();
            if !made.is_empty() {
                let registered = self.register(made).await;
                goes_on &= registered.is_ok();
                any |= registered.is_ok();
            }
            self.runs.borrow_mut().making.clear();
        }
        any
    }

    /// Gathers the entries that should go.
    async fn gather(&self, which: Which) -> Vec<Place> {
        let (chunks, most) = {
            let records = self.records.borrow();
            (records.chunks_to_spill(which), records.most_to_spill(which))
        };
        let (mut places, mut bytes) = (Vec::new(), 0);
        // Entries are pinned, so a chunk stays what it was.
        self.each_chunk(&chunks, |records, chunk| {
            let (some, of_chunk) = records.to_spill(which, chunk);
            places.extend(some);
            bytes += of_chunk;
            bytes < most
        })
        .await;
        places
    }

    /// Gathers the entries that should go, and sorts them piece by piece.
    async fn sort(&self, which: Which) -> Sorted {
        let places = self.gather(which).await;
        let thin = (!self.options.are_runs_eager()).then(|| {
            let mut thin = self.records.borrow().thin_trees(&places, self.least_bytes());
            thin.retain(|tree| self.runs.borrow().are_left_alone(*tree));
            thin
        });
        let mut sorted = Sorted { pieces: Vec::new(), heads: BinaryHeap::new() };
        for piece in places.chunks(SORTED_TOGETHER) {
            {
                let records = self.records.borrow();
                let goes = |place: &&Place| {
                    thin.as_ref().is_none_or(|thin| thin.contains(&records.key_of(**place).0))
                };
                let mut piece: Vec<Place> = piece.iter().filter(goes).copied().collect();
                piece.sort_unstable_by(|a, b| records.key_of(*a).cmp(&records.key_of(*b)));
                sorted.pieces.push(piece.into_iter());
            }
            self.handle.pause().await;
        }
        for piece in 0..sorted.pieces.len() {
            self.next_head(&mut sorted, piece);
        }
        sorted
    }

    fn next_head(&self, sorted: &mut Sorted, piece: usize) {
        let records = self.records.borrow();
        // One that has died since it was sorted would stand behind all others, and so would those after it in its piece.
        if let Some(place) = sorted.pieces[piece].find(|place| records.still_pending(*place)) {
            let (tree, key) = records.key_of(place);
            sorted.heads.push(Reverse((tree, key.to_vec(), place, piece)));
        }
    }

    /// Writes a run of the next entries of a tree. None if all of them stay in memory.
    async fn make_run(
        self: &Rc<Self>,
        sorted: &mut Sorted,
        of: u32,
        number: u32,
    ) -> Result<Option<Made<D>>, Error> {
        let root = self.pick().await?;
        let tree = Tree { id: FIRST_RUN_TREE | number, root };
        let mut load = Load::of_run(Rc::clone(self), tree);
        let most = self.pages_of_a_run().min(u64::from(self.frames / 4)) as usize;
        let (mut places, mut hashes) = (Vec::new(), Vec::new());
        let mut keys: Option<(Vec<u8>, Vec<u8>)> = None;
        let mut looked = 0;
        while load.pages() < most
            && sorted.tree() == Some(of)
            && let Some(Reverse((_, key, place, piece))) = sorted.heads.pop()
        {
            self.next_head(sorted, piece);
            looked += 1;
            if looked % PUT_TOGETHER == 0 {
                self.handle.pause().await;
            }
            let hash = hash_of_key(of, &key);
            let Some(value) = self.take_for_run(of, &key, hash, place) else { continue };
            places.push(place);
            hashes.push(hash);
            let low = keys.take().map_or_else(|| key.clone(), |(low, _)| low);
            keys = Some((low, key.clone()));
            let found = cell(value.as_deref());
            load.push(key, found.bytes.to_vec(), found.large).await?;
        }
        let Some((low, high)) = keys else { return Ok(None) };
        let root = load.write().await?;
        let (pages, filter) = (load.pages() as u64, Some(Filter::new(hashes.into_iter())));
        let run = Run { number, of, tree, low, high, pages, filter, sweep: Flag::new(Sweep::Not) };
        Ok(Some(Made { run, load, root, places }))
    }

    /// The value of an entry that goes into a run. None of one that stays: it was written since, somebody asks for it, or what it replaces is
    /// beneath it for readers of older states.
    fn take_for_run(&self, of: u32, key: &[u8], hash: u64, place: Place) -> Option<Option<Vec<u8>>> {
        if of < FIRST_USER_TREE || self.versions.borrow().has_beneath(of, key) {
            return None;
        }
        let mut records = self.records.borrow_mut();
        let entry = records.begin_to_spill(place)?;
        self.runs.borrow_mut().making.insert(hash);
        Some(entry.value.map(<[u8]>::to_vec))
    }

    /// Makes runs part of the store, durably: their pages, and the catalogue's records of them. Then their records leave memory.
    async fn register(self: &Rc<Self>, made: Vec<Made<D>>) -> Result<(), Error> {
        // Out of place, the map of pages has to be durable too.
        if !planted!(self.options, RunBeforePages) {
            self.pages.flush().await?;
        }
        let (mut in_log, mut outcome) = (Vec::new(), Ok(()));
        for Made { run, load, root, places } in made {
            let of = run.of;
            match self.append_run(run, load, &root).await {
                Ok(lsn) => in_log.push((lsn, of, places)),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if let Some((lsn, ..)) = in_log.last() {
            self.make_own_durable(*lsn).await?;
        }
        for (_, of, places) in in_log {
            for some in places.chunks(SORTED_TOGETHER) {
                let gone = self.records.borrow_mut().spilled(some);
                self.runs.borrow_mut().count_spilled(of, gone);
                self.handle.pause().await;
            }
            self.runs.borrow_mut().counters.made += 1;
        }
        self.room.notify();
        outcome
    }

    /// Appends a run to the log, and has the catalogue name it.
    async fn append_run(self: &Rc<Self>, run: Run, load: Load<D>, root: &[u8]) -> Result<Lsn, Error> {
        let known = Known { number: run.number, of: run.of, root: run.tree.root };
        let (name, value) = known.write();
        let op = |key: Vec<u8>, value: Vec<u8>| Op {
            tree: CATALOGUE,
            key: key.into(),
            value: Some(value.into()),
            large: false,
        };
        let ops = vec![op(name, value), op(known::NEWEST.to_vec(), known::newest(run.number))];
        let (since, lsn) = load.finish_run(root, ops.clone()).await?;
        self.commits.borrow_mut().append(since, lsn, true);
        // In one step with the log: whoever brings something newer into a leaf from here on looks into the run.
        self.runs.borrow_mut().add(run);
        self.apply_own(&ops, (since, lsn)).await?;
        Ok(lsn)
    }

    /// Does operations on the catalogue that are in the log.
    pub(super) async fn apply_own(&self, ops: &[Op], (since, lsn): (Lsn, Lsn)) -> Result<(), Error> {
        let at = Applied { since, lsn, keep_old: false };
        for op in ops {
            let applied = insist(async || self.apply(self.tree(CATALOGUE)?, op, at).await);
            if let Err(error) = applied.await {
                return Err(self.stop_unapplied(&error));
            }
        }
        self.commits.borrow_mut().applied(lsn);
        Ok(())
    }

    /// Waits until such operations are durable.
    pub(super) async fn make_own_durable(&self, lsn: Lsn) -> Result<(), Error> {
        if !planted!(self.options, SpilledTooEarly) {
            self.log.sync(lsn).await?;
        }
        self.advance();
        Ok(())
    }
}
