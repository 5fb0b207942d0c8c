//! Where pages lie: the one thing that differs between stores whose pages stay in place and those whose pages move.

use super::in_place::InPlace;
use super::out_of_place::OutOfPlace;
use super::sealed::Sealed;
use crate::format::layout::Segmentation;
use crate::media::barrier::Barrier;
use crate::{Error, TornPages};
use fulgurite_base::PageId;
use fulgurite_device::{Buffer, Device};
use fulgurite_pool::PageIo;
use std::future::Future;
use std::pin::Pin;

/// Which pages of a run could be read.
type PageReads = Pin<Box<dyn Future<Output = Vec<bool>>>>;

/// Where pages lie.
pub enum Place<D> {
    /// At their own numbers.
    In(Box<InPlace<D>>),
    /// Where the map says.
    Out(OutOfPlace<D>),
}

impl<D: Device + 'static> Place<D> {
    /// What protects the pages. Out of place no write can tear a page that counts, as on a drive that is atomic.
    pub fn torn_pages(&self) -> TornPages {
        match self {
            Place::In(place) => place.torn_pages(),
            Place::Out(_) => TornPages::Atomic,
        }
    }

    /// The pages out of place, if that is where they are.
    pub fn out_of_place(&self) -> Option<&OutOfPlace<D>> {
        match self {
            Place::In(_) => None,
            Place::Out(place) => Some(place),
        }
    }

    /// Batches that are protected at once.
    pub fn batches(&self) -> u32 {
        match self {
            Place::In(place) => place.batches(),
            Place::Out(_) => 2,
        }
    }

    /// Whether pages are written in batches of [`BATCH`](crate::options::BATCH): a flush separates batches that are protected
    /// in place, and out of place a batch is one long write.
    pub fn is_batched(&self) -> bool {
        match self {
            Place::In(place) => matches!(place.torn_pages(), TornPages::DoubleWrite | TornPages::Share),
            Place::Out(_) => true,
        }
    }

    /// What the superblock says of the place.
    pub fn shape(&self) -> Option<Segmentation> {
        self.out_of_place().map(OutOfPlace::shape)
    }

    /// Pages of a batch that go to their places at once.
    pub fn set_writes_at_once(&self, pages: usize) {
        match self {
            Place::In(place) => place.set_writes_at_once(pages),
            // A batch is a few long writes.
            Place::Out(_) => (),
        }
    }

    /// Writes sealed pages, at most [`BATCH`](crate::options::BATCH). They are durable after [`Place::make_durable`].
    pub async fn write(&self, pages: &Sealed) -> Result<(), Error> {
        match self {
            Place::In(place) => place.write(pages).await,
            Place::Out(place) => place.write(pages).await,
        }
    }

    /// Makes durable what was written before this call.
    pub async fn make_durable(&self, barrier: &Barrier<D>) -> Result<(), Error> {
        match self {
            Place::In(_) => barrier.flush().await,
            Place::Out(place) => place.commit().await,
        }
    }

    /// Reads a page, whatever is there. In place the read is sent at once, not when somebody waits for it.
    pub fn read(&self, page: PageId, into: &Buffer) -> PageIo {
        match self {
            Place::In(place) => Box::pin(place.read(page, into)),
            Place::Out(place) => {
                let (place, into) = (place.clone(), into.clone());
                Box::pin(async move { place.read(page, &into).await })
            }
        }
    }

    /// Reads pages that follow each other in number into parts of `into`, whatever is there. Tells which could be read.
    pub fn read_run(&self, first: PageId, pages: usize, into: &Buffer) -> PageReads {
        match self {
            Place::In(place) => {
                let read = place.read(first, into);
                Box::pin(async move { vec![read.await.is_ok(); pages] })
            }
            Place::Out(place) => {
                let (place, into) = (place.clone(), into.clone());
                Box::pin(async move { place.read_run(first, pages, &into).await })
            }
        }
    }
}
