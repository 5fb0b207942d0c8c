//! Scheduling: decides when garbage is collected, and which operations go first. Each rule has a file.
//! [`Schedule`] selects a rule by name.
//!
//! A rule sees [`FtlState`] and returns one of four [`ScheduleState`]s, those of "A Semi-Preemptive Garbage
//! Collector for Solid State Drives" (Lee et al., ISPASS 2011). Without virtual time, the translation layer
//! collects until the state serves writes. In virtual time, the drive starts collection operations only in
//! states that collect. Between any two collection operations, host operations go first in states that serve
//! the host.
//!
//! A new rule is one file with its `mod` line below and one line in `rules!`.

mod rule;
mod non_preemptive;
mod paced;
mod semi_preemptive;
mod preemptive;

pub use preemptive::SUSPENSIONS;
pub use rule::{FtlState, Progress, ScheduleRule, ScheduleState};

use fulgurite_base::{Entry, Form, Registry, SpecError};
use std::fmt;

macro_rules! rules {
    ($($rule:ident($module:ident))*) => {
        /// The rule that a schedule follows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Rule {
            $($rule,)*
            /// A user's own rule.
            Custom(&'static ScheduleRule),
        }

        impl Rule {
            /// Returns the rule as data.
            #[inline]
            fn data(self) -> &'static ScheduleRule {
                match self {
                    $(Rule::$rule => &$module::RULE,)*
                    Rule::Custom(rule) => rule,
                }
            }

            // Matches instead of calling `data().decide`, because this is called for every page: a match can
            // be inlined, a function pointer cannot.
            #[inline]
            fn decide(&self, state: &FtlState<'_>) -> ScheduleState {
                match self {
                    $(Rule::$rule => $module::decide(state),)*
                    Rule::Custom(rule) => (rule.decide)(state),
                }
            }
        }

        static REGISTRY: Registry<Schedule> = Registry {
            kind: "schedule",
            entries: &[$(Entry {
                name: $module::RULE.name,
                about: $module::RULE.about,
                options: Vec::new,
                make: Schedule::plain(Rule::$rule),
            },)*],
        };
    };
}

rules! {
    NonPreemptive(non_preemptive)
    SemiPreemptive(semi_preemptive)
    Preemptive(preemptive)
    Paced(paced)
}

/// The additions to a rule, as they are written after it.
const ADDITIONS: &[&str] = &["merge", "pipeline", "suspend", "suspend-erases"];

/// A rule with its additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The rule that decides the state.
    pub rule: Rule,
    /// Whether a host read of a page that collection must still move also serves as the read for the move.
    pub merge: bool,
    /// Whether a host operation may overlap a collection operation of the same kind on its die.
    pub pipeline: bool,
    /// The operations that a host read suspends.
    pub suspend: Suspend,
}

/// The flash operations that a host read on the same die suspends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspend {
    /// No operation is suspended.
    Nothing,
    /// Erases are suspended.
    Erases,
    /// Erases and programs are suspended.
    All,
}

impl Schedule {
    /// [`Rule::NonPreemptive`], which has no additions.
    pub const NON_PREEMPTIVE: Schedule = Schedule::plain(Rule::NonPreemptive);
    /// [`Rule::Paced`], which has no additions.
    pub const PACED: Schedule = Schedule::plain(Rule::Paced);
    /// [`Rule::SemiPreemptive`] without the additions merge and pipeline.
    pub const SEMI_PREEMPTIVE: Schedule = Schedule::plain(Rule::SemiPreemptive);
    /// [`Rule::Preemptive`] without the additions merge and pipeline.
    pub const PREEMPTIVE: Schedule = Schedule::plain(Rule::Preemptive);

    /// The form of an option whose value is a schedule.
    pub const FORM: Form<Schedule> =
        Form { written: "NAME", parse: Schedule::from_name, show: Schedule::to_string };

    /// Returns the schedule of a rule without additions.
    pub const fn plain(rule: Rule) -> Schedule {
        Schedule { rule, merge: false, pipeline: false, suspend: Suspend::Nothing }
    }

    /// Returns the schedule of a user's own rule without additions.
    pub const fn custom(rule: &'static ScheduleRule) -> Schedule {
        Schedule::plain(Rule::Custom(rule))
    }

    /// Returns the registry of every rule's schedule by name.
    pub fn registry() -> &'static Registry<Schedule> {
        &REGISTRY
    }

    /// Returns the schedule called `name`, which is the name of a rule, then `+merge`, `+pipeline`,
    /// `+suspend` or `+suspend-erases`.
    pub fn from_name(name: &str) -> Result<Schedule, SpecError> {
        let mut parts = name.split('+');
        let mut schedule = REGISTRY.get(parts.next().unwrap_or_default())?.make;
        for part in parts {
            match part {
                "merge" => schedule.merge = true,
                "pipeline" => schedule.pipeline = true,
                "suspend" => schedule.suspend = Suspend::All,
                "suspend-erases" => schedule.suspend = Suspend::Erases,
                _ => return Err(SpecError::unknown("addition to a schedule", part, ADDITIONS)),
            }
        }
        if !schedule.rule.data().steps_aside && (schedule.merge || schedule.pipeline) {
            return Err(SpecError::new(format!(
                "schedule {name}: +merge and +pipeline need a collection that the host can interrupt; \
                 accepted: semi-preemptive and preemptive with them"
            )));
        }
        if schedule.rule.data().suspends && schedule.suspend != Suspend::Nothing {
            return Err(SpecError::new(format!(
                "schedule {name}: {} suspends programs and erases already; accepted: {0} without this addition",
                schedule.rule.data().name
            )));
        }
        Ok(schedule)
    }

    /// Returns the state that the drive should be in.
    #[inline]
    pub fn decide(&self, state: &FtlState<'_>) -> ScheduleState {
        self.rule.decide(state)
    }

    /// Returns whether collection moves pages in step with host writes, if there is no virtual time.
    pub fn keeps_step(self) -> bool {
        self.rule.data().keeps_step
    }

    /// Returns the flash operations that host reads suspend.
    #[inline]
    pub fn suspends(self) -> Suspend {
        if self.rule.data().suspends { Suspend::All } else { self.suspend }
    }

    /// Returns whether the schedule affects the order of operations on a die.
    pub fn is_about_dies(self) -> bool {
        self.suspends() != Suspend::Nothing || self.merge || self.pipeline
    }

    /// Returns whether the rule uses the hard threshold; otherwise only the soft threshold matters.
    pub fn has_hard_threshold(self) -> bool {
        self.rule.data().has_hard_threshold
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let merge = if self.merge { "+merge" } else { "" };
        let pipeline = if self.pipeline { "+pipeline" } else { "" };
        let suspend = match self.suspend {
            Suspend::Nothing => "",
            Suspend::Erases => "+suspend-erases",
            Suspend::All => "+suspend",
        };
        write!(f, "{}{merge}{pipeline}{suspend}", self.rule.data().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: FtlState = FtlState::CALM;

    fn states(schedule: Schedule) -> [ScheduleState; 6] {
        [
            STATE,
            FtlState { idle: true, ..STATE },
            FtlState { free: 2, ..STATE },
            FtlState { free: 1, ..STATE },
            FtlState { free: 1, opens: true, ..STATE },
            FtlState { free: 1, opens: true, urgent: true, ..STATE },
        ]
        .map(|state| schedule.decide(&state))
    }

    #[test]
    fn the_states_follow_the_thresholds() {
        use ScheduleState::{Collecting, Exclusive, Idle, Pressed};
        let interruptible = [Idle, Collecting, Collecting, Collecting, Pressed, Exclusive];
        assert_eq!(states(Schedule::SEMI_PREEMPTIVE), interruptible);
        assert_eq!(states(Schedule::PREEMPTIVE), interruptible);
        assert_eq!(states(Schedule::PACED), interruptible);
        assert_eq!(
            states(Schedule::NON_PREEMPTIVE),
            [Idle, Exclusive, Exclusive, Exclusive, Exclusive, Exclusive]
        );
    }

    #[test]
    fn names_survive_a_round_trip_and_typing_errors_are_refused() {
        for name in [
            "non-preemptive",
            "paced+suspend",
            "semi-preemptive+merge+suspend-erases",
            "preemptive+merge+pipeline",
        ] {
            assert_eq!(Schedule::from_name(name).unwrap().to_string(), name);
        }
        let sentence = |name: &str| Schedule::from_name(name).unwrap_err().to_string();
        assert!(sentence("semi-premptive").contains("did you mean `semi-preemptive`?"));
        assert!(sentence("preemptive+merg").contains("did you mean `merge`?"));
        assert!(sentence("preemptive+suspend").contains("preemptive suspends programs and erases already"));
        assert!(sentence("non-preemptive+merge").contains("accepted: semi-preemptive and preemptive"));
    }

    /// The rule: a schedule affects the order of operations on a die if, and only if, it suspends, merges or
    /// pipelines.
    #[test]
    fn suspending_merging_and_pipelining_are_about_dies() {
        for name in [
            "preemptive",
            "paced+suspend",
            "paced+suspend-erases",
            "semi-preemptive+merge",
            "preemptive+pipeline",
        ] {
            assert!(Schedule::from_name(name).unwrap().is_about_dies(), "{name}");
        }
        for name in ["non-preemptive", "paced", "semi-preemptive"] {
            assert!(!Schedule::from_name(name).unwrap().is_about_dies(), "{name}");
        }
    }

    /// The rule: only paced collection keeps step with the host: it moves pages one by one while the host
    /// writes.
    #[test]
    fn one_rule_keeps_step() {
        let keeps_step = |name: &&str| Schedule::from_name(name).unwrap().keeps_step();
        assert_eq!(Schedule::registry().names().filter(keeps_step).collect::<Vec<_>>(), ["paced"]);
    }
}
