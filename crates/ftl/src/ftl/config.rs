//! The shape of a translation layer and its policies, and the checks on combinations of them.

use crate::collect::Collect;
use crate::ftl::Stripe;
use crate::placement::DriveShape;
use crate::wear::WearLeveling;
use fulgurite_base::SpecError;

/// The shape and the policies of an FTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtlConfig {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Units of allocation and collection, each with as many segments.
    pub units: u32,
    /// How pages of the host are spread over them.
    pub stripe: Stripe,
    /// Segments of the drive: those of the first unit, then those of the second, and so on.
    pub segments: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Consecutive pages that the flash reads and programs together: collection step by step does
    /// not stop inside such a row.
    pub row_pages: u32,
    /// Pages in a row over all dies of a unit.
    pub stripe_pages: u32,
    /// How garbage is collected.
    pub collect: Collect,
    /// How erases are spread.
    pub wear_leveling: WearLeveling,
    /// How far a segment may fall behind in erases where leveling is static.
    pub wear_gap: u32,
    /// Erases that a segment bears, within a tenth; zero: any number.
    pub endurance: u32,
}

impl FtlConfig {
    /// A translation layer of this shape with the plainest policies: one stream, greedy victims,
    /// non-preemptive collection below two free segments, no wear.
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

    /// Pages that can hold data or garbage when non-preemptive collection picks a victim: T in the
    /// closed forms.
    pub fn effective_pages(&self) -> u64 {
        let kept_free = self.units.saturating_mul(self.collect.reserve);
        u64::from(self.segments.saturating_sub(kept_free)) * u64::from(self.segment_pages)
    }

    /// ρ, the effective spare: (T − U) / U.
    pub fn spare_effective(&self) -> f64 {
        spare(self.effective_pages() as f64, f64::from(self.logical_pages))
    }

    /// Refuses a shape in which collection could not go on for ever.
    pub fn validate(&self) -> Result<(), SpecError> {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = *self;
        if logical_pages == 0 || segment_pages == 0 {
            return Err(SpecError::new(
                "the logical space and the segments must hold at least one page each",
            ));
        }
        if self.units == 0 || !segments.is_multiple_of(self.units) {
            return Err(SpecError::new(format!(
                "{segments} segments cannot be dealt out to {} units; accepted: as many for each",
                self.units
            )));
        }
        let physical = u64::from(segments) * u64::from(segment_pages);
        // The map writes `u32::MAX` where a page has no place, so that cannot be a page number.
        if physical >= u64::from(u32::MAX) {
            return Err(SpecError::new(format!(
                "{physical} physical pages are too many; accepted: fewer than 2^32"
            )));
        }
        if u64::from(logical_pages) > physical {
            return Err(SpecError::new(format!(
                "{logical_pages} logical pages exceed the {physical} physical ones; accepted: fewer logical than physical"
            )));
        }
        self.collect.check_thresholds()?;
        let reserve = self.collect.reserve;
        // One more segment than the data needs must be garbage or open, or a victim may free nothing.
        let need = self.least_segments(0);
        let segments = segments / self.units;
        if u64::from(segments) < need {
            let (each, logical_pages) = match self.units {
                1 => (String::new(), logical_pages),
                units => (format!(" in each of {units} units"), self.logical_share()),
            };
            return Err(SpecError::new(format!(
                "{segments} segments of {segment_pages} pages{each} are too few for {logical_pages} logical pages with {reserve} in reserve; accepted: at least {need} segments (smaller segments, more over-provisioning or less logical space)"
            )));
        }
        // Segments that data and append points need never become free.
        let most = u64::from(segments) - need + u64::from(reserve);
        if u64::from(self.collect.background) > most {
            return Err(SpecError::new(format!(
                "gc_background={} can never be reached; accepted: 0 to {most} here",
                self.collect.background
            )));
        }
        Ok(())
    }

    /// The logical pages of a unit, where all have as many.
    fn logical_share(&self) -> u32 {
        // Stripes by address deal out whole rows, so the first unit may have one more than the last.
        self.logical_pages.div_ceil(self.units).next_multiple_of(self.row_pages).min(self.logical_pages)
    }

    /// The segments of a unit without which its collection could not go on, once it holds `valid` pages.
    pub(crate) fn least_segments(&self, valid: u32) -> u64 {
        u64::from(self.logical_share().max(valid)).div_ceil(u64::from(self.segment_pages))
            + u64::from(self.collect.reserve)
            + u64::from(self.collect.placement.streams())
    }

    /// What placement knows of the drive.
    pub(crate) fn drive_shape(&self) -> DriveShape {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = *self;
        let Collect { reserve, ref victim, .. } = self.collect;
        let reserve = self.units.saturating_mul(reserve);
        DriveShape { logical_pages, segments, segment_pages, reserve, victim: victim.clone() }
    }
}

/// ρ, where `effective_pages` can hold data or garbage.
pub(super) fn spare(effective_pages: f64, logical_pages: f64) -> f64 {
    (effective_pages - logical_pages) / logical_pages
}
