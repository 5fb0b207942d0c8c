//! LMDB, by the crate `heed`.
//!
//! - Durable: the defaults, data and meta page are flushed at each commit. Relaxed: `MDB_NOSYNC`; without
//!   `MDB_WRITEMAP` the store stays consistent after a crash on a file system that keeps the order of writes (lmdb.h).
//! - `MDB_NORDAHEAD`: lmdb.h says that it helps random reads once the store is larger than memory.
//! - No `MDB_WRITEMAP`: lmdb.h advises it for stores that fit in memory, and it removes the protection from stray
//!   writes.
//! - The sorted load appends (`MDB_APPEND`), which fills pages completely (lmdb.h, `mdb_put`).
//! - LMDB has no cache of its own, only the page cache, and no direct I/O: only a memory group bounds it.

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{Key, Record};
use anyhow::{Context, Result};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, WithTls};
use std::ops::Bound;
use std::path::Path;

pub const KIND: Kind = Kind { name: "lmdb", open, direct: Direct::Never, durable: true, reopens: true };

struct Lmdb {
    env: Env<WithTls>,
    table: Database<Bytes, Bytes>,
}

struct Thread<'a> {
    engine: &'a Lmdb,
}

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    let mut flags = EnvFlags::NO_READ_AHEAD;
    if !options.durable {
        flags |= EnvFlags::NO_SYNC;
    }
    // This is only address space. The garbage of copy-on-write is much less than the factor of 8 allows.
    let map_bytes = (options.rows * crate::rows::ROW_BYTES * 8).max(4 << 30).next_multiple_of(1 << 20);
    let mut open = EnvOpenOptions::new();
    open.map_size(map_bytes as usize).max_readers(options.threads as u32 + 8);
    // SAFETY: the flags do not drop the locks, and no other process opens this folder.
    let env = unsafe { open.flags(flags).open(folder) }.context("opening LMDB")?;
    let mut transaction = env.write_txn()?;
    let table = env.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, table }))
}

impl Engine for Lmdb {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, order: Order) -> Result<()> {
        let flags = if order == Order::Sorted { PutFlags::APPEND } else { PutFlags::empty() };
        in_groups(rows, |group| {
            let mut transaction = self.env.write_txn()?;
            for record in group {
                self.table.put_with_flags(&mut transaction, flags, &record.key, &record.value)?;
            }
            Ok(transaction.commit()?)
        })?;
        Ok(self.env.force_sync()?)
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread { engine: self }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.force_sync()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let transaction = self.engine.env.read_txn()?;
        let Some(found) = self.engine.table.get(&transaction, key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found);
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let transaction = self.engine.env.read_txn()?;
        for (number, key) in keys.iter().enumerate() {
            found(number, self.engine.table.get(&transaction, key)?)?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        let mut transaction = self.engine.env.write_txn()?;
        for record in batch {
            self.engine.table.put(&mut transaction, &record.key, &record.value)?;
        }
        Ok(transaction.commit()?)
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let transaction = self.engine.env.read_txn()?;
        let range = (Bound::Included(&from[..]), Bound::Unbounded);
        let mut found = 0;
        for row in self.engine.table.range(&transaction, &range)?.take(count) {
            let (key, value) = row?;
            each(key, value)?;
            found += 1;
        }
        Ok(found)
    }
}
