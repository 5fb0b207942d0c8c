//! The layer's collection: valid pages of the victim are fetched, given new places and stored there, up to `depth`
//! of them at once. When the last has arrived, the segment is discarded below and free.
//!
//! A page that cannot be moved ends collection for good. Every page can still be read then, and writes are
//! refused with the reason.

use crate::LogDevice;
use crate::command::{Arriving, Part};
use crate::run::Run;
use fulgurite_base::{Lpn, Ppn};
use fulgurite_device::{Arena, Buffer, Device, IoError, Operation};
use fulgurite_ftl::{Ftl, UnitId};

/// How far the collection of the victim has come.
#[derive(Default)]
pub(crate) struct Collection {
    /// The first page not yet looked at.
    next: u32,
    /// The end of the victim; zero without one.
    end: u32,
    /// Pages being fetched or stored.
    moving: u32,
    /// The drive below is told that the victim is garbage.
    is_discarding: bool,
    /// What has ended collection for good.
    pub failure: Option<IoError>,
}

impl Collection {
    /// Where a translation layer that was used without time has left it.
    pub fn resumed(ftl: &Ftl) -> Collection {
        let mut collection = Collection::default();
        collection.begin(ftl);
        collection
    }

    fn begin(&mut self, ftl: &Ftl) {
        if let Some(victim) = ftl.victim(UnitId(0)) {
            let segment_pages = ftl.config().segment_pages;
            (self.next, self.end) = (victim.0 * segment_pages, (victim.0 + 1) * segment_pages);
        }
    }
}

impl<D: Device> LogDevice<D> {
    /// Sees what the schedule wants now: begins a collection, goes on with it, lets reads in.
    pub(crate) fn look_at_schedule(&mut self) {
        // A segment that is free at once may not be the last that is wanted.
        while self.look_once() {}
        while let Some(command) = self.gate.next_read() {
            self.read(command);
        }
    }

    /// True when this has freed a segment.
    fn look_once(&mut self) -> bool {
        let first = self.gate.first().map(|command| &self.commands[command as usize]);
        let waiting = first.and_then(|command| match command.operation {
            Operation::Write { lpn, stream, .. } => Some((lpn.0 as u32 + command.placed, stream)),
            _ => None,
        });
        let picked = self.gate.look(&mut self.ftl, waiting);
        if picked.is_some() {
            // A pick is where placement may change its groups.
            self.pad();
            self.collection.begin(&self.ftl);
        }
        self.gate.state().collects() && self.collect()
    }

    /// A write has waited for too long. Collection is under way already, since nobody waits without one; reads are barred now.
    pub(crate) fn become_urgent(&mut self) {
        self.gate.become_urgent(&mut self.ftl);
        self.look_at_schedule();
    }

    /// Fetches pages of the victim, `depth` of them at once at most; when none is left, gives up the segment.
    /// True if the segment is free at once.
    fn collect(&mut self) -> bool {
        while let Some((first, pages)) = self.next_run() {
            self.collection.next = first.0 + pages;
            self.collection.moving += pages;
            self.fetch(first, pages, true);
        }
        let Collection { next, end, moving, is_discarding, failure } = self.collection;
        let Some(victim) = self.ftl.victim(UnitId(0)) else { return false };
        // Reads under way in the victim still need its pages, so it is kept until they end.
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

    /// The next valid pages of the victim that can be fetched together, and now.
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
            // Garbage and lost pages are passed over: nothing of them is read below.
            self.collection.next += 1;
        };
        let most = (self.config.depth.saturating_sub(moving)).min(self.caps.pages_per_command);
        let map = self.ftl.mapping();
        // Pages on their way are left: their arrival is an occasion to look again.
        let can_move = |ppn: &u32| map.is_valid(Ppn(*ppn)) && !self.arriving.contains_key(ppn);
        let pages = (first..end).take(most as usize).take_while(can_move).count() as u32;
        (pages > 0).then_some((Ppn(first), pages))
    }

    /// Gives a page that never arrived a new place, where it is as lost: a read of it fails with the same error.
    fn move_lost(&mut self, from: Ppn, error: IoError) {
        let to = self.ftl.copy(from, &mut self.emitted);
        self.arriving.insert(to.0, Arriving::Lost(error));
        self.lost += 1;
        let stream = self.stream_below(to, 1);
        // The page is written all the same, so that no gap is left in the order of the segment below.
        self.write_nothing(to, 1, stream);
    }

    /// Reads pages of the victim; those that fail are tried again, one by one.
    fn fetch(&mut self, first: Ppn, pages: u32, again: bool) {
        let bytes = pages as usize * self.caps.page_bytes as usize;
        let buffer = self.caps.contents.then(|| Arena::new(bytes).buffer(0, bytes));
        let operation = Operation::Read { lpn: Lpn(u64::from(first.0)), pages, into: buffer.clone() };
        self.send(Part::Fetch { first, pages, buffer, again }, operation);
    }

    /// Pages of the victim could not be read.
    pub(crate) fn not_fetched(&mut self, first: Ppn, pages: u32, again: bool, error: IoError) {
        for ppn in (first.0..first.0 + pages).map(Ppn) {
            if !self.ftl.mapping().is_valid(ppn) {
                // Nobody needs it any more.
                self.collection.moving -= 1;
            } else if again {
                // One bad page fails the whole command, so each page is tried by itself.
                self.fetch(ppn, 1, false);
            } else {
                self.fail(error);
            }
        }
    }

    /// Pages of the victim have been read: those that are still valid get new places.
    pub(crate) fn fetched(&mut self, first: Ppn, pages: u32, buffer: Option<Buffer>) {
        let segment_pages = self.ftl.config().segment_pages;
        let mut run: Option<Run> = None;
        for at in 0..pages {
            let from = Ppn(first.0 + at);
            if !self.ftl.mapping().is_valid(from) {
                self.collection.moving -= 1;
                continue;
            }
            // The map names the new place at once; reads go to the old one until the copy has arrived.
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

    /// Moved pages have arrived.
    pub(crate) fn stored(&mut self, first: Ppn, pages: u32, status: Result<(), IoError>) {
        if let Err(error) = status {
            // They are still read where they came from, which is never given up.
            return self.fail(error);
        }
        for ppn in first.0..first.0 + pages {
            self.arriving.remove(&ppn);
        }
        self.collection.moving -= pages;
    }

    /// The victim is free. It makes no difference here whether the trim succeeded below.
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
