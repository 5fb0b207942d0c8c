//! Generates the page accesses of TPC-C (Standard Specification, revision 5.11). The pages are divided among
//! the nine tables in proportion to the sizes of their rows. The five transactions have the row counts and
//! non-uniform choices of the specification. A workload runs one kind of transaction, or the mix of Papon and
//! Athanassoulis (ACE, ICDE 2023), which is New-Order 45 %, Payment 43 %, and Order-Status, Stock-Level and
//! Delivery 4 % each.
//!
//! *Assumptions* about the engine: tables are clustered by their keys, rows are not split over pages, and
//! orders are appended at the end of each district. The workload is in a steady state, so new orders
//! overwrite the oldest ones. With pages for less than one warehouse, all tables shrink in proportion.

use super::blocks::{EngineConfig, with_engine};
use super::draw::{between, percent};
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use super::tables::{Accesses, Layout, Table};
use crate::{Op, Request};
use fulgurite_base::{Choice, Form, Prng, SpecError, opt};

/// The bytes of a warehouse's rows in each table, from the row counts and sizes in clause 1.3, and the bytes
/// of the item table, which all warehouses share.
const CUSTOMER: f64 = 30_000.0 * 655.0;
const STOCK: f64 = 100_000.0 * 306.0;
const ORDER: f64 = 30_000.0 * 24.0;
const ORDER_LINE: f64 = 300_000.0 * 54.0;
const NEW_ORDER: f64 = 9_000.0 * 8.0;
const HISTORY: f64 = 30_000.0 * 46.0;
const WAREHOUSE: f64 = 89.0;
const DISTRICTS: f64 = 10.0 * 95.0;
const PER_WAREHOUSE: f64 =
    CUSTOMER + STOCK + ORDER + ORDER_LINE + NEW_ORDER + HISTORY + WAREHOUSE + DISTRICTS;
const ITEM: f64 = 100_000.0 * 82.0;

/// The kind of transaction that the workload runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Transaction {
    /// All kinds, in the proportions of the mix (see the module).
    #[default]
    Mix,
    NewOrder,
    Payment,
    OrderStatus,
    StockLevel,
    Delivery,
}

impl Choice for Transaction {
    const NAMES: &'static [(&'static str, Transaction)] = &[
        ("mix", Transaction::Mix),
        ("new-order", Transaction::NewOrder),
        ("payment", Transaction::Payment),
        ("order-status", Transaction::OrderStatus),
        ("stock-level", Transaction::StockLevel),
        ("delivery", Transaction::Delivery),
    ];
}

/// The options of `tpcc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TpccConfig {
    /// The kind of transaction that the workload runs.
    pub transaction: Transaction,
    /// The options of the engine model below the accesses to pages.
    pub engine: EngineConfig,
}

with_engine!(
    TpccConfig,
    opt!(
        "transaction",
        transaction,
        Form::<Transaction>::choice("mix|new-order|payment|order-status|stock-level|delivery"),
        "which transactions"
    )
);

impl Recipe for TpccConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        self.engine.start(space, self.writes_anything(), |space| Tpcc::start(self.transaction, space))
    }

    fn writes_anything(&self) -> bool {
        !matches!(self.transaction, Transaction::OrderStatus | Transaction::StockLevel)
    }
}

/// The generator, with the tables, and the state of the orders of each district.
#[derive(Debug)]
struct Tpcc {
    warehouses: u64,
    warehouse: Table,
    district: Table,
    customer: Table,
    stock: Table,
    item: Table,
    order: Table,
    order_line: Table,
    new_order: Table,
    history: Table,
    /// For each district, the number of orders placed and the number of orders delivered so far.
    placed: Vec<u64>,
    delivered: Vec<u64>,
    transaction: Transaction,
    accesses: Accesses,
    prng: Prng,
}

impl Tpcc {
    fn start(transaction: Transaction, space: Space<'_>) -> Result<Generator, SpecError> {
        let (prng, Space { pages, page_bytes, .. }) = (space.prng(), space);
        space.check_tables()?;
        let bytes = pages as f64 * f64::from(page_bytes);
        let warehouses = (((bytes - ITEM) / PER_WAREHOUSE) as u64).max(1);
        let all = warehouses as f64 * PER_WAREHOUSE + ITEM;
        let mut layout = Layout::new(pages);
        // The tables get a little less than all pages, because their sizes are rounded up.
        let mut table = |bytes: f64| layout.table(980.0 * warehouses as f64 * bytes / all);
        Ok(Generator::new(Tpcc {
            warehouses,
            warehouse: table(WAREHOUSE),
            district: table(DISTRICTS),
            customer: table(CUSTOMER),
            stock: table(STOCK),
            order: table(ORDER),
            order_line: table(ORDER_LINE),
            new_order: table(NEW_ORDER),
            history: table(HISTORY),
            // All warehouses share the item table, but `table` multiplies by the number of warehouses, so its
            // bytes are divided by that number.
            item: table(ITEM / warehouses as f64),
            // The initial population of clause 4.3.3 has 3,000 orders in a district, of which the last 900
            // are not delivered.
            placed: vec![3_000; 10 * warehouses as usize],
            delivered: vec![2_100; 10 * warehouses as usize],
            transaction,
            accesses: Accesses::default(),
            prng,
        }))
    }

    fn draw_transaction(&mut self) -> Transaction {
        match self.prng.below(100) {
            0..45 => Transaction::NewOrder,
            45..88 => Transaction::Payment,
            88..92 => Transaction::OrderStatus,
            92..96 => Transaction::StockLevel,
            _ => Transaction::Delivery,
        }
    }

    /// The function NURand of clause 2.1.6 over `0..n`, with the constant 0.
    fn nurand(&mut self, a: u64, n: u64) -> u64 {
        (self.prng.below(a + 1) | self.prng.below(n)) % n
    }

    /// Returns a row's relative position in a table of `groups` groups with `rows` rows each.
    fn place(groups: u64, rows: u64, group: u64, row: u64) -> f64 {
        (group as f64 + row as f64 / rows as f64) / groups as f64
    }

    fn districts(&self) -> u64 {
        10 * self.warehouses
    }

    fn customer(&mut self, district: u64) -> f64 {
        let customer = self.nurand(1023, 3_000);
        Self::place(self.districts(), 3_000, district, customer)
    }

    /// Reads or writes a customer that is selected by number or, in six of ten cases, by name. Three
    /// customers share a name, and the middle one is selected, so two more are read.
    fn customer_by_name(&mut self, district: u64, op: Op) {
        if percent(&mut self.prng, 60) {
            for _ in 0..2 {
                let row = self.customer(district);
                self.accesses.row(self.customer, row, Op::Read);
            }
        }
        let row = self.customer(district);
        self.accesses.row(self.customer, row, op);
    }

    /// Returns the relative position of an order. Each district keeps its last 3,000 orders.
    fn order_place(&self, district: u64, order: u64) -> f64 {
        Self::place(self.districts(), 3_000, district, order % 3_000)
    }

    fn item(&mut self) -> u64 {
        self.nurand(8191, 100_000)
    }

    fn new_order(&mut self, warehouse: u64, district: u64) {
        let row = self.customer(district);
        self.accesses.row(self.warehouse, warehouse as f64 / self.warehouses as f64, Op::Read);
        self.accesses.row(self.district, district as f64 / self.districts() as f64, Op::Write);
        self.accesses.row(self.customer, row, Op::Read);
        let order = self.placed[district as usize];
        self.placed[district as usize] += 1;
        let place = self.order_place(district, order);
        self.accesses.row(self.order, place, Op::Write);
        self.accesses.row(self.new_order, place, Op::Write);
        for line in 0..between(&mut self.prng, 5, 15) {
            let item = self.item();
            // The supplier of one line in a hundred may be any warehouse (clause 2.4.1.5).
            let supplier =
                if self.prng.below(100) == 0 { self.prng.below(self.warehouses) } else { warehouse };
            self.accesses.row(self.item, item as f64 / 100_000.0, Op::Read);
            self.accesses.row(self.stock, Self::place(self.warehouses, 100_000, supplier, item), Op::Write);
            // The table has room for ten lines of an order, their average number, so further lines are stored
            // in place of the tenth.
            let line = Self::place(self.districts(), 30_000, district, order % 3_000 * 10 + line.min(9));
            self.accesses.row(self.order_line, line, Op::Write);
        }
    }

    fn payment(&mut self, warehouse: u64, district: u64) {
        self.accesses.row(self.warehouse, warehouse as f64 / self.warehouses as f64, Op::Write);
        self.accesses.row(self.district, district as f64 / self.districts() as f64, Op::Write);
        // In fifteen of a hundred payments, the customer belongs to a random district.
        let elsewhere = percent(&mut self.prng, 15);
        let home = if elsewhere { self.prng.below(self.districts()) } else { district };
        self.customer_by_name(home, Op::Write);
        // The history table is one heap, and all payments append at its end.
        let rows_a_page = 80;
        let appended: u64 = self.placed.iter().sum();
        self.accesses.leaf(self.history, appended / rows_a_page, Op::Write);
    }

    fn order_status(&mut self, district: u64) {
        self.customer_by_name(district, Op::Read);
        // At least 3,000 orders were placed in the district, so the difference is not negative.
        let order = self.placed[district as usize] - 1 - self.prng.below(900);
        let place = self.order_place(district, order);
        self.accesses.row(self.order, place, Op::Read);
        self.accesses.row(self.order_line, place, Op::Read);
    }

    fn stock_level(&mut self, warehouse: u64, district: u64) {
        self.accesses.row(self.district, district as f64 / self.districts() as f64, Op::Read);
        // The transaction reads the lines of the last 20 orders, about 200 lines of 54 bytes, then the stock
        // of their items.
        let last = self.placed[district as usize] - 20;
        self.accesses.scan(self.order_line, self.order_place(district, last), 3);
        for _ in 0..200 {
            let item = self.item();
            self.accesses.row(self.stock, Self::place(self.warehouses, 100_000, warehouse, item), Op::Read);
        }
    }

    /// Delivers the oldest undelivered order of a district. In a workload of deliveries only, new orders
    /// appear without any access.
    fn delivery(&mut self, district: u64) {
        let order = self.delivered[district as usize];
        self.delivered[district as usize] += 1;
        let placed = &mut self.placed[district as usize];
        *placed = (*placed).max(order + 1);
        let place = self.order_place(district, order);
        self.accesses.row(self.new_order, place, Op::Write);
        self.accesses.row(self.order, place, Op::Write);
        self.accesses.row(self.order_line, place, Op::Write);
        let row = self.customer(district);
        self.accesses.row(self.customer, row, Op::Write);
    }
}

impl RequestSource for Tpcc {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.accesses.pop() {
                return request;
            }
            let transaction = match self.transaction {
                Transaction::Mix => self.draw_transaction(),
                only => only,
            };
            let warehouse = self.prng.below(self.warehouses);
            let district = warehouse * 10 + self.prng.below(10);
            match transaction {
                Transaction::Mix => unreachable!("it is never drawn"),
                Transaction::NewOrder => self.new_order(warehouse, district),
                Transaction::Payment => self.payment(warehouse, district),
                Transaction::OrderStatus => self.order_status(district),
                Transaction::StockLevel => self.stock_level(warehouse, district),
                Transaction::Delivery => {
                    (0..10).for_each(|district| self.delivery(warehouse * 10 + district))
                }
            }
        }
    }
}
