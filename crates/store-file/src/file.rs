//! Implements the engine's source of a repair and its sink of a backup for plain files.

use fulgurite_base::Lpn;
use fulgurite_device::{Failure, IoError, Operation};
use fulgurite_engine::{Error, Sink, Source, StoreFuture};
use fulgurite_uring::ReadOnlyFile;
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// The file that a repair reads.
pub(crate) struct FileSource(pub ReadOnlyFile);

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.0.bytes()
    }

    fn read<'a>(&'a self, at: u64, into: &'a mut [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.0.read_at(at, into).map_err(|error| {
                // A drive in a file has pages of 4 KiB, even if the pages of its store have another size.
                let pages = into.len().div_ceil(4096) as u32;
                let read = Operation::read(Lpn(at / 4096), pages);
                Error::Io(IoError::System(Failure::of(&read, &error)))
            })
        })
    }
}

/// A new file that receives a backup. Clones write to the same file.
#[derive(Clone)]
pub(crate) struct FileSink {
    file: Rc<File>,
    /// The last error of the system. The engine's own error cannot hold it.
    refused: Rc<RefCell<Option<io::Error>>>,
}

impl FileSink {
    /// Creates a sink that writes to `file`, which must read as zeros.
    pub(crate) fn new(file: File) -> FileSink {
        FileSink { file: Rc::new(file), refused: Rc::default() }
    }

    /// Takes the error of the system at the last failed write; `None` if no write failed.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.refused.borrow_mut().take()
    }

    fn outcome(&self, outcome: io::Result<()>) -> Result<(), Error> {
        outcome.map_err(|error| {
            *self.refused.borrow_mut() = Some(error);
            Error::Io(IoError::Media)
        })
    }
}

impl Sink for FileSink {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.outcome(self.file.write_all_at(bytes, at)) })
    }

    fn clear(&self, _at: u64, _bytes: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            // Nothing must be cleared, because a new file reads as zeros already.
            Ok(())
        })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.outcome(self.file.sync_data()) })
    }
}
