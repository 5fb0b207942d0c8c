//! Decides when garbage is collected, and which operations go first. Each rule has a file. [`Schedule`] chooses one by
//! name.
//!
//! A rule sees [`FtlState`] and returns one of four [`ScheduleState`]s, those of "A Semi-Preemptive Garbage
//! Collector for Solid State Drives" (ISPASS 2011). The mechanism performs it. Without time the translation
//! layer collects until writes are served. In virtual time the drive starts operations of collection only in
//! states that collect; between any two of them the host's operations go first in states that serve the host.
//!
//! A new rule is one file with its `mod` line below and one line of `rules!`.

mod non_preemptive;
mod paced;
mod preemptive;
mod semi_preemptive;

pub use preemptive::SUSPENSIONS;

use fulgurite_base::{Entry, Form, Registry, SpecError};
use std::fmt;

/// What a schedule decides from.
#[derive(Clone, Copy, Debug)]
pub struct FtlState {
    /// Erased segments that nobody writes to.
    pub free: u32,
    /// The soft threshold: with fewer free segments garbage should be collected.
    pub soft: u32,
    /// The hard threshold: this many free segments are collection's own.
    pub hard: u32,
    /// Whether the next host write must open a free segment.
    pub opens: bool,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Pages that the drive's planes program together.
    pub stripe_pages: u32,
    /// The collection under way, if any.
    pub collection: Option<Progress>,
    /// The drive is idle and has fewer free segments than it collects in the background.
    pub idle: bool,
    /// A write has waited for longer than it may.
    pub urgent: bool,
}

/// How far the collection of a victim segment has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Valid pages when it was picked.
    pub valid_at_pick: u32,
    /// Pages that the host and the copies could be written to then, collection's own segments aside.
    pub room_at_pick: u32,
    /// Pages moved since.
    pub moved: u32,
    /// Host pages written since.
    pub host_pages: u32,
}

/// What runs and what is served: the rows of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleState {
    /// 0: no collection.
    Idle,
    /// 1: collection runs, reads and writes are served.
    Collecting,
    /// 2: collection runs, reads are served, writes wait.
    Pressed,
    /// 3: collection runs and everything waits for it.
    Exclusive,
}

impl ScheduleState {
    /// Whether collection runs.
    #[inline]
    pub fn collects(self) -> bool {
        self != ScheduleState::Idle
    }

    /// Whether host reads are served.
    #[inline]
    pub fn serves_reads(self) -> bool {
        self != ScheduleState::Exclusive
    }

    /// Whether host writes are served.
    #[inline]
    pub fn serves_writes(self) -> bool {
        self <= ScheduleState::Collecting
    }
}

/// A rule as data: a rule from outside is a `static` of this type.
#[derive(Debug)]
pub struct ScheduleRule {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The state that the drive should be in.
    pub decide: fn(&FtlState) -> ScheduleState,
    /// Without time, collection moves pages one by one while the host writes, and not all at once.
    pub keeps_step: bool,
    /// It has states of its own for the hard threshold.
    pub has_hard_threshold: bool,
    /// The paper's means may interrupt collection: `+merge` and `+pipeline`.
    pub steps_aside: bool,
    /// Host reads suspend programs and erases.
    pub suspends: bool,
}

impl PartialEq for ScheduleRule {
    fn eq(&self, other: &ScheduleRule) -> bool {
        self.name == other.name
    }
}

impl Eq for ScheduleRule {}

macro_rules! rules {
    ($($rule:ident($module:ident))*) => {
        /// The rule that a schedule follows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Rule {
            $($rule,)*
            /// A rule from outside.
            Custom(&'static ScheduleRule),
        }

        impl Rule {
            /// The rule as data.
            #[inline]
            fn data(self) -> &'static ScheduleRule {
                match self {
                    $(Rule::$rule => &$module::RULE,)*
                    Rule::Custom(rule) => rule,
                }
            }

            // Asked with every page: a match can be inlined, a function pointer cannot.
            #[inline]
            fn decide(&self, state: &FtlState) -> ScheduleState {
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

/// A rule with what may be added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The rule.
    pub rule: Rule,
    /// A host read of a page that collection must still move serves both.
    pub merge: bool,
    /// A host operation overlaps one of collection of the same kind on its die.
    pub pipeline: bool,
}

impl Schedule {
    /// [`Rule::NonPreemptive`].
    pub const NON_PREEMPTIVE: Schedule = Schedule::plain(Rule::NonPreemptive);
    /// [`Rule::Paced`].
    pub const PACED: Schedule = Schedule::plain(Rule::Paced);
    /// [`Rule::SemiPreemptive`] without merge or pipeline.
    pub const SEMI_PREEMPTIVE: Schedule = Schedule::plain(Rule::SemiPreemptive);
    /// [`Rule::Preemptive`] without merge or pipeline.
    pub const PREEMPTIVE: Schedule = Schedule::plain(Rule::Preemptive);

    /// How a schedule is written where it is an option.
    pub const FORM: Form<Schedule> =
        Form { written: "NAME", parse: Schedule::from_name, show: Schedule::to_string };

    /// A rule with nothing added.
    pub const fn plain(rule: Rule) -> Schedule {
        Schedule { rule, merge: false, pipeline: false }
    }

    /// A rule from outside, with nothing added.
    pub const fn custom(rule: &'static ScheduleRule) -> Schedule {
        Schedule::plain(Rule::Custom(rule))
    }

    /// Every rule's schedule by name.
    pub fn registry() -> &'static Registry<Schedule> {
        &REGISTRY
    }

    /// The schedule called `name`: a rule's name, then `+merge`, `+pipeline`.
    pub fn from_name(name: &str) -> Result<Schedule, SpecError> {
        let mut parts = name.split('+');
        let mut schedule = REGISTRY.get(parts.next().unwrap_or_default())?.make;
        for part in parts {
            match part {
                "merge" => schedule.merge = true,
                "pipeline" => schedule.pipeline = true,
                _ => return Err(SpecError::unknown("addition to a schedule", part, &["merge", "pipeline"])),
            }
        }
        if !schedule.rule.data().steps_aside && (schedule.merge || schedule.pipeline) {
            return Err(SpecError::new(format!(
                "schedule {name}: +merge and +pipeline need a collection that the host can interrupt; accepted: semi-preemptive and preemptive with them"
            )));
        }
        Ok(schedule)
    }

    /// The state that the drive should be in.
    #[inline]
    pub fn decide(&self, state: &FtlState) -> ScheduleState {
        self.rule.decide(state)
    }

    /// Whether, without time, collection moves pages in step with the host.
    pub fn keeps_step(self) -> bool {
        self.rule.data().keeps_step
    }

    /// Whether host reads suspend programs and erases.
    #[inline]
    pub fn suspends(self) -> bool {
        self.rule.data().suspends
    }

    /// Whether it differs from others only by what it does on the dies.
    pub fn is_about_dies(self) -> bool {
        self.suspends() || self.merge || self.pipeline
    }

    /// Whether it has states of its own for the hard threshold.
    pub fn has_hard_threshold(self) -> bool {
        self.rule.data().has_hard_threshold
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let merge = if self.merge { "+merge" } else { "" };
        let pipeline = if self.pipeline { "+pipeline" } else { "" };
        write!(f, "{}{merge}{pipeline}", self.rule.data().name)
    }
}

/// The state once writes have to wait: they wait for reads too, unless one has waited too long.
#[inline]
fn pressed(state: &FtlState) -> ScheduleState {
    if state.urgent { ScheduleState::Exclusive } else { ScheduleState::Pressed }
}

/// Whether the next host write would take a free segment that is collection's own, or a page of one
/// that collection had to open.
#[inline]
fn is_exhausted(state: &FtlState) -> bool {
    state.free < state.hard || state.opens && state.free == state.hard
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: FtlState = FtlState {
        free: 5,
        soft: 3,
        hard: 1,
        opens: false,
        segment_pages: 64,
        stripe_pages: 1,
        collection: None,
        idle: false,
        urgent: false,
    };

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
    fn names_survive_a_round_trip_and_nonsense_is_named() {
        for name in ["non-preemptive", "paced", "semi-preemptive+merge", "preemptive+merge+pipeline"] {
            assert_eq!(Schedule::from_name(name).unwrap().to_string(), name);
        }
        let sentence = |name: &str| Schedule::from_name(name).unwrap_err().to_string();
        assert!(sentence("semi-premptive").contains("did you mean `semi-preemptive`?"));
        assert!(sentence("preemptive+merg").contains("did you mean `merge`?"));
        assert!(sentence("non-preemptive+merge").contains("accepted: semi-preemptive and preemptive"));
    }

    /// The rule: a schedule is about dies if it suspends, merges or pipelines.
    #[test]
    fn suspending_merging_and_pipelining_are_about_dies() {
        for name in
            ["preemptive", "semi-preemptive+merge", "semi-preemptive+pipeline", "preemptive+merge+pipeline"]
        {
            assert!(Schedule::from_name(name).unwrap().is_about_dies(), "{name}");
        }
        for name in ["non-preemptive", "paced", "semi-preemptive"] {
            assert!(!Schedule::from_name(name).unwrap().is_about_dies(), "{name}");
        }
    }

    /// The rule: only paced collection keeps step with the host.
    #[test]
    fn one_rule_keeps_step() {
        let keeps_step = |name: &&str| Schedule::from_name(name).unwrap().keeps_step();
        assert_eq!(Schedule::registry().names().filter(keeps_step).collect::<Vec<_>>(), ["paced"]);
    }
}
