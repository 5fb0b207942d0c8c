//! The simulated drive: it executes the host's commands on the flash in virtual time.
//!
//! A read passes a serial stage (controller, link) and a fixed delay; then its pages are read from the flash.
//! A write passes a serial stage of its own and waits for room in the write buffer. It is acknowledged after
//! a fixed delay or, without a cache, when it is programmed. It waits in the buffer until the schedule admits
//! it and the FTL assigns physical pages to it. Its buffer pages are free again when they are programmed.
//! With two separate stages, the read/write asymmetry alpha and the concurrencies k_r of reads and k_w of
//! writes can be set independently. A flush of a volatile buffer waits until all earlier writes are in the
//! flash. A protected buffer survives a power cut, so its flush is answered like a write.
//!
//! A share passes the stage of the writes with the list of its pages, 16 bytes each: the published command
//! (SHARE, SIGMOD 2016) has up to 250 pairs in a block of 4 KiB. The map then changes for all pairs at once.
//! Like a trim, this takes no time, since the map is in the drive's memory. With a volatile buffer the share
//! first waits, as a flush does.
//!
//! The drive asks for the schedule's state whenever the state may have changed. The state decides which
//! commands enter the dies' queues. In these queues, host operations go before collection.

mod contents;
mod in_place;
mod image;
mod tournament;
mod waiting;
mod waits;
mod busy;
mod flash;
mod collector;
mod command;
mod fdp;
mod counters;
mod state;
mod device;
mod power;
mod timeline;
mod host;
mod units;

pub use busy::{Busy, DieState};
pub use counters::{DriveCounters, DriveError};
pub use fdp::FdpCounts;
pub use image::Image;
pub use state::{DriveState, Segments};
pub use timeline::{Span, SpanKind, Timeline, Track};
pub use waits::{Served, ServedKind, Waits};

use crate::zones::Zones;
use crate::{SsdConfig, WriteCache};
use collector::Collector;
use command::{CommandKind, InFlight, Path, take_first};
use fdp::FdpEvents;
use flash::{Flash, FlashOp, FlashOpKind, Next, OpId};
use fulgurite_base::{Ppn, SpecError, StreamId};
use fulgurite_device::{Caps, Completion, Device, Meter, ZoneCaps};
use fulgurite_ftl::precondition::{Precondition, precondition};
use fulgurite_ftl::schedule::ScheduleState;
use fulgurite_ftl::{AfterPick, CountingSink, Ftl, FtlConfig, Gate, UnitId};
use in_place::InPlace;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use tournament::NEVER;
use waiting::Waiting;

enum Translation {
    PageMapped(Box<Ftl>),
    InPlace(InPlace),
}

/// The event slots of the host side, which follow those of the dies.
#[derive(Clone, Copy)]
enum HostSlot {
    Reads,
    Writes,
    Acknowledgements,
    /// A write has waited for collection as long as it may.
    Urgent,
    /// The drive has had no command for so long that it counts as idle.
    Idle,
}

const HOST_SLOTS: usize = 5;

/// A simulated SSD.
pub struct SimDrive {
    config: SsdConfig,
    caps: Caps,
    translation: Translation,
    flash: Flash,
    /// The collector of each unit. `gates` has each unit's gate, which holds the schedule's state and the
    /// commands that must wait for it. Commands other than reads wait in the first gate's queue.
    collectors: Vec<Collector>,
    gates: Vec<Gate>,
    waiting: Waiting,
    /// Commands without an answer, and accepted writes with pages that have no physical pages yet.
    commands: Slab<InFlight>,
    /// The number of commands without an answer.
    unanswered: u32,
    /// The commands that wait for a slot of the firmware, in order.
    held: VecDeque<u32>,
    /// Writes that have no room in the buffer, and resets of zones among them, in the order of the first gate's
    /// queue.
    entering: VecDeque<u32>,
    /// For each logical page without a physical page for its latest bytes, the accepted write with these
    /// bytes.
    unplaced: FxHashMap<u32, u32>,
    reads: Path,
    writes: Path,
    acknowledgements: VecDeque<(u64, u32)>,
    buffer_free: u32,
    /// The number of host pages not yet programmed, for each flush epoch from `first_epoch` on. Each flush
    /// ends an epoch.
    unprogrammed: VecDeque<u32>,
    first_epoch: u32,
    flushes: VecDeque<(u32, u32)>,
    done: Vec<Completion>,
    served: Option<Vec<Served>>,
    timeline: Option<Box<Timeline>>,
    meter: Meter,
    /// The events for a host that names reclaim-unit handles; `None` without flexible data placement.
    fdp: Option<FdpEvents>,
    /// The zones; `None` for a drive without zones.
    zones: Option<Zones>,
}

impl SimDrive {
    /// Creates a drive in the state that `config.precondition` names; `seed` determines the random writes.
    /// The drive keeps page contents only if `contents` is true.
    pub fn new(config: SsdConfig, seed: u64, contents: bool) -> Result<SimDrive, SpecError> {
        let ftl = SimDrive::preconditioned(&config, 1, seed)?;
        Ok(SimDrive::with_ftl(config, ftl, contents))
    }

    /// Returns the FTL of a drive after preconditioning with random writes of `request_pages` pages; `None`
    /// for a medium without an FTL. Cloning the FTL is much cheaper than preconditioning again.
    pub fn preconditioned(
        config: &SsdConfig,
        request_pages: u32,
        seed: u64,
    ) -> Result<Option<Ftl>, SpecError> {
        SimDrive::written_before(config, |ftl| {
            if let Some(caps) = config.zone_caps().filter(|_| config.precondition != Precondition::None) {
                // Random writes are against the rules of zones, so the drive is written in order.
                let mut zones = Zones::of(caps, ftl, |_| None);
                let mut sink = CountingSink::default();
                for lpn in 0..ftl.config().logical_pages {
                    zones.write_flash(ftl, lpn, 1, &mut sink).expect("zones are written in order");
                }
                return;
            }
            precondition(ftl, config.precondition, request_pages, seed, |ftl, lpn, pages| {
                ftl.write(lpn, pages, StreamId::default(), &mut CountingSink::default());
            });
        })
    }

    /// Returns the FTL of a drive after `write` has written to it; `None` for a medium without an FTL.
    pub fn written_before(
        config: &SsdConfig,
        write: impl FnOnce(&mut Ftl),
    ) -> Result<Option<Ftl>, SpecError> {
        config.validate()?;
        if config.in_place {
            return Ok(None);
        }
        // Sets the endurance to unlimited, so that preconditioning retires no segment.
        let mut ftl = Ftl::new(FtlConfig { endurance: 0, ..config.ftl() })?;
        write(&mut ftl);
        // Ends collections that are due, as if the drive had been idle since the writes.
        let mut drive = SimDrive::with_ftl(config.clone(), Some(ftl), false);
        drive.drain_events();
        let Translation::PageMapped(mut ftl) = drive.translation else { return Ok(None) };
        // Resets the wear, because preconditioning stands for years of use, and wear is counted from the
        // first request on.
        ftl.start_anew(config.endurance);
        Ok(Some(*ftl))
    }

    /// Creates a drive that starts with an FTL from [`SimDrive::preconditioned`] for the same `config`.
    pub fn with_ftl(config: SsdConfig, ftl: Option<Ftl>, contents: bool) -> SimDrive {
        let logical = config.logical_pages() as u32;
        let mut flash = Flash::new(&config, ftl.as_ref(), HOST_SLOTS, contents);
        let buffer_pages = config.write_buffer_pages();
        let caps = config.caps(contents);
        let fdp = caps.fdp.map(|_| FdpEvents::default());
        let is_volatile = config.write_cache == WriteCache::Volatile;
        flash.undo = is_volatile.then(Default::default);
        let units = || (0..config.units()).map(UnitId);
        let collector =
            |unit| Collector::new(unit, flash.layout, config.row_pages(), config.rows(), is_volatile);
        let collectors = units().map(collector).collect();
        let gate = |unit| Gate::new(unit, AfterPick::LookNextTime, config.collect.urgent);
        let gates = units().map(gate).collect();
        let waiting = Waiting::new(if config.is_by_address() { config.units() } else { 0 });
        let translation = match ftl {
            Some(ftl) => Translation::PageMapped(Box::new(ftl)),
            None => Translation::InPlace(InPlace::new(logical, config.precondition != Precondition::None)),
        };
        let mut drive = SimDrive {
            config,
            caps,
            translation,
            flash,
            collectors,
            gates,
            waiting,
            commands: Slab::new(),
            unanswered: 0,
            held: VecDeque::new(),
            entering: VecDeque::new(),
            unplaced: FxHashMap::default(),
            reads: Path::default(),
            writes: Path::default(),
            acknowledgements: VecDeque::new(),
            buffer_free: buffer_pages,
            unprogrammed: VecDeque::from([0]),
            first_epoch: 0,
            flushes: VecDeque::new(),
            done: Vec::new(),
            served: None,
            timeline: None,
            meter: Meter::default(),
            fdp,
            zones: None,
        };
        drive.find_zones();
        drive.resume_collection();
        drive.watch_idleness();
        drive
    }

    /// Finds the state of every zone from the pages that are written.
    fn find_zones(&mut self) {
        let Some(caps) = self.caps.zones else { return };
        let Translation::PageMapped(ftl) = &self.translation else { return };
        let mut accepted = FxHashMap::default();
        for (_, write) in &self.commands {
            if let CommandKind::Write(stream) = write.kind {
                accepted.extend((write.lpn..write.lpn + write.pages).map(|lpn| (lpn, stream)));
            }
        }
        self.zones = Some(Zones::of(caps, ftl, |lpn| accepted.get(&lpn).copied()));
    }

    /// Continues a collection that preconditioning has left unfinished.
    fn resume_collection(&mut self) {
        if let Translation::PageMapped(ftl) = &self.translation {
            for (unit, collector) in ftl.units().zip(&mut self.collectors) {
                if let Some(victim) = ftl.victim(unit) {
                    collector.begin(victim, self.flash.now);
                }
            }
        }
        self.look_at_all();
        self.start_work();
    }

    /// Returns the configuration.
    pub fn config(&self) -> &SsdConfig {
        &self.config
    }

    /// Returns the translation layer; `None` for a medium that is overwritten in place.
    pub fn ftl(&self) -> Option<&Ftl> {
        match &self.translation {
            Translation::PageMapped(ftl) => Some(ftl),
            Translation::InPlace(_) => None,
        }
    }

    /// Returns the schedule's state; of several units, the most restrictive state.
    pub fn state(&self) -> ScheduleState {
        self.gates.iter().map(Gate::state).max().unwrap_or(ScheduleState::Idle)
    }

    /// Starts to record the waits of every request, until [`SimDrive::take_served`] takes the records.
    pub fn keep_served(&mut self) {
        self.served.get_or_insert_default();
    }

    /// Moves the records of the requests completed since the last call to `served`, in the order of
    /// completion.
    pub fn take_served(&mut self, served: &mut Vec<Served>) {
        served.append(self.served.get_or_insert_default());
    }

    /// Starts to record a timeline of at most `spans_at_most` spans.
    pub fn record_timeline(&mut self, spans_at_most: usize) {
        let SsdConfig { transfer, channels, .. } = self.config;
        self.timeline = Some(Box::new(Timeline::new(spans_at_most, transfer, channels, self.now())));
    }

    /// Returns the timeline recorded so far; `None` if none is recorded.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_deref()
    }

    /// Returns the memory held for the drive's state, in bytes, without the contents of pages.
    pub fn bytes(&self) -> usize {
        let ftl = match &self.translation {
            Translation::PageMapped(ftl) => ftl.bytes(),
            Translation::InPlace(_) => self.caps.pages as usize / 8,
        };
        ftl + self.flash.nand.bytes()
    }

    /// Programs all pages in the buffer, as a flush does if the buffer is volatile.
    pub fn settle(&mut self) {
        self.end_epoch();
        self.start_work();
        // Queues incomplete rows again, since a write that gets physical pages only now may leave one.
        while self.has_buffered() && self.perform_next_event() {
            if self.unplaced.is_empty() {
                self.flash.close_partial();
                self.start_work();
            }
        }
    }

    /// Runs everything in progress to its end, including collection.
    pub fn drain_events(&mut self) {
        while self.perform_next_event() {}
    }

    /// Performs the next event, at whatever time it is. Returns whether there was one.
    fn perform_next_event(&mut self) -> bool {
        let (slot, at) = self.flash.events.first();
        if at == NEVER {
            return false;
        }
        self.flash.now = at;
        self.event(slot);
        true
    }

    fn slot(&self, slot: HostSlot) -> usize {
        self.flash.dies() + slot as usize
    }

    /// Performs the event of `slot` at the current time, and everything that this event makes possible.
    fn event(&mut self, slot: usize) {
        if slot < self.flash.dies() {
            if let Some((id, op)) = self.flash.event(slot) {
                self.ended(id, &op);
            }
        } else if slot == self.slot(HostSlot::Reads) {
            let command = take_first(&mut self.reads.arrivals, &mut self.flash, slot);
            self.read_arrived(command);
        } else if slot == self.slot(HostSlot::Writes) {
            let command = take_first(&mut self.writes.arrivals, &mut self.flash, slot);
            self.arrived(command);
        } else if slot == self.slot(HostSlot::Acknowledgements) {
            let command = take_first(&mut self.acknowledgements, &mut self.flash, slot);
            self.complete(command);
        } else {
            self.flash.events.set(slot, NEVER);
            if slot == self.slot(HostSlot::Urgent) {
                self.become_urgent();
            } else if let Translation::PageMapped(ftl) = &mut self.translation {
                ftl.set_idle(true);
            }
            self.look_at_all();
        }
        self.start_work();
    }

    /// Handles the end of a flash operation.
    fn ended(&mut self, id: OpId, op: &FlashOp) {
        if let Some(timeline) = &mut self.timeline {
            timeline.flash_operation(op, self.flash.now);
        }
        match &op.kind {
            FlashOpKind::HostRead { command, merged } => {
                if let (1.., Translation::PageMapped(ftl)) = (*merged, &self.translation) {
                    let unit = self.flash.layout.unit_of_block(op.block);
                    self.collectors[unit].merged_read_done(op, *merged, ftl);
                }
                self.part_done(*command, op.waits);
            }
            FlashOpKind::MoveRead => {
                let Translation::PageMapped(ftl) = &self.translation else { return };
                let unit = self.flash.layout.unit_of_block(op.block);
                for command in self.collectors[unit].read_done(id, ftl) {
                    let gc = self.flash.now - self.commands[command as usize].since;
                    self.part_done(command, Waits { gc, ..Waits::default() });
                }
            }
            FlashOpKind::Program(programmed) => {
                let unit = self.flash.layout.unit_of_block(op.block);
                if !programmed.sources().is_empty() {
                    self.collectors[unit].program_done(programmed.sources(), &mut self.flash);
                    self.look_at(unit);
                    self.admit_to(unit);
                }
                if let Some(command) = programmed.command {
                    self.part_done(command, op.waits);
                }
                self.programmed(unit, u32::from(programmed.host_pages), programmed.epoch);
            }
            FlashOpKind::Parity => {}
            FlashOpKind::Erase => {
                let unit = self.flash.layout.unit_of_block(op.block);
                let segment = self.flash.layout.segment_of_block(op.block);
                if self.collectors[unit].erase_done(segment) {
                    self.release(unit, true);
                } else if self.collectors[unit].is_done() {
                    self.collectors[unit].end();
                    self.release(unit, false);
                }
            }
        }
    }

    /// Gives every touched die an operation, if there is one for it.
    #[inline]
    fn start_work(&mut self) {
        while let Some(die) = self.flash.touched.pop() {
            match self.flash.next_host(die) {
                Next::Started(op) => self.merge(op),
                Next::Nothing => self.collect_on(die),
                Next::Busy => {}
            }
            self.flash.quiet_if_idle(die);
        }
        // Only a volatile buffer has a rollback list. Without one, an erase need not wait for programs of
        // host pages.
        if self.flash.undo.is_some() && self.raise_barriers() {
            // Starts work again, because ending the epoch has sent programs to dies.
            self.start_work();
        }
    }

    /// Continues collection on `die`, which has no host operation.
    #[inline]
    fn collect_on(&mut self, die: u32) {
        if self.flash.layout.shares_dies() {
            return self.collect_in_turn(die);
        }
        let unit = self.flash.layout.unit_of_die(die);
        if self.gates[unit].state().collects()
            && self.collectors[unit].is_active()
            && let Translation::PageMapped(ftl) = &mut self.translation
        {
            self.collectors[unit].step(die, ftl, &mut self.flash);
        }
    }

    /// Continues collection on a die whose planes are units of their own. The unit that began its collection
    /// first goes first, so that no unit starves.
    fn collect_in_turn(&mut self, die: u32) {
        let Translation::PageMapped(ftl) = &mut self.translation else { return };
        let mut after = None;
        loop {
            let collects = |unit: &usize| self.gates[*unit].state().collects();
            let begun = |unit: usize| self.collectors[unit].begun().map(|at| (at, unit));
            let later = self.flash.layout.units_of_die(die).filter(collects).filter_map(begun);
            let Some(next) = later.filter(|begun| Some(*begun) > after).min() else { return };
            self.collectors[next.1].step(die, ftl, &mut self.flash);
            after = Some(next);
        }
    }

    /// Ends the flush epoch for every unit whose victim must not be erased before the superseding pages are
    /// programmed. Returns whether there was such a unit.
    fn raise_barriers(&mut self) -> bool {
        let epoch = self.flash.epoch;
        let mut raised = false;
        for collector in self.collectors.iter_mut().filter(|collector| collector.wants_barrier()) {
            collector.raise_barrier(epoch);
            raised = true;
        }
        if raised {
            self.end_epoch();
        }
        raised
    }

    /// Lets collection use the pages of a host read that is starting.
    fn merge(&mut self, op: OpId) {
        if !self.config.collect.schedule.merge {
            return;
        }
        let op = &mut self.flash.ops[op.key()];
        if let (FlashOpKind::HostRead { .. }, Translation::PageMapped(ftl)) = (&op.kind, &self.translation) {
            let unit = self.flash.layout.unit_of_block(op.block);
            self.collectors[unit].merge(op, ftl);
        }
    }
}

impl Translation {
    #[inline]
    fn lookup(&self, lpn: u32) -> Option<Ppn> {
        match self {
            Translation::PageMapped(ftl) => ftl.lookup(lpn),
            Translation::InPlace(medium) => medium.is_written(lpn).then_some(Ppn(lpn)),
        }
    }

    fn trim(&mut self, lpn: u32, pages: u32, zones: Option<&ZoneCaps>) {
        match self {
            Translation::PageMapped(ftl) => match zones {
                Some(caps) => Zones::reset(caps, ftl, lpn, pages),
                None => ftl.trim_run(lpn, pages),
            },
            Translation::InPlace(medium) => (lpn..lpn + pages).for_each(|lpn| medium.trim(lpn)),
        }
    }
}
