//! SIEVE: a FIFO whose hand skips pages that were used since the hand last passed, without moving them.
//!
//! "SIEVE is Simpler than LRU" (Zhang et al., NSDI 2024). New pages are inserted at the newest end; the hand
//! moves from the oldest to the newest page and starts over. A hit sets the page's visited bit. A page whose
//! bit is set loses the bit when the hand passes and keeps its place, unlike in second chance, so old popular
//! pages and new pages separate. An eviction is amortised O(1). Pinned pages are skipped unchanged.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

const QUEUE: List = List(0);

/// A FIFO queue of the frames, a visited bit for each frame, and the hand.
pub struct Sieve {
    queue: Lists,
    visited: Vec<bool>,
    /// The frame at which the search for the next victim begins; `None` for the oldest frame.
    hand: Option<u32>,
}

impl Sieve {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<Sieve, SpecError> {
        Ok(Sieve { queue: Lists::new(frames, 1), visited: vec![false; frames as usize], hand: None })
    }
}

impl ReplacementPolicy for Sieve {
    #[inline]
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.visited[frame.index()] = false;
        match (arrival.prefetched, self.hand) {
            (false, _) => self.queue.push_newest(QUEUE, frame.0),
            // Without a hand, the search begins at the oldest end, so a prefetched page is inserted there.
            (true, None) => self.queue.push_oldest(QUEUE, frame.0),
            (true, Some(hand)) => {
                self.queue.insert_older(hand, frame.0);
                self.hand = Some(frame.0);
            }
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.visited[frame.index()] = true;
    }

    fn remove(&mut self, frame: FrameId) {
        if self.hand == Some(frame.0) {
            // The hand must not stay on a frame that is in no list, so it moves to the next newer frame.
            self.hand = self.queue.newer(frame.0);
        }
        self.queue.unlink(frame.0);
    }

    /// Reads the order without evicting. The first round from the hand returns the pages that were not used,
    /// the second round the rest. `step` counts half rounds: from the hand to the newest end, then from the
    /// oldest end to the hand.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        while cursor.step < 4 {
            let (second, wrapped) = (cursor.step >= 2, cursor.step % 2 == 1);
            let from_hand = !wrapped && cursor.places[0].is_none();
            let frame = match self.hand {
                Some(hand) if from_hand => {
                    // The frame under the hand is the first one that is checked.
                    cursor.places[0] = Some(hand);
                    Some(hand)
                }
                // Without a hand, the first half round has covered the whole queue.
                None if wrapped => None,
                _ => self.queue.walk(QUEUE, &mut cursor.places[0]),
            };
            match frame.filter(|frame| !wrapped || Some(*frame) != self.hand) {
                Some(frame)
                    if self.visited[frame as usize] == second && !frames.is_pinned(FrameId(frame)) =>
                {
                    return Some(FrameId(frame));
                }
                Some(_) => {}
                None => {
                    cursor.step += 1;
                    cursor.places[0] = None;
                }
            }
        }
        None
    }

    #[inline]
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let mut at = self.hand.or_else(|| self.queue.oldest(QUEUE))?;
        // The first round clears the bits, so the search ends in the second round unless all frames are
        // pinned.
        let mut first_pinned = None;
        loop {
            let next = self.queue.newer(at);
            let pinned = frames.is_pinned(FrameId(at));
            if pinned {
                if first_pinned == Some(at) {
                    return None;
                }
                first_pinned = first_pinned.or(Some(at));
            } else if std::mem::take(&mut self.visited[at as usize]) {
                first_pinned = None;
            } else {
                self.hand = next;
                self.queue.unlink(at);
                return Some(FrameId(at));
            }
            at = next.or_else(|| self.queue.oldest(QUEUE))?;
        }
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.visited, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.hand.or_else(|| self.queue.oldest(QUEUE))
    }
}
