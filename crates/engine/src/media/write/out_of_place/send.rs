//! Sends pages and deltas: allocates their addresses, and records the addresses of those that have arrived.

use super::packed::{Packed, Part, Sent};
use super::{OutOfPlace, UNMAPPED, units_of};
use fulgurite_base::Ppn;
use fulgurite_ftl::CountingSink;

impl OutOfPlace {
    /// Allocates addresses for the first pages, for as many as the schedule of garbage collection admits now.
    pub(super) fn send(&self, pages: &[Packed]) -> Vec<Sent> {
        let mut ftl = self.0.ftl.borrow_mut();
        let mut sent = Vec::new();
        for packed in pages {
            let Packed { page, units, hint, .. } = *packed;
            let (page_units, slot) = (self.0.layout.page_units, packed.slot());
            let (first, mut addresses) = (self.first_unit(page), Vec::with_capacity(units as usize));
            let sink = &mut CountingSink::default();
            if !ftl.append_whole(first + slot, units, hint, sink, |ppn| addresses.push(ppn.0)) {
                break;
            }
            if let Part::Base(_) = packed.part {
                ftl.trim_run(first + units, page_units - units);
                self.0.deltas.borrow_mut().supersede(page);
            }
            sent.push(Sent { packed: *packed, addresses });
        }
        ftl.end_blocks(self.0.layout.block_units());
        sent
    }

    /// Allocates other addresses for pages whose write failed. Like copies of garbage collection, these pages
    /// may use the reserve of segments. Returns false if there is no space.
    pub(super) fn send_elsewhere<'a>(&self, pages: impl Iterator<Item = Vec<&'a mut u32>>) -> bool {
        let mut ftl = self.0.ftl.borrow_mut();
        let mut has_room = true;
        for mut addresses in pages {
            has_room = ftl.room_for_copies() >= addresses.len() as u64;
            if !has_room {
                break;
            }
            let from: Vec<Ppn> = addresses.iter().map(|address| Ppn(**address)).collect();
            let mut addresses = addresses.iter_mut();
            ftl.copy_whole(&from, &mut CountingSink::default(), |to| {
                addresses.next().into_iter().for_each(|address| **address = to.0);
            });
        }
        ftl.end_blocks(self.0.layout.block_units());
        has_room
    }

    /// Whether a page or a delta is still to be sent.
    pub(super) fn is_wanted(&self, packed: &Packed) -> bool {
        match packed.part {
            Part::Base(_) => true,
            Part::Delta(_, number) => self.0.deltas.borrow().is_under_way(packed.page, number),
        }
    }

    /// Whether a page was neither trimmed nor written again since it, or its delta, was sent.
    pub(super) fn is_sent(&self, sent: &Sent) -> bool {
        let first = self.first_unit(sent.packed.page) + sent.packed.slot();
        self.lookup(first) == Some(Ppn(sent.addresses[0]))
    }

    /// Records the address of a page or a delta whose write has completed, unless the page was trimmed or sent
    /// again meanwhile.
    pub(super) fn arrived(&self, sent: &Sent) {
        if !self.is_sent(sent) {
            return;
        }
        let page = sent.packed.page;
        let (first, mut addresses) = (self.first_unit(page), self.0.addresses.borrow_mut());
        let mut deltas = self.0.deltas.borrow_mut();
        match sent.packed.part {
            Part::Base(known) => {
                let before = units_of(addresses.all(), &self.0.layout, page).len() as u32;
                let has_deltas = deltas.known(page).is_some_and(|known| before > u32::from(known.units));
                deltas.counters.consolidated += u64::from(has_deltas);
                for unit in 0..self.0.layout.page_units {
                    let address = sent.addresses.get(unit as usize).copied().unwrap_or(UNMAPPED);
                    addresses.set(first + unit, address);
                }
                deltas.learn(page, known);
            }
            Part::Delta(slot, _) => {
                addresses.set(first + slot, sent.addresses[0]);
                deltas.arrived(page);
            }
        }
    }
}
