//! Decides into which leaves pending records are merged. A neighbourhood consists of adjacent leaves.
//!
//! Pending records are in a ring buffer. When space is needed, its oldest records are swept: each is merged
//! into its leaf, or moved to the head of the ring.
//!
//! A neighbourhood is merged with a few commands of the drive, however many pending records it has. So when
//! space is needed, the neighbourhoods with the most pending records are merged. The pending records of the
//! others are moved, and their neighbourhoods gather more. The threshold depends on
//! the workload. It is computed from the records swept last, so that about [`MOVES`] records are moved for
//! each one that is merged.
//!
//! If more records are moved, more memory holds pending records, and each merge merges more of them. But each
//! move takes time. With 2, 4 and 8 moves for each merged record, uniform updates were equally fast on a real
//! drive.

use super::cost::LEAST_COST;

/// The desired number of moved records for each merged record.
const MOVES: u32 = 2;
/// The number of swept records after which the threshold is recomputed.
const SWEPT: u32 = 1024;
/// The largest number of pending records of a neighbourhood that is distinguished. More records count as this
/// many.
const MOST: u32 = 256;
/// The number of records that fit into the cache for each counter of a neighbourhood.
const RECORDS_PER_COUNTER: u64 = 4;

/// The number of pending records of each neighbourhood, and the number from which a neighbourhood is worth
/// merging.
pub(super) struct MergeThreshold {
    /// The number of leaves of a neighbourhood.
    size: u32,
    /// The numbers of pending records by neighbourhood. Neighbourhoods share a counter if there are more of
    /// them than counters.
    pending: Vec<u32>,
    least: u32,
    /// The records swept since the threshold was computed, counted by the number of pending records of their
    /// neighbourhoods.
    by_pending: [u32; MOST as usize + 1],
    swept: u32,
}

impl MergeThreshold {
    /// Creates counters for a cache of so many bytes, and neighbourhoods of `size` leaves.
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

    /// Subtracts pending records of a leaf.
    pub(super) fn remove_pending(&mut self, leaf: u32, records: usize) {
        let at = self.counter(leaf);
        self.pending[at] -= records as u32;
    }

    /// Whether the neighbourhood of a leaf is worth merging.
    pub(super) fn is_reached(&self, leaf: u32) -> bool {
        self.pending[self.counter(leaf)] >= self.least
    }

    /// Counts a pending record that is swept, and recomputes the threshold after [`SWEPT`] records.
    pub(super) fn count_swept(&mut self, leaf: u32) {
        let pending = self.pending[self.counter(leaf)].min(MOST);
        self.by_pending[pending as usize] += 1;
        self.swept += 1;
        if self.swept < SWEPT {
            return;
        }
        // The first swept record of a neighbourhood that is worth merging causes all of its records to be
        // merged.
        let merged = |least: u32| self.by_pending[least as usize] * least;
        let (mut least, mut records) = (MOST, merged(MOST));
        while least > 1 && records * MOVES < self.swept {
            least -= 1;
            records += merged(least);
        }
        self.reset();
        self.least = least;
    }

    /// Resets the threshold, so that every neighbourhood is worth merging until the threshold is recomputed.
    pub(super) fn reset(&mut self) {
        (self.least, self.swept) = (1, 0);
        self.by_pending.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 16;

    /// Sweeps records of several neighbourhoods. `swept` lists the number of pending records of each
    /// neighbourhood, and the number of its swept records. Returns the resulting threshold.
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

    /// The threshold is the largest one with which enough records are merged that only [`MOVES`] records are
    /// moved for each.
    #[test]
    fn two_records_are_moved_for_each_merged_one() {
        // If 64 records of neighbourhoods with 8 pending records are swept, 512 records are merged, which is
        // half of the swept records.
        assert_eq!(least_after(&[(1, SWEPT - 64), (8, 64)]), 8);
        assert_eq!(least_after(&[(1, SWEPT - 63), (8, 63)]), 1);
        assert_eq!(least_after(&[(1, SWEPT - 64), (8, 60), (4, 4)]), 1);
        assert_eq!(least_after(&[(1, SWEPT - 68), (8, 60), (4, 8)]), 4);
        assert_eq!(least_after(&[(5, SWEPT)]), 5);
        assert_eq!(least_after(&[(3 * MOST, SWEPT)]), MOST, "the largest count as MOST");
    }

    /// The counter of a neighbourhood is the sum over its own leaves only.
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
