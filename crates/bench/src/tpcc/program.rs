//! Holds the state of the TPC-C benchmark over a loaded store, and selects a customer by name.

use super::config::TpccConfig;
use super::random::Constants;
use super::request::{Customers, Who};
use super::rows::{Customer, History, name_key, read_key};
use super::tables::Tables;
use crate::codec::{KeyRange, Reader, Row};
use crate::error::Error;
use crate::session::View;
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::Store;
use std::cell::Cell;

/// The TPC-C benchmark over a loaded store.
pub struct Tpcc {
    pub(super) config: TpccConfig,
    pub(super) constants: Constants,
    pub(super) tables: Tables,
    /// The number of the next payment, which is its key in HISTORY.
    pub(super) payments: Cell<u64>,
}

impl Tpcc {
    pub(super) async fn open(config: &TpccConfig, store: &Store, seed: u64) -> Result<Tpcc, Error> {
        let tables = Tables::open(store).await?;
        let snapshot = store.snapshot().await;
        let last = snapshot.scan(tables.history, KeyRange::ALL.bounds(), Direction::Backward).next().await?;
        let next = last.map_or(Some(0), |(key, _)| Reader::new(&key).key_u64().map(|last| last + 1));
        let next = next.ok_or_else(|| Error::row(History::TABLE, "has a key of a wrong length"))?;
        Ok(Tpcc { config: *config, constants: Constants::new(seed), tables, payments: Cell::new(next) })
    }

    /// Returns the number of the selected customer. If several customers have the last name, the middle one
    /// in the order of first names is selected (clause 2.5.2.2).
    pub(super) async fn customer(&self, view: &View<'_>, customers: &Customers) -> Result<u32, Error> {
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
