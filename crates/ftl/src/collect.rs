//! The policies and thresholds of garbage collection as one value. Simulated drives, layers on the host and
//! translation layers without virtual time all contain this value. Each of its options is declared once,
//! here.

use crate::placement::PlacementConfig;
use crate::schedule::Schedule;
use crate::victim::VictimConfig;
use fulgurite_base::{Declared, Nanos, Opt, SpecError};

/// The policies and thresholds of garbage collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// The policy that chooses the stream of a page.
    pub placement: PlacementConfig,
    /// The policy that chooses the segment to collect.
    pub victim: VictimConfig,
    /// The policy that decides when to collect, and which host operations go first.
    pub schedule: Schedule,
    /// The soft threshold, in segments: collection begins with fewer free segments than this.
    pub reserve: u32,
    /// The hard threshold, in segments: this many free segments are reserved for collection.
    pub hard: u32,
    /// The number of free segments up to which collection continues while the host is idle; 0 for no
    /// background collection.
    pub background: u32,
    /// The time after which a write that waits for collection blocks all other host operations.
    pub urgent: Nanos,
}

impl Collect {
    /// The plainest policies: one stream, greedy victims, non-preemptive collection below two free segments.
    pub const PLAIN: Collect = Collect {
        placement: PlacementConfig::ONE_STREAM,
        victim: VictimConfig::GREEDY,
        schedule: Schedule::NON_PREEMPTIVE,
        reserve: 2,
        hard: 1,
        background: 0,
        urgent: Nanos::from_micros(10_000),
    };

    /// Refuses thresholds with which collection could get stuck.
    pub(crate) fn check_thresholds(&self) -> Result<(), SpecError> {
        let Collect { schedule, reserve, hard, .. } = *self;
        if schedule.has_hard_threshold() && hard < 1 {
            return Err(SpecError::new(format!(
                "gc_hard={hard} is too small; accepted: at least 1, a free segment for collection to write to"
            )));
        }
        let least = if schedule.has_hard_threshold() { hard.saturating_add(1) } else { 1 };
        if reserve < least {
            return Err(SpecError::new(format!(
                "gc_reserve={reserve} is too small; accepted: at least {least} here"
            )));
        }
        Ok(())
    }
}

/// The largest number of segments for a threshold.
pub const SEGMENTS_AT_MOST: u32 = 1 << 20;

/// Declares one option of [`Collect`] for a type that contains a `Collect`: `collect_opt!(reserve, collect)`
/// if the field is called `collect`.
#[macro_export]
macro_rules! collect_opt {
    (placement $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("placement", $($($path).+.)? placement, $crate::placement::PlacementConfig::FORM,
            "which stream (append point) a page goes to")
    };
    (victim $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("victim", $($($path).+.)? victim, $crate::victim::VictimConfig::FORM,
            "which segment is collected")
    };
    (schedule $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("schedule", $($($path).+.)? schedule, $crate::schedule::Schedule::FORM,
            "when it is collected, what may overtake")
    };
    (reserve $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("gc_reserve", $($($path).+.)? reserve, fulgurite_base::option::COUNT,
            1 => $crate::SEGMENTS_AT_MOST, "soft threshold: free segments below which garbage is collected")
    };
    (hard $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("gc_hard", $($($path).+.)? hard, fulgurite_base::option::COUNT,
            1 => $crate::SEGMENTS_AT_MOST, "hard threshold: free segments that only collection may use")
    };
    (background $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("gc_background", $($($path).+.)? background, fulgurite_base::option::COUNT,
            "free segments up to which an idle drive collects; 0: none")
    };
    (urgent $(, $($path:ident).+)?) => {
        fulgurite_base::opt!("urgent_us", $($($path).+.)? urgent, fulgurite_base::option::MICROS,
            "time a write waits before collection goes first")
    };
}

impl Declared for Collect {
    const OPTIONS: &'static [Opt<Collect>] = &[
        collect_opt!(placement),
        collect_opt!(victim),
        collect_opt!(schedule),
        collect_opt!(reserve),
        collect_opt!(hard),
        collect_opt!(background),
        collect_opt!(urgent),
    ];
}
