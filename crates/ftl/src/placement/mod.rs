//! Which stream (append point) a page is written to. One policy per file; [`Placement`] is the
//! registry, [`Placer`] a policy at work. A stream has one open segment of its own; the segments that were
//! written by it are its group.
//!
//! One mechanism serves every policy. The translation layer asks for the stream of each page, of the host or
//! copied, and tells what became of it. A policy with groups of a fixed size says which of them is too
//! large; victims then come from that group, oldest first. Time is the number of pages that the host has
//! written, [`SegmentTable::now`].

pub mod autostream;
pub mod dac;
pub mod fulgurite;
pub mod hints;
pub mod mida;
pub mod midas;
pub mod none;
pub mod oracle;
mod runaway;
pub mod sep_gc;
pub mod sepbit;

use crate::victim::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::StreamId;
use fulgurite_base::{Spec, SpecError};
use std::fmt;

/// What is known about a page that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    /// The logical page.
    pub lpn: u32,
    /// Whether garbage collection writes it, rather than the host.
    pub copied: bool,
    /// The host's hint; nothing when `copied`.
    pub hint: StreamId,
    /// The segment that holds the page now: the victim when `copied`.
    pub segment: Option<SegmentId>,
}

impl WriteContext {
    /// A page of a victim that is copied.
    #[inline]
    pub fn copy(lpn: u32, victim: SegmentId) -> WriteContext {
        WriteContext { lpn, copied: true, hint: StreamId::default(), segment: Some(victim) }
    }
}

/// The drive that a policy is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Segments.
    pub segments: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Segments kept free.
    pub reserve: u32,
}

/// A placement policy at work.
pub trait PlacementPolicy {
    /// The stream for this page. Asked as often as need be, and changes nothing.
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId;

    /// The page is written; the context is that of before.
    #[inline]
    fn written(&mut self, _context: &WriteContext, _to: StreamId, _segments: &SegmentTable) {}

    /// The one stream that all copies of this victim go to, where it does not depend on the page.
    #[inline]
    fn copies_to(&self, _victim: SegmentId, _segments: &SegmentTable) -> Option<StreamId> {
        None
    }

    /// All of these pages of the victim are copied to that stream: [`PlacementPolicy::written`] for each.
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

    /// The queue in which the full segments of this stream wait for their turn, where they do: one of as many
    /// as there are streams. The others are the victim policy's.
    #[inline]
    fn queue(&self, _stream: StreamId) -> Option<u16> {
        None
    }

    /// The queue that the next victim comes from, where one holds more than it may.
    fn overfull(&self, _segments: &SegmentTable) -> Option<u16> {
        None
    }

    /// By stream, the stream that its segments now belong to, where groups have changed since this was asked;
    /// queues are sorted anew, and groups that are too large pass their oldest segments on as they are.
    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        None
    }

    /// The victim policy that the drive has.
    fn use_victims(&mut self, _victim: VictimPolicy) {}

    /// Begins to fetch what a write of this page by the host will touch.
    #[inline]
    fn prefetch(&self, _lpn: u32) {}

    /// Bytes of memory besides the mapping.
    fn bytes(&self) -> usize {
        0
    }
}

macro_rules! placements {
    ($($name:literal $variant:ident($module:ident::$policy:ident) $about:literal)*) => {
        /// The placement policies by name, with their options.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Placement {
            $($variant($module::Options),)*
        }

        type Constructor = fn(&mut Spec) -> Result<Placement, SpecError>;

        /// Name, one line about it, constructor.
        const REGISTRY: &[(&str, &str, Constructor)] = &[
            $(($name, $about, |spec| Ok(Placement::$variant($module::Options::from_spec(spec)?))),)*
        ];

        impl Placement {
            /// The policy's name on the command line.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Placement::$variant(_) => $name,)*
                }
            }

            /// The policy at work on a drive of this shape.
            pub fn start(&self, shape: &Shape) -> Placer {
                match self {
                    $(Placement::$variant(options) => Placer::$variant($module::$policy::new(*options, shape)),)*
                }
            }

            /// Streams that pages may go to: `0..streams`.
            pub fn streams(&self) -> u16 {
                match self {
                    $(Placement::$variant(options) => options.streams(),)*
                }
            }

            fn options(&self) -> String {
                match self {
                    $(Placement::$variant(options) => options.to_string(),)*
                }
            }
        }

        /// A policy at work.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each variant's file documents it
        #[allow(clippy::large_enum_variant)] // a drive has one, and asks it for every page
        pub enum Placer {
            $($variant($module::$policy),)*
        }

        macro_rules! dispatch {
            ($self:expr, $p:ident => $call:expr) => {
                match $self {
                    $(Placer::$variant($p) => $call,)*
                }
            };
        }
    };
}

placements! {
    "none" None(none::NoPlacement) "one stream for host writes and copies alike"
    "sep-gc" SepGc(sep_gc::SepGc) "host writes and copies apart"
    "hints" Hints(hints::Hints) "a stream for every hint that writes carry; streams=8"
    "dac" Dac(dac::Dac) "by frequency (DAC, CAT): hotter with every write, colder with every copy; groups=6"
    "autostream" AutoStream(autostream::AutoStream) "by the decayed frequency of its chunk; streams=5, chunk=512, decay=16384"
    "mida" Mida(mida::Mida) "by how often the page was copied since it was written; groups=8"
    "sepbit" SepBit(sepbit::SepBit) "by the lifespan of the page before and by age; queue=yes, collected=16"
    "midas" Midas(midas::Midas) "a chain of groups, sized by a model of how long pages live; hot=yes, groups=adapt|fixed, irregular=yes, epoch=400%, sample=100, bucket=0, update=5%, error=10%, gain=0.5%, stop=5, as=paper|program"
    "fulgurite" Fulgurite(fulgurite::Fulgurite) "Fulgurite's own: by the time that pages which looked alike had left to live, two bytes a page, with hazard victims; streams=11, step=12, memory=8"
    "oracle" Oracle(oracle::Oracle) "by the true time of invalidation; gc only; classes=log2|seed, sizes=no"
}

impl Placement {
    /// One stream for everything.
    pub const NONE: Placement = Placement::None(NoOptions);

    /// Every policy's name, with one line about it.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        REGISTRY.iter().map(|(name, about, _)| (*name, *about))
    }

    /// The policy that `spec` names.
    pub fn from_spec(mut spec: Spec) -> Result<Placement, SpecError> {
        let names: Vec<&str> = Self::list().map(|(name, _)| name).collect();
        let entry = REGISTRY.iter().find(|(name, ..)| *name == spec.name());
        let (.., make) = entry.ok_or_else(|| SpecError::unknown("placement", spec.name(), &names))?;
        let placement = make(&mut spec)?;
        spec.finish()?;
        Ok(placement)
    }

    /// Placement on a drive that keeps `streams` apart by the host's hints.
    pub fn with_streams(streams: u32) -> Result<Placement, SpecError> {
        match streams {
            1 => Ok(Placement::NONE),
            streams => Ok(Placement::Hints(hints::Options::with_streams(streams)?)),
        }
    }

    /// Streams of the host's hints that are kept apart; 1 where hints change nothing.
    pub fn hints(&self) -> u16 {
        match self {
            Placement::Hints(options) => options.streams,
            _ => 1,
        }
    }

    /// Whether it must know all writes beforehand.
    pub fn needs_future(&self) -> bool {
        matches!(self, Placement::Oracle(_))
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What is as it always is need not be said.
        let usual = Spec::parse(self.name()).and_then(Placement::from_spec).map(|usual| usual.options());
        let usual = usual.unwrap_or_default();
        let (own, usual) = (self.options(), usual.split(',').collect::<Vec<_>>());
        let said: Vec<&str> = own.split(',').filter(|option| !usual.contains(option)).collect();
        let colon = if said.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}", self.name(), said.join(","))
    }
}

impl Placer {
    /// Tells when the page of each write of the host will be written again or trimmed, in page writes of the
    /// host from the first; `u32::MAX` for never. For policies that need it.
    pub fn foresee(&mut self, next: Vec<u32>) {
        if let Placer::Oracle(oracle) = self {
            oracle.foresee(next);
        }
    }
}

impl Placer {
    /// MiDAS, to look at its groups; nothing under other policies.
    pub fn midas(&self) -> Option<&midas::Midas> {
        match self {
            Placer::Midas(midas) => Some(midas),
            _ => None,
        }
    }
}

impl PlacementPolicy for Placer {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        dispatch!(self, policy => policy.stream(context, segments))
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, to: StreamId, segments: &SegmentTable) {
        dispatch!(self, policy => policy.written(context, to, segments));
    }

    #[inline]
    fn copies_to(&self, victim: SegmentId, segments: &SegmentTable) -> Option<StreamId> {
        dispatch!(self, policy => policy.copies_to(victim, segments))
    }

    fn copied(&mut self, lpns: &[u32], victim: SegmentId, to: StreamId, segments: &SegmentTable) {
        dispatch!(self, policy => policy.copied(lpns, victim, to, segments));
    }

    #[inline]
    fn trimmed(&mut self, lpn: u32) {
        dispatch!(self, policy => policy.trimmed(lpn));
    }

    #[inline]
    fn picked(&mut self, victim: SegmentId, segments: &SegmentTable) {
        dispatch!(self, policy => policy.picked(victim, segments));
    }

    #[inline]
    fn queue(&self, stream: StreamId) -> Option<u16> {
        dispatch!(self, policy => policy.queue(stream))
    }

    fn overfull(&self, segments: &SegmentTable) -> Option<u16> {
        dispatch!(self, policy => policy.overfull(segments))
    }

    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        dispatch!(self, policy => policy.take_regrouping())
    }

    fn use_victims(&mut self, victim: VictimPolicy) {
        dispatch!(self, policy => policy.use_victims(victim));
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        dispatch!(self, policy => policy.prefetch(lpn));
    }

    fn bytes(&self) -> usize {
        dispatch!(self, policy => policy.bytes())
    }
}

/// The options of a policy that has none, and writes to so many streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoOptions<const STREAMS: u16>;

impl<const STREAMS: u16> NoOptions<STREAMS> {
    fn from_spec(_: &mut Spec) -> Result<Self, SpecError> {
        Ok(NoOptions)
    }

    fn streams(&self) -> u16 {
        STREAMS
    }
}

impl<const STREAMS: u16> fmt::Display for NoOptions<STREAMS> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// The options of a policy with a stream for each of its groups, `DEFAULT` where nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups<const DEFAULT: u16> {
    /// How many.
    pub groups: u16,
}

impl<const DEFAULT: u16> Groups<DEFAULT> {
    fn from_spec(spec: &mut Spec) -> Result<Self, SpecError> {
        Ok(Groups { groups: take_streams(spec, "groups", DEFAULT, 2)? })
    }

    fn streams(&self) -> u16 {
        self.groups
    }
}

impl<const DEFAULT: u16> fmt::Display for Groups<DEFAULT> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "groups={}", self.groups)
    }
}

/// Most streams that a policy may have: each has an open segment of its own.
pub const STREAMS_AT_MOST: u16 = 256;

/// An option that is a number of streams.
fn take_streams(spec: &mut Spec, key: &'static str, default: u16, least: u16) -> Result<u16, SpecError> {
    let streams = spec.take::<u32>(key)?.unwrap_or(u32::from(default));
    u16::try_from(streams).ok().filter(|streams| (least..=STREAMS_AT_MOST).contains(streams)).ok_or_else(
        || {
            SpecError::new(format!(
                "{key}={streams} of {} is out of range; accepted: {least} to {STREAMS_AT_MOST}",
                spec.name()
            ))
        },
    )
}
