//! S3-FIFO: a small FIFO that filters new pages, a main FIFO with reinsertion, and a FIFO of ghosts (evicted
//! pages).
//!
//! "FIFO queues are all you need for cache eviction" (Yang et al., SOSP 2023). A new page enters the small
//! queue, a tenth of the pool, or the main queue if the ghosts contain it. A use raises the page's count. The
//! oldest page of the small queue moves to the main queue if it was used at least `promote` times; otherwise
//! it is evicted and becomes a ghost. The oldest page of the main queue is reinserted with one use less if it
//! has any; otherwise it is evicted. Pages are evicted from the main queue when this queue is over its share.
//! Hits are O(1) and move nothing; evictions are amortised O(1). *Ambiguities.* The paper's pseudocode
//! promotes after more than one use (its text: at least two, so `promote=2`). The paper limits counts to 3;
//! here a count is cut to 3 when it is examined, as in the authors' simulator. The number of ghosts is nine
//! tenths of the pool's pages, as in that simulator.

use super::ghosts::Ghosts;
use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, Recall, ReplacementPolicy};
use super::portions::{frames_of, ghosts_of};
use crate::FrameTable;
use fulgurite_base::option::{COUNT_16, PORTION};
use fulgurite_base::{Declared, FrameId, Opt, PageId, Portion, SpecError, opt};

const SMALL: List = List(0);
const MAIN: List = List(1);
const GHOSTS: List = List(0);
const REMEMBERED: Recall = Recall(1);
/// The greatest count of uses that matters in the main queue.
const MAX_USES: u8 = 3;

/// The options of the policy `s3-fifo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct S3FifoConfig {
    /// The number of frames of the small queue.
    pub small: Portion,
    /// The number of ghosts: pages that are remembered after their eviction from the small queue.
    pub ghosts: Portion,
    /// The number of uses in the small queue after which a page moves to the main queue.
    pub promote: u16,
}

impl Default for S3FifoConfig {
    fn default() -> S3FifoConfig {
        S3FifoConfig { small: Portion::percent(10), ghosts: Portion::percent(90), promote: 2 }
    }
}

impl Declared for S3FifoConfig {
    const OPTIONS: &'static [Opt<S3FifoConfig>] = &[
        opt!("small", small, PORTION, Portion::ZERO => Portion::ALL, "frames of the small queue"),
        opt!("ghosts", ghosts, PORTION, Portion::ZERO => Portion::percent(1_000), "pages remembered after it"),
        opt!("promote", promote, COUNT_16, 1 => 255, "uses after which a page moves to the main queue"),
    ];
}

/// The small queue, the main queue and the ghosts.
pub struct S3Fifo {
    lists: Lists,
    uses: Vec<u8>,
    is_main: Vec<bool>,
    /// The numbers of frames in the small and in the main queue.
    held: [u32; 2],
    main_max: u32,
    promote: u8,
    ghosts: Ghosts,
}

impl S3Fifo {
    pub(super) fn new(config: &S3FifoConfig, frames: u32) -> Result<S3Fifo, SpecError> {
        let small = frames_of(config.small, frames, "small")?;
        let ghosts = ghosts_of(config.ghosts, frames, "ghosts")?;
        Ok(S3Fifo {
            lists: Lists::new(frames, 2),
            uses: vec![0; frames as usize],
            is_main: vec![false; frames as usize],
            held: [0; 2],
            main_max: frames - small,
            promote: config.promote.clamp(1, 255) as u8,
            ghosts: Ghosts::new(ghosts, 1),
        })
    }

    /// Returns whether the next victim is in the main queue if the two queues hold `small` and `main` pages.
    #[inline]
    fn main_gives(&self, [small, main]: [u32; 2]) -> bool {
        main > self.main_max || small == 0
    }

    fn leave(&mut self, frame: u32) {
        self.held[usize::from(self.is_main[frame as usize])] -= 1;
        self.lists.unlink(frame);
    }

    /// Evicts the oldest unpinned page of the small queue that is not promoted. Pages before it are promoted.
    fn evict_small(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let mut at = self.lists.oldest(SMALL);
        while let Some(frame) = at {
            at = self.lists.newer(frame);
            if frames.is_pinned(FrameId(frame)) {
                continue;
            }
            self.leave(frame);
            if self.uses[frame as usize] < self.promote {
                self.ghosts.push(GHOSTS, frames.page(FrameId(frame)));
                return Some(FrameId(frame));
            }
            // Uses in the small queue do not count in the main queue.
            self.uses[frame as usize] = 0;
            self.is_main[frame as usize] = true;
            self.held[1] += 1;
            self.lists.push_newest(MAIN, frame);
        }
        None
    }

    fn evict_main(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let leaves = |frame: FrameId| {
            let uses = &mut self.uses[frame.index()];
            let unused = *uses == 0;
            *uses = (*uses).min(MAX_USES).saturating_sub(1);
            unused
        };
        let frame = self.lists.evict_or_requeue(MAIN, frames, leaves)?;
        self.held[1] -= 1;
        Some(frame)
    }
}

impl ReplacementPolicy for S3Fifo {
    fn miss(&mut self, page: PageId) -> Recall {
        self.ghosts.remove(page).map_or(Recall::default(), |_| REMEMBERED)
    }

    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        let is_main = arrival.recall == REMEMBERED;
        self.uses[frame.index()] = 0;
        self.is_main[frame.index()] = is_main;
        self.held[usize::from(is_main)] += 1;
        match is_main {
            false => self.lists.enter(SMALL, frame.0, arrival),
            true => self.lists.push_newest(MAIN, frame.0),
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        let uses = &mut self.uses[frame.index()];
        *uses = uses.saturating_add(1);
    }

    fn remove(&mut self, frame: FrameId) {
        self.leave(frame.0);
    }

    /// Reads the order by simulating the evictions. `counts` has the number of frames that left the small
    /// queue, of the promoted frames among them, and of the frames that left the main queue. `queue` has the
    /// frames that were appended to the main queue meanwhile, with their uses.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let Cursor {
            places: [place_small, place_main, _], counts: [gone, promoted, main_gone], queue, ..
        } = cursor;
        let main_first = self.main_gives([self.held[0] - *gone, self.held[1] + *promoted - *main_gone]);
        // If the chosen queue has no unpinned frame left, the other queue gives the victim.
        for main in [main_first, !main_first] {
            loop {
                let frame = match main {
                    true => self
                        .lists
                        .next_unpinned(MAIN, frames, place_main)
                        .map(|frame| (frame.0, u32::from(self.uses[frame.index()])))
                        .or_else(|| queue.pop_front()),
                    false => self
                        .lists
                        .next_unpinned(SMALL, frames, place_small)
                        .map(|frame| (frame.0, u32::from(self.uses[frame.index()]))),
                };
                let Some((frame, uses)) = frame else { break };
                if main && uses > 0 {
                    queue.push_back((frame, uses.min(u32::from(MAX_USES)) - 1));
                    continue;
                }
                // A promoted frame also counts as one that left the small queue.
                *(if main { &mut *main_gone } else { &mut *gone }) += 1;
                if main || uses < u32::from(self.promote) {
                    return Some(FrameId(frame));
                }
                *promoted += 1;
                queue.push_back((frame, 0));
            }
        }
        None
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        match self.main_gives(self.held) {
            true => self.evict_main(frames).or_else(|| self.evict_small(frames)),
            false => self.evict_small(frames).or_else(|| self.evict_main(frames)),
        }
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.uses, frame as usize);
    }

    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        self.lists.oldest(if self.main_gives(self.held) { MAIN } else { SMALL })
    }
}
