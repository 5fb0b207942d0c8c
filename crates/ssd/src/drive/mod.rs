//! The simulated drive as a `Device`: the host side in front of the flash.
//!
//! A read passes a serial stage (controller, link), a fixed delay, then its pages are read from
//! the flash. A write passes a serial stage of its own, waits for room in the write buffer, is
//! handed to the FTL and acknowledged after a fixed delay; its buffer pages are free again when
//! they are programmed. The two stages are what lets alpha, k_r and k_w be set apart.
//! Acknowledged writes survive a power cut (the buffer is protected); `flush` waits until all
//! that was acknowledged is in the flash.

mod contents;
mod flash;
mod in_place;
mod tournament;

use crate::check::{self, CheckError};
use crate::ftl::FlashSink;
use crate::nand::NandError;
use crate::precondition::precondition;
use crate::{Ftl, Precondition, SsdConfig};
use flash::{Flash, Outcome};
use fulgurite_base::{Lpn, Nanos, Ppn, SpecError};
use fulgurite_device::{
    Buffer, Caps, Command, Completion, Device, IoError, Meter, MeterError, Operation, QueueFull, StreamId,
    Tag,
};
use in_place::InPlace;
use slab::Slab;
use std::collections::VecDeque;
use thiserror::Error;
use tournament::NEVER;

/// Something that the drive found wrong with itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriveError {
    /// A law of queues.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A rule of NAND.
    #[error("NAND rule broken: {0}")]
    Nand(#[from] NandError),
    /// An invariant of the flash translation layer.
    #[error("FTL invariant broken: {0}")]
    Ftl(#[from] CheckError),
    /// The flash did not perform what the FTL emitted.
    #[error("the FTL emitted {emitted} page programs, the dies performed {performed}")]
    Programs {
        /// By the FTL.
        emitted: u64,
        /// By the dies.
        performed: u64,
    },
}

/// What a drive has done since it was preconditioned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveCounters {
    /// Pages that the host wrote.
    pub host_pages_written: u64,
    /// Pages read from the flash, for the host and for moves.
    pub flash_pages_read: u64,
    /// Pages programmed by the dies.
    pub flash_pages_programmed: u64,
    /// Pages moved by garbage collection.
    pub gc_pages_copied: u64,
    /// Segments erased.
    pub erases: u64,
    /// Operations of dies, multi-plane ones counted once.
    pub flash_operations: u64,
}

enum Translation {
    PageMapped(Box<Ftl>),
    InPlace(InPlace),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write(StreamId),
    Trim,
    Flush,
}

struct InFlight {
    tag: Tag,
    kind: Kind,
    lpn: u32,
    pages: u32,
    submitted: Nanos,
    /// Flash reads not yet done.
    parts: u32,
    buffer: Option<Buffer>,
    status: Result<(), IoError>,
}

/// A serial stage and what is on its way behind it, in order of arrival.
#[derive(Default)]
struct Path {
    free: u64,
    arrivals: VecDeque<(u64, u32)>,
}

/// A simulated SSD.
pub struct SimDrive {
    config: SsdConfig,
    caps: Caps,
    translation: Translation,
    flash: Flash,
    commands: Slab<InFlight>,
    reads: Path,
    writes: Path,
    acknowledgements: VecDeque<(u64, u32)>,
    /// Writes, trims and flushes that wait for room in the write buffer, in order.
    stalled: VecDeque<u32>,
    buffer_free: u32,
    /// Host pages not yet programmed, for each flush epoch from `first_epoch` on.
    unprogrammed: VecDeque<u32>,
    first_epoch: u32,
    flushes: VecDeque<(u32, u32)>,
    done: Vec<Completion>,
    meter: Meter,
}

const HOST_SLOTS: usize = 3;

impl SimDrive {
    /// A drive in the state that `config.precondition` names, reached with the randomness of `seed`.
    /// It keeps page contents only where `contents` says so.
    pub fn new(config: SsdConfig, seed: u64, contents: bool) -> Result<SimDrive, SpecError> {
        let ftl = SimDrive::preconditioned(&config, 1, seed)?;
        Ok(SimDrive::with_ftl(config, ftl, contents))
    }

    /// The FTL of a drive after preconditioning with random writes of `request_pages`; `None` for
    /// a medium that needs none. Cloning it is much cheaper than making it again.
    pub fn preconditioned(
        config: &SsdConfig,
        request_pages: u32,
        seed: u64,
    ) -> Result<Option<Ftl>, SpecError> {
        config.validate()?;
        if config.in_place {
            return Ok(None);
        }
        let mut ftl = Ftl::new(config.ftl())?;
        precondition(&mut ftl, config.precondition, request_pages, seed);
        ftl.reset_counters();
        Ok(Some(ftl))
    }

    /// A drive that starts with an FTL made by [`SimDrive::preconditioned`] for the same `config`.
    pub fn with_ftl(config: SsdConfig, ftl: Option<Ftl>, contents: bool) -> SimDrive {
        let logical = config.logical_pages() as u32;
        let flash = Flash::new(&config, ftl.as_ref(), HOST_SLOTS, contents);
        let buffer_pages = config.write_buffer_pages();
        let caps = Caps {
            page_bytes: config.page_bytes,
            pages: u64::from(logical),
            queue_depth: config.queue_depth,
            pages_per_command: buffer_pages.min(1024),
            share: false,
            streams: 1,
            contents,
        };
        let translation = match ftl {
            Some(ftl) => Translation::PageMapped(Box::new(ftl)),
            None => Translation::InPlace(InPlace::new(logical, config.precondition != Precondition::None)),
        };
        SimDrive {
            config,
            caps,
            translation,
            flash,
            commands: Slab::new(),
            reads: Path::default(),
            writes: Path::default(),
            acknowledgements: VecDeque::new(),
            stalled: VecDeque::new(),
            buffer_free: buffer_pages,
            unprogrammed: VecDeque::from([0]),
            first_epoch: 0,
            flushes: VecDeque::new(),
            done: Vec::new(),
            meter: Meter::default(),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &SsdConfig {
        &self.config
    }

    /// What the drive has done.
    pub fn counters(&self) -> DriveCounters {
        let performed = self.flash.performed;
        let (host, copied, erases) = match &self.translation {
            Translation::PageMapped(ftl) => (ftl.host_pages(), ftl.copied_pages(), ftl.erased_segments()),
            Translation::InPlace(medium) => (medium.host_pages, 0, 0),
        };
        DriveCounters {
            host_pages_written: host,
            flash_pages_read: performed.pages_read,
            flash_pages_programmed: performed.pages_programmed,
            gc_pages_copied: copied,
            erases,
            flash_operations: performed.operations,
        }
    }

    /// Memory held for the drive's state, in bytes, contents aside.
    pub fn bytes(&self) -> usize {
        let ftl = match &self.translation {
            Translation::PageMapped(ftl) => ftl.bytes(),
            Translation::InPlace(_) => self.caps.pages as usize / 8,
        };
        ftl + self.flash.nand.bytes()
    }

    /// Checks everything that can be checked once the drive is flushed: conservation, Little's
    /// law, the NAND rules, and that the dies did what the FTL emitted; with `deep`, the FTL's
    /// invariants too, in O(physical pages).
    pub fn verify(&self, deep: bool) -> Result<(), DriveError> {
        self.meter.check()?;
        if let Some(fault) = &self.flash.fault {
            return Err(fault.clone().into());
        }
        let counters = self.counters();
        let (emitted, performed) =
            (counters.host_pages_written + counters.gc_pages_copied, counters.flash_pages_programmed);
        if self.flash.is_idle() && emitted != performed {
            return Err(DriveError::Programs { emitted, performed });
        }
        if let (true, Translation::PageMapped(ftl)) = (deep, &self.translation) {
            check::check(ftl)?;
        }
        Ok(())
    }

    fn slot_reads(&self) -> usize {
        self.flash.dies()
    }

    fn slot_writes(&self) -> usize {
        self.flash.dies() + 1
    }

    fn slot_acknowledgements(&self) -> usize {
        self.flash.dies() + 2
    }

    /// Performs the event of `slot` at the current time.
    fn event(&mut self, slot: usize) {
        if slot < self.flash.dies() {
            match self.flash.event(slot) {
                Outcome::Nothing => {}
                Outcome::Read { command } => self.read_part_done(command),
                Outcome::Programmed { pages, epoch } => self.programmed(pages, epoch),
            }
        } else if slot == self.slot_reads() {
            let command = take_first(&mut self.reads.arrivals, &mut self.flash, slot);
            self.read_arrived(command);
        } else if slot == self.slot_writes() {
            let command = take_first(&mut self.writes.arrivals, &mut self.flash, slot);
            self.stalled.push_back(command);
            self.admit();
        } else {
            let command = take_first(&mut self.acknowledgements, &mut self.flash, slot);
            self.complete(command);
        }
    }

    fn complete(&mut self, command: u32) {
        let InFlight { tag, submitted, status, .. } = self.commands.remove(command as usize);
        let now = self.now();
        self.meter.complete(now, now - submitted);
        self.done.push(Completion { tag, at: now, status });
    }

    fn read_arrived(&mut self, command: u32) {
        let InFlight { lpn, pages, status, .. } = self.commands[command as usize];
        if status.is_err() {
            return self.complete(command);
        }
        self.deliver_contents(command);
        let (translation, flash) = (&self.translation, &mut self.flash);
        let places = (lpn..lpn + pages).filter_map(|lpn| translation.lookup(lpn));
        let parts = flash.host_read(command, places);
        flash.start_work();
        self.commands[command as usize].parts = parts;
        if parts == 0 {
            self.complete(command);
        }
    }

    fn read_part_done(&mut self, command: u32) {
        let parts = &mut self.commands[command as usize].parts;
        *parts -= 1;
        if *parts == 0 {
            self.complete(command);
        }
    }

    /// Lets stalled commands in, in order, as far as the write buffer has room.
    fn admit(&mut self) {
        while let Some(command) = self.stalled.front().copied() {
            let InFlight { kind, lpn, pages, .. } = self.commands[command as usize];
            match kind {
                Kind::Write(_) if pages > self.buffer_free => return,
                Kind::Write(stream) => self.write(command, lpn, pages, stream),
                Kind::Trim => (lpn..lpn + pages).for_each(|lpn| self.translation.trim(lpn)),
                Kind::Flush => {}
                Kind::Read => unreachable!("reads take the other path"),
            }
            self.stalled.pop_front();
            if kind == Kind::Flush {
                self.flush(command);
            } else {
                let at = self.flash.now + self.config.write_latency.0;
                let slot = self.slot_acknowledgements();
                queue_event(&mut self.acknowledgements, &mut self.flash, slot, at, command);
            }
        }
    }

    fn write(&mut self, command: u32, lpn: u32, pages: u32, stream: StreamId) {
        self.buffer_free -= pages;
        *self.unprogrammed.back_mut().expect("the current epoch is open") += pages;
        self.translation.write(lpn, pages, stream, &mut self.flash);
        self.flash.start_work();
        if self.flash.contents.is_some() {
            self.keep_contents(command);
        }
    }

    fn programmed(&mut self, pages: u32, epoch: u32) {
        if pages == 0 {
            return; // moved pages only
        }
        self.buffer_free += pages;
        self.unprogrammed[(epoch - self.first_epoch) as usize] -= pages;
        self.end_flushes();
        self.admit();
    }

    fn flush(&mut self, command: u32) {
        self.flash.close_partial();
        self.flash.start_work();
        self.flushes.push_back((self.flash.epoch, command));
        self.flash.epoch += 1;
        self.unprogrammed.push_back(0);
        self.end_flushes();
    }

    /// Completes every flush whose epoch, and all before it, is in the flash.
    fn end_flushes(&mut self) {
        while self.unprogrammed.len() > 1 && self.unprogrammed[0] == 0 {
            self.unprogrammed.pop_front();
            self.first_epoch += 1;
        }
        while let Some((_, command)) =
            self.flushes.front().copied().filter(|(epoch, _)| *epoch < self.first_epoch)
        {
            self.flushes.pop_front();
            self.complete(command);
        }
    }

    /// Keeps the bytes of an admitted write under its new physical pages.
    fn keep_contents(&mut self, command: u32) {
        let InFlight { lpn, pages, buffer, .. } = &self.commands[command as usize];
        let Some(contents) = &mut self.flash.contents else { return };
        let page_bytes = self.caps.page_bytes as usize;
        for (index, lpn) in (*lpn..lpn + pages).enumerate() {
            let ppn = self.translation.lookup(lpn).expect("just written");
            match buffer {
                // SAFETY: the submitter keeps the bytes unchanged until completion.
                Some(buffer) => {
                    contents.set(ppn, &unsafe { buffer.bytes() }[index * page_bytes..][..page_bytes])
                }
                None => contents.remove(ppn),
            }
        }
    }

    /// Gives a read the bytes as they are when it reaches the FTL.
    fn deliver_contents(&mut self, command: u32) {
        let InFlight { lpn, pages, buffer: Some(buffer), .. } = &self.commands[command as usize] else {
            return;
        };
        // SAFETY: the submitter gave the buffer away until completion.
        let bytes = unsafe { buffer.bytes_mut() };
        for (lpn, page) in (*lpn..lpn + pages).zip(bytes.chunks_exact_mut(self.caps.page_bytes as usize)) {
            let stored = self.translation.lookup(lpn);
            match stored.and_then(|ppn| self.flash.contents.as_ref()?.get(ppn)) {
                Some(stored) => page.copy_from_slice(stored),
                None => page.fill(0),
            }
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

    #[inline]
    fn write(&mut self, lpn: u32, pages: u32, stream: StreamId, flash: &mut Flash) {
        match self {
            Translation::PageMapped(ftl) => ftl.write(lpn, pages, stream, flash),
            Translation::InPlace(medium) => (lpn..lpn + pages).for_each(|lpn| {
                medium.write(lpn);
                flash.program(Ppn(lpn), None);
            }),
        }
    }

    fn trim(&mut self, lpn: u32) {
        match self {
            Translation::PageMapped(ftl) => ftl.trim(lpn),
            Translation::InPlace(medium) => medium.trim(lpn),
        }
    }
}

/// Queues a command for `at`, which is no earlier than any before it, in an event slot's queue.
fn queue_event(queue: &mut VecDeque<(u64, u32)>, flash: &mut Flash, slot: usize, at: u64, command: u32) {
    if queue.is_empty() {
        flash.events.set(slot, at);
    }
    queue.push_back((at, command));
}

/// Takes the first of an event slot's queue, whose time has come.
fn take_first(queue: &mut VecDeque<(u64, u32)>, flash: &mut Flash, slot: usize) -> u32 {
    let (_, command) = queue.pop_front().expect("a slot with an event has a queue");
    flash.events.set(slot, queue.front().map_or(NEVER, |(at, _)| *at));
    command
}

impl Device for SimDrive {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        Nanos(self.flash.now)
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.commands.len() >= self.config.queue_depth as usize {
            return Err(QueueFull(command));
        }
        let fault = command.operation.fault(&self.caps);
        let none = Lpn(0);
        let (mut kind, lpn, pages, buffer) = match command.operation {
            Operation::Read { lpn, pages, into } => (Kind::Read, lpn, pages, into),
            Operation::Write { lpn, pages, from, stream } => (Kind::Write(stream), lpn, pages, from),
            Operation::Trim { lpn, pages } => (Kind::Trim, lpn, pages, None),
            Operation::Share { .. } => (Kind::Read, none, 0, None),
            Operation::Flush => (Kind::Flush, none, 0, None),
        };
        if fault.is_some() {
            // A malformed command is answered from the read path, which touches no state.
            kind = Kind::Read;
        }
        let now = self.flash.now;
        let serial = if fault.is_some() { 0 } else { u64::from(pages) };
        let slot = if kind == Kind::Read { self.slot_reads() } else { self.slot_writes() };
        let (path, stage, delay) = match kind {
            Kind::Read => {
                let stage = self.config.read_command.0 + self.config.read_page.0 * serial;
                (&mut self.reads, stage, self.config.read_latency.0)
            }
            Kind::Write(_) => {
                (&mut self.writes, self.config.write_command.0 + self.config.write_page.0 * serial, 0)
            }
            Kind::Trim | Kind::Flush => (&mut self.writes, self.config.write_command.0, 0),
        };
        path.free = path.free.max(now) + stage;
        let id = self.commands.insert(InFlight {
            tag: command.tag,
            kind,
            lpn: lpn.0 as u32,
            pages,
            submitted: Nanos(now),
            parts: 0,
            buffer,
            status: fault.map_or(Ok(()), Err),
        });
        let at = path.free + delay;
        queue_event(&mut path.arrivals, &mut self.flash, slot, at, id as u32);
        self.meter.submit(Nanos(now));
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let deadline = deadline.map(|deadline| deadline.0.max(self.flash.now));
        loop {
            let (slot, at) = self.flash.events.first();
            // All completions of one instant are delivered together.
            let until = if self.done.is_empty() { deadline.unwrap_or(NEVER - 1) } else { self.flash.now };
            if at > until {
                break;
            }
            self.flash.now = at;
            self.event(slot);
        }
        if let (true, Some(deadline)) = (self.done.is_empty(), deadline) {
            self.flash.now = deadline;
        }
        completions.append(&mut self.done);
    }
}
