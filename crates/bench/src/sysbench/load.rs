//! Defines sysbench's tables and loads them. A table has the columns `id`, `k`, `c` and `pad`. The key is
//! `id`, `k` has a secondary index, `c` is a text of ten groups of digits, and `pad` one of five groups.

use super::config::Tables;
use crate::codec::{Key, Reader, Row, row};
use crate::data::load_table;
use crate::draw::digits;
use crate::error::Error;
use fulgurite_base::Prng;
use fulgurite_engine::sharded::{Index, Store, Table};
use fulgurite_engine::{Direction, Extract};
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

row! {
    /// A row of a sysbench table. The key of the row is its id.
    Sbtest in "sbtest" {
        /// The indexed column.
        k: u32,
        /// A text of ten groups of eleven digits.
        c: String,
        /// A text of five groups of eleven digits.
        pad: String,
    }
}

/// An open table, its index, and the next id to insert.
pub(super) struct Place {
    pub table: Table,
    pub index: Index,
    pub next: Cell<u32>,
}

/// Returns `groups` groups of eleven random digits, joined by hyphens.
pub(super) fn groups(prng: &mut Prng, groups: usize) -> String {
    let groups: Vec<String> = (0..groups).map(|_| digits(prng, 11)).collect();
    groups.join("-")
}

impl Sbtest {
    /// Draws a row as sysbench does, for a table that was loaded with `rows` rows.
    pub(super) fn draw(prng: &mut Prng, rows: u32) -> Sbtest {
        Sbtest { k: special(prng, rows), c: groups(prng, 10), pad: groups(prng, 5) }
    }
}

fn name(table: u32) -> String {
    // sysbench counts its tables from one, but `table` counts from zero.
    format!("sbtest{}", table + 1)
}

pub(super) async fn load(tables: Tables, store: &Store, seed: u64) -> Result<(), Error> {
    for number in 0..tables.tables {
        let mut prng = Prng::new(seed, &name(number));
        let rows = (1..=tables.rows).map(|id| {
            let row = Sbtest::draw(&mut prng, tables.rows);
            (Key::new().u32(id).into_bytes(), row.encode())
        });
        load_table(store, &name(number), rows).await?;
        open(store, number).await?;
    }
    Ok(())
}

/// Opens a table and its index. If the index does not exist, it is created, as at the end of a load.
pub(super) async fn open(store: &Store, number: u32) -> Result<Place, Error> {
    let table = store.table(&name(number)).await?;
    let extract: Extract = Rc::new(|_, value, keys| {
        // `k` is the first field of a value. A value without it gets no index entry. The verification reports
        // such a value.
        if let Some(k) = Reader::new(value).field::<u32>() {
            keys.push(Key::new().u32(k).into_bytes());
        }
    });
    let index = store.create_index(table, &format!("{}.k", name(number)), extract).await?;
    let snapshot = store.snapshot().await;
    let mut last = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Backward);
    let last = last.next().await?.map_or(Some(0), |(key, _)| Reader::new(&key).key_u32());
    let last = last.ok_or_else(|| Error::row(Sbtest::TABLE, "has a key of a wrong length"))?;
    Ok(Place { table, index, next: (last + 1).into() })
}

/// The number of uniform numbers whose mean follows the bell curve (`rand-spec-iter` in sysbench).
const BELL: u32 = 12;

/// Draws a number from 1 to `most` by sysbench's special distribution (`sb_rand_special`).
pub(super) fn special(prng: &mut Prng, most: u32) -> u32 {
    let (span, hundred) = (u64::from(most - 1), 100);
    if prng.below(hundred) >= 75 {
        let sum: f64 = (0..BELL).map(|_| prng.unit_f64()).sum();
        // The mean of numbers below one is below one, so the result is at most `most`.
        return 1 + (sum * span as f64 / f64::from(BELL)) as u32;
    }
    // The middle hundredth of the numbers has at least one number.
    let popular = (span / hundred).max(1);
    1 + (span / 2 - popular / 2 + prng.below(popular)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_of_four_numbers_are_in_the_middle_hundredth() {
        let (mut prng, draws) = (Prng::new(42, "special"), 100_000);
        let drawn: Vec<u32> = (0..draws).map(|_| special(&mut prng, 100_000)).collect();
        let popular = drawn.iter().filter(|id| (49_500..50_500).contains(*id)).count() as f64;
        // Three quarters of the draws are from the middle hundredth. The bell curve, of standard deviation
        // 1/12, gives the same hundredth 4.8 % of the other quarter. So the share is 0.75 + 0.25 × 0.048.
        assert!((popular / f64::from(draws) - 0.762).abs() < 0.005, "{popular}");
        let beyond = drawn.iter().filter(|id| !(25_000..75_000).contains(*id)).count() as f64;
        // For a normal distribution, 0.27 % of the quarter would be beyond three standard deviations. For a
        // sum of twelve numbers, it is somewhat less.
        assert!((10.0..120.0).contains(&beyond), "{beyond}");
        assert!(drawn.iter().all(|id| (1..=100_000).contains(id)));
        assert_eq!(special(&mut prng, 1), 1);
    }
}
