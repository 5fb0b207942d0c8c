//! Images: copies of a store outside its own drive. Backups write images, and repairs read them.
//!
//! A store and its tasks run on one executor with one drive. The two traits of this module give access to a
//! second drive or to a plain file, for which crates above the engine implement them. [`MemImage`] is an
//! image in memory. The drive of the store's own executor can hold an image too.

use crate::bytes;
use crate::media::commands::writes;
use crate::{Error, StoreFuture};
use fulgurite_base::Lpn;
use fulgurite_device::{Arena, Device, Handle, IoError, Operation};
use std::cell::RefCell;
use std::rc::Rc;

/// The target of a backup. Addresses are in bytes from the beginning of the image. Addresses and lengths are
/// multiples of 4096, and of the page size of the store's drive.
pub trait Sink {
    /// Writes bytes at an address.
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()>;

    /// Makes `bytes` bytes from `at` on read as zeros. Old contents must not remain, because recovery might
    /// continue with the log of an older image. For a new file this method does nothing.
    fn clear(&self, at: u64, bytes: u64) -> StoreFuture<'_, ()>;

    /// Makes all writes that have completed durable.
    fn sync(&self) -> StoreFuture<'_, ()>;
}

/// The source of a repair, which the repair never writes.
pub trait Source {
    /// The size of the image in bytes.
    fn len(&self) -> u64;

    /// Whether the image has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the bytes from `at` on. An error concerns only these bytes; other bytes can still be read.
    fn read<'a>(&'a self, at: u64, into: &'a mut [u8]) -> StoreFuture<'a, ()>;
}

/// An image in memory, which grows as it is written. All clones are the same image.
#[derive(Clone, Debug, Default)]
pub struct MemImage(Rc<RefCell<Vec<u8>>>);

impl MemImage {
    /// Creates an image with these contents.
    pub fn new(bytes: Vec<u8>) -> MemImage {
        MemImage(Rc::new(RefCell::new(bytes)))
    }

    /// Returns a copy of the contents.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }

    fn range(&self, at: u64, len: usize) -> std::ops::Range<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX - len);
        from..from + len
    }
}

impl Sink for MemImage {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let range = self.range(at, bytes.len());
            let image = &mut *self.0.borrow_mut();
            image.resize(image.len().max(range.end), 0);
            image[range].copy_from_slice(bytes);
            Ok(())
        })
    }

    fn clear(&self, at: u64, bytes: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let image = &mut *self.0.borrow_mut();
            let end = (at + bytes).min(image.len() as u64) as usize;
            if (at as usize) < end {
                image[at as usize..end].fill(0);
            }
            Ok(())
        })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { Ok(()) })
    }
}

impl Source for MemImage {
    fn len(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    fn read<'a>(&'a self, at: u64, into: &'a mut [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let range = self.range(at, into.len());
            match self.0.borrow().get(range) {
                Some(bytes) => into.copy_from_slice(bytes),
                None => return Err(Error::Io(IoError::OutOfRange)),
            }
            Ok(())
        })
    }
}

/// Reads an image from the drive of this executor.
impl<D: Device + ?Sized + 'static> Source for Handle<D> {
    fn len(&self) -> u64 {
        let caps = self.caps();
        caps.pages * u64::from(caps.page_bytes)
    }

    fn read<'a>(&'a self, at: u64, into: &'a mut [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let page = u64::from(self.caps().page_bytes);
            // The bytes may begin and end inside a page of the drive, so whole pages are read.
            let (first, end) = (at / page, (at + into.len() as u64).div_ceil(page));
            let arena = Arena::new(((end - first) * page) as usize);
            let longest = u64::from(self.caps().pages_per_command);
            let reads = (first..end).step_by(longest as usize).map(|lpn| {
                let pages = longest.min(end - lpn);
                let part = arena.buffer(((lpn - first) * page) as usize, (pages * page) as usize);
                Operation::Read { lpn: Lpn(lpn), pages: pages as u32, into: Some(part) }
            });
            self.submit_all(reads).await.map_err(Error::Io)?;
            let from = (at - first * page) as usize;
            bytes::look(&arena.buffer(from, into.len()), |bytes| into.copy_from_slice(bytes));
            Ok(())
        })
    }
}

/// Writes an image to the drive of this executor. Addresses and lengths must be multiples of the drive's page
/// size.
impl<D: Device + ?Sized + 'static> Sink for Handle<D> {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let buffer = Arena::new(bytes.len()).buffer(0, bytes.len());
            bytes::fill(&buffer, bytes);
            let first = Lpn(at / u64::from(self.caps().page_bytes));
            self.submit_all(writes(self, first, &buffer)).await.map_err(Error::Io)
        })
    }

    fn clear(&self, at: u64, bytes: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            const PIECE: u64 = 256 << 10;
            let zeros = vec![0; PIECE as usize];
            for from in (at..at + bytes).step_by(PIECE as usize) {
                let len = PIECE.min(at + bytes - from) as usize;
                Sink::write(self, from, &zeros[..len]).await?;
            }
            Ok(())
        })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.submit(Operation::Flush).await.map_err(Error::Io) })
    }
}
