//! Decides how many frames are spare: as many as writes have needed recently, between two bounds.
//!
//! A miss on a dirty victim frame reads its page into a spare frame. The victim frame becomes a spare frame
//! when its page has been written. With too few spare frames, misses wait for writes; with too many, fewer
//! frames hold pages than could. So a miss that finds no spare frame makes one more frame spare. Spare frames
//! that no miss has needed for a while become usual frames again.

/// The number of misses after which unneeded spare frames become usual frames again. It is long enough to
/// span several batches of writes.
const LOOK_BACK: u32 = 256;

/// The number of spare frames, and the state that decides it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spare {
    /// The current number of spare frames.
    pub frames: u32,
    least: u32,
    most: u32,
    /// The fewest free spare frames at any miss since the last check, and the number of misses since then.
    idle: u32,
    misses: u32,
}

impl Spare {
    /// Starts with `least` spare frames, the lower bound; `most` is the upper bound.
    pub(crate) fn new(least: u32, most: u32) -> Spare {
        Spare { frames: least, least, most, idle: u32::MAX, misses: 0 }
    }

    /// Returns the upper bound on the number of spare frames.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Makes one more frame spare for a miss. Returns false if the upper bound does not allow it.
    pub(crate) fn grow(&mut self) -> bool {
        let may = self.frames < self.most;
        self.frames += u32::from(may);
        may
    }

    /// Records that a miss got its frame and that `free` spare frames are left.
    pub(crate) fn used(&mut self, free: u32) {
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
    fn the_number_of_spare_frames_follows_the_need_between_its_bounds() {
        let mut spare = Spare::new(1, 4);
        assert_eq!([spare.grow(), spare.grow(), spare.grow(), spare.grow()], [true, true, true, false]);
        assert_eq!(spare.frames, 4);
        // Two of the four are free at every miss except one, at which one is free.
        (1..LOOK_BACK).for_each(|_| spare.used(2));
        spare.used(1);
        assert_eq!(spare.frames, 3);
        // The counting of idle frames starts again, and the number never falls below `least`.
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
