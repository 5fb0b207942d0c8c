//! Which segment garbage collection takes next. One policy per file; [`VictimPolicy`] is the
//! registry, [`Victims`] the index that a policy keeps.

mod by_age;
pub mod cost_benefit;
mod fifo;
mod greedy;
mod hazard;
mod random;
mod windowed_greedy;

use crate::{SegmentId, SegmentTable};
use fulgurite_base::units::Share;
use fulgurite_base::{Spec, SpecError};
use std::fmt;

/// A policy's index over sealed segments. It is told what happens and picks when asked; the FTL
/// does the collecting. Every call is O(1) or O(log n), never a scan of all segments.
pub trait Victim {
    /// `segment` is full and may now be picked.
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable);
    /// A page of the sealed `segment` became garbage; `table` has the new count.
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable);
    /// Takes the next victim segment out of the index; `None` when nothing is sealed.
    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId>;
    /// Takes the sealed `segment` out of the index: somebody else has chosen it. Rare.
    fn remove(&mut self, segment: SegmentId, table: &SegmentTable);
}

/// The victim policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VictimPolicy {
    /// The oldest sealed segment.
    Fifo,
    /// The sealed segment with the fewest valid pages.
    Greedy,
    /// The best by age and garbage.
    CostBenefit(cost_benefit::Options),
    /// The best by garbage and the measured rate at which its pages die.
    Hazard,
    /// Any sealed segment.
    Random,
    /// The emptiest of some drawn at random.
    DChoices {
        /// How many are drawn.
        choices: u32,
    },
    /// The emptiest of the oldest.
    WindowedGreedy {
        /// How many of the segments are the oldest.
        window: Share,
    },
}

const D_CHOICES: VictimPolicy = VictimPolicy::DChoices { choices: 10 };
const WINDOWED_GREEDY: VictimPolicy = VictimPolicy::WindowedGreedy { window: Share::percent(10) };

impl VictimPolicy {
    /// Cost-benefit as the papers define it.
    pub const COST_BENEFIT: VictimPolicy = VictimPolicy::CostBenefit(cost_benefit::Options::DEFAULT);

    /// Every policy, with one line about it.
    pub const ALL: [(VictimPolicy, &'static str); 7] = [
        (VictimPolicy::Fifo, "the segment that was sealed first"),
        (VictimPolicy::Greedy, "the segment with the fewest valid pages"),
        (Self::COST_BENEFIT, "the greatest age·(1−u)/u; age=100% is the exponent, cost=u|1+u"),
        (
            VictimPolicy::Hazard,
            "Fulgurite's own: cost-benefit with the death rates that are measured by stream and age",
        ),
        (VictimPolicy::Random, "any segment"),
        (D_CHOICES, "the emptiest of d segments drawn at random; d=10"),
        (WINDOWED_GREEDY, "the emptiest of the segments sealed first; window=10%"),
    ];

    /// The policy's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            VictimPolicy::Fifo => "fifo",
            VictimPolicy::Greedy => "greedy",
            VictimPolicy::CostBenefit(_) => "cost-benefit",
            VictimPolicy::Hazard => "hazard",
            VictimPolicy::Random => "random",
            VictimPolicy::DChoices { .. } => "d-choices",
            VictimPolicy::WindowedGreedy { .. } => "windowed-greedy",
        }
    }

    /// The policy that `spec` names.
    pub fn from_spec(mut spec: Spec) -> Result<VictimPolicy, SpecError> {
        let names = Self::ALL.map(|(policy, _)| policy.name());
        let at = names.iter().position(|known| *known == spec.name());
        let mut policy = Self::ALL[at.ok_or_else(|| SpecError::unknown("victim", spec.name(), &names))?].0;
        match &mut policy {
            VictimPolicy::CostBenefit(options) => *options = cost_benefit::Options::from_spec(&mut spec)?,
            VictimPolicy::DChoices { choices } => {
                *choices = spec.take::<u32>("d")?.unwrap_or(*choices);
                if *choices == 0 {
                    return Err(SpecError::new("d=0 of d-choices; accepted: at least 1"));
                }
            }
            VictimPolicy::WindowedGreedy { window } => {
                *window = spec.take::<Share>("window")?.unwrap_or(*window);
                if *window == Share::ZERO || *window > Share::ONE {
                    let sentence =
                        format!("window={window} of windowed-greedy; accepted: more than 0% to 100%");
                    return Err(SpecError::new(sentence));
                }
            }
            VictimPolicy::Fifo | VictimPolicy::Greedy | VictimPolicy::Hazard | VictimPolicy::Random => {}
        }
        spec.finish()?;
        Ok(policy)
    }

    /// An empty index for `segments` segments of `segment_pages` pages.
    pub fn index(self, segments: u32, segment_pages: u32) -> Victims {
        match self {
            VictimPolicy::Fifo => Victims::Fifo(fifo::Fifo::default()),
            VictimPolicy::Greedy => Victims::Greedy(greedy::Greedy::new(segments, segment_pages)),
            VictimPolicy::CostBenefit(options) => {
                Victims::CostBenefit(cost_benefit::CostBenefit::new(options, segments, segment_pages))
            }
            VictimPolicy::Hazard => Victims::Hazard(hazard::Hazard::new(segments, segment_pages)),
            VictimPolicy::Random => Victims::Choices(random::Choices::new(1, segments)),
            VictimPolicy::DChoices { choices } => Victims::Choices(random::Choices::new(choices, segments)),
            VictimPolicy::WindowedGreedy { window } => {
                let window = (f64::from(segments) * window.as_f64()).round().max(1.0) as u32;
                Victims::WindowedGreedy(windowed_greedy::WindowedGreedy::new(window, segments, segment_pages))
            }
        }
    }
}

impl fmt::Display for VictimPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            VictimPolicy::CostBenefit(options) if *options != cost_benefit::Options::DEFAULT => {
                let cost = if options.cost == cost_benefit::Cost::Copies { "u" } else { "1+u" };
                write!(f, ":age={},cost={cost}", options.age)
            }
            VictimPolicy::DChoices { choices } => write!(f, ":d={choices}"),
            VictimPolicy::WindowedGreedy { window } => write!(f, ":window={window}"),
            _ => Ok(()),
        }
    }
}

macro_rules! victims {
    ($($variant:ident($index:ty),)*) => {
        /// The index of whichever policy was chosen.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Victims {
            $($variant($index),)*
        }

        impl Victim for Victims {
            #[inline]
            fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
                match self {
                    $(Victims::$variant(index) => index.sealed(segment, table),)*
                }
            }

            #[inline]
            fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
                match self {
                    $(Victims::$variant(index) => index.invalidated(segment, table),)*
                }
            }

            #[inline]
            fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
                match self {
                    $(Victims::$variant(index) => index.pick(table),)*
                }
            }

            fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
                match self {
                    $(Victims::$variant(index) => index.remove(segment, table),)*
                }
            }
        }
    };
}

victims! {
    Fifo(fifo::Fifo),
    Greedy(greedy::Greedy),
    CostBenefit(cost_benefit::CostBenefit),
    Choices(random::Choices),
    Hazard(hazard::Hazard),
    WindowedGreedy(windowed_greedy::WindowedGreedy),
}
