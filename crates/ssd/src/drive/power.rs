//! Handles power cuts, and keeps or restores the pages that a drive must have after one.
//!
//! A protected buffer survives the power cut: its capacitors let the drive program the pages that have
//! physical pages, and the other accepted pages wait for theirs when the drive is on again. With a volatile
//! buffer, pages that were not programmed are lost, and their logical pages return to their previous
//! contents. So the previous copies must still exist: the collector erases no page that may have to be
//! restored, and the drive keeps a list of the writes that are not programmed. Trims and shares are not
//! rolled back.

use super::collector::Collector;
use super::command::{InFlight, Path};
use super::flash::Undo;
use super::{HOST_SLOTS, NEVER, SimDrive, Translation};
use crate::WriteCache;
use fulgurite_base::Ppn;
use fulgurite_device::Meter;
use std::collections::VecDeque;

impl SimDrive {
    /// Cuts the power and turns the drive on again. Commands in flight never complete. A write among them may
    /// have taken effect, in whole pages. Acknowledged writes remain if the write cache is protected or off,
    /// or if they were flushed.
    pub fn power_cut(&mut self) {
        self.forget_commands();
        let undo = self.flash.undo.take();
        // Empties the list of incomplete programs, because `power_off` drains all operations.
        self.flash.close_partial();
        if let (Some(undo), Translation::PageMapped(ftl)) = (&undo, &mut self.translation) {
            let is_lost = |(ppn, _): &&(Ppn, _)| !self.flash.is_programmed(self.flash.layout.place(*ppn));
            // Takes the latest write back first, because an older physical page of the same logical page may
            // be lost as well.
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
        let waiting: u32 = self.commands.iter().map(|(_, write)| write.pages - write.placed).sum();
        self.buffer_free = self.config.write_buffer_pages() - waiting;
        self.find_zones();
        self.look_at_all();
        (0..self.gates.len()).for_each(|unit| self.admit_to(unit));
        self.start_work();
        self.watch_idleness();
    }

    /// Drops all commands except the writes that a protected buffer has accepted.
    fn forget_commands(&mut self) {
        let outlives_power = self.config.write_cache == WriteCache::Protected;
        let is_kept = |write: &InFlight| outlives_power && write.is_buffered && write.placed < write.pages;
        self.commands.retain(|_, command| {
            let is_kept = is_kept(command);
            if is_kept {
                command.keep_bytes();
            }
            is_kept
        });
        self.unanswered = 0;
        self.held.clear();
        self.entering.clear();
        self.unplaced.retain(|_, command| self.commands.contains(*command as usize));
        (self.reads, self.writes) = (Path::default(), Path::default());
        self.acknowledgements.clear();
        self.gates
            .iter_mut()
            .for_each(|gate| gate.forget(|command| self.commands.contains(command as usize)));
        self.waiting.retain(|command| self.commands.contains(command as usize));
        self.flushes.clear();
        self.done.clear();
        self.meter = Meter::default();
        for slot in self.flash.dies()..self.flash.dies() + HOST_SLOTS {
            self.flash.events.set(slot, NEVER);
        }
    }
}
