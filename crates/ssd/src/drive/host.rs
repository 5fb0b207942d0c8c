//! The host's commands on their way through the drive: reads to the dies, writes to their places, flushes,
//! completions.

use super::collector::Found;
use super::command::{CommandKind, InFlight, queue_event};
use super::flash::HostPages;
use super::{HostSlot, NEVER, Served, SimDrive, SpanKind, Translation, Waits};
use crate::WriteCache;
use fulgurite_base::{Nanos, Ppn, StreamId};
use fulgurite_device::{Completion, Device, IoError};
use fulgurite_ftl::{FlashSink, Unplaced};

impl SimDrive {
    pub(super) fn complete(&mut self, command: u32) {
        let InFlight { tag, submitted, status, waits, kind, lpn, pages, .. } =
            self.commands.remove(command as usize);
        let now = self.now();
        self.meter.complete(now, now - submitted);
        self.done.push(Completion { tag, at: now, status });
        if let Some(served) = &mut self.served {
            served.push(Served { tag, submitted, waits });
        }
        if let Some(timeline) = &mut self.timeline {
            let kind = match kind {
                CommandKind::Read => SpanKind::HostRead,
                CommandKind::Write(_) => SpanKind::HostWrite,
                CommandKind::Trim | CommandKind::Share | CommandKind::Flush => SpanKind::HostOther,
            };
            timeline.request(kind, lpn, pages, submitted, now);
        }
        self.watch_idleness();
    }

    /// Sets the time at which the drive becomes idle, if it collects then.
    pub(super) fn watch_idleness(&mut self) {
        if self.config.collect.background > 0 && self.commands.is_empty() {
            // With a command in flight the drive is busy, so the time starts with the last completion.
            self.flash.events.set(self.slot(HostSlot::Idle), self.flash.now + self.config.gc_idle.0);
        }
    }

    pub(super) fn end_idleness(&mut self) {
        if self.config.collect.background > 0 {
            self.flash.events.set(self.slot(HostSlot::Idle), NEVER);
            if let Translation::PageMapped(ftl) = &mut self.translation {
                ftl.set_idle(false);
            }
            self.look_at_all();
        }
    }

    pub(super) fn read_arrived(&mut self, command: u32) {
        let waiting = &mut self.commands[command as usize];
        waiting.since = self.flash.now;
        if waiting.status.is_err() {
            return self.complete(command);
        }
        if self.passes(command) {
            self.read_flash(command);
        }
    }

    /// Queues the flash reads of a host read: pages of one row are read together, pages in a buffer
    /// are not read at all.
    pub(super) fn read_flash(&mut self, command: u32) {
        let waiting = &mut self.commands[command as usize];
        waiting.since = self.flash.now;
        let InFlight { lpn, pages, .. } = *waiting;
        self.deliver_contents(command);
        let mut parts = 0;
        let mut last = None;
        for lpn in lpn..lpn + pages {
            // A page that was never written is answered without the flash.
            let Some(ppn) = self.translation.lookup(lpn) else { continue };
            let place = self.flash.layout.place(ppn);
            // A page that is not programmed yet is still in a buffer.
            if !self.flash.is_programmed(place) {
                continue;
            }
            if self.config.collect.schedule.merge {
                let unit = self.flash.layout.unit_of_block(place.block);
                match self.collectors[unit].find(ppn, command) {
                    Found::InFlash => {}
                    Found::Held => continue,
                    Found::Rides => {
                        parts += 1;
                        continue;
                    }
                }
            }
            let op = self.flash.host_read(command, place, last);
            parts += u32::from(last != Some(op));
            last = Some(op);
        }
        self.commands[command as usize].parts = parts;
        if parts == 0 {
            self.complete(command);
        }
    }

    /// One of a command's flash operations has ended, having waited for `waits`.
    pub(super) fn part_done(&mut self, command: u32, waits: Waits) {
        let waiting = &mut self.commands[command as usize];
        waiting.parts -= 1;
        if waiting.parts > 0 {
            return;
        }
        waiting.waits.gc += waits.gc;
        waiting.waits.die += waits.die;
        waiting.waits.channel += waits.channel;
        match waiting.kind {
            CommandKind::Read => self.complete(command),
            _ => self.acknowledge(command),
        }
    }

    fn acknowledge(&mut self, command: u32) {
        let at = self.flash.now + self.config.write_latency.0;
        let slot = self.slot(HostSlot::Acknowledgements);
        queue_event(&mut self.acknowledgements, &mut self.flash, slot, at, command);
    }

    /// Lets stalled commands in, in order, as far as the write buffer has room and the schedule
    /// serves writes.
    pub(super) fn admit(&mut self) {
        while let Some(command) = self.gates[0].first() {
            let InFlight { kind, lpn, pages, .. } = self.commands[command as usize];
            match kind {
                CommandKind::Write(_) if self.is_worn_out() => self.refuse(command, IoError::WornOut),
                CommandKind::Write(hint) if !self.write(command, hint) => return,
                CommandKind::Write(_) => {}
                // What came before it comes first.
                _ if !self.waiting.is_empty() => return,
                CommandKind::Flush => {}
                CommandKind::Trim => self.translation.trim(lpn, pages),
                // Shares nothing that a power cut could take back.
                CommandKind::Share if self.flash.undo.is_some() => {}
                CommandKind::Share => self.share(command),
                CommandKind::Read => unreachable!("reads take the other path"),
            }
            self.gates[0].pass_first();
            match kind {
                CommandKind::Flush => self.flush(command),
                CommandKind::Share if self.flash.undo.is_some() => self.flush(command),
                CommandKind::Trim | CommandKind::Share => self.acknowledge(command),
                CommandKind::Write(_) if self.waiting.is_by_address() => self.scatter(command),
                CommandKind::Write(_) | CommandKind::Read => {}
            }
        }
    }

    pub(super) fn is_worn_out(&self) -> bool {
        matches!(&self.translation, Translation::PageMapped(ftl) if ftl.is_worn_out())
    }

    fn refuse(&mut self, command: u32, why: IoError) {
        let refused = &mut self.commands[command as usize];
        refused.status = Err(why);
        if refused.is_buffered {
            // Placed pages free their room when they are programmed.
            self.buffer_free += refused.pages - refused.placed;
        }
        self.complete(command);
    }

    /// Makes all runs of a share. No event comes between two of them, so a power cut finds all or none.
    fn share(&mut self, command: u32) {
        if let Translation::PageMapped(ftl) = &mut self.translation {
            for run in &self.commands[command as usize].runs {
                ftl.share_run(run.destination.0 as u32, run.source.0 as u32, run.pages);
            }
        }
    }

    /// Gives the pages of a write their places, as many as may be written now; true when all have one, or wait for
    /// it elsewhere.
    fn write(&mut self, command: u32, hint: StreamId) -> bool {
        let InFlight { lpn, pages, placed: before, since, is_buffered, .. } = self.commands[command as usize];
        if !is_buffered {
            if pages > self.buffer_free {
                return false;
            }
            self.buffer_free -= pages;
            let waiting = &mut self.commands[command as usize];
            waiting.is_buffered = true;
            waiting.waits.buffer += self.flash.now - since;
            waiting.since = self.flash.now;
            // One part stands for the placing itself.
            waiting.parts = 1;
        }
        if self.waiting.is_by_address() {
            return true;
        }
        let (count, programs) = self.place_through(0, command, lpn + before, pages - before, hint);
        let placed = before + count;
        if placed < pages {
            self.watch_urgency();
        }
        // The schedule is asked about the first page that still waits.
        if let Some(first) = self.gates[0].first() {
            self.commands[first as usize].placed = placed;
        }
        // Pages may have used up free segments, or been refused: either way collection may now be wanted.
        if placed < pages {
            self.look_at_all()
        } else {
            self.look_at_placed(lpn + before, count)
        }
        if programs > 0 {
            // They must not wait for pages that may never come.
            self.flash.close_partial();
        }
        let waiting = &mut self.commands[command as usize];
        waiting.placed = placed;
        waiting.parts += programs;
        if placed < pages {
            return false;
        }
        waiting.waits.gc += self.flash.now - waiting.since;
        if self.flash.contents.is_some() {
            self.keep_contents(command, lpn..lpn + pages);
        }
        self.part_done(command, Waits::default());
        true
    }

    /// Places pages of `command` at the gate of `unit`. Returns how many are placed, and how many programs `command`
    /// waits for by it.
    pub(super) fn place_through(
        &mut self,
        unit: usize,
        command: u32,
        first: u32,
        pages: u32,
        hint: StreamId,
    ) -> (u32, u32) {
        let now = Nanos(self.flash.now);
        let command = (self.config.write_cache == WriteCache::Off).then_some(command);
        let mut sink = HostPages { flash: &mut self.flash, command, programs: 0 };
        let count = match &mut self.translation {
            Translation::PageMapped(ftl) => {
                let unplaced = Unplaced { first, pages, hint };
                self.gates[unit].place(ftl, unplaced, now, &mut sink, |sink, _, ppn, old| {
                    sink.flash.note_old_place(ppn, old);
                })
            }
            Translation::InPlace(medium) => {
                for lpn in first..first + pages {
                    medium.write(lpn);
                    sink.program(Ppn(lpn), None);
                }
                pages
            }
        };
        *self.unprogrammed.back_mut().expect("the current epoch is open") += count;
        (count, sink.programs)
    }

    /// Sees what the schedule wants now where pages have just been placed.
    fn look_at_placed(&mut self, first: u32, pages: u32) {
        if self.gates.len() == 1 {
            return self.look_at(0);
        }
        for lpn in first..first + pages {
            let Translation::PageMapped(ftl) = &self.translation else { return };
            if let Some(ppn) = ftl.lookup(lpn) {
                let unit = ftl.unit_of(ftl.segment(ppn));
                self.look_at(unit.0 as usize);
            }
        }
    }

    pub(super) fn programmed(&mut self, pages: u32, epoch: u32) {
        if pages == 0 {
            return; // moved pages only
        }
        self.buffer_free += pages;
        self.unprogrammed[(epoch - self.first_epoch) as usize] -= pages;
        self.end_flushes();
        self.admit();
    }

    fn flush(&mut self, command: u32) {
        self.flushes.push_back((self.flash.epoch, command));
        self.end_epoch();
    }

    /// Sends all host pages on their way and opens the next flush epoch.
    pub(super) fn end_epoch(&mut self) {
        self.flash.close_partial();
        // Pages placed from now on must not delay a flush that came before them.
        self.flash.epoch += 1;
        self.unprogrammed.push_back(0);
        self.end_flushes();
    }

    /// Completes every flush whose epoch, and all before it, is in the flash.
    pub(super) fn end_flushes(&mut self) {
        while self.unprogrammed.len() > 1 && self.unprogrammed[0] == 0 {
            self.unprogrammed.pop_front();
            self.first_epoch += 1;
        }
        // The pages that superseded the victim's are programmed now, so its blocks may be erased.
        if self.flash.undo.is_some() {
            for collector in &mut self.collectors {
                if collector.lower_barrier(self.first_epoch) {
                    collector.touch_dies(&mut self.flash);
                }
            }
        }
        while let Some((_, command)) =
            self.flushes.front().copied().filter(|(epoch, _)| *epoch < self.first_epoch)
        {
            self.flushes.pop_front();
            if self.commands[command as usize].kind == CommandKind::Share {
                self.share(command);
            }
            self.complete(command);
        }
    }

    /// Keeps the bytes of pages of an admitted write under its new physical pages.
    pub(super) fn keep_contents(&mut self, command: u32, placed: std::ops::Range<u32>) {
        let InFlight { lpn, buffer, .. } = &self.commands[command as usize];
        let Some(contents) = &mut self.flash.contents else { return };
        let page_bytes = self.caps.page_bytes as usize;
        for page in placed {
            let index = (page - lpn) as usize;
            let ppn = self.translation.lookup(page).expect("just written");
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
