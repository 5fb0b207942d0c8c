//! Windowed greedy victim selection: the emptiest of the oldest segments.
//!
//! "Write amplification analysis in flash-based solid state drives" (Hu et al., SYSTOR 2009) picks greedily
//! among the `window` segments that were sealed first. So a segment that was just filled has time to lose
//! valid pages. A pick takes O(1).

use super::greedy::Greedy;
use super::per_segment::PerSegment;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::SHARE;
use fulgurite_base::{Declared, NoOptions, Opt, Share, opt};
use std::collections::VecDeque;
use std::ops::Range;

/// The options of windowed greedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedGreedyConfig {
    /// The size of the window as a share of all segments.
    pub window: Share,
}

impl Default for WindowedGreedyConfig {
    fn default() -> WindowedGreedyConfig {
        WindowedGreedyConfig { window: Share::percent(10) }
    }
}

impl Declared for WindowedGreedyConfig {
    const OPTIONS: &'static [Opt<WindowedGreedyConfig>] = &[
        opt!("window", window, SHARE, Share::from_ppm(1) => Share::ONE, "the share of all segments in the window"),
    ];
}

/// The segments in the window by valid pages, and the younger segments in order.
#[derive(Clone, Debug)]
pub(crate) struct WindowedGreedy {
    window: u32,
    oldest: Greedy,
    in_window: PerSegment<bool>,
    held: u32,
    younger: VecDeque<SegmentId>,
}

impl WindowedGreedy {
    pub(super) fn start(
        config: &WindowedGreedyConfig,
        segments: Range<u32>,
        segment_pages: u32,
    ) -> WindowedGreedy {
        WindowedGreedy {
            window: (segments.len() as f64 * config.window.as_f64()).round().max(1.0) as u32,
            oldest: Greedy::start(&NoOptions, segments.clone(), segment_pages),
            in_window: PerSegment::filled(segments, false),
            held: 0,
            younger: VecDeque::new(),
        }
    }

    /// Refills the window after it has lost `segment`.
    fn left(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.in_window[segment] = false;
        self.held -= 1;
        if let Some(next) = self.younger.pop_front() {
            self.sealed(next, table);
        }
    }
}

impl VictimPolicy for WindowedGreedy {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        if self.held == self.window {
            // Queues the segment as a younger one. A window that loses a segment is refilled at once, so
            // `younger` is empty unless the window is full.
            return self.younger.push_back(segment);
        }
        self.held += 1;
        self.in_window[segment] = true;
        self.oldest.sealed(segment, table);
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        if self.in_window[segment] {
            self.oldest.invalidated(segment, table);
        }
    }

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        let segment = self.oldest.pick(table)?;
        self.left(segment, table);
        Some(segment)
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        if self.in_window[segment] {
            self.oldest.remove(segment, table);
            self.left(segment, table);
        } else {
            self.younger.retain(|younger| *younger != segment);
        }
    }
}
