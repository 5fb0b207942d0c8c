//! Bf-Tree, the crate `bf-tree`.
//!
//! - The circular buffer has the size of the cache. Record sizes are those of the rows; all other settings are
//!   defaults, as its `Config` advises: "you don't have to change the default configuration".
//! - Leaves are on the drive by `StorageBackend::StdDirect` (direct I/O), or by `Std` where a memory group binds the
//!   page cache.
//! - It has no durability: its log is neither checksummed nor flushed, and recovery from it is marked incomplete.
//!   So there are no rows for durable commits. A snapshot could be reopened, but only with buffered I/O, so each
//!   run loads anew.
//! - It has no transactions: a batch is written record by record.

use super::{Direct, Engine, Kind, Options, Order, Session, Visit};
use crate::rows::{KEY_BYTES, Key, ROW_BYTES, Record, VALUE_BYTES};
use anyhow::{Result, anyhow, bail};
use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};
use std::path::Path;

pub const KIND: Kind = Kind { name: "bf-tree", open, direct: Direct::Asked, durable: false, reopens: false };

struct Bf(BfTree);

struct Thread<'a> {
    tree: &'a BfTree,
    buffer: Vec<u8>,
}

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    // The size must be a power of two: the largest one that is not above the cache's size.
    let buffer_bytes = 1u64 << options.cache_bytes.max(1).ilog2();
    let mut config = Config::new(folder.join("peers.bftree"), buffer_bytes as usize);
    let backend = if options.direct { StorageBackend::StdDirect } else { StorageBackend::Std };
    config
        .storage_backend(backend)
        .cb_max_key_len(KEY_BYTES)
        .cb_min_record_size(ROW_BYTES as usize)
        .cb_max_record_size(ROW_BYTES as usize);
    let tree = BfTree::with_config(config, None).map_err(|error| anyhow!("opening Bf-Tree: {error:?}"))?;
    Ok(Box::new(Bf(tree)))
}

fn insert(tree: &BfTree, record: &Record) -> Result<()> {
    match tree.insert(&record.key, &record.value) {
        LeafInsertResult::Success => Ok(()),
        LeafInsertResult::InvalidKV(why) => bail!("Bf-Tree refuses a record: {why}"),
    }
}

impl Engine for Bf {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, _order: Order) -> Result<()> {
        for record in rows {
            insert(&self.0, &record)?;
        }
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread { tree: &self.0, buffer: vec![0; 4096] }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        value.resize(VALUE_BYTES, 0);
        match self.tree.read(key, value) {
            LeafReadResult::Found(length) => value.truncate(length as usize),
            LeafReadResult::NotFound | LeafReadResult::Deleted => return Ok(false),
            LeafReadResult::InvalidKey => bail!("Bf-Tree refuses a key"),
        }
        Ok(true)
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        batch.iter().try_for_each(|record| insert(self.tree, record))
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let mut scan = self
            .tree
            .scan_with_count(from, count, ScanReturnField::KeyAndValue)
            .map_err(|error| anyhow!("a scan of Bf-Tree: {error:?}"))?;
        let mut found = 0;
        while let Some((key, value)) = scan.next(&mut self.buffer) {
            each(&self.buffer[..key], &self.buffer[key..key + value])?;
            found += 1;
        }
        Ok(found)
    }
}
