//! Gathers host pages and copies of one row in a program operation until the row is full.

use super::Flash;
use super::op::{FlashOpKind, NO_ROW, OpId, Programmed};
use crate::layout::Place;
use fulgurite_base::Ppn;
use fulgurite_ftl::{FlashSink, SegmentId, UnitId};

/// The sink for the pages of one host write.
pub(in crate::drive) struct HostPages<'f> {
    pub(crate) flash: &'f mut Flash,
    /// The host write, if it waits for its programs; `programs` counts these programs.
    pub(crate) command: Option<u32>,
    pub(crate) programs: u32,
}

impl FlashSink for HostPages<'_> {
    fn read(&mut self, _: Ppn) {
        unreachable!("the host's pages are not read to be written");
    }

    #[inline]
    fn program(&mut self, ppn: Ppn, _: Option<Ppn>) {
        let place = self.flash.layout.place(ppn);
        let mut is_new = false;
        let command = self.command;
        self.flash.program_at(place, |programmed| {
            programmed.host_pages += 1;
            is_new = command.is_some() && programmed.command != command;
            programmed.command = command;
        });
        self.programs += u32::from(is_new);
    }

    fn erase(&mut self, _: SegmentId) {
        unreachable!("a write of the host erases nothing: collection does");
    }

    #[inline]
    fn load(&self, unit: UnitId) -> u32 {
        self.flash.loads[unit.0 as usize % self.flash.loads.len()]
    }
}

/// The sink for the copies of collection.
impl FlashSink for Flash {
    /// Does nothing, because the drive has read the page before it asked for the copy.
    fn read(&mut self, _: Ppn) {}

    #[inline]
    fn program(&mut self, ppn: Ppn, source: Option<Ppn>) {
        let source = source.expect("only collection writes here, and only copies");
        let (place, die) = (self.layout.place(ppn), self.layout.place(source).die);
        let keeps_copies = self.keeps_copies;
        self.program_at(place, |programmed| {
            // A copy in the protected buffer is safe, so its victim need not wait for the program.
            if !keeps_copies {
                programmed.add_copy(die);
            }
        });
        self.note_old_place(ppn, Some(source));
        if let Some(contents) = &mut self.contents {
            contents.copy(source, ppn);
        }
    }

    /// Drops the bytes of the segment, which the dies have erased before the drive asked for the release.
    fn erase(&mut self, segment: SegmentId) {
        if let Some(contents) = &mut self.contents {
            self.layout.pages_of_segment(segment.0).for_each(|ppn| contents.remove(Ppn(ppn)));
        }
    }
}

impl Flash {
    /// Adds the page at `place` to its row's program operation, which is opened if necessary. `add` describes
    /// the page.
    #[inline]
    fn program_at(&mut self, place: Place, add: impl FnOnce(&mut Programmed)) {
        // The list has at most one entry for each open stream, so a scan is cheap.
        let at = self.partial.iter().position(|op| self.ops[op.key()].row == place.row);
        let at = at.unwrap_or_else(|| {
            let op = self.insert(FlashOpKind::Program(Programmed::in_epoch(self.epoch)), place);
            self.partial.push(op);
            self.partial.len() - 1
        });
        let id = self.partial[at];
        let op = &mut self.ops[id.key()];
        op.add(place);
        if let FlashOpKind::Program(programmed) = &mut op.kind {
            add(programmed);
        }
        // An open segment is written in order, so the last page completes the row. In place, pages come in
        // any order, so no row is gathered.
        if op.in_row >> (self.row_pages - 1) == 1 || self.in_place {
            self.partial.swap_remove(at);
            self.queue_work(id);
        }
    }

    /// Queues incomplete programs, so that they can end.
    pub(in crate::drive) fn close_partial(&mut self) {
        for op in std::mem::take(&mut self.partial) {
            self.queue_work(op);
        }
    }

    /// Queues the incomplete programs of `unit` that contain copies.
    pub(in crate::drive) fn close_copies(&mut self, unit: UnitId) {
        let is_meant = |flash: &Flash, op: OpId| {
            let op = &flash.ops[op.key()];
            op.copies() > 0 && flash.layout.unit_of_block(op.block) == unit.0 as usize
        };
        while let Some(at) = self.partial.iter().position(|op| is_meant(self, *op)) {
            let op = self.partial.swap_remove(at);
            self.queue_work(op);
        }
    }

    #[inline]
    fn queue_work(&mut self, id: OpId) {
        let op = &self.ops[id.key()];
        let (die, block, page) = (op.die, op.block, op.page);
        // The op with the last page of the row completes it. Incomplete rows are programmed in several parts.
        let is_complete = op.in_row >> (self.row_pages - 1) == 1;
        self.dies[die as usize].work.push_back(id);
        self.touch(die);
        if self.data_rows > 0 && is_complete && page % self.data_rows == self.data_rows - 1 {
            let parity = self.insert(FlashOpKind::Parity, Place { die, block, page, row: NO_ROW });
            self.ops[parity.key()].in_row = u64::MAX >> (64 - self.row_pages);
            self.dies[die as usize].work.push_back(parity);
        }
    }

    /// Records for a volatile buffer that `old` was the previous physical page of the logical page that is
    /// now at `ppn`.
    #[inline]
    pub(in crate::drive) fn note_old_place(&mut self, ppn: Ppn, old: Option<Ppn>) {
        // Takes the list out, because `is_programmed` borrows all of `self`.
        let Some(mut undo) = self.undo.take() else { return };
        while undo.front().is_some_and(|(ppn, _)| self.is_programmed(self.layout.place(*ppn))) {
            // Drops the entry, because a programmed page survives a power cut.
            undo.pop_front();
        }
        undo.push_back((ppn, old));
        self.undo = Some(undo);
    }
}
