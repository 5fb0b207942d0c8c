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
//! 3. The *end* of the image is chosen, the LSN of the log's tail at that moment. The log is flushed, and copied
//!    from the redo point to the end. It contains every change that a copied page may contain since the redo
//!    point. The last block is cut at the end, so that the image has no later record.
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
//! **Several shards.** The passes of the shards are made one after the other. Then the ends of all images are chosen
//! at one moment (`blocking::backup`), so the images are what a power cut at this moment would leave. A transaction of
//! several shards is in all of them or in none: if it is prepared in some of them, the opening asks the image of its
//! coordinator.
//!
//! **Addresses.** The image has its pages in place, even if the store writes out of place.
//!
//! **Identity.** The image has the identity of the store, because the checksums of its pages include it. So a
//! store and its backup cannot be told apart. They must not be opened on the same drive in turn without
//! copying the whole image each time.

use crate::format::layout::{FORMAT, Superblock, block_bytes};
use crate::format::log_block::{Block, HEADER};
use crate::format::page::{self, Salt, map};
use crate::media::image::{Sink, Source};
use crate::media::superblock;
use crate::memory::backup_watch::BackupWatch;
use crate::shard::Shard;
use crate::store::Store;
use crate::wait::together;
use crate::{Error, Lsn, StoreFuture};
use fulgurite_base::PageId;
use fulgurite_device::Handle;
use std::cell::Cell;
use std::rc::Rc;

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

/// A backup of a store. Until it has succeeded, its sink contains no store. Dropping it ends it.
pub(crate) struct Backup {
    shard: Rc<Shard>,
    /// Whether the backup has begun. It is the only one of its store from then on.
    has_begun: Cell<bool>,
    report: Cell<BackupReport>,
    /// The redo point of the last pass; `None` before the first one.
    redo: Cell<Option<Lsn>>,
    /// The end of the image, and the CRC of the last block before it.
    end: Cell<(Lsn, u32)>,
}

impl Drop for Backup {
    fn drop(&mut self) {
        if self.has_begun.get() {
            self.shard.state.end_backup();
            self.shard.jobs.end_backup_turn();
        }
    }
}

impl Backup {
    pub(crate) fn new(store: &Store) -> Backup {
        Backup {
            shard: Rc::clone(&store.0),
            has_begun: Cell::default(),
            report: Cell::default(),
            redo: Cell::default(),
            end: Cell::default(),
        }
    }

    /// Waits until no other backup runs, and erases the sink.
    pub(crate) async fn begin(&self, sink: &dyn Sink) -> Result<(), Error> {
        let shard = &self.shard;
        shard.check_open()?;
        // The turn ends when the backup is dropped.
        std::mem::forget(shard.jobs.backup_turn().await);
        self.has_begun.set(true);
        let superblock = shard.durable.superblock().clone();
        superblock::erase(sink, superblock.block_bytes).await?;
        // Overwrites the log and the double-write area, so that nothing of an older store in `sink` remains
        // there.
        let page_bytes = u64::from(superblock.page_bytes);
        let (from, to) = (superblock.log_start().0 * page_bytes, superblock.data_start().0 * page_bytes);
        sink.clear(from, to - from).await?;
        sink.sync().await?;
        shard.state.begin_backup();
        Ok(())
    }

    /// Copies the pages that the log from the redo point on does not restore. Makes a pass if there is none
    /// yet, or if the last one is overtaken.
    pub(crate) async fn copy_pages(&self, sink: &dyn Sink) -> Result<(), Error> {
        let (shard, mut report) = (&self.shard, self.report.get());
        if self.redo.get().is_none_or(|redo| shard.overtaken(redo)) {
            if report.passes == MOST_PASSES {
                return Err(Error::BackupOvertaken { passes: report.passes });
            }
            let (redo, touched) = shard.begin_pass().await?;
            if report.passes == 0 {
                shard.copy_all(sink, &mut report).await?;
            } else {
                shard.copy_pages(sink, &touched, &mut report).await?;
            }
            report.passes += 1;
            self.redo.set(Some(redo));
        }
        // The log makes these pages part of trees without containing their contents.
        let unlogged = shard.watched(|watch| std::mem::take(&mut watch.unlogged))?;
        shard.copy_pages(sink, &unlogged.into_iter().collect::<Vec<PageId>>(), &mut report).await?;
        self.report.set(report);
        Ok(())
    }

    /// Ends the image at the tail of the log. Returns false if pages have to be copied before.
    pub(crate) fn choose_end(&self) -> Result<bool, Error> {
        self.end.set(self.shard.durable.log().end());
        self.shard.watched(|watch| watch.unlogged.is_empty())
    }

    /// Makes the log durable up to the end of the image, and copies it. Returns false if it was overwritten meanwhile:
    /// then the backup goes on with [`Backup::copy_pages`].
    pub(crate) async fn copy_log(&self, sink: &dyn Sink) -> Result<bool, Error> {
        let (shard, (end, crc), redo) = (&self.shard, self.end.get(), self.redo.get().unwrap_or_default());
        shard.durable.log().sync(end).await?;
        if shard.overtaken(redo) {
            return Ok(false);
        }
        let mut report = self.report.get();
        let copied = shard.copy_log(sink, (redo, end)).await?;
        report.log_bytes += copied.bytes;
        report.lsn = end;
        self.report.set(report);
        self.end.set((end, copied.crc.unwrap_or(crc)));
        Ok(!shard.overtaken(redo))
    }

    /// Makes the image a store.
    pub(crate) async fn finish(&self, sink: &dyn Sink) -> Result<BackupReport, Error> {
        sink.sync().await?;
        let last = self.shard.next_superblock(self.redo.get().unwrap_or_default(), false);
        let ((end, log_crc), block) = (self.end.get(), u64::from(last.block_bytes));
        let log_end = Lsn(end.0.next_multiple_of(block));
        // The image has its pages in place.
        let image = Superblock { format: FORMAT, out_of_place: None, log_end, log_crc, ..last };
        superblock::write(sink, &image).await?;
        sink.sync().await?;
        Ok(self.report.get())
    }
}

/// The counts of a copy of the log.
struct CopiedLog {
    bytes: u64,
    /// The CRC of the last block in the image; `None` if there was no block to copy.
    crc: Option<u32>,
}

/// Removes the records behind `end` from a block of the log. Returns its CRC, or `None` if it is damaged.
fn cut(block: &mut [u8], end: Lsn, salt: Salt) -> Option<u32> {
    let (mut header, _) = Block::read(block, false, salt)?;
    let used = (end.0.checked_sub(header.at.0)?).checked_sub(HEADER as u64)?;
    header.used = header.used.min(u16::try_from(used).unwrap_or(u16::MAX));
    block[HEADER + usize::from(header.used)..].fill(0);
    Some(header.seal(block, salt))
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

    /// Copies the blocks of the log from `redo` to `end`. The ring contains these blocks while the pass is
    /// not overtaken.
    async fn copy_log(&self, sink: &dyn Sink, (redo, end): (Lsn, Lsn)) -> Result<CopiedLog, Error> {
        let superblock = self.durable.superblock().clone();
        let start = superblock.log_start().0 * u64::from(superblock.page_bytes);
        let block = u64::from(superblock.block_bytes);
        let ring = self.durable.log().capacity();
        let first = redo.0 / block * block;
        let (mut at, to) = (first, end.0.next_multiple_of(block));
        let mut crc = None;
        while at < to {
            let place = at % ring;
            let len = PIECE.min(to - at).min(ring - place);
            let mut piece = vec![0; len as usize];
            self.handle.read(start + place, &mut piece).await?;
            at += len;
            if at == to {
                let last = piece.len() - block as usize;
                let what = || Error::LogCorrupt { at: end, what: "a block is damaged".to_owned() };
                crc = Some(cut(&mut piece[last..], end, superblock.salt()).ok_or_else(what)?);
            }
            sink.write(start + place, &piece).await?;
        }
        Ok(CopiedLog { bytes: to - first, crc })
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
            let backup = Backup::new(self);
            backup.begin(sink).await?;
            loop {
                backup.copy_pages(sink).await?;
                if backup.choose_end()? && backup.copy_log(sink).await? {
                    return backup.finish(sink).await;
                }
            }
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
