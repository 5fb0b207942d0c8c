//! NRU (not recently used): evicts a random page of the lowest non-empty class, by the referenced and dirty
//! bits.
//!
//! Textbooks (Tanenbaum, "Modern Operating Systems") number the classes 2 · referenced + dirty and clear the
//! referenced bits now and then. *Ambiguities.* Textbooks do not say how often: here the bits are cleared
//! every `clear=` requests, a count or a share of the frames, by default as many as there are frames. The
//! random page is the first page of its class after a random frame. That frame is drawn for every miss, so
//! that the order can be read ahead without drawing. Bits are examined 64 at a time: a hit is O(1), an
//! eviction O(frames / 64).

use super::policy::{Arrival, Cursor, Recall, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::option::PORTION;
use fulgurite_base::{Declared, FrameId, Opt, PageId, Portion, Prng, SpecError, opt};

/// The options of the policy `nru`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NruConfig {
    /// The number of requests between two clearings of the referenced bits; a share refers to the number of
    /// frames.
    pub clear: Portion,
}

impl Default for NruConfig {
    fn default() -> NruConfig {
        NruConfig { clear: Portion::ALL }
    }
}

impl Declared for NruConfig {
    const OPTIONS: &'static [Opt<NruConfig>] = &[opt!(
        "clear",
        clear,
        PORTION,
        "requests between two clearings of the referenced bits, or their share of the frames"
    )];
}

/// Two bits of each frame: whether it holds a page, and whether it is referenced. The frame table has the
/// dirty bits.
pub struct Nru {
    held: Vec<u64>,
    referenced: Vec<u64>,
    frames: u32,
    /// The randomly drawn frame at which the search for a victim begins.
    start: u32,
    random: Prng,
    /// The number of requests between two clearings, and the number left until the next one.
    clear: u64,
    left: u64,
}

impl Nru {
    pub(super) fn new(config: &NruConfig, frames: u32) -> Result<Nru, SpecError> {
        let clear = config.clear.of(u64::from(frames));
        if clear == 0 {
            return Err(SpecError::new(format!(
                "clear={} is no request with {frames} frames; accepted: at least 1 request",
                config.clear
            )));
        }
        let words = vec![0; (frames as usize).div_ceil(64)];
        // The seed is fixed, so that equal runs choose equal pages.
        let random = Prng::new(0, "nru");
        Ok(Nru { held: words.clone(), referenced: words, frames, start: 0, random, clear, left: clear })
    }

    #[inline]
    fn request(&mut self, frame: FrameId) {
        self.left -= 1;
        if self.left == 0 {
            self.left = self.clear;
            self.referenced.fill(0);
        }
        // The bit is set after the clearing, so that this request counts in the new period.
        self.referenced[frame.index() / 64] |= 1 << (frame.index() % 64);
    }

    /// Returns the frames of `class` among the 64 frames of word `word`, one bit each.
    fn class_word(&self, frames: &FrameTable, class: u64, word: usize) -> u64 {
        let pick = |bits: u64, wanted: bool| if wanted { bits } else { !bits };
        self.held[word]
            & pick(self.referenced[word], class & 2 != 0)
            & pick(frames.dirty_word(word), class & 1 != 0)
    }

    /// Returns the first unpinned frame of `class` among the frames `from..until`.
    fn first(&self, frames: &FrameTable, class: u64, from: u32, until: u32) -> Option<u32> {
        let mut at = from;
        while at < until {
            let word = self.class_word(frames, class, at as usize / 64) >> (at % 64);
            if word == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            at += word.trailing_zeros();
            // A word may reach beyond `until`, so the frame is compared with it.
            if at < until && !frames.is_pinned(FrameId(at)) {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

impl ReplacementPolicy for Nru {
    fn miss(&mut self, _: PageId) -> Recall {
        self.start = self.random.below(u64::from(self.frames)) as u32;
        Recall::default()
    }

    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        self.held[frame.index() / 64] |= 1 << (frame.index() % 64);
        match arrival.prefetched {
            true => self.referenced[frame.index() / 64] &= !(1 << (frame.index() % 64)),
            false => self.request(frame),
        }
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        self.request(frame);
    }

    fn remove(&mut self, frame: FrameId) {
        self.held[frame.index() / 64] &= !(1 << (frame.index() % 64));
    }

    /// Reads the order without evicting. `step` counts half rounds, two for each class: from the start to the
    /// end, and from the first frame to the start.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        while cursor.step < 8 {
            let (class, wrapped) = (cursor.step / 2, cursor.step % 2 == 1);
            let (from, until) = if wrapped { (0, self.start) } else { (self.start, self.frames) };
            if let Some(frame) = self.first(frames, class, from + cursor.counts[0], until) {
                cursor.counts[0] = frame + 1 - from;
                return Some(FrameId(frame));
            }
            cursor.step += 1;
            cursor.counts[0] = 0;
        }
        None
    }
}
