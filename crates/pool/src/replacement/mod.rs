//! Which frame leaves the pool. One policy per file; [`Replacement`] is the registry.

mod lru;

use crate::FrameTable;
use fulgurite_base::{FrameId, PageId, Spec, SpecError};

/// A replacement policy: a virtual eviction order over the frames that hold pages.
///
/// The order law: evicting until nothing is left gives the frames in exactly the order in which
/// [`ReplacementPolicy::next`] gave them beforehand. It is a property test over every policy.
pub trait ReplacementPolicy {
    /// `frame` now holds `page`, after a miss.
    fn insert(&mut self, frame: FrameId, page: PageId);

    /// The page in `frame` was asked for again.
    fn access(&mut self, frame: FrameId, write: bool);

    /// `frame` no longer holds a page.
    fn remove(&mut self, frame: FrameId);

    /// The next unpinned frame in eviction order, from `cursor` on; changes only the cursor.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId>;

    /// Takes the first frame of the order out of it.
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        self.remove(frame);
        Some(frame)
    }
}

/// How far a reader of an eviction order has come. Policies use the fields as they like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Zero before the first frame.
    pub step: u64,
    /// A place in the policy's structure.
    pub place: u32,
}

/// The replacement policies by name, and a user's own.
pub enum Replacement {
    /// Least recently used.
    Lru(lru::Lru),
    /// Any other policy.
    Custom(Box<dyn ReplacementPolicy>),
}

type Constructor = fn(u32) -> Replacement;

/// Name, one line about it, constructor for a number of frames.
const REGISTRY: [(&str, &str, Constructor); 1] =
    [("lru", "the page that was used least recently", |frames| Replacement::Lru(lru::Lru::new(frames)))];

impl Replacement {
    /// Every policy's name, with one line about it.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        REGISTRY.iter().map(|(name, about, _)| (*name, *about))
    }

    /// The policy that `spec` names, for a pool of `frames`.
    pub fn from_spec(spec: Spec, frames: u32) -> Result<Replacement, SpecError> {
        let names: Vec<&str> = REGISTRY.iter().map(|(name, ..)| *name).collect();
        let constructor = REGISTRY.iter().find(|(name, ..)| *name == spec.name());
        let (.., make) = constructor.ok_or_else(|| SpecError::unknown("replacement", spec.name(), &names))?;
        spec.finish()?;
        Ok(make(frames))
    }
}

macro_rules! dispatch {
    ($self:expr, $policy:ident => $call:expr) => {
        match $self {
            Replacement::Lru($policy) => $call,
            Replacement::Custom($policy) => $call,
        }
    };
}

impl ReplacementPolicy for Replacement {
    #[inline]
    fn insert(&mut self, frame: FrameId, page: PageId) {
        dispatch!(self, policy => policy.insert(frame, page));
    }

    #[inline]
    fn access(&mut self, frame: FrameId, write: bool) {
        dispatch!(self, policy => policy.access(frame, write));
    }

    #[inline]
    fn remove(&mut self, frame: FrameId) {
        dispatch!(self, policy => policy.remove(frame));
    }

    #[inline]
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        dispatch!(self, policy => policy.next(frames, cursor))
    }

    #[inline]
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        dispatch!(self, policy => policy.evict(frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAMES: u32 = 12;

    /// A policy after some use: which frames it holds is up to the operations.
    fn used(name: &str, frames: &mut FrameTable, operations: &[(u8, u32, bool)]) -> Replacement {
        let mut policy = Replacement::from_spec(Spec::parse(name).unwrap(), FRAMES).unwrap();
        let mut held = [false; FRAMES as usize];
        for (page, (kind, frame, write)) in operations.iter().enumerate() {
            let (id, held) = (FrameId(*frame), &mut held[*frame as usize]);
            match kind {
                0 if *held => {
                    policy.remove(id);
                    *held = false;
                }
                _ if *held => {
                    policy.access(id, *write);
                    frames.set_dirty(id, frames.is_dirty(id) || *write);
                }
                _ => {
                    frames.load(id, PageId(page as u64));
                    policy.insert(id, PageId(page as u64));
                    *held = true;
                }
            }
        }
        policy
    }

    proptest! {
        /// The order law, with some frames pinned: they appear in neither order.
        #[test]
        fn draining_by_evict_gives_the_order_that_next_gave(
            operations in prop::collection::vec((0u8..4, 0..FRAMES, any::<bool>()), 0..120),
            pinned in prop::collection::btree_set(0..FRAMES, 0..4),
        ) {
            for (name, _) in Replacement::list() {
                let mut frames = FrameTable::new(FRAMES);
                let mut policy = used(name, &mut frames, &operations);
                for frame in &pinned {
                    prop_assert!(frames.try_latch(FrameId(*frame), false));
                }
                let mut cursor = Cursor::default();
                let order: Vec<FrameId> = std::iter::from_fn(|| policy.next(&frames, &mut cursor)).collect();
                prop_assert!(order.iter().all(|frame| !frames.is_pinned(*frame)));
                let drained: Vec<FrameId> = std::iter::from_fn(|| policy.evict(&frames)).collect();
                prop_assert_eq!(drained, order, "{} breaks the order law", name);
            }
        }
    }

    #[test]
    fn a_policy_that_breaks_the_law_would_be_caught() {
        /// Gives frames in rising order but evicts in falling order.
        struct Liar(Vec<FrameId>);
        impl ReplacementPolicy for Liar {
            fn insert(&mut self, frame: FrameId, _: PageId) {
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
        policy.insert(FrameId(0), PageId(0));
        policy.insert(FrameId(1), PageId(1));
        assert_ne!(policy.next(&frames, &mut Cursor::default()), policy.evict(&frames));
    }
}
