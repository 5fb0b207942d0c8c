//! Cost-benefit victim selection: the score of a segment grows with its invalid pages and with the time since
//! it was sealed.
//!
//! The policy picks the greatest age^a · (1 − u) / c(u). u is the share of valid pages, and age is the number
//! of host page writes since the segment was sealed. c(u) = u is the form of MiDAS (FAST 2024, which
//! minimises the inverse). 2u is the LFS cleaner's form with free reads ("A flash-memory based file system",
//! USENIX 1995). 1 + u is the form of "The design and implementation of a log-structured file system" (SOSP
//! 1991). The exponent a is 1 by these definitions; the programs of MiDAS and SepBIT take the square root. A
//! pick takes O(log n) by a tree over ages, and is exact.

use super::by_age::ByAge;
use super::policy::VictimPolicy;
use crate::{SegmentId, SegmentTable};
use fulgurite_base::option::SHARE;
use fulgurite_base::{Choice, Declared, Form, Opt, Share, opt};
use std::ops::Range;

/// The cost c(u) of collecting a segment, by its share u of valid pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cost {
    /// The cost is u, for the copies. 2u gives the same order of segments.
    Copies,
    /// The cost is 1 + u, since the whole segment is read.
    ReadAll,
}

impl Choice for Cost {
    const NAMES: &'static [(&'static str, Cost)] = &[("u", Cost::Copies), ("1+u", Cost::ReadAll)];
}

/// The options of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CostBenefitConfig {
    /// The exponent of age.
    pub age: Share,
    /// The cost in the denominator.
    pub cost: Cost,
}

impl CostBenefitConfig {
    /// The score as the papers define it.
    pub const PAPER: CostBenefitConfig = CostBenefitConfig { age: Share::ONE, cost: Cost::Copies };
}

impl Default for CostBenefitConfig {
    fn default() -> CostBenefitConfig {
        CostBenefitConfig::PAPER
    }
}

impl Declared for CostBenefitConfig {
    const OPTIONS: &'static [Opt<CostBenefitConfig>] = &[
        opt!("age", age, SHARE, "the exponent of age"),
        opt!("cost", cost, Form::<Cost>::choice("u|1+u"), "cost of collecting a segment"),
    ];
}

/// Returns (1 − u) / c(u) by the number of valid pages.
fn benefits(cost: Cost, segment_pages: u32) -> Vec<f64> {
    let pages = f64::from(segment_pages);
    let benefit = |valid: u32| match cost {
        Cost::Copies => (pages - f64::from(valid)) / f64::from(valid),
        Cost::ReadAll => (pages - f64::from(valid)) / (pages + f64::from(valid)),
    };
    (0..=segment_pages).map(benefit).collect()
}

/// The sealed segments by age, and the score.
#[derive(Clone, Debug)]
pub(crate) struct CostBenefit {
    config: CostBenefitConfig,
    index: ByAge,
    /// (1 − u) / c(u) by the number of valid pages.
    benefit: Vec<f64>,
}

impl CostBenefit {
    pub(super) fn start(config: &CostBenefitConfig, segments: Range<u32>, segment_pages: u32) -> CostBenefit {
        let benefit = benefits(config.cost, segment_pages);
        CostBenefit { config: *config, index: ByAge::new(segments), benefit }
    }
}

impl VictimPolicy for CostBenefit {
    fn sealed(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.index.push(segment, table.valid(segment), table.sealed_at(segment));
    }

    #[inline]
    fn invalidated(&mut self, segment: SegmentId, table: &SegmentTable) {
        self.index.lowered(segment, table.valid(segment));
    }

    fn pick(&mut self, table: &SegmentTable) -> Option<SegmentId> {
        let now = table.now();
        let benefit = |valid: u32| self.benefit[valid as usize];
        // Counts age from one, so that a segment that was just sealed can be compared by its invalid pages.
        let age = |sealed_at: u64| (now - sealed_at + 1) as f64;
        let segment = match self.config.age {
            // Treats the usual exponents separately to avoid `pow`, which a search would call for every
            // visited node.
            Share::ONE => self.index.best(|sealed_at, valid| age(sealed_at) * benefit(valid)),
            half if half == Share::percent(50) => {
                self.index.best(|sealed_at, valid| age(sealed_at).sqrt() * benefit(valid))
            }
            other => {
                let exponent = other.as_f64();
                self.index.best(|sealed_at, valid| libm::pow(age(sealed_at), exponent) * benefit(valid))
            }
        }?;
        self.index.remove(segment);
        Some(segment)
    }

    fn remove(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.index.remove(segment);
    }
}
