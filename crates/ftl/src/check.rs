//! Checks a whole flash translation layer: counts, maps and bitmaps are recomputed from each other and must
//! agree. The cost is proportional to the size of the drive. The check shares no code with the checked
//! structures.

use crate::{Ftl, SegmentId, SegmentState};
use fulgurite_base::Ppn;
use thiserror::Error;

/// The invariant that is violated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // each message names the fields
pub enum CheckError {
    /// The logical-to-physical map (L2P) maps a logical page to a physical page that the physical-to-logical
    /// map (P2L) gives to another logical page.
    #[error("logical page {lpn} maps to physical page {ppn}, which belongs to logical page {owner}")]
    Mapping { lpn: u32, ppn: u32, owner: u32 },
    /// The valid bitmap and L2P disagree about the number of valid pages.
    #[error("{mapped} logical pages are mapped but valid physical pages have {valid} owners and sharers")]
    Bitmap { mapped: u64, valid: u64 },
    /// L2P maps a logical page to a physical page that the bitmap marks as invalid.
    #[error("logical page {lpn} maps to physical page {ppn}, which is marked as garbage")]
    Garbage { lpn: u32, ppn: u32 },
    /// The valid count of a segment differs from the number of its bits in the bitmap.
    #[error("segment {segment} counts {counted} valid pages but its bitmap has {bits}")]
    ValidCount { segment: u32, counted: u32, bits: u32 },
    /// The valid count of a unit differs from that of its segments, or its free list has segments of another
    /// unit.
    #[error(
        "unit {unit} counts {counted} valid pages but its segments have {valid}; \
         {strangers} of its free segments are others'"
    )]
    Unit { unit: u32, counted: u32, valid: u32, strangers: usize },
    /// A segment on a free list holds pages, or its state is not free.
    #[error("segment {segment} is listed as free but is {state:?} with {written} pages written")]
    Free { segment: u32, state: SegmentState, written: u32 },
}

/// Recomputes every invariant of `ftl` and returns the first violation. The cost is O(physical pages).
pub fn check(ftl: &Ftl) -> Result<(), CheckError> {
    check_mapping(ftl)?;
    check_segments(ftl)?;
    check_units(ftl)
}

fn check_units(ftl: &Ftl) -> Result<(), CheckError> {
    // Skips a drive of one unit, which does not count the unit's pages, since the unit holds all of them.
    for unit in ftl.units().filter(|_| ftl.config().units > 1) {
        let mine = |segment: &SegmentId| ftl.unit_of(*segment) == unit;
        let segments = (0..ftl.config().segments).map(SegmentId).filter(mine);
        let valid = segments.map(|segment| ftl.segments.valid(segment)).sum();
        let counted = ftl.valid_in(unit);
        let strangers = ftl.free_in(unit).filter(|segment| !mine(segment)).count();
        if counted != valid || strangers > 0 {
            return Err(CheckError::Unit { unit: unit.0, counted, valid, strangers });
        }
    }
    Ok(())
}

fn check_mapping(ftl: &Ftl) -> Result<(), CheckError> {
    let mut mapped = 0;
    for lpn in 0..ftl.config().logical_pages {
        let Some(ppn) = ftl.map.lookup(lpn) else { continue };
        mapped += 1;
        let owner = ftl.map.owner(ppn);
        if owner != lpn && !ftl.map.shares(lpn, ppn) {
            return Err(CheckError::Mapping { lpn, ppn: ppn.0, owner });
        }
        if !ftl.map.is_valid(ppn) {
            return Err(CheckError::Garbage { lpn, ppn: ppn.0 });
        }
    }
    let valid = ftl.map.owners_and_sharers();
    if mapped == valid { Ok(()) } else { Err(CheckError::Bitmap { mapped, valid }) }
}

fn check_segments(ftl: &Ftl) -> Result<(), CheckError> {
    let pages = ftl.config().segment_pages;
    for segment in 0..ftl.config().segments {
        let end = (segment + 1) * pages;
        let words = (segment * pages..end).step_by(64);
        let bits = words.map(|ppn| ftl.map.valid_bits(Ppn(ppn), 64.min(end - ppn)).count_ones()).sum();
        let counted = ftl.segments.valid(SegmentId(segment));
        if bits != counted {
            return Err(CheckError::ValidCount { segment, counted, bits });
        }
    }
    for segment in ftl.units().flat_map(|unit| ftl.free_in(unit)) {
        let (state, written) = (ftl.segments.state(segment), ftl.segments.written(segment));
        if state != SegmentState::Free || written != 0 {
            return Err(CheckError::Free { segment: segment.0, state, written });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::{Collect, CountingSink, FtlConfig, UnitId};
    use fulgurite_base::{Prng, StreamId};

    fn used_drive() -> Ftl {
        let collect = Collect { reserve: 3, schedule: Schedule::PACED, ..Collect::PLAIN };
        let config = FtlConfig { collect, ..FtlConfig::plain(600, 40, 20) };
        let mut ftl = Ftl::new(config).unwrap();
        let mut prng = Prng::new(7, "check");
        let mut sink = CountingSink::default();
        for _ in 0..20_000 {
            let lpn = prng.below(600) as u32;
            match prng.below(10) {
                0 => ftl.trim(lpn),
                1 => ftl.share(lpn, prng.below(600) as u32),
                _ => ftl.write(lpn, 1, StreamId(0), &mut sink),
            }
        }
        assert!(sink.erases > 500);
        ftl
    }

    fn mapped(ftl: &Ftl) -> (u32, Ppn) {
        let unshared = |ppn: &Ppn| (0..600).all(|lpn| !ftl.map.shares(lpn, *ppn));
        (0..600).find_map(|lpn| ftl.lookup(lpn).filter(unshared).map(|ppn| (lpn, ppn))).unwrap()
    }

    #[test]
    fn a_sound_drive_passes() {
        assert_eq!(check(&used_drive()), Ok(()));
    }

    #[test]
    fn a_wrong_owner_is_found() {
        let mut ftl = used_drive();
        let (lpn, ppn) = mapped(&ftl);
        ftl.map.map(lpn + 1, ppn);
        assert_eq!(check(&ftl), Err(CheckError::Mapping { lpn, ppn: ppn.0, owner: lpn + 1 }));
    }

    #[test]
    fn a_cleared_valid_bit_is_found() {
        let mut ftl = used_drive();
        let (lpn, ppn) = mapped(&ftl);
        ftl.map.forget(ppn);
        assert_eq!(check(&ftl), Err(CheckError::Garbage { lpn, ppn: ppn.0 }));
    }

    #[test]
    fn a_valid_page_of_nobody_is_found() {
        let mut ftl = used_drive();
        let garbage = (0..800).find(|ppn| !ftl.map.is_valid(Ppn(*ppn))).unwrap();
        ftl.map.fill_valid(garbage, garbage + 1, true);
        assert!(matches!(check(&ftl), Err(CheckError::Bitmap { mapped, valid }) if mapped + 1 == valid));
    }

    #[test]
    fn a_wrong_valid_count_is_found() {
        let mut ftl = used_drive();
        ftl.segments.revive(SegmentId(5));
        assert!(matches!(check(&ftl), Err(CheckError::ValidCount { segment: 5, .. })));
    }

    #[test]
    fn a_unit_that_miscounts_is_found() {
        let config = FtlConfig { units: 4, ..FtlConfig::plain(600, 80, 20) };
        let mut ftl = Ftl::new(config).unwrap();
        (0..600).for_each(|lpn| ftl.write(lpn, 1, StreamId(0), &mut CountingSink::default()));
        assert_eq!(check(&ftl), Ok(()));
        ftl.miscount(UnitId(0));
        assert!(matches!(check(&ftl), Err(CheckError::Unit { unit: 0, counted: 151, valid: 150, .. })));
    }

    #[test]
    fn a_free_segment_in_use_is_found() {
        let mut ftl = used_drive();
        let segment = ftl.free_in(UnitId(0)).next().unwrap();
        ftl.segments.append(segment, 1);
        ftl.segments.invalidate(segment);
        assert!(matches!(check(&ftl), Err(CheckError::Free { written: 1, .. })));
    }
}
