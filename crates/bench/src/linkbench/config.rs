//! Defines the options of the LinkBench benchmark.

use fulgurite_base::option::{COUNT, COUNT_64};
use fulgurite_base::{Declared, Opt, opt};

/// The options of `linkbench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBenchConfig {
    /// The number of nodes after the load.
    pub ids: u64,
    /// The average number of outgoing links of a node, for each type of link.
    pub links: u32,
    /// The most links that a list request returns.
    pub list: u32,
}

/// The number of nodes at a scale of 1.
pub(super) const IDS: u64 = 100_000;

impl Default for LinkBenchConfig {
    fn default() -> LinkBenchConfig {
        LinkBenchConfig { ids: IDS, links: 2, list: 10_000 }
    }
}

impl Declared for LinkBenchConfig {
    const OPTIONS: &'static [Opt<LinkBenchConfig>] = &[
        opt!("ids", ids, COUNT_64, 2 => 1 << 40, "nodes after the load"),
        opt!("links", links, COUNT, 1 => 1_000, "average number of outgoing links of a node, for each type"),
        opt!("list", list, COUNT, 1 => 1_000_000, "links that a list returns at most"),
    ];
}
