//! Implements the pool's page store: adds checksums to pages and verifies them, enforces write-ahead logging,
//! and tracks dirty pages.

use super::backend::Backend;
use super::dirty::{DirtyPages, Writing};
use super::in_flight::InFlight;
use super::out_of_place::Begun;
use super::sealed::Sealed;
use crate::bytes;
use crate::format::layout::Superblock;
use crate::format::page;
use crate::format::page::Salt;
use crate::media::barrier::Barrier;
use crate::media::log::Log;
use crate::media::scratch::Scratch;
use crate::options::BATCH;
use crate::wait::{Health, Signal};
use crate::{Error, Lsn, Options, TornPages};
use fulgurite_base::PageId;
use fulgurite_device::{Arena, Buffer, IoError};
use fulgurite_pool::{PageBytes, PageIo, PageStore, RunIo};
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// The number of recent page writes whose checksums are kept, to detect a drive that returns older contents
/// of a page.
const REMEMBERED: usize = 1 << 14;
/// An entry of the table of recent writes without a page.
const NONE_REMEMBERED: (PageId, u32) = (PageId(u64::MAX), 0);

/// The denominator of the share of the memory that is kept for pages on their way.
const SCRATCH_PART: u64 = 64;

struct State {
    log: RefCell<Option<Log>>,
    barrier: Rc<Barrier>,
    health: Health,
    page_bytes: usize,
    backend: Backend,
    salt: Salt,
    changed: RefCell<DirtyPages>,
    /// A hash table with one entry for each slot: the last written page whose number modulo the table's
    /// length is the slot, and the checksum of that write.
    remembered: RefCell<Vec<(PageId, u32)>>,
    /// The pages that are being written.
    under_way: RefCell<FxHashSet<PageId>>,
    /// The writes of deltas.
    deltas: InFlight,
    written: Cell<u64>,
    /// The number of writes that have ended, successful or not. Each of them notifies `has_ended`.
    ended: Cell<u64>,
    has_ended: Signal,
    /// The highest LSN of the pages that were read.
    newest_read: Cell<Lsn>,
    /// The memory of pages that are read or written together.
    scratch: Scratch,
    options: Options,
}

/// The pages of a store. All clones share one state.
pub(crate) struct Pages(Rc<State>);

impl Clone for Pages {
    fn clone(&self) -> Pages {
        Pages(Rc::clone(&self.0))
    }
}

impl Pages {
    /// Creates the page store of a store. `has_ended` is notified whenever a write of pages has ended.
    pub(crate) fn new(
        backend: Backend,
        ((health, barrier), has_ended): ((Health, Rc<Barrier>), Signal),
        superblock: &Superblock,
        options: &Options,
    ) -> Pages {
        Pages(Rc::new(State {
            deltas: InFlight::new(&health),
            log: RefCell::new(None),
            barrier,
            health,
            page_bytes: superblock.page_bytes as usize,
            backend,
            salt: superblock.salt(),
            changed: RefCell::default(),
            remembered: RefCell::new(vec![NONE_REMEMBERED; REMEMBERED]),
            under_way: RefCell::default(),
            written: Cell::new(0),
            ended: Cell::new(0),
            has_ended,
            newest_read: Cell::new(Lsn(0)),
            scratch: Scratch::new((options.memory_bytes / SCRATCH_PART) as usize),
            options: options.clone(),
        }))
    }

    /// Returns the backend, which reads and writes pages in place or out of place.
    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    /// Sets the log that must be durable before pages are written.
    pub(crate) fn set_log(&self, log: Log) {
        *self.0.log.borrow_mut() = Some(log);
    }

    pub(crate) fn torn_pages(&self) -> TornPages {
        self.0.backend.torn_pages()
    }

    /// Sets whether pages are written in place as fast as possible (`hurry`), or with few concurrent writes,
    /// which delay reads less.
    pub(crate) fn set_hurry(&self, hurry: bool) {
        self.0.backend.set_writes_at_once(if hurry { BATCH } else { self.0.options.writes_at_once() });
    }

    pub(crate) fn page_bytes(&self) -> u32 {
        self.0.page_bytes as u32
    }

    /// Returns the number of pages written, including copies in the double-write area and pages moved by
    /// garbage collection.
    pub(crate) fn pages_written(&self) -> u64 {
        match &self.0.backend {
            Backend::In(_) => self.times_written() * self.0.written.get(),
            Backend::Out(backend) => backend.pages_written(),
        }
    }

    /// Returns how often each page is written.
    pub(crate) fn times_written(&self) -> u64 {
        match &self.0.backend {
            Backend::In(backend) => backend.times(),
            Backend::Out(_) => 1,
        }
    }

    /// Marks a page as dirty because of a change that a record at `since` made.
    pub(crate) fn mark(&self, page: PageId, since: Lsn) {
        self.0.changed.borrow_mut().mark(page, since);
    }

    /// Calls `look` with the dirty pages.
    pub(crate) fn changed<T>(&self, look: impl FnOnce(&mut DirtyPages) -> T) -> T {
        look(&mut self.0.changed.borrow_mut())
    }

    /// Flushes the drive, so that completed writes no longer hold back the redo point.
    pub(crate) async fn flush(&self) -> Result<(), Error> {
        let ended = self.0.changed.borrow().ended();
        if !planted!(self.0.options, CheckpointWithoutFlush) {
            self.0.backend.make_durable(&self.0.barrier).await?;
        }
        let unsure = if self.0.options.verify_writes { self.verify(&ended).await? } else { Vec::new() };
        self.0.changed.borrow_mut().flushed(&ended, &unsure);
        Ok(())
    }

    /// Reads back the pages of these writes. Returns the pages whose contents differ because they were
    /// written again. For such a page it is unknown whether the drive lost the earlier write, so the page
    /// stays dirty until a later write of it is verified.
    async fn verify(&self, writes: &[u64]) -> Result<Vec<PageId>, Error> {
        let pages = self.0.changed.borrow().last_written(writes);
        let buffer = Arena::new(self.0.page_bytes).buffer(0, self.0.page_bytes);
        let mut unsure = Vec::new();
        for (page, sum) in pages {
            self.0.backend.read(page, &buffer).await.map_err(Error::Io)?;
            let is_there = bytes::look(&buffer, |bytes| {
                page::is_whole(bytes, page, self.0.salt) && page::get_u32(bytes, 0) == sum
            });
            if is_there {
                continue;
            }
            if !self.may_differ(page, writes) {
                return Err(self.0.health.stop(format!("the drive has lost a write of page {}", page.0)));
            }
            unsure.push(page);
        }
        Ok(unsure)
    }

    /// Whether the contents of a page may differ from those of these writes although the drive lost no write.
    fn may_differ(&self, page: PageId, writes: &[u64]) -> bool {
        let changed = self.0.changed.borrow();
        let is_under_way = self.0.under_way.borrow().contains(&page);
        is_under_way || changed.is_written_again(page, writes) || changed.has_failed(page)
    }

    /// Waits until the log of the pages' changes is durable (write-ahead logging).
    async fn log_first(&self, pages: &[PageBytes]) -> Result<(), Error> {
        self.0.health.check()?;
        let lsn =
            |page: &PageBytes| page.bytes.as_ref().map_or(Lsn(0), |bytes| bytes::look(bytes, page::lsn));
        let needed = pages.iter().map(lsn).max().unwrap_or_default();
        let log = self.0.log.borrow().clone();
        match log {
            Some(log) if !planted!(self.0.options, DataBeforeLog) => log.sync(needed).await,
            _ => Ok(()),
        }
    }

    /// Copies pages and adds checksums to the copies. Tasks may read the pages of the pool meanwhile, so
    /// these must not change.
    fn sealed(&self, pages: &[PageBytes]) -> Sealed {
        let size = self.0.page_bytes;
        let sealed = Sealed {
            numbers: pages.iter().map(|page| page.page).collect(),
            bytes: self.0.scratch.buffer(pages.len() * size),
        };
        for (page, (_, copy)) in std::iter::zip(pages, sealed.iter()) {
            let Some(from) = &page.bytes else {
                bytes::change(&copy, |bytes| bytes.fill(0));
                continue;
            };
            bytes::look(from, |bytes| bytes::fill(&copy, bytes));
            bytes::change(&copy, |bytes| page::seal(bytes, self.0.salt));
        }
        sealed
    }

    /// Writes a batch of pages. Returns the checksums of the pages.
    async fn write_batch(&self, pages: &[PageBytes]) -> Result<Vec<(PageId, u32)>, Error> {
        self.log_first(pages).await?;
        let sealed = self.sealed(pages);
        let mut sums = Vec::with_capacity(pages.len());
        for (page, copy) in sealed.iter() {
            let sum = bytes::look(&copy, |bytes| page::get_u32(bytes, 0));
            sums.push((page, sum));
            self.0.remembered.borrow_mut()[page.0 as usize % REMEMBERED] = (page, sum);
        }
        self.0.written.set(self.0.written.get() + pages.len() as u64);
        self.0.backend.write(&sealed).await.map(|()| sums)
    }

    /// Records the outcome of a write in the table of dirty pages, and notifies waiting tasks.
    fn ended(&self, writing: Writing, outcome: &Result<(), Error>, sums: Vec<(PageId, u32)>) {
        let mut changed = self.0.changed.borrow_mut();
        match outcome {
            Err(_) => changed.failed(writing),
            Ok(()) => changed.written(&writing, sums),
        }
        drop(changed);
        self.0.ended.set(self.0.ended.get() + 1);
        self.0.has_ended.notify();
    }

    /// Writes deltas, each with the LSN from which the log has its records. Readers of the pages get the deltas
    /// already, and the returned future must run to its end.
    pub(crate) fn write_deltas(
        &self,
        deltas: Vec<(Begun, Lsn)>,
    ) -> impl Future<Output = Result<(), Error>> + 'static {
        let (begun, sinces): (Vec<Begun>, Vec<Lsn>) = deltas.into_iter().unzip();
        let held = |since| if planted!(self.0.options, DeltaForgotten) { Lsn(u64::MAX) } else { since };
        let sinces: Vec<_> =
            std::iter::zip(&begun, sinces).map(|(delta, since)| (delta.page, held(since))).collect();
        let writing = self.0.changed.borrow_mut().begin_deltas(&sinces);
        // A read of these pages has another checksum now. Each delta has the checksum of its base.
        for (page, _) in sinces {
            let entry = &mut self.0.remembered.borrow_mut()[page.0 as usize % REMEMBERED];
            if entry.0 == page {
                *entry = NONE_REMEMBERED;
            }
        }
        let (this, number) = (self.clone(), self.0.deltas.begin());
        async move {
            // The records have left memory, so without their deltas nobody knows them any more.
            let stop = |error| this.0.health.stop(format!("a delta could not be written: {error}"));
            this.write_begun(&begun).await.map_err(stop)?;
            this.ended(writing, &Ok(()), Vec::new());
            this.0.deltas.end(number);
            Ok(())
        }
    }

    async fn write_begun(&self, begun: &[Begun]) -> Result<(), Error> {
        let lsn = begun.iter().map(|delta| delta.lsn).max().unwrap_or_default();
        let log = self.0.log.borrow().clone();
        if let Some(log) = log {
            log.sync(lsn).await?;
        }
        match self.0.backend.out_of_place() {
            Some(place) => place.write_deltas(begun).await,
            None => Ok(()),
        }
    }

    /// Waits until the writes of deltas that began before this call have ended, or the store has stopped.
    pub(crate) async fn deltas_settled(&self) {
        self.0.deltas.settled().await;
    }

    /// Returns the number of writes that have ended, successful or not.
    pub(crate) fn writes_ended(&self) -> u64 {
        self.0.ended.get()
    }

    /// Returns the highest LSN of the pages that were read. The log was durable up to this LSN before the
    /// page was written.
    pub(crate) fn newest_read(&self) -> Lsn {
        self.0.newest_read.get()
    }

    /// Whether a page that was read is intact, not older than its last write, and not newer than the durable
    /// log.
    fn is_right(&self, page: PageId, bytes: &[u8]) -> bool {
        if planted!(self.0.options, ChecksumIgnored) {
            return true;
        }
        let (known, sum) = self.0.remembered.borrow()[page.0 as usize % REMEMBERED];
        if !page::is_whole(bytes, page, self.0.salt) || (known == page && sum != page::get_u32(bytes, 0)) {
            return false;
        }
        let lsn = page::lsn(bytes);
        self.0.newest_read.set(self.0.newest_read.get().max(lsn));
        // Because of write-ahead logging, no page on the drive is newer than the log. While recovery does not
        // know the end of the log, `log` is `None`, and recovery makes this comparison later.
        // The log of a delta that is on its way may not be durable yet.
        let under_way = self.0.backend.out_of_place().and_then(|place| place.delta_under_way(page));
        let is_in_log =
            self.0.log.borrow().as_ref().is_none_or(|log| lsn <= log.durable() || under_way == Some(lsn));
        is_in_log && page::fault(bytes).is_none()
    }
}

impl PageStore for Pages {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        let this = self.clone();
        let read = into.as_ref().map(|buffer| self.0.backend.read(page, buffer));
        Box::pin(async move {
            let (Some(buffer), Some(read)) = (into, read) else { return Err(IoError::Corrupt) };
            read.await?;
            let mut right = bytes::look(&buffer, |bytes| this.is_right(page, bytes));
            if !right {
                // Read again, because a transfer error, unlike damage of the medium, rarely happens twice.
                this.0.backend.read(page, &buffer).await?;
                right = bytes::look(&buffer, |bytes| this.is_right(page, bytes));
            }
            right.then_some(()).ok_or(IoError::Corrupt)
        })
    }

    fn read_run(&self, first: PageId, into: Vec<Option<Buffer>>) -> RunIo {
        let this = self.clone();
        let size = self.0.page_bytes;
        let run = self.0.scratch.buffer(into.len() * size);
        let reads = self.0.backend.read_run(first, into.len(), &run);
        Box::pin(async move {
            let are_read = reads.await;
            let mut outcomes = Vec::with_capacity(into.len());
            for (index, (into, is_read)) in std::iter::zip(into, are_read).enumerate() {
                let page = PageId(first.0 + index as u64);
                let is_right = is_read
                    && into.as_ref().is_some_and(|into| {
                        bytes::look(&run.part(index * size, size), |bytes| {
                            let is_right = this.is_right(page, bytes);
                            if is_right {
                                bytes::fill(into, bytes);
                            }
                            is_right
                        })
                    });
                // A page that is damaged, or could not be read with the others, is read again by itself.
                outcomes.push(if is_right { Ok(()) } else { this.read(page, into).await });
            }
            outcomes
        })
    }

    fn write(&self, mut pages: Vec<PageBytes>) -> PageIo {
        // Sort the pages, because consecutive pages are written with one command.
        pages.sort_unstable_by_key(|page| page.page);
        // The pool does not change the pages until the write has ended, so later changes are not in this
        // write.
        let writing = self.0.changed.borrow_mut().begin(pages.iter().map(|page| page.page));
        self.0.under_way.borrow_mut().extend(pages.iter().map(|page| page.page));
        let this = self.clone();
        Box::pin(async move {
            let mut outcome = Ok(());
            let mut sums = Vec::new();
            for batch in pages.chunks(BATCH) {
                match this.write_batch(batch).await {
                    Ok(mut written) => sums.append(&mut written),
                    Err(error) => {
                        outcome = Err(error);
                        break;
                    }
                }
            }
            for page in &pages {
                this.0.under_way.borrow_mut().remove(&page.page);
            }
            if planted!(this.0.options, FailedWriteForgotten) {
                outcome = Ok(());
            }
            this.ended(writing, &outcome, sums);
            outcome.map_err(|error| match error {
                Error::Io(error) => error,
                _ => IoError::Media,
            })
        })
    }
}
