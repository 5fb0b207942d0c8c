//! Reads pages: fetches all units of a page at once, and puts the page together.

use super::assemble::{assemble, looks_packed};
use super::deltas::Known;
use super::{OutOfPlace, units_of};
use crate::bytes;
use crate::format::page;
use crate::wait::together;
use fulgurite_base::PageId;
use fulgurite_device::{Buffer, IoError};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

impl OutOfPlace {
    /// Reads a page. The data may be wrong, so the caller must verify the checksum.
    pub(crate) async fn read(&self, page: PageId, into: &Buffer) -> Result<(), IoError> {
        let units = || units_of(self.0.addresses.borrow().all(), &self.0.layout, page).to_vec();
        loop {
            let addresses = units();
            if addresses.is_empty() {
                return Err(IoError::Corrupt);
            }
            let is_full = addresses.len() == self.0.layout.page_units as usize;
            let read = match is_full {
                true => self.read_units(addresses.iter().copied().enumerate(), into).await.map(|()| None),
                false => self.read_packed(&addresses).await.map(Some),
            };
            if units() != addresses {
                // Read again, because the page was relocated, and its old address may have been reused.
                continue;
            }
            let is_there = match read? {
                Some(packed) => self.unpack(page, &packed, into),
                None => self.unpack_full(page, into),
            };
            return if is_there { Ok(()) } else { Err(IoError::Corrupt) };
        }
    }

    /// Puts a page together from its units and the delta that is on its way, if some of its slots are free.
    /// Returns false if the units are no page.
    pub(super) fn unpack(&self, page: PageId, units: &Buffer, into: &Buffer) -> bool {
        let delta = self.0.deltas.borrow().under_way(page).map(|delta| Rc::clone(&delta.unit));
        bytes::look(units, |units| match delta {
            None => self.assembled(page, units, into),
            Some(delta) => self.assembled(page, &[units, &delta].concat(), into),
        })
    }

    /// Puts a page together that takes all of its slots and was read into `into`. Returns false if the units
    /// are no page.
    fn unpack_full(&self, page: PageId, into: &Buffer) -> bool {
        let unit_bytes = self.0.layout.unit_bytes as usize;
        let units = bytes::look(into, |units| looks_packed(units, unit_bytes).then(|| units.to_vec()));
        units.is_none_or(|units| self.assembled(page, &units, into))
    }

    fn assembled(&self, page: PageId, units: &[u8], into: &Buffer) -> bool {
        let (unit_bytes, salt) = (self.0.layout.unit_bytes as usize, self.0.salt);
        let base = assemble(units, (page, salt), unit_bytes, &mut self.0.unpacker.borrow_mut(), into);
        let Some(base) = base else { return false };
        let mut deltas = self.0.deltas.borrow_mut();
        deltas.counters.read += (units.len() / unit_bytes) as u64 - u64::from(base.units);
        if deltas.are_made() {
            bytes::look(into, |bytes| {
                if page::is_whole(bytes, page, salt) && page::fault(bytes).is_none() {
                    deltas.learn(page, Known::behind(bytes, base));
                }
            });
        }
        true
    }

    /// Reads consecutive pages into parts of `into`, concurrently. Pages that are contiguous on the drive are
    /// read with one command. Returns for each page whether it could be read. As in [`OutOfPlace::read`], the
    /// data may be wrong.
    pub(crate) async fn read_run(&self, first: PageId, pages: usize, into: &Buffer) -> Vec<bool> {
        let (size, page_units) = (into.len() / pages.max(1), self.0.layout.page_units as usize);
        let page = |index: usize| PageId(first.0 + index as u64);
        let units =
            |index: usize| units_of(self.0.addresses.borrow().all(), &self.0.layout, page(index)).to_vec();
        let before: Vec<Vec<u32>> = (0..pages).map(units).collect();
        let is_full = |index: &usize| before[*index].len() == page_units;
        let full = (0..pages).filter(is_full);
        let parts = full.flat_map(|index| (index * page_units..).zip(before[index].iter().copied()));
        let mut reads: Vec<Pin<Box<dyn Future<Output = bool> + '_>>> =
            vec![Box::pin(async { self.read_units(parts, into).await.is_ok() })];
        // Read the other pages one by one: they are compressed, or were never written.
        for index in (0..pages).filter(|index| !is_full(index)) {
            let part = into.part(index * size, size);
            reads.push(Box::pin(async move { self.read(page(index), &part).await.is_ok() }));
        }
        let mut came = together(reads).await.into_iter();
        let full_came = came.next() == Some(true);
        (0..pages)
            .map(|index| match is_full(&index) {
                // If the page was relocated, its old address may have been reused, so the read does not
                // count.
                true => {
                    let is_there = full_came && units(index) == before[index];
                    is_there && self.unpack_full(page(index), &into.part(index * size, size))
                }
                false => came.next() == Some(true),
            })
            .collect()
    }
}
