//! Simulates a drive that fails like real drives. Its failures follow from a seed.
//!
//! # The fault model
//!
//! *Time.* Every command takes a random time, so commands complete in any order. A write takes effect when it
//! completes. A read returns the contents at its own completion. If the page is being written at the same
//! time, the read may return the old version, the new one, or a mixture.
//!
//! *Cache.* With a protected cache, every acknowledged write survives. With a volatile cache, a flush makes
//! durable exactly the writes that were complete when the flush was submitted. At a power cut every other
//! write, cached or in flight, is kept, lost or torn. This is decided for each device page separately, in any
//! order. On some drives more writes are kept in one part than in the other. The unit of tearing is a sector of 512
//! bytes. A write of at most `atomic_bytes`, at a multiple of
//! its length, is kept or lost as a whole.
//!
//! *Trim and share.* Both are durable when they complete. A share maps further addresses to existing pages,
//! and is atomic over all of its runs of pages. It makes earlier writes to its source pages durable, and no
//! others. At a power cut a command in flight is either performed or not.
//!
//! *Power cut.* The power is cut after the n-th event, which is the submission or the completion of a
//! command. From then on nothing completes. [`CrashDevice::restart`] turns the power on again with the
//! contents that survived.
//!
//! *Faults.* [`FaultKind`] lists the faults with the behaviour that each allows the store. Each fault strikes
//! once, at the command that the plan names.
//!
//! *Not in the model* are completions of commands that were not submitted, a drive that changes its size, and
//! writes that change neighbouring pages.
//!
//! The drive also checks its user: changing a buffer while it is being written is a violation.

mod fault;
mod medium;
#[cfg(test)]
mod tests;

pub use fault::FaultKind;
pub(crate) use fault::{Allowed, Counted, Fault};
use fulgurite_base::{Lpn, Nanos, Prng};
use fulgurite_device::{
    Buffer, Caps, Command, Completion, Device, IoError, Operation, QueueFull, ShareRun, Tag,
};
use medium::{Medium, Page, Unit};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The parameters of the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashConfig {
    /// The size of a device page in bytes; a multiple of 512.
    pub page_bytes: u32,
    /// The number of device pages.
    pub pages: u64,
    /// The maximum number of commands in flight.
    pub queue_depth: u32,
    /// The maximum length of a read or write command in pages.
    pub pages_per_command: u32,
    /// The maximum number of pages in a SHARE command; 0 if the drive does not support SHARE.
    pub share_pages: u32,
    /// The length in bytes up to which a write is never torn; 0 if every write may be torn.
    pub atomic_bytes: u32,
    /// Whether the contents of the cache survive a power cut.
    pub protected: bool,
    /// Whether the drive supports writes that are durable when they complete.
    pub durable_writes: bool,
    /// The commands that take longer than others.
    pub stalls: Stalls,
    /// Whether a power cut keeps more of the cached writes in one part of the drive than in the other.
    pub uneven: bool,
}

/// The commands that take longer than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// The number of commands of which one takes longer on average.
    pub one_in: u64,
    /// How many times as long such a command takes.
    pub times: u64,
    /// How many times as long every flush takes.
    pub flush_times: u64,
}

impl Stalls {
    /// The stalls of an ordinary drive.
    pub const FEW: Stalls = Stalls { one_in: 64, times: 10, flush_times: 1 };
}

/// A command in flight.
struct Flight {
    tag: Tag,
    work: Work,
    /// The fault that strikes the command; `None` if none does.
    fault: Option<FaultKind>,
    error: Option<IoError>,
}

enum Work {
    Nothing,
    Read { lpn: u64, pages: u32, into: Option<Buffer> },
    Write { unit: Unit, from: Option<Buffer>, durable: bool },
    Trim { lpn: u64, pages: u64 },
    Share { runs: Box<[ShareRun]> },
    Flush { completed: u64 },
}

struct Core {
    config: CrashConfig,
    caps: Rc<Caps>,
    medium: Medium,
    prng: Prng,
    now: Nanos,
    submitted: u64,
    completed: u64,
    /// The commands in flight, ordered by completion time, and then by submission.
    flights: BTreeMap<(Nanos, u64), Flight>,
    powered: bool,
    /// The number of events since the power came on.
    events: u64,
    cut_after: Option<u64>,
    /// The number of events and waits after which the drive stops.
    budget: u64,
    faults: Vec<Fault>,
    struck: Vec<FaultKind>,
    counts: [u64; 3],
    /// The first violation of the drive's interface by its user; `None` if there was none.
    misuse: Option<String>,
    fingerprint: u64,
}

/// The simulated drive. Clones of the value are handles of one drive, so a test keeps a handle while an
/// executor owns another.
#[derive(Clone)]
pub(crate) struct CrashDevice {
    core: Rc<RefCell<Core>>,
    caps: Rc<Caps>,
}

impl CrashDevice {
    /// Creates an empty drive with its power on and without faults.
    pub(crate) fn new(config: CrashConfig, prng: Prng) -> CrashDevice {
        let caps = Rc::new(Caps {
            page_bytes: config.page_bytes,
            pages: config.pages,
            queue_depth: config.queue_depth,
            pages_per_command: config.pages_per_command,
            atomic_bytes: config.atomic_bytes,
            durable_writes: config.durable_writes,
            share_pages: config.share_pages,
            streams: 1,
            fdp: None,
            zones: None,
            contents: true,
            erase_counts: true,
            erase_pages: 0,
        });
        let core = Core {
            medium: Medium::new(config.pages, config.page_bytes),
            caps: Rc::clone(&caps),
            config,
            prng,
            now: Nanos::ZERO,
            submitted: 0,
            completed: 0,
            flights: BTreeMap::new(),
            powered: true,
            events: 0,
            cut_after: None,
            budget: u64::MAX,
            faults: Vec::new(),
            struck: Vec::new(),
            counts: [0; 3],
            misuse: None,
            fingerprint: 0,
        };
        CrashDevice { core: Rc::new(RefCell::new(core)), caps }
    }

    /// Turns the power on with the contents that survived. The power is cut again after `cut_after` events,
    /// and `faults` strike before that. After `budget` events and waits the drive stops, and
    /// [`CrashDevice::exhausted`] returns true.
    pub(crate) fn restart(&self, cut_after: Option<u64>, faults: Vec<Fault>, budget: u64) {
        self.cut();
        self.core.borrow_mut().powered = true;
        self.arm(cut_after, faults, budget);
    }

    /// Plans a power cut and faults, counted from now. The power stays on.
    pub(crate) fn arm(&self, cut_after: Option<u64>, faults: Vec<Fault>, budget: u64) {
        let mut core = self.core.borrow_mut();
        core.events = 0;
        core.counts = [0; 3];
        core.cut_after = cut_after;
        core.faults = faults;
        core.budget = budget;
    }

    /// Cuts the power now.
    pub(crate) fn cut(&self) {
        self.core.borrow_mut().cut();
    }

    /// Whether the power is on.
    pub(crate) fn powered(&self) -> bool {
        self.core.borrow().powered
    }

    /// Whether the drive stopped because its budget is used up.
    pub(crate) fn exhausted(&self) -> bool {
        self.core.borrow().budget == 0
    }

    /// Returns the faults that have struck since the drive was created.
    pub(crate) fn struck(&self) -> Vec<FaultKind> {
        self.core.borrow().struck.clone()
    }

    /// Returns the first violation of the drive's interface by its user; `None` if there was none.
    pub(crate) fn misuse(&self) -> Option<String> {
        self.core.borrow().misuse.clone()
    }

    /// Returns a hash of all events so far, with their times and bytes.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.core.borrow().fingerprint
    }
}

impl Core {
    fn cut(&mut self) {
        let flights = std::mem::take(&mut self.flights);
        let mut writes = Vec::new();
        for flight in flights.into_values() {
            match flight.work {
                Work::Write { unit, .. } if flight.error.is_none() => writes.push(unit),
                Work::Trim { lpn, pages } if self.prng.below(2) == 0 => self.medium.trim(lpn, pages),
                Work::Share { runs } if self.prng.below(2) == 0 => self.medium.share(&runs),
                _ => {}
            }
        }
        // Shuffles the writes in flight, because their order is undefined.
        self.prng.shuffle(&mut writes);
        if self.powered || !writes.is_empty() {
            self.medium.cut(writes, self.config.uneven, &mut self.prng);
        }
        self.powered = false;
    }

    /// Counts an event, and cuts the power if the plan says so.
    fn event(&mut self, words: [u64; 3]) {
        for word in words {
            self.fingerprint = mix(self.fingerprint, word);
        }
        self.events += 1;
        self.spend();
        if self.cut_after.is_some_and(|after| self.events >= after) {
            self.cut();
        }
    }

    fn spend(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        if self.budget == 0 {
            self.cut();
        }
    }

    /// Returns the fault that strikes the next command of a kind; `None` if none does.
    fn strike(&mut self, counted: Counted) -> Option<FaultKind> {
        let count = &mut self.counts[counted as usize];
        let nth = *count;
        *count += 1;
        let fault = self.faults.iter().find(|fault| fault.kind.counted() == counted && fault.nth == nth)?;
        self.struck.push(fault.kind);
        Some(fault.kind)
    }

    fn work(&mut self, operation: Operation) -> (Work, Option<FaultKind>) {
        match operation {
            Operation::Read { lpn, pages, into } => {
                (Work::Read { lpn: lpn.0, pages, into }, self.strike(Counted::Reads))
            }
            Operation::Write { lpn, pages, from, durable, .. } => {
                let fault = self.strike(Counted::Writes);
                let unit = self.unit(lpn, pages, from.as_ref());
                (Work::Write { unit, from, durable }, fault)
            }
            Operation::Trim { lpn, pages } => (Work::Trim { lpn: lpn.0, pages: pages.into() }, None),
            Operation::Share { runs } => (Work::Share { runs }, None),
            Operation::Flush => (Work::Flush { completed: self.completed }, self.strike(Counted::Flushes)),
        }
    }

    /// Copies the bytes of a write. Without a buffer the write has no bytes.
    fn unit(&mut self, lpn: Lpn, pages: u32, from: Option<&Buffer>) -> Unit {
        let page_bytes = self.config.page_bytes as usize;
        let pages = match from {
            Some(buffer) => {
                // SAFETY: the submitter keeps the bytes unchanged until completion.
                let bytes = unsafe { buffer.bytes() };
                bytes.chunks_exact(page_bytes).map(|page| Some(Some(Rc::from(page)))).collect()
            }
            None => vec![None; pages as usize],
        };
        let count = pages.len() as u64;
        let bytes = count * page_bytes as u64;
        let atomic = bytes <= u64::from(self.config.atomic_bytes) && lpn.0.is_multiple_of(count);
        Unit { lpn: lpn.0, pages, atomic, completed: 0, doomed: false }
    }

    fn latency(&mut self, work: &Work) -> Nanos {
        let (least, spread) = match work {
            Work::Read { .. } => (50_000, 60_000),
            Work::Write { .. } => (15_000, 120_000),
            Work::Flush { .. } => (80_000, 400_000),
            // The duration varies so much that a power cut finds some of several SHARE commands in flight and
            // others completed.
            Work::Share { .. } => (15_000, 400_000),
            Work::Nothing | Work::Trim { .. } => (10_000, 30_000),
        };
        let Stalls { one_in, times, flush_times } = self.config.stalls;
        let slow = if self.prng.below(one_in) == 0 { times } else { 1 };
        let slow = if matches!(work, Work::Flush { .. }) { slow * flush_times } else { slow };
        Nanos((least + self.prng.below(spread)) * slow)
    }

    /// Executes a command that completes now.
    fn perform(&mut self, flight: Flight) -> Completion {
        self.completed += 1;
        let mut status = flight.error.map_or(Ok(()), Err);
        if status.is_ok() {
            status = self.carry_out(flight.work, flight.fault);
        }
        Completion { tag: flight.tag, at: self.now, status }
    }

    fn carry_out(&mut self, work: Work, fault: Option<FaultKind>) -> Result<(), IoError> {
        match work {
            Work::Nothing => Ok(()),
            Work::Read { lpn, pages, into } => self.read(lpn, pages, into, fault),
            Work::Write { unit, from, durable } => self.write(unit, from, durable, fault),
            Work::Trim { lpn, pages } => {
                self.medium.trim(lpn, pages);
                Ok(())
            }
            Work::Share { runs } => {
                self.medium.share(&runs);
                Ok(())
            }
            Work::Flush { .. } if fault.is_some() => {
                self.medium.fail_flush(&mut self.prng);
                Err(IoError::Media)
            }
            Work::Flush { completed } => {
                self.medium.flush(completed);
                Ok(())
            }
        }
    }

    fn read(
        &mut self,
        lpn: u64,
        pages: u32,
        into: Option<Buffer>,
        fault: Option<FaultKind>,
    ) -> Result<(), IoError> {
        let from = match fault {
            Some(FaultKind::MisdirectedRead) => self.astray(lpn, u64::from(pages)),
            _ => lpn,
        };
        if fault == Some(FaultKind::Rot) {
            self.medium.rot(lpn + self.prng.below(pages.into()), &mut self.prng);
        }
        let Some(into) = into else { return Ok(()) };
        // SAFETY: the submitter gave the buffer away until completion.
        let bytes = unsafe { into.bytes_mut() };
        if fault == Some(FaultKind::ReadError) {
            bytes.fill(0xee);
            return Err(IoError::Media);
        }
        for (lpn, bytes) in (from..).zip(bytes.chunks_exact_mut(self.config.page_bytes as usize)) {
            let page = match fault {
                Some(FaultKind::StaleRead) => self.medium.previous(lpn).clone(),
                _ => self.page_in_race(lpn),
            };
            match page {
                Some(page) => bytes.copy_from_slice(&page),
                None => bytes.fill(0),
            }
        }
        Ok(())
    }

    /// Returns a page as a read sees it that may overlap a write of this page.
    fn page_in_race(&mut self, lpn: u64) -> Page {
        let stored = self.medium.page(lpn).clone();
        let racing = self.flights.values().find_map(|flight| match &flight.work {
            Work::Write { unit, .. } if flight.error.is_none() => {
                let at = lpn.checked_sub(unit.lpn)?;
                Some((unit.pages.get(at as usize)?.clone()?, unit.atomic))
            }
            _ => None,
        });
        let Some((new, atomic)) = racing else { return stored };
        match self.prng.below(3) {
            0 => new,
            1 if !atomic => self.medium.torn(&stored, &new, &mut self.prng),
            _ => stored,
        }
    }

    fn write(
        &mut self,
        mut unit: Unit,
        from: Option<Buffer>,
        durable: bool,
        fault: Option<FaultKind>,
    ) -> Result<(), IoError> {
        if let Some(from) = from {
            self.watch(&unit, &from);
        }
        unit.completed = self.completed;
        let protected = self.config.protected;
        match fault {
            Some(FaultKind::LostWrite) => return Ok(()),
            Some(FaultKind::WriteError) => {
                self.medium.write_in_part(&unit, protected, &mut self.prng);
                return Err(IoError::Media);
            }
            Some(FaultKind::MisdirectedWrite) => unit.lpn = self.elsewhere(unit.pages.len() as u64),
            _ => {}
        }
        self.medium.write(unit, protected || durable);
        Ok(())
    }

    /// Returns the address from which a misdirected read is served. In half of the cases the address contains
    /// another version of the page, if the drive has one. This version is valid in itself, and only its
    /// address reveals that it is the wrong one.
    ///
    /// On a drive with SHARE no other version is chosen: shared pages are equal at both addresses, so they
    /// cannot contain their own address.
    fn astray(&mut self, lpn: u64, pages: u64) -> u64 {
        let other = self.elsewhere(pages);
        let places = (0..self.config.pages / pages).map(|place| place * pages);
        let (versions, others): (Vec<u64>, Vec<u64>) = places.partition(|place| self.is_version(lpn, *place));
        match self.config.share_pages > 0 {
            true if versions.contains(&other) => others[self.prng.below(others.len() as u64) as usize],
            false if !versions.is_empty() && self.prng.below(2) == 0 => {
                versions[self.prng.below(versions.len() as u64) as usize]
            }
            _ => other,
        }
    }

    /// Whether the page at `place` is another version of the page at `lpn`. A page of a store contains its
    /// number in bytes 8 to 16.
    fn is_version(&self, lpn: u64, place: u64) -> bool {
        let (own, other) = (self.medium.page(lpn), self.medium.page(place));
        match (own, other) {
            (Some(own), Some(other)) => own[8..16] == other[8..16] && own != other,
            _ => false,
        }
    }

    /// Returns another address for a command of `pages` pages. It is usually near the beginning of the drive,
    /// where the store has its most important structures.
    fn elsewhere(&mut self, pages: u64) -> u64 {
        let places = self.config.pages / pages;
        let places = if self.prng.below(2) == 0 { places.div_ceil(8) } else { places };
        self.prng.below(places) * pages
    }

    fn watch(&mut self, unit: &Unit, from: &Buffer) {
        // SAFETY: the write has just completed; its submitter runs only after this.
        let bytes = unsafe { from.bytes() };
        let pages = unit.pages.iter().zip(bytes.chunks_exact(self.config.page_bytes as usize));
        for (page, now) in pages {
            if page.as_ref().is_some_and(|page| page.as_deref() != Some(now)) {
                self.misuse = Some(format!("the bytes of page {} changed while they were written", unit.lpn));
            }
        }
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// Returns the words of an operation that are hashed: its kind and its address, and the bytes of a write.
fn words(operation: &Operation) -> [u64; 2] {
    match operation {
        Operation::Read { lpn, pages, .. } => [lpn.0 << 3, u64::from(*pages)],
        Operation::Write { lpn, pages, from, .. } => {
            let hash = from.as_ref().map_or(0, |buffer| {
                // SAFETY: the submitter keeps the bytes unchanged until completion.
                let bytes = unsafe { buffer.bytes() };
                bytes.chunks_exact(8).fold(u64::from(*pages), |hash, word| {
                    mix(hash, u64::from_le_bytes(word.try_into().unwrap_or_default()))
                })
            });
            [lpn.0 << 3 | 1, hash]
        }
        Operation::Trim { lpn, pages } => [lpn.0 << 3 | 2, u64::from(*pages)],
        Operation::Share { runs } => {
            let hash = runs.iter().fold(0, |hash, run| {
                mix(mix(hash, run.destination.0), run.source.0 << 20 ^ u64::from(run.pages))
            });
            [(runs.len() as u64) << 3 | 3, hash]
        }
        Operation::Flush => [4, 0],
    }
}

impl Device for CrashDevice {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.core.borrow().now
    }

    /// Returns the number of writes of the page as its number of erases, because the drive writes in place.
    fn erases(&self, lpn: Lpn) -> Option<u64> {
        self.core.borrow().medium.writes(lpn.0)
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let core = &mut *self.core.borrow_mut();
        // Without power, the drive ignores commands.
        if !core.powered {
            return Ok(());
        }
        if core.flights.len() >= core.config.queue_depth as usize {
            return Err(QueueFull(command));
        }
        let Command { tag, operation } = command;
        let [place, bytes] = words(&operation);
        let error = operation.fault(&core.caps);
        let (work, fault) = if error.is_some() { (Work::Nothing, None) } else { core.work(operation) };
        let end = core.now + core.latency(&work);
        core.flights.insert((end, core.submitted), Flight { tag, work, fault, error });
        core.submitted += 1;
        core.event([place, bytes, core.now.0]);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let core = &mut *self.core.borrow_mut();
        core.spend();
        if !core.powered {
            return;
        }
        // A deadline in the past must not move the clock backward.
        let deadline = deadline.map(|deadline| deadline.max(core.now));
        let next = core.flights.first_key_value().map(|((at, _), _)| *at);
        let Some(until) = next.into_iter().chain(deadline).min() else { return };
        core.now = until;
        while let Some(entry) = core.flights.first_entry().filter(|entry| entry.key().0 <= until) {
            let flight = entry.remove();
            let tag = flight.tag;
            let completion = core.perform(flight);
            core.event([u64::MAX, tag.0, u64::from(completion.status.is_ok())]);
            completions.push(completion);
        }
    }
}
