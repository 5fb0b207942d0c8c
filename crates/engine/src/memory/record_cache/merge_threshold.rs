//! The choice of neighbourhoods of leaves that are worth merging.
//!
//! A neighbourhood is merged with a few commands of the drive, however many pending records it has. So when
//! space is needed, the neighbourhoods with the most pending records are merged. Pending records of the
//! others are moved to the head of the ring and wait for more. The threshold depends on the workload. It is
//! computed from the records swept last, so that about [`MOVES`] of them are moved for each one that is
//! merged.
//!
//! If more are moved, more memory holds pending records, and each merge merges more of them. But each move
//! takes time. With 2, 4 and 8 moves per merged record, uniform updates were equally fast on a real drive.

use super::cost::LEAST_COST;

/// The desired number of moved records for each merged record.
const MOVES: u32 = 2;
/// The number of swept records after which the threshold is recomputed.
const SWEPT: u32 = 1024;
/// Neighbourhoods with more pending records count as having this many.
const MOST: u32 = 256;
/// There is one counter for this many of the records that fit into the cache.
const RECORDS_PER_COUNTER: u64 = 4;

/// The number of pending records of each neighbourhood, and the threshold from which one is worth merging.
pub(super) struct MergeThreshold {
    /// Leaves of a neighbourhood.
    size: u32,
    /// Pending records by neighbourhood. Neighbourhoods share a counter if there are more of them than
    /// counters.
    pending: Vec<u32>,
    least: u32,
    /// Records swept since the threshold was computed, by the pending records of their neighbourhoods.
    by_pending: [u32; MOST as usize + 1],
    swept: u32,
}

impl MergeThreshold {
    /// For a cache of so many bytes, and neighbourhoods of `size` leaves.
    pub(super) fn new(most_bytes: u64, size: u32) -> MergeThreshold {
        let counters = (most_bytes / LEAST_COST / RECORDS_PER_COUNTER).next_power_of_two();
        let (pending, by_pending) = (vec![0; counters as usize], [0; MOST as usize + 1]);
        MergeThreshold { size, pending, least: 1, by_pending, swept: 0 }
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    fn counter(&self, leaf: u32) -> usize {
        (leaf / self.size) as usize & (self.pending.len() - 1)
    }

    /// Counts one more pending record of a leaf.
    pub(super) fn add_pending(&mut self, leaf: u32) {
        let at = self.counter(leaf);
        self.pending[at] += 1;
    }

    /// Counts fewer pending records of a leaf.
    pub(super) fn remove_pending(&mut self, leaf: u32, records: usize) {
        let at = self.counter(leaf);
        self.pending[at] -= records as u32;
    }

    /// Whether the neighbourhood of a leaf is worth merging.
    pub(super) fn is_reached(&self, leaf: u32) -> bool {
        self.pending[self.counter(leaf)] >= self.least
    }

    /// Counts a pending record that is swept.
    pub(super) fn count_swept(&mut self, leaf: u32) {
        let pending = self.pending[self.counter(leaf)].min(MOST);
        self.by_pending[pending as usize] += 1;
        self.swept += 1;
        if self.swept < SWEPT {
            return;
        }
        // The first record of a neighbourhood worth merging causes all of its records to be merged.
        let merged = |least: u32| self.by_pending[least as usize] * least;
        let (mut least, mut records) = (MOST, merged(MOST));
        while least > 1 && records * MOVES < self.swept {
            least -= 1;
            records += merged(least);
        }
        self.reset();
        self.least = least;
    }

    /// Resets the threshold: every neighbourhood is worth merging until it is recomputed.
    pub(super) fn reset(&mut self) {
        (self.least, self.swept) = (1, 0);
        self.by_pending.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 16;

    /// Counts so many swept records of neighbourhoods with so many pending records each. Returns the
    /// resulting threshold.
    fn least_after(swept: &[(u32, u32)]) -> u32 {
        let mut merge_threshold = MergeThreshold::new(1 << 20, SIZE);
        merge_threshold.add_pending(1000 * SIZE);
        assert!(merge_threshold.is_reached(1000 * SIZE), "nothing is known");
        for (at, (pending, _)) in swept.iter().enumerate() {
            (0..*pending).for_each(|_| merge_threshold.add_pending(at as u32 * SIZE));
        }
        assert_eq!(swept.iter().map(|(_, records)| records).sum::<u32>(), SWEPT);
        for (at, (_, records)) in swept.iter().enumerate() {
            (0..*records).for_each(|_| merge_threshold.count_swept(at as u32 * SIZE + at as u32 % SIZE));
        }
        merge_threshold.least
    }

    /// The threshold is the largest with which so many records are merged that only [`MOVES`] are moved for
    /// each.
    #[test]
    fn two_records_are_moved_for_each_merged_one() {
        // 64 records of neighbourhoods with 8 pending records cause 512 merges, which is half of the swept
        // records.
        assert_eq!(least_after(&[(1, SWEPT - 64), (8, 64)]), 8);
        assert_eq!(least_after(&[(1, SWEPT - 63), (8, 63)]), 1);
        assert_eq!(least_after(&[(1, SWEPT - 64), (8, 60), (4, 4)]), 1);
        assert_eq!(least_after(&[(1, SWEPT - 68), (8, 60), (4, 8)]), 4);
        assert_eq!(least_after(&[(5, SWEPT)]), 5);
        assert_eq!(least_after(&[(3 * MOST, SWEPT)]), MOST, "the largest count as MOST");
    }

    /// The counter of a neighbourhood is the sum over its leaves only.
    #[test]
    fn leaves_of_a_neighbourhood_count_together() {
        let mut merge_threshold = MergeThreshold::new(1 << 20, SIZE);
        merge_threshold.least = 3;
        merge_threshold.add_pending(0);
        merge_threshold.add_pending(SIZE - 1);
        merge_threshold.add_pending(SIZE);
        assert!(!merge_threshold.is_reached(0), "two of it, and one of the next");
        merge_threshold.add_pending(7);
        assert!((0..SIZE).all(|leaf| merge_threshold.is_reached(leaf)) && !merge_threshold.is_reached(SIZE));
        merge_threshold.remove_pending(7, 1);
        assert!(!merge_threshold.is_reached(0));
    }
}
