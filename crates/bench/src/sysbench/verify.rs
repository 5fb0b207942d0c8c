//! Verifies sysbench's tables. Every row must be readable, and the index on the column `k` must have exactly
//! one entry for each row, with the `k` of the row.

use super::Sysbench;
use super::load::{Place, Sbtest};
use crate::codec::{Key, KeyRange, Row};
use crate::{Error, Verified};
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::Store;

impl Sysbench {
    /// Checks every table and its index.
    ///
    /// Fails with an error about the first wrong row or table.
    pub async fn verify(&self, store: &Store) -> Result<Verified, Error> {
        let mut verified = Verified::default();
        for place in &self.places {
            let (rows, sum) = rows_of(place, store).await?;
            let entries = entries_of(place, store).await?;
            if entries != rows {
                return Err(Error::Broken(format!(
                    "a sysbench table has {rows} rows and {entries} entries in its index"
                )));
            }
            verified.rows += rows;
            verified.changes = verified.changes.wrapping_add(sum);
        }
        Ok(verified)
    }
}

/// Returns the number of rows of a table and the sum of their `k`.
async fn rows_of(place: &Place, store: &Store) -> Result<(u64, u64), Error> {
    let snapshot = store.snapshot().await;
    let mut scan = snapshot.scan(place.table, KeyRange::ALL.bounds(), Direction::Forward);
    let (mut rows, mut sum) = (0, 0);
    while let Some((_, value)) = scan.next().await? {
        rows += 1;
        sum += u64::from(Sbtest::decode(&value)?.k);
    }
    Ok((rows, sum))
}

/// Returns the number of entries of a table's index, after comparing each entry with its row.
async fn entries_of(place: &Place, store: &Store) -> Result<u64, Error> {
    let snapshot = store.snapshot().await;
    let mut scan = snapshot.index_scan(place.index, KeyRange::ALL.bounds(), Direction::Forward);
    let mut entries = 0;
    while let Some(found) = scan.next().await? {
        let row = Sbtest::decode(&found.value)?;
        if Key::new().u32(row.k).bytes() != found.index_key {
            return Err(Error::row(Sbtest::TABLE, format!("has k={} and another entry in the index", row.k)));
        }
        entries += 1;
    }
    Ok(entries)
}
