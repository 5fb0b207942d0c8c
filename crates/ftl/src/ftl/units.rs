//! Chooses the unit for each host page, by the drive's [`Stripe`].

use super::Ftl;
use super::unit::{Unit, UnitId};
use crate::config::Stripe;
use crate::placement::WriteContext;
use crate::segments::SegmentId;
use fulgurite_base::{PlacementId, Ppn, StreamId};

impl Ftl {
    /// Returns the units of the drive.
    pub fn units(&self) -> impl Iterator<Item = UnitId> + use<> {
        (0..self.config.units).map(UnitId)
    }

    /// Returns whether the drive consists of several units, which are collected separately.
    #[inline]
    pub(super) fn has_units(&self) -> bool {
        self.config.units > 1
    }

    #[inline]
    pub(super) fn of(&self, unit: UnitId) -> &Unit {
        &self.units[unit.0 as usize]
    }

    #[inline]
    pub(super) fn of_mut(&mut self, unit: UnitId) -> &mut Unit {
        &mut self.units[unit.0 as usize]
    }

    /// Returns the index of a unit's stream in the list of open segments.
    #[inline]
    pub(super) fn open_at(&self, unit: UnitId, stream: StreamId) -> usize {
        unit.0 as usize * usize::from(self.streams) + usize::from(stream.0)
    }

    /// Returns the open segments of a unit, by stream.
    pub(super) fn open_in(&self, unit: UnitId) -> &[Option<SegmentId>] {
        &self.open[self.open_at(unit, StreamId(0))..][..usize::from(self.streams)]
    }

    /// Returns the unit that `segment` belongs to.
    #[inline]
    pub fn unit_of(&self, segment: SegmentId) -> UnitId {
        UnitId(if self.has_units() { self.unit_segments.divide(segment.0).0 } else { 0 })
    }

    /// Returns the unit that a logical page always goes to, with [`Stripe::Address`]. Pages that are
    /// programmed together stay together.
    #[inline]
    pub fn home(&self, lpn: u32) -> UnitId {
        UnitId(self.turn.units.divide(self.turn.row.divide(lpn).0).1)
    }

    /// Returns the unit that the host names as the reclaim group of a write; `None` if it names none, or one
    /// that does not exist.
    #[inline]
    fn group(&self, hint: StreamId) -> Option<UnitId> {
        self.config.collect.placement.handles()?;
        let group = UnitId(u32::from(PlacementId::of(hint).group?));
        (group.0 < self.config.units).then_some(group)
    }

    /// Chooses a unit that `serves` accepts for a host page on a drive of several units. The context is that
    /// of the page, whose physical page is `old`. `load` returns the load of a unit. `None` if all units
    /// refuse.
    #[inline(never)]
    pub(super) fn choose(
        &self,
        &WriteContext { lpn, hint, .. }: &WriteContext,
        old: Option<Ppn>,
        stream: StreamId,
        load: impl Fn(UnitId) -> u32,
        serves: impl Fn(UnitId) -> bool,
    ) -> Option<UnitId> {
        if self.config.stripe == Stripe::Address {
            return Some(self.home(lpn)).filter(|unit| serves(*unit));
        }
        // A full group could no longer be collected, so its pages go where the drive chooses.
        if let Some(group) = self.group(hint).filter(|group| self.has_room(*group)) {
            return Some(group).filter(|group| serves(*group));
        }
        let units = self.config.units;
        let open = |unit: &UnitId| self.has_room(*unit) && serves(*unit);
        let turn = UnitId(self.turn.next);
        // Fills a begun row first, because its pages are programmed together.
        if self.is_inside_row(turn, stream) && open(&turn) {
            return Some(turn);
        }
        let mut in_turn = (0..units).map(|step| UnitId((turn.0 + step) % units)).filter(open);
        let chosen = match self.config.stripe {
            Stripe::LeastLoaded => in_turn.min_by_key(|unit| load(*unit)),
            _ => in_turn.next(),
        };
        // If every unit is full, all logical pages are mapped, so the page frees its old physical page in its
        // own unit.
        chosen.or_else(|| {
            let unit = self.unit_of(self.segment(old?));
            (self.units().all(|unit| !self.has_room(unit)) && serves(unit)).then_some(unit)
        })
    }

    /// Returns whether the next page of `stream` in `unit` continues a row that has pages already. The
    /// pages of a row are programmed together.
    #[inline]
    fn is_inside_row(&self, unit: UnitId, stream: StreamId) -> bool {
        self.append_point(unit, stream).is_some_and(|ppn| self.turn.row.divide(ppn.0).1 != 0)
    }

    /// Records that the host page `ppn` was written to `unit`. After the last page of a row the next unit has
    /// its turn.
    #[inline]
    pub(super) fn pass_turn(&mut self, unit: UnitId, ppn: Ppn) {
        let is_row_full = self.turn.row.divide(ppn.0 + 1).1 == 0;
        self.turn.next = (unit.0 + u32::from(is_row_full)) % self.config.units;
    }

    /// Returns the free segments of a unit.
    pub(crate) fn free_in(&self, unit: UnitId) -> impl Iterator<Item = SegmentId> {
        self.of(unit).wear.free_segments()
    }

    /// Returns the counted valid pages of a unit, on a drive of several units.
    pub(crate) fn valid_in(&self, unit: UnitId) -> u32 {
        self.of(unit).valid
    }

    /// Falsifies the count of a unit, for the test of the check.
    #[cfg(test)]
    pub(crate) fn miscount(&mut self, unit: UnitId) {
        self.of_mut(unit).valid += 1;
    }

    /// Returns whether `unit` can hold more valid pages. Overwrites and trims can make one unit fuller than
    /// others; beyond this limit the unit could no longer be collected.
    #[inline]
    fn has_room(&self, unit: UnitId) -> bool {
        let unit = self.of(unit);
        let spared = self.config.collect.reserve + u32::from(self.config.collect.placement.streams());
        unit.valid < unit.wear.usable().saturating_sub(spared).saturating_mul(self.config.segment_pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckError, check};
    use crate::{CountingSink, FtlConfig};

    /// The rule: a page of a full unit waits while another unit has room, even if that unit accepts no writes
    /// now. If all units are full, the page goes to its own unit, if its unit accepts writes.
    #[test]
    fn a_full_unit_accepts_its_own_pages_only_if_all_are_full() {
        let plain = FtlConfig::plain(1, 20, 64);
        let holds = (10 - plain.collect.reserve - 1) * 64;
        let config = FtlConfig { logical_pages: 2 * holds, units: 2, stripe: Stripe::LeastLoaded, ..plain };
        let mut ftl = Ftl::new(config).unwrap();
        let (stream, units) = (StreamId(0), [UnitId(0), UnitId(1)]);
        let write = |ftl: &mut Ftl, lpn: u32, unit: UnitId| {
            assert!(ftl.admit(unit, stream));
            ftl.append(lpn, stream, unit, stream, &mut CountingSink::default());
        };
        let chosen = |ftl: &Ftl, takes: &[UnitId]| {
            let (old, context) = ftl.context(0, stream);
            ftl.choose(&context, old, stream, |_| 0, |unit| takes.contains(&unit))
        };
        (0..holds).for_each(|lpn| write(&mut ftl, lpn, units[0]));
        assert_eq!(chosen(&ftl, &units[..1]), None, "the other one has room");
        assert_eq!(chosen(&ftl, &units), Some(units[1]));
        (holds..2 * holds).for_each(|lpn| write(&mut ftl, lpn, units[1]));
        assert_eq!(chosen(&ftl, &units), Some(units[0]));
        assert_eq!(chosen(&ftl, &units[1..]), None, "its own takes no writes");
    }

    /// The rule: the check finds a unit whose free list has segments of another unit.
    #[test]
    fn a_free_list_with_segments_of_another_unit_is_found() {
        let mut ftl = Ftl::new(FtlConfig { units: 2, ..FtlConfig::plain(100, 20, 64) }).unwrap();
        assert_eq!(check(&ftl), Ok(()));
        let [one, other] = &mut ftl.units[..] else { panic!("two units") };
        std::mem::swap(&mut one.wear, &mut other.wear);
        assert_eq!(check(&ftl), Err(CheckError::Unit { unit: 0, counted: 0, valid: 0, strangers: 10 }));
    }
}
