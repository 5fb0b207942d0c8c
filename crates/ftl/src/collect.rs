//! How garbage is collected: the policies and their thresholds, as one value. Simulated drives, layers on the host and
//! translation layers without time all contain this value, and each of its options is declared here once.

use crate::placement::PlacementConfig;
use crate::schedule::Schedule;
use crate::victim::VictimConfig;
use fulgurite_base::{Declared, Nanos, Opt, SpecError};

/// How garbage is collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// Which stream a page goes to.
    pub placement: PlacementConfig,
    /// Which segment is collected.
    pub victim: VictimConfig,
    /// When it is collected, and what may overtake.
    pub schedule: Schedule,
    /// The soft threshold: free segments below which garbage is collected.
    pub reserve: u32,
    /// The hard threshold: free segments that only collection may use.
    pub hard: u32,
    /// Free segments up to which collection goes on while the host is idle; zero: it does not.
    pub background: u32,
    /// How long a write waits for collection before everything else does too.
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

    /// Refuses thresholds under which collection could not go on.
    pub fn check_thresholds(&self) -> Result<(), SpecError> {
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

/// Most segments that a threshold may ask for.
pub const SEGMENTS_AT_MOST: u32 = 1 << 20;

/// Declares one option of [`Collect`] for a type that holds one: `collect_opt!(reserve, collect)` where the field is
/// called `collect`.
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
