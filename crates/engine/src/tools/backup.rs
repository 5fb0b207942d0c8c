//! Makes backups of a store in use, and restores them.
//!
//! A backup is an image that [`Store::open`] opens like a store after a crash. It is made in passes:
//!
//! 1. Pending records are merged. The *redo point* of the pass is the LSN at which the first commit begins
//!    that is not applied yet, or the first record that is still pending. If there are none, it is the end of
//!    the log.
//! 2. Pages are copied one by one while commits go on, each without a change in between. The first pass
//!    copies every page in use. Later passes copy the pages that were changed since they were copied. So each
//!    page in the image contains all changes from before the redo point.
//! 3. The log is flushed, and copied from the redo point to its end. It contains every change that a copied
//!    page may contain since the redo point.
//!
//! Changes during a pass are in the copied part of the log, and opening the image redoes them. The one
//! exception is a bulk load, which does not log its records: its pages are copied before the log is.
//!
//! **The log during a backup.** The log is a ring that holds the most recent log bytes, as many as its size.
//! If the log of a pass grows to more than half of this size, the pass is *overtaken*. The next pass has a
//! new redo point, and copies the pages that were changed since they were copied. So no commit ever waits for
//! a backup, and the copied part of the log is not overwritten before it is copied. Each pass is usually much
//! shorter than the one before. A backup that is overtaken in [`MOST_PASSES`] passes fails with
//! [`Error::BackupOvertaken`].
//!
//! **Addresses.** The image has its pages in place, even if the store writes out of place.
//!
//! **Identity.** The image has the identity of the store, because the checksums of its pages include it. So a
//! store and its backup cannot be told apart. They must not be opened on the same drive in turn without
//! copying the whole image each time.

use crate::format::layout::{FORMAT, Superblock, block_bytes};
use crate::format::page::{self, map};
use crate::media::image::{Sink, Source};
use crate::media::superblock;
use crate::memory::backup_watch::BackupWatch;
use crate::shard::Shard;
use crate::store::Store;
use crate::wait::together;
use crate::{Error, Lsn, StoreFuture};
use fulgurite_base::PageId;
use fulgurite_device::Handle;

/// The number of passes after which a backup fails.
pub(crate) const MOST_PASSES: u32 = 16;
/// The number of pages that are copied at once.
const COPIED_TOGETHER: usize = 32;
/// The number of bytes that are copied at once, of the log or of a restored image.
const PIECE: u64 = 256 << 10;

/// The counts of a backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupReport {
    /// The number of pages copied; a page that is copied twice counts twice.
    pub pages: u64,
    /// The number of log bytes copied.
    pub log_bytes: u64,
    /// The number of passes.
    pub passes: u32,
    /// The LSN of the image: it contains every commit up to this LSN, and none behind it.
    pub lsn: Lsn,
}

/// A guard that ends the recording of changed pages, also if the caller drops the backup before its end.
struct Watching<'a>(&'a Shard);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.state.end_backup();
    }
}

impl Shard {
    /// Changes the bookkeeping of the backup in progress.
    fn watched<T>(&self, change: impl FnOnce(&mut BackupWatch) -> T) -> Result<T, Error> {
        self.check_open()?;
        self.state.with_backup(change).ok_or(Error::Closed)
    }

    /// Begins a pass. Returns its redo point and the pages that were changed since they were copied.
    async fn begin_pass(&self) -> Result<(Lsn, Vec<PageId>), Error> {
        // Merges the pending records, because a copy of a page does not contain them.
        self.merge_all().await;
        let redo = self.first_in_no_page().unwrap_or_else(|| self.durable.log().tail());
        self.watched(|watch| (redo, std::mem::take(&mut watch.touched).into_iter().collect()))
    }

    /// Whether the log from `redo` on has grown to more than an image may contain. The ring still holds all
    /// of it at twice this size.
    fn overtaken(&self, redo: Lsn) -> bool {
        self.durable.log().tail().0 - redo.0 > self.durable.log().capacity() / 2
    }

    /// Returns a copy of the current contents of a page, and adds the checksum.
    async fn sealed(&self, page: PageId) -> Result<Vec<u8>, Error> {
        let guard = self.read_page(page).await?;
        let mut bytes = guard.bytes().to_vec();
        // The page is removed from the changed pages without a wait after the copy, so a later change is
        // recorded again.
        self.watched(|watch| watch.touched.remove(&page))?;
        page::seal(&mut bytes, self.durable.superblock().salt());
        Ok(bytes)
    }

    /// Copies pages, whose numbers are in ascending order.
    async fn copy_pages(
        &self,
        sink: &dyn Sink,
        pages: &[PageId],
        report: &mut BackupReport,
    ) -> Result<(), Error> {
        let page_bytes = u64::from(self.page_bytes());
        for part in pages.chunks(COPIED_TOGETHER) {
            let copies = together(part.iter().map(|page| self.sealed(*page)).collect()).await;
            let mut run: Vec<u8> = Vec::new();
            let mut first = part[0].0;
            for (page, copy) in std::iter::zip(part, copies) {
                let behind = first + run.len() as u64 / page_bytes;
                if behind != page.0 {
                    sink.write(first * page_bytes, &run).await?;
                    run.clear();
                    first = page.0;
                }
                run.extend_from_slice(&copy?);
            }
            sink.write(first * page_bytes, &run).await?;
            report.pages += part.len() as u64;
        }
        Ok(())
    }

    /// Copies every page that is in use.
    async fn copy_all(&self, sink: &dyn Sink, report: &mut BackupReport) -> Result<(), Error> {
        for (map, pages) in self.state.space().maps() {
            let used: Vec<PageId> = {
                let guard = self.read_page(map).await?;
                let used = (0..pages).filter(|index| map::is_used(guard.bytes(), *index));
                used.map(|index| PageId(map.0 + u64::from(index))).collect()
            };
            self.copy_pages(sink, &used, report).await?;
        }
        Ok(())
    }

    /// Flushes the log and returns its end. Before that it copies the pages that the log makes part of trees
    /// without containing their contents.
    async fn end_of_log(&self, sink: &dyn Sink, report: &mut BackupReport) -> Result<(Lsn, u32), Error> {
        loop {
            self.durable.log().sync(self.durable.log().tail()).await?;
            let end = self.durable.log().durable_end();
            let unlogged = self.watched(|watch| std::mem::take(&mut watch.unlogged))?;
            if unlogged.is_empty() {
                return Ok(end);
            }
            let pages: Vec<PageId> = unlogged.into_iter().collect();
            self.copy_pages(sink, &pages, report).await?;
        }
    }

    /// Copies the blocks of the log from `redo` to `end`. The ring contains these blocks while the pass is
    /// not overtaken.
    async fn copy_log(&self, sink: &dyn Sink, (redo, end): (Lsn, Lsn)) -> Result<u64, Error> {
        let superblock = self.durable.superblock().clone();
        let start = superblock.log_start().0 * u64::from(superblock.page_bytes);
        let block = u64::from(superblock.block_bytes);
        let ring = self.durable.log().capacity();
        let first = redo.0 / block * block;
        let mut at = first;
        while at < end.0 {
            let place = at % ring;
            let len = PIECE.min(end.0 - at).min(ring - place);
            let mut piece = vec![0; len as usize];
            self.handle.read(start + place, &mut piece).await?;
            sink.write(start + place, &piece).await?;
            at += len;
        }
        Ok(end.0 - first)
    }

    /// Makes one pass. Returns `None` if the pass was overtaken.
    async fn pass(&self, sink: &dyn Sink, report: &mut BackupReport) -> Result<Option<Superblock>, Error> {
        let (redo, touched) = self.begin_pass().await?;
        if report.passes == 0 {
            self.copy_all(sink, report).await?;
        } else {
            self.copy_pages(sink, &touched, report).await?;
        }
        report.passes += 1;
        let (end, crc) = self.end_of_log(sink, report).await?;
        if self.overtaken(redo) {
            return Ok(None);
        }
        report.log_bytes += self.copy_log(sink, (redo, end)).await?;
        if self.overtaken(redo) {
            return Ok(None);
        }
        report.lsn = end;
        let last = self.next_superblock(redo, false);
        Ok(Some(Superblock { log_end: end, log_crc: crc, ..last }))
    }
}

impl Store {
    /// Makes an image of the store while it is in use. The image contains every commit that was acknowledged
    /// before this call, including `relaxed` ones. It contains whole transactions, and they are a prefix of
    /// the commit order. It opens like a store after a crash, and has the identity of the store.
    ///
    /// No commit waits for the backup. The former contents of `sink` are lost, and until the backup succeeds
    /// `sink` contains no store. One backup runs at a time; others wait. Fails with [`Error::Corrupt`] if a
    /// page in use cannot be read, and with [`Error::BackupOvertaken`] if commits write the log faster than
    /// pages are copied. The backup reads pages through the buffer pool.
    pub fn backup<'a>(&'a self, sink: &'a dyn Sink) -> StoreFuture<'a, BackupReport> {
        Box::pin(async move {
            let shard = &*self.0;
            shard.check_open()?;
            let _turn = shard.jobs.backup_turn().await;
            let superblock = shard.durable.superblock().clone();
            superblock::erase(sink, superblock.block_bytes).await?;
            // Overwrites the log and the double-write area, so that nothing of an older store in `sink` remains
            // there.
            let page_bytes = u64::from(superblock.page_bytes);
            let (from, to) = (superblock.log_start().0 * page_bytes, superblock.data_start().0 * page_bytes);
            sink.clear(from, to - from).await?;
            sink.sync().await?;
            shard.state.begin_backup();
            let _watching = Watching(shard);
            let mut report = BackupReport::default();
            while report.passes < MOST_PASSES {
                let Some(superblock) = shard.pass(sink, &mut report).await? else { continue };
                sink.sync().await?;
                // The image has its pages in place.
                superblock::write(sink, &Superblock { format: FORMAT, out_of_place: None, ..superblock })
                    .await?;
                sink.sync().await?;
                return Ok(report);
            }
            Err(Error::BackupOvertaken { passes: report.passes })
        })
    }
}

/// Copies an image onto a drive, so that [`Store::open`] can open it. The former contents of the drive are
/// lost, except behind the end of the image. If the copy is interrupted, the drive contains no store.
pub fn restore(image: &dyn Source, target: impl Into<Handle>) -> StoreFuture<'_, ()> {
    restore_onto(image, target.into())
}

fn restore_onto(image: &dyn Source, target: Handle) -> StoreFuture<'_, ()> {
    Box::pin(async move {
        let caps = target.caps();
        let page = u64::from(caps.page_bytes);
        let (bytes, room) = (image.len(), caps.pages * page);
        if bytes > room {
            return Err(Error::Options(format!("the image has {bytes} bytes and the drive only {room}")));
        }
        superblock::erase(&target, block_bytes(&caps)).await?;
        target.sync().await?;
        // The piece with the superblocks is written last, so that an incomplete copy is not taken for a store.
        let first = PIECE.min(bytes);
        let mut at = first;
        while at < bytes {
            copy_piece(image, &target, at, PIECE.min(bytes - at)).await?;
            at += PIECE;
        }
        target.sync().await?;
        copy_piece(image, &target, 0, first).await?;
        target.sync().await
    })
}

async fn copy_piece(image: &dyn Source, target: &Handle, at: u64, len: u64) -> Result<(), Error> {
    let page = u64::from(target.caps().page_bytes);
    let mut piece = vec![0; len as usize];
    image.read(at, &mut piece).await?;
    // The image may end within a page of the drive.
    piece.resize(len.next_multiple_of(page) as usize, 0);
    target.write(at, &piece).await
}
