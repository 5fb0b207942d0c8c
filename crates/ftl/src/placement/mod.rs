//! Decides to which stream (append point) a page is written. Each policy has a file. [`PlacementConfig`] chooses one by
//! name, and [`Placer`] is a policy at work. A stream has one open segment of its own. The segments that a stream
//! wrote are its group.
//!
//! One mechanism serves every policy. The translation layer asks for the stream of each page of the host and of
//! each copy, and tells what became of it. A policy with groups of a fixed size says which group is too large.
//! Victims then come from that group, oldest first. Time is the number of pages that the host has written,
//! [`SegmentTable::now`].
//!
//! A new policy is one file with its `mod` line below and one line of `placements!`.

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

use crate::custom::Custom;
use crate::victim::VictimConfig;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::with_name;
use fulgurite_base::{Declared, Entry, Form, Registry, Spec, SpecError, StreamId};
use std::any::Any;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveShape {
    /// Pages that the host sees.
    pub logical_pages: u32,
    /// Segments.
    pub segments: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Segments kept free.
    pub reserve: u32,
    /// Who picks among the segments that are in no queue of the policy's own.
    pub victim: VictimConfig,
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

    /// The queue in which the full segments of this stream wait for their turn, where they do: a number below
    /// that of streams. All other segments are the victim policy's.
    #[inline]
    fn queue(&self, _stream: StreamId) -> Option<u16> {
        None
    }

    /// The queue that the next victim comes from, where one holds more than it may.
    fn overfull(&self, _segments: &SegmentTable) -> Option<u16> {
        None
    }

    /// By stream, the stream that its segments now belong to, where groups have changed since this was asked.
    /// Queues are then sorted anew, and groups that are too large pass their oldest segments on as they are.
    fn take_regrouping(&mut self) -> Option<Vec<StreamId>> {
        None
    }

    /// Gives, for each write of the host, when its page will be written again or trimmed, in page writes of the
    /// host from the first; `u32::MAX` for never. Called once, before the first write, where
    /// [`ConfiguredPlacement::NEEDS_FUTURE`] asks for it.
    fn foresee(&mut self, _next: Vec<u32>) {}

    /// Begins to fetch what a write of this page by the host will touch.
    #[inline]
    fn prefetch(&self, _lpn: u32) {}

    /// Bytes of memory besides the mapping.
    fn bytes(&self) -> usize {
        0
    }
}

/// A policy together with its options: what [`PlacementConfig`] is made of.
pub trait ConfiguredPlacement: PlacementPolicy + Sized {
    /// Its options; the default is what the name alone stands for.
    type Config: Declared + Default;
    /// Whether it must know all writes beforehand.
    const NEEDS_FUTURE: bool = false;

    /// Streams that pages may go to: `0..streams`.
    fn streams(config: &Self::Config) -> u16;

    /// The policy at work on this drive.
    fn start(config: &Self::Config, drive: &DriveShape) -> Self;
}

/// A policy of which nothing else is known: [`PlacementPolicy`] for `dyn`.
pub trait AnyPlacement: PlacementPolicy + Send + Sync {
    /// A copy of its state.
    fn boxed_clone(&self) -> Box<dyn AnyPlacement>;
    /// The policy itself, for those who know its type.
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
        // Of the policy, not of the box, which is an `AnyPlacement` too.
        (**self).boxed_clone()
    }
}

impl fmt::Debug for dyn AnyPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyPlacement")
    }
}

/// Makes a policy for a drive.
type StartPlacement = dyn Fn(&DriveShape) -> Box<dyn AnyPlacement> + Send + Sync;

/// How a policy from outside is made.
pub struct PlacementMaker {
    streams: u16,
    needs_future: bool,
    start: Box<StartPlacement>,
}

/// Makes a configuration from the options of a spec.
pub type MakePlacement = fn(&mut Spec) -> Result<PlacementConfig, SpecError>;

macro_rules! placements {
    ($($name:literal $variant:ident($policy:ty) $about:literal)*) => {
        /// A placement policy with its options.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum PlacementConfig {
            $($variant(<$policy as ConfiguredPlacement>::Config),)*
            /// A policy from outside; made by [`PlacementConfig::custom`].
            Custom(Custom<PlacementMaker>),
        }

        static REGISTRY: Registry<MakePlacement> = Registry {
            kind: "placement",
            entries: &[$(Entry {
                name: $name,
                about: $about,
                options: || <$policy as ConfiguredPlacement>::Config::default().describe_options(),
                make: |spec| {
                    let usual = <$policy as ConfiguredPlacement>::Config::default();
                    Ok(PlacementConfig::$variant(usual.with_options(spec)?))
                },
            },)*],
        };

        impl PlacementConfig {
            /// The policy's name on the command line.
            pub fn name(&self) -> &str {
                match self {
                    $(PlacementConfig::$variant(_) => $name,)*
                    PlacementConfig::Custom(custom) => custom.name(),
                }
            }

            /// The policy at work on a drive of this shape.
            pub fn start(&self, drive: &DriveShape) -> Placer {
                match self {
                    $(PlacementConfig::$variant(config) => {
                        Placer::$variant(<$policy as ConfiguredPlacement>::start(config, drive))
                    })*
                    PlacementConfig::Custom(custom) => Placer::Custom((custom.make().start)(drive)),
                }
            }

            /// Streams that pages may go to: `0..streams`.
            pub fn streams(&self) -> u16 {
                match self {
                    $(PlacementConfig::$variant(config) => <$policy as ConfiguredPlacement>::streams(config),)*
                    PlacementConfig::Custom(custom) => custom.make().streams,
                }
            }

            /// Whether it must know all writes beforehand.
            pub fn needs_future(&self) -> bool {
                match self {
                    $(PlacementConfig::$variant(_) => <$policy as ConfiguredPlacement>::NEEDS_FUTURE,)*
                    PlacementConfig::Custom(custom) => custom.make().needs_future,
                }
            }

            /// The options that differ from the default.
            fn options(&self) -> String {
                match self {
                    $(PlacementConfig::$variant(config) => config.options_beside(&Default::default()),)*
                    PlacementConfig::Custom(_) => String::new(),
                }
            }
        }

        /// A policy at work.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each variant's file documents it
        #[allow(clippy::large_enum_variant)] // a drive has one, and asks it for every page
        pub enum Placer {
            $($variant($policy),)*
            Custom(Box<dyn AnyPlacement>),
        }

        macro_rules! dispatch {
            ($self:expr, $p:ident => $call:expr) => {
                match $self {
                    $(Placer::$variant($p) => $call,)*
                    Placer::Custom($p) => $call,
                }
            };
        }

        impl Placer {
            /// The policy itself, where it is a `P`.
            pub fn policy<P: 'static>(&self) -> Option<&P> {
                match self {
                    $(Placer::$variant(policy) => (policy as &dyn Any).downcast_ref(),)*
                    Placer::Custom(policy) => (**policy).as_any().downcast_ref(),
                }
            }
        }
    };
}

placements! {
    "none" None(none::NoPlacement) "one stream for host writes and copies alike"
    "sep-gc" SepGc(sep_gc::SepGc) "host writes and copies apart"
    "hints" Hints(hints::Hints) "a stream for every hint that writes carry"
    "dac" Dac(dac::Dac) "by frequency (DAC, CAT): hotter with every write, colder with every copy"
    "autostream" AutoStream(autostream::AutoStream) "by the decayed frequency of its chunk"
    "mida" Mida(mida::Mida) "by how often the page was copied since it was written"
    "sepbit" SepBit(sepbit::SepBit) "by the lifespan of the page before and by age"
    "midas" Midas(midas::Midas) "a chain of groups, sized by a model of how long pages live"
    "fulgurite" Fulgurite(fulgurite::Fulgurite) "Fulgurite's own: by the time that pages which looked alike had left to live, two bytes a page, with hazard victims"
    "oracle" Oracle(oracle::Oracle) "by the true time of invalidation; gc only"
}

impl PlacementConfig {
    /// One stream for everything.
    pub const ONE_STREAM: PlacementConfig = PlacementConfig::None(fulgurite_base::NoOptions);

    /// How a policy with its options is written where it is an option itself.
    pub const FORM: Form<PlacementConfig> = Form {
        written: "NAME",
        parse: |text| PlacementConfig::from_spec(Spec::parse(text)?),
        show: PlacementConfig::to_string,
    };

    /// Every policy that can be chosen by name.
    pub fn registry() -> &'static Registry<MakePlacement> {
        &REGISTRY
    }

    /// The policy that `spec` names.
    pub fn from_spec(spec: Spec) -> Result<PlacementConfig, SpecError> {
        REGISTRY.read(spec)
    }

    /// A policy from outside, called `name` in tables.
    pub fn custom<P>(name: &str, config: P::Config) -> PlacementConfig
    where
        P: ConfiguredPlacement + AnyPlacement + 'static,
        P::Config: Send + Sync,
    {
        let name = with_name(name, &config.options_beside(&P::Config::default()));
        let (streams, needs_future) = (P::streams(&config), P::NEEDS_FUTURE);
        let start = Box::new(move |drive: &DriveShape| -> Box<dyn AnyPlacement> {
            Box::new(P::start(&config, drive))
        });
        PlacementConfig::Custom(Custom::new(&name, PlacementMaker { streams, needs_future, start }))
    }

    /// Placement that keeps `streams` apart by the host's hints; with one stream there is nothing to keep apart.
    pub fn by_hints(streams: u16) -> PlacementConfig {
        if streams == 1 {
            return PlacementConfig::ONE_STREAM;
        }
        PlacementConfig::Hints(hints::HintsConfig { streams })
    }

    /// Streams of the host's hints that are kept apart; 1 where hints change nothing.
    pub fn hints(&self) -> u16 {
        match self {
            PlacementConfig::Hints(config) => config.streams,
            _ => 1,
        }
    }
}

impl fmt::Display for PlacementConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_name(self.name(), &self.options()))
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

    fn foresee(&mut self, next: Vec<u32>) {
        dispatch!(self, policy => policy.foresee(next));
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        dispatch!(self, policy => policy.prefetch(lpn));
    }

    fn bytes(&self) -> usize {
        dispatch!(self, policy => policy.bytes())
    }
}

/// Most streams that a policy may have: each has an open segment of its own.
pub const STREAMS_AT_MOST: u16 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: only placement by hints keeps streams of hints apart, as many as it was made for; a single one is no placement at all.
    #[test]
    fn hints_are_kept_apart_by_hints_alone() {
        assert_eq!([1, 2, 5].map(|streams| PlacementConfig::by_hints(streams).hints()), [1, 2, 5]);
        assert_eq!(PlacementConfig::by_hints(1), PlacementConfig::ONE_STREAM);
        for name in PlacementConfig::registry().names().filter(|name| *name != "hints") {
            assert_eq!(PlacementConfig::from_spec(Spec::parse(name).unwrap()).unwrap().hints(), 1, "{name}");
        }
    }
}
