//! The double-write area: pages are on the drive twice while they are written, so that one of them is whole.
//!
//! The area has slots of one batch each. *Double write*: the batch is written to a slot and flushed, then each page to
//! its place. A slot is written again only after a flush that began when its pages had reached their places. *Share*:
//! the batch is written to a slot; then the drive makes the places the same as the copies there, which is atomic and
//! durable, and the slot is free. One command has as many pages of the batch as the drive takes (`Caps::share_pages`), so
//! most often all of them. The store needs less: that each page is in one command as a whole. Which pages of a batch came
//! to their places before a power cut makes no difference, as for any pages that are written at once.
//!
//! A write to a page's place that fails may leave it torn, and then its copy is all there is. Such a write is tried again a few
//! times. If it still fails, the store stops, so that nothing takes the slot; opening it puts the copy in its place.
//!
//! Copies of a double write are bound to their places ([`super::bound`]), so that no read takes one for the page itself.
//!
//! Recovery looks at every copy in the area. Where a page's own place is damaged, the newest whole copy is put there.
//! Copies of pages that were last changed before the redo point are left alone: such a page was durable in its place, so
//! its damage has another cause, and an old copy would hide it.

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
use fulgurite_device::{Arena, Device, Handle, IoError, Operation, ShareRun};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Attempts to read a copy of the area when the store is opened.
const READ_ATTEMPTS: u32 = 3;

/// A slot of the area.
struct Slot {
    first: Lpn,
    /// Its first page, counted from the area's beginning.
    place: u32,
    turns: Turns,
    /// For the pages that were brought to their places last: while they are not durable there, the slot protects them.
    protects: Cell<Option<Ticket>>,
}

/// The double-write area.
pub struct Area<D> {
    handle: Handle<D>,
    barrier: Rc<Barrier<D>>,
    health: Health,
    torn_pages: TornPages,
    device_pages: u32,
    slots: Vec<Slot>,
    next: Cell<usize>,
    /// Pages that are brought to their places at once.
    at_once: Cell<usize>,
    options: Options,
}

impl<D: Device + 'static> Area<D> {
    /// The area of `pages` pages from `first` on.
    pub fn new(
        handle: Handle<D>,
        (health, barrier): (Health, Rc<Barrier<D>>),
        torn_pages: TornPages,
        device_pages: u32,
        (first, pages): (PageId, u64),
        options: &Options,
    ) -> Area<D> {
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

    /// Batches that it protects at once.
    pub fn batches(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Pages of a batch that are brought to their places at once.
    pub fn writes_at_once(&self) -> usize {
        self.at_once.get()
    }

    /// From now on so many are.
    pub fn set_writes_at_once(&self, pages: usize) {
        self.at_once.set(pages);
    }

    /// Writes sealed pages, at most [`BATCH`], to their places, so that each of them is whole somewhere all the time.
    pub async fn write(&self, pages: &Sealed, lpn: impl Fn(PageId) -> Lpn) -> Result<(), Error> {
        let slot = &self.slots[self.next.get() % self.slots.len()];
        let reused_early = planted!(self.options, DoubleWriteAreaReusedEarly);
        self.next.set(if reused_early { 0 } else { self.next.get() + 1 });
        let turn = slot.turns.take().await;
        // Nobody takes a slot whose copies are needed.
        self.health.check()?;
        if let Some(ticket) = slot.protects.get()
            && !reused_early
        {
            // The log's flushes have mostly done it already.
            self.barrier.flushed(ticket).await?;
            slot.protects.set(None);
        }
        self.write_copies(slot, pages).await?;
        // The slot is somebody else's only when the pages are in their places.
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
                self.health.stop(format!("a page could not be written to its place: {error}"))
            }
            error => error,
        })
    }

    /// The commands that make the places of pages the same as their copies, which lie from `copies` on: few long ones, and
    /// each page in one.
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
        // The protection was chosen for a drive that takes at least one page.
        let most = if in_parts { 1 } else { (self.handle.caps().share_pages / unit).max(1) };
        runs.chunks(most as usize).map(|runs| Operation::Share { runs: runs.into() }).collect()
    }

    /// Writes a batch to its slot.
    async fn write_copies(&self, slot: &Slot, pages: &Sealed) -> Result<(), Error> {
        // A copy that is to be shared will be the page at home, which is not bound.
        let is_bound = self.torn_pages == TornPages::DoubleWrite;
        let bind = || {
            if is_bound {
                bind(&pages.bytes, pages.page_bytes(), slot.place)
            }
        };
        bind();
        // The copies lie side by side: few large commands.
        let copies = writes(&self.handle, slot.first, &pages.bytes);
        let mut written = self.handle.submit_all(copies).await.map_err(Error::Io);
        // A place that is made the same as a copy that is not there goes back in time, perhaps to before the redo point.
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

    /// Brings pages to their places, a few at once.
    async fn write_homes(&self, pages: &Sealed, lpn: impl Fn(PageId) -> Lpn) -> Result<(), Error> {
        let at_once = self.at_once.get();
        let homes: Vec<Operation> = homes(&self.handle, pages, at_once, lpn).collect();
        // So many commands have so many pages, on average.
        let at_once = at_once * homes.len() / pages.numbers.len().max(1);
        let write = async |home: &Operation| {
            insist(async || self.handle.submit(home.clone()).await.map_err(Error::Io)).await
        };
        a_few_at_once(&homes, at_once, write).await
    }
}

/// Whether a write that fails so may have been done in part. What a drive refuses it has not begun.
fn may_tear(error: IoError) -> bool {
    !matches!(error, IoError::OutOfRange | IoError::Unsupported | IoError::Invalid | IoError::WornOut)
}

/// The writes that bring pages to their places: those that follow each other together, at most `longest` of them.
fn homes<D: Device + 'static>(
    handle: &Handle<D>,
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

/// Puts whole copies of the area, as new as the redo point, at the places of pages that are damaged. Returns how many there were.
pub async fn restore_torn<D: Device + 'static>(
    handle: &Handle<D>,
    barrier: &Barrier<D>,
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
        // An error may pass, and the copy may be all that is left of its page.
        let mut attempts = READ_ATTEMPTS;
        let mut is_read = false;
        while !is_read && attempts > 0 {
            is_read = handle.submit(read()).await.is_ok();
            attempts -= 1;
        }
        // A copy that can never be read protects nothing, and need not: its page is damaged only if the copy was whole.
        if !is_read {
            continue;
        }
        let look = || {
            bytes::look(&buffer(index), |bytes| {
                let number = page::number(bytes);
                let usable = page::is_whole(bytes, number, salt) && page::fault(bytes).is_none();
                usable.then(|| (number, page::lsn(bytes)))
            })
        };
        // One that was shared is not bound to its place there.
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
