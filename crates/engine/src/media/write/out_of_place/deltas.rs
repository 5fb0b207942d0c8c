//! Keeps facts about leaves that may get deltas, and the deltas on their way to the drive.
//!
//! For each page, 16 bytes say how its base is stored and how much room the leaf has. They are filled when the
//! page is read or written, so that a delta can be added without reading the leaf. A leaf of which nothing is
//! known gets no delta.
//!
//! A delta on its way belongs to the page for all readers already: the records that it has left memory when it
//! was made. A page has one such delta at a time. If the page is written as a whole meanwhile, its new base
//! contains these records, and the delta is *superseded*: it is not put behind that base.

use super::assemble::Base;
use crate::Lsn;
use crate::format::layout::{LEAF_BYTES, Layout};
use crate::format::page;
use crate::format::page::node::Node;
use fulgurite_base::PageId;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The facts about the leaf in a page that a delta needs. The page is not a leaf, or nothing is known, if `units` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The LSN of the last structure change.
    pub structure: Lsn,
    /// The checksum of the base.
    pub base: u32,
    /// A lower bound of the free bytes of the leaf with all its deltas.
    pub free: u16,
    /// A lower bound of the length of the prefix that all keys have.
    pub prefix: u8,
    /// The number of units of the base.
    pub units: u8,
}

impl Known {
    /// Returns what is known of an intact page without faults that is written with a base of `units`.
    pub(super) fn of(bytes: &[u8], units: u32) -> Known {
        Known::behind(bytes, Base { units, sum: page::get_u32(bytes, 0) })
    }

    /// Returns what is known of an intact page without faults that was read with this base.
    pub(super) fn behind(bytes: &[u8], base: Base) -> Known {
        let Some(node) = Node::new(bytes).filter(|node| node.level() == 0) else { return Known::default() };
        Known {
            structure: page::structure_lsn(bytes),
            base: base.sum,
            free: u16::try_from(node.free()).unwrap_or(u16::MAX),
            prefix: u8::try_from(node.prefix().len()).unwrap_or(u8::MAX),
            units: u8::try_from(base.units).unwrap_or(0),
        }
    }
}

/// A delta on its way to the drive.
pub(super) struct UnderWay {
    /// The number of the delta, which no other delta has.
    number: u64,
    pub lsn: Lsn,
    pub unit: Rc<[u8]>,
}

// [`leaf_table_bytes`](crate::format::layout::leaf_table_bytes) counts on this size.
const _: () = assert!(size_of::<Known>() == LEAF_BYTES as usize);

/// Counts of deltas since the store was opened.
#[derive(Clone, Copy, Default)]
pub(crate) struct DeltaCounters {
    /// The deltas that were written, without those that were superseded.
    pub written: u64,
    /// The deltas that were read with their pages.
    pub read: u64,
    /// The pages with deltas that were written as a whole.
    pub consolidated: u64,
}

/// The table of leaves, and the deltas on their way. The table is empty if the store makes no deltas.
#[derive(Default)]
pub(super) struct Deltas {
    known: Vec<Known>,
    first: u64,
    under_way: FxHashMap<PageId, UnderWay>,
    begun: u64,
    superseded: u64,
    pub counters: DeltaCounters,
}

impl Deltas {
    /// Creates the table for a store of this layout that makes deltas.
    pub(super) fn new(layout: &Layout) -> Deltas {
        let pages = layout.units / u64::from(layout.page_units);
        let known = vec![Known::default(); pages as usize];
        Deltas { known, first: layout.data.0, ..Deltas::default() }
    }

    /// Whether the store makes deltas.
    pub(super) fn are_made(&self) -> bool {
        !self.known.is_empty()
    }

    fn index(&self, page: PageId) -> usize {
        page.0.wrapping_sub(self.first) as usize
    }

    /// Returns what is known of a leaf; `None` if it is nothing.
    pub(super) fn known(&self, page: PageId) -> Option<Known> {
        self.known.get(self.index(page)).copied().filter(|known| known.units > 0)
    }

    /// Records what is known of a page. It does nothing if the store makes no deltas.
    pub(super) fn learn(&mut self, page: PageId, known: Known) {
        let index = self.index(page);
        if let Some(entry) = self.known.get_mut(index) {
            *entry = known;
        }
    }

    /// Begins a delta that leaves `free` bytes of its leaf. Returns the number of the delta.
    pub(super) fn begin(&mut self, page: PageId, free: u16, (lsn, unit): (Lsn, Rc<[u8]>)) -> u64 {
        let index = self.index(page);
        if let Some(known) = self.known.get_mut(index) {
            known.free = free;
        }
        self.begun += 1;
        self.under_way.insert(page, UnderWay { number: self.begun, lsn, unit });
        self.begun
    }

    /// Returns the delta of a page that is on its way.
    pub(super) fn under_way(&self, page: PageId) -> Option<&UnderWay> {
        self.under_way.get(&page)
    }

    /// Whether a delta is on its way and not superseded.
    pub(super) fn is_under_way(&self, page: PageId, number: u64) -> bool {
        self.under_way.get(&page).is_some_and(|delta| delta.number == number)
    }

    /// Removes the delta of a page, which has arrived.
    pub(super) fn arrived(&mut self, page: PageId) {
        self.under_way.remove(&page);
        self.counters.written += 1;
    }

    /// Removes the delta of a page that is on its way, because the page was written as a whole or trimmed.
    pub(super) fn supersede(&mut self, page: PageId) {
        self.superseded += u64::from(self.under_way.remove(&page).is_some());
    }

    /// Returns the number of deltas that were superseded on their way.
    pub(super) fn superseded(&self) -> u64 {
        self.superseded
    }
}
