//! Garbage collection of a unit in virtual time: it collects one victim segment, step by step.
//!
//! On every die of the unit, collection reads the next valid page of the victim and holds it in the copy
//! buffer. It writes a held page to the append point (the next page of the stream's open segment) as soon as
//! the die there is free. It erases the victim's blocks on a die when all of their valid pages have been
//! programmed in other segments. Every step is one flash operation, and starts only on a die for which no
//! host operation waits. So the host goes first between any two steps. (If the schedule gives priority to
//! collection, host operations do not enter the dies' queues.)
//!
//! Where a row has several pages of a plane, an incomplete row of copies waits in the protected buffer for
//! further pages, and the victim does not wait for it. Otherwise every victim would end with a program that
//! wastes most of a row.
//!
//! A page gets its new physical page when its program begins, not earlier. So a host write or trim before
//! that makes the move unnecessary, and a host read finds the page at its old physical page.

use super::flash::{Flash, FlashOp, FlashOpKind, OpId, members};
use crate::layout::Layout;
use fulgurite_base::Ppn;
use fulgurite_ftl::{Ftl, SegmentId, UnitId};
use std::collections::VecDeque;

/// The progress of collection in the part of the victim on one die.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// The next row of the victim to examine.
    row: u32,
    /// The number of pages that are read, or being read, and whose copies are not programmed yet.
    outstanding: u32,
    is_erased: bool,
}

/// The condition for erasing the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Barrier {
    /// Pages must still be moved.
    Moving,
    /// Host pages that supersede pages of the victim are not programmed yet. They are in flush epochs up to
    /// this one; each flush ends an epoch.
    Epoch(u32),
    /// No condition is left, so the victim may be erased.
    Open,
}

/// The result of looking for a host page in the collector.
pub(super) enum Found {
    /// The page is only in the flash.
    InFlash,
    /// The page is in the collector's copy buffer.
    Held,
    /// The page is being read into the copy buffer, so the command completes when the page arrives.
    Joins,
}

/// A flash read of collection that is running.
#[derive(Debug)]
struct MoveRead {
    op: OpId,
    /// The first page of the row that is read, and the pages of the row that are read, as bits.
    first: Ppn,
    in_row: u64,
}

/// A victim that only has to be erased, while the next victim is collected.
#[derive(Debug)]
struct Erasing {
    victim: SegmentId,
    /// For each die of the unit, whether its erase has begun.
    begun: Vec<bool>,
    /// The number of dies whose blocks are not erased yet.
    unerased: u32,
}

#[derive(Debug)]
pub(super) struct Collector {
    unit: UnitId,
    layout: Layout,
    victim: Option<SegmentId>,
    /// The virtual time at which the victim was picked.
    begun: u64,
    erasing: Option<Erasing>,
    rows: u32,
    row_pages: u32,
    stripe_pages: u32,
    /// The progress on each die, by the number of the die in the unit.
    lanes: Vec<Lane>,
    /// The number of dies whose rows have not all been examined.
    unread: u32,
    /// The number of dies whose blocks are not erased yet.
    unerased: u32,
    /// A bit for every page of the victim, set once the page was read for a move.
    taken: Vec<u64>,
    /// The pages in the copy buffer: they were read and have no new physical page yet, in the order of
    /// reading.
    held: VecDeque<Ppn>,
    /// The number of pages being read.
    reading: u32,
    /// Whether a die could not read because the copy buffer was full.
    was_full: bool,
    reads: Vec<MoveRead>,
    /// The host commands that wait for a read of collection, each as the flash operation and the command.
    joined: Vec<(OpId, u32)>,
    barrier: Barrier,
    /// Whether pages that a power cut could restore must not be erased.
    is_careful: bool,
    /// The number of flash page reads that merging has saved.
    pub(crate) merged_pages: u64,
}

impl Collector {
    pub(super) fn new(
        unit: UnitId,
        layout: Layout,
        row_pages: u32,
        rows: u32,
        is_careful: bool,
    ) -> Collector {
        let dies = layout.dies_of_unit() as usize;
        let stripe_pages = dies as u32 * row_pages;
        Collector {
            unit,
            layout,
            victim: None,
            begun: 0,
            erasing: None,
            rows,
            row_pages,
            stripe_pages,
            lanes: vec![Lane::default(); dies],
            unread: 0,
            unerased: 0,
            taken: vec![0; (stripe_pages as usize * rows as usize).div_ceil(64)],
            held: VecDeque::new(),
            reading: 0,
            was_full: false,
            reads: Vec::new(),
            joined: Vec::new(),
            barrier: Barrier::Open,
            is_careful,
            merged_pages: 0,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.victim.is_some()
    }

    /// Returns the virtual time at which collection of the current victim began; `None` without a victim.
    #[inline]
    pub(super) fn begun(&self) -> Option<u64> {
        self.victim.map(|_| self.begun)
    }

    /// Returns the progress in the part of the victim on `die`.
    #[inline]
    fn lane(&mut self, die: u32) -> &mut Lane {
        &mut self.lanes[self.layout.part(die) as usize]
    }

    /// Marks every die of the unit to be examined before the next event.
    pub(super) fn touch_dies(&self, flash: &mut Flash) {
        // Goes in reverse order, so that the lowest die is examined first.
        for part in (0..self.lanes.len() as u32).rev() {
            flash.touch(self.layout.die_of(self.unit.0, part));
        }
    }

    /// Begins to collect a victim at the time `now`.
    pub(super) fn begin(&mut self, victim: SegmentId, now: u64) {
        (self.victim, self.begun) = (Some(victim), now);
        self.lanes.fill(Lane::default());
        (self.unread, self.unerased) = (self.lanes.len() as u32, self.lanes.len() as u32);
        self.taken.fill(0);
        self.barrier = if self.is_careful { Barrier::Moving } else { Barrier::Open };
    }

    /// Returns whether only erases are left to do, so that the next victim may be begun.
    pub(super) fn is_only_erasing(&self) -> bool {
        self.victim.is_some()
            && self.erasing.is_none()
            && self.barrier == Barrier::Open
            && self.is_all_placed()
            && self.lanes.iter().all(|lane| lane.outstanding == 0)
    }

    /// Begins to collect the next victim while the previous one is being erased.
    pub(super) fn begin_ahead(&mut self, victim: SegmentId, now: u64) {
        self.erasing = self.victim.map(|victim| Erasing {
            victim,
            begun: self.lanes.iter().map(|lane| lane.is_erased).collect(),
            unerased: self.unerased,
        });
        self.begin(victim, now);
    }

    /// Returns whether every block of the victim is erased.
    pub(super) fn is_done(&self) -> bool {
        self.victim.is_some() && self.unerased == 0
    }

    /// Ends the collection, or abandons it after a power cut.
    pub(super) fn end(&mut self) {
        self.victim = None;
        self.erasing = None;
        self.held.clear();
        self.reading = 0;
        self.reads.clear();
        self.joined.clear();
    }

    /// Starts an operation on `die`, or on other dies, if no host operation waits there.
    #[inline]
    pub(super) fn step(&mut self, die: u32, ftl: &mut Ftl, flash: &mut Flash) {
        // Places held pages first, since that makes room in the copy buffer for further reads.
        self.place(ftl, flash);
        if !flash.is_free(die) || self.victim.is_none() {
            return;
        }
        if let Some(erasing) = &mut self.erasing
            && !std::mem::replace(&mut erasing.begun[self.layout.part(die) as usize], true)
        {
            return flash.start_erase(erasing.victim, die);
        }
        let has_room = self.held.len() as u32 + self.reading < self.stripe_pages;
        self.was_full |= !has_room;
        if has_room && self.read(die, ftl, flash) {
            return;
        }
        let Lane { row, outstanding, is_erased } = *self.lane(die);
        // Waits until `outstanding` is zero: a copy whose program is in progress is not in the flash yet, so
        // its source must not be erased.
        if row == self.rows && outstanding == 0 && !is_erased && self.barrier == Barrier::Open {
            self.lane(die).is_erased = true;
            flash.start_erase(self.victim.expect("active"), die);
        } else if self.is_all_read() {
            // Places the last pages: only now is it known that no more pages will come to fill a row.
            self.place(ftl, flash);
        }
    }

    /// Returns whether every page that must move has been read.
    fn is_all_read(&self) -> bool {
        self.unread == 0 && self.reading == 0
    }

    /// Returns whether every page that must move has its new physical page.
    fn is_all_placed(&self) -> bool {
        self.is_all_read() && self.held.is_empty()
    }

    /// Starts a read of the next valid pages of the victim on `die`. Returns false if none are left.
    #[inline]
    fn read(&mut self, die: u32, ftl: &Ftl, flash: &mut Flash) -> bool {
        let part = self.layout.part(die);
        while self.lanes[part as usize].row < self.rows {
            let first = self.page(part * self.row_pages, self.lanes[part as usize].row);
            // Excludes taken pages, because a merged host read may have read pages of the row already.
            let in_row = ftl.mapping().valid_bits(first, self.row_pages) & !self.taken_bits(first);
            self.lanes[part as usize].row += 1;
            self.unread -= u32::from(self.lanes[part as usize].row == self.rows);
            if in_row != 0 {
                ftl.mapping().prefetch_owner(first);
                self.take(die, first, in_row);
                let op = flash.start_move_read(flash.layout.place(first), in_row);
                self.reads.push(MoveRead { op, first, in_row });
                return true;
            }
        }
        false
    }

    /// Returns the victim's page of a plane of the unit, in a row.
    fn page(&self, plane: u32, row: u32) -> Ppn {
        let victim = self.victim.expect("asked of an active collection alone");
        Ppn((victim.0 * self.rows + row) * self.stripe_pages + plane)
    }

    /// Returns the index of a page inside the victim.
    fn index(&self, ppn: Ppn) -> usize {
        (ppn.0 - self.page(0, 0).0) as usize
    }

    fn is_taken(&self, ppn: Ppn) -> bool {
        let index = self.index(ppn);
        self.taken[index / 64] >> (index % 64) & 1 == 1
    }

    /// Returns the pages that were taken, as bits, in the row that begins with `first`.
    fn taken_bits(&self, first: Ppn) -> u64 {
        let (word, bit) = (self.index(first) / 64, self.index(first) % 64);
        let next = self.taken.get(word + 1).copied().unwrap_or(0);
        // Shifts twice, because a shift by 64 would overflow if the row begins with a word.
        let bits = self.taken[word] >> bit | next << 1 << (63 - bit);
        bits & (u64::MAX >> (64 - self.row_pages))
    }

    #[inline]
    fn take(&mut self, die: u32, first: Ppn, in_row: u64) {
        for index in members(self.index(first) as u32, in_row) {
            let index = index as usize;
            self.taken[index / 64] |= 1 << (index % 64);
        }
        self.reading += in_row.count_ones();
        self.lane(die).outstanding += in_row.count_ones();
    }

    /// Moves pages whose read has ended into the copy buffer.
    #[inline]
    fn hold(&mut self, first: Ppn, in_row: u64, ftl: &Ftl) {
        self.reading -= in_row.count_ones();
        for ppn in members(first.0, in_row).map(Ppn) {
            ftl.mapping().prefetch(ftl.mapping().owner(ppn));
            self.held.push_back(ppn);
        }
    }

    /// Gives held pages their new physical pages while the dies of the append points are free, and sends the
    /// programs to those dies. Only whole rows are placed, unless no more pages will come.
    #[inline]
    fn place(&mut self, ftl: &mut Ftl, flash: &mut Flash) {
        while let Some(stream) = self.first_stream(ftl, flash) {
            let point = ftl.append_point(self.unit, stream).map(|ppn| flash.layout.place(ppn));
            // Without an append point the copy opens a segment, whose first page is on the unit's first die.
            let first = self.layout.die_of(self.unit.0, 0);
            let (die, filled) =
                point.map_or((first, 0), |place| (place.die, flash.layout.in_row(place.block)));
            if !flash.is_free(die) || flash.read_waits(die) {
                return;
            }
            let wanted = (self.row_pages - filled) as usize;
            let ready = self.ready(wanted, ftl, flash);
            let is_partial = ready < wanted;
            if is_partial && ready == self.held.len() && !self.is_all_read() {
                return;
            }
            for _ in 0..ready {
                let Some(ppn) = self.held.pop_front() else { break };
                ftl.copy(ppn, flash);
                if flash.keeps_copies {
                    self.page_is_gone(flash.layout.place(ppn).die, flash);
                }
            }
            if std::mem::take(&mut self.was_full) {
                // Placing has made room in the copy buffer, so dies that had no room for a read may continue.
                self.touch_dies(flash);
            }
            if is_partial && !flash.keeps_copies {
                // Programs fewer pages than a row has: the next page goes to another
                // stream, or no page is left.
                flash.close_copies(self.unit);
            }
        }
        // Dropped pages, which the host has overwritten or trimmed, leave room as well.
        if self.held.is_empty() && std::mem::take(&mut self.was_full) {
            self.touch_dies(flash);
        }
        if self.is_all_placed() && !flash.keeps_copies {
            flash.close_copies(self.unit);
        }
    }

    /// Returns the stream of the first held page that is still valid.
    #[inline]
    fn first_stream(&mut self, ftl: &Ftl, flash: &mut Flash) -> Option<fulgurite_base::StreamId> {
        self.ready(1, ftl, flash);
        self.held.front().map(|ppn| ftl.copy_stream(*ppn))
    }

    /// Returns the number of pages, at most `wanted`, that a die can program at once: held pages
    /// (read and not yet programmed) from the first on. Drops pages that the host has overwritten or trimmed
    /// since they were read.
    #[inline]
    fn ready(&mut self, wanted: usize, ftl: &Ftl, flash: &mut Flash) -> usize {
        let mut ready = 0;
        while let (true, Some(ppn)) = (ready < wanted, self.held.get(ready).copied()) {
            if !ftl.mapping().is_valid(ppn) {
                // The page is invalid, so its die no longer waits for a copy of it.
                self.held.remove(ready);
                self.page_is_gone(flash.layout.place(ppn).die, flash);
            } else if ready > 0 && ftl.copy_stream(ppn) != ftl.copy_stream(self.held[0]) {
                break;
            } else {
                ready += 1;
            }
        }
        ready
    }

    /// Records that a page of the victim on `die` is programmed in another segment, or invalid.
    #[inline]
    fn page_is_gone(&mut self, die: u32, flash: &mut Flash) {
        let lane = self.lane(die);
        lane.outstanding -= 1;
        if lane.outstanding == 0 {
            flash.touch(die);
        }
    }

    /// Finds the page of a host read of `command` in the collector. Called only if the schedule merges reads.
    pub(super) fn find(&mut self, ppn: Ppn, command: u32) -> Found {
        let Some(victim) = self.victim else { return Found::InFlash };
        let pages = self.rows * self.stripe_pages;
        if ppn.0 / pages != victim.0 || !self.is_taken(ppn) {
            return Found::InFlash;
        }
        self.merged_pages += 1;
        let reads_it = |read: &&MoveRead| members(read.first.0, read.in_row).any(|page| page == ppn.0);
        match self.reads.iter().find(reads_it) {
            Some(read) => {
                self.joined.push((read.op, command));
                Found::Joins
            }
            None => Found::Held,
        }
    }

    /// Merges a host read that is starting with collection: its pages that collection still has to read are
    /// also moved, without another read.
    pub(super) fn merge(&mut self, op: &mut FlashOp, ftl: &Ftl) {
        let Some(victim) = self.victim else { return };
        // Limits the copy buffer to two stripes: one for pages that collection reads itself, one for merged
        // pages.
        let has_room = self.held.len() as u32 + self.reading < 2 * self.stripe_pages;
        if !has_room || op.block / self.stripe_pages != victim.0 {
            return;
        }
        let first = self.page(op.block % self.stripe_pages, op.page);
        let in_row = op.in_row & ftl.mapping().valid_bits(first, self.row_pages) & !self.taken_bits(first);
        self.take(op.die, first, in_row);
        self.merged_pages += u64::from(in_row.count_ones());
        if let FlashOpKind::HostRead { merged, .. } = &mut op.kind {
            *merged = in_row;
        }
    }

    /// Moves the merged pages of an ended host read into the copy buffer.
    pub(super) fn merged_read_done(&mut self, op: &FlashOp, merged: u64, ftl: &Ftl) {
        self.hold(self.page(op.block % self.stripe_pages, op.page), merged, ftl);
    }

    /// Ends a flash read of collection. Returns the host commands that waited for it.
    pub(super) fn read_done(&mut self, op: OpId, ftl: &Ftl) -> Vec<u32> {
        let at = self.reads.iter().position(|read| read.op == op).expect("it was under way");
        let read = self.reads.swap_remove(at);
        self.hold(read.first, read.in_row, ftl);
        if self.joined.is_empty() {
            // Only merging makes commands wait for these reads. The empty vector allocates nothing.
            return Vec::new();
        }
        let joined = self.joined.iter().filter(|joined| joined.0 == op).map(|joined| joined.1).collect();
        self.joined.retain(|joined| joined.0 != op);
        joined
    }

    /// Ends a program with copies of pages from the dies `sources`.
    pub(super) fn program_done(&mut self, sources: &[u32], flash: &mut Flash) {
        for die in sources {
            self.page_is_gone(*die, flash);
        }
    }

    /// Records that the blocks of `segment` on a die are erased. Returns whether this was the last die of the
    /// previous victim.
    pub(super) fn erase_done(&mut self, segment: SegmentId) -> bool {
        match &mut self.erasing {
            Some(erasing) if erasing.victim == segment => {
                erasing.unerased -= 1;
                erasing.unerased == 0 && self.erasing.take().is_some()
            }
            _ => {
                self.unerased -= 1;
                false
            }
        }
    }

    /// Returns whether all pages are moved, but the flush epoch that must be programmed before the erase is
    /// not set.
    pub(super) fn wants_barrier(&self) -> bool {
        self.barrier == Barrier::Moving && self.victim.is_some() && self.is_all_placed()
    }

    /// Delays the erase until the host pages of flush epochs up to `epoch` are programmed.
    pub(super) fn raise_barrier(&mut self, epoch: u32) {
        self.barrier = Barrier::Epoch(epoch);
    }

    /// Records that host pages of flush epochs before `first_epoch` are programmed. Returns true if the erase
    /// may now begin.
    pub(super) fn lower_barrier(&mut self, first_epoch: u32) -> bool {
        let lowered = matches!(self.barrier, Barrier::Epoch(epoch) if epoch < first_epoch);
        if lowered {
            self.barrier = Barrier::Open;
        }
        lowered
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SimDrive, Translation};
    use crate::layout::Place;
    use crate::{SsdConfig, preset};
    use fulgurite_base::{Lpn, Share, StreamId};
    use fulgurite_device::{Arena, Command, Device, Operation, Tag};
    use fulgurite_ftl::precondition::Precondition;

    /// Returns a drive of one die that is soon full.
    fn small() -> SsdConfig {
        SsdConfig {
            channels: 1,
            chips: 1,
            blocks: 12,
            pages: 16,
            op: Share::percent(100),
            precondition: Precondition::None,
            ..preset::reference_e()
        }
    }

    /// The rule: a held page is not placed on a die for which a host read waits, even if the die is idle.
    #[test]
    fn no_place_is_given_where_a_read_waits() {
        let mut drive = SimDrive::new(small(), 42, false).unwrap();
        // Writes all pages again in another order, so that victims have pages to move.
        let pages = drive.caps().pages;
        let mut lpns = (0..pages).chain((0..4 * pages).map(|at| at * 7 % pages));
        // Runs until the next event is the end of a read of collection.
        while !drive.flash.ends_move_read(0) {
            if !drive.perform_next_event() {
                let lpn = Lpn(lpns.next().expect("there is something to collect"));
                drive.submit(Command { tag: Tag(0), operation: Operation::write(lpn, 1) }).unwrap();
            }
        }
        drive.flash.now = drive.flash.events.time(0);
        let (id, _) = drive.flash.event(0).expect("it ends");
        let SimDrive { flash, collectors, translation: Translation::PageMapped(ftl), .. } = &mut drive else {
            panic!("the drive has an FTL")
        };
        collectors[0].read_done(id, ftl);
        let copied = ftl.counters().copied_pages;
        flash.host_read(0, Place { die: 0, block: 0, page: 0, row: 0 }, None);
        collectors[0].place(ftl, flash);
        assert_eq!(ftl.counters().copied_pages, copied, "the read goes first");
        flash.forget_reads(0);
        collectors[0].place(ftl, flash);
        assert_eq!(ftl.counters().copied_pages, copied + 1);
    }

    /// The rule: the bytes of a page are dropped when its block is erased, so a drive keeps the bytes of no
    /// more pages than its blocks hold.
    #[test]
    fn an_erased_segment_holds_no_bytes() {
        let mut drive = SimDrive::new(small(), 42, true).unwrap();
        let (pages, arena) = (drive.caps().pages, Arena::new(4096));
        for lpn in (0..4 * pages).map(|at| Lpn(at % pages)) {
            let (from, stream) = (Some(arena.buffer(0, 4096)), StreamId(0));
            let operation = Operation::Write { lpn, pages: 1, from, stream, durable: false };
            drive.submit(Command { tag: Tag(0), operation }).unwrap();
            drive.wait(None, &mut Vec::new());
        }
        drive.settle();
        drive.drain_events();
        let programmed = (0..12).flat_map(|block| (0..16).map(move |page| (block, page)));
        for (block, page) in programmed.filter(|(block, page)| !drive.flash.nand.is_programmed(*block, *page))
        {
            let held = drive
                .flash
                .contents
                .as_ref()
                .and_then(|contents| contents.get(drive.flash.layout.page_at(block, page)));
            assert_eq!(held, None, "page {page} of block {block}");
        }
        assert!(drive.counters().erases > 0);
    }
}
