//! The mechanism of the clean-first policies, which are CFLRU and its variants.
//!
//! The victim is the least recent *clean* page of the region: the frames at the oldest end of one LRU list.
//! If there is none, the policy chooses one of the least recent dirty pages. Clean and dirty pages are also
//! in separate lists, and each frame has the time of its last use, so that a search for a clean page never
//! has to skip dirty ones. The newest frame of the region, its border, is remembered. Every operation is O(1)
//! with two exceptions. A page that is written back and stays in the pool is inserted among the clean pages
//! by its last use, which takes a few steps, because pages are written in eviction order. A choice among a
//! window of dirty pages compares the whole window.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor};
use crate::FrameTable;
use fulgurite_base::option::PORTION;
use fulgurite_base::{Declared, FrameId, Opt, Portion, SpecError, opt};

/// The options of every clean-first policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanFirstConfig {
    /// The number of frames of the clean-first region, or of the window in which a dirty page is chosen; at
    /// least one.
    pub window: Portion,
}

impl Default for CleanFirstConfig {
    fn default() -> CleanFirstConfig {
        CleanFirstConfig { window: Portion::Fraction(3) }
    }
}

impl Declared for CleanFirstConfig {
    const OPTIONS: &'static [Opt<CleanFirstConfig>] = &[
        opt!("window", window, PORTION, Portion::ZERO => Portion::ALL, "frames of the window, at least one"),
    ];
}

impl CleanFirstConfig {
    pub(super) fn window(&self, frames: u32) -> Result<u32, SpecError> {
        Ok(super::portions::frames_of(self.window, frames, "window")?.max(1))
    }
}

/// The rule by which a dirty page is chosen as the victim if there is no clean one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirtyChoice {
    /// The least recently used page is chosen.
    LeastRecent,
    /// The page with the fewest uses is chosen.
    FewestUses,
    /// The page whose erase block has the fewest erases is chosen.
    FewestErases,
}

const ALL: List = List(0);
const CLEAN: List = List(0);
const DIRTY: List = List(1);

/// The LRU lists, the region and the window of a clean-first policy.
pub(super) struct CleanFirst {
    /// The list of all frames, ordered by last use.
    all: Lists,
    /// The lists of clean frames and of dirty frames, each ordered by last use.
    kinds: Lists,
    is_clean: Vec<bool>,
    /// The time of each frame's last use, counted in uses. Prefetched pages get decreasing negative times.
    used: Vec<i64>,
    newest: i64,
    oldest: i64,
    uses: Vec<u32>,
    choice: DirtyChoice,
    /// The number of least recent pages that are searched for a clean one: the size of the region.
    region: u32,
    /// The newest frame of the region, and the current number of frames in the region.
    border: Option<u32>,
    inside: u32,
    /// The number of least recent dirty pages that a choice compares.
    window: u32,
}

impl CleanFirst {
    pub(crate) fn new(frames: u32, choice: DirtyChoice, region: u32, window: u32) -> CleanFirst {
        CleanFirst {
            all: Lists::new(frames, 1),
            kinds: Lists::new(frames, 2),
            is_clean: vec![false; frames as usize],
            used: vec![0; frames as usize],
            newest: 0,
            oldest: 0,
            uses: vec![0; frames as usize],
            choice,
            region,
            border: None,
            inside: 0,
            window,
        }
    }

    pub(crate) fn needs_erase_counts(&self) -> bool {
        self.choice == DirtyChoice::FewestErases
    }

    pub(crate) fn insert(&mut self, frame: FrameId, arrival: Arrival) {
        let frame = frame.0;
        self.uses[frame as usize] = 0;
        self.is_clean[frame as usize] = !arrival.write;
        let kind = if arrival.write { DIRTY } else { CLEAN };
        if arrival.prefetched {
            self.oldest -= 1;
            self.used[frame as usize] = self.oldest;
            self.all.push_oldest(ALL, frame);
            self.kinds.push_oldest(kind, frame);
            match self.inside < self.region {
                true => self.inside += 1,
                // The region keeps its size, so its newest frame leaves the region.
                false => self.border = self.border.and_then(|border| self.all.older(border)),
            }
            self.border = self.border.or(Some(frame));
        } else {
            self.push_newest(frame, kind);
        }
    }

    fn push_newest(&mut self, frame: u32, kind: List) {
        self.newest += 1;
        self.used[frame as usize] = self.newest;
        self.all.push_newest(ALL, frame);
        self.kinds.push_newest(kind, frame);
        if self.inside < self.region {
            self.inside += 1;
            self.border = Some(frame);
        }
    }

    pub(crate) fn access(&mut self, frame: FrameId, write: bool) {
        self.remove(frame);
        self.uses[frame.index()] = self.uses[frame.index()].saturating_add(1);
        self.is_clean[frame.index()] &= !write;
        self.push_newest(frame.0, if self.is_clean[frame.index()] { CLEAN } else { DIRTY });
    }

    pub(crate) fn cleaned(&mut self, frame: FrameId) {
        let frame = frame.0;
        if std::mem::replace(&mut self.is_clean[frame as usize], true) {
            return;
        }
        self.kinds.unlink(frame);
        let used = self.used[frame as usize];
        // The list of clean frames is ordered by last use, and this frame keeps its time, so it is inserted
        // by that time.
        let newer = self.kinds.iter(CLEAN).find(|clean| self.used[*clean as usize] > used);
        match newer {
            Some(newer) => self.kinds.insert_older(newer, frame),
            None => self.kinds.push_newest(CLEAN, frame),
        }
    }

    pub(crate) fn remove(&mut self, frame: FrameId) {
        let frame = frame.0;
        if self.border.is_some_and(|border| self.used[frame as usize] <= self.used[border as usize]) {
            // The next newer frame enters the region; if there is none, the region shrinks.
            let border = self.border.expect("just looked at");
            match self.all.newer(border) {
                Some(newer) => self.border = Some(newer),
                None => {
                    self.inside -= 1;
                    // The border must be a frame of the list, and this frame is being removed from the list.
                    if border == frame {
                        self.border = self.all.older(frame);
                    }
                }
            }
        }
        self.all.unlink(frame);
        self.kinds.unlink(frame);
    }

    /// Reads the order without evicting. `places` has the last returned clean frame, the last dirty frame
    /// that was returned in order, and the border, which moves by one frame with each returned frame. `queue`
    /// has the frames that were returned out of order.
    pub(crate) fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        if cursor.step == 0 {
            // `step` marks the start, because a new cursor has no border, and the list may have none either.
            cursor.places[2] = self.border;
            cursor.step = 1;
        }
        let Cursor { places: [clean_place, dirty_place, border], queue: gone, .. } = cursor;
        let used = |frame: u32| self.used[frame as usize];
        let is_inside = |frame: u32| border.is_some_and(|border| used(frame) <= used(border));
        let is_gone = |frame: u32| gone.iter().any(|(given, _)| *given == frame);
        let mut clean_after = *clean_place;
        let clean = self.following(CLEAN, frames, &mut clean_after, is_gone);
        let first = clean.filter(|clean| is_inside(*clean));
        let chosen =
            first.or_else(|| self.choose_dirty(frames, *dirty_place, is_inside, is_gone)).or_else(|| {
                let dirty = self.following(DIRTY, frames, &mut dirty_place.clone(), is_gone);
                clean.into_iter().chain(dirty).min_by_key(|frame| used(*frame))
            })?;
        if Some(chosen) == clean {
            *clean_place = clean_after;
        } else if self.choice == DirtyChoice::LeastRecent {
            *dirty_place = Some(chosen);
        } else {
            gone.push_back((chosen, 0));
        }
        // If all frames of the region are pinned, frames beyond the region are evicted in order. The border
        // then moves too, but never past the last frame of the list.
        *border = border.and_then(|border| self.all.newer(border).or(Some(border)));
        Some(FrameId(chosen))
    }

    /// Returns the next unpinned frame of a list that was not returned yet.
    #[inline]
    fn following(
        &self,
        list: List,
        frames: &FrameTable,
        place: &mut Option<u32>,
        is_gone: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        while let Some(frame) = self.kinds.next_unpinned(list, frames, place) {
            if !is_gone(frame.0) {
                return Some(frame.0);
            }
        }
        None
    }

    /// Returns the dirty page of the region that is the victim.
    fn choose_dirty(
        &self,
        frames: &FrameTable,
        mut place: Option<u32>,
        is_inside: impl Fn(u32) -> bool,
        is_gone: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let rank = |frame: u32| match self.choice {
            DirtyChoice::LeastRecent => 0,
            DirtyChoice::FewestUses => u64::from(self.uses[frame as usize]),
            DirtyChoice::FewestErases => frames.erases(FrameId(frame)),
        };
        if self.choice == DirtyChoice::LeastRecent {
            return self.following(DIRTY, frames, &mut place, is_gone).filter(|dirty| is_inside(*dirty));
        }
        // Pinned frames count among the window, because the window is a range of the list.
        let dirty = self.kinds.iter(DIRTY).filter(|frame| !is_gone(*frame)).take(self.window as usize);
        let unpinned = dirty.filter(|frame| is_inside(*frame) && !frames.is_pinned(FrameId(*frame)));
        unpinned.min_by_key(|frame| rank(*frame))
    }

    #[inline]
    pub(crate) fn prefetch(&self, frame: u32) {
        self.all.prefetch(frame);
        self.kinds.prefetch(frame);
        fulgurite_base::prefetch(&self.used, frame as usize);
    }
}

/// Declares a clean-first policy: the mechanism with a choice among dirty pages, and with the size of its
/// region as a function of the window and the number of frames.
macro_rules! clean_first_policy {
    ($policy:ident, $choice:ident, |$window:ident, $frames:ident| $region:expr) => {
        /// A clean-first policy; see the head of its module.
        pub struct $policy(CleanFirst);

        impl $policy {
            pub(super) fn new(
                config: &CleanFirstConfig,
                $frames: u32,
            ) -> Result<$policy, fulgurite_base::SpecError> {
                let $window = config.window($frames)?;
                Ok($policy(CleanFirst::new($frames, DirtyChoice::$choice, $region, $window)))
            }
        }

        impl crate::ReplacementPolicy for $policy {
            fn needs_erase_counts(&self) -> bool {
                self.0.needs_erase_counts()
            }

            #[inline]
            fn insert(
                &mut self,
                frame: fulgurite_base::FrameId,
                _: fulgurite_base::PageId,
                arrival: crate::Arrival,
            ) {
                self.0.insert(frame, arrival);
            }

            #[inline]
            fn access(&mut self, frame: fulgurite_base::FrameId, write: bool) {
                self.0.access(frame, write);
            }

            fn cleaned(&mut self, frame: fulgurite_base::FrameId) {
                self.0.cleaned(frame);
            }

            #[inline]
            fn remove(&mut self, frame: fulgurite_base::FrameId) {
                self.0.remove(frame);
            }

            #[inline]
            fn next(
                &self,
                frames: &crate::FrameTable,
                cursor: &mut crate::Cursor,
            ) -> Option<fulgurite_base::FrameId> {
                self.0.next(frames, cursor)
            }

            #[inline]
            fn prefetch(&self, frame: u32) {
                self.0.prefetch(frame);
            }
        }
    };
}

pub(super) use clean_first_policy;
