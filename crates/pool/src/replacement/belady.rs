//! Belady's MIN, also called OPT: evicts the page whose next request is farthest in the future.
//!
//! L. A. Belady, A study of replacement algorithms for a virtual-storage computer, IBM Systems Journal 5(2),
//! 1966. No policy that reads a page only when it is requested has fewer misses (Mattson, Gecsei, Slutz and
//! Traiger, IBM Systems Journal 9(2), 1970). So it is the bound for all other policies, and not a policy for a
//! real pool. It has the fewest misses, and not the fewest writes, because it does not regard whether a page is
//! dirty.
//!
//! The policy must know the requests beforehand, in exactly their order ([`Replacement::foresee`]). Only a
//! miss counter serves requests in a known order; a pool over a device refuses the policy. Every operation is
//! O(log n) in the number of frames. Of several pages that are never requested again, it evicts that in the
//! frame of the highest number.
//!
//! [`Replacement::foresee`]: super::Replacement::foresee

use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::{FrameTable, NextUses};
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rank of a page without a further request, which is above the numbers of all requests. A prefetched page
/// without a request has a higher rank, because it leaves first.
const NEVER: u64 = 1 << 32;
/// The rank of a frame that holds no page.
const NONE: u64 = u64::MAX;

/// The frames in the order of the next requests for their pages.
pub struct Belady {
    future: Arc<NextUses>,
    /// The number of requests that were served.
    served: usize,
    /// The rank and the number of each frame that holds a page. The last one is evicted first.
    order: BTreeSet<(u64, u32)>,
    /// The rank of each frame.
    ranks: Vec<u64>,
    /// The number of pages that were prefetched.
    prefetched: u64,
}

impl Belady {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<Belady, SpecError> {
        Ok(Belady {
            future: Arc::default(),
            served: 0,
            order: BTreeSet::new(),
            ranks: vec![NONE; frames as usize],
            prefetched: 0,
        })
    }

    /// Sets the requests that the policy will be told of.
    pub(super) fn foresee(&mut self, future: Arc<NextUses>) {
        self.future = future;
    }

    /// Counts a request for the page in `frame`.
    #[inline]
    fn serve(&mut self, frame: u32) {
        let rank = self.future.after(self.served).map_or(NEVER, u64::from);
        self.served += 1;
        self.set_rank(frame, rank);
    }

    #[inline]
    fn set_rank(&mut self, frame: u32, rank: u64) {
        let before = std::mem::replace(&mut self.ranks[frame as usize], rank);
        if before == rank {
            return;
        }
        if before != NONE {
            self.order.remove(&(before, frame));
        }
        if rank != NONE {
            self.order.insert((rank, frame));
        }
    }
}

impl ReplacementPolicy for Belady {
    #[inline]
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        if arrival.prefetched {
            self.prefetched += 1;
            self.set_rank(frame.0, NEVER + self.prefetched);
        } else {
            self.serve(frame.0);
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.serve(frame.0);
    }

    fn remove(&mut self, frame: FrameId) {
        self.set_rank(frame.0, NONE);
    }

    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let unpinned = |(_, frame): &&(u64, u32)| !frames.is_pinned(FrameId(*frame));
        let next = match cursor.places[0] {
            None => self.order.iter().rev().find(unpinned),
            Some(frame) => self.order.range(..(cursor.step, frame)).rev().find(unpinned),
        };
        let (rank, frame) = *next?;
        (cursor.step, cursor.places[0]) = (rank, Some(frame));
        Some(FrameId(frame))
    }
}
