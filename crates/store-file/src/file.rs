//! Reads and writes the pages of a store in a plain file.

use fulgurite_base::Lpn;
use fulgurite_device::{Failure, IoError, Operation};
use fulgurite_engine::{Error, Sink, Source};
use fulgurite_uring::ReadOnlyFile;
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

/// A file that a repair reads.
pub struct FileSource(pub ReadOnlyFile);

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.0.bytes()
    }

    async fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        self.0.read_at(at, into).map_err(|error| {
            // Pages of a drive in a file have 4 KiB, whatever a store's own pages have.
            let pages = into.len().div_ceil(4096) as u32;
            let read = Operation::read(Lpn(at / 4096), pages);
            Error::Io(IoError::System(Failure::of(&read, &error)))
        })
    }
}

/// A new file that a backup goes into. Clones share it.
#[derive(Clone)]
pub struct FileSink {
    file: Rc<File>,
    /// What the system said when it refused: the engine's error has no place for it.
    refused: Rc<RefCell<Option<io::Error>>>,
}

impl FileSink {
    /// Into `file`, which reads as zeros.
    pub fn new(file: File) -> FileSink {
        FileSink { file: Rc::new(file), refused: Rc::default() }
    }

    /// Why writing has failed, if it has.
    pub fn take_error(&self) -> Option<io::Error> {
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
    async fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.outcome(self.file.write_all_at(bytes, at))
    }

    async fn clear(&self, _at: u64, _bytes: u64) -> Result<(), Error> {
        // It is new.
        Ok(())
    }

    async fn sync(&self) -> Result<(), Error> {
        self.outcome(self.file.sync_data())
    }
}
