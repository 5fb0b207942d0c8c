//! Membership of shards: stores on the drive of each shard which shard of which store it is.
//!
//! Each shard of a store with several shards has a table [`SHARDS`] with one record: `index (4), count (4),
//! identity of the first shard (16)`, the length of each field in bytes, little-endian. Shards that are
//! missing, in another order, or from different stores are refused. A store of one shard has no such table.

use crate::format::page::{array, get_u32};
use crate::memory::catalogue::SHARDS;
use crate::{Error, Store};

const KEY: &[u8] = b"place";

/// The membership of a shard in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The index of the shard.
    pub index: u32,
    /// The number of shards of the store.
    pub count: u32,
    /// The set that the first shard belongs to: its own identity, or that of the store from which it was repaired.
    /// `None` for the first shard itself.
    pub set: Option<u128>,
}

/// Stores the membership of a new shard, or checks the membership of an opened one. Returns the set.
pub(crate) async fn join(store: Store, membership: Membership, create: bool) -> Result<u128, Error> {
    let own = store.0.durable.superblock().identity;
    if create {
        let set = membership.set.unwrap_or(own);
        if membership.count > 1 {
            write(&store, membership, set).await?;
        }
        return Ok(set);
    }
    let found = read(&store).await?.unwrap_or((0, 1, own));
    let set = membership.set.unwrap_or(found.2);
    if found == (membership.index, membership.count, set) {
        return Ok(set);
    }
    // The shard is refused and must stay as it was: closing marks it as clean again if it was clean.
    store.close().await?;
    let (index, count, _) = found;
    Err(Error::Options(if (index, count) == (membership.index, membership.count) {
        format!("drive {index} belongs to another store than drive 0")
    } else {
        format!(
            "drive {} of {} has shard {index} of {count}; give all drives of the store in their order",
            membership.index, membership.count
        )
    }))
}

async fn write(store: &Store, membership: Membership, set: u128) -> Result<(), Error> {
    let table = store.create_own_table(SHARDS).await?;
    let value =
        [&membership.index.to_le_bytes()[..], &membership.count.to_le_bytes(), &set.to_le_bytes()].concat();
    let transaction = store.begin();
    transaction.put(table, KEY, &value).await?;
    transaction.commit_with(crate::Durability::Flush).await
}

async fn read(store: &Store) -> Result<Option<(u32, u32, u128)>, Error> {
    let table = match store.table(SHARDS).await {
        Ok(table) => table,
        Err(Error::NoTable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let value = store.snapshot().get(table, KEY).await?;
    match value.as_deref() {
        Some(value) if value.len() == 24 => {
            Ok(Some((get_u32(value, 0), get_u32(value, 4), u128::from_le_bytes(array(value, 8)))))
        }
        // Without a membership, the creation of the shard was interrupted by a crash.
        _ => Err(Error::Options(
            "the creation of a shard of this store was interrupted; create the store again".to_owned(),
        )),
    }
}
