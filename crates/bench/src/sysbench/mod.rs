//! sysbench's OLTP programs (`oltp_*.lua` of sysbench 1.0) with their defaults: read-write is 10 rows by key, 4 ranges of
//! 100 rows (plain, sum, ordered, distinct), an update of the indexed column, one of another column, a row deleted and
//! inserted again. The others are parts of it.
//!
//! Rows are chosen as by `--rand-type=special`: three of four among one hundredth of them in the middle, the others with a
//! bell curve around the middle. Each statement draws its table.
//!
//! Where this differs: ids stay in the numbers that were loaded (`insert` appends), and the work on the rows of a range
//! that a server would do (sum, order, distinct) is done here.

mod config;
mod load;
mod verify;

pub use config::{Reads, RowsConfig, SelectsConfig, Statements, Tables};
pub use load::Sbtest;

use crate::codec::{Key, Row};
use crate::draw::between_u32;
use crate::{Benchmark, Ending, Error, Record, Session, View, Work};
use fulgurite_base::Prng;
use fulgurite_device::Device;
use fulgurite_engine::{Direction, Index, Store, Table};
use std::cell::Cell;
use std::collections::BTreeSet;

/// A program over a loaded store.
pub struct Sysbench {
    statements: Statements,
    tables: Tables,
    range: u32,
    reads: Reads,
    places: Vec<Place>,
}

/// A table, its index and the next id to insert.
struct Place {
    table: Table,
    index: Index,
    next: Cell<u32>,
}

/// What a range does with its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Range {
    Plain,
    Sum,
    Ordered,
    Distinct,
}

/// A statement's action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A row by key.
    Point,
    /// The rows from the id on.
    Range(Range),
    /// Adds one to `k`.
    UpdateIndex,
    /// Replaces `c`.
    UpdateNonIndex(String),
    /// Deletes the row.
    Delete,
    /// Inserts a row.
    Insert(Sbtest),
}

/// A statement about one table, counted from zero, and one row in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Statement {
    pub table: u32,
    pub id: u32,
    pub action: Action,
}

/// How a transaction reads.
enum Reader<'a, D: Device + 'static> {
    Snapshot(View<'a, D>),
    Locked,
}

impl Sysbench {
    async fn open<D: Device + 'static>(
        store: &Store<D>,
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

    /// A statement about a row that is drawn.
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

    /// Carries out one statement.
    async fn statement_in<D: Device + 'static>(
        &self,
        statement: &Statement,
        work: &Work<'_, D>,
        reader: &Reader<'_, D>,
    ) -> Result<(), Error> {
        let (table, key) = (self.places[statement.table as usize].table, Key::new().u32(statement.id));
        match &statement.action {
            // An id may be missing, because `delete` leaves gaps.
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
                if let Some(found) = work.get_for_update(table, &key).await? {
                    let row = Sbtest::decode(&found)?;
                    work.put_row(table, &key, &Sbtest { k: row.k.wrapping_add(1), ..row }).await?;
                }
            }
            Action::UpdateNonIndex(c) => {
                if let Some(found) = work.get_for_update(table, &key).await? {
                    let row = Sbtest::decode(&found)?;
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

/// What a server does with the rows of a range.
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

    async fn execute<D: Device + 'static>(
        &self,
        request: &Vec<Statement>,
        session: &Session<D>,
    ) -> Result<Ending, Error> {
        let work = session.begin();
        let reader = match self.reads {
            Reads::Snapshot => Reader::Snapshot(session.view()),
            Reads::Locked => Reader::Locked,
        };
        for statement in request {
            self.statement_in(statement, &work, &reader).await?;
        }
        work.commit().await?;
        Ok(Ending::Committed)
    }
}

/// Twelve numbers make the bell curve (`rand-spec-iter`).
const BELL: u32 = 12;

/// A number from 1 to `most` by sysbench's special distribution (`sb_rand_special`).
fn special(prng: &mut Prng, most: u32) -> u32 {
    let (span, hundred) = (u64::from(most - 1), 100);
    if prng.below(hundred) >= 75 {
        let sum: f64 = (0..BELL).map(|_| prng.unit_f64()).sum();
        // The mean of numbers below one lies below one, so the product lies below `most`.
        return 1 + (sum * span as f64 / f64::from(BELL)) as u32;
    }
    // The hundredth in the middle, at least one number.
    let popular = (span / hundred).max(1);
    1 + (span / 2 - popular / 2 + prng.below(popular)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_four_numbers_lie_in_the_middle_hundredth() {
        let (mut prng, draws) = (Prng::new(42, "special"), 100_000);
        let drawn: Vec<u32> = (0..draws).map(|_| special(&mut prng, 100_000)).collect();
        let popular = drawn.iter().filter(|id| (49_500..50_500).contains(*id)).count() as f64;
        // A bell curve of standard deviation 1/12 puts 4.8 % of the rest there: 0.75 + 0.25 × 0.048 in all.
        assert!((popular / f64::from(draws) - 0.762).abs() < 0.005, "{popular}");
        let beyond = drawn.iter().filter(|id| !(25_000..75_000).contains(*id)).count() as f64;
        // Three standard deviations: 0.27 % of a quarter, somewhat less for a sum of twelve.
        assert!((10.0..120.0).contains(&beyond), "{beyond}");
        assert!(drawn.iter().all(|id| (1..=100_000).contains(id)));
        assert_eq!(special(&mut prng, 1), 1);
    }
}
