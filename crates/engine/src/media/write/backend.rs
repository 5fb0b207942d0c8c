//! Reads and writes pages in place or out of place, as the store was created.

use super::in_place::InPlace;
use super::out_of_place::OutOfPlace;
use super::sealed::Sealed;
use crate::format::layout::Segmentation;
use crate::media::barrier::Barrier;
use crate::{Error, TornPages};
use fulgurite_base::PageId;
use fulgurite_device::Buffer;
use fulgurite_pool::PageIo;
use std::future::Future;
use std::pin::Pin;

/// For each of several pages, whether it could be read.
type PageReads = Pin<Box<dyn Future<Output = Vec<bool>>>>;

/// The way in which a store reads and writes its pages: in place or out of place.
pub(crate) enum Backend {
    In(Box<InPlace>),
    Out(OutOfPlace),
}

impl Backend {
    /// Returns the protection against torn pages. Out of place, no valid page can be torn, as on a drive with
    /// atomic writes.
    pub(crate) fn torn_pages(&self) -> TornPages {
        match self {
            Backend::In(backend) => backend.torn_pages(),
            Backend::Out(_) => TornPages::Atomic,
        }
    }

    /// Returns the backend for pages out of place; `None` if pages are in place.
    pub(crate) fn out_of_place(&self) -> Option<&OutOfPlace> {
        match self {
            Backend::In(_) => None,
            Backend::Out(backend) => Some(backend),
        }
    }

    /// Returns the number of batches of writes that are protected at a time.
    pub(crate) fn batches(&self) -> u32 {
        match self {
            Backend::In(backend) => backend.batches(),
            Backend::Out(_) => 2,
        }
    }

    /// Whether pages are written in batches of [`BATCH`](crate::options::BATCH) pages. In place, a flush
    /// separates protected batches; out of place, a batch is one long write.
    pub(crate) fn is_batched(&self) -> bool {
        match self {
            Backend::In(backend) => matches!(backend.torn_pages(), TornPages::DoubleWrite | TornPages::Share),
            Backend::Out(_) => true,
        }
    }

    /// Returns the segments of pages out of place, for the superblock; `None` if pages are in place.
    pub(crate) fn shape(&self) -> Option<Segmentation> {
        self.out_of_place().map(OutOfPlace::shape)
    }

    /// Sets the number of pages of a batch that are written in place concurrently.
    pub(crate) fn set_writes_at_once(&self, pages: usize) {
        match self {
            Backend::In(backend) => backend.set_writes_at_once(pages),
            // This number has no effect out of place, because a batch is a few long writes.
            Backend::Out(_) => (),
        }
    }

    /// Writes at most [`BATCH`](crate::options::BATCH) sealed pages, which have their checksums. The pages
    /// are durable after [`Backend::make_durable`].
    pub(crate) async fn write(&self, pages: &Sealed) -> Result<(), Error> {
        match self {
            Backend::In(backend) => backend.write(pages).await,
            Backend::Out(backend) => backend.write(pages).await,
        }
    }

    /// Makes all writes that completed before this call durable.
    pub(crate) async fn make_durable(&self, barrier: &Barrier) -> Result<(), Error> {
        match self {
            Backend::In(_) => barrier.flush().await,
            Backend::Out(backend) => backend.commit().await,
        }
    }

    /// Reads a page without verifying its checksum. In place, the read is submitted at once, not at the first
    /// poll.
    pub(crate) fn read(&self, page: PageId, into: &Buffer) -> PageIo {
        match self {
            Backend::In(backend) => Box::pin(backend.read(page, into)),
            Backend::Out(backend) => {
                let (backend, into) = (backend.clone(), into.clone());
                Box::pin(async move { backend.read(page, &into).await })
            }
        }
    }

    /// Reads consecutive pages into parts of `into` without verifying their checksums. Returns for each page
    /// whether it could be read.
    pub(crate) fn read_run(&self, first: PageId, pages: usize, into: &Buffer) -> PageReads {
        match self {
            Backend::In(backend) => {
                let read = backend.read(first, into);
                Box::pin(async move { vec![read.await.is_ok(); pages] })
            }
            Backend::Out(backend) => {
                let (backend, into) = (backend.clone(), into.clone());
                Box::pin(async move { backend.read_run(first, pages, &into).await })
            }
        }
    }
}
