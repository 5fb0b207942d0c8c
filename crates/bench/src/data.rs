//! Names the data that a store holds, in one row of a table of its own, which is written when a load has ended. A
//! benchmark opens a store only when that row names its data, so a load that was cut off and data of another scale are
//! noticed.

use crate::Error;
use crate::codec::{Key, Row, row};
use fulgurite_device::Device;
use fulgurite_engine::{Store, Table};

row! {
    /// The data of a benchmark.
    Data in "benchmark" {
        /// What they are, with every option that they depend on: `ycsb:records=1000,fields=10,field_bytes=100`.
        text: String,
        /// The seed that they were made from.
        seed: u64,
    }
}

impl Data {
    fn key() -> Key {
        Key::new().u8(0)
    }

    /// What `store` holds; none where no load has ended in it.
    pub async fn of<D: Device + 'static>(store: &Store<D>) -> Result<Option<Data>, Error> {
        // The table is made where it does not exist, because no name tells a missing one from another error.
        let table = store.create_table(Data::TABLE).await?;
        let bytes = store.snapshot().get(table, Data::key().bytes()).await?;
        bytes.map(|bytes| Data::decode(&bytes)).transpose()
    }

    /// Fails where `store` holds data already.
    pub(crate) async fn check_none<D: Device + 'static>(store: &Store<D>) -> Result<(), Error> {
        Data::of(store).await?.map_or(Ok(()), |data| Err(Error::AlreadyLoaded { found: data.text }))
    }

    /// The data of `store`, which must be `wanted`.
    pub(crate) async fn check<D: Device + 'static>(store: &Store<D>, wanted: String) -> Result<Data, Error> {
        match Data::of(store).await? {
            None => Err(Error::NotLoaded { wanted }),
            Some(data) if data.text != wanted => Err(Error::OtherData { found: data.text, wanted }),
            Some(data) => Ok(data),
        }
    }

    /// Notes that a load has ended.
    pub(crate) async fn note<D: Device + 'static>(self, store: &Store<D>) -> Result<(), Error> {
        let table = store.create_table(Data::TABLE).await?;
        let transaction = store.begin();
        transaction.put(table, Data::key().bytes(), &self.encode()).await?;
        Ok(transaction.commit().await?)
    }
}

/// A new table with these records, which come in ascending order of their keys.
pub(crate) async fn load_table<D: Device + 'static>(
    store: &Store<D>,
    name: &str,
    records: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
) -> Result<Table, Error> {
    let table = store.create_table(name).await?;
    store.bulk_load(table, records).await?;
    Ok(table)
}
