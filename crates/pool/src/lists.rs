//! Doubly linked lists of frames, threaded through one array.

use crate::Arrival;

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

    #[inline]
    fn inside(&self, link: u32) -> Option<u32> {
        // A link behind those of the frames is a list's own, which ends the list.
        (link < self.frames).then_some(link)
    }
}
