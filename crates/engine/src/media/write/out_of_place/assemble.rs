//! Puts a page together from its units: the base, and the deltas behind it.
//!
//! A page has as many slots in the map as an uncompressed page has units. A compressed base takes the first
//! of them, and states its length. Deltas take the next ones, in the order in which they are applied. If all
//! slots are taken, the page is uncompressed, or a base with deltas: then what is unpacked is an intact page
//! with the page's number.

use super::delta::{Delta, Of};
use super::pack::{Unpacker, packed_units};
use crate::bytes;
use crate::format::page::{self, Salt};
use fulgurite_base::PageId;
use fulgurite_device::Buffer;

/// The base of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub units: u32,
    /// The checksum of the page without its deltas.
    pub sum: u32,
}

/// Whether the units of a page that takes all slots begin like a compressed base.
pub(super) fn looks_packed(units: &[u8], unit_bytes: usize) -> bool {
    packed_units(units, unit_bytes).is_some_and(|base| base * unit_bytes < units.len())
}

/// Puts the page together in `into`, which has the size of a page, and adds the checksum if the page has
/// deltas. `units` are the units of the page, in the order of their slots. Returns `None` if these are no
/// page. A page without deltas may be wrong, so the caller must verify the checksum.
pub(super) fn assemble(
    units: &[u8],
    (number, salt): (PageId, Salt),
    unit_bytes: usize,
    unpacker: &mut Unpacker,
    into: &Buffer,
) -> Option<Base> {
    let is_full = units.len() == into.len();
    let base = packed_units(units, unit_bytes).filter(|base| base * unit_bytes <= units.len());
    let base = base.filter(|base| !is_full || base * unit_bytes < units.len());
    let sum = || bytes::look(into, |bytes| page::get_u32(bytes, 0));
    let is_whole =
        || bytes::look(into, |bytes| page::is_whole(bytes, number, salt) && page::fault(bytes).is_none());
    let unpacked = base.and_then(|base| {
        let (packed, deltas) = units.split_at(base * unit_bytes);
        // Deltas are applied to an intact base only.
        let is_base = unpacker.unpack(packed, into) && (deltas.is_empty() || is_whole());
        is_base.then(|| (Base { units: base as u32, sum: sum() }, deltas))
    });
    let Some((base, deltas)) = unpacked else {
        return is_full.then(|| {
            bytes::fill(into, units);
            Base { units: (units.len() / unit_bytes) as u32, sum: sum() }
        });
    };
    if deltas.is_empty() {
        return Some(base);
    }
    bytes::change(into, |bytes| {
        for (slot, unit) in (base.units..).zip(deltas.chunks_exact(unit_bytes)) {
            let delta = Delta::read(unit, salt)
                .filter(|delta| delta.of() == Of { page: number, base: base.sum, slot });
            if !delta?.apply(bytes) {
                return None;
            }
        }
        page::seal(bytes, salt);
        Some(base)
    })
}
