//! Power cuts: what a drive still knows after one.
//!
//! With a protected buffer the capacitors let the drive program what it has accepted. With a volatile
//! one, pages that were not programmed are lost and their logical pages are again what they were
//! before. For that the old copies must still be there, so the collector erases nothing that superseded
//! pages could be called back to, and this file keeps a list of what was written but not programmed.
//! Trims and shares are not taken back.

use super::collector::Collector;
use super::command::Path;
use super::{HOST_SLOTS, NEVER, SimDrive, Translation};
use fulgurite_base::Ppn;
use fulgurite_device::Meter;
use fulgurite_ftl::Gate;
use std::collections::VecDeque;

/// The places given to pages that are not programmed yet, with their places before.
pub(super) type Undo = VecDeque<(Ppn, Option<Ppn>)>;

impl SimDrive {
    /// Cuts the power and turns the drive on again. Commands in flight are never completed; a write
    /// among them may have happened, whole pages of it, or not. What was acknowledged stays if the
    /// write cache is protected or off, or if it was flushed.
    pub fn power_cut(&mut self) {
        self.forget_commands();
        let undo = self.flash.undo.take();
        // `power_off` drains every operation, so none may stay listed as partial.
        self.flash.close_partial();
        if let (Some(undo), Translation::PageMapped(ftl)) = (&undo, &mut self.translation) {
            let is_lost = |(ppn, _): &&(Ppn, _)| !self.flash.is_programmed(self.flash.layout.place(*ppn));
            // The latest write goes first: an older place of the same page may be lost as well.
            for (ppn, old) in undo.iter().rev().filter(is_lost) {
                ftl.take_back(*ppn, *old);
            }
        }
        self.flash.power_off(undo.is_none());
        self.flash.undo = undo.map(|_| Undo::new());
        self.collectors.iter_mut().for_each(Collector::end);
        if let Translation::PageMapped(ftl) = &mut self.translation {
            ftl.give_up_collection();
        }
        self.unprogrammed = VecDeque::from([0]);
        self.first_epoch = self.flash.epoch;
        self.buffer_free = self.config.write_buffer_pages();
        self.look_at_all();
        self.start_work();
        self.watch_idleness();
    }

    fn forget_commands(&mut self) {
        self.commands.clear();
        (self.reads, self.writes) = (Path::default(), Path::default());
        self.acknowledgements.clear();
        self.gates.iter_mut().for_each(Gate::clear);
        self.waiting.clear();
        self.flushes.clear();
        self.done.clear();
        self.meter = Meter::default();
        for slot in self.flash.dies()..self.flash.dies() + HOST_SLOTS {
            self.flash.events.set(slot, NEVER);
        }
    }
}
