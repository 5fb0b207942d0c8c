//! Dies and channels in virtual time.
//!
//! A die does one operation at a time. A read occupies it for the array time and until the channel
//! has taken the page; a program holds it from the transfer to the end of the array time. Channels
//! serve in order of request. Pages of one row (the same page of the planes of a die) are read or
//! programmed by one multi-plane operation.
//!
//! Order: programs and erases of a die run in the order in which the FTL emitted them, reads of
//! garbage collection before them: so an erase comes after the reads of its segment and a program
//! after the erase. A program of moved pages also waits for their reads, on whatever die; reads
//! wait for nothing, so there is no deadlock. Host reads may overtake, as the schedule allows.

use super::contents::Contents;
use super::tournament::{NEVER, Tournament};
use crate::config::MAX_PLANES;
use crate::ftl::{FlashSink, SegmentId};
use crate::layout::{Layout, Place};
use crate::nand::{Nand, NandError};
use crate::schedule::Schedule;
use crate::{Ftl, SsdConfig};
use fulgurite_base::Ppn;
use slab::Slab;
use std::collections::VecDeque;

/// Host reads that may go, one after another, before work that waits on the same die: a bound on
/// how long writes can starve.
const READ_BURST: u8 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
struct FlashOp {
    kind: Kind,
    /// Order of emission.
    serial: u64,
    die: u32,
    /// [`Place::row`] of its pages.
    row: u32,
    /// The erase block of plane 0, and which planes take part.
    block: u32,
    planes: u8,
    page: u32,
    /// A read in its transfer.
    transferring: bool,
    /// Reads that a program of moved pages waits for.
    waits: u8,
    /// Pages of a program that came from the host.
    host_pages: u8,
    /// Flush epoch of those.
    epoch: u32,
    /// The program that each page of a [`Kind::MoveRead`] feeds.
    feeds: [u32; MAX_PLANES],
}

impl FlashOp {
    fn new(kind: Kind, serial: u64, place: Place, planes: u32) -> FlashOp {
        FlashOp {
            kind,
            serial,
            die: place.die,
            row: place.row,
            block: place.block - place.block % planes,
            planes: 0,
            page: place.page,
            transferring: false,
            waits: 0,
            host_pages: 0,
            epoch: 0,
            feeds: [0; MAX_PLANES],
        }
    }

    fn pages(&self) -> u32 {
        self.planes.count_ones()
    }

    /// Adds the page at `place`, which lies in the op's row, and returns its index in `feeds`.
    fn add(&mut self, place: Place) -> usize {
        let index = self.pages() as usize;
        self.planes |= 1 << (place.block - self.block);
        index
    }

    fn blocks(&self) -> impl Iterator<Item = u32> + use<> {
        let (first, planes) = (self.block, self.planes);
        (0..MAX_PLANES as u32).filter(move |plane| planes >> plane & 1 == 1).map(move |plane| first + plane)
    }

    /// Whether this operation is garbage collection's alone.
    fn collects(&self) -> bool {
        match self.kind {
            Kind::HostRead { .. } => false,
            Kind::MoveRead | Kind::Erase => true,
            Kind::Program => self.host_pages == 0,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Die {
    current: Option<u32>,
    /// Host reads, in order.
    reads: VecDeque<u32>,
    /// Reads of garbage collection, in order. They wait for nothing and others wait for them.
    moves: VecDeque<u32>,
    /// Programs and erases, in the order in which the FTL emitted them.
    work: VecDeque<u32>,
    reads_in_a_row: u8,
}

/// What the end of a flash operation means to the host side.
pub(super) enum Outcome {
    Nothing,
    /// One part of a host read is done.
    Read {
        command: u32,
    },
    /// Host pages left the write buffer.
    Programmed {
        pages: u32,
        epoch: u32,
    },
}

/// Operations performed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Performed {
    pub pages_read: u64,
    pub pages_programmed: u64,
    pub operations: u64,
}

pub(super) struct Flash {
    layout: Layout,
    read: u64,
    program: u64,
    erase: u64,
    transfer: u64,
    planes: u32,
    in_place: bool,
    schedule: Schedule,
    dies: Vec<Die>,
    /// When each channel is next free.
    channels: Vec<u64>,
    ops: Slab<FlashOp>,
    emitted: u64,
    /// Program operations that still have planes to fill, at most one for each stream.
    partial: Vec<u32>,
    /// The last read of garbage collection, while it waits and can take another plane.
    move_read: Option<u32>,
    /// The page that collection has just read: its operation and index there.
    just_read: (u32, usize),
    /// Dies that were given work since the last [`Flash::start_work`].
    touched: Vec<u32>,
    pub nand: Nand,
    /// Slots `0..dies` are the dies; the host side uses the rest.
    pub events: Tournament,
    pub now: u64,
    /// The flush epoch that new host pages belong to.
    pub epoch: u32,
    pub performed: Performed,
    pub fault: Option<NandError>,
    pub contents: Option<Contents>,
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
            planes: config.planes,
            in_place: config.in_place,
            schedule: config.schedule,
            dies: vec![Die::default(); dies],
            channels: vec![0; config.channels as usize],
            ops: Slab::new(),
            emitted: 0,
            partial: Vec::new(),
            move_read: None,
            just_read: (0, 0),
            touched: Vec::new(),
            nand: Nand::new(config.pages, ftl.map_or_else(Vec::new, |ftl| programmed_pages(config, ftl))),
            events: Tournament::new(dies + host_slots),
            now: 0,
            epoch: 0,
            performed: Performed::default(),
            fault: None,
            contents: contents.then(Contents::default),
        }
    }

    pub(super) fn dies(&self) -> usize {
        self.dies.len()
    }

    /// Whether no die has anything to do and no program is waiting for more planes.
    pub(super) fn is_idle(&self) -> bool {
        self.ops.is_empty()
    }

    /// Queues the flash reads of a host command and returns how many there are: pages of one row
    /// are read together, pages still in the write buffer are not read at all.
    pub(super) fn host_read(&mut self, command: u32, pages: impl Iterator<Item = Ppn>) -> u32 {
        let mut queued = 0;
        let mut last: Option<u32> = None;
        for ppn in pages {
            let place = self.layout.place(ppn);
            if !self.in_place && !self.nand.is_programmed(place.block, place.page) {
                continue;
            }
            let op = match last.filter(|op| self.ops[*op as usize].row == place.row) {
                Some(op) => op,
                None => {
                    queued += 1;
                    let op = self.insert(Kind::HostRead { command }, place);
                    self.dies[place.die as usize].reads.push_back(op);
                    self.touched.push(place.die);
                    op
                }
            };
            self.ops[op as usize].add(place);
            last = Some(op);
        }
        queued
    }

    /// Sends programs on their way although planes are left over, so that a flush can end.
    pub(super) fn close_partial(&mut self) {
        for op in std::mem::take(&mut self.partial) {
            self.queue_work(op);
        }
    }

    /// Starts every idle die that was given something to do.
    pub(super) fn start_work(&mut self) {
        while let Some(die) = self.touched.pop() {
            self.start_next(die);
        }
    }

    /// Performs the event of `die` at the current time.
    pub(super) fn event(&mut self, die: usize) -> Outcome {
        let id = self.dies[die].current.expect("a die with an event is busy");
        let op = &mut self.ops[id as usize];
        if matches!(op.kind, Kind::HostRead { .. } | Kind::MoveRead) && !op.transferring {
            op.transferring = true;
            let pages = op.pages();
            let end = self.reserve_channel(die as u32, pages);
            self.events.set(die, end);
            return Outcome::Nothing;
        }
        let op = self.ops.remove(id as usize);
        self.performed.operations += 1;
        let outcome = self.finish(&op);
        self.dies[die].current = None;
        self.touched.push(die as u32);
        self.start_work();
        outcome
    }

    fn finish(&mut self, op: &FlashOp) -> Outcome {
        let checked = match op.kind {
            _ if self.in_place => Ok(()),
            Kind::HostRead { .. } | Kind::MoveRead => {
                op.blocks().try_for_each(|block| self.nand.read(block, op.page))
            }
            Kind::Program => op.blocks().try_for_each(|block| self.nand.program(block, op.page)),
            Kind::Erase => {
                op.blocks().for_each(|block| self.nand.erase(block));
                Ok(())
            }
        };
        if let Err(fault) = checked {
            self.fault.get_or_insert(fault);
        }
        match op.kind {
            Kind::HostRead { command } => {
                self.performed.pages_read += u64::from(op.pages());
                Outcome::Read { command }
            }
            Kind::MoveRead => {
                self.performed.pages_read += u64::from(op.pages());
                for fed in &op.feeds[..op.pages() as usize] {
                    let program = &mut self.ops[*fed as usize];
                    program.waits -= 1;
                    self.touched.push(program.die);
                }
                Outcome::Nothing
            }
            Kind::Program => {
                self.performed.pages_programmed += u64::from(op.pages());
                Outcome::Programmed { pages: u32::from(op.host_pages), epoch: op.epoch }
            }
            Kind::Erase => Outcome::Nothing,
        }
    }

    /// Takes the channel of `die` for `pages` transfers and returns when they end.
    fn reserve_channel(&mut self, die: u32, pages: u32) -> u64 {
        let free = &mut self.channels[self.layout.channel(die)];
        *free = self.now.max(*free) + self.transfer * u64::from(pages);
        *free
    }

    fn insert(&mut self, kind: Kind, place: Place) -> u32 {
        self.emitted += 1;
        let op = FlashOp { epoch: self.epoch, ..FlashOp::new(kind, self.emitted, place, self.planes) };
        self.ops.insert(op) as u32
    }

    fn queue_work(&mut self, op: u32) {
        let die = self.ops[op as usize].die;
        self.dies[die as usize].work.push_back(op);
        self.touched.push(die);
    }

    fn start_next(&mut self, die: u32) {
        let state = &mut self.dies[die as usize];
        if state.current.is_some() {
            return;
        }
        let queue = if state.moves.is_empty() { &mut state.work } else { &mut state.moves };
        let read = state.reads.front().map(|id| &self.ops[*id as usize]);
        let work = queue.front().map(|id| &self.ops[*id as usize]);
        let work_ready = work.is_some_and(|op| op.waits == 0);
        let starving = work_ready && state.reads_in_a_row >= READ_BURST;
        let read_first = match (read, work) {
            (None, _) => false,
            (Some(_), None) => true,
            // A read that came before an erase may be of what it erases.
            (Some(read), Some(work)) if read.serial < work.serial => !starving || work.kind == Kind::Erase,
            (Some(_), Some(work)) => {
                !starving && (!work.collects() || self.schedule.reads_overtake_collection())
            }
        };
        let next = if read_first {
            state.reads_in_a_row = state.reads_in_a_row.saturating_add(1);
            state.reads.pop_front()
        } else if work_ready {
            state.reads_in_a_row = 0;
            queue.pop_front()
        } else {
            None
        };
        state.current = next;
        let end = next.map_or(NEVER, |id| self.start(die, id));
        self.events.set(die as usize, end);
    }

    /// Starts an operation and returns the time of its first event.
    fn start(&mut self, die: u32, id: u32) -> u64 {
        if self.move_read == Some(id) {
            self.move_read = None;
        }
        let op = &self.ops[id as usize];
        let (kind, pages) = (op.kind, op.pages());
        match kind {
            Kind::HostRead { .. } | Kind::MoveRead => self.now + self.read,
            Kind::Program => self.reserve_channel(die, pages) + self.program,
            Kind::Erase => self.now + self.erase,
        }
    }

    /// The program operation that takes the page at `place`, opened if need be.
    fn program_at(&mut self, place: Place) -> u32 {
        let at = self.partial.iter().position(|op| self.ops[*op as usize].row == place.row);
        let at = at.unwrap_or_else(|| {
            let op = self.insert(Kind::Program, place);
            self.partial.push(op);
            self.partial.len() - 1
        });
        let id = self.partial[at];
        let op = &mut self.ops[id as usize];
        op.add(place);
        // An open segment is written in order, so the last plane closes the row. In place, pages
        // come in no order and there is nothing to wait for.
        if op.planes >> (self.planes - 1) == 1 || self.in_place {
            self.partial.swap_remove(at);
            self.queue_work(id);
        }
        id
    }
}

impl FlashSink for Flash {
    fn read(&mut self, ppn: Ppn) {
        let place = self.layout.place(ppn);
        let programmed = self.nand.is_programmed(place.block, place.page);
        let op = match self.move_read.filter(|op| programmed && self.ops[*op as usize].row == place.row) {
            Some(op) => op,
            None if programmed => {
                let op = self.insert(Kind::MoveRead, place);
                self.dies[place.die as usize].moves.push_back(op);
                self.touched.push(place.die);
                self.move_read = Some(op);
                op
            }
            None => {
                // Sealed a moment ago: its program is still queued, and comes first.
                let op = self.insert(Kind::MoveRead, place);
                self.queue_work(op);
                op
            }
        };
        self.just_read = (op, self.ops[op as usize].add(place));
    }

    fn program(&mut self, ppn: Ppn, source: Option<Ppn>) {
        let id = self.program_at(self.layout.place(ppn));
        match source {
            None => self.ops[id as usize].host_pages += 1,
            Some(source) => {
                self.ops[id as usize].waits += 1;
                let (read, index) = self.just_read;
                self.ops[read as usize].feeds[index] = id;
                if let Some(contents) = &mut self.contents {
                    contents.copy(source, ppn);
                }
            }
        }
    }

    fn erase(&mut self, segment: SegmentId) {
        let blocks = self.layout.blocks_of_segment(segment.0);
        if let Some(contents) = &mut self.contents {
            let pages = self.layout.pages_of_segment(segment.0);
            pages.for_each(|ppn| contents.remove(Ppn(ppn)));
        }
        blocks.clone().for_each(|block| self.nand.expect_erase(block));
        for (die, block) in blocks.step_by(self.planes as usize).enumerate() {
            let place = Place { die: die as u32, block, page: 0, row: u32::MAX };
            let op = self.insert(Kind::Erase, place);
            self.ops[op as usize].planes = ((1u16 << self.planes) - 1) as u8;
            self.queue_work(op);
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
