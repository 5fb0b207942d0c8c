//! Places the volumes of a trace side by side in one space of addresses, for consumers that know no volumes.
//!
//! Each volume is divided into parts of equal size, and the space into regions of the same size. A part gets
//! a region of its own when a request touches it for the first time, so two places never get one address.
//! The first volume keeps its addresses where their regions are free, and the beginnings of the other volumes
//! follow in the order of first appearance.

use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The size of a region in bytes, which is 16 TiB. Most volumes are smaller, so they consist of one part.
pub(super) const REGION_BYTES: u64 = 1 << 44;

/// One space of addresses for all volumes of a trace.
pub(super) struct AddressSpace {
    /// The size of a part and of a region, in the unit of the addresses.
    region: u64,
    /// The number of whole regions. It bounds the memory of the maps.
    regions: u64,
    /// The region of each part that occurred, by volume and number of the part.
    regions_of: FxHashMap<(u32, u64), u64>,
    taken: FxHashSet<u64>,
    /// All regions from this one on were given to parts or skipped, in the search from the end of the space.
    searched_from: u64,
    /// The last part that was used, and its region.
    last: ((u32, u64), u64),
}

impl AddressSpace {
    /// Creates a space of regions of `region` units.
    pub(super) fn new(region: u64) -> AddressSpace {
        let regions = (u64::MAX / region).min(1 << 20);
        AddressSpace {
            region,
            regions,
            regions_of: FxHashMap::default(),
            taken: FxHashSet::default(),
            searched_from: regions,
            // No named volume has the number zero, so this part never occurs.
            last: ((0, 0), 0),
        }
    }

    /// Calls `each` with the addresses of `units` of a volume. They are one range, unless they are in parts
    /// whose regions are apart. Positions without a volume are addresses already.
    ///
    /// Fails if there is no free region.
    #[inline]
    pub(super) fn place(
        &mut self,
        volume: u32,
        units: Range<u64>,
        mut each: impl FnMut(Range<u64>),
    ) -> Result<(), String> {
        if volume == 0 {
            each(units);
            return Ok(());
        }
        let part = units.start / self.region;
        let (known, region) = self.last;
        if known == (volume, part) && units.end <= (part + 1).saturating_mul(self.region) {
            let from = part * self.region;
            let to = region * self.region;
            each(units.start - from + to..units.end - from + to);
            return Ok(());
        }
        self.place_parts(volume, units, each)
    }

    fn place_parts(
        &mut self,
        volume: u32,
        units: Range<u64>,
        mut each: impl FnMut(Range<u64>),
    ) -> Result<(), String> {
        let mut open: Option<Range<u64>> = None;
        let mut at = units.start;
        while at < units.end {
            let part = at / self.region;
            let end = units.end.min((part + 1).saturating_mul(self.region));
            let region = self.region_of(volume, part)?;
            let start = region * self.region + at % self.region;
            let next = start..start + (end - at);
            match &mut open {
                // Regions that follow each other keep the request whole.
                Some(open) if open.end == next.start => open.end = next.end,
                _ => open.replace(next).into_iter().for_each(&mut each),
            }
            self.last = ((volume, part), region);
            at = end;
        }
        open.into_iter().for_each(each);
        Ok(())
    }

    /// Returns the region of a part of a volume. A new part gets a free region.
    fn region_of(&mut self, volume: u32, part: u64) -> Result<u64, String> {
        if let Some(region) = self.regions_of.get(&(volume, part)) {
            return Ok(*region);
        }
        let wanted = match (volume, part) {
            // The first volume may also use the part of a region at the end of the space.
            (1, part) => Some(part).filter(|part| *part <= self.regions),
            (volume, 0) => Some(u64::from(volume) - 1).filter(|region| *region < self.regions),
            _ => None,
        };
        let region = match wanted.filter(|wanted| !self.taken.contains(wanted)) {
            Some(wanted) => wanted,
            None => self.free_region()?,
        };
        self.taken.insert(region);
        self.regions_of.insert((volume, part), region);
        Ok(region)
    }

    fn free_region(&mut self) -> Result<u64, String> {
        while let Some(candidate) = self.searched_from.checked_sub(1) {
            self.searched_from = candidate;
            if !self.taken.contains(&candidate) {
                return Ok(candidate);
            }
        }
        Err("the volumes of this trace have no room in 64 bits of addresses; choose one with volume="
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Returns the start and the end of each range of addresses.
    fn placed(space: &mut AddressSpace, volume: u32, units: Range<u64>) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        space.place(volume, units, |range| all.push((range.start, range.end))).unwrap();
        all
    }

    proptest! {
        /// The rule: two places have the same address exactly if they are the same place of the same volume.
        #[test]
        fn no_two_places_have_one_address(
            requests in prop::collection::vec((1u32..5, 0u64..200, 1u64..30), 0..60)
        ) {
            let mut space = AddressSpace::new(8);
            let (mut address_of, mut place_of) = (BTreeMap::new(), BTreeMap::new());
            for (volume, start, length) in requests {
                let places = start..start + length;
                let found = placed(&mut space, volume, places.clone());
                let addresses: Vec<u64> = found.into_iter().flat_map(|(start, end)| start..end).collect();
                prop_assert_eq!(addresses.len() as u64, length);
                for (place, address) in places.zip(addresses) {
                    prop_assert_eq!(*address_of.entry((volume, place)).or_insert(address), address);
                    prop_assert_eq!(*place_of.entry(address).or_insert((volume, place)), (volume, place));
                }
            }
        }
    }

    #[test]
    fn usual_volumes_follow_each_other_and_one_alone_stays_where_it_is() {
        let mut space = AddressSpace::new(REGION_BYTES);
        assert_eq!(placed(&mut space, 1, 5..6), [(5, 6)]);
        assert_eq!(placed(&mut space, 2, 5..6), [(REGION_BYTES + 5, REGION_BYTES + 6)]);
        assert_eq!(placed(&mut space, 3, 0..1), [(2 * REGION_BYTES, 2 * REGION_BYTES + 1)]);
        let far = u64::MAX - 2 * REGION_BYTES..u64::MAX - REGION_BYTES;
        assert_eq!(placed(&mut AddressSpace::new(REGION_BYTES), 1, far.clone()), [(far.start, far.end)]);
        // The second volume has the second region already, so the first volume cannot keep its address.
        let moved = placed(&mut space, 1, REGION_BYTES - 1..REGION_BYTES + 1);
        assert_eq!((moved.len(), &moved[0]), (2, &(REGION_BYTES - 1, REGION_BYTES)));
    }

    #[test]
    fn a_space_without_room_is_an_error() {
        let mut space = AddressSpace::new(u64::MAX / 2);
        placed(&mut space, 1, 0..1);
        placed(&mut space, 2, 0..1);
        assert!(space.place(3, 0..1, drop).unwrap_err().contains("choose one with volume="));
    }
}
