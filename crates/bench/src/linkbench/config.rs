//! The options of LinkBench.

use fulgurite_base::option::{COUNT, COUNT_64};
use fulgurite_base::{Declared, Opt, opt};

/// The options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBenchConfig {
    /// Nodes after the load.
    pub ids: u64,
    /// The average number of outgoing links of a node, for each type.
    pub links: u32,
    /// The most links that a list returns.
    pub list: u32,
}

/// Nodes of a scale of 1.
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
