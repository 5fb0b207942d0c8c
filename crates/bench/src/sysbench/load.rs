//! sysbench's tables: `id`, `k` with an index, `c CHAR(120)`, `pad CHAR(60)`.

use super::config::Tables;
use super::{Place, special};
use crate::Error;
use crate::codec::{Key, Reader, Row, row};
use crate::data::load_table;
use crate::draw::digits;
use fulgurite_base::Prng;
use fulgurite_device::Device;
use fulgurite_engine::{Direction, Extract, Store};
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

/// Opens a table with its index, which the load makes.
pub(super) async fn open<D: Device + 'static>(store: &Store<D>, number: u32) -> Result<Place, Error> {
    let table = store.table(&name(number)).await?;
    let extract: Extract = Rc::new(|_, value, keys| {
        // `k` is the first field. A value that is none has no entry; verifying finds it.
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
