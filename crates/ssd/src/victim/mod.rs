//! Which segment garbage collection takes next. One policy per file; [`VictimPolicy`] is the
//! registry, [`Victims`] the index that a policy keeps.

mod fifo;
mod greedy;

use crate::ftl::{SegmentId, SegmentTable};
use fulgurite_base::SpecError;

/// A policy's index over sealed segments. It is told what happens and picks when asked; the FTL
/// does the collecting. Every call is O(1) or O(log n), never a scan of all segments.
pub trait Victim {
    /// `segment` is full and may now be picked.
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable);
    /// A page of the sealed `segment` became garbage; `table` has the new count.
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable);
    /// Takes the next victim segment out of the index; `None` when nothing is sealed.
    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId>;
    /// Takes the sealed `segment` out of the index: wear leveling has chosen it. Rare.
    fn remove(&mut self, segment: SegmentId, table: &SegmentTable);
}

/// The victim policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VictimPolicy {
    /// The oldest sealed segment.
    Fifo,
    /// The sealed segment with the fewest valid pages.
    Greedy,
}

impl VictimPolicy {
    /// Every policy, with one line about it.
    pub const ALL: [(VictimPolicy, &'static str); 2] = [
        (VictimPolicy::Fifo, "the segment that was sealed first"),
        (VictimPolicy::Greedy, "the segment with the fewest valid pages"),
    ];

    /// The policy's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            VictimPolicy::Fifo => "fifo",
            VictimPolicy::Greedy => "greedy",
        }
    }

    /// The policy called `name`.
    pub fn from_name(name: &str) -> Result<VictimPolicy, SpecError> {
        let names = Self::ALL.map(|(policy, _)| policy.name());
        let at = names.iter().position(|known| *known == name);
        at.map(|at| Self::ALL[at].0).ok_or_else(|| SpecError::unknown("victim", name, &names))
    }

    /// An empty index for `segments` segments of `segment_pages` pages.
    pub fn index(self, segments: u32, segment_pages: u32) -> Victims {
        match self {
            VictimPolicy::Fifo => Victims::Fifo(fifo::Fifo::default()),
            VictimPolicy::Greedy => Victims::Greedy(greedy::Greedy::new(segments, segment_pages)),
        }
    }
}

/// The index of whichever policy was chosen.
#[derive(Clone, Debug)]
pub enum Victims {
    /// See [`VictimPolicy::Fifo`].
    Fifo(fifo::Fifo),
    /// See [`VictimPolicy::Greedy`].
    Greedy(greedy::Greedy),
}

impl Victim for Victims {
    #[inline]
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        match self {
            Victims::Fifo(index) => index.sealed(segment, table),
            Victims::Greedy(index) => index.sealed(segment, table),
        }
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        match self {
            Victims::Fifo(index) => index.invalidated(segment, table),
            Victims::Greedy(index) => index.invalidated(segment, table),
        }
    }

    #[inline]
    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        match self {
            Victims::Fifo(index) => index.pick(table),
            Victims::Greedy(index) => index.pick(table),
        }
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        match self {
            Victims::Fifo(index) => index.remove(segment, table),
            Victims::Greedy(index) => index.remove(segment, table),
        }
    }
}
