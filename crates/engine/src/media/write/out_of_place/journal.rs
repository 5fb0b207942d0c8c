//! Writing the map: commits to the journal, and snapshots when it is full.
//!
//! A commit makes durable where the writes that have ended lie. It flushes the drive, so that these writes are durable;
//! writes the changes behind the last commit; and flushes again. One commit goes on at a time.
//!
//! Where the journal has no room, a snapshot begins a new one in the other half: all places, block by block while writes
//! go on, then a commit of what has changed meanwhile, then, when all that is durable, the half's two heads. Until then the
//! other half counts.

use super::block::{self, BlockInfo, BlockKind};
use super::kept::Kept;
use crate::bytes;
use crate::format::layout::{
    BLOCK_HEADER, Layout, SUPERBLOCK, Superblock, changes_in_a_block, places_in_a_block,
};
use crate::format::page::Salt;
use crate::media::barrier::Barrier;
use crate::media::commands::writes;
use crate::media::write::is_there;
use crate::wait::{Health, Turns, insist};
use crate::{Error, Options};
use fulgurite_base::Lpn;
use fulgurite_device::{Arena, Device, Handle, IoError};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Blocks of a snapshot that are written at once.
const WRITTEN_TOGETHER: u64 = 32;

/// Where units lie, as far as the writes that brought them there have ended.
pub struct Places {
    all: Vec<u32>,
    /// Units whose places have changed since the last commit, some of them several times.
    changed: Vec<u32>,
}

impl Places {
    /// The places as the drive has them.
    pub fn new(all: Vec<u32>) -> Places {
        Places { all, changed: Vec::new() }
    }

    /// Where every unit lies.
    pub fn all(&self) -> &[u32] {
        &self.all
    }

    /// A unit lies elsewhere now.
    pub fn set(&mut self, unit: u32, place: u32) {
        let known = &mut self.all[unit as usize];
        if *known != place {
            *known = place;
            self.changed.push(unit);
        }
    }

    /// Changes since the last commit, those made twice counted twice.
    pub fn changes(&self) -> usize {
        self.changed.len()
    }

    /// The units that have changed, and where they lie now.
    fn take_changes(&mut self) -> Vec<(u32, u32)> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().map(|unit| (unit, self.all[unit as usize])).collect()
    }
}

/// The map on the drive.
pub struct Journal<D> {
    handle: Handle<D>,
    barrier: Rc<Barrier<D>>,
    health: Health,
    layout: Layout,
    salt: Salt,
    /// The superblock when the store was opened: heads have it, for repairs.
    superblock: [u8; SUPERBLOCK],
    options: Options,
    turns: Turns,
    epoch: Cell<u64>,
    /// The block of the journal that is written next.
    next_block: Cell<u64>,
    /// The last commit that was begun, and the last one that is durable.
    begun: Cell<u64>,
    durable: Cell<u64>,
}

impl<D: Device + 'static> Journal<D> {
    /// The map that was read.
    pub fn new(
        handle: Handle<D>,
        (health, barrier): (Health, Rc<Barrier<D>>),
        (layout, superblock): (Layout, &Superblock),
        kept: &Kept,
        options: &Options,
    ) -> Journal<D> {
        Journal {
            handle,
            barrier,
            health,
            layout,
            salt: superblock.salt(),
            superblock: superblock.encode(),
            options: options.clone(),
            turns: Turns::default(),
            epoch: Cell::new(kept.epoch),
            next_block: Cell::new(kept.next_block),
            begun: Cell::new(kept.number),
            durable: Cell::new(kept.number),
        }
    }

    /// The last commit that is durable.
    pub fn last_commit(&self) -> u64 {
        self.durable.get()
    }

    /// Makes durable where everything lies whose write has ended before this call.
    pub async fn commit(&self, places: &RefCell<Places>) -> Result<(), Error> {
        let _turn = self.turns.take().await;
        let changes = places.borrow_mut().take_changes();
        if !planted!(self.options, MapBeforePages) {
            self.barrier.flush().await?;
        }
        if changes.is_empty() {
            return Ok(());
        }
        let written = match self.write_changes(&changes).await {
            Ok(true) => self.barrier.flush().await,
            Ok(false) => self.snapshot(places).await,
            Err(error) => Err(error),
        };
        // The changes are taken: nobody could write them again.
        written
            .map_err(|error| self.health.stop(format!("the map of pages could not be written: {error}")))?;
        self.durable.set(self.begun.get());
        Ok(())
    }

    /// Writes changes behind the last commit; false where there is no room for them.
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
            for (entry, (unit, place)) in part.iter().enumerate() {
                block::set_place(block, 2 * entry, *unit);
                block::set_place(block, 2 * entry + 1, *place);
            }
            part.len() as u32
        })
        .await?;
        Ok(true)
    }

    /// Begins a new journal in the other half, behind a snapshot.
    pub async fn snapshot(&self, places: &RefCell<Places>) -> Result<(), Error> {
        self.epoch.set(self.epoch.get() + 1);
        loop {
            // What changes from here on is in the commit behind the snapshot.
            places.borrow_mut().changed.clear();
            self.next_block.set(0);
            let per_block = places_in_a_block(self.layout.block_bytes) as usize;
            for from in (0..self.layout.snapshot).step_by(WRITTEN_TOGETHER as usize) {
                let blocks = WRITTEN_TOGETHER.min(self.layout.snapshot - from);
                let mut at = from as usize * per_block;
                let info = (BlockKind::Places, from as u32, self.layout.snapshot as u32);
                self.write_parts(self.half() + 1 + from, blocks, info, |block| {
                    let places = places.borrow();
                    let part = &places.all()[at..(at + per_block).min(places.all().len())];
                    part.iter().enumerate().for_each(|(entry, place)| block::set_place(block, entry, *place));
                    at += part.len();
                    part.len() as u32
                })
                .await?;
            }
            let changes = places.borrow_mut().take_changes();
            self.barrier.flush().await?;
            // More than a whole journal has changed meanwhile: what is written again is newer.
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

    /// Where the half begins that counts.
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

    /// Writes blocks side by side: parts from `from` on of something of `of` blocks. `fill` makes the entries of each and returns
    /// how many there are.
    async fn write_parts(
        &self,
        first: u64,
        blocks: u64,
        (kind, from, of): (BlockKind, u32, u32),
        mut fill: impl FnMut(&mut [u8]) -> u32,
    ) -> Result<(), Error> {
        let size = self.layout.block_bytes as usize;
        let buffer = Arena::new(blocks as usize * size).buffer(0, blocks as usize * size);
        // A head and its snapshot have the number before the commit that ends the snapshot.
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
