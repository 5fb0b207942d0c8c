//! Laws of every replacement policy.

use super::*;
use proptest::prelude::*;

const FRAMES: u32 = 12;

/// A policy after some use, as a pool would use it: which frames it holds is up to the operations.
fn used(name: &str, frames: &mut FrameTable, operations: &[(u8, u32, bool)]) -> Replacement {
    let mut policy = Replacement::from_spec(Spec::parse(name).unwrap(), FRAMES).unwrap();
    frames.set_erase_counts(Box::new(|page| page.0 * 7 % 5));
    let mut held = [false; FRAMES as usize];
    for (at, (kind, frame, write)) in operations.iter().enumerate() {
        let id = FrameId(*frame);
        match kind {
            0 if held[id.index()] => {
                policy.remove(id);
                held[id.index()] = false;
            }
            1 if held[id.index()] => {
                frames.set_dirty(id, false);
                policy.cleaned(id);
            }
            2 => {
                if let Some(victim) = policy.evict(frames) {
                    assert!(std::mem::take(&mut held[victim.index()]), "{name} evicts what it does not hold");
                }
            }
            _ if held[id.index()] => {
                policy.access(id, *write);
                frames.set_dirty(id, frames.is_dirty(id) || *write);
            }
            _ => {
                // Few pages, so that ghosts are met again.
                let page = PageId(at as u64 % 17);
                let arrival =
                    Arrival { write: *write, prefetched: at % 5 == 0 && !*write, recall: policy.miss(page) };
                frames.load(id, page);
                frames.set_dirty(id, *write);
                policy.insert(id, page, arrival);
                held[id.index()] = true;
            }
        }
    }
    policy
}

/// Every policy, and every option that changes the mechanism.
fn all() -> impl Iterator<Item = String> {
    let options = [
        "clock:max=1,initial=0",
        "lru-wsr:passed=move",
        "cflru:window=10%",
        "w-tinylfu:window=30%",
        "s3-fifo:promote=1",
    ];
    Replacement::list().map(|(name, _)| name.to_owned()).chain(options.map(str::to_owned))
}

proptest! {
    /// The order law, with some frames pinned: they appear in neither order, and everything else does.
    #[test]
    fn draining_by_evict_gives_the_order_that_next_gave(
        operations in prop::collection::vec((0u8..12, 0..FRAMES, any::<bool>()), 0..200),
        pinned in prop::collection::btree_set(0..FRAMES, 0..4),
    ) {
        for name in all() {
            let mut frames = FrameTable::new(FRAMES);
            let mut policy = used(&name, &mut frames, &operations);
            let mut cursor = Cursor::default();
            let everything: Vec<FrameId> = std::iter::from_fn(|| policy.next(&frames, &mut cursor)).collect();
            prop_assert_eq!(policy.next(&frames, &mut cursor), None, "{} goes on after its end", &name);
            for frame in &pinned {
                prop_assert!(frames.try_latch(FrameId(*frame), false));
            }
            cursor.reset();
            let order: Vec<FrameId> = std::iter::from_fn(|| policy.next(&frames, &mut cursor)).collect();
            let mut expected: Vec<FrameId> = everything.into_iter().filter(|frame| !frames.is_pinned(*frame)).collect();
            let mut unordered = order.clone();
            unordered.sort();
            expected.sort();
            prop_assert_eq!(unordered, expected, "{} forgets or repeats a frame", &name);
            let drained: Vec<FrameId> = std::iter::from_fn(|| policy.evict(&frames)).collect();
            prop_assert_eq!(drained, order, "{} breaks the order law", &name);
        }
    }
}

#[test]
fn a_policy_that_breaks_the_law_would_be_caught() {
    /// Gives frames in rising order but evicts in falling order.
    struct Liar(Vec<FrameId>);
    impl ReplacementPolicy for Liar {
        fn insert(&mut self, frame: FrameId, _: PageId, _: Arrival) {
            self.0.push(frame);
        }
        fn access(&mut self, _: FrameId, _: bool) {}
        fn remove(&mut self, frame: FrameId) {
            self.0.retain(|held| *held != frame);
        }
        fn next(&self, _: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
            cursor.step += 1;
            self.0.get(cursor.step as usize - 1).copied()
        }
        fn evict(&mut self, _: &FrameTable) -> Option<FrameId> {
            self.0.pop()
        }
    }
    let frames = FrameTable::new(2);
    let mut policy = Replacement::Custom(Box::new(Liar(Vec::new())));
    policy.insert(FrameId(0), PageId(0), Arrival::default());
    policy.insert(FrameId(1), PageId(1), Arrival::default());
    assert_ne!(policy.next(&frames, &mut Cursor::default()), policy.evict(&frames));
}
