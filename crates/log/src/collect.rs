//! The layer's collection. Valid pages of the victim are fetched, get new places and are stored there, up to
//! `depth` of them at once. When the last page is stored, the segment is discarded below and free.
//!
//! A page that cannot be moved ends collection for good. Every page can still be read then, and writes are
//! refused with the reason.

use crate::LogDevice;
use crate::collection::Collection;
use crate::command::{Arriving, Part};
use crate::run::Run;
use fulgurite_base::{Lpn, Ppn};
use fulgurite_device::{Arena, Buffer, Device, IoError, Operation};
use fulgurite_ftl::UnitId;

impl<D: Device> LogDevice<D> {
    /// Asks the schedule for its state. Then begins or continues a collection, and admits reads.
    pub(crate) fn look_at_schedule(&mut self) {
        // One segment that is freed at once may not be enough.
        while self.look_once() {}
        while let Some(command) = self.gate.next_read() {
            self.read(command);
        }
    }

    /// Returns true if this has freed a segment.
    fn look_once(&mut self) -> bool {
        let first = self.gate.first().map(|command| &self.commands[command as usize]);
        let waiting = first.and_then(|command| match command.operation {
            Operation::Write { lpn, stream, .. } => Some((lpn.0 as u32 + command.placed, stream)),
            _ => None,
        });
        let picked = self.gate.look(&mut self.ftl, waiting);
        if picked.is_some() {
            // Placement may change its groups at a pick.
            self.pad();
            self.collection.begin(&self.ftl);
        }
        self.gate.state().collects() && self.collect()
    }

    /// Handles a write that has waited too long. A collection is already in progress, since writes only wait
    /// during one. Reads are barred now.
    pub(crate) fn become_urgent(&mut self) {
        self.gate.become_urgent(&mut self.ftl);
        self.look_at_schedule();
    }

    /// Fetches pages of the victim, at most `depth` of them at once. Gives up the segment when no page is
    /// left. Returns true if the segment is free at once.
    fn collect(&mut self) -> bool {
        while let Some((first, pages)) = self.next_run() {
            self.collection.next = first.0 + pages;
            self.collection.moving += pages;
            self.fetch(first, pages, true);
        }
        let Collection { next, end, moving, is_discarding, failure } = self.collection;
        let Some(victim) = self.ftl.victim(UnitId(0)) else { return false };
        // Reads in flight in the victim still need its pages, so it is kept until they end.
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

    /// The next valid pages of the victim that can be fetched with one command now.
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
            // Garbage and lost pages are skipped: they are not read below.
            self.collection.next += 1;
        };
        let most = (self.config.depth.saturating_sub(moving)).min(self.caps.pages_per_command);
        let map = self.ftl.mapping();
        // Pages that are not yet stored below end the run; the schedule is looked at again when they are.
        let can_move = |ppn: &u32| map.is_valid(Ppn(*ppn)) && !self.arriving.contains_key(ppn);
        let pages = (first..end).take(most as usize).take_while(can_move).count() as u32;
        (pages > 0).then_some((Ppn(first), pages))
    }

    /// Gives a lost page a new place, where it stays lost: a read of it fails with the same error.
    fn move_lost(&mut self, from: Ppn, error: IoError) {
        let to = self.ftl.copy(from, &mut self.emitted);
        self.arriving.insert(to.0, Arriving::Lost(error));
        self.lost += 1;
        let stream = self.stream_below(to, 1);
        // The page is still written, so that the segment below has no gap.
        self.write_nothing(to, 1, stream);
    }

    /// Reads pages of the victim. With `again`, failed pages are read once more, one by one.
    fn fetch(&mut self, first: Ppn, pages: u32, again: bool) {
        let bytes = pages as usize * self.caps.page_bytes as usize;
        let buffer = self.caps.contents.then(|| Arena::new(bytes).buffer(0, bytes));
        let operation = Operation::Read { lpn: Lpn(u64::from(first.0)), pages, into: buffer.clone() };
        self.send(Part::Fetch { first, pages, buffer, again }, operation);
    }

    /// Handles a failed read of pages of the victim.
    pub(crate) fn not_fetched(&mut self, first: Ppn, pages: u32, again: bool, error: IoError) {
        for ppn in (first.0..first.0 + pages).map(Ppn) {
            if !self.ftl.mapping().is_valid(ppn) {
                // It is garbage meanwhile.
                self.collection.moving -= 1;
            } else if again {
                // One bad page fails the whole command, so each page is read again separately.
                self.fetch(ppn, 1, false);
            } else {
                self.fail(error);
            }
        }
    }

    /// Handles a completed read of pages of the victim: those that are still valid get new places.
    pub(crate) fn fetched(&mut self, first: Ppn, pages: u32, buffer: Option<Buffer>) {
        let segment_pages = self.ftl.config().segment_pages;
        let mut run: Option<Run> = None;
        for at in 0..pages {
            let from = Ppn(first.0 + at);
            if !self.ftl.mapping().is_valid(from) {
                self.collection.moving -= 1;
                continue;
            }
            // The map has the new place at once, but reads go to the old one until the copy is stored.
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
            // Reads still go to the old places, and the victim is never given up.
            return self.fail(error);
        }
        for ppn in first.0..first.0 + pages {
            self.arriving.remove(&ppn);
        }
        self.collection.moving -= pages;
    }

    /// Frees the victim, whether or not the trim below succeeded.
    pub(crate) fn discarded(&mut self) {
        if self.lost > 0 {
            let end = self.collection.end;
            let gone =
                (end - self.ftl.config().segment_pages..end).filter_map(|ppn| self.arriving.remove(&ppn));
            self.lost -= gone.count() as u32;
        }
        self.ftl.release(UnitId(0), &mut self.emitted);
        // A write that only fills a segment may have failed meanwhile.
        self.collection = Collection { failure: self.collection.failure, ..Collection::default() };
        self.gate.end_urgency();
    }

    /// Ends collection for good.
    pub(crate) fn fail(&mut self, error: IoError) {
        self.collection.failure = Some(error);
        self.gate.end_collection();
    }
}
