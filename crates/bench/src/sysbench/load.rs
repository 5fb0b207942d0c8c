//! sysbench's tables: `id`, `k` with an index, `c CHAR(120)`, `pad CHAR(60)`.

use super::config::Tables;
use crate::codec::{Key, Reader, Row, row};
use crate::data::load_table;
use crate::draw::digits;
use crate::error::Error;
use fulgurite_base::Prng;
use fulgurite_device::Device;
use fulgurite_engine::{Direction, Extract, Index, Store, Table};
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;

row! {
    /// A row; its id is the key.
    Sbtest in "sbtest" {
        /// The indexed column.
        k: u32,
        /// Ten groups of eleven digits.
        c: String,
        /// Five groups of eleven digits.
        pad: String,
    }
}

/// A table, its index and the next id to insert.
pub(super) struct Place {
    pub table: Table,
    pub index: Index,
    pub next: Cell<u32>,
}

/// `groups` of eleven digits, joined by hyphens.
pub(super) fn groups(prng: &mut Prng, groups: usize) -> String {
    let groups: Vec<String> = (0..groups).map(|_| digits(prng, 11)).collect();
    groups.join("-")
}

impl Sbtest {
    /// A row as sysbench draws it, in a table that was loaded with `rows`.
    pub(super) fn draw(prng: &mut Prng, rows: u32) -> Sbtest {
        Sbtest { k: special(prng, rows), c: groups(prng, 10), pad: groups(prng, 5) }
    }
}

fn name(table: u32) -> String {
    // sysbench counts from one.
    format!("sbtest{}", table + 1)
}

pub(super) async fn load<D: Device + 'static>(
    tables: Tables,
    store: &Store<D>,
    seed: u64,
) -> Result<(), Error> {
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

/// Opens a table and its index. The load calls this to create the index.
pub(super) async fn open<D: Device + 'static>(store: &Store<D>, number: u32) -> Result<Place, Error> {
    let table = store.table(&name(number)).await?;
    let extract: Extract = Rc::new(|_, value, keys| {
        // `k` is the first field. A value without it has no entry; verification finds it.
        if let Some(k) = Reader::new(value).field::<u32>() {
            keys.push(Key::new().u32(k).into_bytes());
        }
    });
    let index = store.create_index(table, &format!("{}.k", name(number)), extract).await?;
    let snapshot = store.snapshot();
    let mut last = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Backward);
    let last = last.next().await?.map_or(Some(0), |(key, _)| Reader::new(&key).key_u32());
    let last = last.ok_or_else(|| Error::row(Sbtest::TABLE, "has a key of a wrong length"))?;
    Ok(Place { table, index, next: (last + 1).into() })
}

/// The bell curve is the mean of twelve random numbers (`rand-spec-iter`).
const BELL: u32 = 12;

/// A number from 1 to `most` by sysbench's special distribution (`sb_rand_special`).
pub(super) fn special(prng: &mut Prng, most: u32) -> u32 {
    let (span, hundred) = (u64::from(most - 1), 100);
    if prng.below(hundred) >= 75 {
        let sum: f64 = (0..BELL).map(|_| prng.unit_f64()).sum();
        // The mean of numbers below one is below one, so the product is below `most`.
        return 1 + (sum * span as f64 / f64::from(BELL)) as u32;
    }
    // The hundredth in the middle has at least one number.
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
        // The bell curve, of standard deviation 1/12, adds 4.8 % of the rest: 0.75 + 0.25 × 0.048 in all.
        assert!((popular / f64::from(draws) - 0.762).abs() < 0.005, "{popular}");
        let beyond = drawn.iter().filter(|id| !(25_000..75_000).contains(*id)).count() as f64;
        // Beyond three standard deviations are 0.27 % of a quarter, somewhat less for a sum of twelve.
        assert!((10.0..120.0).contains(&beyond), "{beyond}");
        assert!(drawn.iter().all(|id| (1..=100_000).contains(id)));
        assert_eq!(special(&mut prng, 1), 1);
    }
}
