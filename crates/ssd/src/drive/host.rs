//! Serves the host's commands in the drive: it sends reads to the dies and writes into the buffer and then to
//! their physical pages, ends flushes, and completes commands.
//!
//! Writes, trims, shares and flushes wait in one queue, in order of arrival. A write takes its room in the
//! buffer as soon as there is enough. A cached write is then *accepted*: the host gets its answer, and the
//! drive keeps the bytes until the pages are *placed* (have physical pages), however long the schedule delays
//! this. Reads find these pages in the buffer.

use super::collector::Found;
use super::command::{CommandKind, InFlight, Payload, queue_event};
use super::flash::HostPages;
use super::{HostSlot, NEVER, Served, ServedKind, SimDrive, SpanKind, Translation, Waits};
use crate::WriteCache;
use fulgurite_base::{Nanos, Ppn, StreamId};
use fulgurite_device::{Completion, Device, IoError};
use fulgurite_ftl::{FlashSink, UnitId, Unplaced};
use std::collections::hash_map::Entry;

impl SimDrive {
    /// Completes a command: sends the host its answer.
    pub(super) fn complete(&mut self, command: u32) {
        let is_cached = self.is_cached();
        let answered = &mut self.commands[command as usize];
        let InFlight { tag, submitted, waits, kind, lpn, pages, .. } = *answered;
        let status = answered.fault.take().map_or(Ok(()), |fault| Err(*fault));
        if is_cached && answered.is_buffered && answered.placed < pages {
            answered.keep_bytes();
        } else {
            self.commands.remove(command as usize);
        }
        self.unanswered -= 1;
        self.pass_slot();
        let now = self.now();
        self.meter.complete(now, now - submitted);
        self.done.push(Completion { tag, at: now, status });
        if let Some(served) = &mut self.served {
            let kind = match kind {
                CommandKind::Read => ServedKind::Read,
                CommandKind::Write(_) | CommandKind::Share => ServedKind::Write,
                CommandKind::Trim | CommandKind::Flush => ServedKind::Other,
            };
            served.push(Served { tag, kind, submitted, waits });
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

    /// Sets the time at which the drive becomes idle, if it collects in the background.
    pub(super) fn watch_idleness(&mut self) {
        if self.config.collect.background > 0 && self.unanswered == 0 {
            // The idle time starts with the last completion, since a drive with a command in flight is busy.
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
        if waiting.fault.is_some() {
            return self.complete(command);
        }
        if self.passes(command) {
            self.read_flash(command);
        }
    }

    /// Queues the flash reads of a host read. Pages of one row are read together; pages in a buffer are not
    /// read from the flash.
    pub(super) fn read_flash(&mut self, command: u32) {
        let waiting = &mut self.commands[command as usize];
        waiting.since = self.flash.now;
        let InFlight { lpn, pages, .. } = *waiting;
        self.deliver_contents(command);
        let mut parts = 0;
        let mut last = None;
        for lpn in lpn..lpn + pages {
            if self.unplaced.contains_key(&lpn) {
                continue;
            }
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
                    Found::Joins => {
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

    /// Ends one of the flash operations of a command, which had waited for `waits`.
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

    /// Handles the arrival of a command that is not a read.
    pub(super) fn arrived(&mut self, command: u32) {
        let arrived = &mut self.commands[command as usize];
        arrived.since = self.flash.now;
        match arrived.kind {
            // Answers a flush at once if there is no rollback list: all acknowledged writes are in the flash,
            // or in a buffer that survives a power cut.
            CommandKind::Flush if self.flash.undo.is_none() => return self.acknowledge(command),
            CommandKind::Write(_) => {
                // The submission prefetched the map entry.
                if let Translation::PageMapped(ftl) = &self.translation {
                    ftl.prefetch_valid(arrived.lpn);
                }
                self.entering.push_back(command);
            }
            // A power cut keeps the writes that are in the buffer, and no reset that waits. So a write enters
            // the buffer after the resets before it.
            CommandKind::Trim if self.zones.is_some() => self.entering.push_back(command),
            _ => {}
        }
        self.gates[0].stall(command);
        self.enter();
        self.admit();
    }

    /// Gives writes their room in the buffer, in order.
    fn enter(&mut self) {
        let is_cached = self.is_cached();
        while let Some(command) = self.entering.front().copied() {
            let entering = &mut self.commands[command as usize];
            let (lpn, pages) = (entering.lpn, entering.pages);
            if pages > self.buffer_free || matches!(entering.kind, CommandKind::Trim) {
                return;
            }
            self.entering.pop_front();
            self.buffer_free -= pages;
            entering.is_buffered = true;
            entering.waits.buffer += self.flash.now - entering.since;
            entering.since = self.flash.now;
            if !is_cached {
                // Counts the assignment of physical pages as one part, so that the write cannot end before
                // all of its pages are placed.
                entering.parts = 1;
                continue;
            }
            self.acknowledge(command);
            // Lists the pages for reads, unless this is the first write in the queue, which may be placed at
            // once.
            if self.waiting.is_by_address() || self.gates[0].first() != Some(command) {
                self.unplaced.extend((lpn..lpn + pages).map(|lpn| (lpn, command)));
                self.commands[command as usize].is_listed = true;
            }
        }
    }

    /// Admits stalled commands in order, while the schedule serves writes.
    pub(super) fn admit(&mut self) {
        while let Some(command) = self.gates[0].first() {
            let InFlight { kind, lpn, pages, is_buffered, .. } = self.commands[command as usize];
            match kind {
                _ if self.is_worn_out() => {
                    self.gates[0].pass_first();
                    self.decline(command);
                    continue;
                }
                CommandKind::Write(_) if !is_buffered => return,
                CommandKind::Write(hint) if !self.write(command, hint) => return,
                CommandKind::Write(_) => {}
                // Trims, shares and flushes wait until no earlier page waits for a unit.
                _ if !self.waiting.is_empty() => return,
                CommandKind::Flush => {}
                CommandKind::Trim => self.translation.trim(lpn, pages, self.caps.zones.as_ref()),
                // Lets the share wait for a flush, because a share must not depend on writes that a power cut
                // could roll back.
                CommandKind::Share if self.flash.undo.is_some() => {}
                CommandKind::Share => self.share(command),
                CommandKind::Read => unreachable!("reads take the other path"),
            }
            self.gates[0].pass_first();
            if self.zones.is_some() && matches!(kind, CommandKind::Trim) {
                self.entering.pop_front();
                self.enter();
            }
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

    /// Refuses a command on a worn-out drive, which can only be read. Accepted writes stay in the buffer, so
    /// a volatile buffer can no longer be flushed.
    fn decline(&mut self, command: u32) {
        let InFlight { kind, pages, placed, is_buffered, .. } = self.commands[command as usize];
        match kind {
            CommandKind::Write(_) if is_buffered && self.is_cached() => return,
            // Returns only the room of unplaced pages; placed pages free their room when they are programmed.
            CommandKind::Write(_) if is_buffered => self.buffer_free += pages - placed,
            CommandKind::Write(_) => {
                self.entering.pop_front();
            }
            CommandKind::Trim if self.zones.is_some() => {
                self.entering.pop_front();
            }
            CommandKind::Flush if self.unplaced.is_empty() => return self.flush(command),
            _ => {}
        }
        self.commands[command as usize].fault = Some(Box::new(IoError::WornOut));
        self.complete(command);
    }

    /// Returns whether writes are accepted as soon as they have room in the buffer.
    #[inline]
    pub(super) fn is_cached(&self) -> bool {
        self.config.write_cache != WriteCache::Off
    }

    /// Makes all runs of a share. No event comes between two runs, so the share is atomic under power cuts.
    fn share(&mut self, command: u32) {
        if let Translation::PageMapped(ftl) = &mut self.translation {
            let Payload::Runs(runs) = &self.commands[command as usize].payload else { return };
            for run in runs {
                ftl.share_run(run.destination.0 as u32, run.source.0 as u32, run.pages);
            }
        }
    }

    /// Gives physical pages to as many pages of a write as may be written now. Returns true if all pages have
    /// one, or wait for one in the queue of their unit.
    fn write(&mut self, command: u32, hint: StreamId) -> bool {
        if self.waiting.is_by_address() {
            return true;
        }
        let InFlight { lpn, pages, placed: before, .. } = self.commands[command as usize];
        if self.is_refused_again(command, hint) {
            // Checks that the write's wait does not start again here, because no event would wake it.
            let urgent_at = self.gates[0].urgent_at();
            debug_assert_eq!(
                (
                    self.place_through(0, command, lpn + before, pages - before, hint),
                    self.gates[0].urgent_at()
                ),
                ((0, 0), urgent_at),
                "a write found places, or began to wait, though it was said to be refused as before"
            );
            return false;
        }
        let (count, programs) = self.place_through(0, command, lpn + before, pages - before, hint);
        let placed = before + count;
        if placed < pages {
            self.watch_urgency();
            self.list_unplaced(command, lpn + placed);
        }
        // Looks at the schedule, because pages may have used up free segments or been refused. In both cases
        // collection may now be wanted.
        if placed < pages {
            self.look_at_all()
        } else {
            self.look_at_placed(lpn + before, count)
        }
        if programs > 0 {
            // Queues incomplete rows, because they must not wait for pages that may never come.
            self.flash.close_partial();
        }
        self.end_placing(command);
        placed == pages
    }

    /// Returns whether another attempt to place the first write in the queue, which was refused before, would
    /// be refused without any change. While writes wait, nearly every event asks this.
    #[inline]
    fn is_refused_again(&self, command: u32, hint: StreamId) -> bool {
        let [gate] = &self.gates[..] else { return false };
        let write = &self.commands[command as usize];
        let is_settled = !gate.state().serves_writes() && gate.urgent_at().is_some() && write.is_listed;
        let Translation::PageMapped(ftl) = &self.translation else { return false };
        // With overlap the next victim might be begun now, so the attempt is made. Without overlap, a
        // collection is in progress or no segment could be picked, and no segment fills up while writes are
        // refused.
        if !is_settled || self.config.gc_overlap {
            return false;
        }
        ftl.state(UnitId(0), ftl.stream(write.lpn + write.placed, hint)) == gate.state()
    }

    /// Lets reads find the pages of the first write in the queue, from `first` on, that have no physical
    /// pages. If a later write of the same page is already listed, its entry stays.
    fn list_unplaced(&mut self, command: u32, first: u32) {
        let InFlight { lpn, pages, .. } = self.commands[command as usize];
        if self.is_cached() {
            (first..lpn + pages).for_each(|lpn| {
                self.unplaced.entry(lpn).or_insert(command);
            });
        }
        self.commands[command as usize].is_listed = true;
    }

    /// Ends the placing of a write if all of its pages have physical pages. A write without a cache then
    /// waits for its programs; a cached write ends.
    pub(super) fn end_placing(&mut self, command: u32) {
        let is_cached = self.is_cached();
        let write = &mut self.commands[command as usize];
        if write.placed < write.pages {
            return;
        }
        if !is_cached {
            write.waits.gc += self.flash.now - write.since;
            self.part_done(command, Waits::default());
        } else if write.is_answered {
            self.commands.remove(command as usize);
        }
    }

    /// Places pages of `command` in `unit`, as many as the unit's gate admits. Returns their number, and the
    /// number of programs that `command` waits for.
    pub(super) fn place_through(
        &mut self,
        unit: usize,
        command: u32,
        first: u32,
        pages: u32,
        hint: StreamId,
    ) -> (u32, u32) {
        let now = Nanos(self.flash.now);
        let waits = (!self.is_cached()).then_some(command);
        let mut sink = HostPages { flash: &mut self.flash, command: waits, programs: 0 };
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
        let programs = sink.programs;
        *self.unprogrammed.back_mut().expect("the current epoch is open") += count;
        let write = &mut self.commands[command as usize];
        write.placed += count;
        write.parts += programs;
        // Stores the bytes before reads of these pages are admitted.
        self.keep_contents(command, first..first + count);
        if !self.unplaced.is_empty() {
            for lpn in first..first + count {
                if let Entry::Occupied(listed) = self.unplaced.entry(lpn)
                    && *listed.get() == command
                {
                    listed.remove();
                }
            }
        }
        (count, programs)
    }

    /// Looks at the schedule in the units where pages have just been placed.
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

    /// Records that host pages of the flush epoch `epoch` are programmed in blocks of `unit`; each flush ends
    /// an epoch.
    pub(super) fn programmed(&mut self, unit: usize, pages: u32, epoch: u32) {
        if pages == 0 {
            return; // only moved pages
        }
        self.buffer_free += pages;
        self.unprogrammed[(epoch - self.first_epoch) as usize] -= pages;
        self.end_flushes();
        self.enter();
        // Tries a page that waits for its own unit again, like a write that could go to any unit.
        self.admit_to(unit);
    }

    /// Returns the number of pages of accepted writes that have no physical pages yet.
    pub(super) fn accepted_pages(&self) -> u64 {
        let is_accepted = |command: &InFlight| self.is_cached() && command.is_buffered;
        let accepted = self.commands.iter().filter(|(_, command)| is_accepted(command));
        accepted.map(|(_, write)| u64::from(write.pages - write.placed)).sum()
    }

    /// Returns whether host pages are on their way to the flash.
    pub(super) fn has_buffered(&self) -> bool {
        self.buffer_free < self.config.write_buffer_pages()
    }

    fn flush(&mut self, command: u32) {
        self.flushes.push_back((self.flash.epoch, command));
        self.end_epoch();
    }

    /// Sends all host pages to the flash and starts the next flush epoch.
    pub(super) fn end_epoch(&mut self) {
        self.flash.close_partial();
        // Starts a new epoch, so that pages placed from now on do not delay an earlier flush.
        self.flash.epoch += 1;
        self.unprogrammed.push_back(0);
        self.end_flushes();
    }

    /// Completes every flush whose epoch, and all epochs before it, is in the flash.
    pub(super) fn end_flushes(&mut self) {
        while self.unprogrammed.len() > 1 && self.unprogrammed[0] == 0 {
            self.unprogrammed.pop_front();
            self.first_epoch += 1;
        }
        // Lowers the barriers: the pages that superseded the victim's pages are programmed now, so its blocks
        // may be erased.
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
            self.acknowledge(command);
        }
    }

    /// Stores the bytes of a write's pages under their new physical pages.
    fn keep_contents(&mut self, command: u32, placed: std::ops::Range<u32>) {
        let Some(contents) = &mut self.flash.contents else { return };
        let page_bytes = self.caps.page_bytes as usize;
        for page in placed {
            let ppn = self.translation.lookup(page).expect("just written");
            match self.commands[command as usize].bytes_of(page, page_bytes) {
                Some(bytes) => contents.set(ppn, bytes),
                None => contents.remove(ppn),
            }
        }
    }

    /// Copies the current bytes into the buffer of a read when the read reaches the FTL.
    fn deliver_contents(&mut self, command: u32) {
        let InFlight { lpn, pages, payload: Payload::Bytes(buffer), .. } = &self.commands[command as usize]
        else {
            return;
        };
        let page_bytes = self.caps.page_bytes as usize;
        // SAFETY: the buffer belongs to the device until completion.
        let bytes = unsafe { buffer.bytes_mut() };
        for (lpn, page) in (*lpn..lpn + pages).zip(bytes.chunks_exact_mut(page_bytes)) {
            let stored = match self.unplaced.get(&lpn) {
                Some(write) => self.commands[*write as usize].bytes_of(lpn, page_bytes),
                None => {
                    let ppn = self.translation.lookup(lpn);
                    ppn.and_then(|ppn| self.flash.contents.as_ref()?.get(ppn))
                }
            };
            match stored {
                Some(stored) => page.copy_from_slice(stored),
                None => page.fill(0),
            }
        }
    }
}
