//! Checkpoints: pages that are far behind the log are written, so that recovery need not begin so early.
//!
//! A checkpoint stops nobody. It writes the pages whose first unwritten change is older than a goal, has the drive flush,
//! and puts the least place that is still needed into the superblock as the redo point. What changes meanwhile
//! only keeps the redo point from moving further.

use crate::layout::{PLACES, Superblock};
use crate::shard::{Shard, count};
use crate::{Error, Lsn, memory};
use fulgurite_base::{Lpn, Nanos, PageId};
use fulgurite_device::{Arena, Device, Handle, IoError, Operation};
use std::rc::Rc;

/// Pages that are written together.
const WRITTEN_TOGETHER: usize = 64;

impl<D: Device + 'static> Shard<D> {
    /// Begins a checkpoint in a task of its own, unless one is under way, or the last one shows that it would be in vain.
    pub fn checkpoint_later(self: &Rc<Self>, goal: Lsn) {
        if self.checkpoint_is_vain.get() || self.checkpointing.replace(true) {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            let before = shard.log.redo();
            let outcome = shard.checkpoint(goal).await;
            // Only a commit that is not applied yet makes waiting worth while: its end looks for room again.
            let waits = shard.commits.borrow().first_unapplied().is_some();
            shard.checkpoint_is_vain.set(outcome.is_ok() && shard.log.redo() == before && waits);
            shard.checkpointing.set(false);
            if let Err(error) = outcome
                && shard.log.used() + shard.log.capacity() / 8 > shard.log.capacity()
            {
                // Commits wait for room that does not come.
                shard.health.stop(format!("no checkpoint could be made and the log is full: {error}"));
            }
            shard.room.notify();
        });
    }

    /// Writes the pages changed before `goal` and moves the redo point as far as it goes.
    pub async fn checkpoint(&self, goal: Lsn) -> Result<(), Error> {
        let _turn = self.checkpoint_turn.take().await;
        if goal > self.log.tail() {
            // The redo point goes no further than the log is durable.
            self.log.sync(self.log.tail(), Nanos::ZERO).await?;
        }
        let pages: Vec<PageId> = self.pages.changed(|changed| changed.before(goal));
        for batch in pages.chunks(WRITTEN_TOGETHER) {
            self.pool.write_pages(batch).await?;
        }
        self.pages.flush().await?;
        let redo = self.redo_point();
        let superblock = self.next_superblock(redo, false);
        write_superblock(&self.handle, &superblock).await?;
        self.barrier.flush().await?;
        *self.superblock.borrow_mut() = superblock;
        self.log.set_redo(redo);
        count(&self.counters.checkpoints, 1);
        self.room.notify();
        Ok(())
    }

    /// As far as the redo point may move: to the first change that the drive does not have for sure.
    fn redo_point(&self) -> Lsn {
        let (durable, _) = self.log.durable_end();
        if planted!(self.options, CheckpointTooNew) {
            return durable;
        }
        let unapplied = self.commits.borrow().first_unapplied();
        let unwritten = self.pages.changed(|changed| changed.least());
        [unapplied, unwritten].into_iter().flatten().fold(durable, Lsn::min)
    }

    /// The superblock that follows the last one.
    pub fn next_superblock(&self, redo: Lsn, clean: bool) -> Superblock {
        let (log_end, log_crc) = self.log.durable_end();
        let last = self.superblock.borrow().clone();
        let generation = last.generation + 1;
        Superblock { generation, redo, log_end, log_crc, clean, next_large: self.next_large.get(), ..last }
    }

    /// Writes everything that differs from the drive and marks the store as closed.
    pub async fn close(&self) -> Result<(), Error> {
        self.check_open()?;
        let last = self.commits.borrow().last();
        self.log.sync(last, Nanos::ZERO).await?;
        self.advance();
        self.until_visible(last).await?;
        self.closed.set(true);
        self.log.sync(self.log.tail(), Nanos::ZERO).await?;
        self.pool.flush().await?;
        self.checkpoint(Lsn(u64::MAX)).await?;
        let redo = self.redo_point();
        let superblock = self.next_superblock(redo, redo == self.log.durable_end().0);
        write_superblock(&self.handle, &superblock).await?;
        self.barrier.flush().await?;
        *self.superblock.borrow_mut() = superblock;
        Ok(())
    }
}

/// Writes a superblock to the place whose turn it is.
pub async fn write_superblock<D: Device + 'static>(
    handle: &Handle<D>,
    superblock: &Superblock,
) -> Result<(), Error> {
    let device_page = handle.caps().page_bytes as usize;
    let bytes = device_page.max(4096);
    let buffer = Arena::new(bytes).buffer(0, bytes);
    let mut image = vec![0; bytes];
    let encoded = superblock.encode();
    image[..encoded.len()].copy_from_slice(&encoded);
    memory::fill(&buffer, &image);
    let place = PLACES[(superblock.generation % 2) as usize];
    let lpn = Lpn(place / device_page as u64);
    let write = crate::write::write(lpn, (bytes / device_page) as u32, buffer);
    handle.submit(write).await.map_err(Error::Io)
}

/// How often a superblock is read again that the drive could not read.
const READ_AGAIN: u32 = 3;

/// Reads the superblock with the higher generation.
///
/// Where the other place is damaged, the newest may have been there: so the store counts as not closed, and the log tells
/// what followed. A place that cannot be read is an error, since what it says is not known.
pub async fn read_superblock<D: Device + 'static>(handle: &Handle<D>) -> Result<Superblock, Error> {
    let mut found: Vec<Result<Superblock, Error>> = Vec::new();
    for place in PLACES {
        found.push(read_place(handle, place).await?);
    }
    let newest = found.iter().flatten().max_by_key(|superblock| superblock.generation).cloned();
    if let Some(superblock) = newest {
        // The other one may have been the newer, and may have said that the store was opened since: then only the log tells.
        let clean = superblock.clean && found.iter().all(Result::is_ok);
        return Ok(Superblock { clean, ..superblock });
    }
    // The most telling refusal: another version, then damage, then something foreign.
    let rank = |error: &Error| match error {
        Error::Version { .. } => 2,
        Error::Corrupt { .. } => 1,
        _ => 0,
    };
    let errors = found.into_iter().filter_map(Result::err);
    Err(errors.max_by_key(rank).unwrap_or(Error::NotAStore))
}

async fn read_place<D: Device + 'static>(
    handle: &Handle<D>,
    place: u64,
) -> Result<Result<Superblock, Error>, Error> {
    let device_page = handle.caps().page_bytes as usize;
    let bytes = device_page.max(4096);
    let buffer = Arena::new(bytes).buffer(0, bytes);
    let (lpn, pages) = (Lpn(place / device_page as u64), (bytes / device_page) as u32);
    let mut left = READ_AGAIN;
    loop {
        match handle.submit(Operation::Read { lpn, pages, into: Some(buffer.clone()) }).await {
            Ok(()) => return Ok(memory::look(&buffer, Superblock::decode)),
            // Beyond the end of the drive there is no store.
            Err(IoError::OutOfRange) => return Ok(Err(Error::NotAStore)),
            Err(_) if left > 0 => left -= 1,
            Err(error) => return Err(Error::Io(error)),
        }
    }
}
