//! When garbage is collected, and what steps aside for what. One policy per file; [`Schedule`] is
//! the registry.
//!
//! A policy sees [`FtlState`] and returns one of four [`State`]s, those of "A Semi-Preemptive Garbage
//! Collector for Solid State Drives" (ISPASS 2011). The mechanism performs it: without time the
//! translation layer collects until writes are served; in virtual time the drive starts
//! operations of collection only in states that collect, and between any two of them the host's
//! go first in states that serve the host.

mod non_preemptive;
mod paced;
mod preemptive;
mod semi_preemptive;

pub use preemptive::SUSPENSIONS;

use fulgurite_base::SpecError;
use std::fmt;

/// What a schedule decides from.
#[derive(Clone, Copy, Debug)]
pub struct FtlState {
    /// Erased segments that nobody writes to.
    pub free: u32,
    /// The soft threshold: with fewer free segments garbage should be collected.
    pub soft: u32,
    /// The hard threshold: so many free segments are collection's own.
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
pub enum State {
    /// 0: no collection.
    Idle,
    /// 1: collection runs, reads and writes are served.
    Collecting,
    /// 2: collection runs, reads are served, writes wait.
    Pressed,
    /// 3: collection runs and everything waits for it.
    Exclusive,
}

impl State {
    /// Whether collection runs.
    #[inline]
    pub fn collects(self) -> bool {
        self != State::Idle
    }

    /// Whether host reads are served.
    #[inline]
    pub fn serves_reads(self) -> bool {
        self != State::Exclusive
    }

    /// Whether host writes are served.
    #[inline]
    pub fn serves_writes(self) -> bool {
        self <= State::Collecting
    }
}

/// The rule that a schedule follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A collection runs to its end and nothing overtakes it.
    NonPreemptive,
    /// Collection moves pages in step with host writes.
    Paced,
    /// The host goes first between any two flash operations of collection.
    SemiPreemptive,
    /// As before, and host reads suspend programs and erases.
    Preemptive,
}

/// A rule with what may be added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The rule.
    pub rule: Rule,
    /// A host read of a page that collection must still move serves both.
    pub merge: bool,
    /// A host operation overlaps one of collection of the same kind on its die.
    pub pipeline: bool,
}

const RULES: [(Rule, &str, &str); 4] = [
    (Rule::NonPreemptive, "non-preemptive", "a victim segment is collected in one go; nothing overtakes it"),
    (
        Rule::SemiPreemptive,
        "semi-preemptive",
        "the host goes first between any two flash operations of collection; +merge +pipeline",
    ),
    (
        Rule::Preemptive,
        "preemptive",
        "semi-preemptive, and host reads suspend programs and erases; +merge +pipeline",
    ),
    (Rule::Paced, "paced", "pages are moved in step with host writes; the host goes first"),
];

impl Schedule {
    /// [`Rule::NonPreemptive`].
    pub const NON_PREEMPTIVE: Schedule = Schedule::plain(Rule::NonPreemptive);
    /// [`Rule::Paced`].
    pub const PACED: Schedule = Schedule::plain(Rule::Paced);
    /// [`Rule::SemiPreemptive`] without merge or pipeline.
    pub const SEMI_PREEMPTIVE: Schedule = Schedule::plain(Rule::SemiPreemptive);
    /// [`Rule::Preemptive`] without merge or pipeline.
    pub const PREEMPTIVE: Schedule = Schedule::plain(Rule::Preemptive);

    const fn plain(rule: Rule) -> Schedule {
        Schedule { rule, merge: false, pipeline: false }
    }

    /// Every rule's schedule by name, with one line about it.
    pub fn all() -> impl Iterator<Item = (Schedule, &'static str)> {
        RULES.iter().map(|(rule, _, about)| (Schedule::plain(*rule), *about))
    }

    /// The schedule called `name`: a rule's name, then `+merge`, `+pipeline`.
    pub fn from_name(name: &str) -> Result<Schedule, SpecError> {
        let mut parts = name.split('+');
        let rule = parts.next().unwrap_or_default();
        let names = RULES.map(|(_, name, _)| name);
        let at = names.iter().position(|known| *known == rule);
        let at = at.ok_or_else(|| SpecError::unknown("schedule", rule, &names))?;
        let mut schedule = Schedule::plain(RULES[at].0);
        for part in parts {
            match part {
                "merge" => schedule.merge = true,
                "pipeline" => schedule.pipeline = true,
                _ => return Err(SpecError::unknown("addition to a schedule", part, &["merge", "pipeline"])),
            }
        }
        if !schedule.steps_aside() && (schedule.merge || schedule.pipeline) {
            return Err(SpecError::new(format!(
                "schedule {name}: +merge and +pipeline need a collection that the host can interrupt; accepted: semi-preemptive and preemptive with them"
            )));
        }
        Ok(schedule)
    }

    /// The state that the drive should be in.
    #[inline]
    pub fn decide(self, state: &FtlState) -> State {
        match self.rule {
            Rule::NonPreemptive => non_preemptive::decide(state),
            Rule::Paced => paced::decide(state),
            Rule::SemiPreemptive => semi_preemptive::decide(state),
            Rule::Preemptive => preemptive::decide(state),
        }
    }

    /// Whether host reads suspend programs and erases.
    pub fn suspends(self) -> bool {
        self.rule == Rule::Preemptive
    }

    /// Whether the rule lets collection be interrupted by the paper's means.
    fn steps_aside(self) -> bool {
        matches!(self.rule, Rule::SemiPreemptive | Rule::Preemptive)
    }

    /// Whether it differs from others only by what it does on the dies.
    pub fn is_about_dies(self) -> bool {
        self.suspends() || self.merge || self.pipeline
    }

    /// Whether it has states of its own for the hard threshold.
    pub fn has_hard_threshold(self) -> bool {
        self.rule != Rule::NonPreemptive
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = RULES.iter().find(|(rule, ..)| *rule == self.rule).map_or("", |(_, name, _)| name);
        let merge = if self.merge { "+merge" } else { "" };
        let pipeline = if self.pipeline { "+pipeline" } else { "" };
        write!(f, "{name}{merge}{pipeline}")
    }
}

/// The state once writes have to wait: they wait for reads too, unless one has waited too long.
#[inline]
fn pressed(state: &FtlState) -> State {
    if state.urgent { State::Exclusive } else { State::Pressed }
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

    fn states(schedule: Schedule) -> [State; 6] {
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
        use State::{Collecting, Exclusive, Idle, Pressed};
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
}
