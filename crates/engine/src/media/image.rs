//! A store outside its own drive: where backups go, and what repairs read.
//!
//! A store and its tasks live on one executor with one drive. A second drive, or a plain file, is reached through these
//! two traits; what stands above the engine implements them. [`MemImage`] is an image in memory, and drives of the same
//! executor are images too.

use crate::Error;
use crate::bytes;
use crate::media::commands::writes;
use fulgurite_base::Lpn;
use fulgurite_device::{Arena, Device, Handle, IoError, Operation};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

/// Where a backup goes. Places are in bytes from the image's beginning. Places and lengths are multiples of 4096, and of the
/// page of the store's drive.
pub trait Sink {
    /// Puts bytes at a place.
    fn write(&self, at: u64, bytes: &[u8]) -> impl Future<Output = Result<(), Error>>;

    /// Makes `bytes` bytes from `at` on read as zeros. What was there before must not show through, or an image might go on
    /// with the log of an older one. A new file has nothing to do here.
    fn clear(&self, at: u64, bytes: u64) -> impl Future<Output = Result<(), Error>>;

    /// Waits until everything so far is durable.
    fn sync(&self) -> impl Future<Output = Result<(), Error>>;
}

/// What a repair reads, and never writes.
pub trait Source {
    /// Bytes of the image.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the bytes from `at` on. An error says that this piece cannot be read; others are tried all the same.
    fn read(&self, at: u64, into: &mut [u8]) -> impl Future<Output = Result<(), Error>>;
}

/// An image in memory. Clones share it. It grows as it is written.
#[derive(Clone, Debug, Default)]
pub struct MemImage(Rc<RefCell<Vec<u8>>>);

impl MemImage {
    /// An image of these bytes.
    pub fn new(bytes: Vec<u8>) -> MemImage {
        MemImage(Rc::new(RefCell::new(bytes)))
    }

    /// A copy of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }

    fn range(&self, at: u64, len: usize) -> std::ops::Range<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX - len);
        from..from + len
    }
}

impl Sink for MemImage {
    async fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let range = self.range(at, bytes.len());
        let image = &mut *self.0.borrow_mut();
        image.resize(image.len().max(range.end), 0);
        image[range].copy_from_slice(bytes);
        Ok(())
    }

    async fn clear(&self, at: u64, bytes: u64) -> Result<(), Error> {
        let image = &mut *self.0.borrow_mut();
        let end = (at + bytes).min(image.len() as u64) as usize;
        if (at as usize) < end {
            image[at as usize..end].fill(0);
        }
        Ok(())
    }

    async fn sync(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Source for MemImage {
    fn len(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    async fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let range = self.range(at, into.len());
        match self.0.borrow().get(range) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => return Err(Error::Io(IoError::OutOfRange)),
        }
        Ok(())
    }
}

/// The drive of this executor, to read an image from.
impl<D: Device + 'static> Source for Handle<D> {
    fn len(&self) -> u64 {
        let caps = self.caps();
        caps.pages * u64::from(caps.page_bytes)
    }

    async fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let page = u64::from(self.caps().page_bytes);
        // Images are read in pieces that may be smaller than the drive's page.
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
    }
}

/// The drive of this executor, to put an image on. Places and lengths are multiples of its page.
impl<D: Device + 'static> Sink for Handle<D> {
    async fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let buffer = Arena::new(bytes.len()).buffer(0, bytes.len());
        bytes::fill(&buffer, bytes);
        let first = Lpn(at / u64::from(self.caps().page_bytes));
        self.submit_all(writes(self, first, &buffer)).await.map_err(Error::Io)
    }

    async fn clear(&self, at: u64, bytes: u64) -> Result<(), Error> {
        const PIECE: u64 = 256 << 10;
        let zeros = vec![0; PIECE as usize];
        for from in (at..at + bytes).step_by(PIECE as usize) {
            let len = PIECE.min(at + bytes - from) as usize;
            Sink::write(self, from, &zeros[..len]).await?;
        }
        Ok(())
    }

    async fn sync(&self) -> Result<(), Error> {
        self.submit(Operation::Flush).await.map_err(Error::Io)
    }
}
