//! Implements the index scan benchmark, which executes `SELECT * FROM orders WHERE column BETWEEN x AND y`
//! through a secondary index over TPC-H's table of orders, as in "Parallel index scan" (Roh et al., VLDB
//! 2012). The key of the table is the key of an order, so the rows of a range of dates are scattered over the
//! table.
//!
//! Rows have the columns, sizes and value ranges of clause 4.2.3 of TPC-H: 8 of every 32 order keys are used,
//! two thirds of the customers have orders, and dates are from 1992-01-01 to 1998-08-02. Names, prices and
//! comments are random.

mod config;

pub use config::Degree;
pub(crate) use config::IndexScanConfig;

use crate::benchmark::{Benchmark, Ending, Verified};
use crate::codec::{Key, KeyRange, Reader, Row, row};
use crate::data::Data;
use crate::data::load_table;
use crate::draw::{between, between_u32, digits, letters};
use crate::error::Error;
use crate::recipe::{Recipe, scaled, stored};
use crate::session::Session;
use config::{Column, ORDERS};
use fulgurite_base::{Prng, SpecError};
use fulgurite_engine::sharded::{Index, Store, Table};
use fulgurite_engine::{Direction, Extract};
use std::rc::Rc;

/// The number of days from 1992-01-01 to 1998-08-02, both included.
const DAYS: u32 = 2_406;

row! {
    /// An order. The key of the row is the key of the order.
    Orders in "orders" {
        /// The key of the order's customer.
        custkey: u32,
        /// The status of the order: `F`, `O` or `P`.
        status: String,
        /// The total price, in cents.
        totalprice: i64,
        /// The date of the order, in days since 1992-01-01.
        orderdate: u32,
        /// The priority of the order, a text of 15 characters.
        priority: String,
        /// The name of the clerk, a text of 15 characters.
        clerk: String,
        /// The shipping priority, which is always zero.
        shippriority: u32,
        /// A comment of 19 to 78 characters.
        comment: String,
    }
}

impl Orders {
    fn draw(prng: &mut Prng, customers: u32) -> Orders {
        const PRIORITIES: [&str; 5] =
            ["1-URGENT       ", "2-HIGH         ", "3-MEDIUM       ", "4-NOT SPECIFIED", "5-LOW          "];
        // Every third customer has no orders, so such a customer's order goes to the customer before.
        let custkey = 1 + prng.below(u64::from(customers)) as u32;
        let custkey = if custkey.is_multiple_of(3) { (custkey - 1).max(1) } else { custkey };
        Orders {
            custkey,
            status: ["F", "O", "P"][prng.below(3) as usize].to_owned(),
            totalprice: between(prng, 85_000, 55_500_000) as i64,
            orderdate: between_u32(prng, 0, DAYS - 1),
            priority: PRIORITIES[prng.below(5) as usize].to_owned(),
            clerk: format!("Clerk#{}", digits(prng, 9)),
            shippriority: 0,
            comment: letters(prng, 19, 78),
        }
    }

    fn column(&self, column: Column) -> u32 {
        match column {
            Column::OrderDate => self.orderdate,
            Column::CustKey => self.custkey,
        }
    }
}

/// Returns the key of the order `number`, counted from zero. The first 8 of every 32 keys are used.
fn order_key(number: u64) -> u64 {
    number / 8 * 32 + number % 8 + 1
}

/// The index scan benchmark over a loaded store.
pub struct IndexScan {
    config: IndexScanConfig,
    table: Table,
    index: Index,
}

/// A query, which reads a range of values of the indexed column, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Request {
    pub first: u32,
    pub last: u32,
}

impl Request {
    /// Returns the range of index keys that the query reads.
    pub fn keys(self) -> KeyRange {
        // A column has far fewer values than 2^32, so the sum does not saturate for an existing value.
        Key::new().u32(self.first).until(Key::new().u32(self.last.saturating_add(1)))
    }
}

async fn load(config: &IndexScanConfig, store: &Store, seed: u64) -> Result<(), Error> {
    let mut prng = Prng::new(seed, "orders");
    let customers = config.customers();
    let rows = (0..config.orders).map(|number| {
        let row = Orders::draw(&mut prng, customers);
        (Key::new().u64(order_key(number)).into_bytes(), row.encode())
    });
    load_table(store, Orders::TABLE, rows).await?;
    IndexScan::open(config, store).await?;
    Ok(())
}

impl IndexScan {
    async fn open(config: &IndexScanConfig, store: &Store) -> Result<IndexScan, Error> {
        let table = store.table(Orders::TABLE).await?;
        let column = config.column;
        let extract: Extract = Rc::new(move |_, value, keys| {
            // A value that is not an order gets no index entry. The verification reports such a value.
            if let Ok(row) = Orders::decode(value) {
                keys.push(Key::new().u32(row.column(column)).into_bytes());
            }
        });
        let index =
            store.create_index(table, &format!("{}.{}", Orders::TABLE, column.name()), extract).await?;
        Ok(IndexScan { config: *config, table, index })
    }

    /// Checks that every row exists and is an order. [`Store::check`] checks that the index has exactly one
    /// entry for each row.
    pub async fn verify(&self, store: &Store) -> Result<Verified, Error> {
        let snapshot = store.snapshot().await;
        let mut scan = snapshot.scan(self.table, KeyRange::ALL.bounds(), Direction::Forward);
        let mut rows = 0;
        while let Some((_, value)) = scan.next().await? {
            Orders::decode(&value)?;
            rows += 1;
        }
        match rows == self.config.orders {
            true => Ok(Verified { rows, changes: 0 }),
            false => Err(Error::Broken(format!(
                "`{}` has {rows} rows and should have {}",
                Orders::TABLE,
                self.config.orders
            ))),
        }
    }

    /// Checks that a row has the column value of its index entry, and that this value is in the queried
    /// range.
    fn check(&self, index_key: &[u8], value: &[u8], first: u32, last: u32) -> Result<(), Error> {
        let own = Orders::decode(value)?.column(self.config.column);
        match Reader::new(index_key).key_u32() == Some(own) && (first..=last).contains(&own) {
            true => Ok(()),
            false => Err(Error::row(Orders::TABLE, "was returned by the index and is outside the range")),
        }
    }
}

impl Benchmark for IndexScan {
    type Request = Request;

    fn kinds(&self) -> &[&'static str] {
        &["scan"]
    }

    fn kind(&self, _: &Request) -> usize {
        0
    }

    fn draw(&self, prng: &mut Prng) -> Request {
        let (least, most) = match self.config.column {
            Column::OrderDate => (0, DAYS - 1),
            Column::CustKey => (1, self.config.customers()),
        };
        let values = u64::from(most - least + 1);
        // The range covers the configured share of the column's values and begins at a random value.
        let width = self.config.share.of(values).clamp(1, values) as u32;
        let first = between_u32(prng, least, most - (width - 1));
        Request { first, last: first + (width - 1) }
    }

    async fn execute(&self, request: &Request, session: &Session) -> Result<Ending, Error> {
        let Request { first, last } = *request;
        // The caller usually has replaced `auto` by the drive's k_r. If it has not, one row after the other
        // is read.
        let degree = match self.config.degree {
            Degree::Rows(rows) => rows,
            Degree::Auto => 1,
        };
        let view = session.view().await;
        let rows = view.index_scan_of(self.index, &request.keys(), Direction::Forward, degree).await?;
        rows.iter().try_for_each(|row| self.check(&row.index_key, &row.value, first, last))?;
        Ok(Ending::Committed)
    }
}

impl Recipe for IndexScanConfig {
    type Benchmark = IndexScan;

    fn data(&self) -> String {
        // The index belongs to the data, so its column is in the text.
        format!("index-scan:orders={},column={}", self.orders, self.column.name())
    }

    fn bytes(&self) -> u64 {
        // A row has about 120 bytes and its index entry about 30.
        stored(self.orders, 150)
    }

    fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
        self.orders = scaled(scale, ORDERS)?;
        Ok(())
    }

    async fn load(&self, store: &Store, seed: u64) -> Result<(), Error> {
        load(self, store, seed).await
    }

    async fn open(&self, store: &Store, _: &Data) -> Result<IndexScan, Error> {
        IndexScan::open(self, store).await
    }
}
