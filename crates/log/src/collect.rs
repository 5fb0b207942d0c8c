//! Garbage collection of the log-structured layer. It reads the valid pages of the victim segment, gives them
//! new physical addresses and writes them there, up to `depth` pages at once. When the last page is written,
//! the layer trims the segment on the drive below and frees it.
//!
//! A page that cannot be moved ends collection for good. Every page can still be read after that, and the
//! layer refuses writes with the error of the failed move.

use crate::LogDevice;
use crate::collection::Collection;
use crate::command::{Arriving, Part};
use crate::run::Run;
use fulgurite_base::{Lpn, Ppn};
use fulgurite_device::{Arena, Buffer, Device, IoError, Operation};
use fulgurite_ftl::UnitId;

impl<D: Device> LogDevice<D> {
    /// Asks the schedule for its state, begins or continues a collection as the state says, and admits
    /// waiting reads.
    pub(crate) fn look_at_schedule(&mut self) {
        // Repeats, because one segment that is freed at once may not be enough.
        while self.look_once() {}
        while let Some(command) = self.gate.next_read() {
            self.read(command);
        }
    }

    /// Asks the schedule once and collects as its state says. Returns true if this has freed a segment.
    fn look_once(&mut self) -> bool {
        let first = self.gate.first().map(|command| &self.commands[command as usize]);
        let waiting = first.and_then(|command| match command.operation {
            Operation::Write { lpn, stream, .. } => Some((lpn.0 as u32 + command.placed, stream)),
            _ => None,
        });
        let picked = self.gate.look(&mut self.ftl, waiting);
        if picked.is_some() {
            // Pads after each choice of a victim, because placement may merge its groups then and so seal
            // segments that are not full.
            self.pad();
            self.collection.begin(&self.ftl);
        }
        self.gate.state().collects() && self.collect()
    }

    /// Handles a write that has waited for collection for as long as it may: the schedule bars reads until
    /// collection has freed a segment. A collection is already in progress, since writes only wait during
    /// one.
    pub(crate) fn become_urgent(&mut self) {
        self.gate.become_urgent(&mut self.ftl);
        self.look_at_schedule();
    }

    /// Reads pages of the victim, at most `depth` of them at once. Frees the victim when all of its pages are
    /// moved. Returns true if the victim is free at once, without a trim.
    fn collect(&mut self) -> bool {
        while let Some((first, pages)) = self.next_run() {
            self.collection.next = first.0 + pages;
            self.collection.moving += pages;
            self.fetch(first, pages, true);
        }
        let Collection { next, end, moving, is_discarding, failure } = self.collection;
        let Some(victim) = self.ftl.victim(UnitId(0)) else { return false };
        // Keeps the victim until reads in flight in it end, since they still need its pages.
        let is_done = next == end && moving == 0 && self.in_use[victim.0 as usize] == 0;
        if !is_done || is_discarding || failure.is_some() {
            return false;
        }
        if !self.config.trim {
            self.discarded();
            return true;
        }
        self.collection.is_discarding = true;
        let pages = self.ftl.config().segment_pages;
        self.send(Part::Discard, Operation::Trim { lpn: Lpn(u64::from(end - pages)), pages });
        false
    }

    /// Returns the next valid pages of the victim that one command can read now: the first page and the
    /// number of pages. `None` if no page can be read now.
    fn next_run(&mut self) -> Option<(Ppn, u32)> {
        let Collection { end, moving, .. } = self.collection;
        let first = loop {
            let next = self.collection.next;
            if next == end {
                return None;
            }
            match self.arriving.get(&next) {
                _ if !self.ftl.mapping().is_valid(Ppn(next)) => {}
                Some(Arriving::Lost(error)) => self.move_lost(Ppn(next), *error),
                _ => break next,
            }
            // Invalid pages, and lost pages (whose writes failed), need no read from the drive below, so they
            // are skipped.
            self.collection.next += 1;
        };
        let most = (self.config.depth.saturating_sub(moving)).min(self.caps.pages_per_command);
        let map = self.ftl.mapping();
        // A page that is not stored on the drive below yet ends the run of pages. The schedule is asked again
        // when the page is stored.
        let can_move = |ppn: &u32| map.is_valid(Ppn(*ppn)) && !self.arriving.contains_key(ppn);
        let pages = (first..end).take(most as usize).take_while(can_move).count() as u32;
        (pages > 0).then_some((Ppn(first), pages))
    }

    /// Gives a lost page a new physical address. The page stays lost there: a read of it fails with the same
    /// error.
    fn move_lost(&mut self, from: Ppn, error: IoError) {
        let to = self.ftl.copy(from, &mut self.emitted);
        self.arriving.insert(to.0, Arriving::Lost(error));
        self.lost += 1;
        let stream = self.stream_below(to, 1);
        // Writes padding in its place, so that the segment on the drive below has no gap.
        self.write_nothing(to, 1, stream);
    }

    /// Reads pages of the victim. If the command fails and `again` is true, each page is read once more,
    /// separately.
    fn fetch(&mut self, first: Ppn, pages: u32, again: bool) {
        let bytes = pages as usize * self.caps.page_bytes as usize;
        let buffer = self.caps.contents.then(|| Arena::new(bytes).buffer(0, bytes));
        let operation = Operation::Read { lpn: Lpn(u64::from(first.0)), pages, into: buffer.clone() };
        self.send(Part::Fetch { first, pages, buffer, again }, operation);
    }

    /// Handles a failed read of pages of the victim: reads each page again, or ends collection after the
    /// second failure.
    pub(crate) fn not_fetched(&mut self, first: Ppn, pages: u32, again: bool, error: IoError) {
        for ppn in (first.0..first.0 + pages).map(Ppn) {
            if !self.ftl.mapping().is_valid(ppn) {
                // The host has rewritten or trimmed the page since, so it need not be moved.
                self.collection.moving -= 1;
            } else if again {
                // One unreadable page fails the whole command, so each page is read again separately.
                self.fetch(ppn, 1, false);
            } else {
                self.fail(error);
            }
        }
    }

    /// Handles a completed read of pages of the victim: pages that are still valid get new physical addresses
    /// and are written there.
    pub(crate) fn fetched(&mut self, first: Ppn, pages: u32, buffer: Option<Buffer>) {
        let segment_pages = self.ftl.config().segment_pages;
        let mut run: Option<Run> = None;
        for at in 0..pages {
            let from = Ppn(first.0 + at);
            if !self.ftl.mapping().is_valid(from) {
                self.collection.moving -= 1;
                continue;
            }
            // The map has the new address at once, but reads go to the old address until the copy is stored.
            let to = self.ftl.copy(from, &mut self.emitted);
            self.arriving.insert(to.0, Arriving::Moved { from });
            if let Some(full) = Run::extend(&mut run, Run::page(to, at), segment_pages) {
                self.store(full, &buffer);
            }
        }
        if let Some(last) = run {
            self.store(last, &buffer);
        }
    }

    fn store(&mut self, Run { first, pages, at }: Run, buffer: &Option<Buffer>) {
        let from = self.slice(buffer, at, pages);
        let (lpn, stream) = (Lpn(u64::from(first.0)), self.stream_below(first, pages));
        self.send(
            Part::Store { first, pages },
            Operation::Write { lpn, pages, from, stream, durable: false },
        );
    }

    /// Handles a completed write of moved pages.
    pub(crate) fn stored(&mut self, first: Ppn, pages: u32, status: Result<(), IoError>) {
        if let Err(error) = status {
            // Reads still go to the old addresses, so the victim must never be freed.
            return self.fail(error);
        }
        for ppn in first.0..first.0 + pages {
            self.arriving.remove(&ppn);
        }
        self.collection.moving -= pages;
    }

    /// Frees the victim. A failed trim does not matter, since a trim only spares the drive below copies.
    pub(crate) fn discarded(&mut self) {
        if self.lost > 0 {
            let end = self.collection.end;
            let gone =
                (end - self.ftl.config().segment_pages..end).filter_map(|ppn| self.arriving.remove(&ppn));
            self.lost -= gone.count() as u32;
        }
        self.ftl.release(UnitId(0), &mut self.emitted);
        // Keeps the failure, because a padding write may have failed since the victim was picked.
        self.collection = Collection { failure: self.collection.failure, ..Collection::default() };
        self.gate.end_urgency();
    }

    /// Ends collection for good because of `error`.
    pub(crate) fn fail(&mut self, error: IoError) {
        self.collection.failure = Some(error);
        self.gate.end_collection();
    }
}
