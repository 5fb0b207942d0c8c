//! The double-write area, which holds a copy of each page while the page is written in place. The copy
//! protects the page from a torn write.
//!
//! The area consists of slots for one batch each. *Double write*: the batch is written to a slot and flushed,
//! then each page is written at its home location. A slot is reused only after a flush that began when the
//! pages of its batch had been written in place. *Share*: the batch is written to a slot; then the drive
//! remaps the home locations of the pages to these copies, which is atomic and durable, and the slot is free.
//! One command remaps as many pages of the batch as the drive supports (`Caps::share_pages`), usually all of
//! them. The store requires only that each page is remapped by a single command. Like any concurrent page
//! writes, the pages of a batch may be written in any order.
//!
//! A failed write in place may leave a torn page, and the copy is then the only intact version of the page.
//! Such a write is retried a few times. If it still fails, the store stops, so that the slot is not reused.
//! The next opening restores the page from the copy.
//!
//! Copies of a double write are bound to their addresses ([`super::bound`]), so that a misdirected read does
//! not return a copy as the page itself.
//!
//! Recovery checks every copy in the area. A damaged page is restored from its newest intact copy. Copies
//! whose last change is before the redo point are ignored. The page of such a copy was durable in place, so
//! its damage has another cause, which restoring an old copy would hide.

use super::a_few_at_once;
use super::bound::bind;
use super::sealed::{Sealed, is_there};
use crate::bytes;
use crate::format::layout::Superblock;
use crate::format::page;
use crate::media::barrier::{Barrier, Ticket};
use crate::media::commands::{write, writes};
use crate::options::BATCH;
use crate::wait::{Health, Turns, insist};
use crate::{Error, Lsn, Options, TornPages};
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::{Arena, Handle, IoError, Operation, ShareRun};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The number of attempts to read a copy when the store is opened.
const READ_ATTEMPTS: u32 = 3;

struct Slot {
    first: Lpn,
    /// The index of the slot's first page within the area.
    place: u32,
    turns: Turns,
    /// The ticket of the batch that was last written in place. Until the batch is durable at the home
    /// locations of its pages, the slot protects it. `None` if the slot protects no batch.
    protects: Cell<Option<Ticket>>,
}

pub(crate) struct Area {
    handle: Handle,
    barrier: Rc<Barrier>,
    health: Health,
    torn_pages: TornPages,
    device_pages: u32,
    slots: Vec<Slot>,
    next: Cell<usize>,
    /// The number of pages of a batch that are written in place concurrently.
    at_once: Cell<usize>,
    options: Options,
}

impl Area {
    /// Creates the area of `pages` pages from `first` on.
    pub(crate) fn new(
        handle: Handle,
        (health, barrier): (Health, Rc<Barrier>),
        torn_pages: TornPages,
        device_pages: u32,
        (first, pages): (PageId, u64),
        options: &Options,
    ) -> Area {
        let slot = |index: u64| Slot {
            first: Lpn((first.0 + index * BATCH as u64) * u64::from(device_pages)),
            place: (index * BATCH as u64) as u32,
            turns: Turns::default(),
            protects: Cell::new(None),
        };
        let slots = (0..pages / BATCH as u64).map(slot).collect();
        Area {
            handle,
            barrier,
            health,
            torn_pages,
            device_pages,
            slots,
            next: Cell::new(0),
            at_once: Cell::new(options.writes_at_once()),
            options: options.clone(),
        }
    }

    /// Returns the number of batches that the area protects at a time.
    pub(crate) fn batches(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the number of pages of a batch that are written in place concurrently.
    pub(crate) fn writes_at_once(&self) -> usize {
        self.at_once.get()
    }

    /// Sets the number that [`Area::writes_at_once`] returns.
    pub(crate) fn set_writes_at_once(&self, pages: usize) {
        self.at_once.set(pages);
    }

    /// Writes at most [`BATCH`] sealed pages in place. Each page has an intact version on the drive at all
    /// times.
    pub(crate) async fn write(&self, pages: &Sealed, lpn: impl Fn(PageId) -> Lpn) -> Result<(), Error> {
        let slot = &self.slots[self.next.get() % self.slots.len()];
        let reused_early = planted!(self.options, DoubleWriteAreaReusedEarly);
        self.next.set(if reused_early { 0 } else { self.next.get() + 1 });
        let turn = slot.turns.take().await;
        // Stop here after a failure, because a slot whose copies are needed must not be reused.
        self.health.check()?;
        if let Some(ticket) = slot.protects.get()
            && !reused_early
        {
            // A flush of the log has usually covered this ticket already.
            self.barrier.flushed(ticket).await?;
            slot.protects.set(None);
        }
        self.write_copies(slot, pages).await?;
        // The slot stays locked until the pages are written in place.
        let turn = (!reused_early).then_some(turn);
        if self.torn_pages == TornPages::Share {
            let shares = self.shares(slot.first, pages, lpn);
            return self.handle.submit_all(shares.into_iter()).await.map_err(Error::Io);
        }
        self.barrier.flush().await?;
        let outcome = self.write_homes(pages, lpn).await;
        slot.protects.set(Some(self.barrier.ticket()));
        drop(turn);
        outcome.map_err(|error| match error {
            Error::Io(error) if may_tear(error) => {
                self.health.stop(format!("a page could not be written in place: {error}"))
            }
            error => error,
        })
    }

    /// Returns the commands that remap pages to their copies, which start at `copies`. The commands are few,
    /// and each page is remapped by one command.
    fn shares(&self, copies: Lpn, pages: &Sealed, lpn: impl Fn(PageId) -> Lpn) -> Vec<Operation> {
        let in_parts = planted!(self.options, PageSharedInParts);
        let unit = if in_parts { 1 } else { self.device_pages };
        let runs = (0u64..).zip(&pages.numbers).flat_map(|(index, page)| {
            let (home, copy) = (lpn(*page).0, copies.0 + index * u64::from(self.device_pages));
            (0..u64::from(self.device_pages)).step_by(unit as usize).map(move |at| ShareRun {
                destination: Lpn(home + at),
                source: Lpn(copy + at),
                pages: unit,
            })
        });
        let runs: Vec<ShareRun> = runs.collect();
        // The protection by sharing was chosen only for a drive whose share command takes at least one page.
        let most = if in_parts { 1 } else { (self.handle.caps().share_pages / unit).max(1) };
        runs.chunks(most as usize).map(|runs| Operation::Share { runs: runs.into() }).collect()
    }

    /// Writes the copies of a batch to its slot.
    async fn write_copies(&self, slot: &Slot, pages: &Sealed) -> Result<(), Error> {
        // A copy that is to be shared becomes the page itself, so it is not bound to its address.
        let is_bound = self.torn_pages == TornPages::DoubleWrite;
        let bind = || {
            if is_bound {
                bind(&pages.bytes, pages.page_bytes(), slot.place)
            }
        };
        bind();
        // The copies are contiguous, so a few large commands write them.
        let copies = writes(&self.handle, slot.first, &pages.bytes);
        let mut written = self.handle.submit_all(copies).await.map_err(Error::Io);
        // Verify the copies here: the SHARE command maps each page to its copy, so a copy that was not
        // written would replace the page by an old version, perhaps from before the redo point.
        if written.is_ok() && self.options.verify_writes {
            written = match is_there(&self.handle, slot.first, &pages.bytes).await {
                Ok(false) => {
                    Err(self.health.stop("the drive has lost a write to the double-write area".to_owned()))
                }
                found => found.map(drop),
            };
        }
        bind();
        written
    }

    /// Writes pages at their home locations, a few concurrently.
    async fn write_homes(&self, pages: &Sealed, lpn: impl Fn(PageId) -> Lpn) -> Result<(), Error> {
        let at_once = self.at_once.get();
        let homes: Vec<Operation> = homes(&self.handle, pages, at_once, lpn).collect();
        // The number of concurrent commands that write about `at_once` pages on average.
        let at_once = at_once * homes.len() / pages.numbers.len().max(1);
        let write = async |home: &Operation| {
            insist(async || self.handle.submit(home.clone()).await.map_err(Error::Io)).await
        };
        a_few_at_once(&homes, at_once, write).await
    }
}

/// Whether a write that failed with this error may have been executed in part. A write that the drive refuses
/// was not begun.
fn may_tear(error: IoError) -> bool {
    !matches!(error, IoError::OutOfRange | IoError::Unsupported | IoError::Invalid | IoError::WornOut)
}

/// Returns the commands that write pages in place. A command writes consecutive pages, at most `longest` of
/// them.
fn homes(
    handle: &Handle,
    pages: &Sealed,
    longest: usize,
    lpn: impl Fn(PageId) -> Lpn,
) -> impl Iterator<Item = Operation> {
    let caps = handle.caps();
    let device_page = caps.page_bytes as usize;
    let most = caps.pages_per_command as usize * device_page / pages.page_bytes().max(1);
    pages
        .runs(longest.min(most))
        .map(move |(page, bytes)| write(lpn(page), (bytes.len() / device_page) as u32, bytes))
}

/// Reads a copy, with several attempts, because an error may be transient and the copy may be the only intact
/// version of its page. Returns whether an attempt succeeded.
async fn can_read(handle: &Handle, read: impl Fn() -> Operation) -> bool {
    for _ in 0..READ_ATTEMPTS {
        if handle.submit(read()).await.is_ok() {
            return true;
        }
    }
    false
}

/// Restores damaged pages from intact copies that are not older than the redo point. Returns the number of
/// restored pages.
pub(crate) async fn restore_torn(
    handle: &Handle,
    barrier: &Barrier,
    superblock: &Superblock,
    options: &Options,
) -> Result<u64, Error> {
    let (first, pages) = (superblock.double_write_start(), superblock.double_write_pages);
    let (page_bytes, salt, redo) = (superblock.page_bytes, superblock.salt(), superblock.redo);
    let data = first.0 + pages..superblock.pages;
    let device_pages = page_bytes / handle.caps().page_bytes;
    let lpn = |page: PageId| Lpn(page.0 * u64::from(device_pages));
    let arena = Arena::new((pages as usize + 1) * page_bytes as usize);
    let buffer = |index: u64| arena.buffer(index as usize * page_bytes as usize, page_bytes as usize);
    let mut newest: BTreeMap<PageId, (Lsn, u64)> = BTreeMap::new();
    for index in 0..pages {
        let read = || {
            let into = Some(buffer(index));
            Operation::Read { lpn: lpn(PageId(first.0 + index)), pages: device_pages, into }
        };
        // Skip an unreadable copy. Its page was not being written yet, because writing a page in place begins
        // only after its copy is durable.
        if !can_read(handle, read).await {
            continue;
        }
        let look = || {
            bytes::look(&buffer(index), |bytes| {
                let number = page::number(bytes);
                let usable = page::is_whole(bytes, number, salt) && page::fault(bytes).is_none();
                usable.then(|| (number, page::lsn(bytes)))
            })
        };
        // The copy may be bound or not: a copy that was to be shared is not bound.
        let found = look().or_else(|| {
            bind(&buffer(index), page_bytes as usize, index as u32);
            look()
        });
        if let Some((number, lsn)) = found.filter(|(number, lsn)| data.contains(&number.0) && *lsn >= redo) {
            let entry = newest.entry(number).or_insert((lsn, index));
            if lsn >= entry.0 {
                *entry = (lsn, index);
            }
        }
    }
    let mut restored = 0;
    for (number, (_, index)) in newest {
        let into = Some(buffer(pages));
        let home = handle.submit(Operation::Read { lpn: lpn(number), pages: device_pages, into }).await;
        let whole = planted!(options, ChecksumIgnored)
            || home.is_ok() && bytes::look(&buffer(pages), |bytes| page::is_whole(bytes, number, salt));
        if !whole {
            handle.submit(write(lpn(number), device_pages, buffer(index))).await.map_err(Error::Io)?;
            restored += 1;
        }
    }
    if restored > 0 {
        barrier.flush().await?;
    }
    Ok(restored)
}
