//! Fulgurite's own store, through the handle that any thread may use (`blocking::Db`), on a file through io_uring.
//!
//! - One shard, always with direct I/O: the store never uses the page cache. So it gets all memory within the
//!   limit that the process itself does not need. A quarter of it holds old versions, locks and the log's
//!   buffers; the rest are frames. (Engines that use the page cache have it in addition to their cache, within
//!   the same limit.)
//! - Durable: `group`, the default. A commit returns when it is flushed, and concurrent commits share a flush.
//!   Relaxed: `relaxed`, with a background thread, so that a commit is written within its window of 10 ms.
//! - `fulgurite`: pages in place, with the protection against torn pages that `auto` selects: double writes on an
//!   ordinary file. `fulgurite-out`: pages out of place, in units of a block. They are not compressed, because
//!   the values are incompressible, and units smaller than a block need more memory for their map.
//! - The log has 256 MiB: a page that changes often is written once per 256 MiB of log.
//! - The sorted load is `bulk_load`.

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{Key, ROW_BYTES, Record};
use anyhow::{Context, Result, anyhow};
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Direction, Durability, Options as StoreOptions};
use fulgurite_uring::{DriveOptions, UringDevice};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};

pub const KIND: Kind =
    Kind { name: "fulgurite", open: in_place, direct: Direct::Always, durable: true, reopens: true };

/// The same with pages out of place: no page is written twice, and segments are collected.
pub const OUT_OF_PLACE: Kind =
    Kind { name: "fulgurite-out", open: out_of_place, direct: Direct::Always, durable: true, reopens: true };

const TABLE: &str = "t";
const LOG_BYTES: u64 = 256 << 20;
/// Memory of the process besides the store: the program, its threads, and their statistics.
const PROCESS_BYTES: u64 = 32 << 20;

/// An open store with its background threads.
struct Open {
    db: Db,
    table: Table,
    keepers: Vec<JoinHandle<()>>,
}

struct Fulgurite {
    path: PathBuf,
    options: StoreOptions,
    drive: DriveOptions,
    /// Empty until the store is loaded.
    open: OnceLock<Open>,
}

struct Thread<'a>(&'a Open);

fn in_place(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    open(folder, options, "in-place")
}

fn out_of_place(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    open(folder, options, "out-of-place:unit=4KiB,compress=none")
}

fn open(folder: &Path, options: &Options, place: &str) -> Result<Box<dyn Engine>> {
    let durability = if options.durable { Durability::Group } else { Durability::Relaxed };
    let store = StoreOptions {
        memory_bytes: options.memory_bytes.saturating_sub(PROCESS_BYTES).max(options.cache_bytes),
        log_bytes: LOG_BYTES,
        durability,
        place: place.parse().map_err(|error| anyhow!("place {place}: {error}"))?,
        ..StoreOptions::default()
    };
    // The file has a fixed size. A random load leaves pages one third empty.
    let bytes = options.rows * ROW_BYTES * 7 / 4 + LOG_BYTES + (64 << 20);
    let drive =
        DriveOptions { pages: Some(bytes.div_ceil(4096)), many_threads: true, ..DriveOptions::default() };
    let engine =
        Fulgurite { path: folder.join("store.fulgurite"), options: store, drive, open: OnceLock::new() };
    if engine.path.exists() {
        engine.start(Db::open(vec![engine.drive()?], engine.options.clone())?)?;
    }
    Ok(Box::new(engine))
}

impl Fulgurite {
    fn drive(&self) -> Result<UringDevice> {
        Ok(UringDevice::open(&self.path, &self.drive)?)
    }

    fn start(&self, db: Db) -> Result<&Open> {
        let table = db.create_table(TABLE)?;
        let keepers = db.keepers().into_iter().map(|keeper| thread::spawn(|| keeper.run())).collect();
        Ok(self.open.get_or_init(|| Open { db, table, keepers }))
    }
}

impl Open {
    fn commit(&self, batch: &[Record]) -> Result<()> {
        Ok(self.db.transact(|transaction| {
            batch.iter().try_for_each(|record| transaction.put(&self.table, &record.key, &record.value))
        })?)
    }
}

impl Engine for Fulgurite {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, order: Order) -> Result<()> {
        let open = self.start(Db::create(vec![self.drive()?], self.options.clone())?)?;
        if order == Order::Sorted {
            let records = rows.map(|row| (row.key.to_vec(), row.value.to_vec()));
            open.db.bulk_load(&open.table, records)?;
        } else {
            in_groups(rows, |group| group.chunks(1000).try_for_each(|part| open.commit(part)))?;
        }
        Ok(open.db.checkpoint()?)
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread(self.open.get().context("the store was not loaded")?)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Some(open) = self.open.into_inner() else { return Ok(()) };
        open.db.close()?;
        open.keepers
            .into_iter()
            .try_for_each(|keeper| keeper.join().map_err(|_| anyhow!("a keeper has panicked")))
    }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let Some(found) = self.0.db.get(&self.0.table, key)? else { return Ok(false) };
        value.clear();
        value.extend_from_slice(&found);
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let values = self.0.db.get_many(&self.0.table, &keys)?;
        values.iter().enumerate().try_for_each(|(number, value)| found(number, value.as_deref()))
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        self.0.commit(batch)
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let range = (Bound::Included(&from[..]), Bound::Unbounded);
        let mut records = self.0.db.scan(&self.0.table, range, Direction::Forward).limit(count);
        let mut found = 0;
        while let Some(record) = records.next_row() {
            let (key, value) = record?;
            each(key, value)?;
            found += 1;
        }
        Ok(found)
    }
}
