//! LFU (least frequently used): evicts the page with the fewest uses; the last use breaks ties.
//!
//! A page's count of uses begins when it is read in and is lost when it is evicted. Frames with the same
//! count form a list by the time of their last use, and the lists form a chain by count (Shah, Mitra, Matani,
//! "An O(1) algorithm for implementing the LFU cache eviction scheme", 2010). Every operation is O(1). A
//! prefetched page has no use and is inserted at the front of the chain.

use super::lists::{List, Lists};
use super::policy::{Arrival, Cursor, ReplacementPolicy};
use crate::FrameTable;
use fulgurite_base::{FrameId, NoOptions, PageId, SpecError};

/// A class: the frames with one count of uses. A class has the same number as its list.
#[derive(Clone, Copy, Debug)]
struct Class {
    uses: u64,
    members: u32,
}

/// A list of frames for each count of uses, and a chain of the lists in rising order of count.
pub struct Lfu {
    frames: Lists,
    classes: Vec<Class>,
    /// For each frame, the number of its class.
    class: Vec<u32>,
    /// The chain of the classes in use; the oldest class has the lowest count.
    chain: Lists,
    free: Vec<u32>,
}

const CHAIN: List = List(0);

impl Lfu {
    pub(super) fn new(_: &NoOptions, frames: u32) -> Result<Lfu, SpecError> {
        // A new class is made only if the old class keeps another frame, so there are no more classes than
        // frames.
        let classes = frames;
        Ok(Lfu {
            frames: Lists::new(frames, classes),
            classes: vec![Class { uses: 0, members: 0 }; classes as usize],
            class: vec![0; frames as usize],
            chain: Lists::new(classes, 1),
            free: (0..classes).rev().collect(),
        })
    }

    /// Takes a free class for frames with `uses` uses. The class is not yet in the chain.
    fn new_class(&mut self, uses: u64) -> u32 {
        let class = self.free.pop().expect("there are as many classes as frames");
        self.classes[class as usize] = Class { uses, members: 0 };
        class
    }

    #[inline]
    fn join(&mut self, frame: u32, class: u32) {
        self.class[frame as usize] = class;
        self.classes[class as usize].members += 1;
        self.frames.push_newest(List(class), frame);
    }

    #[inline]
    fn leave(&mut self, frame: u32) {
        let class = self.class[frame as usize];
        self.frames.unlink(frame);
        self.classes[class as usize].members -= 1;
        if self.classes[class as usize].members == 0 {
            self.chain.unlink(class);
            self.free.push(class);
        }
    }
}

impl ReplacementPolicy for Lfu {
    fn insert(&mut self, frame: FrameId, _: PageId, arrival: Arrival) {
        let uses = u64::from(!arrival.prefetched);
        // A page is read in with at most one use, so the search for its class ends near the front of the
        // chain.
        let (mut class, mut below) = (self.chain.oldest(CHAIN), None);
        while let Some(found) = class.filter(|class| self.classes[*class as usize].uses < uses) {
            (class, below) = (self.chain.newer(found), Some(found));
        }
        let class = match class.filter(|class| self.classes[*class as usize].uses == uses) {
            Some(class) => class,
            None => {
                let class = self.new_class(uses);
                match below {
                    Some(below) => self.chain.insert_newer(below, class),
                    None => self.chain.push_oldest(CHAIN, class),
                }
                class
            }
        };
        self.join(frame.0, class);
    }

    #[inline]
    fn access(&mut self, frame: FrameId, _: bool) {
        let class = self.class[frame.index()];
        let Class { uses, members } = self.classes[class as usize];
        // Only the next class of the chain can have a count that is one higher.
        let above = self.chain.newer(class);
        match above.filter(|above| self.classes[*above as usize].uses == uses + 1) {
            // The frame is alone in its class, and no class has a count that is one higher, so the class
            // itself changes its count.
            None if members == 1 => self.classes[class as usize].uses += 1,
            None => {
                let new = self.new_class(uses + 1);
                self.chain.insert_newer(class, new);
                self.leave(frame.0);
                self.join(frame.0, new);
            }
            Some(above) => {
                self.leave(frame.0);
                self.join(frame.0, above);
            }
        }
    }

    fn remove(&mut self, frame: FrameId) {
        self.leave(frame.0);
    }

    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        let [place, at, _] = &mut cursor.places;
        loop {
            let class = match *at {
                Some(class) => class,
                None => self.chain.walk(CHAIN, at)?,
            };
            if let Some(frame) = self.frames.next_unpinned(List(class), frames, place) {
                return Some(frame);
            }
            self.chain.walk(CHAIN, at)?;
            *place = None;
        }
    }

    #[inline]
    fn prefetch(&self, frame: u32) {
        self.frames.prefetch(frame);
        fulgurite_base::prefetch(&self.class, frame as usize);
    }
}
