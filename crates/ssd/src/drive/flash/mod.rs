//! The flash: dies and channels in virtual time.
//!
//! A die performs one operation at a time. A read occupies the die for the array time, and then until the
//! channel has transferred the page. A program occupies it from the transfer to the end of the array time.
//! Channels serve transfers in order of request. Pages of one row (the same page of the planes of a die) are
//! read or programmed by one multi-plane operation. The schedule may allow two exceptions: a host operation
//! may overlap a collection operation of the same kind (the array time of one with the transfer of the
//! other), and a host read may suspend a program or an erase.
//!
//! This module models the abilities of a die. Other modules decide its next operation: host operations wait
//! here in queues, and [`Flash::next_host`] takes from them; the collector starts collection operations when
//! no host operation waits for the die.

mod op;
mod word_line;
mod die;
mod program;
mod work;

pub(super) use die::Next;
pub(super) use op::{FlashOp, FlashOpKind, OpId, members};
pub(super) use program::HostPages;

use super::busy::DieState;
use super::contents::Contents;
use super::tournament::{NEVER, Tournament};
use super::waits::Waits;
use crate::SsdConfig;
use crate::layout::{Layout, Place};
use crate::nand::{Nand, NandError};
use die::Die;
use fulgurite_base::{Nanos, Ppn};
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Ftl, SegmentId};
use slab::Slab;
use std::collections::VecDeque;
use word_line::WordLine;

/// The physical pages that are not programmed yet, each with the previous physical page of its logical page.
pub(super) type Undo = VecDeque<(Ppn, Option<Ppn>)>;

/// Counts of flash operations and pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Performed {
    pub(crate) pages_read: u64,
    pub(crate) pages_programmed: u64,
    /// The number of pages of parity programmed, which `pages_programmed` leaves out.
    pub(crate) parity_pages: u64,
    pub(crate) flash_pages_read: u64,
    pub(crate) flash_pages_programmed: u64,
    pub(crate) blocks_erased: u64,
    pub(crate) operations: u64,
    pub(crate) suspensions: u64,
    pub(crate) overlaps: u64,
    /// The number of pages whose program a power cut has prevented.
    pub(crate) pages_lost: u64,
}

/// The transfers of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    /// The virtual time at which the channel is next free.
    free: u64,
    /// The time of all transfers, those that are reserved included.
    reserved: u64,
}

pub(super) struct Flash {
    pub(crate) layout: Layout,
    word_line: WordLine,
    erase: u64,
    transfer: u64,
    suspend: u64,
    resume: u64,
    suspensions: u32,
    suspend_points: u32,
    /// The number of pages in a row.
    pub(crate) row_pages: u32,
    /// Whether an incomplete row of copies waits in the protected buffer for further pages.
    pub(crate) keeps_copies: bool,
    /// The number of rows of data that a row of parity follows; 0 without parity.
    data_rows: u32,
    in_place: bool,
    schedule: Schedule,
    dies: Vec<Die>,
    /// The number of queued and running operations by unit, or by die if units are planes. Empty on a drive
    /// of one unit.
    pub(crate) loads: Vec<u32>,
    channels: Vec<Channel>,
    pub(crate) ops: Slab<FlashOp>,
    /// The program operations that still have planes to fill, at most one for each stream.
    partial: Vec<OpId>,
    /// The dies to examine before the next event, because they may have an operation to start.
    pub(crate) touched: Vec<u32>,
    pub(crate) nand: Nand,
    /// The next event of each slot. Slots `0..dies` are the dies; the host side uses the others.
    pub(crate) events: Tournament,
    pub(crate) now: u64,
    /// The flush epoch of host pages that are placed now. Each flush ends an epoch.
    pub(crate) epoch: u32,
    pub(crate) performed: Performed,
    pub(crate) fault: Option<NandError>,
    pub(crate) contents: Option<Contents>,
    /// The rollback list for power cuts; `None` unless the write buffer is volatile.
    pub(crate) undo: Option<Undo>,
}

impl Flash {
    pub(super) fn new(config: &SsdConfig, ftl: Option<&Ftl>, host_slots: usize, contents: bool) -> Flash {
        let dies = config.dies_in_all() as usize;
        Flash {
            layout: Layout::new(config),
            word_line: WordLine::new(config),
            erase: config.erase.0,
            transfer: config.transfer.0,
            suspend: config.suspend.0,
            resume: config.resume.0,
            suspensions: config.suspensions,
            suspend_points: config.suspend_points,
            row_pages: config.row_pages(),
            keeps_copies: config.has_shared_rows(),
            data_rows: config.parity.saturating_sub(1),
            in_place: config.in_place,
            schedule: config.collect.schedule,
            dies: vec![Die::default(); dies],
            loads: vec![0; if config.units() == 1 { 0 } else { dies.min(config.units() as usize) }],
            channels: vec![Channel::default(); config.channels as usize],
            ops: Slab::new(),
            partial: Vec::new(),
            touched: Vec::new(),
            nand: Nand::new(config.rows(), ftl.map_or_else(Vec::new, |ftl| programmed_pages(config, ftl))),
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

    /// Returns whether no die has an operation and no program waits for more planes.
    pub(super) fn is_idle(&self) -> bool {
        self.ops.is_empty()
    }

    #[inline]
    pub(super) fn touch(&mut self, die: u32) {
        self.touched.push(die);
    }

    /// Returns whether a page has been programmed; otherwise it is still in a buffer.
    #[inline]
    pub(super) fn is_programmed(&self, place: Place) -> bool {
        self.in_place || self.nand.is_programmed(place.block, place.page)
    }

    /// Queues a flash read of a host command for the page at `place`. If the page is in the row of `last`,
    /// the read that was queued before, the page is added to that read. Returns the read that has the page.
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

    /// Performs the event of `die` at the current time. Returns the operation that has ended, if any, with
    /// its number.
    #[inline]
    pub(super) fn event(&mut self, die: usize) -> Option<(OpId, FlashOp)> {
        let id = self.dies[die].current?;
        let op = &mut self.ops[id.key()];
        if !op.second_phase && !op.is_erase() {
            op.second_phase = true;
            let end = match op.is_read() {
                true => self.reserve_channel(die as u32, id),
                false => self.now + self.word_line.program(op.page),
            };
            self.ops[id.key()].until = end;
            self.events.set(die, end);
            // Touches the die, because another operation may overlap in the second phase.
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
        state.booked.add(&op, self.now);
        if !op.collects() {
            state.host_busy += self.now - op.since;
        }
        state.current = state.follower.take();
        self.go_on_with_follower(die);
        self.touch(die as u32);
        Some((id, op))
    }

    /// Clears the next event of a die that has no operation.
    #[inline]
    pub(super) fn quiet_if_idle(&mut self, die: u32) {
        if self.dies[die as usize].current.is_none() && self.events.time(die as usize) != NEVER {
            self.events.set(die as usize, NEVER);
        }
    }

    /// Counts an operation that has ended, and checks it against the rules of NAND.
    #[inline]
    fn perform(&mut self, op: &FlashOp) {
        let pages = u64::from(op.pages());
        self.performed.operations += 1;
        match &op.kind {
            FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead => {
                self.performed.pages_read += pages;
                self.performed.flash_pages_read += self.word_line.flash_pages(op.in_row);
            }
            FlashOpKind::Program(_) => {
                self.performed.pages_programmed += pages;
                self.performed.flash_pages_programmed += self.word_line.flash_pages(op.in_row);
            }
            FlashOpKind::Parity => {
                self.performed.parity_pages += pages;
                self.performed.flash_pages_programmed += self.word_line.flash_pages(op.in_row);
            }
            FlashOpKind::Erase => self.performed.blocks_erased += self.word_line.erase_blocks(pages),
        }
        if self.in_place {
            return;
        }
        let checked = op.blocks().try_for_each(|block| match &op.kind {
            FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead => self.nand.read(block, op.page),
            FlashOpKind::Program(_) => self.nand.program(block, op.page),
            // Parity lies between rows of data, whose numbers leave it out.
            FlashOpKind::Parity => Ok(()),
            FlashOpKind::Erase => {
                self.nand.erase(block);
                Ok(())
            }
        });
        if let Err(fault) = checked {
            // Keeps the first violation, since later ones may follow from it.
            self.fault.get_or_insert(fault);
        }
    }

    /// Reserves the channel for the pages of an operation. Returns the end of their transfers.
    #[inline]
    fn reserve_channel(&mut self, die: u32, id: OpId) -> u64 {
        let op = &mut self.ops[id.key()];
        let channel = &mut self.channels[self.layout.channel(die)];
        op.waits.channel += channel.free.saturating_sub(self.now);
        let time = self.transfer * u64::from(op.pages());
        channel.free = self.now.max(channel.free) + time;
        channel.reserved += time;
        channel.free
    }

    /// Returns the load counter of the unit of `die`; `None` on a drive of one unit.
    #[inline]
    fn load(&mut self, die: u32) -> Option<&mut u32> {
        // Returns early, because a division for each operation would be noticeable on a drive of one unit.
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
            block: place.block - place.block % self.row_pages,
            in_row: 0,
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

    /// Returns the states of the dies, with the time of the operations that have not ended.
    pub(super) fn die_states(&self) -> Vec<DieState> {
        let state = |(number, die): (usize, &Die)| {
            let current = die.current.map(|op| &self.ops[op.key()]);
            let mut booked = die.booked;
            if let Some(op) = current {
                booked.add(op, self.now);
            }
            DieState {
                channel: self.layout.channel(number as u32) as u32,
                busy: booked.busy,
                collects: current.is_some_and(FlashOp::collects),
                waiting: (die.reads.len() + die.work.len()) as u32,
            }
        };
        self.dies.iter().enumerate().map(state).collect()
    }

    /// Returns the time that each channel has spent on transfers until now.
    pub(super) fn channels_busy(&self) -> Vec<Nanos> {
        // The transfers that are reserved follow each other without a pause.
        let busy = |channel: &Channel| channel.reserved - channel.free.saturating_sub(self.now);
        self.channels.iter().map(|channel| Nanos(busy(channel))).collect()
    }

    /// Ends all operations in progress at a power cut. With a `protected` buffer, pending pages are
    /// programmed. Otherwise their physical pages are padded, so that the rest of those erase blocks can be
    /// used.
    pub(super) fn power_off(&mut self, protected: bool) {
        for state in &mut self.dies {
            if let Some(current) = state.current {
                state.booked.add(&self.ops[current.key()], self.now);
            }
        }
        for op in self.ops.drain().filter(|op| matches!(op.kind, FlashOpKind::Program(_))) {
            op.blocks().for_each(|block| self.nand.pad(block, op.page));
            let pages =
                if protected { &mut self.performed.pages_programmed } else { &mut self.performed.pages_lost };
            *pages += u64::from(op.pages());
            // Drops the bytes of a lost page, because a read that still refers to it must not find them. On a
            // medium overwritten in place the bytes stay, because the write may have taken effect.
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
        for channel in &mut self.channels {
            channel.reserved -= channel.free.saturating_sub(self.now);
            channel.free = self.now;
        }
        self.loads.fill(0);
    }
}

#[cfg(test)]
impl Flash {
    /// Returns whether the next event of `die` is the end of a read of collection.
    pub(super) fn ends_move_read(&self, die: usize) -> bool {
        let current = self.dies[die].current.map(|id| &self.ops[id.key()]);
        current.is_some_and(|op| matches!(op.kind, FlashOpKind::MoveRead) && op.second_phase)
    }

    /// Empties the read queue of `die`.
    pub(super) fn forget_reads(&mut self, die: usize) {
        self.dies[die].reads.clear();
    }
}

/// Returns the number of pages of each erase block that a preconditioned FTL has written.
fn programmed_pages(config: &SsdConfig, ftl: &Ftl) -> Vec<u16> {
    let stripe = config.stripe_pages();
    let segments = ftl.segments();
    (0..segments.len())
        .flat_map(|segment| {
            let written = segments.written(SegmentId(segment));
            // Consecutive pages fill a stripe, so position `lane` has every `stripe`th page from `lane` on.
            (0..stripe).map(move |lane| (written.saturating_sub(lane)).div_ceil(stripe) as u16)
        })
        .collect()
}
