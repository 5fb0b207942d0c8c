//! Flexible data placement (FDP, NVMe technical proposal 4146): the host names a reclaim-unit handle for each
//! write. A segment is a reclaim unit, and a unit of collection is a reclaim group.
//!
//! Initially isolated handles have a stream each, and all copies have one more. Persistently isolated handles
//! keep their copies in their own streams. An invalid identifier counts as handle 0 in any group, as the
//! proposal says. A decision takes O(1).

use super::policy::{DriveShape, PlacementPolicy, WriteContext};
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Declared, Form, Isolation, Opt, PlacementId, StreamId, opt};

/// The options of flexible data placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdpConfig {
    /// The number of reclaim-unit handles.
    pub handles: u16,
    /// Whether copies of different handles may share a reclaim unit.
    pub isolation: Isolation,
}

impl Default for FdpConfig {
    fn default() -> FdpConfig {
        FdpConfig { handles: 8, isolation: Isolation::Initially }
    }
}

impl Declared for FdpConfig {
    const OPTIONS: &'static [Opt<FdpConfig>] = &[
        opt!(
            "handles",
            handles,
            COUNT_16,
            1 => PlacementId::HANDLES_AT_MOST,
            "reclaim-unit handles that the host may name"
        ),
        opt!(
            "isolation",
            isolation,
            Form::<Isolation>::choice("initially|persistently"),
            "initially: collection mixes the pages of all handles; persistently: it never does"
        ),
    ];
}

/// The policy at work.
#[derive(Clone, Debug)]
pub struct Fdp(FdpConfig);

impl Fdp {
    pub(super) fn streams(config: &FdpConfig) -> u16 {
        config.handles + u16::from(config.isolation == Isolation::Initially)
    }

    pub(super) fn start(config: &FdpConfig, _: &DriveShape) -> Fdp {
        Fdp(*config)
    }
}

impl PlacementPolicy for Fdp {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let copies_to =
            context.segment.filter(|_| context.copied).and_then(|victim| self.copies_to(victim, segments));
        copies_to.unwrap_or_else(|| {
            let handle = u16::from(PlacementId::of(context.hint).handle);
            StreamId(if handle < self.0.handles { handle } else { 0 })
        })
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        Some(match self.0.isolation {
            Isolation::Initially => StreamId(self.0.handles),
            Isolation::Persistently => segments.stream(victim),
        })
    }
}
