//! 2Q: a new page enters a FIFO; a page that is requested again after its eviction from the FIFO enters an
//! LRU list.
//!
//! "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm" (Johnson and Shasha, VLDB
//! 1994), full version. A1in is a FIFO of a quarter of the frames (the option `in`), in which a hit changes
//! nothing. A1out remembers the numbers of pages evicted from A1in, half as many as the pool has frames (the
//! option `out`). Am is an LRU list. A page that A1out remembers enters Am. If A1in is over its share, its
//! oldest page is evicted and remembered in A1out; otherwise the oldest page of Am is evicted. O(1).
//! *Ambiguities.* A1in is over its share if it has more than `in` frames, as in the paper's listing; if Am is
//! empty, the victim is always from A1in. Pages that A1out forgets and pages that are evicted from Am are not
//! remembered.

use super::ghosts::Ghosts;
use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, Recall, ReplacementPolicy};
use super::portions::{frames_of, ghosts_of};
use crate::FrameTable;
use fulgurite_base::option::PORTION;
use fulgurite_base::{Declared, FrameId, Opt, PageId, Portion, SpecError, opt};

const IN: List = List(0);
const MAIN: List = List(1);
const OUT: List = List(0);
const WAS_IN: Recall = Recall(1);

/// The options of the policy `2q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoQConfig {
    /// The number of frames of A1in.
    pub share_in: Portion,
    /// The number of evicted pages that A1out remembers.
    pub out: Portion,
}

impl Default for TwoQConfig {
    fn default() -> TwoQConfig {
        TwoQConfig { share_in: Portion::percent(25), out: Portion::percent(50) }
    }
}

impl Declared for TwoQConfig {
    const OPTIONS: &'static [Opt<TwoQConfig>] = &[
        opt!("in", share_in, PORTION, Portion::ZERO => Portion::ALL, "frames of the fifo of new pages"),
        opt!("out", out, PORTION, Portion::ZERO => Portion::percent(1_000), "pages remembered after it"),
    ];
}

/// 2Q's lists A1in, Am and A1out.
pub struct TwoQ {
    lists: Lists,
    /// For each frame, whether it is in A1in.
    is_in: Vec<bool>,
    held_in: u32,
    in_max: u32,
    out: Ghosts,
}

impl TwoQ {
    pub(super) fn new(config: &TwoQConfig, frames: u32) -> Result<TwoQ, SpecError> {
        let in_max = frames_of(config.share_in, frames, "in")?;
        let out = ghosts_of(config.out, frames, "out")?;
        Ok(TwoQ {
            lists: Lists::new(frames, 2),
            is_in: vec![false; frames as usize],
            held_in: 0,
            in_max,
            out: Ghosts::new(out, 1),
        })
    }
}

impl ReplacementPolicy for TwoQ {
    fn miss(&mut self, page: PageId) -> Recall {
        self.out.remove(page).map_or(Recall::default(), |_| WAS_IN)
    }

    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        let is_in = arrival.recall != WAS_IN;
        self.is_in[frame.index()] = is_in;
        self.held_in += u32::from(is_in);
        match is_in {
            true => self.lists.enter(IN, frame.0, arrival),
            false => self.lists.push_newest(MAIN, frame.0),
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        // A hit in A1in changes nothing, so that correlated uses count once.
        if !self.is_in[frame.index()] {
            self.lists.move_newest(MAIN, frame.0);
        }
    }

    fn remove(&mut self, frame: FrameId) {
        self.held_in -= u32::from(self.is_in[frame.index()]);
        self.lists.unlink(frame.0);
    }

    /// Reads the order without evicting: first the frames by which A1in exceeds its share, then Am, then the
    /// rest of A1in. `step` counts the frames that were read from A1in.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let [place_in, place_main, _] = &mut cursor.places;
        // The order has no more frames from A1in than A1in holds, so the difference is not negative.
        let surplus = u64::from(self.held_in) - cursor.step > u64::from(self.in_max);
        let first = if surplus { None } else { self.lists.next_unpinned(MAIN, frames, place_main) };
        if first.is_some() {
            return first;
        }
        if let Some(frame) = self.lists.next_unpinned(IN, frames, place_in) {
            cursor.step += 1;
            return Some(frame);
        }
        self.lists.next_unpinned(MAIN, frames, place_main)
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        if self.is_in[frame.index()] {
            self.out.push(OUT, frames.page(frame));
        }
        self.remove(frame);
        Some(frame)
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.lists.prefetch(frame);
        fulgurite_base::prefetch(&self.is_in, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.lists.oldest(if self.held_in > self.in_max { IN } else { MAIN })
    }
}
