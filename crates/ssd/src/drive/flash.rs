//! Dies and channels in virtual time.
//!
//! A die does one operation at a time. A read occupies it for the array time and until the channel
//! has taken the page; a program holds it from the transfer to the end of the array time. Channels
//! serve in order of request. Pages of one row (the same page of the planes of a die) are read or
//! programmed by one multi-plane operation. Two exceptions, where the schedule has them: a host
//! operation may overlap one of collection of the same kind (its array time with the other's
//! transfer), and a host read may suspend a program or an erase.
//!
//! This file knows what a die can do, not what it should do next: host operations wait here in
//! queues, and [`Flash::next_host`] takes from them; operations of collection are started by the
//! collector when the host leaves the die to it.

use super::contents::Contents;
use super::power::Undo;
use super::tournament::{NEVER, Tournament};
use super::waits::Waits;
use crate::SsdConfig;
use crate::config::MAX_PLANES;
use crate::layout::{Layout, Place};
use crate::nand::{Nand, NandError};
use fulgurite_base::Ppn;
use fulgurite_ftl::Ftl;
use fulgurite_ftl::schedule::{SUSPENSIONS, Schedule};
use fulgurite_ftl::{FlashSink, SegmentId};
use slab::Slab;
use std::collections::VecDeque;

/// Host reads that may go, one after another, before work that waits on the same die: a bound on
/// how long writes can starve.
const READ_BURST: u8 = 16;

/// No operation, or no command.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    HostRead {
        command: u32,
    },
    /// A read of garbage collection.
    MoveRead,
    Program,
    Erase,
}

/// One operation of a die, on up to one page in each of its planes.
#[derive(Clone, Debug)]
pub(super) struct FlashOp {
    pub kind: Kind,
    pub die: u32,
    /// [`Place::row`] of its pages.
    row: u32,
    /// The erase block of plane 0, and which planes take part.
    pub block: u32,
    pub planes: u8,
    pub page: u32,
    /// In its second phase: a read in its transfer, a program in its array time.
    second_phase: bool,
    suspensions: u8,
    /// Pages of a program that came from the host.
    pub host_pages: u8,
    /// Copies in a program, and the dies from which they came.
    pub copies: u8,
    pub sources: [u32; MAX_PLANES],
    /// Pages of a host read, by plane, that collection takes along.
    pub merged: u8,
    /// Flush epoch of the host's pages.
    pub epoch: u32,
    /// The write that waits for a program, or [`NONE`].
    pub command: u32,
    queued: u64,
    /// What the die had worked for the host when this was queued.
    host_busy: u64,
    pub started: u64,
    /// The end of the phase under way.
    until: u64,
    pub waits: Waits,
}

impl FlashOp {
    pub(super) fn pages(&self) -> u32 {
        self.planes.count_ones()
    }

    /// Adds the page at `place`, which lies in the op's row.
    fn add(&mut self, place: Place) {
        self.planes |= 1 << (place.block - self.block);
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        blocks_of(self.block, self.planes)
    }

    /// Whether this operation is garbage collection's alone.
    pub(super) fn collects(&self) -> bool {
        match self.kind {
            Kind::HostRead { .. } => false,
            Kind::MoveRead | Kind::Erase => true,
            Kind::Program => self.host_pages == 0,
        }
    }

    fn is_read(&self) -> bool {
        matches!(self.kind, Kind::HostRead { .. } | Kind::MoveRead)
    }
}

/// The erase blocks of `planes` of the die whose first block is `first`.
pub(super) fn blocks_of(first: u32, planes: u8) -> impl Iterator<Item = u32> {
    (0..MAX_PLANES as u32).filter(move |plane| planes >> plane & 1 == 1).map(move |plane| first + plane)
}

#[derive(Clone, Debug)]
struct Die {
    current: u32,
    /// An operation that overlaps with `current` and becomes it.
    follower: u32,
    /// A program or an erase that was suspended, and what is left of it.
    suspended: u32,
    left: u64,
    /// Host reads, in order.
    reads: VecDeque<u32>,
    /// Programs of host pages, in the order in which the FTL emitted them; a program of copies is
    /// here from its emission to its start.
    work: VecDeque<u32>,
    reads_in_a_row: u8,
    /// Time spent on operations of the host that have ended.
    host_busy: u64,
}

/// What a die was given to do.
pub(super) enum Next {
    /// A host operation, or a program of copies.
    Started(u32),
    /// Nothing new: it is at work.
    Busy,
    /// Nothing: nothing of the host's waits for it.
    Nothing,
}

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
    /// When each channel is next free.
    channels: Vec<u64>,
    pub ops: Slab<FlashOp>,
    /// Program operations that still have planes to fill, at most one for each stream.
    partial: Vec<u32>,
    /// Dies to look at before the next event: they may have something to start.
    pub touched: Vec<u32>,
    pub nand: Nand,
    /// Slots `0..dies` are the dies; the host side uses the rest.
    pub events: Tournament,
    pub now: u64,
    /// The flush epoch that new host pages belong to.
    pub epoch: u32,
    /// The write whose pages are being emitted and waits for their programs, or [`NONE`]; and how
    /// many programs that are.
    pub waiting_write: (u32, u32),
    pub performed: Performed,
    pub fault: Option<NandError>,
    pub contents: Option<Contents>,
    /// Kept where the write buffer is volatile.
    pub undo: Option<Undo>,
}

impl Flash {
    pub(super) fn new(config: &SsdConfig, ftl: Option<&Ftl>, host_slots: usize, contents: bool) -> Flash {
        let dies = config.dies_in_all() as usize;
        let die = Die {
            current: NONE,
            follower: NONE,
            suspended: NONE,
            left: 0,
            reads: VecDeque::new(),
            work: VecDeque::new(),
            reads_in_a_row: 0,
            host_busy: 0,
        };
        Flash {
            layout: Layout::new(config),
            read: config.read.0,
            program: config.program.0,
            erase: config.erase.0,
            transfer: config.transfer.0,
            suspend: config.suspend.0,
            planes: config.planes,
            in_place: config.in_place,
            schedule: config.collect.schedule,
            dies: vec![die; dies],
            channels: vec![0; config.channels as usize],
            ops: Slab::new(),
            partial: Vec::new(),
            touched: Vec::new(),
            nand: Nand::new(config.pages, ftl.map_or_else(Vec::new, |ftl| programmed_pages(config, ftl))),
            events: Tournament::new(dies + host_slots),
            now: 0,
            epoch: 0,
            waiting_write: (NONE, 0),
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

    pub(super) fn touch_all(&mut self) {
        // Backwards, so that the lowest die is looked at first.
        self.touched.extend((0..self.dies.len() as u32).rev());
    }

    /// Whether a page has been programmed, rather than waiting for it in a buffer.
    #[inline]
    pub(super) fn is_programmed(&self, place: Place) -> bool {
        self.in_place || self.nand.is_programmed(place.block, place.page)
    }

    /// Queues a flash read of a host command for the page at `place`, or adds the page to `last`, the
    /// read queued before, where it lies in the same row. Returns the read that has the page.
    pub(super) fn host_read(&mut self, command: u32, place: Place, last: Option<u32>) -> u32 {
        let op = last.filter(|op| self.ops[*op as usize].row == place.row).unwrap_or_else(|| {
            let op = self.insert(Kind::HostRead { command }, place);
            self.dies[place.die as usize].reads.push_back(op);
            self.touch(place.die);
            op
        });
        self.ops[op as usize].add(place);
        op
    }

    /// Sends programs on their way although planes are left over, so that they can end.
    pub(super) fn close_partial(&mut self) {
        for op in std::mem::take(&mut self.partial) {
            self.queue_work(op);
        }
    }

    /// The same for programs that hold copies.
    pub(super) fn close_copies(&mut self) {
        while let Some(at) = self.partial.iter().position(|op| self.ops[*op as usize].copies > 0) {
            let op = self.partial.swap_remove(at);
            self.queue_work(op);
        }
    }

    /// Performs the event of `die` at the current time: an operation that has ended, if one has, with
    /// its number.
    pub(super) fn event(&mut self, die: usize) -> Option<(u32, FlashOp)> {
        let id = self.dies[die].current;
        let op = &mut self.ops[id as usize];
        if !op.second_phase && op.kind != Kind::Erase {
            op.second_phase = true;
            let end =
                if op.is_read() { self.reserve_channel(die as u32, id) } else { self.now + self.program };
            self.ops[id as usize].until = end;
            self.events.set(die, end);
            if self.schedule.pipeline {
                self.touch(die as u32);
            }
            return None;
        }
        let op = self.ops.remove(id as usize);
        self.perform(&op);
        let state = &mut self.dies[die];
        if !op.collects() {
            state.host_busy += self.now - op.started;
        }
        state.current = std::mem::replace(&mut state.follower, NONE);
        self.go_on_with_follower(die);
        self.touch(die as u32);
        Some((id, op))
    }

    /// A die that was left without anything to do has no next event.
    #[inline]
    pub(super) fn quiet_if_idle(&mut self, die: u32) {
        if self.dies[die as usize].current == NONE && self.events.time(die as usize) != NEVER {
            self.events.set(die as usize, NEVER);
        }
    }

    /// Gives the die to the operation that overlapped with the one before, if there was one.
    fn go_on_with_follower(&mut self, die: usize) {
        let id = self.dies[die].current;
        if id == NONE {
            return; // The die is touched: it gets something to do, or `quiet_if_idle` is called.
        }
        let op = &mut self.ops[id as usize];
        let is_read = op.is_read();
        let end = op.until.max(self.now);
        // A program's array time begins when both its transfer and the program before have ended.
        op.until = if is_read { end } else { end + self.program };
        op.second_phase = !is_read;
        self.events.set(die, op.until);
    }

    /// Counts an operation that has ended, and enforces the rules of NAND on it.
    fn perform(&mut self, op: &FlashOp) {
        let pages = u64::from(op.pages());
        self.performed.operations += 1;
        match op.kind {
            Kind::HostRead { .. } | Kind::MoveRead => self.performed.pages_read += pages,
            Kind::Program => self.performed.pages_programmed += pages,
            Kind::Erase => self.performed.blocks_erased += pages,
        }
        if self.in_place {
            return;
        }
        let checked = op.blocks().try_for_each(|block| match op.kind {
            Kind::HostRead { .. } | Kind::MoveRead => self.nand.read(block, op.page),
            Kind::Program => self.nand.program(block, op.page),
            Kind::Erase => {
                self.nand.erase(block);
                Ok(())
            }
        });
        if let Err(fault) = checked {
            self.fault.get_or_insert(fault);
        }
    }

    /// Takes the channel for the pages of an operation and returns when their transfers end.
    fn reserve_channel(&mut self, die: u32, id: u32) -> u64 {
        let op = &mut self.ops[id as usize];
        let free = &mut self.channels[self.layout.channel(die)];
        op.waits.channel += free.saturating_sub(self.now);
        *free = self.now.max(*free) + self.transfer * u64::from(op.pages());
        *free
    }

    fn insert(&mut self, kind: Kind, place: Place) -> u32 {
        let op = FlashOp {
            kind,
            die: place.die,
            row: place.row,
            block: place.block - place.block % self.planes,
            planes: 0,
            page: place.page,
            second_phase: false,
            suspensions: 0,
            host_pages: 0,
            copies: 0,
            sources: [0; MAX_PLANES],
            merged: 0,
            epoch: self.epoch,
            command: NONE,
            queued: self.now,
            host_busy: self.host_busy(place.die),
            started: 0,
            until: 0,
            waits: Waits::default(),
        };
        self.ops.insert(op) as u32
    }

    fn queue_work(&mut self, op: u32) {
        let die = self.ops[op as usize].die;
        self.dies[die as usize].work.push_back(op);
        self.touch(die);
    }

    /// Time that `die` has worked for the host up to now.
    fn host_busy(&self, die: u32) -> u64 {
        let Die { host_busy, current, .. } = self.dies[die as usize];
        let under_way = self.ops.get(current as usize).filter(|op| !op.collects());
        host_busy + under_way.map_or(0, |op| self.now - op.started)
    }

    /// Whether `die` does nothing and nothing waits for it but host reads.
    #[inline]
    pub(super) fn is_free(&self, die: u32) -> bool {
        let state = &self.dies[die as usize];
        state.current == NONE && state.suspended == NONE && state.work.is_empty()
    }

    /// Whether a host read waits on `die`.
    #[inline]
    pub(super) fn read_waits(&self, die: u32) -> bool {
        !self.dies[die as usize].reads.is_empty()
    }

    /// Starts what waits in the queues of `die`, if it can start now.
    #[inline]
    pub(super) fn next_host(&mut self, die: u32) -> Next {
        let state = &mut self.dies[die as usize];
        if state.current != NONE {
            return self.beside_current(die);
        }
        let work_waits = !state.work.is_empty() || state.suspended != NONE;
        let work_starves = work_waits && state.reads_in_a_row >= READ_BURST;
        // Before programs of host data, which were acknowledged from the buffer.
        if !state.reads.is_empty() && !work_starves {
            state.reads_in_a_row = state.reads_in_a_row.saturating_add(1);
            let id = state.reads.pop_front().expect("not empty");
            self.start(die, id);
            return Next::Started(id);
        }
        state.reads_in_a_row = 0;
        if state.suspended != NONE {
            self.resume(die);
            return Next::Busy;
        }
        match state.work.pop_front() {
            Some(id) => {
                self.start(die, id);
                Next::Started(id)
            }
            None => Next::Nothing,
        }
    }

    /// Starts a host operation although the die is at work: by overlapping, or by suspension.
    fn beside_current(&mut self, die: u32) -> Next {
        let state = &self.dies[die as usize];
        let read_waits = !state.reads.is_empty();
        if !read_waits && (!self.schedule.pipeline || state.work.is_empty()) {
            return Next::Busy;
        }
        let current = &self.ops[state.current as usize];
        if self.schedule.pipeline && current.collects() && current.second_phase && state.follower == NONE {
            match current.kind {
                Kind::MoveRead if read_waits => return Next::Started(self.follow(die, true)),
                Kind::Program if !read_waits => return Next::Started(self.follow(die, false)),
                _ => {}
            }
        }
        let is_in_array = match current.kind {
            Kind::Program => current.second_phase,
            kind => kind == Kind::Erase,
        };
        let can_stop = is_in_array && state.suspended == NONE && state.follower == NONE;
        let worth_it = current.until > self.now + self.suspend && current.suspensions < SUSPENSIONS;
        if self.schedule.suspends() && read_waits && can_stop && worth_it {
            return Next::Started(self.suspend(die));
        }
        Next::Busy
    }

    /// Starts the first host read, or program, of `die` while the operation under way goes on.
    fn follow(&mut self, die: u32, is_read: bool) -> u32 {
        let state = &mut self.dies[die as usize];
        let queue = if is_read { &mut state.reads } else { &mut state.work };
        let id = queue.pop_front().expect("it was looked at");
        state.follower = id;
        self.performed.overlaps += 1;
        self.set_out(die, id);
        let until = if is_read { self.now + self.read } else { self.reserve_channel(die, id) };
        self.ops[id as usize].until = until;
        id
    }

    /// Suspends the program or erase of `die` and starts the first host read in its place.
    fn suspend(&mut self, die: u32) -> u32 {
        let state = &mut self.dies[die as usize];
        let stopped = &mut self.ops[state.current as usize];
        // A program is only stopped in its array time, so its transfer is over first.
        let array_time = if stopped.kind == Kind::Erase { self.erase } else { self.program };
        let stop = self.now.max(stopped.until.saturating_sub(array_time));
        stopped.suspensions += 1;
        state.left = stopped.until - stop;
        if !stopped.collects() {
            state.host_busy += self.now - stopped.started;
        }
        state.suspended = std::mem::replace(&mut state.current, NONE);
        self.performed.suspensions += 1;
        let id = state.reads.pop_front().expect("it was looked at");
        self.start(die, id);
        let until = stop + self.suspend + self.read;
        self.ops[id as usize].until = until;
        self.events.set(die as usize, until);
        id
    }

    fn resume(&mut self, die: u32) {
        let state = &mut self.dies[die as usize];
        let id = std::mem::replace(&mut state.suspended, NONE);
        state.current = id;
        state.reads_in_a_row = 0;
        let op = &mut self.ops[id as usize];
        op.started = self.now;
        op.until = self.now + state.left;
        self.events.set(die as usize, op.until);
    }

    /// Notes that an operation leaves its queue, and what it waited for there.
    fn set_out(&mut self, die: u32, id: u32) {
        let host_busy = self.host_busy(die);
        let op = &mut self.ops[id as usize];
        op.started = self.now;
        op.waits.die = host_busy - op.host_busy;
        op.waits.gc = (self.now - op.queued).saturating_sub(op.waits.die);
    }

    /// Starts an operation on a die that does nothing.
    pub(super) fn start(&mut self, die: u32, id: u32) {
        self.set_out(die, id);
        self.dies[die as usize].current = id;
        let kind = self.ops[id as usize].kind;
        let end = match kind {
            Kind::HostRead { .. } | Kind::MoveRead => self.now + self.read,
            Kind::Program => self.reserve_channel(die, id),
            Kind::Erase => self.now + self.erase,
        };
        let op = &mut self.ops[id as usize];
        // Without pipelining nobody needs to know when a program's transfer ends.
        let one_event = kind == Kind::Program && !self.schedule.pipeline;
        op.second_phase = one_event;
        op.until = if one_event { end + self.program } else { end };
        self.events.set(die as usize, op.until);
    }

    /// Starts a read of garbage collection: the pages of `place`'s row in `planes`.
    pub(super) fn start_move_read(&mut self, place: Place, planes: u8) -> u32 {
        let op = self.insert(Kind::MoveRead, place);
        self.ops[op as usize].planes = planes;
        self.start(place.die, op);
        op
    }

    /// Starts the erase of the blocks of `segment` that lie on `die`.
    pub(super) fn start_erase(&mut self, segment: SegmentId, die: u32) {
        let block = self.layout.blocks_of_segment(segment.0).start + die * self.planes;
        let op = self.insert(Kind::Erase, Place { die, block, page: 0, row: u32::MAX });
        self.ops[op as usize].planes = ((1u16 << self.planes) - 1) as u8;
        self.start(die, op);
    }

    /// The program operation that takes the page at `place`, opened if need be.
    fn program_at(&mut self, place: Place, add: impl FnOnce(&mut FlashOp)) {
        let at = self.partial.iter().position(|op| self.ops[*op as usize].row == place.row);
        let at = at.unwrap_or_else(|| {
            let op = self.insert(Kind::Program, place);
            self.partial.push(op);
            self.partial.len() - 1
        });
        let id = self.partial[at];
        let op = &mut self.ops[id as usize];
        op.add(place);
        add(op);
        // An open segment is written in order, so the last plane closes the row. In place, pages
        // come in no order and there is nothing to wait for.
        if op.planes >> (self.planes - 1) == 1 || self.in_place {
            self.partial.swap_remove(at);
            self.queue_work(id);
        }
    }

    /// Notes for a volatile buffer that a page's place was `old` before it became `ppn`.
    pub(super) fn note_old_place(&mut self, ppn: Ppn, old: Option<Ppn>) {
        let Some(mut undo) = self.undo.take() else { return };
        while undo.front().is_some_and(|(ppn, _)| self.is_programmed(self.layout.place(*ppn))) {
            undo.pop_front();
        }
        undo.push_back((ppn, old));
        self.undo = Some(undo);
    }

    /// Ends everything under way. What was to be programmed is programmed if the buffer is
    /// `protected`; if not its pages are padded, so that the rest of those erase blocks can be used.
    pub(super) fn power_off(&mut self, protected: bool) {
        for op in self.ops.drain().filter(|op| op.kind == Kind::Program) {
            op.blocks().for_each(|block| self.nand.pad(block, op.page));
            let pages =
                if protected { &mut self.performed.pages_programmed } else { &mut self.performed.pages_lost };
            *pages += u64::from(op.planes.count_ones());
        }
        for (die, state) in self.dies.iter_mut().enumerate() {
            (state.current, state.follower, state.suspended) = (NONE, NONE, NONE);
            state.reads.clear();
            state.work.clear();
            self.events.set(die, NEVER);
        }
        self.channels.fill(self.now);
    }
}

impl FlashSink for Flash {
    /// The drive has read the page before it asked for the copy.
    fn read(&mut self, _: Ppn) {}

    fn program(&mut self, ppn: Ppn, source: Option<Ppn>) {
        let place = self.layout.place(ppn);
        let Some(source) = source else {
            // The write that waits, if any, counts the programs that it waits for.
            let command = self.waiting_write.0;
            let mut is_new = false;
            self.program_at(place, |op| {
                op.host_pages += 1;
                is_new = op.command != command && command != NONE;
                op.command = command;
            });
            self.waiting_write.1 += u32::from(is_new);
            return;
        };
        let die = self.layout.place(source).die;
        self.program_at(place, |op| {
            op.sources[usize::from(op.copies)] = die;
            op.copies += 1;
        });
        self.note_old_place(ppn, Some(source));
        if let Some(contents) = &mut self.contents {
            contents.copy(source, ppn);
        }
    }

    /// The dies have erased it before the drive asked to release it.
    fn erase(&mut self, segment: SegmentId) {
        if let Some(contents) = &mut self.contents {
            self.layout.pages_of_segment(segment.0).for_each(|ppn| contents.remove(Ppn(ppn)));
        }
    }
}

/// How many pages of each erase block a preconditioned FTL has written.
fn programmed_pages(config: &SsdConfig, ftl: &Ftl) -> Vec<u16> {
    let planes = config.planes_in_all();
    let segments = ftl.segments();
    (0..segments.len())
        .flat_map(|segment| {
            let written = segments.written(SegmentId(segment));
            (0..planes).map(move |lane| (written.saturating_sub(lane)).div_ceil(planes) as u16)
        })
        .collect()
}
