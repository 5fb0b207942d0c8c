//! Implements the sysbench benchmark, which has sysbench's OLTP programs (`oltp_*.lua` of sysbench 1.0) with
//! their defaults.
//!
//! A transaction of the read-write program reads 10 rows by key and 4 ranges of 100 rows (plain, sum,
//! ordered, distinct). Then it executes an update of the indexed column and an update of another column, and
//! deletes a row and inserts it again. Transactions of the other programs have a part of these statements.
//!
//! Rows are chosen as by `--rand-type=special`: three of four choices are among the hundredth of the rows in
//! the middle, and the others follow a bell curve around the middle. Each statement draws its table.
//!
//! *Differences from sysbench.* Row ids are among the loaded ones, except that the insert program appends.
//! The work of a database server on the rows of a range (sum, order, distinct) is done here.

mod config;
mod load;
mod verify;

pub(crate) use config::{RowsConfig, SelectsConfig, Statements};

use crate::benchmark::{Benchmark, Ending};
use crate::codec::{Key, Row};
use crate::data::Data;
use crate::draw::between_u32;
use crate::error::Error;
use crate::recipe::{Recipe, data_text, scaled, stored};
use crate::session::{Record, Session, View, Work};
use config::{ROWS, Reads, Tables};
use fulgurite_base::{Prng, SpecError};
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::Store;
use load::{Place, Sbtest, special};
use std::collections::BTreeSet;

/// A sysbench program over a loaded store.
pub struct Sysbench {
    statements: Statements,
    tables: Tables,
    range: u32,
    reads: Reads,
    places: Vec<Place>,
}

/// The work on the rows that a range statement reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Range {
    Plain,
    Sum,
    Ordered,
    Distinct,
}

/// The action of a statement on its row or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reads the row by key.
    Point,
    /// Reads the rows of a range that begins at the statement's id, and works on them.
    Range(Range),
    /// Adds one to the indexed column `k`.
    UpdateIndex,
    /// Replaces the column `c` by this text.
    UpdateNonIndex(String),
    /// Deletes the row, if it exists.
    Delete,
    /// Inserts this row.
    Insert(Sbtest),
}

/// A statement on one row, or on a range that begins at this row. The table is counted from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Statement {
    pub table: u32,
    pub id: u32,
    pub action: Action,
}

/// The source of a transaction's reads of rows that it does not change.
enum Reader<'a> {
    Snapshot(View<'a>),
    Locked,
}

impl Sysbench {
    async fn open(
        store: &Store,
        statements: Statements,
        tables: Tables,
        range: u32,
        reads: Reads,
    ) -> Result<Sysbench, Error> {
        let mut places = Vec::new();
        for number in 0..tables.tables {
            places.push(load::open(store, number).await?);
        }
        Ok(Sysbench { statements, tables, range, reads, places })
    }

    /// Draws the table and the row of a statement with this action.
    fn statement(&self, prng: &mut Prng, action: Action) -> Statement {
        let table = between_u32(prng, 0, self.tables.tables - 1);
        Statement { table, id: special(prng, self.tables.rows), action }
    }

    fn draw_selects(&self, prng: &mut Prng, statements: &mut Vec<Statement>) {
        statements.extend((0..10).map(|_| self.statement(prng, Action::Point)));
        let ranges = [Range::Plain, Range::Sum, Range::Ordered, Range::Distinct];
        statements.extend(ranges.map(|range| self.statement(prng, Action::Range(range))));
    }

    fn draw_writes(&self, prng: &mut Prng, statements: &mut Vec<Statement>) {
        statements.push(self.statement(prng, Action::UpdateIndex));
        let c = load::groups(prng, 10);
        statements.push(self.statement(prng, Action::UpdateNonIndex(c)));
        let deleted = self.statement(prng, Action::Delete);
        let row = Sbtest::draw(prng, self.tables.rows);
        let inserted = Statement { action: Action::Insert(row), ..deleted.clone() };
        statements.extend([deleted, inserted]);
    }

    /// Executes one statement in the transaction `work`.
    async fn statement_in(
        &self,
        statement: &Statement,
        work: &Work<'_>,
        reader: &Reader<'_>,
    ) -> Result<(), Error> {
        let (table, key) = (self.places[statement.table as usize].table, Key::new().u32(statement.id));
        match &statement.action {
            // The row may be missing without an error, because the delete program leaves gaps.
            Action::Point => {
                let found = match reader {
                    Reader::Snapshot(view) => view.get(table, &key).await?,
                    Reader::Locked => work.get(table, &key).await?,
                };
                found.map(|found| Sbtest::decode(&found)).transpose()?;
            }
            Action::Range(range) => {
                let most = usize::MAX;
                let ids = key.until(Key::new().u32(statement.id.saturating_add(self.range)));
                let records = match reader {
                    Reader::Snapshot(view) => view.scan(table, &ids, Direction::Forward, most).await?,
                    Reader::Locked => work.scan(table, &ids, Direction::Forward, most).await?,
                };
                evaluate(*range, &records)?;
            }
            Action::UpdateIndex => {
                if let Some(row) = work.find_for_update::<Sbtest>(table, &key).await? {
                    work.put_row(table, &key, &Sbtest { k: row.k.wrapping_add(1), ..row }).await?;
                }
            }
            Action::UpdateNonIndex(c) => {
                if let Some(row) = work.find_for_update::<Sbtest>(table, &key).await? {
                    work.put_row(table, &key, &Sbtest { c: c.clone(), ..row }).await?;
                }
            }
            Action::Delete => {
                if work.get_for_update(table, &key).await?.is_some() {
                    work.delete(table, &key).await?;
                }
            }
            Action::Insert(row) => work.put_row(table, &key, row).await?,
        }
        Ok(())
    }
}

/// Does the work of a database server on the rows of a range.
fn evaluate(range: Range, records: &[Record]) -> Result<(), Error> {
    let rows: Result<Vec<Sbtest>, Error> = records.iter().map(|(_, value)| Sbtest::decode(value)).collect();
    let mut rows = rows?;
    match range {
        Range::Plain => {}
        Range::Sum => {
            std::hint::black_box(rows.iter().map(|row| u64::from(row.k)).sum::<u64>());
        }
        Range::Ordered => rows.sort_by(|a, b| a.c.cmp(&b.c)),
        Range::Distinct => {
            std::hint::black_box(rows.iter().map(|row| &row.c).collect::<BTreeSet<&String>>().len());
        }
    }
    std::hint::black_box(rows.len());
    Ok(())
}

impl Benchmark for Sysbench {
    type Request = Vec<Statement>;

    fn kinds(&self) -> &[&'static str] {
        match self.statements {
            Statements::ReadWrite => &["read-write"],
            Statements::ReadOnly => &["read-only"],
            Statements::WriteOnly => &["write-only"],
            Statements::PointSelect => &["point-select"],
            Statements::UpdateIndex => &["update-index"],
            Statements::UpdateNonIndex => &["update-non-index"],
            Statements::Insert => &["insert"],
            Statements::Delete => &["delete"],
        }
    }

    fn kind(&self, _: &Vec<Statement>) -> usize {
        0
    }

    fn draw(&self, prng: &mut Prng) -> Vec<Statement> {
        let mut statements = Vec::new();
        match self.statements {
            Statements::ReadOnly => self.draw_selects(prng, &mut statements),
            Statements::WriteOnly => self.draw_writes(prng, &mut statements),
            Statements::ReadWrite => {
                self.draw_selects(prng, &mut statements);
                self.draw_writes(prng, &mut statements);
            }
            Statements::PointSelect => statements.push(self.statement(prng, Action::Point)),
            Statements::UpdateIndex => statements.push(self.statement(prng, Action::UpdateIndex)),
            Statements::UpdateNonIndex => {
                let c = load::groups(prng, 10);
                statements.push(self.statement(prng, Action::UpdateNonIndex(c)));
            }
            Statements::Delete => statements.push(self.statement(prng, Action::Delete)),
            Statements::Insert => {
                let row = Sbtest::draw(prng, self.tables.rows);
                let table = between_u32(prng, 0, self.tables.tables - 1);
                let next = &self.places[table as usize].next;
                let id = next.replace(next.get().wrapping_add(1));
                statements.push(Statement { table, id, action: Action::Insert(row) });
            }
        }
        statements
    }

    async fn execute(&self, request: &Vec<Statement>, session: &Session) -> Result<Ending, Error> {
        let work = session.begin();
        let reader = match self.reads {
            Reads::Snapshot => Reader::Snapshot(session.view().await),
            Reads::Locked => Reader::Locked,
        };
        for statement in request {
            self.statement_in(statement, &work, &reader).await?;
        }
        work.commit().await?;
        Ok(Ending::Committed)
    }
}

/// Implements [`Recipe`] for a type of options, given the number of row ids in a range and the way of
/// reading.
macro_rules! recipe {
    ($config:ty, $own:ident => ($range:expr, $reads:expr)) => {
        impl Recipe for $config {
            type Benchmark = Sysbench;

            fn data(&self) -> String {
                let Tables { tables, rows } = self.tables;
                data_text("sysbench", &[("tables", tables.into()), ("rows", rows.into())])
            }

            fn bytes(&self) -> u64 {
                let Tables { tables, rows } = self.tables;
                // A row has about 200 bytes and its index entry about 30.
                stored(u64::from(tables) * u64::from(rows), 230)
            }

            fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
                self.tables.rows = scaled(scale, ROWS)?;
                Ok(())
            }

            async fn load(&self, store: &Store, seed: u64) -> Result<(), Error> {
                load::load(self.tables, store, seed).await
            }

            async fn open(&self, store: &Store, _: &Data) -> Result<Sysbench, Error> {
                let $own = self;
                Sysbench::open(store, self.statements, self.tables, $range, $reads).await
            }
        }
    };
}

recipe!(RowsConfig, _own => (0, Reads::Snapshot));
recipe!(SelectsConfig, own => (own.range, own.reads));
