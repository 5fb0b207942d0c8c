//! The pages and deltas of a batch of writes.

use super::deltas::Known;
use fulgurite_base::{PageId, StreamId};

/// A page as it is written, compressed or not, or a delta.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    pub page: PageId,
    pub part: Part,
    /// The index of the first unit in the batch, and the number of units.
    pub from: usize,
    pub units: u32,
    /// The hint for the placement policy.
    pub hint: StreamId,
}

/// The part of a page that is written.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// The whole page, as a new base without deltas, with what is known of the leaf in it.
    Base(Known),
    /// A delta, with its slot and its number.
    Delta(u32, u64),
}

impl Packed {
    /// Returns the index of the first unit among the units of its page.
    pub(super) fn slot(&self) -> u32 {
        match self.part {
            Part::Base(_) => 0,
            Part::Delta(slot, _) => slot,
        }
    }
}

/// A page or a delta that is being written, with the addresses that were allocated for its units.
pub(super) struct Sent {
    pub packed: Packed,
    pub addresses: Vec<u32>,
}
