//! Identifies the data in a store by one row in a separate table, which is written at the end of a load.
//!
//! A benchmark opens a store only if this row names the data of the benchmark, so incomplete loads and data
//! of another scale are detected.

use crate::Error;
use crate::codec::{Key, Row, row};
use fulgurite_engine::sharded::{Store, Table};

row! {
    /// The row that identifies the data of a benchmark in a store.
    Data in "benchmark" {
        /// The text of the data, with every option that they depend on:
        /// `ycsb:records=1000,fields=10,field_bytes=100`.
        text: String,
        /// The seed from which the data were drawn.
        seed: u64,
    }
}

impl Data {
    fn key() -> Key {
        Key::new().u8(0)
    }

    /// Returns the identity of the data in `store`; `None` if no load was completed.
    pub async fn of(store: &Store) -> Result<Option<Data>, Error> {
        // The table is created if it does not exist, because the error of a missing table cannot be
        // distinguished from others.
        let table = store.create_table(Data::TABLE).await?;
        let bytes = store.snapshot().await.get(table, Data::key().bytes()).await?;
        bytes.map(|bytes| Data::decode(&bytes)).transpose()
    }

    /// Fails if `store` already holds data.
    pub(crate) async fn check_none(store: &Store) -> Result<(), Error> {
        Data::of(store).await?.map_or(Ok(()), |data| Err(Error::AlreadyLoaded { found: data.text }))
    }

    /// Returns the identity of the data in `store`. Fails if their text is not `wanted`.
    pub(crate) async fn check(store: &Store, wanted: String) -> Result<Data, Error> {
        match Data::of(store).await? {
            None => Err(Error::NotLoaded { wanted }),
            Some(data) if data.text != wanted => Err(Error::OtherData { found: data.text, wanted }),
            Some(data) => Ok(data),
        }
    }

    /// Records that the load of these data is complete.
    pub(crate) async fn note(self, store: &Store) -> Result<(), Error> {
        let table = store.create_table(Data::TABLE).await?;
        let transaction = store.begin();
        transaction.put(table, Data::key().bytes(), &self.encode()).await?;
        Ok(transaction.commit().await?)
    }
}

/// Creates a table with these records, which must be given in ascending order of their keys.
pub(crate) async fn load_table(
    store: &Store,
    name: &str,
    records: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<Table, Error> {
    let table = store.create_table(name).await?;
    store.bulk_load(table, records).await?;
    Ok(table)
}
