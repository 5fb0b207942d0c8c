//! The units of a drive: each has segments of its own, collects them by itself, and has append points for every
//! stream. All share one map and one placement. Which unit a page of the host goes to is the choice of [`Stripe`].

use super::{Collection, Ftl};
use crate::candidates::Candidates;
use crate::segments::SegmentId;
use crate::wear::Wear;
use crate::{Divisor, FtlConfig};
use fulgurite_base::{Choice, Ppn, StreamId};
use std::ops::Range;

/// A unit of allocation and collection, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(pub u32);

/// How pages of the host are spread over the units. A copy stays in the unit of its victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stripe {
    /// The units in turn; those that take no writes now are passed over.
    RoundRobin,
    /// The unit with the fewest flash operations that wait or run; among equals the next in turn.
    LeastLoaded,
    /// By the logical page: a page always goes to the same unit, and waits for that.
    Address,
}

impl Choice for Stripe {
    const NAMES: &'static [(&'static str, Stripe)] = &[
        ("round-robin", Stripe::RoundRobin),
        ("least-loaded", Stripe::LeastLoaded),
        ("address", Stripe::Address),
    ];
}

/// The state of a unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub candidates: Candidates,
    pub wear: Wear,
    pub collection: Option<Collection>,
    /// A victim of which nothing is valid, while the next is collected already.
    pub erasing: Option<SegmentId>,
    pub urgent: bool,
    /// Valid pages; not counted where there is one unit.
    pub valid: u32,
}

impl Unit {
    pub fn new(config: &FtlConfig, segments: Range<u32>) -> Unit {
        let streams = config.collect.placement.streams();
        let victim = config.collect.victim.clone();
        Unit {
            candidates: Candidates::new(victim, segments.clone(), config.segment_pages, streams),
            wear: Wear::new(config.wear_leveling, segments),
            collection: None,
            erasing: None,
            urgent: false,
            valid: 0,
        }
    }
}

/// Where the next page of the host goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    units: Divisor,
    row: Divisor,
    /// The unit whose turn it is.
    next: u32,
}

impl Turn {
    pub fn new(config: &FtlConfig) -> Turn {
        Turn { units: Divisor::new(config.units), row: Divisor::new(config.row_pages), next: 0 }
    }
}

impl Ftl {
    /// The units of the drive.
    pub fn units(&self) -> impl Iterator<Item = UnitId> + use<> {
        (0..self.config.units).map(UnitId)
    }

    /// Whether units are collected apart from each other, rather than the drive as one.
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

    /// The number of a stream of a unit among all open segments.
    #[inline]
    pub(super) fn open_at(&self, unit: UnitId, stream: StreamId) -> usize {
        unit.0 as usize * usize::from(self.streams) + usize::from(stream.0)
    }

    /// The open segments of a unit, by stream.
    pub(super) fn open_in(&self, unit: UnitId) -> &[Option<SegmentId>] {
        &self.open[self.open_at(unit, StreamId(0))..][..usize::from(self.streams)]
    }

    /// The unit that `segment` belongs to.
    #[inline]
    pub fn unit_of(&self, segment: SegmentId) -> UnitId {
        UnitId(if self.has_units() { self.unit_segments.divide(segment.0).0 } else { 0 })
    }

    /// The unit that a logical page always goes to, with [`Stripe::Address`]. Pages that are programmed together
    /// stay together.
    #[inline]
    pub fn home(&self, lpn: u32) -> UnitId {
        UnitId(self.turn.units.divide(self.turn.row.divide(lpn).0).1)
    }

    /// The unit that a page of the host that lies at `old` goes to, among those that `serves` lets pass, which is
    /// given the unit, on a drive of several; `load` tells how much a unit has to do. `None` where all of them refuse.
    #[inline(never)]
    pub(super) fn choose(
        &self,
        lpn: u32,
        old: Option<Ppn>,
        stream: StreamId,
        load: impl Fn(UnitId) -> u32,
        serves: impl Fn(UnitId) -> bool,
    ) -> Option<UnitId> {
        if self.config.stripe == Stripe::Address {
            return Some(self.home(lpn)).filter(|unit| serves(*unit));
        }
        let units = self.config.units;
        let open = |unit: &UnitId| self.has_room(*unit) && serves(*unit);
        let turn = UnitId(self.turn.next);
        // A row that is begun is filled first: its pages are programmed together.
        if self.is_inside_row(turn, stream) && open(&turn) {
            return Some(turn);
        }
        let mut in_turn = (0..units).map(|step| UnitId((turn.0 + step) % units)).filter(open);
        let chosen = match self.config.stripe {
            Stripe::LeastLoaded => in_turn.min_by_key(|unit| load(*unit)),
            _ => in_turn.next(),
        };
        // Where every unit is full, all logical pages are written, so this one has an old place to give up.
        chosen.or_else(|| {
            let unit = self.unit_of(self.segment(old?));
            (self.units().all(|unit| !self.has_room(unit)) && serves(unit)).then_some(unit)
        })
    }

    /// Whether the next page of `stream` in `unit` goes to a row that has pages already.
    #[inline]
    fn is_inside_row(&self, unit: UnitId, stream: StreamId) -> bool {
        self.append_point(unit, stream).is_some_and(|ppn| self.turn.row.divide(ppn.0).1 != 0)
    }

    /// A page of the host was written to `unit`.
    #[inline]
    pub(super) fn pass_turn(&mut self, unit: UnitId, ppn: Ppn) {
        let is_row_full = self.turn.row.divide(ppn.0 + 1).1 == 0;
        self.turn.next = (unit.0 + u32::from(is_row_full)) % self.config.units;
    }

    /// The free segments of a unit.
    pub(crate) fn free_in(&self, unit: UnitId) -> impl Iterator<Item = SegmentId> {
        self.of(unit).wear.free_segments()
    }

    /// The valid pages of one of several units, by its count.
    pub(crate) fn valid_in(&self, unit: UnitId) -> u32 {
        self.of(unit).valid
    }

    /// Breaks a unit's count, for the test of the check.
    #[cfg(test)]
    pub(crate) fn miscount(&mut self, unit: UnitId) {
        self.of_mut(unit).valid += 1;
    }

    /// Whether `unit` may hold more valid pages. Pages that come and go can make one fuller than others; beyond this
    /// its own collection could not go on.
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
    use crate::CountingSink;
    use crate::check::{CheckError, check};

    /// The rule: a page of a full unit waits as long as another unit has room, also where that takes no writes now. Once all are
    /// full it goes to its own, if that takes writes.
    #[test]
    fn a_full_unit_takes_its_own_pages_again_only_where_all_are_full() {
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
            ftl.choose(0, ftl.lookup(0), stream, |_| 0, |unit| takes.contains(&unit))
        };
        (0..holds).for_each(|lpn| write(&mut ftl, lpn, units[0]));
        assert_eq!(chosen(&ftl, &units[..1]), None, "the other one has room");
        assert_eq!(chosen(&ftl, &units), Some(units[1]));
        (holds..2 * holds).for_each(|lpn| write(&mut ftl, lpn, units[1]));
        assert_eq!(chosen(&ftl, &units), Some(units[0]));
        assert_eq!(chosen(&ftl, &units[1..]), None, "its own takes no writes");
    }

    /// The rule: a check finds a unit that calls segments of another free.
    #[test]
    fn a_unit_with_segments_of_another_is_found() {
        let mut ftl = Ftl::new(FtlConfig { units: 2, ..FtlConfig::plain(100, 20, 64) }).unwrap();
        assert_eq!(check(&ftl), Ok(()));
        let [one, other] = &mut ftl.units[..] else { panic!("two units") };
        std::mem::swap(&mut one.wear, &mut other.wear);
        assert_eq!(check(&ftl), Err(CheckError::Unit { unit: 0, counted: 0, valid: 0, strangers: 10 }));
    }
}
