//! W-TinyLFU: new pages enter a small window. A page moves from the window to the main part only if a sketch
//! of all requests counts more uses for it than for the page that it would displace.
//!
//! "TinyLFU: A Highly Efficient Cache Admission Policy" (Einziger, Friedman, Manes, ACM TOS 13(4), 2017). The
//! window is an LRU list of the share `window` of the frames. The main part is a segmented LRU: a use moves a
//! page from the probation list to the protected list. The protected list holds the share `protected` of the
//! main part, and its oldest page moves back to probation if it grows beyond that. The oldest page of the
//! window is compared with the oldest page of the main part by a count-min sketch of four rows of 4-bit
//! counters, which are all halved after ten requests for each frame. On a tie, the window's page is evicted.
//! O(1). *Ambiguities.* Hits in the window count as requests too, ties are not broken randomly, and there is
//! no doorkeeper. The sketch has 16 counters for each frame, as in the authors' library, Caffeine.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, Recall, ReplacementPolicy};
use super::portions::frames_of;
use crate::FrameTable;
use fulgurite_base::option::PORTION;
use fulgurite_base::{Declared, FrameId, Opt, PageId, Portion, SpecError, opt};

const WINDOW: List = List(0);
const PROBATION: List = List(1);
const PROTECTED: List = List(2);

/// The options of the policy `w-tinylfu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WTinyLfuConfig {
    /// The number of frames of the window, at least one.
    pub window: Portion,
    /// The number of frames of the protected list; a share refers to the main part.
    pub protected: Portion,
}

impl Default for WTinyLfuConfig {
    fn default() -> WTinyLfuConfig {
        WTinyLfuConfig { window: Portion::percent(1), protected: Portion::percent(80) }
    }
}

impl Declared for WTinyLfuConfig {
    const OPTIONS: &'static [Opt<WTinyLfuConfig>] = &[
        opt!("window", window, PORTION, Portion::ZERO => Portion::ALL, "frames of the window, at least one"),
        opt!(
            "protected", protected, PORTION, Portion::ZERO => Portion::ALL,
            "frames of the main part that are protected"
        ),
    ];
}

/// A count-min sketch: 4-bit counters of the requests for pages, which are halved from time to time.
struct Sketch {
    /// The counters, sixteen in each word.
    words: Vec<u64>,
    added: u64,
    /// The number of additions after which all counters are halved.
    period: u64,
}

impl Sketch {
    fn new(frames: u32) -> Sketch {
        let words = frames.next_power_of_two().max(8) as usize;
        Sketch { words: vec![0; words], added: 0, period: 10 * u64::from(frames) }
    }

    /// Returns the word and the shift of the counter of `page` in each row of the sketch.
    #[inline]
    fn counters(&self, page: PageId) -> [(usize, u32); 4] {
        let mask = self.words.len() - 1;
        let hash = page.mixed();
        let within = (hash >> 60) as u32;
        // An odd step puts the four rows on four different words.
        let step = (hash >> 32) as usize | 1;
        // Each row has its own bits of a word, so no two rows use the same counter.
        std::array::from_fn(|row| {
            let word = (hash as usize).wrapping_add(row.wrapping_mul(step)) & mask;
            (word, (row as u32 * 16) + (within & 3) * 4)
        })
    }

    fn estimate(&self, page: PageId) -> u64 {
        self.counters(page).map(|(word, shift)| self.words[word] >> shift & 15).into_iter().min().unwrap_or(0)
    }

    fn add(&mut self, page: PageId) {
        for (word, shift) in self.counters(page) {
            let word = &mut self.words[word];
            if *word >> shift & 15 < 15 {
                *word += 1 << shift;
            }
        }
        self.added += 1;
        if self.added == self.period {
            // The mask removes the bit that each counter gets from its upper neighbour in the shift.
            self.added /= 2;
            self.words.iter_mut().for_each(|word| *word = *word >> 1 & 0x7777_7777_7777_7777);
        }
    }
}

/// The three LRU lists (window, probation, protected) and the sketch.
pub struct WTinyLfu {
    lists: Lists,
    /// For each frame, the number of its list; and for each list, the number of its frames.
    list: Vec<u8>,
    held: [u32; 3],
    pages: Vec<PageId>,
    window_max: u32,
    protected_max: u32,
    sketch: Sketch,
}

impl WTinyLfu {
    pub(super) fn new(config: &WTinyLfuConfig, frames: u32) -> Result<WTinyLfu, SpecError> {
        let window_max = frames_of(config.window, frames, "window")?.max(1);
        let main_max = frames - window_max;
        Ok(WTinyLfu {
            lists: Lists::new(frames, 3),
            list: vec![0; frames as usize],
            held: [0; 3],
            pages: vec![PageId(0); frames as usize],
            window_max,
            protected_max: frames_of(config.protected, main_max, "protected")?,
            sketch: Sketch::new(frames),
        })
    }

    fn leave(&mut self, frame: u32) {
        self.held[usize::from(self.list[frame as usize])] -= 1;
        self.lists.unlink(frame);
    }

    fn join(&mut self, frame: u32, list: List) {
        self.list[frame as usize] = list.0 as u8;
        self.held[list.0 as usize] += 1;
        self.lists.push_newest(list, frame);
    }

    /// Returns whether the window's candidate displaces the victim frame of the main part.
    fn admits(&self, candidate: u32, victim: u32) -> bool {
        let uses = |frame: u32| self.sketch.estimate(self.pages[frame as usize]);
        uses(candidate) > uses(victim)
    }
}

impl ReplacementPolicy for WTinyLfu {
    fn miss(&mut self, page: PageId) -> Recall {
        self.sketch.add(page);
        Recall::default()
    }

    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival) {
        self.pages[frame.index()] = page;
        self.join(frame.0, WINDOW);
        if arrival.prefetched {
            self.lists.unlink(frame.0);
            self.lists.push_oldest(WINDOW, frame.0);
        }
        // While the pool fills, the oldest frames of a window over its share move to the main part, which has
        // room for them.
        while self.held[0] > self.window_max {
            let Some(oldest) = self.lists.oldest(WINDOW) else { break };
            self.leave(oldest);
            self.join(oldest, PROBATION);
        }
    }

    fn access(&mut self, frame: FrameId, _: bool) {
        self.sketch.add(self.pages[frame.index()]);
        let from = List(u32::from(self.list[frame.index()]));
        if from != PROBATION {
            return self.lists.move_newest(from, frame.0);
        }
        self.leave(frame.0);
        self.join(frame.0, PROTECTED);
        // The oldest protected page moves back to probation, so that the main part keeps pages to evict.
        if self.held[PROTECTED.0 as usize] > self.protected_max
            && let Some(oldest) = self.lists.oldest(PROTECTED)
        {
            self.leave(oldest);
            self.join(oldest, PROBATION);
        }
    }

    fn remove(&mut self, frame: FrameId) {
        self.leave(frame.0);
    }

    /// Reads the order by simulating the evictions. `counts[0]` frames have left the window, and `queue` has
    /// the frames among them that moved to the probation list.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let Cursor { places: [window, probation, protected], counts: [gone, ..], queue, .. } = cursor;
        let peek = |list, place: &Option<u32>| {
            let mut place = *place;
            self.lists.next_unpinned(list, frames, &mut place).map(|frame| frame.0)
        };
        // If the window is below its share, only the main part gives a victim.
        let full = self.held[0] - *gone >= self.window_max;
        let candidate = peek(WINDOW, window).filter(|_| full);
        let on_probation = peek(PROBATION, probation);
        let moved = queue.front().map(|(frame, _)| *frame).filter(|_| on_probation.is_none());
        let victim = on_probation.or(moved).or_else(|| peek(PROTECTED, protected));
        let leaves_window = match (candidate, victim) {
            (Some(candidate), Some(victim)) => !self.admits(candidate, victim),
            (candidate, victim) => candidate.is_some() || victim.is_none(),
        };
        if leaves_window {
            let frame = peek(WINDOW, window)?;
            (*window, *gone) = (Some(frame), *gone + 1);
            return Some(FrameId(frame));
        }
        if on_probation.is_some() {
            *probation = victim;
        } else if moved.is_some() {
            queue.pop_front();
        } else {
            *protected = victim;
        }
        if candidate.is_some() {
            (*window, *gone) = (candidate, *gone + 1);
            queue.extend(candidate.map(|frame| (frame, 0)));
        }
        victim.map(FrameId)
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        let from_window = self.list[frame.index()] == WINDOW.0 as u8;
        // The window's page that won the comparison with the victim moves to the main part.
        let winner = self
            .lists
            .next_unpinned(WINDOW, frames, &mut None)
            .filter(|_| !from_window && self.held[0] >= self.window_max);
        self.leave(frame.0);
        if let Some(winner) = winner {
            self.leave(winner.0);
            self.join(winner.0, PROBATION);
        }
        Some(frame)
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.lists.prefetch(frame);
        fulgurite_base::prefetch(&self.list, frame as usize);
    }
}
