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
