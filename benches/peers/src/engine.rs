//! The interface of all engines, and their list.
//!
//! A process opens an engine once and shares it among its threads. Each thread has a `Session`, because most
//! engines have state per thread: a connection, a cursor, a transaction.

use crate::rows::{Key, Record};
use anyhow::Result;
use std::path::Path;

#[cfg(feature = "bf-tree")]
mod bftree;
#[cfg(feature = "fjall")]
mod fjall;
mod fulgurite;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "wiredtiger")]
mod wiredtiger;

/// Options for opening an engine.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The size of the engine's own cache, shared by all threads.
    pub cache_bytes: u64,
    /// The limit on the memory of the process, including its page cache.
    pub memory_bytes: u64,
    /// Whether a commit is durable before it returns.
    pub durable: bool,
    /// Whether to bypass the page cache, in engines that can.
    pub direct: bool,
    /// The number of sessions.
    pub threads: usize,
    /// The number of rows.
    pub rows: u64,
}

/// The order of the rows that `load` receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Ascending keys. The engine uses its bulk load, if it has one.
    Sorted,
    /// Random order, as an application would insert them.
    Random,
}

/// An open store.
pub trait Engine: Send + Sync {
    /// Fills the empty store, and completes pending work (a flush, a compaction).
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, order: Order) -> Result<()>;

    /// A session for one thread.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// Closes the store so that it can be opened again.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Receives the key and value of a row. An error ends the scan.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Receives the value of the key with this number. An error ends the reading.
pub type VisitFound<'a> = &'a mut dyn FnMut(usize, Option<&[u8]>) -> Result<()>;

/// The access of one thread to a store.
pub trait Session {
    /// Copies the value of `key` to `value`. Returns false if there is none.
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool>;

    /// Passes the value of each key, or `None`, to `found`: each key once, in any order. An engine with a
    /// call for many keys uses it. An engine with read transactions reads all keys in one.
    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let mut value = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let there = self.get(key, &mut value)?;
            found(number, there.then_some(&value[..]))?;
        }
        Ok(())
    }

    /// Writes all records as one transaction. Later records overwrite earlier ones. Returns when the commit
    /// is as durable as the store's options require.
    fn commit(&mut self, batch: &[Record]) -> Result<()>;

    /// Passes the first `count` rows at or after `from` to `row` in ascending order. Returns their number.
    fn scan(&mut self, from: &Key, count: usize, row: Visit<'_>) -> Result<usize>;
}

/// Whether an engine bypasses the page cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    Never,
    /// If it is requested.
    Asked,
    Always,
}

/// An engine with its name and its limitations.
pub struct Kind {
    /// The name on the command line.
    pub name: &'static str,
    /// Opens the store in a folder, or creates one in an empty folder.
    pub open: fn(&Path, &Options) -> Result<Box<dyn Engine>>,
    /// Whether it bypasses the page cache.
    pub direct: Direct,
    /// Whether it can flush a commit before it returns.
    pub durable: bool,
    /// Whether a closed store can be reopened. If not, each run loads the data again.
    pub reopens: bool,
}

/// The built-in engines, in the order of the table.
pub const KINDS: &[Kind] = &[
    fulgurite::KIND,
    fulgurite::OUT_OF_PLACE,
    #[cfg(feature = "sqlite")]
    sqlite::KIND,
    #[cfg(feature = "lmdb")]
    lmdb::KIND,
    #[cfg(feature = "redb")]
    redb::KIND,
    #[cfg(feature = "wiredtiger")]
    wiredtiger::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    #[cfg(feature = "fjall")]
    fjall::KIND,
    #[cfg(feature = "bf-tree")]
    bftree::KIND,
];

/// The engine called `name`.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Passes `rows` to `put` in groups, for engines that load by ordinary transactions.
fn in_groups(
    rows: &mut dyn Iterator<Item = Record>,
    mut put: impl FnMut(&[Record]) -> Result<()>,
) -> Result<()> {
    const GROUP: usize = 10_000;
    let mut group = Vec::with_capacity(GROUP);
    loop {
        group.clear();
        group.extend(rows.take(GROUP));
        if group.is_empty() {
            return Ok(());
        }
        put(&group)?;
    }
}
