//! Trims free pages on the drive, so that a file gives their room back to its file system, and a drive has less to
//! collect.

use super::Shard;
use crate::Lsn;
use crate::wait::to_its_end;
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::Operation;
use std::ops::Range;
use std::rc::Rc;

/// The largest number of freed pages in place that are noted until a checkpoint. A mass deletion frees more; compaction
/// finds the rest.
pub(super) const MOST_FREED: usize = 1 << 16;
/// The fewest freed pages in place that are trimmed together. Shorter runs are soon used again, and each trim is a
/// command, and an entry in the tables of the file system.
const LEAST_RUN: u64 = 64;
/// The most pages of one trim command.
const MOST_RUN: u64 = 1024;

impl Shard {
    /// Gives the drive the pages that were freed before `redo`, which is at or before the redo points of both
    /// superblocks. Given earlier, such a page would look to recovery like a page that the drive has lost, although
    /// recovery does not need it.
    pub(crate) async fn trim_freed(self: &Rc<Self>, redo: Lsn) {
        // A backup still copies pages that were freed since it began.
        if self.state.is_backup_running() {
            return;
        }
        let freed = self.state.space().take_freed(redo);
        if let Some(place) = self.durable.pages().backend().out_of_place() {
            return place.trim(&freed);
        }
        let mut runs: Vec<Range<u64>> = Vec::new();
        for PageId(page) in freed {
            match runs.last_mut().filter(|run| run.end == page && run.end - run.start < MOST_RUN) {
                Some(run) => run.end += 1,
                None => runs.push(page..page + 1),
            }
        }
        runs.retain(|run| run.end - run.start >= LEAST_RUN);
        // All runs are picked before the first trim, because no other task runs until then.
        let space = self.state.space();
        runs.retain(|run| space.pick_run(run.clone()));
        for run in runs {
            self.trim_picked(run).await;
        }
    }

    /// Trims free pages. Returns whether the drive accepted the command; a refusal does no harm. The caller has just
    /// seen that they are free and not allocated.
    pub(crate) async fn trim(self: &Rc<Self>, pages: Range<u64>) -> bool {
        if let Some(place) = self.durable.pages().backend().out_of_place() {
            place.trim(&pages.map(PageId).collect::<Vec<PageId>>());
            return true;
        }
        self.state.space().pick_run(pages.clone()) && self.trim_picked(pages).await
    }

    /// Trims picked pages in place, and puts them back.
    async fn trim_picked(self: &Rc<Self>, pages: Range<u64>) -> bool {
        let shard = Rc::clone(self);
        // Runs to completion even if the caller gives up: a page that is allocated again and written while the trim is
        // in progress could lose its contents.
        to_its_end(&self.handle, async move {
            let device_pages = u64::from(shard.page_bytes() / shard.handle.caps().page_bytes);
            let len = (pages.end - pages.start) * device_pages;
            let trim = Operation::Trim { lpn: Lpn(pages.start * device_pages), pages: len as u32 };
            let is_done = shard.handle.submit(trim).await.is_ok();
            pages.for_each(|page| shard.state.space().put_back(PageId(page)));
            is_done
        })
        .await
    }
}
