//! The interface of a placement policy: its input for each decision, and its methods.

use crate::mapping::AHEAD;
use crate::victim::VictimConfig;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The most streams of a policy. Each stream has its own open segment.
pub const STREAMS_AT_MOST: u16 = 256;

/// The context of a page that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    /// The logical page.
    pub lpn: u32,
    /// Whether garbage collection writes the page; otherwise the host does.
    pub copied: bool,
    /// The host's hint for the stream of the page; the default if `copied`.
    pub hint: StreamId,
    /// The segment that holds the page now; the victim if `copied`. `None` for an unmapped page.
    pub segment: Option<SegmentId>,
}

impl WriteContext {
    /// Creates the context for a copy of a page of a victim.
    #[inline]
    pub fn copy(lpn: u32, victim: SegmentId) -> WriteContext {
        WriteContext { lpn, copied: true, hint: StreamId::default(), segment: Some(victim) }
    }
}

/// The geometry of the drive that a policy is started for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveShape {
    /// The number of logical pages.
    pub logical_pages: u32,
    /// The number of segments.
    pub segments: u32,
    /// The number of pages in a segment.
    pub segment_pages: u32,
    /// The number of segments that collection keeps free.
    pub reserve: u32,
    /// The victim policy for segments that are in no queue of the placement policy.
    pub victim: VictimConfig,
}

/// A scale model of the drive that a policy wants beside it, to try another policy on a sample of the pages.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// The policy on trial.
    pub placement: Arc<dyn CustomPlacement>,
    /// The number of logical pages of the model.
    pub logical_pages: u32,
    /// The number of segments of the model.
    pub segments: u32,
    /// The number of pages in a segment of the model.
    pub segment_pages: u32,
}

/// A scale model at work: a translation layer without flash, with the victim policy and the reserve of the drive.
pub trait Model: fmt::Debug + Send + Sync {
    /// Writes a page.
    fn write(&mut self, lpn: u32);
    /// Trims a page.
    fn trim(&mut self, lpn: u32);
    /// Returns the number of pages programmed so far, copies included.
    fn programs(&self) -> u64;
    /// Returns the memory held, in bytes.
    fn bytes(&self) -> usize;
    /// Returns a clone with its state.
    fn boxed_clone(&self) -> Box<dyn Model>;
}

impl Clone for Box<dyn Model> {
    fn clone(&self) -> Box<dyn Model> {
        (**self).boxed_clone()
    }
}

/// A placement policy at work.
pub trait PlacementPolicy {
    /// Returns the stream for this page. It may be called any number of times, and changes nothing.
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId;

    /// Returns the stream for a page of the host that is written next. A policy may keep its computations for
    /// [`PlacementPolicy::written`], which follows. Collection can come between them and move the page.
    #[inline]
    fn place(&mut self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        self.stream(context, segments)
    }

    /// Learns that the page was written to the stream `to`. The context is that from before the write.
    #[inline]
    fn written(&mut self, _context: &WriteContext, _to: StreamId, _segments: &SegmentTable) {}

    /// Returns the stream for all copies of this victim, if the stream is the same for all pages.
    #[inline]
    fn copies_to(&self, _victim: SegmentId, _segments: &SegmentTable) -> Option<StreamId> {
        None
    }

    /// Learns that these pages of the victim were all copied to the stream `to`. The default calls
    /// [`PlacementPolicy::written`] for each page.
    #[inline]
    fn copied(&mut self, lpns: &[u32], victim: SegmentId, to: StreamId, segments: &SegmentTable) {
        for lpn in lpns {
            self.written(&WriteContext::copy(*lpn, victim), to, segments);
        }
    }

    /// Appends to `streams` the stream for the copy of each of these pages of the victim, and learns that the pages
    /// are written there. Called if [`PlacementPolicy::copies_to`] gives no stream. The default asks and tells page
    /// by page. A policy that overrides it must give the same streams, since a drive that moves the pages one by one
    /// asks for each.
    #[inline]
    fn copied_each(
        &mut self,
        lpns: &[u32],
        victim: SegmentId,
        segments: &SegmentTable,
        streams: &mut Vec<StreamId>,
    ) {
        copied_one_by_one(self, lpns, victim, segments, streams);
    }

    /// Learns that the page was trimmed.
    #[inline]
    fn trimmed(&mut self, _lpn: u32) {}

    /// Learns that a victim was picked. Its pages are not moved yet.
    #[inline]
    fn picked(&mut self, _victim: SegmentId, _segments: &SegmentTable) {}

    /// Returns the queue for full segments of this stream; `None` if the victim policy picks among them. The
    /// number is below the number of streams.
    #[inline]
    fn queue(&self, _stream: StreamId) -> Option<u16> {
        None
    }

    /// Returns the queue that gives the next victim, if a group is too large.
    fn overfull(&self, _segments: &SegmentTable) -> Option<u16> {
        None
    }

    /// Returns the new group of each stream's segments after the groups have changed, and `None` until the
    /// next change. Segments are then sorted into queues again, and groups that are too large pass their
    /// oldest segments on without copies.
    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        None
    }

    /// Receives, for each host write, the time at which its page will be overwritten or trimmed, counted in
    /// host page writes from the first; `u32::MAX` for never. Called once, before the first write, if
    /// [`PlacementConfig::needs_future`](super::PlacementConfig::needs_future) is true.
    fn foresee(&mut self, _next: Vec<u32>) {}

    /// Returns the models of the drive that the policy wants. Asked once, before the first write.
    fn models(&self) -> Vec<ModelConfig> {
        Vec::new()
    }

    /// Receives the models in the order of [`PlacementPolicy::models`]; `None` for a model without room for the
    /// streams of its policy. Called once, before the first write, if the policy wants models.
    fn receive(&mut self, _models: Vec<Option<Box<dyn Model>>>) {}

    /// Prefetches the entries that a host write of this page will touch.
    #[inline]
    fn prefetch(&self, _lpn: u32) {}

    /// Returns the memory held in addition to the page map, in bytes.
    fn bytes(&self) -> usize {
        0
    }
}

/// Asks a policy for the stream of the copy of each page, and tells it that the page is written there.
#[inline]
pub(super) fn copied_one_by_one<P: PlacementPolicy + ?Sized>(
    policy: &mut P,
    lpns: &[u32],
    victim: SegmentId,
    segments: &SegmentTable,
    streams: &mut Vec<StreamId>,
) {
    for (at, lpn) in lpns.iter().enumerate() {
        if let Some(ahead) = lpns.get(at + AHEAD) {
            policy.prefetch(*ahead);
        }
        let context = WriteContext::copy(*lpn, victim);
        let stream = policy.stream(&context, segments);
        policy.written(&context, stream, segments);
        streams.push(stream);
    }
}

/// A user's own placement policy as a value of a configuration: its name and its constructor.
pub trait CustomPlacement: fmt::Debug + Send + Sync {
    /// Returns the name of the policy.
    fn name(&self) -> &str;

    /// Returns the canonical text: the name and the options that matter.
    fn text(&self) -> String {
        self.name().to_owned()
    }

    /// Returns the number of streams; pages go to the streams `0..streams`.
    fn streams(&self) -> u16;

    /// Returns whether the policy must know all writes beforehand.
    fn needs_future(&self) -> bool {
        false
    }

    /// Starts the policy on this drive.
    fn start(&self, drive: &DriveShape) -> Box<dyn AnyPlacement>;
}

/// A policy is equal to its clones and to no other policy.
impl PartialEq for dyn CustomPlacement {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl Eq for dyn CustomPlacement {}

/// A placement policy of any type, for `dyn`.
pub trait AnyPlacement: PlacementPolicy + Send + Sync {
    /// Returns a clone with its state.
    fn boxed_clone(&self) -> Box<dyn AnyPlacement>;
    /// Returns the policy itself, for a downcast.
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
        // Clones the policy and not the box, which is an `AnyPlacement` too.
        (**self).boxed_clone()
    }
}

impl fmt::Debug for dyn AnyPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyPlacement")
    }
}
