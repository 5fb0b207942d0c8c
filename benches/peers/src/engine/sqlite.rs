//! SQLite, compiled by the crate `rusqlite` (its feature `bundled`).
//!
//! - `journal_mode = WAL`: readers and the writer do not wait for each other (sqlite.org/wal.html).
//! - Durable: `synchronous = FULL`, the log is flushed at each commit. Relaxed: `NORMAL`, flushed at checkpoints only;
//!   the same page calls it the right choice for most programs in WAL mode. It survives a crash consistently.
//! - `WITHOUT ROWID`, as sqlite.org/withoutrowid.html advises for a key that is no integer and rows below a twentieth
//!   of a page: one B-tree instead of two.
//! - One connection writes, behind a mutex, since SQLite has one writer at a time and its own waiting is by sleeping;
//!   every thread reads through a connection of its own (sqlite.org/isolation.html; a shared cache is discouraged).
//! - The cache is per connection: the given size is divided among them (`cache_size`, sqlite.org/pragma.html).
//! - Statements are prepared once. Page size and automatic checkpoints are the defaults, 4 KiB and 1,000 pages.
//! - SQLite has no direct I/O.

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{Key, Record};
use anyhow::{Context, Result, anyhow};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

pub const KIND: Kind = Kind { name: "sqlite", open, direct: Direct::Never, durable: true, reopens: true };

const GET: &str = "SELECT v FROM t WHERE k = ?1";
const PUT: &str = "INSERT INTO t (k, v) VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = excluded.v";
const SCAN: &str = "SELECT k, v FROM t WHERE k >= ?1 ORDER BY k LIMIT ?2";

struct Sqlite {
    path: PathBuf,
    options: Options,
    writer: Mutex<Connection>,
}

struct Reader<'a> {
    engine: &'a Sqlite,
    connection: Connection,
}

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    let path = folder.join("peers.sqlite");
    let writer = connect(&path, options)?;
    writer
        .execute_batch("CREATE TABLE IF NOT EXISTS t (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")?;
    Ok(Box::new(Sqlite { path, options: *options, writer: Mutex::new(writer) }))
}

fn connect(path: &Path, options: &Options) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    anyhow::ensure!(mode == "wal", "SQLite stays in journal mode {mode}");
    let synchronous = if options.durable { "FULL" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    // A negative size is in KiB.
    let share = options.cache_bytes / (options.threads as u64 + 1);
    connection.pragma_update(None, "cache_size", -((share / 1024) as i64))?;
    Ok(connection)
}

impl Sqlite {
    fn write(&self, batch: &[Record]) -> Result<()> {
        let mut writer = self.writer.lock().map_err(|_| anyhow!("a writer has failed"))?;
        let transaction = writer.transaction()?;
        {
            let mut put = transaction.prepare_cached(PUT)?;
            for record in batch {
                put.execute(params![&record.key[..], &record.value[..]])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

impl Engine for Sqlite {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, _order: Order) -> Result<()> {
        in_groups(rows, |group| self.write(group))?;
        let writer = self.writer.lock().map_err(|_| anyhow!("a writer has failed"))?;
        writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Reader { engine: self, connection: connect(&self.path, &self.options)? }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let writer = self.writer.into_inner().map_err(|_| anyhow!("a writer has failed"))?;
        writer.close().map_err(|(_, error)| error).context("closing SQLite")
    }
}

impl Session for Reader<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let mut get = self.connection.prepare_cached(GET)?;
        let found = get
            .query_row(params![&key[..]], |row| {
                value.clear();
                value.extend_from_slice(row.get_ref(0)?.as_blob()?);
                Ok(())
            })
            .optional()?;
        Ok(found.is_some())
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        // One read transaction for all keys. Otherwise each statement would acquire and release locks.
        let transaction = self.connection.transaction()?;
        {
            let mut get = transaction.prepare_cached(GET)?;
            for (number, key) in keys.iter().enumerate() {
                let mut rows = get.query(params![&key[..]])?;
                match rows.next()? {
                    Some(row) => found(number, Some(row.get_ref(0)?.as_blob()?))?,
                    None => found(number, None)?,
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        self.engine.write(batch)
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let mut scan = self.connection.prepare_cached(SCAN)?;
        let mut rows = scan.query(params![&from[..], count as i64])?;
        let mut found = 0;
        while let Some(row) = rows.next()? {
            each(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?)?;
            found += 1;
        }
        Ok(found)
    }
}
