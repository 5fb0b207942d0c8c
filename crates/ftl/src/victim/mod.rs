//! Decides which segment garbage collection takes next. Each policy has a file. [`VictimConfig`] chooses one by name,
//! and [`Victims`] is the index that a policy keeps.
//!
//! A new policy is one file with its `mod` line below and one line of `victims!`.

mod by_age;
pub mod cost_benefit;
pub mod d_choices;
mod fifo;
mod greedy;
mod hazard;
pub(crate) mod per_segment;
pub mod windowed_greedy;

use crate::custom::Custom;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::with_name;
use fulgurite_base::{Declared, Entry, Form, NoOptions, Registry, Spec, SpecError};
use std::fmt;
use std::ops::Range;

/// A policy's index over sealed segments. It is told what happens and picks when asked; the translation layer
/// does the collecting. Every call is O(1) or O(log n), never a scan of all segments.
pub trait VictimPolicy {
    /// `segment` is full and may now be picked.
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable);
    /// A page of the sealed `segment` became garbage; `table` has the new count.
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable);
    /// Takes the next victim segment out of the index; `None` when nothing is sealed.
    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId>;
    /// Takes the sealed `segment` out of the index: somebody else has chosen it. Rare.
    fn remove(&mut self, segment: SegmentId, table: &SegmentTable);
}

/// A policy together with its options: what [`VictimConfig`] is made of.
pub trait ConfiguredVictim: VictimPolicy + Sized {
    /// Its options; the default is what the name alone stands for.
    type Config: Declared + Default;

    /// An empty index for these segments of `segment_pages` pages. They are those of one unit of collection, so
    /// they need not begin with the first of the table.
    fn start(config: &Self::Config, segments: Range<u32>, segment_pages: u32) -> Self;
}

/// A policy of which nothing else is known: [`VictimPolicy`] for `dyn`.
pub trait AnyVictim: VictimPolicy + Send + Sync {
    /// A copy of its state.
    fn boxed_clone(&self) -> Box<dyn AnyVictim>;
}

impl<V: VictimPolicy + Clone + Send + Sync + 'static> AnyVictim for V {
    fn boxed_clone(&self) -> Box<dyn AnyVictim> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyVictim> {
    fn clone(&self) -> Box<dyn AnyVictim> {
        // Of the policy, not of the box, which is an `AnyVictim` too.
        (**self).boxed_clone()
    }
}

impl fmt::Debug for dyn AnyVictim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyVictim")
    }
}

/// Makes a policy from outside, given the segments and the pages in one.
pub type VictimMaker = Box<dyn Fn(Range<u32>, u32) -> Box<dyn AnyVictim> + Send + Sync>;

/// Makes a configuration from the options of a spec.
pub type MakeVictim = fn(&mut Spec) -> Result<VictimConfig, SpecError>;

macro_rules! victims {
    ($($name:literal $variant:ident($policy:ty) $about:literal)*) => {
        /// A victim policy with its options.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum VictimConfig {
            $($variant(<$policy as ConfiguredVictim>::Config),)*
            /// A policy from outside; made by [`VictimConfig::custom`].
            Custom(Custom<VictimMaker>),
        }

        static REGISTRY: Registry<MakeVictim> = Registry {
            kind: "victim",
            entries: &[$(Entry {
                name: $name,
                about: $about,
                options: || <$policy as ConfiguredVictim>::Config::default().describe_options(),
                make: |spec| {
                    let usual = <$policy as ConfiguredVictim>::Config::default();
                    Ok(VictimConfig::$variant(usual.with_options(spec)?))
                },
            },)*],
        };

        impl VictimConfig {
            /// The policy's name on the command line.
            pub fn name(&self) -> &str {
                match self {
                    $(VictimConfig::$variant(_) => $name,)*
                    VictimConfig::Custom(custom) => custom.name(),
                }
            }

            /// An empty index for these segments of `segment_pages` pages.
            pub fn start(&self, segments: Range<u32>, segment_pages: u32) -> Victims {
                match self {
                    $(VictimConfig::$variant(config) => Victims::$variant(
                        <$policy as ConfiguredVictim>::start(config, segments, segment_pages)
                    ),)*
                    VictimConfig::Custom(custom) => Victims::Custom(custom.make()(segments, segment_pages)),
                }
            }

            /// The options that differ from the default.
            fn options(&self) -> String {
                match self {
                    $(VictimConfig::$variant(config) => config.options_beside(&Default::default()),)*
                    VictimConfig::Custom(_) => String::new(),
                }
            }
        }

        /// The index of the policy that was chosen.
        #[derive(Clone, Debug)]
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Victims {
            $($variant($policy),)*
            Custom(Box<dyn AnyVictim>),
        }

        impl VictimPolicy for Victims {
            #[inline]
            fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
                match self {
                    $(Victims::$variant(index) => index.sealed(segment, table),)*
                    Victims::Custom(index) => index.sealed(segment, table),
                }
            }

            #[inline]
            fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
                match self {
                    $(Victims::$variant(index) => index.invalidated(segment, table),)*
                    Victims::Custom(index) => index.invalidated(segment, table),
                }
            }

            #[inline]
            fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
                match self {
                    $(Victims::$variant(index) => index.pick(table),)*
                    Victims::Custom(index) => index.pick(table),
                }
            }

            fn remove(&mut self, segment: SegmentId, table: &SegmentTable) {
                match self {
                    $(Victims::$variant(index) => index.remove(segment, table),)*
                    Victims::Custom(index) => index.remove(segment, table),
                }
            }
        }
    };
}

victims! {
    "fifo" Fifo(fifo::Fifo) "the segment that was sealed first"
    "greedy" Greedy(greedy::Greedy) "the segment with the fewest valid pages"
    "cost-benefit" CostBenefit(cost_benefit::CostBenefit) "the segment with the greatest age·(1−u)/u"
    "hazard" Hazard(hazard::Hazard) "Fulgurite's own: cost-benefit with the death rates that are measured by stream and age"
    "random" Random(d_choices::Random) "any segment"
    "d-choices" DChoices(d_choices::DChoices) "the emptiest of d segments drawn at random"
    "windowed-greedy" WindowedGreedy(windowed_greedy::WindowedGreedy) "the emptiest of the segments sealed first"
}

impl VictimConfig {
    /// The oldest sealed segment.
    pub const FIFO: VictimConfig = VictimConfig::Fifo(NoOptions);
    /// The sealed segment with the fewest valid pages.
    pub const GREEDY: VictimConfig = VictimConfig::Greedy(NoOptions);
    /// Any sealed segment.
    pub const RANDOM: VictimConfig = VictimConfig::Random(NoOptions);
    /// Cost-benefit as the papers define it.
    pub const COST_BENEFIT: VictimConfig = VictimConfig::CostBenefit(cost_benefit::CostBenefitConfig::PAPER);

    /// How a policy with its options is written where it is an option itself.
    pub const FORM: Form<VictimConfig> = Form {
        written: "NAME",
        parse: |text| VictimConfig::from_spec(Spec::parse(text)?),
        show: VictimConfig::to_string,
    };

    /// Every policy that can be chosen by name.
    pub fn registry() -> &'static Registry<MakeVictim> {
        &REGISTRY
    }

    /// The policy that `spec` names.
    pub fn from_spec(spec: Spec) -> Result<VictimConfig, SpecError> {
        REGISTRY.read(spec)
    }

    /// A policy from outside, called `name` in tables.
    pub fn custom<V>(name: &str, config: V::Config) -> VictimConfig
    where
        V: ConfiguredVictim + AnyVictim + 'static,
        V::Config: Send + Sync,
    {
        let name = with_name(name, &config.options_beside(&V::Config::default()));
        let start: VictimMaker =
            Box::new(move |segments, segment_pages| Box::new(V::start(&config, segments, segment_pages)));
        VictimConfig::Custom(Custom::new(&name, start))
    }
}

impl fmt::Display for VictimConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_name(self.name(), &self.options()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::{Prng, StreamId};

    const SEGMENTS: Range<u32> = 10..40;
    const PAGES: u32 = 16;

    /// Segments of two streams, sealed in turn with different numbers of valid pages, of which every third is `removed` later, and the
    /// order in which all are picked.
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
            // What is removed is told of nothing more.
            for other in SEGMENTS.filter(|other| !is_removed(*other) && !picked.contains(other)) {
                if table.valid(SegmentId(other)) > 1 && prng.below(3) == 0 {
                    die(&mut index, &mut table, other, true);
                }
            }
        }
        picked
    }

    /// The rule: a segment that was removed is picked no more, and all others are picked, once each, in the order of an index that
    /// never had the segment.
    #[test]
    fn a_removed_segment_is_as_if_it_had_never_been_sealed() {
        for name in VictimConfig::registry().names() {
            let config = VictimConfig::from_spec(Spec::parse(name).unwrap()).unwrap();
            for nth in [1, 2, 3, 7] {
                let is_removed = |segment: u32| segment.is_multiple_of(nth);
                let (with, without) = (picks(&config, is_removed, true), picks(&config, is_removed, false));
                // Which segments are drawn depends on where they lie in the list of all, and death rates are measured on all.
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
