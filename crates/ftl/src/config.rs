//! The geometry and the policies of a translation layer, and the checks on their combinations.

use crate::collect::Collect;
use crate::placement::DriveShape;
use fulgurite_base::{Choice, SpecError};

/// How host pages are spread over the units. A copy stays in the unit of its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stripe {
    /// Host pages go to the units in turn, except those that accept no writes now.
    RoundRobin,
    /// Host pages go to the unit with the fewest queued or running flash operations; among equals to the next
    /// in turn.
    LeastLoaded,
    /// Host pages go to a unit by the logical page number. A page always goes to the same unit, and waits for
    /// that unit.
    Address,
}

impl Choice for Stripe {
    const NAMES: &'static [(&'static str, Stripe)] = &[
        ("round-robin", Stripe::RoundRobin),
        ("least-loaded", Stripe::LeastLoaded),
        ("address", Stripe::Address),
    ];
}

/// How erases are spread over the segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WearLeveling {
    /// Free segments are used in the order in which they were erased.
    None,
    /// The free segment with the fewest erases is used first.
    Dynamic,
    /// Free segments are used as with dynamic wear leveling. In addition, the data of a full segment moves
    /// away if its erases are behind those of the most erased segment by more than a gap.
    Static,
}

impl Choice for WearLeveling {
    const NAMES: &'static [(&'static str, WearLeveling)] =
        &[("none", WearLeveling::None), ("dynamic", WearLeveling::Dynamic), ("static", WearLeveling::Static)];
}

/// The geometry and the policies of a flash translation layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtlConfig {
    /// The number of logical pages.
    pub logical_pages: u32,
    /// The number of units of allocation and collection, all with the same number of segments.
    pub units: u32,
    /// How host pages are spread over the units.
    pub stripe: Stripe,
    /// The number of segments of the drive. The segments of the first unit come first, then those of the
    /// second, and so on.
    pub segments: u32,
    /// The number of pages in a segment.
    pub segment_pages: u32,
    /// The number of consecutive pages, called a row, that the flash reads and programs together.
    /// Step-by-step collection only stops at the end of a row.
    pub row_pages: u32,
    /// The number of pages in a row across all dies of a unit.
    pub stripe_pages: u32,
    /// The policies and thresholds of garbage collection.
    pub collect: Collect,
    /// How erases are spread over the segments.
    pub wear_leveling: WearLeveling,
    /// With static wear leveling, the most erases by which a segment may be behind the most erased segment.
    pub wear_gap: u32,
    /// The number of erases that a segment endures, within a tenth; 0 for unlimited.
    pub endurance: u32,
}

impl FtlConfig {
    /// Returns the configuration of this geometry with the plainest policies: one stream, greedy victims,
    /// non-preemptive collection below two free segments, no wear leveling.
    pub const fn plain(logical_pages: u32, segments: u32, segment_pages: u32) -> FtlConfig {
        FtlConfig {
            logical_pages,
            units: 1,
            stripe: Stripe::RoundRobin,
            segments,
            segment_pages,
            row_pages: 1,
            stripe_pages: 1,
            collect: Collect::PLAIN,
            wear_leveling: WearLeveling::None,
            wear_gap: 0,
            endurance: 0,
        }
    }

    /// Returns the number of pages that can hold valid or invalid data when non-preemptive collection picks a
    /// victim; this is T in the closed forms.
    pub(crate) fn effective_pages(&self) -> u64 {
        let kept_free = self.units.saturating_mul(self.collect.reserve);
        u64::from(self.segments.saturating_sub(kept_free)) * u64::from(self.segment_pages)
    }

    /// Returns the effective over-provisioning ρ = (T − U) / U, where U is the number of logical pages.
    pub fn spare_effective(&self) -> f64 {
        spare(self.effective_pages() as f64, f64::from(self.logical_pages))
    }

    /// Refuses a geometry in which collection could get stuck.
    pub fn validate(&self) -> Result<(), SpecError> {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = *self;
        if logical_pages == 0 || segment_pages == 0 {
            return Err(SpecError::new(
                "the logical space and the segments must hold at least one page each",
            ));
        }
        if self.units == 0 || !segments.is_multiple_of(self.units) {
            return Err(SpecError::new(format!(
                "{segments} segments cannot be divided among {} units; accepted: a multiple of the units",
                self.units
            )));
        }
        let physical = u64::from(segments) * u64::from(segment_pages);
        // The map cannot hold this number, because its complement stands for an unmapped page.
        if physical >= u64::from(u32::MAX) {
            return Err(SpecError::new(format!(
                "{physical} physical pages are too many; accepted: fewer than 2^32"
            )));
        }
        if u64::from(logical_pages) > physical {
            return Err(SpecError::new(format!(
                "{logical_pages} logical pages exceed the {physical} physical ones; \
                 accepted: fewer logical than physical"
            )));
        }
        self.collect.check_thresholds()?;
        let reserve = self.collect.reserve;
        // Requires one segment more than the data needs, which holds invalid pages or is open; otherwise a
        // victim may free no page.
        let placement = &self.collect.placement;
        // A policy that can do with fewer streams counts the segments of the drive, not those of each unit.
        let spared = if self.units == 1 { placement.streams() - placement.streams_at_least() } else { 0 };
        let need = self.least_segments(0) - u64::from(spared);
        let segments = segments / self.units;
        if u64::from(segments) < need {
            let (each, logical_pages) = match self.units {
                1 => (String::new(), logical_pages),
                units => (format!(" in each of {units} units"), self.logical_share()),
            };
            return Err(SpecError::new(format!(
                "{segments} segments of {segment_pages} pages{each} are too few for {logical_pages} logical pages \
                 with {reserve} in reserve; accepted: at least {need} segments \
                 (smaller segments, more over-provisioning or less logical space)"
            )));
        }
        // Limits the background threshold: segments of data and open segments never become free.
        let most = u64::from(segments) - need + u64::from(reserve);
        if u64::from(self.collect.background) > most {
            return Err(SpecError::new(format!(
                "gc_background={} can never be reached; accepted: 0 to {most} here",
                self.collect.background
            )));
        }
        Ok(())
    }

    /// Returns the number of logical pages of a unit, if the pages are spread evenly.
    fn logical_share(&self) -> u32 {
        // Counts whole rows: striping by address distributes rows, so the first unit may have one row more
        // than the last.
        self.logical_pages.div_ceil(self.units).next_multiple_of(self.row_pages).min(self.logical_pages)
    }

    /// Returns the fewest segments with which a unit that holds `valid` pages can still be collected.
    pub(crate) fn least_segments(&self, valid: u32) -> u64 {
        u64::from(self.logical_share().max(valid)).div_ceil(u64::from(self.segment_pages))
            + u64::from(self.collect.reserve)
            + u64::from(self.collect.placement.streams())
    }

    /// Returns the geometry of the drive for placement.
    pub(crate) fn drive_shape(&self) -> DriveShape {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = *self;
        let Collect { reserve, ref victim, .. } = self.collect;
        let reserve = self.units.saturating_mul(reserve);
        DriveShape { logical_pages, segments, segment_pages, reserve, victim: victim.clone() }
    }
}

/// Returns the effective over-provisioning ρ, if `effective_pages` can hold valid or invalid data.
pub(super) fn spare(effective_pages: f64, logical_pages: f64) -> f64 {
    (effective_pages - logical_pages) / logical_pages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;

    /// Returns the text of the refusal; empty if the geometry is accepted.
    fn refusal(config: FtlConfig) -> String {
        config.validate().err().map(|error| error.to_string()).unwrap_or_default()
    }

    fn assert_refused(config: FtlConfig, expected: &str) {
        let refusal = refusal(config);
        assert!(refusal.contains(expected), "{refusal:?} says nothing of {expected:?}");
    }

    fn assert_accepted(config: FtlConfig) {
        assert_eq!(refusal(config), "");
    }

    /// The rule: a geometry is accepted if, and only if, collection can continue for ever in it.
    #[test]
    fn the_least_drive_is_accepted_and_one_page_less_is_refused() {
        let plain = FtlConfig::plain;
        assert_refused(plain(0, 8, 16), "at least one page");
        assert_refused(plain(8, 8, 0), "at least one page");
        // The drive has five segments of data, two in reserve and an open one.
        assert_accepted(plain(80, 8, 16));
        assert_refused(plain(81, 8, 16), "accepted: at least 9 segments");
        assert_refused(plain(128, 8, 16), "accepted: at least 11 segments");
        assert_refused(plain(129, 8, 16), "exceed the 128 physical ones");
        assert_accepted(plain(1, 65_536, 65_535));
        assert_refused(plain(1, 65_537, 65_535), "4294967295 physical pages are too many");
    }

    /// The rule: a policy that can do with fewer streams is accepted on a drive with fewer segments, but not on
    /// one of several units.
    #[test]
    fn a_policy_that_can_do_with_fewer_streams_needs_fewer_segments() {
        let config = |placement: &str, segments, units| FtlConfig {
            collect: Collect { placement: placement.parse().unwrap(), ..Collect::PLAIN },
            units,
            ..FtlConfig::plain(80 * units, segments, 16)
        };
        assert_accepted(config("fulgurite", 8, 1));
        assert_refused(config("fulgurite", 7, 1), "accepted: at least 8 segments");
        assert_refused(config("fulgurite:scheme=lifetimes", 17, 1), "accepted: at least 18 segments");
        assert_refused(config("fulgurite", 34, 2), "accepted: at least 18 segments");
    }

    /// The rule: each unit holds its share of the logical pages, in whole rows, and has the same limits as a
    /// drive.
    #[test]
    fn a_unit_is_refused_as_a_drive_is() {
        let units = |units, logical_pages, row_pages| FtlConfig {
            units,
            row_pages,
            ..FtlConfig::plain(logical_pages, 16, 16)
        };
        assert_refused(units(0, 80, 1), "cannot be divided among 0 units");
        assert_refused(units(3, 80, 1), "cannot be divided among 3 units");
        assert_accepted(units(2, 160, 1));
        assert_refused(units(2, 161, 1), "in each of 2 units are too few for 81 logical pages");
        assert_accepted(units(2, 157, 4));
        assert_refused(units(2, 161, 4), "too few for 84 logical pages");
        // One row is larger than all data, so one unit must have room for all data.
        assert_accepted(units(2, 10, 4_096));
        assert_eq!(units(2, 160, 1).effective_pages(), 12 * 16);
        assert_eq!(units(2, 160, 1).spare_effective(), 0.2);
        assert_eq!(units(2, 160, 1).drive_shape().reserve, 4);
    }

    /// The rule: the background threshold can be as large as the number of segments that can become free.
    #[test]
    fn the_background_threshold_is_limited() {
        // Three segments of data and an open one never become free, with any reserve.
        for reserve in [2, 3] {
            let background = |background| FtlConfig {
                collect: Collect { background, reserve, ..Collect::PLAIN },
                ..FtlConfig::plain(48, 8, 16)
            };
            assert_accepted(background(4));
            assert_refused(background(5), "accepted: 0 to 4 here");
        }
    }

    /// The rule: collection keeps a free segment to write to, and begins before the host has used up all
    /// other segments.
    #[test]
    fn thresholds_leave_collection_a_segment() {
        let thresholds = |schedule, reserve, hard| FtlConfig {
            collect: Collect { schedule, reserve, hard, ..Collect::PLAIN },
            ..FtlConfig::plain(16, 16, 16)
        };
        assert_refused(
            thresholds(Schedule::NON_PREEMPTIVE, 0, 0),
            "gc_reserve=0 is too small; accepted: at least 1",
        );
        assert_accepted(thresholds(Schedule::NON_PREEMPTIVE, 1, 0));
        assert_refused(thresholds(Schedule::SEMI_PREEMPTIVE, 3, 0), "gc_hard=0 is too small");
        assert_refused(
            thresholds(Schedule::SEMI_PREEMPTIVE, 3, 3),
            "gc_reserve=3 is too small; accepted: at least 4",
        );
        assert_accepted(thresholds(Schedule::SEMI_PREEMPTIVE, 4, 3));
    }
}
