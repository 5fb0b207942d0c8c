//! Reads and writes pages in place, protected according to [`TornPages`].

use super::a_few_at_once;
use super::double_write::Area;
use super::sealed::Sealed;
use crate::media::commands::write;
use crate::{Error, TornPages};
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::{Buffer, Handle, Io, Operation};

/// Reads and writes pages in place: each page has a fixed address, its home location.
pub(crate) struct InPlace {
    handle: Handle,
    torn_pages: TornPages,
    device_pages: u32,
    area: Area,
}

impl InPlace {
    /// Creates a backend for pages of `device_pages` device pages each. `torn_pages` must not be `Auto`.
    pub(crate) fn new(handle: Handle, torn_pages: TornPages, device_pages: u32, area: Area) -> InPlace {
        InPlace { handle, torn_pages, device_pages, area }
    }

    pub(crate) fn torn_pages(&self) -> TornPages {
        self.torn_pages
    }

    /// Returns the number of batches that the double-write area can protect at a time, even if the area is
    /// not used.
    pub(crate) fn batches(&self) -> u32 {
        self.area.batches()
    }

    /// Sets the number of pages of a batch that are written in place concurrently.
    pub(crate) fn set_writes_at_once(&self, pages: usize) {
        self.area.set_writes_at_once(pages);
    }

    /// Returns how often each page is written: twice with double writes, once otherwise.
    pub(crate) fn times(&self) -> u64 {
        if self.torn_pages == TornPages::DoubleWrite { 2 } else { 1 }
    }

    /// Writes at most [`BATCH`](crate::options::BATCH) sealed pages.
    pub(crate) async fn write(&self, pages: &Sealed) -> Result<(), Error> {
        if matches!(self.torn_pages, TornPages::DoubleWrite | TornPages::Share) {
            return self.area.write(pages, |page| self.lpn(page)).await;
        }
        // Each page has a command of its own, because a drive that does not tear pages may tear longer
        // writes.
        let homes: Vec<Operation> =
            pages.iter().map(|(page, copy)| write(self.lpn(page), self.device_pages, copy)).collect();
        let write = async |home: &Operation| self.handle.submit(home.clone()).await.map_err(Error::Io);
        a_few_at_once(&homes, self.area.writes_at_once(), write).await
    }

    /// Submits a read of consecutive pages from `first` on, as many as fit into `into`.
    pub(crate) fn read(&self, first: PageId, into: &Buffer) -> Io {
        let pages = (into.len() / self.handle.caps().page_bytes as usize) as u32;
        self.handle.submit(Operation::Read { lpn: self.lpn(first), pages, into: Some(into.clone()) })
    }

    fn lpn(&self, page: PageId) -> Lpn {
        Lpn(page.0.saturating_mul(u64::from(self.device_pages)))
    }
}
