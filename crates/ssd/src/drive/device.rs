//! The drive as a `Device`: a submitted command passes a serial stage and arrives at the drive later.

use super::command::{CommandKind, InFlight, Payload, queue_event};
use super::tournament::NEVER;
use super::waits::Waits;
use super::{HostSlot, SimDrive, Translation};
use crate::SsdConfig;
use fulgurite_base::{Lpn, Nanos, PlacementId};
use fulgurite_device::{
    Buffer, Caps, Command, Completion, Device, FdpLog, Operation, QueueFull, ShareRun, Zone,
};

/// The bytes of a share command's list for each of its pages: the published command (SHARE, SIGMOD 2016) has
/// 250 pairs in a block of 4 KiB.
const PAIR_BYTES: u64 = 16;

/// Returns the time in nanoseconds that a command of `pages` pages occupies its serial stage.
#[inline]
fn stage(config: &SsdConfig, kind: CommandKind, pages: u64) -> u64 {
    match kind {
        CommandKind::Read => config.read_command.0 + config.read_page.0 * pages,
        CommandKind::Write(_) => config.write_command.0 + config.write_page.0 * pages,
        // A share command brings the list of its pages, as a write brings its bytes.
        CommandKind::Share => {
            config.write_command.0 + config.write_page.0 * pages * PAIR_BYTES / u64::from(config.page_bytes)
        }
        CommandKind::Trim | CommandKind::Flush => config.write_command.0,
    }
}

impl SimDrive {
    /// Lets a command with a slot of the firmware into its serial stage.
    #[inline]
    fn enter_stage(&mut self, id: u32) {
        let now = self.flash.now;
        let command = &mut self.commands[id as usize];
        command.waits.buffer += now - command.since;
        command.since = now;
        // A faulty command is answered and not performed, so its pages take no time.
        let serial = if command.fault.is_some() { 0 } else { u64::from(command.pages) };
        let (path, slot, delay) = match command.kind {
            CommandKind::Read => (&mut self.reads, HostSlot::Reads, self.config.read_latency.0),
            _ => (&mut self.writes, HostSlot::Writes, 0),
        };
        let slot = self.flash.dies() + slot as usize;
        path.free = path.free.max(now) + stage(&self.config, command.kind, serial);
        let at = path.free + delay;
        queue_event(&mut path.arrivals, &mut self.flash, slot, at, id);
    }

    /// Gives the slot of a command that was answered to the first one that waits.
    #[inline]
    pub(super) fn pass_slot(&mut self) {
        if let Some(next) = self.held.pop_front() {
            self.enter_stage(next);
        }
    }
}

impl Device for SimDrive {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        let Translation::PageMapped(ftl) = &self.translation else { return None };
        let lpn = u32::try_from(lpn.0).ok().filter(|lpn| u64::from(*lpn) < self.caps.pages)?;
        ftl.erases(lpn).map(u64::from)
    }

    fn now(&self) -> Nanos {
        Nanos(self.flash.now)
    }

    fn fdp_log(&self) -> Option<FdpLog> {
        let unit_pages = u64::from(self.caps.fdp?.unit_pages);
        let (counters, page_bytes) = (self.counters(), u64::from(self.config.page_bytes));
        Some(FdpLog {
            host_bytes_written: counters.host_pages_written * page_bytes,
            media_bytes_written: counters.flash_pages_programmed * page_bytes,
            media_bytes_erased: counters.erases * unit_pages * page_bytes,
            events: self.fdp.as_ref()?.newest(),
        })
    }

    fn zone(&self, lpn: Lpn) -> Option<Zone> {
        self.zones.as_ref()?.zone(u32::try_from(lpn.0).ok().filter(|lpn| u64::from(*lpn) < self.caps.pages)?)
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.unanswered >= self.config.queue_depth {
            return Err(QueueFull(command));
        }
        let mut fault = command.operation.fault(&self.caps);
        let none = Lpn(0);
        let bytes = |buffer: Option<Buffer>| buffer.map_or_else(Payload::none, Payload::Bytes);
        let (mut kind, lpn, pages, payload) = match command.operation {
            Operation::Read { lpn, pages, into } => (CommandKind::Read, lpn, pages, bytes(into)),
            Operation::Write { lpn, pages, from, stream, .. } => {
                (CommandKind::Write(stream), lpn, pages, bytes(from))
            }
            Operation::Trim { lpn, pages } => (CommandKind::Trim, lpn, pages, Payload::none()),
            Operation::Share { runs } => {
                let first = runs.first().map_or(none, |run| run.destination);
                (CommandKind::Share, first, ShareRun::total(&runs) as u32, Payload::Runs(runs))
            }
            Operation::Flush => (CommandKind::Flush, none, 0, Payload::none()),
        };
        if let (Some(zones), None) = (&mut self.zones, &fault) {
            let first = lpn.0 as u32;
            fault = match kind {
                CommandKind::Write(_) => {
                    zones.write(first, pages).map(|of_zone| kind = CommandKind::Write(of_zone)).err()
                }
                CommandKind::Trim => zones.trim(first, pages).err(),
                _ => None,
            };
        }
        if fault.is_some() {
            // Answers a malformed command from the read path, which changes no state.
            kind = CommandKind::Read;
        }
        if let (Some(events), Some(fdp), CommandKind::Write(stream)) = (&mut self.fdp, &self.caps.fdp, kind) {
            let id = PlacementId::of(stream);
            if !fdp.has(id) {
                events.invalid(Nanos(self.flash.now), id);
            }
        }
        let now = self.flash.now;
        if let (Translation::PageMapped(ftl), None) = (&self.translation, &fault) {
            ftl.mapping().prefetch(lpn.0 as u32);
        }
        let id = self.commands.insert(InFlight {
            tag: command.tag,
            kind,
            lpn: lpn.0 as u32,
            pages,
            submitted: Nanos(now),
            parts: 0,
            is_buffered: false,
            is_listed: false,
            is_answered: false,
            placed: 0,
            since: now,
            waits: Waits::default(),
            payload,
            fault: fault.map(Box::new),
        }) as u32;
        // All commands without an answer that are not held have a slot.
        if self.config.slots > 0 && self.unanswered >= self.config.slots {
            self.held.push_back(id);
        } else {
            self.enter_stage(id);
        }
        self.meter.submit(Nanos(now));
        self.unanswered += 1;
        if self.unanswered == 1 {
            self.end_idleness();
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Nanos> {
        if !self.done.is_empty() {
            return Some(self.now());
        }
        let (_, at) = self.flash.events.first();
        (at != NEVER).then_some(Nanos(at))
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let deadline = deadline.map(|deadline| deadline.0.max(self.flash.now));
        loop {
            let (slot, at) = self.flash.events.first();
            // Delivers all completions of one instant together. `NEVER` is the time of no event, so a wait
            // without a deadline ends before it.
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
