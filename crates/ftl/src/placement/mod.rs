//! Placement: chooses the stream of each page. Each policy has a file. [`PlacementConfig`] selects a policy
//! by name, and [`Placer`] is a policy at work. Each stream has its own open segment, to which its pages are
//! written. The segments that a stream wrote are its group.
//!
//! All policies share one mechanism. The translation layer asks the policy for the stream of each host page
//! and each copy, and then reports the write. A policy with groups of a fixed size names the group that is
//! too large; the next victim is the oldest segment of that group. Time is the number of pages that the host
//! has written, [`SegmentTable::now`].
//!
//! A new policy is one file with its `mod` line below and one line in `placements!`.

mod policy;
mod autostream;
mod dac;
mod expired;
mod dogi;
mod fdp;
mod future;
mod lifespan;
mod runaway;
mod fulgurite;
mod hints;
mod mida;
mod nodap;
mod none;
pub mod midas;
pub mod oracle;
mod sep_gc;
mod sepbit;
mod two_r;
mod warcip;

pub use policy::{
    AnyPlacement, CustomPlacement, DriveShape, Model, ModelConfig, PlacementPolicy, STREAMS_AT_MOST,
    WriteContext,
};

use crate::{SegmentId, SegmentTable};
use autostream::AutoStreamConfig;
use dac::DacConfig;
use dogi::DogiConfig;
use fdp::FdpConfig;
use fulgurite::FulguriteConfig;
use fulgurite_base::{Form, Isolation, NoOptions, StreamId, config_enum};
use hints::HintsConfig;
use mida::MidaConfig;
use midas::MidasConfig;
use nodap::NodapConfig;
use oracle::OracleConfig;
use sepbit::SepBitConfig;
use std::any::Any;
use two_r::TwoRConfig;
use warcip::WarcipConfig;

macro_rules! placements {
    ($($name:literal $variant:ident($policy:ty, $options:ty) $about:literal)*) => {
        config_enum! {
            /// The placement policies by name, each with its options.
            #[derive(PartialEq, Eq)]
            pub enum PlacementConfig: "placement", custom CustomPlacement;
            $($name $variant($options) $about)*
        }

        impl PlacementConfig {
            /// Starts the policy on a drive of this geometry.
            pub(crate) fn start(&self, drive: &DriveShape) -> Placer {
                match self {
                    $(PlacementConfig::$variant(config) => Placer::$variant(<$policy>::start(config, drive)),)*
                    PlacementConfig::Custom(custom) => Placer::Custom(custom.start(drive)),
                }
            }

            /// Returns the number of streams; pages go to the streams `0..streams`.
            pub fn streams(&self) -> u16 {
                match self {
                    $(PlacementConfig::$variant(config) => <$policy>::streams(config),)*
                    PlacementConfig::Custom(custom) => custom.streams(),
                }
            }
        }

        /// A placement policy at work.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each variant's file documents it
        #[allow(clippy::large_enum_variant)] // a drive has one, and uses it for every page
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
            /// Returns the policy itself, if it is a `P`.
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
    "none" None(none::NoPlacement, NoOptions) "one stream for host writes and copies alike"
    "sep-gc" SepGc(sep_gc::SepGc, NoOptions) "host writes and copies in separate streams"
    "hints" Hints(hints::Hints, HintsConfig) "a stream for every hint of the host"
    "fdp" Fdp(fdp::Fdp, FdpConfig) "a stream for every reclaim-unit handle that the host names (FDP)"
    "dac" Dac(dac::Dac, DacConfig) "by frequency (DAC, CAT): hotter with every write, colder with every copy"
    "autostream" AutoStream(autostream::AutoStream, AutoStreamConfig) "by the decayed frequency of its chunk"
    "mida" Mida(mida::Mida, MidaConfig) "by the number of copies since the page was written"
    "warcip" Warcip(warcip::Warcip, WarcipConfig) "by the nearest mean of rewrite intervals, in clusters"
    "sepbit" SepBit(sepbit::SepBit, SepBitConfig) "by the lifespan of the overwritten copy, and by age"
    "midas" Midas(midas::Midas, MidasConfig) "a chain of groups, sized by a model of page lifetimes"
    "dogi" Dogi(dogi::Dogi, DogiConfig)
        "by a small network that learns lifetimes, in groups collected by age; for greedy victims"
    "fulgurite" Fulgurite(fulgurite::Fulgurite, FulguriteConfig)
        "Fulgurite's own: by lifetimes, generations or copies, as measured on a sample of pages; for hazard victims"
    "2r" TwoR(two_r::TwoR, TwoRConfig) "copies apart, in rounds; the host fills their last segment; for 2r victims"
    "oracle" Oracle(oracle::Oracle, OracleConfig) "by the true time of invalidation; gc only"
    "nodap" Nodap(nodap::Nodap, NodapConfig)
        "by the true time of invalidation, in groups collected after all pages died; for greedy victims; gc only"
}

impl PlacementConfig {
    /// The policy with one stream for all pages.
    pub const ONE_STREAM: PlacementConfig = PlacementConfig::None(NoOptions);

    /// The form of an option whose value is a placement policy with options.
    pub const FORM: Form<PlacementConfig> =
        Form { written: "NAME", parse: |text| text.parse(), show: PlacementConfig::to_string };

    /// Returns the fewest streams that the policy can work with. A policy that can do with fewer than
    /// [`PlacementConfig::streams`] chooses by the geometry of the drive.
    pub(crate) fn streams_at_least(&self) -> u16 {
        match self {
            PlacementConfig::Fulgurite(config) => config.streams_at_least(),
            _ => self.streams(),
        }
    }

    /// Returns whether the policy must know all writes beforehand.
    pub fn needs_future(&self) -> bool {
        match self {
            PlacementConfig::Custom(custom) => custom.needs_future(),
            _ => matches!(self, PlacementConfig::Oracle(_) | PlacementConfig::Nodap(_)),
        }
    }

    /// Returns placement that separates `streams` streams by the host's hints; with one stream, no placement.
    pub fn by_hints(streams: u16) -> PlacementConfig {
        if streams == 1 {
            return PlacementConfig::ONE_STREAM;
        }
        PlacementConfig::Hints(HintsConfig { streams })
    }

    /// Returns flexible data placement with these handles.
    pub fn by_handles(handles: u16, isolation: Isolation) -> PlacementConfig {
        PlacementConfig::Fdp(FdpConfig { handles, isolation })
    }

    /// Returns the number of reclaim-unit handles and their isolation; `None` without flexible data placement.
    pub fn handles(&self) -> Option<(u16, Isolation)> {
        match self {
            PlacementConfig::Fdp(config) => Some((config.handles, config.isolation)),
            _ => None,
        }
    }

    /// Returns the number of hint streams that are separated; 1 if hints have no effect.
    pub fn hints(&self) -> u16 {
        match self {
            PlacementConfig::Hints(config) => config.streams,
            PlacementConfig::Fdp(config) => config.handles,
            _ => 1,
        }
    }
}

impl PlacementPolicy for Placer {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        dispatch!(self, policy => policy.stream(context, segments))
    }

    #[inline]
    fn place(&mut self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        dispatch!(self, policy => policy.place(context, segments))
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

    fn copied_each(
        &mut self,
        lpns: &[u32],
        victim: SegmentId,
        segments: &SegmentTable,
        streams: &mut Vec<StreamId>,
    ) {
        dispatch!(self, policy => policy.copied_each(lpns, victim, segments, streams));
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

    fn models(&self) -> Vec<ModelConfig> {
        dispatch!(self, policy => policy.models())
    }

    fn receive(&mut self, models: Vec<Option<Box<dyn Model>>>) {
        dispatch!(self, policy => policy.receive(models));
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        dispatch!(self, policy => policy.prefetch(lpn));
    }

    fn bytes(&self) -> usize {
        dispatch!(self, policy => policy.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: only placement by hints and by handles separates hint streams, as many as it was configured
    /// for; a single stream is no placement.
    #[test]
    fn only_placement_by_hints_separates_hints() {
        assert_eq!([1, 2, 5].map(|streams| PlacementConfig::by_hints(streams).hints()), [1, 2, 5]);
        let by_handles = |handles| PlacementConfig::by_handles(handles, Isolation::Initially).hints();
        assert_eq!([1, 2, 5].map(by_handles), [1, 2, 5]);
        assert_eq!(PlacementConfig::by_hints(1), PlacementConfig::ONE_STREAM);
        for name in PlacementConfig::registry().names().filter(|name| !["hints", "fdp"].contains(name)) {
            assert_eq!(name.parse::<PlacementConfig>().unwrap().hints(), 1, "{name}");
        }
    }
}
