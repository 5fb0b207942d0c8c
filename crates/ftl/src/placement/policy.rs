//! The interface of a placement policy: its input for each decision, and its methods.

use crate::victim::VictimConfig;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use std::any::Any;
use std::fmt;

/// The most streams of a policy. Each has its own open segment.
pub const STREAMS_AT_MOST: u16 = 256;

/// The context of a page that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    /// The logical page.
    pub lpn: u32,
    /// Whether garbage collection writes the page; otherwise the host does.
    pub copied: bool,
    /// The host's hint; unset if `copied`.
    pub hint: StreamId,
    /// The segment that holds the page now: the victim if `copied`.
    pub segment: Option<SegmentId>,
}

impl WriteContext {
    /// The context for a copy of a page of a victim.
    #[inline]
    pub fn copy(lpn: u32, victim: SegmentId) -> WriteContext {
        WriteContext { lpn, copied: true, hint: StreamId::default(), segment: Some(victim) }
    }
}

/// The shape of the drive that a policy is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveShape {
    /// Logical pages.
    pub logical_pages: u32,
    /// Segments.
    pub segments: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Segments kept free.
    pub reserve: u32,
    /// The victim policy for segments that are in no queue of the placement policy.
    pub victim: VictimConfig,
}

/// A placement policy at work.
pub trait PlacementPolicy {
    /// The stream for this page. It may be called any number of times, and changes nothing.
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId;

    /// The page was written; the context is that from before the write.
    #[inline]
    fn written(&mut self, _context: &WriteContext, _to: StreamId, _segments: &SegmentTable) {}

    /// The stream for all copies of this victim, if it is the same for all pages.
    #[inline]
    fn copies_to(&self, _victim: SegmentId, _segments: &SegmentTable) -> Option<StreamId> {
        None
    }

    /// These pages of the victim were all copied to that stream. The default calls
    /// [`PlacementPolicy::written`] for each.
    #[inline]
    fn copied(&mut self, lpns: &[u32], victim: SegmentId, to: StreamId, segments: &SegmentTable) {
        for lpn in lpns {
            self.written(&WriteContext::copy(*lpn, victim), to, segments);
        }
    }

    /// The page was trimmed.
    #[inline]
    fn trimmed(&mut self, _lpn: u32) {}

    /// A victim was picked; its pages are still there.
    #[inline]
    fn picked(&mut self, _victim: SegmentId, _segments: &SegmentTable) {}

    /// The queue for full segments of this stream; `None` if the victim policy picks among them. The number
    /// is below the number of streams.
    #[inline]
    fn queue(&self, _stream: StreamId) -> Option<u16> {
        None
    }

    /// The queue that gives the next victim, if a group is too large.
    fn overfull(&self, _segments: &SegmentTable) -> Option<u16> {
        None
    }

    /// After the groups have changed: the new group of each stream's segments. Segments are then sorted into
    /// queues again, and groups that are too large pass their oldest segments on without copies. Returns
    /// `None` until the next change.
    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        None
    }

    /// Receives, for each host write, the time at which its page will be overwritten or trimmed, counted in
    /// host page writes from the first; `u32::MAX` for never. Called once, before the first write, if
    /// [`PlacementConfig::needs_future`](super::PlacementConfig::needs_future) is true.
    fn foresee(&mut self, _next: Vec<u32>) {}

    /// Prefetches the entries that a host write of this page will touch.
    #[inline]
    fn prefetch(&self, _lpn: u32) {}

    /// Bytes of memory in addition to the mapping.
    fn bytes(&self) -> usize {
        0
    }
}

/// A user's own placement policy as a part of a description: its name and its constructor.
pub trait CustomPlacement: fmt::Debug + Send + Sync {
    /// The name.
    fn name(&self) -> &str;

    /// The canonical text: the name and the options that matter.
    fn text(&self) -> String {
        self.name().to_owned()
    }

    /// The number of streams; pages go to the streams `0..streams`.
    fn streams(&self) -> u16;

    /// Whether the policy must know all writes beforehand.
    fn needs_future(&self) -> bool {
        false
    }

    /// The policy at work on this drive.
    fn start(&self, drive: &DriveShape) -> Box<dyn AnyPlacement>;
}

/// A policy is equal to its clones and to nothing else.
impl PartialEq for dyn CustomPlacement {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn CustomPlacement {}

/// A placement policy of any type, for `dyn`.
pub trait AnyPlacement: PlacementPolicy + Send + Sync {
    /// A clone with its state.
    fn boxed_clone(&self) -> Box<dyn AnyPlacement>;
    /// The policy itself, for a downcast.
    fn as_any(&self) -> &dyn Any;
}

impl<P: PlacementPolicy + Clone + Send + Sync + 'static> AnyPlacement for P {
    fn boxed_clone(&self) -> Box<dyn AnyPlacement> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Clone for Box<dyn AnyPlacement> {
    fn clone(&self) -> Box<dyn AnyPlacement> {
        // This clones the policy and not the box, which is an `AnyPlacement` too.
        (**self).boxed_clone()
    }
}

impl fmt::Debug for dyn AnyPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyPlacement")
    }
}
