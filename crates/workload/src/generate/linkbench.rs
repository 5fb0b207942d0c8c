//! LinkBench's page accesses: "LinkBench: a Database Benchmark Based on the Facebook Social Graph"
//! (Armstrong et al., SIGMOD 2013), table 3: the mix of operations on nodes, links and their counts.
//!
//! Assumed: the node table takes two fifths of the pages, the link table, clustered by its first node, half,
//! the counts a tenth; the popularity of nodes is proportional to rank^-0.8, with popular nodes scattered; a
//! list of links is on one page.

use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use super::zipf::Zipf;
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError};

/// A workload without options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBenchConfig;

impl Declared for LinkBenchConfig {
    const OPTIONS: &'static [Opt<LinkBenchConfig>] = &[];
}

/// The three tables and the popularity of nodes.
#[derive(Debug)]
struct LinkBench {
    node: Table,
    link: Table,
    count: Table,
    nodes: Zipf,
    /// The number of nodes.
    node_count: u64,
    accesses: Accesses,
    prng: Prng,
}

impl Recipe for LinkBenchConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { pages, page_bytes, seed, .. } = space;
        space.check_tables()?;
        let mut layout = Layout::new(pages);
        let (node, link, count) = (layout.table(395.0), layout.table(495.0), layout.table(95.0));
        // A node's row has about 200 bytes.
        let node_count = (node.leaves * u64::from(page_bytes) / 200).max(2);
        let nodes = Zipf::new(node_count, 0.8, Share::ZERO, Prng::new(seed, "linkbench nodes"));
        let (accesses, prng) = (Accesses::default(), Prng::new(seed, "linkbench operations"));
        Ok(Generator::new(LinkBench { node, link, count, nodes, node_count, accesses, prng }))
    }

    fn writes_anything(&self) -> bool {
        true
    }
}

impl RequestSource for LinkBench {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.accesses.pop() {
                return request;
            }
            let at = self.nodes.request().page as f64 / self.node_count as f64;
            // Parts of a thousand.
            match self.prng.below(1_000) {
                0..507 => self.accesses.row(self.link, at, Op::Read),
                // Several links, and single ones.
                507..517 => self.accesses.row(self.link, at, Op::Read),
                517..566 => self.accesses.row(self.count, at, Op::Read),
                566..695 => self.accesses.row(self.node, at, Op::Read),
                695..769 => self.accesses.row(self.node, at, Op::Write),
                // A new node goes to the end of its table.
                769..795 => self.accesses.row(self.node, 1.0, Op::Write),
                795..805 => self.accesses.row(self.node, at, Op::Write),
                // A link is added, changed or deleted, and counted.
                805..975 => {
                    self.accesses.row(self.link, at, Op::Write);
                    self.accesses.row(self.count, at, Op::Write);
                }
                _ => self.accesses.row(self.link, at, Op::Write),
            }
        }
    }
}
