//! The drive in a file: through io_uring if the system has it, otherwise with plain system calls. A store that is only
//! read is on an overlay, which writes to a temporary file.

use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Error, Options};
#[cfg(target_os = "linux")]
use fulgurite_uring::UringDevice;
use fulgurite_uring::{DriveOptions, OpenError, OverlayDevice, PsyncDevice, ReadOnlyFile};
use std::fs::File;
use std::path::Path;

/// A drive in a file.
pub enum FileDrive {
    /// A drive through io_uring.
    #[cfg(target_os = "linux")]
    Uring(Box<UringDevice>),
    /// A drive with plain system calls.
    Psync(Box<PsyncDevice>),
    /// A file that is only read.
    Overlay(Box<OverlayDevice>),
}

impl FileDrive {
    /// Opens the drive at `path` for writing.
    pub fn open(path: &Path, options: &DriveOptions) -> Result<FileDrive, OpenError> {
        #[cfg(target_os = "linux")]
        match UringDevice::open(path, options) {
            Err(OpenError::NoUring(_)) => {}
            opened => return opened.map(|drive| FileDrive::Uring(Box::new(drive))),
        }
        PsyncDevice::open(path, options).map(|drive| FileDrive::Psync(Box::new(drive)))
    }

    /// Opens a drive with the contents of `file`, whose writes go to the empty file `beside`.
    pub fn overlay(file: ReadOnlyFile, beside: File) -> FileDrive {
        FileDrive::Overlay(Box::new(OverlayDevice::new(file, beside)))
    }

    /// Creates a store on the drive.
    pub fn create(self, options: Options) -> Result<Db, Error> {
        match self {
            #[cfg(target_os = "linux")]
            FileDrive::Uring(drive) => Db::create(vec![*drive], options),
            FileDrive::Psync(drive) => Db::create(vec![*drive], options),
            FileDrive::Overlay(drive) => Db::create(vec![*drive], options),
        }
    }

    /// Opens the store on the drive.
    pub fn open_store(self, options: Options) -> Result<Db, Error> {
        match self {
            #[cfg(target_os = "linux")]
            FileDrive::Uring(drive) => Db::open(vec![*drive], options),
            FileDrive::Psync(drive) => Db::open(vec![*drive], options),
            FileDrive::Overlay(drive) => Db::open(vec![*drive], options),
        }
    }
}
