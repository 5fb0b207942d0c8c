//! redb.
//!
//! - The cache is `Builder::set_cache_size`. Tables are `&[u8] -> &[u8]`, as in redb's own benchmark.
//! - Durable: `Durability::Immediate`, the default. Relaxed: `Durability::None`, with a commit of durability
//!   `Immediate` once a second: pages that are durable are freed only by such a commit, so without one the file grows
//!   with every page that is touched (redb's design.md, "Non-durable commits").
//! - redb has no direct I/O.

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{Key, Record};
use anyhow::Result;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub const KIND: Kind = Kind { name: "redb", open, direct: Direct::Never, durable: true, reopens: true };

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("t");

struct Redb {
    database: Database,
    durable: bool,
    opened: Instant,
    /// The second of the last durable commit, counted from `opened`.
    settled_second: AtomicU64,
}

struct Thread<'a> {
    engine: &'a Redb,
}

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    let database =
        Database::builder().set_cache_size(options.cache_bytes as usize).create(folder.join("peers.redb"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?;
    transaction.commit()?;
    Ok(Box::new(Redb {
        database,
        durable: options.durable,
        opened: Instant::now(),
        settled_second: AtomicU64::new(0),
    }))
}

impl Redb {
    fn write(&self, batch: &[Record], durability: Durability) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(TABLE)?;
            for record in batch {
                table.insert(&record.key[..], &record.value[..])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn durability(&self) -> Durability {
        let second = self.opened.elapsed().as_secs();
        // Once per second, one thread makes a durable commit.
        if self.durable || self.settled_second.swap(second, Ordering::Relaxed) != second {
            Durability::Immediate
        } else {
            Durability::None
        }
    }
}

impl Engine for Redb {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, _order: Order) -> Result<()> {
        in_groups(rows, |group| self.write(group, Durability::Immediate))
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread { engine: self }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.write(&[], Durability::Immediate)?;
        Ok(self.database.close()?)
    }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let table = self.engine.database.begin_read()?.open_table(TABLE)?;
        let Some(found) = table.get(&key[..])? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(found.value());
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let table = self.engine.database.begin_read()?.open_table(TABLE)?;
        for (number, key) in keys.iter().enumerate() {
            let value = table.get(&key[..])?;
            found(number, value.as_ref().map(redb::AccessGuard::value))?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        self.engine.write(batch, self.engine.durability())
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let table = self.engine.database.begin_read()?.open_table(TABLE)?;
        let mut found = 0;
        for row in table.range(&from[..]..)?.take(count) {
            let (key, value) = row?;
            each(key.value(), value.value())?;
            found += 1;
        }
        Ok(found)
    }
}
