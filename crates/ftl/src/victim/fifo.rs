//! FIFO victim selection: the segment that was sealed first, however many valid pages it has.
//!
//! This is the classic log cleaner. A pick takes O(1). Its write amplification under uniform traffic has a
//! closed form ([`crate::analytic::waf_fifo`]), and is the worst of the usual policies.

use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::NoOptions;
use std::collections::VecDeque;
use std::ops::Range;

/// The sealed segments in the order of sealing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fifo(VecDeque<SegmentId>);

impl Fifo {
    pub(super) fn start(_: &NoOptions, _: Range<u32>, _: u32) -> Fifo {
        Fifo::default()
    }
}

impl VictimPolicy for Fifo {
    fn sealed(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.0.push_back(segment);
    }

    fn invalidated(&mut self, _: SegmentId, _: &SegmentTable) {}

    fn pick(&mut self, _: &SegmentTable) -> Option<SegmentId> {
        self.0.pop_front()
    }

    fn remove(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.0.retain(|sealed| *sealed != segment);
    }
}
