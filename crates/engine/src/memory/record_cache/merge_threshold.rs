//! Which neighbourhoods of leaves are worth a merge.
//!
//! A neighbourhood is merged with a few commands of the drive, however many records its leaves lack. So where room is needed, the
//! neighbourhoods that lack the most go first. The records of the others move on in memory and wait for more. How many are the most
//! differs from load to load. It is told from the records that were looked at last, so that about [`MOVES`] of them move on for each that is
//! merged.
//!
//! The more move on, the more of the memory waits, and the more a merge finds; but each move takes time. With 2, 4 and 8 moves for a merge
//! uniform updates were equally fast on a real drive.

use super::cost::LEAST_COST;

/// Records that are moved on for each that is merged, about.
const MOVES: u32 = 2;
/// Records that are looked at before the number is told anew.
const LOOKED_AT: u32 = 1024;
/// Neighbourhoods that lack more are counted as if they lacked so many.
const MOST: u32 = 256;
/// Of the records that there may be, one in so many has a counter.
const RECORDS_A_COUNTER: u64 = 4;

/// How many records each neighbourhood lacks, and how many one lacks at least that is worth a merge.
pub struct MergeThreshold {
    /// Leaves of a neighbourhood.
    size: u32,
    /// Records that neighbourhoods lack. Neighbourhoods share a counter where there are more of them than counters.
    lacking: Vec<u32>,
    least: u32,
    /// Records looked at since that was told, by how many their neighbourhoods lack.
    by_lacking: [u32; MOST as usize + 1],
    looked_at: u32,
}

impl MergeThreshold {
    /// For records of so many bytes, and neighbourhoods of `size` leaves.
    pub fn new(most_bytes: u64, size: u32) -> MergeThreshold {
        let counters = (most_bytes / LEAST_COST / RECORDS_A_COUNTER).next_power_of_two();
        let (lacking, by_lacking) = (vec![0; counters as usize], [0; MOST as usize + 1]);
        MergeThreshold { size, lacking, least: 1, by_lacking, looked_at: 0 }
    }

    /// Leaves of a neighbourhood.
    pub fn size(&self) -> u32 {
        self.size
    }

    fn counter(&self, leaf: u32) -> usize {
        (leaf / self.size) as usize & (self.lacking.len() - 1)
    }

    /// A leaf lacks one record more.
    pub fn lacks_more(&mut self, leaf: u32) {
        let at = self.counter(leaf);
        self.lacking[at] += 1;
    }

    /// A leaf lacks so many records fewer.
    pub fn lacks_fewer(&mut self, leaf: u32, records: usize) {
        let at = self.counter(leaf);
        self.lacking[at] -= records as u32;
    }

    /// Whether the neighbourhood of a leaf is worth a merge.
    pub fn is_enough(&self, leaf: u32) -> bool {
        self.lacking[self.counter(leaf)] >= self.least
    }

    /// A record that a leaf lacks is at the ring's end.
    pub fn look(&mut self, leaf: u32) {
        let lacking = self.lacking[self.counter(leaf)].min(MOST);
        self.by_lacking[lacking as usize] += 1;
        self.looked_at += 1;
        if self.looked_at < LOOKED_AT {
            return;
        }
        // The first record of a neighbourhood that is worth a merge has all of them merged.
        let merged = |least: u32| self.by_lacking[least as usize] * least;
        let (mut least, mut records) = (MOST, merged(MOST));
        while least > 1 && records * MOVES < self.looked_at {
            least -= 1;
            records += merged(least);
        }
        self.forget();
        self.least = least;
    }

    /// Each neighbourhood is worth a merge until more is known.
    pub fn forget(&mut self) {
        (self.least, self.looked_at) = (1, 0);
        self.by_lacking.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u32 = 16;

    /// Looks at records of neighbourhoods that lack so many, so many of each. Returns how many one must lack to be worth a merge.
    fn least_after(looked_at: &[(u32, u32)]) -> u32 {
        let mut worth = MergeThreshold::new(1 << 20, SIZE);
        worth.lacks_more(1000 * SIZE);
        assert!(worth.is_enough(1000 * SIZE), "nothing is known");
        for (at, (lacking, _)) in looked_at.iter().enumerate() {
            (0..*lacking).for_each(|_| worth.lacks_more(at as u32 * SIZE));
        }
        assert_eq!(looked_at.iter().map(|(_, records)| records).sum::<u32>(), LOOKED_AT);
        for (at, (_, records)) in looked_at.iter().enumerate() {
            (0..*records).for_each(|_| worth.look(at as u32 * SIZE + at as u32 % SIZE));
        }
        worth.least
    }

    /// The rule: the number is the largest with which so many records are merged that [`MOVES`] move on for each.
    #[test]
    fn a_number_is_told_by_which_two_records_move_on_for_each_that_is_merged() {
        // 64 records of neighbourhoods that lack 8 have 512 merged, which is half of what was looked at.
        assert_eq!(least_after(&[(1, LOOKED_AT - 64), (8, 64)]), 8);
        assert_eq!(least_after(&[(1, LOOKED_AT - 63), (8, 63)]), 1);
        assert_eq!(least_after(&[(1, LOOKED_AT - 64), (8, 60), (4, 4)]), 1);
        assert_eq!(least_after(&[(1, LOOKED_AT - 68), (8, 60), (4, 8)]), 4);
        assert_eq!(least_after(&[(5, LOOKED_AT)]), 5);
        assert_eq!(least_after(&[(3 * MOST, LOOKED_AT)]), MOST, "the largest count as MOST");
    }

    /// The rule: a neighbourhood lacks what its leaves lack, and no other's.
    #[test]
    fn leaves_of_a_neighbourhood_count_together() {
        let mut worth = MergeThreshold::new(1 << 20, SIZE);
        worth.least = 3;
        worth.lacks_more(0);
        worth.lacks_more(SIZE - 1);
        worth.lacks_more(SIZE);
        assert!(!worth.is_enough(0), "two of it, and one of the next");
        worth.lacks_more(7);
        assert!((0..SIZE).all(|leaf| worth.is_enough(leaf)) && !worth.is_enough(SIZE));
        worth.lacks_fewer(7, 1);
        assert!(!worth.is_enough(0));
    }
}
