//! Pages at their own numbers.

use super::changed::{Changed, Writing};
use super::double_write::Area;
use crate::barrier::Barrier;
use crate::layout::Superblock;
use crate::log::Log;
use crate::page::Salt;
use crate::wait::Health;
use crate::{Error, Lsn, Options, TornPages, memory, page};
use fulgurite_base::{Lpn, Nanos, PageId, StreamId};
use fulgurite_device::{Arena, Buffer, Device, Handle, IoError, Operation};
use fulgurite_pool::{PageBytes, PageIo, PageStore, RunIo};
use rustc_hash::FxHashSet;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Pages that are written together at most; a larger batch is divided.
pub const BATCH: usize = 64;
/// Pages written last whose checksums are remembered, to notice a drive that answers with older ones.
const REMEMBERED: usize = 1 << 14;

struct State<D> {
    handle: Handle<D>,
    log: RefCell<Option<Log<D>>>,
    barrier: Rc<Barrier<D>>,
    health: Health,
    page_bytes: usize,
    device_pages: u32,
    torn_pages: TornPages,
    area: Area<D>,
    salt: Salt,
    changed: RefCell<Changed>,
    /// By page modulo its length: a page and the checksum that was written last.
    remembered: RefCell<Vec<(PageId, u32)>>,
    /// Pages whose writes are under way.
    under_way: RefCell<FxHashSet<PageId>>,
    written: Cell<u64>,
    /// The newest change in a page that was read.
    newest_read: Cell<Lsn>,
    options: Options,
}

/// Writes pages at their own numbers. Clones share it.
pub struct InPlace<D>(Rc<State<D>>);

impl<D> Clone for InPlace<D> {
    fn clone(&self) -> InPlace<D> {
        InPlace(Rc::clone(&self.0))
    }
}

impl<D: Device + 'static> InPlace<D> {
    /// The pages of a store, protected by `torn_pages` (not `Auto`).
    pub fn new(
        handle: Handle<D>,
        barrier: Rc<Barrier<D>>,
        health: Health,
        torn_pages: TornPages,
        superblock: &Superblock,
        options: &Options,
    ) -> InPlace<D> {
        let page_bytes = superblock.page_bytes;
        let device_pages = page_bytes / handle.caps().page_bytes;
        let area = (superblock.double_write_start(), superblock.double_write_pages);
        let area = Area::new(
            handle.clone(),
            (health.clone(), Rc::clone(&barrier)),
            torn_pages,
            device_pages,
            area,
            options,
        );
        InPlace(Rc::new(State {
            handle,
            log: RefCell::new(None),
            barrier,
            health,
            page_bytes: page_bytes as usize,
            device_pages,
            torn_pages,
            area,
            salt: superblock.salt(),
            changed: RefCell::default(),
            remembered: RefCell::new(vec![(PageId(u64::MAX), 0); REMEMBERED]),
            under_way: RefCell::default(),
            written: Cell::new(0),
            newest_read: Cell::new(Lsn(0)),
            options: options.clone(),
        }))
    }

    /// The log that goes before the pages.
    pub fn set_log(&self, log: Log<D>) {
        *self.0.log.borrow_mut() = Some(log);
    }

    /// What protects the pages.
    pub fn torn_pages(&self) -> TornPages {
        self.0.torn_pages
    }

    /// Whether pages go to their places as fast as they can, or leave room for reads that come meanwhile.
    pub fn set_hurry(&self, hurry: bool) {
        self.0.area.set_writes_at_once(if hurry { BATCH } else { self.0.options.writes_at_once() });
    }

    /// Bytes in a page.
    pub fn page_bytes(&self) -> u32 {
        self.0.page_bytes as u32
    }

    /// Pages written, those of the double-write area among them.
    pub fn pages_written(&self) -> u64 {
        self.0.written.get()
    }

    /// A page is changed, as the log says from `since` on.
    pub fn mark(&self, page: PageId, since: Lsn) {
        self.0.changed.borrow_mut().mark(page, since);
    }

    /// Looks at the changed pages.
    pub fn changed<T>(&self, look: impl FnOnce(&mut Changed) -> T) -> T {
        look(&mut self.0.changed.borrow_mut())
    }

    /// Has the drive flush what was written, so that it no longer holds the redo point back.
    pub async fn flush(&self) -> Result<(), Error> {
        let ended = self.0.changed.borrow().ended();
        if !planted!(self.0.options, CheckpointWithoutFlush) {
            self.0.barrier.flush().await?;
        }
        if self.0.options.verify_writes {
            self.verify(&ended).await?;
        }
        self.0.changed.borrow_mut().flushed(&ended);
        Ok(())
    }

    /// Reads back what these writes have left.
    async fn verify(&self, writes: &[u64]) -> Result<(), Error> {
        let pages = self.0.changed.borrow().last_written(writes);
        let buffer = Arena::new(self.0.page_bytes).buffer(0, self.0.page_bytes);
        for (page, sum) in pages {
            let into = Some(buffer.clone());
            let read = Operation::Read { lpn: self.lpn(page), pages: self.0.device_pages, into };
            self.0.handle.submit(read).await.map_err(Error::Io)?;
            let is_there = memory::look(&buffer, |bytes| {
                page::is_whole(bytes, page, self.0.salt) && page::get_u32(bytes, 0) == sum
            });
            let again = self.0.changed.borrow().is_written_again(page, writes) || self.is_being_written(page);
            if !is_there && !again {
                return Err(self.0.health.stop(format!("the drive has lost a write of page {}", page.0)));
            }
        }
        Ok(())
    }

    /// Whether a write of the page is under way.
    fn is_being_written(&self, page: PageId) -> bool {
        self.0.under_way.borrow().contains(&page)
    }

    /// Waits until the log of the pages' changes is durable.
    async fn log_first(&self, pages: &[PageBytes]) -> Result<(), Error> {
        self.0.health.check()?;
        let lsn =
            |page: &PageBytes| page.bytes.as_ref().map_or(Lsn(0), |bytes| memory::look(bytes, page::lsn));
        let needed = pages.iter().map(lsn).max().unwrap_or_default();
        let log = self.0.log.borrow().clone();
        match log {
            Some(log) if !planted!(self.0.options, DataBeforeLog) => log.sync(needed, Nanos::ZERO).await,
            _ => Ok(()),
        }
    }

    /// Copies pages into memory of their own and seals them there, since the pool's may be read meanwhile.
    fn sealed(&self, pages: &[PageBytes]) -> Sealed {
        let size = self.0.page_bytes;
        let sealed = Sealed {
            numbers: pages.iter().map(|page| page.page).collect(),
            bytes: Arena::new(pages.len() * size).buffer(0, pages.len() * size),
        };
        for (page, (_, copy)) in std::iter::zip(pages, sealed.iter()) {
            let Some(from) = &page.bytes else { continue };
            memory::look(from, |bytes| memory::fill(&copy, bytes));
            memory::change(&copy, |bytes| page::seal(bytes, self.0.salt));
        }
        sealed
    }

    /// Writes a batch. Returns the checksums of its pages.
    async fn write_batch(&self, pages: &[PageBytes]) -> Result<Vec<(PageId, u32)>, Error> {
        self.log_first(pages).await?;
        let sealed = self.sealed(pages);
        let mut sums = Vec::with_capacity(pages.len());
        for (page, copy) in sealed.iter() {
            let sum = memory::look(&copy, |bytes| page::get_u32(bytes, 0));
            sums.push((page, sum));
            self.0.remembered.borrow_mut()[page.0 as usize % REMEMBERED] = (page, sum);
        }
        let is_doubled = matches!(self.0.torn_pages, TornPages::DoubleWrite | TornPages::Share);
        let times = if is_doubled { 2 } else { 1 };
        self.0.written.set(self.0.written.get() + times * pages.len() as u64);
        let written = if is_doubled {
            self.0.area.write(&sealed, |page| self.lpn(page)).await
        } else {
            // Each by itself: a drive that does not tear pages may tear what is longer.
            let homes = sealed.iter().map(|(page, copy)| write(self.lpn(page), self.0.device_pages, copy));
            self.0.handle.submit_all(homes).await.map_err(Error::Io)
        };
        written.map(|()| sums)
    }

    fn lpn(&self, page: PageId) -> Lpn {
        Lpn(page.0.saturating_mul(u64::from(self.0.device_pages)))
    }

    /// Notes what has become of a write.
    fn ended(&self, writing: Writing, outcome: &Result<(), Error>, sums: Vec<(PageId, u32)>) {
        let mut changed = self.0.changed.borrow_mut();
        match outcome {
            Err(_) => changed.failed(writing),
            Ok(()) => changed.written(&writing, sums),
        }
    }

    /// The newest change in a page that was read. The log was durable up to there before the page was written.
    pub fn newest_read(&self) -> Lsn {
        self.0.newest_read.get()
    }

    /// Whether a page that was read is whole, not older than what was written last, and not newer than the log.
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
        // The log goes before the pages. Before its end is known, recovery compares.
        let is_in_log = self.0.log.borrow().as_ref().is_none_or(|log| lsn <= log.durable());
        is_in_log && page::fault(bytes).is_none()
    }
}

/// Pages that are ready for the drive, side by side.
pub struct Sealed {
    /// Their numbers.
    pub numbers: Vec<PageId>,
    /// Their bytes, in the same order.
    pub bytes: Buffer,
}

impl Sealed {
    /// Each page with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (PageId, Buffer)> {
        let size = self.page_bytes();
        let part = move |(index, page): (usize, &PageId)| (*page, self.bytes.part(index * size, size));
        self.numbers.iter().enumerate().map(part)
    }

    /// Runs of pages whose numbers follow each other, at most `most` in each: the first page's number, and their bytes.
    pub fn runs(&self, most: usize) -> impl Iterator<Item = (PageId, Buffer)> {
        let (size, mut from) = (self.page_bytes(), 0);
        let ends = move |pages: &[PageId]| {
            let follows = std::iter::zip(pages, &pages[1..]).take_while(|(one, next)| one.0 + 1 == next.0);
            (follows.count() + 1).min(most.max(1))
        };
        std::iter::from_fn(move || {
            let first = *self.numbers.get(from)?;
            let len = ends(&self.numbers[from..]);
            let run = self.bytes.part(from * size, len * size);
            from += len;
            Some((first, run))
        })
    }

    /// Bytes in a page.
    pub fn page_bytes(&self) -> usize {
        self.bytes.len() / self.numbers.len().max(1)
    }
}

/// The writes that bring bytes, whole pages of the drive, to the places from `first` on: as few as the drive allows.
pub fn writes<D: Device + 'static>(
    handle: &Handle<D>,
    first: Lpn,
    bytes: &Buffer,
) -> impl Iterator<Item = Operation> {
    let caps = handle.caps();
    let page = caps.page_bytes as usize;
    let step = caps.pages_per_command as usize * page;
    (0..bytes.len()).step_by(step).map(move |from| {
        let len = step.min(bytes.len() - from);
        write(Lpn(first.0 + (from / page) as u64), (len / page) as u32, bytes.part(from, len))
    })
}

/// A write of pages.
pub fn write(lpn: Lpn, pages: u32, from: Buffer) -> Operation {
    Operation::Write { lpn, pages, from: Some(from), stream: StreamId::default() }
}

impl<D: Device + 'static> PageStore for InPlace<D> {
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo {
        let this = self.clone();
        let (lpn, pages) = (self.lpn(page), self.0.device_pages);
        let io = self.0.handle.submit(Operation::Read { lpn, pages, into: into.clone() });
        Box::pin(async move {
            io.await?;
            let Some(buffer) = into else { return Err(IoError::Corrupt) };
            let mut right = memory::look(&buffer, |bytes| this.is_right(page, bytes));
            if !right {
                // What went wrong on the way, and not on the medium, does not happen twice.
                this.0.handle.submit(Operation::Read { lpn, pages, into: Some(buffer.clone()) }).await?;
                right = memory::look(&buffer, |bytes| this.is_right(page, bytes));
            }
            right.then_some(()).ok_or(IoError::Corrupt)
        })
    }

    fn read_run(&self, first: PageId, into: Vec<Option<Buffer>>) -> RunIo {
        let this = self.clone();
        let size = self.0.page_bytes;
        let run = Arena::new(into.len() * size).buffer(0, into.len() * size);
        let (lpn, pages) = (self.lpn(first), self.0.device_pages * into.len() as u32);
        let io = self.0.handle.submit(Operation::Read { lpn, pages, into: Some(run.clone()) });
        Box::pin(async move {
            let is_read = io.await.is_ok();
            let mut outcomes = Vec::with_capacity(into.len());
            for (index, into) in into.into_iter().enumerate() {
                let page = PageId(first.0 + index as u64);
                let is_right = is_read
                    && into.as_ref().is_some_and(|into| {
                        memory::look(&run.part(index * size, size), |bytes| {
                            let is_right = this.is_right(page, bytes);
                            if is_right {
                                memory::fill(into, bytes);
                            }
                            is_right
                        })
                    });
                // One that is damaged, or stands in the way of the others, is looked at by itself.
                outcomes.push(if is_right { Ok(()) } else { this.read(page, into).await });
            }
            outcomes
        })
    }

    fn write(&self, mut pages: Vec<PageBytes>) -> PageIo {
        // Pages that follow each other on the drive are written together.
        pages.sort_unstable_by_key(|page| page.page);
        // The pages cannot change before the write has ended, so what is changed later is not in it.
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
