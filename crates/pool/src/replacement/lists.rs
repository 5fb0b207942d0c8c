//! Doubly linked lists of frames, threaded through one array.

use super::policy::{Arrival, Cursor};
use crate::FrameTable;
use fulgurite_base::FrameId;

/// A link: the neighbours of a frame, or, for a list's own link, its ends.
#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// One of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(pub u32);

/// Several lists over the same frames; a frame is in one list at most.
///
/// Behind the frames' links, each list has one of its own: its `older` is the list's newest frame, its
/// `newer` the oldest. So no operation has a special case.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    links: Vec<Link>,
    frames: u32,
}

impl Lists {
    /// `lists` empty lists over `frames` frames.
    pub fn new(frames: u32, lists: u32) -> Lists {
        // An empty list has a link whose both ends are that link itself.
        Lists { links: (0..frames + lists).map(|own| Link { newer: own, older: own }).collect(), frames }
    }

    #[inline]
    fn ends(&self, list: List) -> u32 {
        self.frames + list.0
    }

    /// Puts `frame`, which is in no list, at the newest end of `list`.
    #[inline]
    pub fn push_newest(&mut self, list: List, frame: u32) {
        let newer = self.ends(list);
        let older = self.links[newer as usize].older;
        self.link(frame, newer, older);
    }

    /// Puts `frame`, which is in no list, at the oldest end of `list`.
    #[inline]
    pub fn push_oldest(&mut self, list: List, frame: u32) {
        let older = self.ends(list);
        let newer = self.links[older as usize].newer;
        self.link(frame, newer, older);
    }

    /// Puts `frame`, which is in no list, where its page shall enter `list`. A page that was asked for enters at
    /// the newest end; a prefetched one enters where it leaves next.
    #[inline]
    pub fn enter(&mut self, list: List, frame: u32, arrival: Arrival) {
        match arrival.prefetched {
            false => self.push_newest(list, frame),
            true => self.push_oldest(list, frame),
        }
    }

    /// Puts `frame`, which is in no list, just before `newer` in its list.
    #[inline]
    pub fn insert_older(&mut self, newer: u32, frame: u32) {
        let older = self.links[newer as usize].older;
        self.link(frame, newer, older);
    }

    /// Puts `frame`, which is in no list, just after `older` in its list.
    #[inline]
    pub fn insert_newer(&mut self, older: u32, frame: u32) {
        let newer = self.links[older as usize].newer;
        self.link(frame, newer, older);
    }

    #[inline]
    fn link(&mut self, frame: u32, newer: u32, older: u32) {
        self.links[frame as usize] = Link { newer, older };
        self.links[older as usize].newer = frame;
        self.links[newer as usize].older = frame;
    }

    /// Takes `frame` out of its list.
    #[inline]
    pub fn unlink(&mut self, frame: u32) {
        let Link { newer, older } = self.links[frame as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
    }

    /// Moves `frame` to the newest end of `list`.
    #[inline]
    pub fn move_newest(&mut self, list: List, frame: u32) {
        self.unlink(frame);
        self.push_newest(list, frame);
    }

    /// The oldest frame of `list`.
    #[inline]
    pub fn oldest(&self, list: List) -> Option<u32> {
        self.inside(self.links[self.ends(list) as usize].newer)
    }

    /// The next newer frame in `frame`'s list.
    #[inline]
    pub fn newer(&self, frame: u32) -> Option<u32> {
        self.inside(self.links[frame as usize].newer)
    }

    /// The next older frame in `frame`'s list.
    #[inline]
    pub fn older(&self, frame: u32) -> Option<u32> {
        self.inside(self.links[frame as usize].older)
    }

    /// The frames of `list` from the oldest on.
    pub fn iter(&self, list: List) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.oldest(list), |frame| self.newer(*frame))
    }

    /// The frame of `list` that comes after `place`, which it becomes; none, with nothing changed, at
    /// the newest end.
    #[inline]
    pub fn walk(&self, list: List, place: &mut Option<u32>) -> Option<u32> {
        let next = match *place {
            None => self.oldest(list),
            Some(frame) => self.newer(frame),
        };
        *place = next.or(*place);
        next
    }

    /// Begins to fetch `frame`'s link into the cache.
    #[inline]
    pub fn prefetch(&self, frame: u32) {
        fulgurite_base::prefetch(&self.links, frame as usize);
    }

    /// The next unpinned frame of a list whose pages get a second chance: first those that `leaves` lets go at
    /// once, then the others. Uses `step` and the first of `places`.
    #[inline]
    pub fn next_after_second_chance(
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

    /// Takes the oldest unpinned frame that `leaves` lets go out of a list. Those before it go to the newest
    /// end; `leaves` sees to it that they leave when they come up again.
    #[inline]
    pub fn evict_or_requeue(
        &mut self,
        list: List,
        frames: &FrameTable,
        mut leaves: impl FnMut(FrameId) -> bool,
    ) -> Option<FrameId> {
        let mut at = self.oldest(list);
        while let Some(frame) = at {
            // The neighbour is read before the frame leaves its place.
            at = self.newer(frame);
            if frames.is_pinned(FrameId(frame)) {
                continue;
            }
            if leaves(FrameId(frame)) {
                self.unlink(frame);
                return Some(FrameId(frame));
            }
            self.move_newest(list, frame);
            // With nothing behind it, it comes up again at once.
            at = at.or(Some(frame));
        }
        None
    }

    /// The next unpinned frame of a list after `place`.
    #[inline]
    pub fn next_unpinned(&self, list: List, frames: &FrameTable, place: &mut Option<u32>) -> Option<FrameId> {
        while let Some(frame) = self.walk(list, place) {
            if !frames.is_pinned(FrameId(frame)) {
                return Some(FrameId(frame));
            }
        }
        None
    }

    #[inline]
    fn inside(&self, link: u32) -> Option<u32> {
        // A link behind those of the frames is a list's own, which ends the list.
        (link < self.frames).then_some(link)
    }
}
