//! Work beside the history: a backup of the store while clients use it, and tables that are made and dropped.
//!
//! The history has no such work. A backup is judged at once, in a store of its own. A table is judged after the
//! restart, by how far its client has come ([`Tables`]).

use super::progress::{Progress, Tables};
use super::world::{self, Stop, World};
use crate::value::TableName;
use crate::violation::{Violation, ViolationKind};
use fulgurite_base::Nanos;
use fulgurite_device::{Device, Executor, MemDevice};
use fulgurite_engine::{Direction, Error, Extract, MemImage, Options, Store, restore, sharded};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::rc::Rc;

/// The beginning of the names of tables that are made and dropped.
const PREFIX: &str = "beside-";

/// Returns the store, which has one shard; no plan has such work for several.
fn only(world: &World) -> &Store {
    world.store.only().expect("the store has one shard")
}

/// Compacts the store.
pub(super) async fn compact(world: &World) -> Result<(), Stop> {
    only(world).compact().await.map(drop).map_err(|error| world.stop(&error))
}

/// Makes a backup and opens it on a drive of its own. It must be sound, and have one state of the accounts.
pub(super) async fn back_up(world: &World) -> Result<(), Stop> {
    let image = MemImage::new(Vec::new());
    only(world).backup(&image).await.map_err(|error| world.stop(&error))?;
    // A fault may have damaged the store.
    if !world.device.struck().is_empty() {
        return Ok(());
    }
    match judge(image, world) {
        Ok(sum) => world.compare_sum(sum, "a backup"),
        Err(text) => world.violate(Violation::new(ViolationKind::Structure, format!("a backup: {text}"))),
    }
    Ok(())
}

/// Returns the sum of the accounts in a backup.
fn judge(image: MemImage, world: &World) -> Result<i64, String> {
    let caps = world.device.caps();
    let executor = Executor::new(MemDevice::new(caps.pages, caps.page_bytes, 16, Nanos::from_micros(10)));
    let handle = executor.handle();
    // The policies of the plan may need what only its drive has.
    let Options { page_bytes, memory_bytes, log_bytes, records, place, planted, .. } =
        world::options(&world.plan)?;
    let options =
        Options { page_bytes, memory_bytes, log_bytes, records, place, planted, ..Options::default() };
    let judged = executor.block_on(async move {
        let text = |error: Error| error.to_string();
        restore(&image, handle.clone()).await.map_err(text)?;
        let store = Store::open(handle, options).await.map_err(text)?;
        let report = store.check().await.map_err(text)?;
        if let Some(problem) = report.problems.first() {
            return Err(format!("{} problems; the first: {problem}", report.problems.len()));
        }
        let accounts = store.table(TableName::Accounts.text()).await.map_err(text)?;
        let snapshot = store.snapshot();
        let all = snapshot.scan(accounts, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        let amount = |value: &[u8]| value[8..16].try_into().map_or(0, i64::from_le_bytes);
        Ok(all.all().await.map_err(text)?.iter().map(|(_, value)| amount(value)).sum())
    });
    judged.map_err(|error| error.to_string())?
}

fn key(row: u32) -> Vec<u8> {
    row.to_be_bytes().to_vec()
}

fn value(row: u32, len: usize) -> Vec<u8> {
    vec![row as u8; len]
}

/// Makes a table with an index, fills it in one transaction, and drops it if `drops`.
pub(super) async fn make_table(world: &World, rows: u32, len: usize, drops: bool) -> Result<(), Stop> {
    let name = format!("{PREFIX}{}", world.next_txn().0);
    let progress = Progress { rows, len, ..Progress::default() };
    world.tables_beside.borrow_mut().insert(name.clone(), progress);
    let advance = |change: fn(&mut Progress)| {
        world.tables_beside.borrow_mut().entry(name.clone()).and_modify(change);
    };
    let stop = |error: Error| world.stop(&error);
    let table = world.store.create_table(&name).await.map_err(stop)?;
    advance(|table| table.is_made = true);
    let first: Extract = Rc::new(|key, _, keys| keys.push(key[3..].to_vec()));
    world.store.create_index(table, &format!("{name}-index"), first).await.map_err(stop)?;
    let transaction = world.store.begin();
    for row in 0..rows {
        transaction.put(table, &key(row), &value(row, len)).await.map_err(stop)?;
    }
    transaction.commit().await.map_err(stop)?;
    advance(|table| table.is_filled = true);
    if drops {
        advance(|table| table.is_being_dropped = true);
        only(world).drop_table(&name).await.map_err(stop)?;
        advance(|table| table.is_dropped = true);
    }
    Ok(())
}

/// Compares the tables after a restart with the progress of their clients. Returns the tables that are left.
pub(super) async fn check_tables(store: &sharded::Store, tables: &Tables) -> Result<Tables, String> {
    let text = |error: Error| error.to_string();
    let there = store.tables().await.map_err(text)?;
    let there = there.into_iter().filter(|name| name.starts_with(PREFIX)).collect::<BTreeSet<_>>();
    if let Some(name) = there.iter().find(|name| !tables.contains_key(*name)) {
        return Err(format!("nobody has made the table {name}"));
    }
    let mut left = Tables::new();
    for (name, progress) in tables {
        if !there.contains(name) {
            if progress.is_made && !progress.is_being_dropped {
                return Err(format!("the table {name} is gone"));
            }
            continue;
        }
        if progress.is_dropped {
            return Err(format!("the table {name} is back"));
        }
        let table = store.table(name).await.map_err(text)?;
        let snapshot = store.snapshot().await;
        let all = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
        let found = all.all().await.map_err(text)?;
        let whole = (0..progress.rows).map(|row| (key(row), value(row, progress.len)));
        let is_empty = found.is_empty() && !progress.is_filled;
        if !is_empty && !found.iter().cloned().eq(whole) {
            return Err(format!("the table {name} has {} of {} rows", found.len(), progress.rows));
        }
        let is_filled = !found.is_empty() || progress.is_filled;
        left.insert(
            name.clone(),
            Progress { is_made: true, is_filled, is_being_dropped: false, ..*progress },
        );
    }
    Ok(left)
}
