//! TPC-C (Standard Specification, revision 5.11): all five transactions on all nine tables, without think time.
//!
//! The mix is 45 % New-Order, 43 % Payment and 4 % each of Order-Status, Delivery and Stock-Level. Every user takes a
//! warehouse anew for each transaction, since without think time there are far fewer users than terminals. Deliveries are
//! not queued: one is a transaction over all ten districts. Throughput is transactions per second of the mix, not tpmC.
//!
//! Locks are taken in one order (warehouse, district, stocks by number, customer), so that few transactions meet in a
//! deadlock. Columns that no transaction changes (taxes, discounts, names, prices) are read from a snapshot, without
//! locks, as the engines do that keep versions; the transactions stay serialisable.

// Money is in cents, and 10_00 are ten dollars.
#![allow(clippy::inconsistent_digit_grouping)]

mod config;
mod delivery;
mod load;
mod new_order;
mod payment;
pub mod random;
mod request;
pub mod rows;
mod status;
mod tables;
mod verify;

pub use config::TpccConfig;
pub use request::{Customers, Line, Request, Who};
pub use tables::Tables;
pub use verify::verify;

use crate::codec::{KeyRange, Reader, Row};
use crate::{Benchmark, Ending, Error, Session, Verified, View};
use fulgurite_base::Prng;
use fulgurite_device::Device;
use fulgurite_engine::{Direction, Store};
use random::Constants;
use rows::{Customer, History, name_key, read_key};
use std::cell::Cell;

/// TPC-C over a loaded store.
pub struct Tpcc {
    config: TpccConfig,
    constants: Constants,
    tables: Tables,
    /// The number of the next payment.
    payments: Cell<u64>,
}

impl Tpcc {
    async fn open<D: Device + 'static>(
        config: &TpccConfig,
        store: &Store<D>,
        seed: u64,
    ) -> Result<Tpcc, Error> {
        let tables = Tables::open(store).await?;
        let snapshot = store.snapshot();
        let last = snapshot.scan(tables.history, KeyRange::ALL.bounds(), Direction::Backward).next().await?;
        let next = last.map_or(Some(0), |(key, _)| Reader::new(&key).key_u64().map(|last| last + 1));
        let next = next.ok_or_else(|| Error::row(History::TABLE, "has a key of a wrong length"))?;
        Ok(Tpcc { config: *config, constants: Constants::new(seed), tables, payments: Cell::new(next) })
    }

    /// Checks the consistency conditions 1 to 4; see [`verify`].
    pub async fn verify<D: Device + 'static>(&self, store: &Store<D>) -> Result<Verified, Error> {
        verify(store).await
    }

    /// The number of a customer: of several with one name, the one in the middle by first names (clause 2.5.2.2).
    async fn customer<D: Device + 'static>(
        &self,
        view: &View<'_, D>,
        customers: &Customers,
    ) -> Result<u32, Error> {
        let Customers { warehouse, district, who } = customers;
        let last = match who {
            Who::Number(number) => return Ok(*number),
            Who::Name(last) => last,
        };
        let range = name_key(*warehouse, *district, last).prefix();
        let found = view.index_scan(self.tables.names, &range, Direction::Forward, usize::MAX).await?;
        let middle = found.get(found.len().saturating_sub(1) / 2);
        let middle = middle.and_then(|row| read_key(&row.key));
        middle
            .map(|(_, _, number)| number)
            .ok_or_else(|| Error::row(Customer::TABLE, format!("is missing ({last})")))
    }
}

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

    async fn execute<D: Device + 'static>(
        &self,
        request: &Request,
        session: &Session<D>,
    ) -> Result<Ending, Error> {
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
