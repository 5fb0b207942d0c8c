//! What every engine is asked to do, and the list of engines.
//!
//! An engine is opened once in a process and shared by its threads. A thread works through a `Session` of its own,
//! since most engines keep something for each thread: a connection, a cursor, a transaction.

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

/// How an engine is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The engine's own cache, for all threads together.
    pub cache_bytes: u64,
    /// The limit on all memory of the process, with its page cache.
    pub memory_bytes: u64,
    /// A commit is on the drive before it returns.
    pub durable: bool,
    /// Keep the page cache out, in the engines that can.
    pub direct: bool,
    /// How many sessions there will be.
    pub threads: usize,
    /// How many rows there will be.
    pub rows: u64,
}

/// The order in which `load` gets its rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Ascending keys: the engine's bulk load, where it has one.
    Sorted,
    /// As an application would insert them.
    Random,
}

/// A store that is open.
pub trait Engine: Send + Sync {
    /// Fills the empty store, and settles what it owes (a flush, a compaction).
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, order: Order) -> Result<()>;

    /// A thread's access to the store.
    fn session(&self) -> Result<Box<dyn Session + '_>>;

    /// Closes the store so that it can be opened again.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Takes a row's key and value; its error ends the scan.
pub type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Takes what was found for the key with a number; its error ends the reading.
pub type VisitFound<'a> = &'a mut dyn FnMut(usize, Option<&[u8]>) -> Result<()>;

/// One thread's access to a store.
pub trait Session {
    /// Copies the value of `key` to `value`; false where there is none.
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool>;

    /// Hands the value of each key, or that there is none, to `found`, each key once, in any order. An engine that has a
    /// call for many keys uses it; one that has read transactions reads all in one.
    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let mut value = Vec::new();
        for (number, key) in keys.iter().enumerate() {
            let there = self.get(key, &mut value)?;
            found(number, there.then_some(&value[..]))?;
        }
        Ok(())
    }

    /// Writes all records as one transaction, later ones over earlier ones; returns when the store's durability says so.
    fn commit(&mut self, batch: &[Record]) -> Result<()>;

    /// Hands the first `count` rows at or after `from` to `row`, ascending, and returns how many there were.
    fn scan(&mut self, from: &Key, count: usize, row: Visit<'_>) -> Result<usize>;
}

/// Whether an engine keeps the page cache out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    Never,
    /// Where it is asked to.
    Asked,
    Always,
}

/// An engine by name, with what it cannot do.
pub struct Kind {
    /// As it is written on the command line.
    pub name: &'static str,
    /// Opens the store in a folder, or makes one in an empty folder.
    pub open: fn(&Path, &Options) -> Result<Box<dyn Engine>>,
    /// Whether it keeps the page cache out.
    pub direct: Direct,
    /// It can flush a commit before it returns.
    pub durable: bool,
    /// A store that was closed can be opened again. Where not, each run loads anew.
    pub reopens: bool,
}

/// The engines that were built in, in the order of the table.
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

/// Hands `rows` to `put` in groups, for the engines that load by ordinary transactions.
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
