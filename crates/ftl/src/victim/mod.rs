//! Victim selection: decides which segment garbage collection takes next. Each policy has a file.
//! [`VictimConfig`] selects a policy by name. Each policy keeps an index over the sealed segments.
//!
//! A new policy is one file with its `mod` line below and one line in `victims!`.

pub(crate) mod per_segment;
mod by_age;
mod policy;
pub mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;
mod hazard;
mod two_r_fifo;
mod two_r_greedy;
pub mod windowed_greedy;

pub use policy::{AnyVictim, CustomVictim, VictimPolicy};

use crate::{SegmentId, SegmentTable};
use cost_benefit::CostBenefitConfig;
use d_choices::DChoicesConfig;
use fulgurite_base::{Form, NoOptions, config_enum};
use std::ops::Range;
use two_r_fifo::TwoRFifoConfig;
use windowed_greedy::WindowedGreedyConfig;

macro_rules! victims {
    ($($name:literal $variant:ident($policy:ty, $options:ty) $about:literal)*) => {
        config_enum! {
            /// The victim policies by name, each with its options.
            #[derive(PartialEq, Eq)]
            pub enum VictimConfig: "victim", custom CustomVictim;
            $($name $variant($options) $about)*
        }

        impl VictimConfig {
            /// Creates an empty index for these segments of `segment_pages` pages.
            pub(crate) fn start(&self, segments: Range<u32>, segment_pages: u32) -> Victims {
                match self {
                    $(VictimConfig::$variant(config) => {
                        Victims::$variant(<$policy>::start(config, segments, segment_pages))
                    })*
                    VictimConfig::Custom(custom) => Victims::Custom(custom.start(segments, segment_pages)),
                }
            }
        }

        /// The index of the selected policy.
        #[derive(Clone, Debug)]
        pub(crate) enum Victims {
            $($variant($policy),)*
            Custom(Box<dyn AnyVictim>),
        }

        macro_rules! dispatch {
            ($self:expr, $p:ident => $call:expr) => {
                match $self {
                    $(Victims::$variant($p) => $call,)*
                    Victims::Custom($p) => $call,
                }
            };
        }
    };
}

victims! {
    "fifo" Fifo(fifo::Fifo, NoOptions) "the segment that was sealed first"
    "greedy" Greedy(greedy::Greedy, NoOptions) "the segment with the fewest valid pages"
    "cost-benefit" CostBenefit(cost_benefit::CostBenefit, CostBenefitConfig) "the segment with the greatest age·(1−u)/u"
    "hazard" Hazard(hazard::Hazard, NoOptions)
        "Fulgurite's own: cost-benefit with death rates measured by stream and age"
    "random" Random(d_choices::Random, NoOptions) "any segment"
    "d-choices" DChoices(d_choices::DChoices, DChoicesConfig) "the emptiest of d segments drawn at random"
    "windowed-greedy" WindowedGreedy(windowed_greedy::WindowedGreedy, WindowedGreedyConfig)
        "the emptiest of the segments sealed first"
    "2r-greedy" TwoRGreedy(two_r_greedy::TwoRGreedy, NoOptions)
        "in rounds, the emptiest of the region with the emptiest segment (2R-Greedy)"
    "2r-fifo" TwoRFifo(two_r_fifo::TwoRFifo, TwoRFifoConfig)
        "in rounds, the oldest that are empty enough; the others get a second chance (2R-FIFO)"
}

impl VictimConfig {
    /// The policy that picks the oldest sealed segment.
    pub const FIFO: VictimConfig = VictimConfig::Fifo(NoOptions);
    /// The policy that picks the sealed segment with the fewest valid pages.
    pub const GREEDY: VictimConfig = VictimConfig::Greedy(NoOptions);
    /// The policy that picks any sealed segment.
    pub const RANDOM: VictimConfig = VictimConfig::Random(NoOptions);
    /// Cost-benefit as the papers define it.
    pub const COST_BENEFIT: VictimConfig = VictimConfig::CostBenefit(CostBenefitConfig::PAPER);

    /// The form of an option whose value is a victim policy with options.
    pub const FORM: Form<VictimConfig> =
        Form { written: "NAME", parse: |text| text.parse(), show: VictimConfig::to_string };
}

impl VictimPolicy for Victims {
    #[inline]
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        dispatch!(self, index => index.sealed(segment, table));
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        dispatch!(self, index => index.invalidated(segment, table));
    }

    #[inline]
    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        dispatch!(self, index => index.pick(table))
    }

    fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
        dispatch!(self, index => index.remove(segment, table));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::{Prng, StreamId};

    const SEGMENTS: Range<u32> = 10..40;
    const PAGES: u32 = 16;

    /// Seals segments of two streams with different numbers of valid pages, removes those for which
    /// `is_removed` is true, and returns the order in which the others are picked. With `are_sealed` false,
    /// the index never had the removed segments.
    fn picks(config: &VictimConfig, is_removed: impl Fn(u32) -> bool, are_sealed: bool) -> Vec<u32> {
        let mut table = SegmentTable::new(SEGMENTS.end, PAGES, 2);
        let mut index = config.start(SEGMENTS, PAGES);
        let mut prng = Prng::new(4, "removed");
        let is_known = |segment: u32| are_sealed || !is_removed(segment);
        for segment in SEGMENTS {
            table.open(SegmentId(segment), StreamId((segment % 2) as u16));
            table.append(SegmentId(segment), PAGES);
            (0..PAGES).for_each(|_| table.tick());
            table.seal(SegmentId(segment));
            if is_known(segment) {
                index.sealed(SegmentId(segment), &table);
            }
        }
        let die = |index: &mut Victims, table: &mut SegmentTable, segment: u32, known: bool| {
            table.invalidate(SegmentId(segment));
            if known {
                index.invalidated(SegmentId(segment), table);
            }
        };
        for _ in 0..200 {
            let segment = SEGMENTS.start + prng.below(u64::from(SEGMENTS.end - SEGMENTS.start)) as u32;
            if table.valid(SegmentId(segment)) > 1 {
                die(&mut index, &mut table, segment, is_known(segment));
            }
        }
        for segment in SEGMENTS.filter(|segment| is_removed(*segment) && are_sealed) {
            index.remove(SegmentId(segment), &table);
        }
        let mut picked = Vec::new();
        while let Some(SegmentId(segment)) = index.pick(&table) {
            picked.push(segment);
            // Invalidates pages of other segments only, since the index is not told of changes of a removed
            // segment.
            for other in SEGMENTS.filter(|other| !is_removed(*other) && !picked.contains(other)) {
                if table.valid(SegmentId(other)) > 1 && prng.below(3) == 0 {
                    die(&mut index, &mut table, other, true);
                }
            }
        }
        picked
    }

    /// The rule: a removed segment is never picked. All others are picked once each, in the order of an index
    /// that never had the removed segments.
    #[test]
    fn a_removed_segment_does_not_affect_later_picks() {
        for name in VictimConfig::registry().names() {
            let config = name.parse::<VictimConfig>().unwrap();
            for nth in [1, 2, 3, 7] {
                let is_removed = |segment: u32| segment.is_multiple_of(nth);
                let (with, without) = (picks(&config, is_removed, true), picks(&config, is_removed, false));
                // Compares these policies without the order: random draws depend on the positions in the list
                // of all segments, and death rates are measured on all segments.
                let depends = [VictimConfig::RANDOM.name(), "d-choices", "hazard"];
                if depends.contains(&config.name()) {
                    let mut sorted = with;
                    sorted.sort_unstable();
                    assert!(
                        sorted.into_iter().eq(SEGMENTS.filter(|segment| !is_removed(*segment))),
                        "{name}"
                    );
                } else {
                    assert_eq!(with, without, "{name}, every {nth}th");
                    let kept = SEGMENTS.filter(|segment| !is_removed(*segment)).count();
                    assert_eq!(with.len(), kept, "{name}, every {nth}th");
                }
            }
        }
    }
}
