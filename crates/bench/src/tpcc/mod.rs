//! Implements the TPC-C benchmark (Standard Specification, revision 5.11), with all five transactions on all
//! nine tables and without think time.
//!
//! The mix is 45 % New-Order, 43 % Payment and 4 % each of Order-Status, Delivery and Stock-Level. Every user
//! draws a warehouse for each transaction, because without think time there are far fewer users than
//! terminals. Deliveries are not queued: a delivery is one transaction over all ten districts. The throughput
//! is transactions per second of the mix, not tpmC (New-Order transactions per minute).
//!
//! Locks are acquired in a fixed order (warehouse, district, stocks by number, customer), so that deadlocks
//! are rare. Columns that no transaction changes (taxes, discounts, names, prices) are read from a snapshot
//! without locks, as in multi-version engines. The transactions stay serialisable, because these columns
//! never change.

// Amounts of money are in cents, so 10_00 is ten dollars, and digits are not grouped by thousands.
#![allow(clippy::inconsistent_digit_grouping)]

mod config;
mod random;
mod request;
pub mod rows;
mod tables;
mod load;
mod program;
mod delivery;
mod draw;
mod new_order;
mod payment;
mod status;
mod verify;

pub(crate) use config::TpccConfig;
pub use program::Tpcc;
pub use request::{Customers, Line, Request, Who};
pub use verify::verify;

use crate::benchmark::{Benchmark, Ending, Verified};
use crate::data::Data;
use crate::error::Error;
use crate::recipe::{Recipe, data_text, scaled, stored};
use crate::session::Session;
use fulgurite_base::{Prng, SpecError};
use fulgurite_engine::sharded::Store;

impl Benchmark for Tpcc {
    type Request = Request;

    fn kinds(&self) -> &[&'static str] {
        &["new-order", "payment", "order-status", "delivery", "stock-level"]
    }

    fn kind(&self, request: &Request) -> usize {
        match request {
            Request::NewOrder { .. } => 0,
            Request::Payment { .. } => 1,
            Request::OrderStatus { .. } => 2,
            Request::Delivery { .. } => 3,
            Request::StockLevel { .. } => 4,
        }
    }

    fn draw(&self, prng: &mut Prng) -> Request {
        self.draw_request(prng)
    }

    async fn execute(&self, request: &Request, session: &Session) -> Result<Ending, Error> {
        match request {
            Request::NewOrder { warehouse, district, customer, lines } => {
                return self.new_order(session, *warehouse, *district, *customer, lines).await;
            }
            Request::Payment { number, warehouse, district, customers, amount } => {
                self.payment(session, *number, (*warehouse, *district), customers, *amount).await?;
            }
            Request::OrderStatus { customers } => self.order_status(session, customers).await?,
            Request::Delivery { warehouse, carrier } => self.delivery(session, *warehouse, *carrier).await?,
            Request::StockLevel { warehouse, district, threshold } => {
                self.stock_level(session, *warehouse, *district, *threshold).await?;
            }
        }
        Ok(Ending::Committed)
    }
}

impl Tpcc {
    /// Checks TPC-C's consistency conditions 1 to 4; see [`verify`].
    pub async fn verify(&self, store: &Store) -> Result<Verified, Error> {
        verify(store).await
    }
}

impl Recipe for TpccConfig {
    type Benchmark = Tpcc;

    fn data(&self) -> String {
        let sizes = [("customers", self.customers.into()), ("items", self.items.into())];
        data_text("tpcc", &[("warehouses", self.warehouses.into()), sizes[0], sizes[1]])
    }

    fn bytes(&self) -> u64 {
        let districts = u64::from(self.warehouses) * 10;
        // A customer counts with a payment, an order of ten lines and the entries of two indexes.
        let customers = stored(districts * u64::from(self.customers), 1_500);
        let stocks = stored(u64::from(self.warehouses) * u64::from(self.items), 330);
        customers.saturating_add(stocks).saturating_add(stored(self.items.into(), 90))
    }

    fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
        self.warehouses = scaled(scale, 1)?;
        Ok(())
    }

    async fn load(&self, store: &Store, seed: u64) -> Result<(), Error> {
        load::load(self, store, seed).await
    }

    async fn open(&self, store: &Store, data: &Data) -> Result<Tpcc, Error> {
        Tpcc::open(self, store, data.seed).await
    }
}
