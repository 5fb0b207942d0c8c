//! Checkpoints: a checkpoint writes the pages whose oldest unwritten change is far back in the log, and moves
//! the redo point forward, so that recovery reads less of the log.
//!
//! A checkpoint stops no transaction. It merges the records that have been pending since before a goal (an
//! LSN), or copies them forward in the log (see [`crate::memory::record_cache`]). It writes the dirty pages
//! whose first unwritten change is older than the goal, and flushes the drive. Finally it writes the oldest
//! LSN that recovery still needs into the superblock, as the redo point. A change during the checkpoint can
//! only keep the redo point from moving further.

use crate::format::layout::{FORMAT, Superblock};
use crate::media::superblock;
use crate::shard::Shard;
use crate::wait::{insist, to_its_end};
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use std::rc::Rc;

/// The number of pages in one write-back batch of a checkpoint.
const WRITTEN_TOGETHER: usize = 64;

impl Shard {
    /// Begins a checkpoint in a task of its own. It does nothing if a checkpoint is under way, or if another
    /// one would be in vain because the last one could not move the redo point and nothing has ended since
    /// that may have held it back. Nothing is lost in this case: a commit that ends asks for log space again.
    pub(crate) fn checkpoint_later(self: &Rc<Self>, goal: Lsn) {
        if self.jobs.is_vain(goal, self.progress()) || !self.jobs.checkpoint().begin() {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            let (redo, then) = (shard.durable.log().redo(), shard.progress());
            let outcome = insist(async || shard.checkpoint(goal).await).await;
            // The checkpoint has made room in the log. A merge that fails loses nothing.
            let _ = shard.shrink_remembered().await;
            let is_vain = shard.durable.log().redo() == redo;
            shard.jobs.set_vain(is_vain.then_some((goal, then)));
            shard.jobs.checkpoint().end();
            let is_needed = goal == Lsn(u64::MAX) || shard.log_left() < shard.durable.log().capacity() / 8;
            if let Err(error) = outcome
                && is_needed
            {
                // Commits wait for log space, and this checkpoint could not free any, so they would wait
                // forever.
                shard.health.stop(format!("no checkpoint could be made and the log is full: {error}"));
            }
            shard.log_room.notify();
        });
    }

    /// Returns a count of the events that may let a stuck redo point move: commits applied, page writes
    /// completed, and records merged.
    fn progress(&self) -> u64 {
        self.log_room.ended() + self.durable.pages().writes_ended() + self.state.records().counters().merged
    }

    /// Merges or copies forward the pending records from before `goal`, writes the pages changed before
    /// `goal`, and moves the redo point as far as possible.
    pub(crate) async fn checkpoint(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        // Merges before it takes the lock of the superblock. Merging may wait for the lock of the trees'
        // structure, and the owner of that lock may wait for a checkpoint, so the other order could deadlock.
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
        // Runs to completion even if the caller gives up: a superblock that is being written, or a
        // half-written commit of the page map, cannot be undone.
        to_its_end(&self.handle, async move { shard.write_checkpoint(goal).await }).await
    }

    async fn write_checkpoint(self: &Rc<Self>, goal: Lsn) -> Result<(), Error> {
        let _turn = self.jobs.checkpoint_turn().await;
        if goal > self.durable.log().tail() {
            // The redo point cannot pass the durable end of the log, so the log is made durable up to its
            // tail.
            self.durable.log().sync(self.durable.log().tail()).await?;
        }
        let pages: Vec<PageId> = self.durable.pages().changed(|changed| changed.before(goal));
        for batch in pages.chunks(WRITTEN_TOGETHER) {
            self.durable.pool().write_pages(batch).await.map_err(self.of_pool())?;
        }
        self.durable.pages().deltas_settled().await;
        self.durable.pages().flush().await?;
        if !planted!(self.options, DecisionForgotten) {
            self.carry_decisions(goal).await?;
        }
        let redo = self.redo_point();
        self.note_stored(redo).await?;
        let superblock = self.next_superblock(redo, false);
        superblock::write(&self.handle, &superblock).await?;
        self.durable.flush().await?;
        let before = self.durable.replace_superblock(superblock);
        self.durable.log().set_redo(redo);
        self.trim_freed(before.redo).await;
        self.counters.count(|counts| counts.checkpoints += 1);
        self.log_room.notify();
        Ok(())
    }

    /// Returns the furthest LSN that the redo point may move to: the first change that may not be durable in
    /// a page.
    fn redo_point(&self) -> Lsn {
        let (durable, _) = self.durable.log().durable_end();
        if planted!(self.options, CheckpointTooNew) {
            return durable;
        }
        let unwritten = self.durable.pages().changed(|changed| changed.least());
        [self.first_in_no_page(), unwritten].into_iter().flatten().fold(durable, Lsn::min)
    }

    /// Returns the LSN at which the first commit begins that is not yet in the pages, because it is not
    /// applied or because one of its records is pending, or the first record that decides for other shards. `None` if
    /// there is no such record.
    pub(crate) fn first_in_no_page(&self) -> Option<Lsn> {
        let decided = self.transactions.decisions_mut().least_decided();
        let decided = decided.filter(|_| !planted!(self.options, DecisionForgotten));
        self.first_own_in_no_page().into_iter().chain(decided).min()
    }

    /// Returns the same without decisions for other shards.
    pub(crate) fn first_own_in_no_page(&self) -> Option<Lsn> {
        let pending =
            if planted!(self.options, PendingForgotten) { None } else { self.state.records().least() };
        [self.durable.unredone(), self.first_unapplied(), pending].into_iter().flatten().min()
    }

    /// Returns the LSN at which the first commit begins that is not applied, or the first prepared transaction. `None`
    /// if there is neither.
    pub(crate) fn first_unapplied(&self) -> Option<Lsn> {
        let unapplied = self.transactions.commits().first_unapplied();
        let unapplied = unapplied.filter(|_| !planted!(self.options, UnappliedForgotten));
        let prepared = self.transactions.decisions().least_prepared();
        let prepared = prepared.filter(|_| !planted!(self.options, PreparedForgotten));
        [unapplied, prepared].into_iter().flatten().min()
    }

    /// Returns the next superblock, with these values for its redo point and its clean mark.
    pub(crate) fn next_superblock(&self, redo: Lsn, clean: bool) -> Superblock {
        let (log_end, log_crc) = self.durable.log().durable_end();
        let last = self.durable.superblock().clone();
        let (format, generation) = (FORMAT, last.generation + 1);
        let (next_large, out_of_place) = (self.durable.next_large(), self.durable.pages().backend().shape());
        Superblock { format, generation, redo, log_end, log_crc, clean, next_large, out_of_place, ..last }
    }

    /// Writes all dirty pages and pending records to the drive and marks the store as cleanly closed.
    pub(crate) async fn close(self: &Rc<Self>) -> Result<(), Error> {
        let _closing = self.jobs.closing_turn().await;
        self.health.check()?;
        // A second call does nothing, unless the first one failed.
        if self.jobs.is_closed() {
            return Ok(());
        }
        loop {
            let last = self.transactions.commits().last();
            self.durable.log().sync(last).await?;
            self.advance();
            self.until_visible(last).await?;
            if !self.transactions.decisions().is_any_prepared() {
                break;
            }
            self.until_decided().await?;
        }
        self.transactions.close();
        // The pages of dropped tables are freed at the next opening. The part in progress ends first.
        drop(self.jobs.drops_turn().await);
        self.durable.log().sync(self.durable.log().tail()).await?;
        self.durable.pool().flush().await.map_err(self.of_pool())?;
        // One pass is not enough: when a leaf splits during the flush, some of its records move to another
        // leaf, and only the next checkpoint merges them. Records that no leaf has space for stay pending.
        let mut before = u64::MAX;
        loop {
            self.checkpoint(Lsn(u64::MAX)).await?;
            // Each merge needs another checkpoint, and leaves fewer nodes.
            if self.shrink_remembered().await? {
                continue;
            }
            let pending = self.state.records().pending();
            if pending == 0 || pending >= before {
                break;
            }
            before = pending;
        }
        // The checkpoint of another task ends first: its page writes may have to wait for garbage collection.
        let _turn = self.jobs.checkpoint_turn().await;
        if let Some(place) = self.durable.pages().backend().out_of_place() {
            place.close().await;
        }
        let redo = self.redo_point();
        let superblock = self.next_superblock(redo, redo == self.durable.log().durable_end().0);
        superblock::write(&self.handle, &superblock).await?;
        self.durable.flush().await?;
        self.durable.replace_superblock(superblock);
        self.jobs.set_closed();
        Ok(())
    }
}
