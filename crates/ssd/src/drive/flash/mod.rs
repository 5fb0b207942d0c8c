//! Dies and channels in virtual time.
//!
//! A die does one operation at a time. A read occupies it for the array time and until the channel
//! has taken the page; a program holds it from the transfer to the end of the array time. Channels
//! serve in order of request. Pages of one row (the same page of the planes of a die) are read or
//! programmed by one multi-plane operation. Two exceptions, where the schedule has them: a host
//! operation may overlap one of collection of the same kind (its array time with the other's
//! transfer), and a host read may suspend a program or an erase.
//!
//! This file knows what a die can do. What it should do next is decided elsewhere: host operations
//! wait here in queues, and [`Flash::next_host`] takes from them; the collector starts operations of
//! collection when no host operation waits for the die.

mod die;
mod op;
mod program;

pub(super) use die::Next;
pub(super) use op::{FlashOp, FlashOpKind, OpId, blocks_of};
pub(super) use program::HostPages;

use super::contents::Contents;
use super::power::Undo;
use super::tournament::{NEVER, Tournament};
use super::waits::Waits;
use crate::SsdConfig;
use crate::layout::{Layout, Place};
use crate::nand::{Nand, NandError};
use die::Die;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Ftl, SegmentId};
use slab::Slab;

/// Host reads that may go, one after another, before work that waits on the same die: a bound on
/// how long writes can starve.
const READ_BURST: u8 = 16;

/// Operations performed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Performed {
    pub pages_read: u64,
    pub pages_programmed: u64,
    pub blocks_erased: u64,
    pub operations: u64,
    pub suspensions: u64,
    pub overlaps: u64,
    /// Pages that a power cut kept from being programmed.
    pub pages_lost: u64,
}

pub(super) struct Flash {
    pub layout: Layout,
    read: u64,
    program: u64,
    erase: u64,
    transfer: u64,
    suspend: u64,
    pub planes: u32,
    in_place: bool,
    schedule: Schedule,
    dies: Vec<Die>,
    /// Operations that wait or run, by unit; by die where units are planes. Empty where there is one unit.
    pub loads: Vec<u32>,
    /// When each channel is next free.
    channels: Vec<u64>,
    pub ops: Slab<FlashOp>,
    /// Program operations that still have planes to fill, at most one for each stream.
    partial: Vec<OpId>,
    /// Dies to look at before the next event: they may have something to start.
    pub touched: Vec<u32>,
    pub nand: Nand,
    /// Slots `0..dies` are the dies; the host side uses the rest.
    pub events: Tournament,
    pub now: u64,
    /// The flush epoch that new host pages belong to.
    pub epoch: u32,
    pub performed: Performed,
    pub fault: Option<NandError>,
    pub contents: Option<Contents>,
    /// Kept where the write buffer is volatile.
    pub undo: Option<Undo>,
}

impl Flash {
    pub(super) fn new(config: &SsdConfig, ftl: Option<&Ftl>, host_slots: usize, contents: bool) -> Flash {
        let dies = config.dies_in_all() as usize;
        Flash {
            layout: Layout::new(config),
            read: config.read.0,
            program: config.program.0,
            erase: config.erase.0,
            transfer: config.transfer.0,
            suspend: config.suspend.0,
            planes: config.row_planes(),
            in_place: config.in_place,
            schedule: config.collect.schedule,
            dies: vec![Die::default(); dies],
            loads: vec![0; if config.units() == 1 { 0 } else { dies.min(config.units() as usize) }],
            channels: vec![0; config.channels as usize],
            ops: Slab::new(),
            partial: Vec::new(),
            touched: Vec::new(),
            nand: Nand::new(config.pages, ftl.map_or_else(Vec::new, |ftl| programmed_pages(config, ftl))),
            events: Tournament::new(dies + host_slots),
            now: 0,
            epoch: 0,
            performed: Performed::default(),
            fault: None,
            contents: contents.then(Contents::default),
            undo: None,
        }
    }

    pub(super) fn dies(&self) -> usize {
        self.dies.len()
    }

    /// Whether no die has anything to do and no program is waiting for more planes.
    pub(super) fn is_idle(&self) -> bool {
        self.ops.is_empty()
    }

    #[inline]
    pub(super) fn touch(&mut self, die: u32) {
        self.touched.push(die);
    }

    /// Whether a page has been programmed, rather than waiting for it in a buffer.
    #[inline]
    pub(super) fn is_programmed(&self, place: Place) -> bool {
        self.in_place || self.nand.is_programmed(place.block, place.page)
    }

    /// Queues a flash read of a host command for the page at `place`, or adds the page to `last`, the
    /// read queued before, where it lies in the same row. Returns the read that has the page.
    pub(super) fn host_read(&mut self, command: u32, place: Place, last: Option<OpId>) -> OpId {
        let op = last.filter(|op| self.ops[op.key()].row == place.row).unwrap_or_else(|| {
            let op = self.insert(FlashOpKind::HostRead { command, merged: 0 }, place);
            self.dies[place.die as usize].reads.push_back(op);
            self.touch(place.die);
            op
        });
        self.ops[op.key()].add(place);
        op
    }

    /// Performs the event of `die` at the current time: an operation that has ended, if one has, with
    /// its number.
    #[inline]
    pub(super) fn event(&mut self, die: usize) -> Option<(OpId, FlashOp)> {
        let id = self.dies[die].current?;
        let op = &mut self.ops[id.key()];
        if !op.second_phase && !op.is_erase() {
            op.second_phase = true;
            let end =
                if op.is_read() { self.reserve_channel(die as u32, id) } else { self.now + self.program };
            self.ops[id.key()].until = end;
            self.events.set(die, end);
            // The second phase is where another operation may overlap.
            if self.schedule.pipeline {
                self.touch(die as u32);
            }
            return None;
        }
        let op = self.ops.remove(id.key());
        if let Some(load) = self.load(op.die) {
            *load -= 1;
        }
        self.perform(&op);
        let state = &mut self.dies[die];
        if !op.collects() {
            state.host_busy += self.now - op.since;
        }
        state.current = state.follower.take();
        self.go_on_with_follower(die);
        self.touch(die as u32);
        Some((id, op))
    }

    /// A die that was left without anything to do has no next event.
    #[inline]
    pub(super) fn quiet_if_idle(&mut self, die: u32) {
        if self.dies[die as usize].current.is_none() && self.events.time(die as usize) != NEVER {
            self.events.set(die as usize, NEVER);
        }
    }

    /// Counts an operation that has ended, and enforces the rules of NAND on it.
    #[inline]
    fn perform(&mut self, op: &FlashOp) {
        let pages = u64::from(op.pages());
        self.performed.operations += 1;
        match &op.kind {
            FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead => self.performed.pages_read += pages,
            FlashOpKind::Program(_) => self.performed.pages_programmed += pages,
            FlashOpKind::Erase => self.performed.blocks_erased += pages,
        }
        if self.in_place {
            return;
        }
        let checked = op.blocks().try_for_each(|block| match &op.kind {
            FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead => self.nand.read(block, op.page),
            FlashOpKind::Program(_) => self.nand.program(block, op.page),
            FlashOpKind::Erase => {
                self.nand.erase(block);
                Ok(())
            }
        });
        if let Err(fault) = checked {
            // The first fault is kept, since later ones may follow from it.
            self.fault.get_or_insert(fault);
        }
    }

    /// Takes the channel for the pages of an operation and returns when their transfers end.
    #[inline]
    fn reserve_channel(&mut self, die: u32, id: OpId) -> u64 {
        let op = &mut self.ops[id.key()];
        let free = &mut self.channels[self.layout.channel(die)];
        op.waits.channel += free.saturating_sub(self.now);
        *free = self.now.max(*free) + self.transfer * u64::from(op.pages());
        *free
    }

    /// How many operations of the unit of `die` there are, where units are told apart.
    #[inline]
    fn load(&mut self, die: u32) -> Option<&mut u32> {
        // A division for each operation would show on a drive of one unit.
        if self.loads.is_empty() {
            return None;
        }
        let units = self.loads.len();
        Some(&mut self.loads[die as usize % units])
    }

    #[inline]
    fn insert(&mut self, kind: FlashOpKind, place: Place) -> OpId {
        if let Some(load) = self.load(place.die) {
            *load += 1;
        }
        let op = FlashOp {
            kind,
            die: place.die,
            row: place.row,
            block: place.block - place.block % self.planes,
            planes: 0,
            page: place.page,
            second_phase: false,
            suspensions: 0,
            since: self.now,
            host_busy: self.host_busy(place.die),
            until: 0,
            waits: Waits::default(),
        };
        OpId::of_key(self.ops.insert(op))
    }

    /// Ends everything under way. What was to be programmed is programmed if the buffer is
    /// `protected`; if not its pages are padded, so that the rest of those erase blocks can be used.
    pub(super) fn power_off(&mut self, protected: bool) {
        for op in self.ops.drain().filter(FlashOp::is_program) {
            op.blocks().for_each(|block| self.nand.pad(block, op.page));
            let pages =
                if protected { &mut self.performed.pages_programmed } else { &mut self.performed.pages_lost };
            *pages += u64::from(op.pages());
            // Whoever still looks for a lost page there must not find its bytes. In place, the page may as well have been written.
            if let (false, false, Some(contents)) = (protected, self.in_place, &mut self.contents) {
                op.blocks().for_each(|block| contents.remove(self.layout.page_at(block, op.page)));
            }
        }
        for (die, state) in self.dies.iter_mut().enumerate() {
            (state.current, state.follower, state.suspended) = (None, None, None);
            state.reads.clear();
            state.work.clear();
            self.events.set(die, NEVER);
        }
        self.channels.fill(self.now);
        self.loads.fill(0);
    }
}

#[cfg(test)]
impl Flash {
    /// Whether the next event of `die` is the end of a read of collection.
    pub(super) fn ends_move_read(&self, die: usize) -> bool {
        let current = self.dies[die].current.map(|id| &self.ops[id.key()]);
        current.is_some_and(|op| matches!(op.kind, FlashOpKind::MoveRead) && op.second_phase)
    }

    /// Takes the reads out of the queue of `die`.
    pub(super) fn forget_reads(&mut self, die: usize) {
        self.dies[die].reads.clear();
    }
}

/// How many pages of each erase block a preconditioned FTL has written.
fn programmed_pages(config: &SsdConfig, ftl: &Ftl) -> Vec<u16> {
    let planes = config.planes_per_unit();
    let segments = ftl.segments();
    (0..segments.len())
        .flat_map(|segment| {
            let written = segments.written(SegmentId(segment));
            // Consecutive pages go round the planes, so plane `lane` has every `planes`th page from `lane` on.
            (0..planes).map(move |lane| (written.saturating_sub(lane)).div_ceil(planes) as u16)
        })
        .collect()
}
