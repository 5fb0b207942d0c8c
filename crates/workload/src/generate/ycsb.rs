//! Generates the page accesses of YCSB's core workloads (Cooper et al., "Benchmarking Cloud Serving Systems
//! with YCSB", SoCC 2010, table 1).
//!
//! The workloads A, B, C and F access records by a scattered Zipf distribution of exponent 0.99. D accesses
//! the latest records, and E short runs of records whose starts have that distribution. A has half updates, B
//! a twentieth, and C none. D and E have a twentieth inserts. F reads and then writes half of its records,
//! and only reads the others.
//!
//! *Assumptions.* Records of 1 KB fill pages in the order of their keys, below one level of index pages.
//! Inserts append to the table. Because the workload is in a steady state, they overwrite the table's oldest
//! pages.

use super::blocks::{EngineConfig, with_engine};
use super::draw::{between, percent};
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use super::zipf::Zipf;
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError};

/// The core workload of YCSB, by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Letter {
    A,
    B,
    C,
    D,
    E,
    F,
}

/// The options of the YCSB workloads that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YcsbConfig {
    /// The core workload; `C` has a type of its own.
    pub letter: Letter,
    /// The options of the engine model below the accesses to pages.
    pub engine: EngineConfig,
}

impl YcsbConfig {
    /// Returns the options of a core workload without the engine model.
    pub fn new(letter: Letter) -> YcsbConfig {
        YcsbConfig { letter, engine: EngineConfig::default() }
    }
}

with_engine!(YcsbConfig);

impl Recipe for YcsbConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        self.engine.start(space, self.writes_anything(), |space| Ycsb::start(self.letter, space))
    }

    fn writes_anything(&self) -> bool {
        self.letter != Letter::C
    }
}

/// The options of `ycsb-c`, of which there are none. This workload only reads, so an engine model below it
/// would never write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct YcsbReadsConfig;

impl Declared for YcsbReadsConfig {
    const OPTIONS: &'static [Opt<YcsbReadsConfig>] = &[];
}

impl Recipe for YcsbReadsConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        Ycsb::start(Letter::C, space)
    }

    fn writes_anything(&self) -> bool {
        false
    }
}

/// The generator, with a table of records and their popularity.
#[derive(Debug)]
struct Ycsb {
    letter: Letter,
    table: Table,
    popular: Zipf,
    /// The distribution of ranks that decides how far before the newest record D reads.
    latest: Zipf,
    inserted: u64,
    accesses: Accesses,
    prng: Prng,
}

impl Ycsb {
    fn start(letter: Letter, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { pages, seed, .. } = space;
        space.check_tables()?;
        let table = Layout::new(pages).table(1000.0);
        let zipf = |name| Zipf::new(table.leaves, 0.99, Share::ZERO, Prng::new(seed, name));
        Ok(Generator::new(Ycsb {
            letter,
            table,
            popular: zipf("ycsb records"),
            latest: zipf("ycsb latest"),
            inserted: 0,
            accesses: Accesses::default(),
            prng: Prng::new(seed, "ycsb operations"),
        }))
    }

    fn popular(&mut self, op: Op) {
        let leaf = self.popular.request().page;
        self.accesses.leaf(self.table, leaf, op);
    }

    /// Returns the leaf that gets the next inserts. Each leaf has room for four records.
    fn end(&self) -> u64 {
        self.inserted / 4 % self.table.leaves
    }
}

impl RequestSource for Ycsb {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.accesses.pop() {
                return request;
            }
            let few = percent(&mut self.prng, 5);
            let half = percent(&mut self.prng, 50);
            match self.letter {
                Letter::A => self.popular(if half { Op::Write } else { Op::Read }),
                Letter::B => self.popular(if few { Op::Write } else { Op::Read }),
                Letter::C => self.popular(Op::Read),
                Letter::F if half => {
                    let leaf = self.popular.request().page;
                    self.accesses.leaf(self.table, leaf, Op::Read);
                    self.accesses.leaf(self.table, leaf, Op::Write);
                }
                Letter::F => self.popular(Op::Read),
                Letter::D | Letter::E if few => {
                    self.inserted += 1;
                    self.accesses.leaf(self.table, self.end(), Op::Write);
                }
                Letter::D => {
                    let back = self.latest.rank() - 1;
                    // A rank is at most the number of leaves, so the difference is not negative.
                    let leaf = (self.end() + self.table.leaves - back) % self.table.leaves;
                    self.accesses.leaf(self.table, leaf, Op::Read);
                }
                Letter::E => {
                    // The scan covers up to a hundred records of 1 KB, which are 25 pages.
                    let first = self.popular.request().page;
                    let pages = between(&mut self.prng, 1, 25);
                    for leaf in first..(first + pages).min(self.table.leaves) {
                        self.accesses.leaf(self.table, leaf, Op::Read);
                    }
                }
            }
        }
    }
}
