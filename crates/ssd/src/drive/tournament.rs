//! A tournament tree: it finds the earliest of a fixed set of events.
//!
//! Every die, and each of the few host-side queues, has at most one next event, in its slot. A tree over the
//! slots finds the earliest event with log₂ n comparisons per change and without allocation; a heap would
//! need deletions. Equal times go to the lower slot, so the order of events is fixed.

/// The time of a slot without an event.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(super) struct Tournament {
    leaves: usize,
    /// The earliest event under each node. Node 1 is the root, the children of `i` are `2i` and `2i + 1`, and
    /// the leaves are last. Each node stores the time, so a change only touches the nodes on its path to the
    /// root and their siblings.
    nodes: Vec<Event>,
}

/// A time in the upper half and a slot in the lower half of one number. Comparing two such numbers needs no
/// branch that could be mispredicted.
type Event = u128;

#[inline]
fn event(slot: usize, time: u64) -> Event {
    u128::from(time) << 64 | slot as u128
}

impl Tournament {
    pub(super) fn new(slots: usize) -> Tournament {
        let leaves = slots.next_power_of_two().max(2);
        let mut nodes = vec![event(0, NEVER); 2 * leaves];
        for slot in 0..leaves {
            nodes[leaves + slot] = event(slot, NEVER);
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Tournament { leaves, nodes }
    }

    /// Sets the time of the next event of `slot`.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, time: u64) {
        let mut node = self.leaves + slot;
        let mut first = event(slot, time);
        self.nodes[node] = first;
        while node > 1 {
            first = first.min(self.nodes[node ^ 1]);
            node /= 2;
            // Stops at an unchanged node, since all nodes above it are unchanged too.
            if self.nodes[node] == first {
                return;
            }
            self.nodes[node] = first;
        }
    }

    /// Returns the time of the next event of `slot`.
    #[inline]
    pub(super) fn time(&self, slot: usize) -> u64 {
        (self.nodes[self.leaves + slot] >> 64) as u64
    }

    /// Returns the slot with the earliest event, and its time; the time is [`NEVER`] if there is no event.
    #[inline]
    pub(super) fn first(&self) -> (usize, u64) {
        let first = self.nodes[1];
        (first as u64 as usize, (first >> 64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least_of_all(
            slots in 1usize..70,
            changes in prop::collection::vec((0usize..70, 0u64..50), 1..200),
        ) {
            let mut tournament = Tournament::new(slots);
            let mut oracle = vec![NEVER; slots];
            for (slot, time) in changes {
                let slot = slot % slots;
                tournament.set(slot, time);
                oracle[slot] = time;
                let least = (0..slots).min_by_key(|slot| (oracle[*slot], *slot)).unwrap();
                prop_assert_eq!(tournament.first(), (least, oracle[least]));
                prop_assert_eq!(tournament.time(slot), time);
            }
        }
    }
}
