//! The options of the index scan.

use super::IndexScan;
use crate::config::{Recipe, scaled, stored};
use crate::data::Data;
use crate::{Error, Program};
use fulgurite_base::option::{COUNT_64, SHARE};
use fulgurite_base::{Choice, Declared, Form, Opt, Share, SpecError, opt, option};
use fulgurite_device::Device;
use fulgurite_engine::Store;
use std::rc::Rc;

/// The column of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Column {
    OrderDate,
    CustKey,
}

impl Choice for Column {
    const NAMES: &'static [(&'static str, Column)] =
        &[("orderdate", Column::OrderDate), ("custkey", Column::CustKey)];
}

impl Column {
    /// The column's name.
    pub fn name(self) -> &'static str {
        option::name_of(self)
    }
}

/// The options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexScanConfig {
    /// Rows of the table.
    pub orders: u64,
    /// The column of the index.
    pub column: Column,
    /// The part of the column's values that a query asks for.
    pub share: Share,
    /// Rows that are read at once: 1, the only one so far.
    pub degree: u32,
}

/// Orders of a scale factor of 1.
const ORDERS: u64 = 1_500_000;

impl Default for IndexScanConfig {
    fn default() -> IndexScanConfig {
        IndexScanConfig {
            orders: ORDERS,
            column: Column::OrderDate,
            share: Share::from_ppm(1_000),
            degree: 1,
        }
    }
}

impl IndexScanConfig {
    /// Customers: a tenth of the orders, as in TPC-H.
    pub(super) fn customers(&self) -> u32 {
        u32::try_from(self.orders / 10).unwrap_or(u32::MAX - 1).max(1)
    }
}

/// How many rows are read at once.
const DEGREE: Form<u32> = Form { written: "1", parse: parse_degree, show: u32::to_string };

fn parse_degree(text: &str) -> Result<u32, SpecError> {
    match text {
        "1" => Ok(1),
        _ => Err(SpecError::new(format!(
            "`{text}` rows at once are not read yet; accepted: 1, one row after the other"
        ))),
    }
}

impl Declared for IndexScanConfig {
    const OPTIONS: &'static [Opt<IndexScanConfig>] = &[
        opt!("orders", orders, COUNT_64, 1 => 1 << 34, "rows of the table"),
        opt!("column", column, Form::<Column>::choice("orderdate|custkey"), "the column of the index"),
        opt!("share", share, SHARE, Share::from_ppm(1) => Share::ONE, "part of the column's values that a query asks for"),
        opt!("degree", degree, DEGREE, 1 => 1, "rows that are read at once"),
    ];
}

impl Recipe for IndexScanConfig {
    fn data(&self) -> String {
        // The index belongs to the data.
        format!("index-scan:orders={},column={}", self.orders, self.column.name())
    }

    fn bytes(&self) -> u64 {
        // A row has about 120 bytes, its index entry about 30.
        stored(self.orders, 150)
    }

    fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
        self.orders = scaled(scale, ORDERS)?;
        Ok(())
    }

    async fn load<D: Device + 'static>(&self, store: &Store<D>, seed: u64) -> Result<(), Error> {
        super::load(self, store, seed).await
    }

    async fn open<D: Device + 'static>(&self, store: &Store<D>, _: &Data) -> Result<Program, Error> {
        Ok(Program::IndexScan(Rc::new(IndexScan::open(self, store).await?)))
    }
}
