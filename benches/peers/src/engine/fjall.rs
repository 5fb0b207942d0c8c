//! fjall.
//!
//! - The cache is `Builder::cache_size`; the README advises 20 to 25 % of memory or more.
//! - `max_memtable_size` is 32 MiB: its documentation recommends 8 to 64 MiB, depending on how much memory there is.
//! - Durable: the batch is committed with `PersistMode::SyncData`, which the documentation names for ACID
//!   transactions. Relaxed: the default, the journal is handed to the operating system.
//! - No compression, as for RocksDB: the values would not compress anyway. All other settings are defaults:
//!   leveled compaction, 4 KiB blocks, Bloom filters, min(cores, 4) worker threads.
//! - The sorted load uses `start_ingestion`. After a load by inserts the memtable is flushed, and the load waits for
//!   compactions.
//! - fjall has no direct I/O.

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{Key, Record};
use anyhow::Result;
use fjall::config::CompressionPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};
use std::path::Path;
use std::time::Duration;

pub const KIND: Kind = Kind { name: "fjall", open, direct: Direct::Never, durable: true, reopens: true };

struct Fjall {
    database: Database,
    table: Keyspace,
    mode: Option<PersistMode>,
}

struct Thread<'a>(&'a Fjall);

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    let database = Database::builder(folder.join("fjall")).cache_size(options.cache_bytes).open()?;
    let table = database.keyspace("t", || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(32 << 20)
            .data_block_compression_policy(CompressionPolicy::disabled())
            .index_block_compression_policy(CompressionPolicy::disabled())
    })?;
    Ok(Box::new(Fjall { database, table, mode: options.durable.then_some(PersistMode::SyncData) }))
}

impl Fjall {
    fn write(&self, batch: &[Record], mode: Option<PersistMode>) -> Result<()> {
        let mut writes =
            fjall::OwnedWriteBatch::with_capacity(self.database.clone(), batch.len()).durability(mode);
        for record in batch {
            writes.insert(&self.table, &record.key[..], &record.value[..]);
        }
        Ok(writes.commit()?)
    }

    /// Waits until no compaction has run for a second.
    fn settle(&self) {
        let mut quiet = 0;
        while quiet < 10 {
            std::thread::sleep(Duration::from_millis(100));
            let busy = self.database.active_compactions() > 0 || self.database.outstanding_flushes() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
        }
    }
}

impl Engine for Fjall {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, order: Order) -> Result<()> {
        if order == Order::Sorted {
            let mut ingestion = self.table.start_ingestion()?;
            for record in rows {
                ingestion.write(&record.key[..], &record.value[..])?;
            }
            ingestion.finish()?;
        } else {
            in_groups(rows, |group| self.write(group, None))?;
            self.table.rotate_memtable_and_wait()?;
        }
        self.settle();
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread(self)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.0.table.get(key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let snapshot = self.0.database.snapshot();
        for (number, key) in keys.iter().enumerate() {
            found(number, snapshot.get(&self.0.table, key)?.as_deref())?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        self.0.write(batch, self.0.mode)
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let mut found = 0;
        for row in self.0.table.range(&from[..]..).take(count) {
            let (key, value) = row.into_inner()?;
            each(&key, &value)?;
            found += 1;
        }
        Ok(found)
    }
}
