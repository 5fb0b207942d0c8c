//! The options of TPC-C.

use super::{Tpcc, load};
use crate::config::{Recipe, data_text, scaled, stored};
use crate::data::Data;
use crate::{Error, Program};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, SpecError, opt};
use fulgurite_device::Device;
use fulgurite_engine::Store;
use std::rc::Rc;

/// The options. The defaults but for the number of warehouses are the specification's; other values are for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpccConfig {
    /// Warehouses, about 100 MB each.
    pub warehouses: u32,
    /// Customers of a district, who have as many orders after the load.
    pub customers: u32,
    /// Items, of which every warehouse has a stock.
    pub items: u32,
}

impl Default for TpccConfig {
    fn default() -> TpccConfig {
        TpccConfig { warehouses: 1, customers: 3_000, items: 100_000 }
    }
}

impl Declared for TpccConfig {
    const OPTIONS: &'static [Opt<TpccConfig>] = &[
        opt!("warehouses", warehouses, COUNT, 1 => 1_000_000, "warehouses, about 100 MB each"),
        opt!("customers", customers, COUNT, 10 => 3_000, "customers of a district; the specification has 3000"),
        opt!("items", items, COUNT, 100 => 100_000, "items; the specification has 100000"),
    ];
}

impl Recipe for TpccConfig {
    fn data(&self) -> String {
        let sizes = [("customers", self.customers.into()), ("items", self.items.into())];
        data_text("tpcc", &[("warehouses", self.warehouses.into()), sizes[0], sizes[1]])
    }

    fn bytes(&self) -> u64 {
        let districts = u64::from(self.warehouses) * 10;
        // A customer with a payment, an order of ten lines and the entries of two indexes.
        let customers = stored(districts * u64::from(self.customers), 1_500);
        let stocks = stored(u64::from(self.warehouses) * u64::from(self.items), 330);
        customers.saturating_add(stocks).saturating_add(stored(self.items.into(), 90))
    }

    fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
        self.warehouses = scaled(scale, 1)?;
        Ok(())
    }

    async fn load<D: Device + 'static>(&self, store: &Store<D>, seed: u64) -> Result<(), Error> {
        load::load(self, store, seed).await
    }

    async fn open<D: Device + 'static>(&self, store: &Store<D>, data: &Data) -> Result<Program, Error> {
        Ok(Program::Tpcc(Rc::new(Tpcc::open(self, store, data.seed).await?)))
    }
}
