//! How many frames are spare: as many as writes under way have needed lately, between two bounds.
//!
//! A spare frame is one that holds no page for long. A miss on a dirty victim reads into it, and the victim's frame takes
//! its place once it has been written. Too few make misses wait for writes, too many make the pool smaller for nothing.
//! So a miss that finds none takes one more from the pool. Those that nobody has needed for a while go back.

/// After so many misses, frames that were free at each of them go back to the pool: long enough to span several batches.
const LOOK_BACK: u32 = 256;

/// The number of spare frames, and what decides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spare {
    /// How many there are now.
    pub frames: u32,
    least: u32,
    most: u32,
    /// The fewest of them that were free at any of the last misses, and how many misses that were.
    idle: u32,
    misses: u32,
}

impl Spare {
    /// `least` of at most `most` frames.
    pub fn new(least: u32, most: u32) -> Spare {
        Spare { frames: least, least, most, idle: u32::MAX, misses: 0 }
    }

    /// How many there can be.
    pub fn most(&self) -> u32 {
        self.most
    }

    /// A miss needs one more than there are. Returns whether there may be one more.
    pub fn grow(&mut self) -> bool {
        let may = self.frames < self.most;
        self.frames += u32::from(may);
        may
    }

    /// A miss has its frame, and so many spare ones are free.
    pub fn used(&mut self, free: u32) {
        self.idle = self.idle.min(free);
        self.misses += 1;
        if self.misses == LOOK_BACK {
            self.frames = self.frames.saturating_sub(self.idle).max(self.least);
            (self.idle, self.misses) = (u32::MAX, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_frames_follow_the_need_between_their_bounds() {
        let mut spare = Spare::new(1, 4);
        assert_eq!([spare.grow(), spare.grow(), spare.grow(), spare.grow()], [true, true, true, false]);
        assert_eq!(spare.frames, 4);
        // Two of the four were free whenever a miss looked, but for a moment when only one was.
        (1..LOOK_BACK).for_each(|_| spare.used(2));
        spare.used(1);
        assert_eq!(spare.frames, 3);
        // The look begins anew, and never goes below the least.
        (0..LOOK_BACK).for_each(|_| spare.used(3));
        assert_eq!(spare.frames, 1);
    }

    #[test]
    fn a_fixed_number_stays() {
        let mut spare = Spare::new(3, 3);
        (0..LOOK_BACK).for_each(|_| spare.used(3));
        assert_eq!((spare.grow(), spare.frames), (false, 3));
    }
}
