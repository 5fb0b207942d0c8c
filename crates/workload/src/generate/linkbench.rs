//! Generates the page accesses of LinkBench, a benchmark on a social graph (Armstrong et al., "LinkBench: a
//! Database Benchmark Based on the Facebook Social Graph", SIGMOD 2013). The mix of operations on nodes, on
//! links and on the counts of links is that of table 3 in Armstrong et al.
//!
//! *Assumptions.* The node table takes two fifths of the pages, the link table half, and the table of counts
//! a tenth. The link table is clustered by the first node of a link. The popularity of nodes is proportional
//! to rank^-0.8, with popular nodes scattered. A list of links is on one page.

use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use super::zipf::Zipf;
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError};

/// The options of `linkbench`, of which there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkBenchConfig;

impl Declared for LinkBenchConfig {
    const OPTIONS: &'static [Opt<LinkBenchConfig>] = &[];
}

/// The generator, with the three tables and the popularity of nodes.
#[derive(Debug)]
struct LinkBench {
    node: Table,
    link: Table,
    count: Table,
    nodes: Zipf,
    /// The number of nodes in the node table.
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
        // A row of the node table has about 200 bytes.
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
            // The bounds of the operations are in thousandths of all operations.
            match self.prng.below(1_000) {
                0..507 => self.accesses.row(self.link, at, Op::Read),
                // Reads of several links and of a single link.
                507..517 => self.accesses.row(self.link, at, Op::Read),
                517..566 => self.accesses.row(self.count, at, Op::Read),
                566..695 => self.accesses.row(self.node, at, Op::Read),
                695..769 => self.accesses.row(self.node, at, Op::Write),
                // A new node is inserted at the end of its table.
                769..795 => self.accesses.row(self.node, 1.0, Op::Write),
                795..805 => self.accesses.row(self.node, at, Op::Write),
                // A link is added, changed or deleted, and its count is updated.
                805..975 => {
                    self.accesses.row(self.link, at, Op::Write);
                    self.accesses.row(self.count, at, Op::Write);
                }
                _ => self.accesses.row(self.link, at, Op::Write),
            }
        }
    }
}
