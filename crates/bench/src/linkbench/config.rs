//! The options of LinkBench.

use super::{LinkBench, load};
use crate::config::{Recipe, data_text, scaled, stored};
use crate::data::Data;
use crate::{Error, Program};
use fulgurite_base::option::{COUNT, COUNT_64};
use fulgurite_base::{Declared, Opt, SpecError, opt};
use fulgurite_device::Device;
use fulgurite_engine::Store;
use std::rc::Rc;

/// The options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkBenchConfig {
    /// Nodes after the load.
    pub ids: u64,
    /// Links that go out from a node, on the average, of each type.
    pub links: u32,
    /// Links that a list returns at most.
    pub list: u32,
}

/// Nodes of a scale of 1.
const IDS: u64 = 100_000;

impl Default for LinkBenchConfig {
    fn default() -> LinkBenchConfig {
        LinkBenchConfig { ids: IDS, links: 2, list: 10_000 }
    }
}

impl Declared for LinkBenchConfig {
    const OPTIONS: &'static [Opt<LinkBenchConfig>] = &[
        opt!("ids", ids, COUNT_64, 2 => 1 << 40, "nodes after the load"),
        opt!("links", links, COUNT, 1 => 1_000, "links of each type that go out from a node, on the average"),
        opt!("list", list, COUNT, 1 => 1_000_000, "links that a list returns at most"),
    ];
}

impl Recipe for LinkBenchConfig {
    fn data(&self) -> String {
        data_text("linkbench", &[("ids", self.ids), ("links", self.links.into())])
    }

    fn bytes(&self) -> u64 {
        let links = self.ids.saturating_mul(u64::from(self.links));
        // Nodes with their counts, and links with their index entries, of all types.
        stored(self.ids, 340).saturating_add(stored(links, 240))
    }

    fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
        self.ids = scaled(scale, IDS)?;
        Ok(())
    }

    async fn load<D: Device + 'static>(&self, store: &Store<D>, seed: u64) -> Result<(), Error> {
        load::load(self, store, seed).await
    }

    async fn open<D: Device + 'static>(&self, store: &Store<D>, _: &Data) -> Result<Program, Error> {
        Ok(Program::LinkBench(Rc::new(LinkBench::open(self, store).await?)))
    }
}
