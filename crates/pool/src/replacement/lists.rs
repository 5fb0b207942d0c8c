//! Doubly linked lists of frames, threaded through one array of links.

use super::policy::{Arrival, Cursor};
use crate::FrameTable;
use fulgurite_base::FrameId;

/// A link: the two neighbours of a frame. The link of a list holds the two ends of that list.
#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// The number of one list among the lists of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(pub u32);

/// Several lists over the same frames. A frame is in at most one list.
///
/// Each list has a link of its own behind the frames' links: its `older` is the list's newest frame, and its
/// `newer` is the list's oldest frame. So no operation needs a special case for the ends.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    links: Vec<Link>,
    frames: u32,
}

impl Lists {
    /// Creates `lists` empty lists over `frames` frames.
    pub(crate) fn new(frames: u32, lists: u32) -> Lists {
        // Both ends of an empty list's link are the link itself.
        Lists { links: (0..frames + lists).map(|own| Link { newer: own, older: own }).collect(), frames }
    }

    #[inline]
    fn ends(&self, list: List) -> u32 {
        self.frames + list.0
    }

    /// Puts `frame`, which is in no list, at the newest end of `list`.
    #[inline]
    pub(crate) fn push_newest(&mut self, list: List, frame: u32) {
        let newer = self.ends(list);
        let older = self.links[newer as usize].older;
        self.link(frame, newer, older);
    }

    /// Puts `frame`, which is in no list, at the oldest end of `list`.
    #[inline]
    pub(crate) fn push_oldest(&mut self, list: List, frame: u32) {
        let older = self.ends(list);
        let newer = self.links[older as usize].newer;
        self.link(frame, newer, older);
    }

    /// Inserts `frame`, which is in no list, into `list`: a requested page at the newest end, a prefetched
    /// page at the oldest end.
    #[inline]
    pub(crate) fn enter(&mut self, list: List, frame: u32, arrival: Arrival) {
        match arrival.prefetched {
            false => self.push_newest(list, frame),
            true => self.push_oldest(list, frame),
        }
    }

    /// Puts `frame`, which is in no list, just before `newer`, in the list of `newer`.
    #[inline]
    pub(crate) fn insert_older(&mut self, newer: u32, frame: u32) {
        let older = self.links[newer as usize].older;
        self.link(frame, newer, older);
    }

    /// Puts `frame`, which is in no list, just after `older`, in the list of `older`.
    #[inline]
    pub(crate) fn insert_newer(&mut self, older: u32, frame: u32) {
        let newer = self.links[older as usize].newer;
        self.link(frame, newer, older);
    }

    #[inline]
    fn link(&mut self, frame: u32, newer: u32, older: u32) {
        self.links[frame as usize] = Link { newer, older };
        self.links[older as usize].newer = frame;
        self.links[newer as usize].older = frame;
    }

    /// Removes `frame` from its list.
    #[inline]
    pub(crate) fn unlink(&mut self, frame: u32) {
        let Link { newer, older } = self.links[frame as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
    }

    /// Moves `frame` to the newest end of `list`.
    #[inline]
    pub(crate) fn move_newest(&mut self, list: List, frame: u32) {
        self.unlink(frame);
        self.push_newest(list, frame);
    }

    /// Returns the oldest frame of `list`.
    #[inline]
    pub(crate) fn oldest(&self, list: List) -> Option<u32> {
        self.inside(self.links[self.ends(list) as usize].newer)
    }

    /// Returns the next newer frame in the list of `frame`.
    #[inline]
    pub(crate) fn newer(&self, frame: u32) -> Option<u32> {
        self.inside(self.links[frame as usize].newer)
    }

    /// Returns the next older frame in the list of `frame`.
    #[inline]
    pub(crate) fn older(&self, frame: u32) -> Option<u32> {
        self.inside(self.links[frame as usize].older)
    }

    /// Returns the frames of `list` from the oldest on.
    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.oldest(list), |frame| self.newer(*frame))
    }

    /// Moves `place` to the next newer frame of `list` and returns it. At the newest end, it returns `None`
    /// and leaves `place` unchanged.
    #[inline]
    pub(crate) fn walk(&self, list: List, place: &mut Option<u32>) -> Option<u32> {
        let next = match *place {
            None => self.oldest(list),
            Some(frame) => self.newer(frame),
        };
        *place = next.or(*place);
        next
    }

    /// Begins to fetch the link of `frame` into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.links, frame as usize);
    }

    /// Returns the next unpinned frame of a list whose pages get a second chance: first the frames for which
    /// `leaves` is true, then the others. Keeps its position in the cursor's `step` and in the first of its
    /// `places`.
    #[inline]
    pub(crate) fn next_after_second_chance(
        &self,
        list: List,
        frames: &FrameTable,
        cursor: &mut Cursor,
        leaves: impl Fn(FrameId) -> bool,
    ) -> Option<FrameId> {
        while cursor.step < 2 {
            while let Some(frame) = self.next_unpinned(list, frames, &mut cursor.places[0]) {
                if leaves(frame) == (cursor.step == 0) {
                    return Some(frame);
                }
            }
            cursor.step += 1;
            cursor.places[0] = None;
        }
        None
    }

    /// Removes the oldest unpinned frame for which `leaves` is true. Frames before it move to the newest end;
    /// `leaves` must be true for these frames at the next visit.
    #[inline]
    pub(crate) fn evict_or_requeue(
        &mut self,
        list: List,
        frames: &FrameTable,
        mut leaves: impl FnMut(FrameId) -> bool,
    ) -> Option<FrameId> {
        let mut at = self.oldest(list);
        while let Some(frame) = at {
            // The neighbour is read before the frame moves to the newest end.
            at = self.newer(frame);
            if frames.is_pinned(FrameId(frame)) {
                continue;
            }
            if leaves(FrameId(frame)) {
                self.unlink(frame);
                return Some(FrameId(frame));
            }
            self.move_newest(list, frame);
            // If the frame was the newest one, it is visited again at once.
            at = at.or(Some(frame));
        }
        None
    }

    /// Returns the next unpinned frame of a list after `place`, and moves `place` there.
    #[inline]
    pub(crate) fn next_unpinned(
        &self,
        list: List,
        frames: &FrameTable,
        place: &mut Option<u32>,
    ) -> Option<FrameId> {
        while let Some(frame) = self.walk(list, place) {
            if !frames.is_pinned(FrameId(frame)) {
                return Some(FrameId(frame));
            }
        }
        None
    }

    #[inline]
    fn inside(&self, link: u32) -> Option<u32> {
        // A link behind the links of the frames belongs to a list, so it marks the end of that list.
        (link < self.frames).then_some(link)
    }
}
