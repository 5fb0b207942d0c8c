//! The interface of a victim policy.

use crate::{SegmentId, SegmentTable};
use std::fmt;
use std::ops::Range;

/// A victim policy's index over sealed segments. It is informed of changes and picks on request; the
/// translation layer does the collecting. Every call is O(1) or O(log n), never a scan of all segments.
pub trait VictimPolicy {
    /// Learns that `segment` is full and can now be picked.
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable);
    /// Learns that a page of the sealed `segment` became invalid; `table` has the new count.
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable);
    /// Removes the next victim from the index and returns it; `None` if no segment is sealed.
    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId>;
    /// Removes the sealed `segment` from the index, because it was chosen without the policy. This is rare.
    fn remove(&mut self, segment: SegmentId, table: &SegmentTable);
}

/// A user's own victim policy as a value of a configuration: its name and its constructor.
pub trait CustomVictim: fmt::Debug + Send + Sync {
    /// Returns the name of the policy.
    fn name(&self) -> &str;

    /// Returns the canonical text: the name and the options that matter.
    fn text(&self) -> String {
        self.name().to_owned()
    }

    /// Creates an empty index for these segments of `segment_pages` pages. The range belongs to one unit of
    /// collection, so it need not begin with the first segment of the drive.
    fn start(&self, segments: Range<u32>, segment_pages: u32) -> Box<dyn AnyVictim>;
}

/// A policy is equal to its clones and to no other policy.
impl PartialEq for dyn CustomVictim {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn CustomVictim {}

/// A victim policy of any type, for `dyn`.
pub trait AnyVictim: VictimPolicy + Send + Sync {
    /// Returns a clone with its state.
    fn boxed_clone(&self) -> Box<dyn AnyVictim>;
}

impl<V: VictimPolicy + Clone + Send + Sync + 'static> AnyVictim for V {
    fn boxed_clone(&self) -> Box<dyn AnyVictim> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyVictim> {
    fn clone(&self) -> Box<dyn AnyVictim> {
        // Clones the policy and not the box, which is an `AnyVictim` too.
        (**self).boxed_clone()
    }
}

impl fmt::Debug for dyn AnyVictim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyVictim")
    }
}
