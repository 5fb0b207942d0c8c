//! Adds deltas to leaves that are not in memory.
//!
//! A delta is *drafted* from the pending records of a leaf, *begun* when these records leave memory, and then
//! written with others, packed into blocks. From its beginning on, readers of the page get its records.

use super::delta::{Filling, Of};
use super::deltas::UnderWay;
use super::packed::{Packed, Part};
use super::{OutOfPlace, units_of};
use crate::bytes;
use crate::format::page::node::SLOT;
use crate::{Error, Lsn};
use fulgurite_base::{PageId, StreamId};
use fulgurite_device::Arena;
use std::rc::Rc;

/// A delta that is being filled with records.
pub(crate) struct Draft {
    of: Of,
    /// The LSN of the last structure change of the leaf.
    pub structure: Lsn,
    prefix: usize,
    /// A lower bound of the bytes that the leaf has left.
    free: usize,
    filling: Filling,
}

impl Draft {
    /// Adds a record. Returns false if it does not fit into the unit, or might not fit into the leaf.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        // The record may be new in the leaf, or replace a shorter one.
        let cost = SLOT + key.len().saturating_sub(self.prefix) + value.len();
        let fits = cost <= self.free && self.filling.fits(key, value);
        if fits {
            self.free -= cost;
            self.filling.push(key, value);
        }
        fits
    }
}

/// A delta that was begun and must be written.
pub(crate) struct Begun {
    pub page: PageId,
    pub lsn: Lsn,
    part: Part,
    hint: StreamId,
    unit: Rc<[u8]>,
}

impl OutOfPlace {
    /// Whether the store makes deltas.
    pub(crate) fn makes_deltas(&self) -> bool {
        self.0.deltas.borrow().are_made()
    }

    /// Returns an empty delta for a page that is neither in memory nor being read or written. `None` if the
    /// page gets no delta now: it has no free slot, a delta is on its way, or nothing is known of the leaf.
    pub(crate) fn draft(&self, page: PageId) -> Option<Draft> {
        let deltas = self.0.deltas.borrow();
        let known = deltas.known(page).filter(|_| deltas.under_way(page).is_none())?;
        let slot = units_of(self.0.addresses.borrow().all(), &self.0.layout, page).len() as u32;
        let most = self.0.layout.page_units.min(u32::from(known.units) + self.0.most_deltas);
        (u32::from(known.units)..most).contains(&slot).then(|| Draft {
            of: Of { page, base: known.base, slot },
            structure: known.structure,
            prefix: known.prefix.into(),
            free: known.free.into(),
            filling: Filling::new(self.0.layout.unit_bytes as usize),
        })
    }

    /// Begins a delta of a leaf of `tree`. The log that contains its records ends at `lsn`. Readers of the page
    /// get the records from now on, so the records may leave memory.
    pub(crate) fn begin_delta(&self, draft: Draft, tree: u32, lsn: Lsn) -> Begun {
        let Draft { of, free, filling, .. } = draft;
        let unit: Rc<[u8]> = filling.seal(of, lsn, self.0.salt).into();
        let number = self.0.deltas.borrow_mut().begin(of.page, free as u16, (lsn, Rc::clone(&unit)));
        let (part, hint) = (Part::Delta(of.slot, number), StreamId(tree as u16));
        Begun { page: of.page, lsn, part, hint, unit }
    }

    /// Returns the LSN of the delta of a page that is on its way; `None` if there is none.
    pub(crate) fn delta_under_way(&self, page: PageId) -> Option<Lsn> {
        self.0.deltas.borrow().under_way(page).map(|UnderWay { lsn, .. }| *lsn)
    }

    /// Writes deltas. The log up to their LSNs must be durable. After the return, their records are on the drive,
    /// in the deltas or in newer bases, and durable after [`OutOfPlace::commit`].
    pub(crate) async fn write_deltas(&self, begun: &[Begun]) -> Result<(), Error> {
        let unit = self.0.layout.unit_bytes as usize;
        let bytes = Arena::new(begun.len() * unit).buffer(0, begun.len() * unit);
        let packed = |(from, delta): (usize, &Begun)| {
            bytes::fill(&bytes.part(from * unit, unit), &delta.unit);
            Packed { page: delta.page, part: delta.part, from, units: 1, hint: delta.hint }
        };
        let packed = begun.iter().enumerate().map(packed).collect();
        let superseded = self.0.deltas.borrow().superseded();
        self.write_packed(bytes, packed).await?;
        if self.0.deltas.borrow().superseded() != superseded {
            // The records of a superseded delta are on the drive when the write of the new base has ended.
            self.0.in_flight.settled().await;
            self.0.health.check()?;
        }
        Ok(())
    }
}
