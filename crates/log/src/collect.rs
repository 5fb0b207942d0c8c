//! The layer's collection: valid pages of the victim are fetched, given new places and stored there, so many
//! at once; when the last has arrived, the segment is discarded below and free.
//!
//! A page that cannot be moved ends collection for good. Every page can still be read then, and writes are
//! refused with the reason.

use crate::device::{Arriving, LogDevice, Part};
use fulgurite_base::{Lpn, Ppn};
use fulgurite_device::{Arena, Buffer, Device, IoError, Operation};
use fulgurite_ssd::Ftl;
use fulgurite_ssd::schedule::State;

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
        if let Some(victim) = ftl.victim() {
            let segment_pages = ftl.config().segment_pages;
            (self.next, self.end) = (victim.0 * segment_pages, (victim.0 + 1) * segment_pages);
        }
    }
}

impl<D: Device> LogDevice<D> {
    /// Sees what the schedule wants now: begins a collection, goes on with it, lets reads in.
    pub(crate) fn look_at_schedule(&mut self) {
        let front = self.stalled.front().map(|command| &self.commands[*command as usize]);
        let waiting = front.and_then(|command| match command.operation {
            Operation::Write { lpn, stream, .. } => Some((lpn.0 as u32 + command.placed, stream)),
            _ => None,
        });
        let stream = waiting.map_or_else(Default::default, |(lpn, hint)| self.ftl.stream(lpn, hint));
        self.state = self.ftl.state(stream);
        if self.collection.failure.is_some() {
            // Nothing is collected any more: nobody need wait for it.
            self.state = State::Idle;
        } else if self.state.collects() && self.ftl.victim().is_none() && self.ftl.pick().is_some() {
            self.collection.begin(&self.ftl);
            // A pick is where placement may change its groups.
            self.pad();
            self.state = self.ftl.state(stream);
        }
        if self.state.serves_reads() {
            while let Some(command) = self.barred.pop_front() {
                self.read(command);
            }
        }
        if self.state.collects() && self.ftl.victim().is_some() {
            self.collect();
        }
    }

    /// A write has waited for too long.
    pub(crate) fn become_urgent(&mut self) {
        self.urgent_at = None;
        self.ftl.set_urgent();
        self.look_at_schedule();
    }

    /// Fetches pages of the victim as far as so many may move at once; ends with the segment when none is left.
    fn collect(&mut self) {
        while let Some((first, pages)) = self.next_run() {
            self.collection.next = first.0 + pages;
            self.collection.moving += pages;
            let bytes = pages as usize * self.caps.page_bytes as usize;
            let buffer = self.caps.contents.then(|| Arena::new(bytes).buffer(0, bytes));
            let operation = Operation::Read { lpn: Lpn(u64::from(first.0)), pages, into: buffer.clone() };
            self.send(Part::Fetch { first, pages, buffer }, operation);
        }
        let Collection { next, end, moving, is_discarding, failure } = self.collection;
        let Some(victim) = self.ftl.victim() else { return };
        let is_done = next == end && moving == 0 && self.in_use[victim.0 as usize] == 0;
        if !is_done || is_discarding || failure.is_some() {
            return;
        }
        if !self.config.trim {
            self.discarded();
            return self.look_at_schedule();
        }
        self.collection.is_discarding = true;
        let pages = self.ftl.config().segment_pages;
        self.send(Part::Discard, Operation::Trim { lpn: Lpn(u64::from(end - pages)), pages });
    }

    /// The next valid pages of the victim that can be fetched together, and now.
    fn next_run(&mut self) -> Option<(Ppn, u32)> {
        let Collection { ref mut next, end, moving, ref mut failure, .. } = self.collection;
        let map = self.ftl.mapping();
        while *next < end && !map.is_valid(Ppn(*next)) {
            *next += 1;
        }
        let most = (self.config.depth.saturating_sub(moving)).min(self.caps.pages_per_command);
        let first = *next;
        let mut pages = 0;
        while pages < most && first + pages < end && map.is_valid(Ppn(first + pages)) {
            match self.arriving.get(&(first + pages)) {
                None => pages += 1,
                Some(Arriving::Lost(error)) => {
                    *failure = Some(*error);
                    break;
                }
                // Its arrival is an occasion to look again.
                Some(_) => break,
            }
        }
        (pages > 0).then_some((Ppn(first), pages))
    }

    /// Pages of the victim have been read: those that are still valid get new places.
    pub(crate) fn fetched(
        &mut self,
        first: Ppn,
        pages: u32,
        buffer: Option<Buffer>,
        status: Result<(), IoError>,
    ) {
        if let Err(error) = status {
            return self.fail(error, pages);
        }
        let segment_pages = self.ftl.config().segment_pages;
        // The places of a run of pages: the first place, how many, the first page's number.
        let mut run: Option<(Ppn, u32, u32)> = None;
        for at in 0..pages {
            let from = Ppn(first.0 + at);
            if !self.ftl.mapping().is_valid(from) {
                self.collection.moving -= 1;
                continue;
            }
            let to = self.ftl.copy(from, &mut self.emitted);
            self.arriving.insert(to.0, Arriving::Moved { from });
            match &mut run {
                Some((place, count, page))
                    if to.0 == place.0 + *count
                        && at == *page + *count
                        && !to.0.is_multiple_of(segment_pages) =>
                {
                    *count += 1;
                }
                _ => {
                    if let Some(full) = run.replace((to, 1, at)) {
                        self.store(full, &buffer);
                    }
                }
            }
        }
        if let Some(last) = run {
            self.store(last, &buffer);
        }
    }

    fn store(&mut self, (first, pages, at): (Ppn, u32, u32), buffer: &Option<Buffer>) {
        let page_bytes = self.caps.page_bytes as usize;
        let from =
            buffer.as_ref().map(|buffer| buffer.part(at as usize * page_bytes, pages as usize * page_bytes));
        let (lpn, stream) = (Lpn(u64::from(first.0)), self.stream_below(first, pages));
        self.send(Part::Store { first, pages }, Operation::Write { lpn, pages, from, stream });
    }

    /// Moved pages have arrived.
    pub(crate) fn stored(&mut self, first: Ppn, pages: u32, status: Result<(), IoError>) {
        if let Err(error) = status {
            // They are still read where they came from, which is never given up.
            return self.fail(error, pages);
        }
        for ppn in first.0..first.0 + pages {
            self.arriving.remove(&ppn);
        }
        self.collection.moving -= pages;
    }

    /// The victim is free. Whether the drive below could do anything with the trim makes no difference here.
    pub(crate) fn discarded(&mut self) {
        if self.lost > 0 {
            let end = self.collection.end;
            let gone =
                (end - self.ftl.config().segment_pages..end).filter_map(|ppn| self.arriving.remove(&ppn));
            self.lost -= gone.count() as u32;
        }
        self.ftl.release(&mut self.emitted);
        self.collection = Collection::default();
        self.urgent_at = None;
    }

    fn fail(&mut self, error: IoError, pages: u32) {
        self.collection.moving -= pages;
        self.collection.failure = Some(error);
    }
}
