//! Finds pages without a map: scans every unit of every segment for the newest intact copy of each page, and
//! for the deltas of that copy.

use super::delta::{Delta, Of};
use super::pack::{Unpacker, packed_units};
use super::stored_map::UNMAPPED;
use crate::Lsn;
use crate::bytes;
use crate::format::layout::{Layout, Superblock};
use crate::format::page;
use crate::media::image::Source;
use crate::media::write::bound::bind_bytes;
use fulgurite_device::{Arena, Buffer};

/// The number of blocks in one read. A page that begins in these blocks may end after them.
const READ_TOGETHER: u64 = 256;

/// Returns the addresses of the units of all pages that can be found.
pub(crate) async fn find(source: &dyn Source, layout: &Layout, superblock: &Superblock) -> Vec<u32> {
    let (unit, page_units) = (layout.unit_bytes as usize, u64::from(layout.page_units));
    let data = superblock.data_start().0..superblock.pages;
    let whole = Arena::new(unit * page_units as usize).buffer(0, unit * page_units as usize);
    let mut addresses = vec![UNMAPPED; layout.units as usize];
    let mut newest: Vec<Option<Found>> = vec![None; (data.end - data.start) as usize];
    let mut deltas: Vec<(Of, u32)> = Vec::new();
    let mut unpacker = Unpacker::default();
    let read_together = READ_TOGETHER * u64::from(layout.block_units());
    for from in (0..layout.physical()).step_by(read_together as usize) {
        let len = (read_together + page_units.next_multiple_of(layout.block_units().into()))
            .min(layout.physical() - from);
        let mut bytes = vec![0; len as usize * unit];
        if source.read(layout.byte(from as u32), &mut bytes).await.is_err() {
            // The read of many blocks has failed, so read each block by itself.
            bytes.fill(0);
            let block = layout.block_bytes as usize;
            for (at, part) in (layout.byte(from as u32)..).step_by(block).zip(bytes.chunks_mut(block)) {
                let _ = source.read(at, part).await;
            }
        }
        bind_bytes(&mut bytes, unit, from as u32);
        for at in 0..read_together.min(len) {
            let rest = &bytes[at as usize * unit..];
            if let Some(delta) = Delta::read(&rest[..unit], superblock.salt()) {
                deltas.push((delta.of(), (from + at) as u32));
            }
            let found = page_at(rest, &mut unpacker, &whole, layout, superblock);
            let Some((page, found)) = found else { continue };
            if newest[page].is_none_or(|known| known.lsn <= found.lsn) {
                newest[page] = Some(found);
                for (unit, address) in
                    addresses[page * page_units as usize..].iter_mut().take(page_units as usize).enumerate()
                {
                    let is_used = unit < found.units;
                    *address = if is_used { (from + at) as u32 + unit as u32 } else { UNMAPPED };
                }
            }
        }
    }
    // The deltas of a base follow it in the order of their slots. A delta that is lost ends the page.
    deltas.sort_unstable_by_key(|(of, _)| (of.page, of.slot));
    for (of, address) in deltas {
        let Some(page) = of.page.0.checked_sub(data.start).map(|page| page as usize) else { continue };
        let slots = addresses.get_mut(page * page_units as usize..).unwrap_or_default();
        let slots = slots.get_mut(..page_units as usize).unwrap_or_default();
        let known = slots.iter().position(|slot| *slot == UNMAPPED).unwrap_or(slots.len());
        let is_next = newest.get(page).copied().flatten().is_some_and(|base| base.sum == of.base);
        if let Some(slot) = slots.get_mut(of.slot as usize)
            && is_next
            && of.slot as usize == known
        {
            *slot = address;
        }
    }
    addresses
}

/// An intact base.
#[derive(Clone, Copy)]
struct Found {
    lsn: Lsn,
    sum: u32,
    units: usize,
}

/// Decodes the base of a page that begins at the start of `bytes`, if there is one. Returns the index of the
/// page among data pages, and the base. `whole` is a buffer of the size of a page.
fn page_at(
    bytes: &[u8],
    unpacker: &mut Unpacker,
    whole: &Buffer,
    layout: &Layout,
    superblock: &Superblock,
) -> Option<(usize, Found)> {
    let (unit, len) = (layout.unit_bytes as usize, whole.len());
    let data = superblock.data_start().0..superblock.pages;
    let found = |units: usize| {
        bytes::look(whole, |bytes| {
            let number = page::number(bytes);
            let is_it = data.contains(&number.0) && page::is_whole(bytes, number, superblock.salt());
            let found = Found { lsn: page::lsn(bytes), sum: page::get_u32(bytes, 0), units };
            is_it.then(|| ((number.0 - data.start) as usize, found))
        })
    };
    // A compressed page states its length. If the page is uncompressed, these bytes are its checksum.
    let units = packed_units(bytes, unit).unwrap_or(0);
    if units < layout.page_units as usize
        && bytes.get(..units * unit).is_some_and(|packed| unpacker.unpack(packed, whole))
        && let Some(found) = found(units)
    {
        return Some(found);
    }
    bytes::fill(whole, bytes.get(..len)?);
    found(layout.page_units as usize)
}
