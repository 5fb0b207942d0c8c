//! Generates writes whose pattern changes over time, after the description of two production traces in MiDAS
//! (Oh et al., FAST 2024).
//!
//! `alibaba-like` is a cloud volume with "short and intensive write patterns". A phase has a 50th to a fifth
//! as many writes as there are pages. In each phase, a region of 1 to 10 % of the pages with a random start
//! gets 70 % of the writes, a sequential run with a random start gets 20 %, and a constant Zipf distribution
//! of exponent 0.9 over all pages gets the rest. `exchange-like` is a mail server with small workloads of
//! irregular patterns. It has longer phases and regions of 5 to 40 %, and each phase has random shares of
//! sequential, regional and popular writes. The lengths of the phases and the shares are assumed, because the
//! traces are not available and the MiDAS paper has no further figures.

use super::draw::between;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::zipf::Zipf;
use crate::{Op, Request};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError};

/// The distribution of phases of a workload. It has no options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasesConfig {
    /// The least and the most writes of a phase, in thousandths of the pages.
    length: (u64, u64),
    /// The least and the most pages of a region, in thousandths of the pages.
    region: (u64, u64),
    /// The least and the most writes to the region, and those in sequence, in percent of the writes of a
    /// phase.
    regional: (u64, u64),
    sequential: (u64, u64),
}

pub(super) const ALIBABA: PhasesConfig =
    PhasesConfig { length: (20, 200), region: (10, 100), regional: (70, 70), sequential: (20, 20) };
pub(super) const EXCHANGE: PhasesConfig =
    PhasesConfig { length: (100, 1_500), region: (50, 400), regional: (10, 70), sequential: (0, 30) };

/// The generator, with the distribution of phases, and the current phase.
#[derive(Debug)]
struct Irregular {
    shape: PhasesConfig,
    pages: u64,
    left: u64,
    region: u64,
    region_pages: u64,
    regional: u64,
    sequential: u64,
    next: u64,
    popular: Zipf,
    prng: Prng,
}

impl Declared for PhasesConfig {
    const OPTIONS: &'static [Opt<PhasesConfig>] = &[];
}

impl Recipe for PhasesConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { pages, seed, .. } = space;
        Ok(Generator::new(Irregular {
            shape: *self,
            pages,
            left: 0,
            region: 0,
            region_pages: 1,
            regional: 0,
            sequential: 0,
            next: 0,
            popular: Zipf::new(pages, 0.9, Share::ZERO, Prng::new(seed, "irregular pages")),
            prng: Prng::new(seed, "irregular phases"),
        }))
    }

    fn writes_anything(&self) -> bool {
        true
    }
}

impl Irregular {
    fn begin(&mut self) {
        let Irregular { shape, pages, prng, .. } = self;
        // With few pages the product would round to zero, but a phase has at least one write and a region at
        // least one page.
        let mut thousandths = |(least, most)| (*pages * between(prng, least, most) / 1000).max(1);
        (self.left, self.region_pages) = (thousandths(shape.length), thousandths(shape.region));
        self.region = prng.below(*pages);
        self.regional = between(prng, shape.regional.0, shape.regional.1);
        self.sequential = between(prng, shape.sequential.0, shape.sequential.1);
        self.next = prng.below(*pages);
    }
}

impl RequestSource for Irregular {
    fn request(&mut self) -> Request {
        if self.left == 0 {
            self.begin();
        }
        self.left -= 1;
        let kind = self.prng.below(100);
        let page = if kind < self.regional {
            // A region that extends beyond the last page continues at the first page.
            (self.region + self.prng.below(self.region_pages)) % self.pages
        } else if kind < self.regional + self.sequential {
            self.next = (self.next + 1) % self.pages;
            self.next
        } else {
            self.popular.request().page
        };
        Request::of_page(Op::Write, page)
    }
}
