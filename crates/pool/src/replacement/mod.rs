//! Replacement policies: decide which frame is evicted. Each policy has a file. [`ReplacementConfig`] names a
//! policy with its options and lists all policies, and [`Replacement`] is the running policy of a pool.

mod policy;
mod belady;
mod clock;
mod lists;
mod ccf_lru;
mod fifo;
mod ghosts;
mod arc;
mod lfu;
mod lru;
mod lru_wsr;
mod nru;
mod portions;
mod clean_first;
mod cflru;
mod cflru_c;
mod cflru_e;
mod dl_cflru_e;
mod s3_fifo;
mod second_chance;
mod sieve;
mod two_q;
mod w_tinylfu;

pub use policy::{Arrival, Cursor, Recall, ReplacementPolicy};

use crate::{FrameTable, NextUses};
use clean_first::CleanFirstConfig;
use clock::ClockConfig;
use fulgurite_base::option::PORTION;
use fulgurite_base::units::parse_portion;
use fulgurite_base::{FrameId, NoOptions, PageId, Portion, Spec, SpecError, config_enum};
use lru_wsr::LruWsrConfig;
use nru::NruConfig;
use s3_fifo::S3FifoConfig;
use std::fmt::Debug;
use two_q::TwoQConfig;
use w_tinylfu::WTinyLfuConfig;

/// A replacement policy of the user, as a configuration: it names the policy and starts it.
pub trait CustomReplacement: Debug + Send + Sync {
    /// Returns the name of the policy.
    fn name(&self) -> &str;

    /// Returns the canonical text: the name, and the options that differ from their defaults.
    fn text(&self) -> String {
        self.name().to_owned()
    }

    /// Starts the policy for a pool of `frames` frames.
    fn start(&self, frames: u32) -> Result<Box<dyn ReplacementPolicy>, SpecError>;
}

macro_rules! policies {
    ($($name:literal $variant:ident($policy:ty, $config:ty) $about:literal)*) => {
        config_enum! {
            /// The replacement policies by name, each with its options.
            pub enum ReplacementConfig: "replacement", custom CustomReplacement;
            $($name $variant($config) $about)*
        }

        impl ReplacementConfig {
            /// Starts the policy for a pool of `frames` frames.
            ///
            /// Fails if the options contradict each other or do not suit this number of frames.
            pub fn start(&self, frames: u32) -> Result<Replacement, SpecError> {
                let started = match self {
                    $(ReplacementConfig::$variant(config) => {
                        <$policy>::new(config, frames).map(Replacement::$variant)
                    })*
                    ReplacementConfig::Custom(custom) => custom.start(frames).map(Replacement::Custom),
                };
                started.map_err(|error| SpecError::new(format!("{}: {error}", self.name())))
            }
        }

        /// The running replacement policy of a pool.
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Replacement {
            $($variant($policy),)*
            /// The policy is the user's own.
            Custom(Box<dyn ReplacementPolicy>),
        }

        /// Evaluates `$call` with the policy itself, so that a loop in `$call` is compiled for each policy.
        macro_rules! dispatch {
            ($self:expr, $p:ident => $call:expr) => {
                dispatch!($self, $p => $call, custom $p => $call)
            };
            ($self:expr, $p:ident => $call:expr, custom $c:ident => $custom:expr) => {
                match $self {
                    $(Replacement::$variant($p) => $call,)*
                    Replacement::Custom($c) => $custom,
                }
            };
        }
    };
}

// A new policy is a file and a line here.
policies! {
    "fifo" Fifo(fifo::Fifo, NoOptions) "the page that was read in first"
    "second-chance" SecondChance(second_chance::SecondChance, NoOptions)
        "fifo, but a page used since goes to the back once"
    "clock" Clock(clock::Clock, ClockConfig) "clock sweep with usage counts, as in PostgreSQL"
    "nru" Nru(nru::Nru, NruConfig) "a random page of the lowest class of referenced and dirty"
    "lfu" Lfu(lfu::Lfu, NoOptions) "the page used least often; of several, the one used least recently"
    "lru" Lru(lru::Lru, NoOptions) "the page that was used least recently"
    "2q" TwoQ(two_q::TwoQ, TwoQConfig) "a fifo of new pages, an lru of pages requested again after it"
    "arc" Arc(arc::Arc, NoOptions) "two lru lists, of pages used once and more often, whose sizes adapt to the misses"
    "cflru" Cflru(cflru::Cflru, CleanFirstConfig) "the least recent clean page of the window, else the least recent"
    "cflru-c" CflruC(cflru_c::CflruC, CleanFirstConfig)
        "cflru; without a clean page, the dirty one of the window used least often"
    "cflru-e" CflruE(cflru_e::CflruE, CleanFirstConfig)
        "cflru; without a clean page, the dirty one whose erase block was erased least"
    "dl-cflru-e" DlCflruE(dl_cflru_e::DlCflruE, CleanFirstConfig)
        "any clean page first; else the dirty one of the window erased least"
    "lru-wsr" LruWsr(lru_wsr::LruWsr, LruWsrConfig) "lru; a dirty page that is not cold gets a second chance"
    "ccf-lru" CcfLru(ccf_lru::CcfLru, NoOptions) "cold clean pages first, then cold dirty ones"
    "s3-fifo" S3Fifo(s3_fifo::S3Fifo, S3FifoConfig) "a small fifo that filters, a main fifo with reinsertion"
    "sieve" Sieve(sieve::Sieve, NoOptions)
        "a fifo with a hand that spares pages used since it last passed, without moving them"
    "w-tinylfu" WTinyLfu(w_tinylfu::WTinyLfu, WTinyLfuConfig)
        "a window that must beat the main part in a frequency sketch"
    "belady" Belady(belady::Belady, NoOptions)
        "the page that is requested again last: the fewest misses possible; only without a drive"
}

impl ReplacementConfig {
    /// Whether the policy must know all requests beforehand; see [`Replacement::foresee`].
    pub fn needs_future(&self) -> bool {
        matches!(self, ReplacementConfig::Belady(_))
    }

    /// Whether the policy is LRU, whose misses for every size of the pool follow from [`StackDistances`].
    ///
    /// [`StackDistances`]: crate::StackDistances
    pub fn is_lru(&self) -> bool {
        matches!(self, ReplacementConfig::Lru(_))
    }

    /// Returns an option whose value is a number of frames, pages or requests, and not a share of the frames;
    /// `None` if there is none. A sample of the pages cannot be served with such a number.
    pub fn counted_option(&self) -> Option<String> {
        let registry = ReplacementConfig::registry();
        let entry = registry.entries.iter().find(|entry| entry.name == self.name())?;
        let spec = Spec::parse(&self.to_string()).ok()?;
        let is_portion = |key: &str| {
            (entry.options)().iter().any(|option| option.key == key && option.written == PORTION.written)
        };
        let counted = |(key, value): &&(String, String)| {
            is_portion(key) && matches!(parse_portion(value), Ok(Portion::Count(_)))
        };
        spec.options().iter().find(counted).map(|(key, value)| format!("{key}={value}"))
    }
}

impl Replacement {
    /// Whether the policy must know all requests beforehand; see [`Replacement::foresee`].
    pub fn needs_future(&self) -> bool {
        matches!(self, Replacement::Belady(_))
    }

    /// Tells a policy that needs the future all requests that will be served, in their order. Other policies
    /// ignore them.
    pub fn foresee(&mut self, future: &std::sync::Arc<NextUses>) {
        if let Replacement::Belady(policy) = self {
            policy.foresee(std::sync::Arc::clone(future));
        }
    }
}

pub(crate) use dispatch;

impl ReplacementPolicy for Replacement {
    fn needs_erase_counts(&self) -> bool {
        dispatch!(self, policy => policy.needs_erase_counts())
    }

    #[inline]
    fn miss(&mut self, page: PageId) -> Recall {
        dispatch!(self, policy => policy.miss(page))
    }

    #[inline]
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival) {
        dispatch!(self, policy => policy.insert(frame, page, arrival));
    }

    #[inline]
    fn access(&mut self, frame: FrameId, write: bool) {
        dispatch!(self, policy => policy.access(frame, write));
    }

    #[inline]
    fn cleaned(&mut self, frame: FrameId) {
        dispatch!(self, policy => policy.cleaned(frame));
    }

    fn written_ahead(&mut self, frames: &FrameTable, batch: &[FrameId]) {
        dispatch!(self, policy => policy.written_ahead(frames, batch));
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
mod tests;
