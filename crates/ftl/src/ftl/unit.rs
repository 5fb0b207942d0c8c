//! A unit of a drive: it has its own segments and an open segment for every stream, and is collected
//! separately. All units share one map and one placement policy.

use crate::Divisor;
use crate::candidates::Candidates;
use crate::config::FtlConfig;
use crate::schedule::Progress;
use crate::segments::SegmentId;
use crate::wear::Wear;
use std::ops::Range;

/// A unit of allocation and collection, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(pub u32);

/// The victim segment that is being collected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collection {
    pub(crate) victim: SegmentId,
    /// The first page not yet examined; unused if a drive examines the pages itself.
    pub(crate) next: u32,
    pub(crate) progress: Progress,
}

/// The state of a unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(crate) candidates: Candidates,
    pub(crate) wear: Wear,
    pub(crate) collection: Option<Collection>,
    /// The victim without valid pages that is still being erased while the next victim is collected; `None`
    /// if there is none.
    pub(crate) erasing: Option<SegmentId>,
    pub(crate) urgent: bool,
    /// The number of valid pages; not counted on a drive of one unit.
    pub(crate) valid: u32,
}

impl Unit {
    pub(crate) fn new(config: &FtlConfig, segments: Range<u32>) -> Unit {
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

/// The position of round-robin striping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(crate) units: Divisor,
    pub(crate) row: Divisor,
    /// The number of the unit whose turn it is.
    pub(crate) next: u32,
}

impl Turn {
    pub(crate) fn new(config: &FtlConfig) -> Turn {
        Turn { units: Divisor::new(config.units), row: Divisor::new(config.row_pages), next: 0 }
    }
}
