//! Checkpoints: pages that are far behind the log are written, so that recovery has less of the log to read.
//!
//! A checkpoint stops no transaction. It merges records that have been pending since before a goal, or
//! carries them along in the log (see [`crate::memory::record_cache`]). It writes the pages whose first
//! unwritten change is older than the goal, and has the drive flush. Then it writes the oldest place that is
//! still needed into the superblock, as the redo point. A change during the checkpoint only keeps the redo
//! point from moving further.

use crate::format::layout::{FORMAT, Superblock};
use crate::media::superblock;
use crate::shard::Shard;
use crate::wait::{insist, to_its_end};
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Device;
use std::rc::Rc;

/// Pages that are written together.
const WRITTEN_TOGETHER: usize = 64;

impl<D: Device + 'static> Shard<D> {
    /// Begins a checkpoint in a task of its own, unless one is under way or would be in vain: the last one
    /// could not move the redo point, and nothing has ended since that may have held it back. A commit that
    /// ends asks for room again.
    pub(crate) fn checkpoint_later(self: &Rc<Self>, goal: Lsn) {
        if self.jobs.is_vain(goal, self.progress()) || !self.jobs.checkpoint().begin() {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            let (redo, then) = (shard.durable.log().redo(), shard.progress());
            let outcome = insist(async || shard.checkpoint(goal).await).await;
            let is_vain = shard.durable.log().redo() == redo;
            shard.jobs.set_vain(is_vain.then_some((goal, then)));
            shard.jobs.checkpoint().end();
            let is_needed = goal == Lsn(u64::MAX) || shard.log_left() < shard.durable.log().capacity() / 8;
            if let Err(error) = outcome
                && is_needed
            {
                // Commits wait for room that this checkpoint could not make.
                shard.health.stop(format!("no checkpoint could be made and the log is full: {error}"));
            }
            shard.log_room.notify();
        });
    }

    /// Counts the ended causes of a stuck redo point: commits that were applied, writes of pages, and records
    /// that were merged.
    fn progress(&self) -> u64 {
        self.log_room.ended() + self.durable.pages().writes_ended() + self.state.records().counters().merged
    }

    /// Settles records and writes pages changed before `goal`, and moves the redo point as far as it goes.
    pub(crate) async fn checkpoint(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        // Merging may wait for the structure's turn, whose owner may wait for a checkpoint's.
        self.settle_records(goal).await?;
        self.checkpoint_pages(goal).await
    }

    /// Writes the pages changed before `goal` and moves the redo point as far as pending records allow. The
    /// caller may hold the turn to change the structure.
    pub(crate) async fn checkpoint_pages(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        if planted!(self.options, CheckpointGivenUp) {
            return self.write_checkpoint(goal).await;
        }
        let shard = Rc::clone(self);
        // A superblock that is being written, or half of a commit of the map, cannot be taken back.
        to_its_end(&self.handle, async move { shard.write_checkpoint(goal).await }).await
    }

    async fn write_checkpoint(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        let _turn = self.jobs.checkpoint_turn().await;
        if goal > self.durable.log().tail() {
            // The redo point moves no further than the log is durable.
            self.durable.log().sync(self.durable.log().tail()).await?;
        }
        let pages: Vec<PageId> = self.durable.pages().changed(|changed| changed.before(goal));
        for batch in pages.chunks(WRITTEN_TOGETHER) {
            self.durable.pool().write_pages(batch).await?;
        }
        self.durable.pages().flush().await?;
        let redo = self.redo_point();
        self.note_stored(redo).await?;
        let superblock = self.next_superblock(redo, false);
        superblock::write(&self.handle, &superblock).await?;
        self.durable.flush().await?;
        let before = self.durable.replace_superblock(superblock);
        self.durable.log().set_redo(redo);
        self.forget_freed(before.redo);
        self.counters.count(|counts| counts.checkpoints += 1);
        self.log_room.notify();
        Ok(())
    }

    /// The furthest place that the redo point may move to: the first change that may not be durable in a
    /// page.
    fn redo_point(&self) -> Lsn {
        let (durable, _) = self.durable.log().durable_end();
        if planted!(self.options, CheckpointTooNew) {
            return durable;
        }
        let unwritten = self.durable.pages().changed(|changed| changed.least());
        [self.first_in_no_page(), unwritten].into_iter().flatten().fold(durable, Lsn::min)
    }

    /// The beginning of the first commit that is not in the pages: it is not applied yet, or one of its
    /// records is pending.
    pub(crate) fn first_in_no_page(&self) -> Option<Lsn> {
        let unapplied = self.transactions.commits().first_unapplied();
        let pending =
            if planted!(self.options, PendingForgotten) { None } else { self.state.records().least() };
        [self.durable.unredone(), unapplied, pending].into_iter().flatten().min()
    }

    /// The superblock that follows the last one.
    pub(crate) fn next_superblock(&self, redo: Lsn, clean: bool) -> Superblock {
        let (log_end, log_crc) = self.durable.log().durable_end();
        let last = self.durable.superblock().clone();
        let (format, generation) = (FORMAT, last.generation + 1);
        let (next_large, out_of_place) = (self.durable.next_large(), self.durable.pages().backend().shape());
        Superblock { format, generation, redo, log_end, log_crc, clean, next_large, out_of_place, ..last }
    }

    /// Lets collection drop pages out of place that were freed before both superblocks' redo points. Recovery
    /// would do without them earlier, since the log says that they are free, but it could not tell them from
    /// pages that the drive has lost.
    fn forget_freed(&self, redo: Lsn) {
        // A backup copies pages that were just freed.
        if let Some(place) = self.durable.pages().backend().out_of_place()
            && !self.state.is_backup_running()
        {
            place.trim(&self.state.space().take_freed(redo));
        }
    }

    /// Writes everything that differs from the drive and marks the store as closed.
    pub(crate) async fn close(self: &Rc<Self>) -> Result<(), Error> {
        self.check_open()?;
        let last = self.transactions.commits().last();
        self.durable.log().sync(last).await?;
        self.advance();
        self.until_visible(last).await?;
        self.transactions.close();
        self.durable.log().sync(self.durable.log().tail()).await?;
        self.durable.pool().flush().await?;
        // A split leaf leaves some of its records to another leaf, which the next checkpoint merges. Records
        // that no leaf can take stay pending.
        let mut before = u64::MAX;
        loop {
            self.checkpoint(Lsn(u64::MAX)).await?;
            let pending = self.state.records().pending();
            if pending == 0 || pending >= before {
                break;
            }
            before = pending;
        }
        // Another task's checkpoint ends first. Its pages may have to wait for collection.
        let _turn = self.jobs.checkpoint_turn().await;
        if let Some(place) = self.durable.pages().backend().out_of_place() {
            place.close().await;
        }
        let redo = self.redo_point();
        let superblock = self.next_superblock(redo, redo == self.durable.log().durable_end().0);
        superblock::write(&self.handle, &superblock).await?;
        self.durable.flush().await?;
        self.durable.replace_superblock(superblock);
        Ok(())
    }
}
