//! Writes the map from pages to addresses: commits to the journal, and snapshots when the journal is full.
//!
//! A commit makes the addresses of all completed writes durable. It flushes the drive, so that these writes
//! are durable, appends the changes to the journal, and flushes again. Commits run one at a time.
//!
//! When the journal is full, a snapshot starts a new journal in the other half of the map's area. A snapshot
//! consists of all addresses, written block by block while page writes continue, and of a commit with the
//! changes made meanwhile. When the addresses and the commit are durable, the two heads of the half are
//! written. Until then the old half is valid.

use super::block::{self, BlockInfo, BlockKind};
use super::stored_map::StoredMap;
use crate::bytes;
use crate::format::layout::{
    BLOCK_HEADER, Layout, SUPERBLOCK, Superblock, addresses_in_a_block, changes_in_a_block,
};
use crate::format::page::Salt;
use crate::media::barrier::Barrier;
use crate::media::commands::writes;
use crate::media::write::is_there;
use crate::wait::{Health, Turns, insist};
use crate::{Error, Options};
use fulgurite_base::Lpn;
use fulgurite_device::{Arena, Handle, IoError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The number of blocks of a snapshot that are written concurrently.
const WRITTEN_TOGETHER: u64 = 32;

/// The map in memory: the address of each unit whose last write has completed.
pub(super) struct AddressMap {
    all: Vec<u32>,
    /// The units whose addresses changed since the last commit, possibly with duplicates.
    changed: Vec<u32>,
}

impl AddressMap {
    /// Creates the map from addresses that were read from the drive.
    pub(super) fn new(all: Vec<u32>) -> AddressMap {
        AddressMap { all, changed: Vec::new() }
    }

    /// Returns the address of every unit.
    pub(super) fn all(&self) -> &[u32] {
        &self.all
    }

    /// Sets the address of a unit, and records the change for the next commit.
    pub(super) fn set(&mut self, unit: u32, address: u32) {
        let known = &mut self.all[unit as usize];
        if *known != address {
            *known = address;
            self.changed.push(unit);
        }
    }

    /// Returns the number of changes since the last commit, including duplicates.
    pub(super) fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Takes the changed units with their addresses, and clears the record of changes.
    fn take_changes(&mut self) -> Vec<(u32, u32)> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|unit| (unit, self.all[unit as usize])).collect()
    }
}

/// Writes the map on the drive.
pub(super) struct Journal {
    handle: Handle,
    barrier: Rc<Barrier>,
    health: Health,
    layout: Layout,
    salt: Salt,
    /// The superblock as it was when the store was opened. Heads contain it for repairs.
    superblock: [u8; SUPERBLOCK],
    options: Options,
    turns: Turns,
    epoch: Cell<u64>,
    /// The index of the next block in the journal.
    next_block: Cell<u64>,
    /// The number of the last commit that was begun, and the number of the last durable one.
    begun: Cell<u64>,
    durable: Cell<u64>,
}

impl Journal {
    /// Creates a journal that continues the map `stored_map`.
    pub(super) fn new(
        handle: Handle,
        (health, barrier): (Health, Rc<Barrier>),
        (layout, superblock): (Layout, &Superblock),
        stored_map: &StoredMap,
        options: &Options,
    ) -> Journal {
        Journal {
            handle,
            barrier,
            health,
            layout,
            salt: superblock.salt(),
            superblock: superblock.encode(),
            options: options.clone(),
            turns: Turns::default(),
            epoch: Cell::new(stored_map.epoch),
            next_block: Cell::new(stored_map.next_block),
            begun: Cell::new(stored_map.number),
            durable: Cell::new(stored_map.number),
        }
    }

    /// Returns the number of the last durable commit.
    pub(super) fn last_commit(&self) -> u64 {
        self.durable.get()
    }

    /// Makes the addresses of all writes durable that completed before this call.
    pub(super) async fn commit(&self, addresses: &RefCell<AddressMap>) -> Result<(), Error> {
        let _turn = self.turns.take().await;
        let changes = addresses.borrow_mut().take_changes();
        if !planted!(self.options, MapBeforePages) {
            self.barrier.flush().await?;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let written = match self.write_changes(&changes).await {
            Ok(true) => self.barrier.flush().await,
            Ok(false) => self.snapshot(addresses).await,
            Err(error) => Err(error),
        };
        // A retry could not write the changes, because they were taken from the map, so stop the store.
        written
            .map_err(|error| self.health.stop(format!("the map of pages could not be written: {error}")))?;
        self.durable.set(self.begun.get());
        Ok(())
    }

    /// Appends changes to the journal as a commit. Returns false if the journal is full.
    async fn write_changes(&self, changes: &[(u32, u32)]) -> Result<bool, Error> {
        let per_block = changes_in_a_block(self.layout.block_bytes) as usize;
        let blocks = changes.len().div_ceil(per_block).max(1);
        let at = self.next_block.get();
        if at + blocks as u64 > self.layout.journal {
            return Ok(false);
        }
        self.begun.set(self.begun.get() + 1);
        self.next_block.set(at + blocks as u64);
        let mut parts = changes.chunks(per_block);
        let first = self.half() + 1 + self.layout.snapshot + at;
        self.write_blocks(first, blocks as u64, BlockKind::Changes, |block| {
            let part = parts.next().unwrap_or_default();
            for (entry, (unit, address)) in part.iter().enumerate() {
                block::set_address(block, 2 * entry, *unit);
                block::set_address(block, 2 * entry + 1, *address);
            }
            part.len() as u32
        })
        .await?;
        Ok(true)
    }

    /// Writes a snapshot, which starts a new journal in the other half of the map's area.
    pub(super) async fn snapshot(&self, addresses: &RefCell<AddressMap>) -> Result<(), Error> {
        self.epoch.set(self.epoch.get() + 1);
        loop {
            // Changes from here on belong to the commit after the snapshot.
            addresses.borrow_mut().changed.clear();
            self.next_block.set(0);
            let per_block = addresses_in_a_block(self.layout.block_bytes) as usize;
            for from in (0..self.layout.snapshot).step_by(WRITTEN_TOGETHER as usize) {
                let blocks = WRITTEN_TOGETHER.min(self.layout.snapshot - from);
                let mut at = from as usize * per_block;
                let info = (BlockKind::AddressMap, from as u32, self.layout.snapshot as u32);
                self.write_parts(self.half() + 1 + from, blocks, info, |block| {
                    let addresses = addresses.borrow();
                    let part = &addresses.all()[at..(at + per_block).min(addresses.all().len())];
                    part.iter()
                        .enumerate()
                        .for_each(|(entry, address)| block::set_address(block, entry, *address));
                    at += part.len();
                    part.len() as u32
                })
                .await?;
            }
            let changes = addresses.borrow_mut().take_changes();
            self.barrier.flush().await?;
            // If the changes made meanwhile do not fit into a journal, write a new snapshot, which contains
            // them.
            if self.write_changes(&changes).await? {
                break;
            }
        }
        self.barrier.flush().await?;
        let heads = [self.half(), self.half() + self.layout.half() - 1];
        for head in heads {
            let info = (BlockKind::Head, 0, 1);
            self.write_parts(head, 1, info, |block| {
                block[BLOCK_HEADER..BLOCK_HEADER + SUPERBLOCK].copy_from_slice(&self.superblock);
                (SUPERBLOCK / 4) as u32
            })
            .await?;
        }
        self.barrier.flush().await
    }

    /// Returns the first block of the half that has the current epoch.
    fn half(&self) -> u64 {
        self.layout.map + (self.epoch.get() % 2) * self.layout.half()
    }

    async fn write_blocks(
        &self,
        first: u64,
        blocks: u64,
        kind: BlockKind,
        fill: impl FnMut(&mut [u8]) -> u32,
    ) -> Result<(), Error> {
        self.write_parts(first, blocks, (kind, 0, blocks as u32), fill).await
    }

    /// Writes consecutive blocks concurrently. They begin at index `from` in a snapshot or commit of `of`
    /// blocks. `fill` writes the entries of each block and returns their number.
    async fn write_parts(
        &self,
        first: u64,
        blocks: u64,
        (kind, from, of): (BlockKind, u32, u32),
        mut fill: impl FnMut(&mut [u8]) -> u32,
    ) -> Result<(), Error> {
        let size = self.layout.block_bytes as usize;
        let buffer = Arena::new(blocks as usize * size).buffer(0, blocks as usize * size);
        // A head and the addresses of its snapshot have the number of the last commit before the one that
        // ends the snapshot. That final commit has begun when the head is written.
        let (epoch, number) = (self.epoch.get(), self.begun.get());
        let number = if kind == BlockKind::Head { number - 1 } else { number };
        bytes::change(&buffer, |bytes| {
            for (index, block) in (from..).zip(bytes.chunks_exact_mut(size)) {
                let entries = fill(block);
                block::seal(block, &BlockInfo { kind, epoch, number, index, of, entries }, self.salt);
            }
        });
        let device_pages = u64::from(self.layout.block_bytes / self.handle.caps().page_bytes);
        let first = Lpn(first * device_pages);
        insist(async || {
            self.handle.submit_all(writes(&self.handle, first, &buffer)).await.map_err(Error::Io)
        })
        .await?;
        if self.options.verify_writes && !is_there(&self.handle, first, &buffer).await? {
            return Err(Error::Io(IoError::Corrupt));
        }
        Ok(())
    }
}
