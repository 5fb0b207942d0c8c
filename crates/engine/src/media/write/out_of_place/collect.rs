//! Garbage collection, which moves the valid units of a segment and frees the segment.
//!
//! Garbage collection is one task. It runs in slices while the schedule demands collection or a writer waits.
//! The schedule paces the task to keep up with the writes, so that no write waits for a whole segment.

use super::assemble::assemble;
use super::delta::Delta;
use super::pack::packed_units;
use super::{OutOfPlace, units_of};
use crate::Error;
use crate::bytes;
use crate::format::page;
use crate::wait::insist;
use fulgurite_base::{PageId, Ppn, StreamId};
use fulgurite_device::{Arena, Buffer, Operation};
use fulgurite_ftl::{CountingSink, SegmentId, UnitId};

/// The number of blocks that are moved in one slice.
const SLICE: usize = 64;
/// How often a damaged page is read again before it is moved as it is.
const READ_AGAIN: usize = 3;

/// A unit that is being moved out of a victim segment.
struct Moved {
    /// The index of the unit in the slice.
    at: usize,
    unit: u32,
    from: Ppn,
    /// The address to which the unit was last sent.
    to: u32,
}

impl OutOfPlace {
    /// Waits until garbage collection has made progress.
    pub(super) async fn wait_for_room(&self) -> Result<(), Error> {
        let state = &self.0;
        state.waiting.set(state.waiting.get() + 1);
        self.collect_later();
        let mut asked = false;
        // The closure returns a value at its second call, which follows a signal.
        state.room.until(|| std::mem::replace(&mut asked, true).then_some(())).await;
        state.waiting.set(state.waiting.get() - 1);
        state.health.check()
    }

    /// Starts the collection task if the schedule demands collection and the task is not running.
    pub(super) fn collect_later(&self) {
        if !self.wants_collection() || self.0.collecting.replace(true) {
            return;
        }
        let this = self.clone();
        self.0.handle.spawn(async move {
            let outcome = this.collect().await;
            this.0.collecting.set(false);
            if let Err(error) = outcome {
                this.0.health.stop(format!("segments cannot be freed: {error}"));
            }
            this.0.room.notify();
        });
    }

    fn wants_collection(&self) -> bool {
        let is_wanted =
            self.0.waiting.get() > 0 || self.0.ftl.borrow().state(UnitId(0), StreamId::default()).collects();
        is_wanted && !self.0.closing.get() && self.0.health.check().is_ok()
    }

    /// Stops garbage collection and waits for the end of its task, so that none runs when the store is
    /// closed.
    pub(crate) async fn close(&self) {
        self.0.closing.set(true);
        self.0.room.until(|| (!self.0.collecting.get()).then_some(())).await;
    }

    async fn collect(&self) -> Result<(), Error> {
        let mut settled = None;
        while self.wants_collection() {
            let victim = self.0.ftl.borrow().victim(UnitId(0));
            let Some(victim) = victim.or_else(|| self.pick()) else {
                if self.0.waiting.get() == 0 {
                    return Ok(());
                }
                return Err(Error::Options("no segment can be collected, and writes wait".to_owned()));
            };
            if settled != Some(victim) {
                // Writes into the segment must end before the segment is read.
                self.0.in_flight.settled().await;
                settled = Some(victim);
            }
            if !self.move_slice(victim).await? {
                self.give_back(victim).await?;
                settled = None;
            }
            self.0.room.notify();
            self.0.handle.pause().await;
        }
        Ok(())
    }

    fn pick(&self) -> Option<SegmentId> {
        self.0.ftl.borrow_mut().pick(UnitId(0))
    }

    /// Moves some of the valid units of the victim segment. Returns false if the segment has none.
    pub(super) async fn move_slice(&self, victim: SegmentId) -> Result<bool, Error> {
        let from = self.next_of(victim);
        if from.is_empty() {
            return Ok(false);
        }
        let bytes = self.fetch(&from).await?;
        let moved =
            |(at, (unit, from)): (usize, &(u32, Ppn))| Moved { at, unit: *unit, from: *from, to: from.0 };
        let mut moved: Vec<Moved> = from.iter().enumerate().map(moved).collect();
        if !self.send_copies(&mut moved) {
            return Err(Error::Options("no free segment is left to move valid pages to".to_owned()));
        }
        let number = self.0.in_flight.begin();
        let parts = |moved: &[Moved]| moved.iter().map(|moved| (moved.at, moved.to)).collect();
        let resend = |moved: &mut Vec<Moved>| self.send_copies(moved);
        let written = self.write_sent(&mut moved, parts, resend, &bytes).await;
        if written.is_ok() {
            let mut addresses = self.0.addresses.borrow_mut();
            for Moved { unit, from, to, .. } in moved {
                // A write of the page may have ended during the move. Its version is newer, so keep its
                // address.
                if addresses.all()[unit as usize] == from.0 {
                    addresses.set(unit, to);
                }
            }
        }
        self.0.in_flight.end(number);
        written.map(|()| true)
    }

    /// Allocates addresses for copies, if there is space. Omits units that were written again or trimmed
    /// meanwhile.
    fn send_copies(&self, moved: &mut Vec<Moved>) -> bool {
        moved.retain(|moved| self.lookup(moved.unit) == Some(Ppn(moved.to)));
        let page = |moved: &Moved| moved.unit / self.0.layout.page_units;
        let pages = moved.chunk_by_mut(|one, next| page(one) == page(next));
        self.send_elsewhere(pages.map(|page| page.iter_mut().map(|moved| &mut moved.to).collect()))
    }

    /// Returns the next valid units of the victim segment with their addresses. Contiguous units of a page
    /// stay together.
    pub(super) fn next_of(&self, victim: SegmentId) -> Vec<(u32, Ppn)> {
        let ftl = self.0.ftl.borrow();
        let segment_units = self.0.layout.shape.segment_units;
        let slice = SLICE * self.0.layout.block_units() as usize;
        let first = victim.0 * segment_units;
        let valid = (first..first + segment_units).map(Ppn).filter(|ppn| ftl.mapping().is_valid(*ppn));
        let mut units: Vec<(u32, Ppn)> = Vec::new();
        for (unit, ppn) in valid.map(|ppn| (ftl.mapping().owner(ppn), ppn)) {
            let begins = unit.is_multiple_of(self.0.layout.page_units);
            if units.len() >= slice && begins {
                break;
            }
            units.push((unit, ppn));
        }
        units
    }

    /// Reads units. Verifies the checksums of the pages that contain them, so that a transient read error is
    /// not written to the copy.
    async fn fetch(&self, from: &[(u32, Ppn)]) -> Result<Buffer, Error> {
        let len = from.len() * self.0.layout.unit_bytes as usize;
        let bytes = Arena::new(len).buffer(0, len);
        let mut left = READ_AGAIN;
        loop {
            let parts = || from.iter().enumerate().map(|(at, (_, ppn))| (at, ppn.0));
            insist(async || self.read_units(parts(), &bytes).await.map_err(Error::Io)).await?;
            if left == 0 || self.are_whole(from, &bytes).await {
                return Ok(bytes);
            }
            left -= 1;
        }
    }

    /// Whether all pages that contain some of these units are intact.
    async fn are_whole(&self, from: &[(u32, Ppn)], bytes: &Buffer) -> bool {
        let (unit_bytes, page_units) = (self.0.layout.unit_bytes as usize, self.0.layout.page_units);
        let mut at = 0;
        for group in from.chunk_by(|(one, _), (next, _)| one / page_units == next / page_units) {
            let page = PageId(self.0.layout.data.0 + u64::from(group[0].0 / page_units));
            let units = bytes.part(at * unit_bytes, group.len() * unit_bytes);
            let is_newer = || group.iter().any(|(unit, ppn)| self.lookup(*unit) != Some(*ppn));
            if !self.are_intact(page, group, &units).await && !is_newer() {
                return false;
            }
            at += group.len();
        }
        true
    }

    /// Whether these units of a page are intact, judged by the checksum of each delta and that of the base.
    async fn are_intact(&self, page: PageId, group: &[(u32, Ppn)], units: &Buffer) -> bool {
        let (unit_bytes, salt) = (self.0.layout.unit_bytes as usize, self.0.salt);
        let page_len = unit_bytes * self.0.layout.page_units as usize;
        let slots: Vec<u32> = group.iter().map(|(unit, _)| unit % self.0.layout.page_units).collect();
        let is_delta = |(slot, unit): (&u32, &[u8])| {
            let of = Delta::read(unit, salt).map(Delta::of);
            of.is_some_and(|of| (of.page, of.slot) == (page, *slot))
        };
        let (deltas, base_units) = bytes::look(units, |units| {
            let last = std::iter::zip(&slots, units.chunks_exact(unit_bytes)).rev();
            (last.take_while(|unit| is_delta(*unit)).count(), packed_units(units, unit_bytes))
        });
        let before = slots.len() - deltas;
        let addresses = units_of(self.0.addresses.borrow().all(), &self.0.layout, page).to_vec();
        if before == 0 {
            return true;
        }
        let whole = Arena::new(page_len).buffer(0, page_len);
        let is_stored = |(slot, (_, ppn)): (&u32, &(u32, Ppn))| addresses.get(*slot as usize) == Some(&ppn.0);
        let has_base = slots[..before].iter().copied().eq(0..before as u32)
            && std::iter::zip(&slots[..before], group).all(is_stored)
            && (before * unit_bytes == page_len || base_units == Some(before));
        let is_there = if has_base {
            let base = units.part(0, before * unit_bytes);
            let unpacker = &mut self.0.unpacker.borrow_mut();
            bytes::look(&base, |base| assemble(base, (page, salt), unit_bytes, unpacker, &whole)).is_some()
        } else {
            // The base also has units outside this slice, or is being written.
            self.read(page, &whole).await.is_ok()
        };
        is_there && bytes::look(&whole, |bytes| page::is_whole(bytes, page, salt))
    }

    pub(super) fn lookup(&self, unit: u32) -> Option<Ppn> {
        self.0.ftl.borrow().lookup(unit)
    }

    /// Trims a free segment on the drive. If the drive does not support trim, or trim fails, the drive only
    /// collects garbage with more copying.
    pub(super) async fn tell_free(&self, segment: SegmentId) {
        let segment_units = self.0.layout.shape.segment_units;
        let lpn = self.lpn(segment.0 * segment_units);
        let trim = Operation::Trim { lpn, pages: self.device_pages(segment_units) };
        let _ = self.0.handle.submit(trim).await;
    }

    /// Frees a segment that has no valid units.
    pub(super) async fn give_back(&self, victim: SegmentId) -> Result<(), Error> {
        // Newer copies of the segment's units may still be in progress, and the map on the drive still refers
        // to the old ones. So wait for the copies, and commit the map.
        self.0.in_flight.settled().await;
        if !planted!(self.0.options, SegmentReusedEarly) {
            self.commit().await?;
        }
        self.tell_free(victim).await;
        self.0.ftl.borrow_mut().release(UnitId(0), &mut CountingSink::default());
        Ok(())
    }
}
