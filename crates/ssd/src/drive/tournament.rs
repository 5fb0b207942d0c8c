//! The earliest of a fixed set of events: a tournament tree.
//!
//! Every die, and each of the few host-side queues, has at most one next event. A tree over these
//! slots finds the earliest with log₂ n comparisons per change and no allocation; a heap would
//! need deletions. Equal times go to the lower slot, so the order of events is fixed.

/// No event.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(super) struct Tournament {
    leaves: usize,
    times: Vec<u64>,
    /// `winners[1]` is the slot with the earliest event; children of `i` are `2i` and `2i + 1`.
    winners: Vec<u32>,
}

impl Tournament {
    pub(super) fn new(slots: usize) -> Tournament {
        let leaves = slots.next_power_of_two().max(2);
        let mut winners = vec![0; 2 * leaves];
        for slot in 0..leaves {
            winners[leaves + slot] = slot as u32;
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Tournament { leaves, times: vec![NEVER; leaves], winners }
    }

    /// Sets the time of `slot`'s next event.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, time: u64) {
        self.times[slot] = time;
        let mut node = (self.leaves + slot) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            self.winners[node] =
                if self.times[right as usize] < self.times[left as usize] { right } else { left };
            node /= 2;
        }
    }

    /// Sets the time of `slot`'s next event unless it has one.
    pub(super) fn set_if_never(&mut self, slot: usize, time: u64) {
        if self.times[slot] == NEVER {
            self.set(slot, time);
        }
    }

    /// The slot with the earliest event and its time, [`NEVER`] if there is none.
    #[inline]
    pub(super) fn first(&self) -> (usize, u64) {
        let slot = self.winners[1] as usize;
        (slot, self.times[slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all(slots in 1usize..70, changes in prop::collection::vec((0usize..70, 0u64..50), 1..200)) {
            let mut tournament = Tournament::new(slots);
            let mut oracle = vec![NEVER; slots];
            for (slot, time) in changes {
                let slot = slot % slots;
                tournament.set(slot, time);
                oracle[slot] = time;
                let least = (0..slots).min_by_key(|slot| (oracle[*slot], *slot)).unwrap();
                prop_assert_eq!(tournament.first(), (least, oracle[least]));
            }
        }
    }
}
