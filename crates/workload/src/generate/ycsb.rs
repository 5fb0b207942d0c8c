//! YCSB's core workloads as pages: "Benchmarking Cloud Serving Systems with YCSB" (Cooper et al., SoCC 2010),
//! table 1.
//!
//! A, B, C and F access records by a scattered Zipf distribution of exponent 0.99, D the latest records, E
//! short runs that start at records of that distribution. A has half updates, B a twentieth, C none; D and E
//! have a twentieth inserts; F reads and then writes half of its records. *Assumptions.* Records of 1 KB fill
//! pages in the order of their keys, below one level of index pages. Inserts append to the table; because the
//! run is in a steady state, they overwrite its oldest pages.

use super::blocks::{EngineConfig, with_engine};
use super::draw::{between, percent};
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use super::zipf::Zipf;
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError};

/// Which of the six.
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

/// The options of the workloads that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct YcsbConfig {
    /// Which of the six; `C` has a type of its own.
    pub letter: Letter,
    /// The engine below.
    pub engine: EngineConfig,
}

impl YcsbConfig {
    /// Without an engine.
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

/// YCSB C: only reads, so an engine below it would never write.
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

/// A table of records and their popularity.
#[derive(Debug)]
struct Ycsb {
    letter: Letter,
    table: Table,
    popular: Zipf,
    /// Ranks that tell how far back the latest records are read.
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

    /// The page that gets inserts: four records in each page.
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
                    // Up to a hundred records of 1 KB.
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
