//! The drive in a file, and the stores that are opened on it: a drive through io_uring if the system has it,
//! otherwise a drive with plain system calls.

use fulgurite_device::Device;
use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Error, Options};
use fulgurite_stack::device::AnyDrive;
use fulgurite_uring::PsyncDevice;
#[cfg(target_os = "linux")]
use fulgurite_uring::UringDevice;

/// A drive of either kind.
pub(crate) enum FileDrive {
    /// A drive through io_uring.
    #[cfg(target_os = "linux")]
    Uring(Box<UringDevice>),
    /// A drive with plain system calls.
    Psync(Box<PsyncDevice>),
}

impl FileDrive {
    /// Returns the drive as a drive of any kind, for a store that only one thread uses.
    pub(crate) fn boxed(self) -> AnyDrive {
        match self {
            #[cfg(target_os = "linux")]
            FileDrive::Uring(drive) => drive,
            FileDrive::Psync(drive) => drive,
        }
    }

    /// Returns the size of the drive in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let caps = match self {
            #[cfg(target_os = "linux")]
            FileDrive::Uring(drive) => drive.caps(),
            FileDrive::Psync(drive) => drive.caps(),
        };
        caps.pages * u64::from(caps.page_bytes)
    }

    /// Creates a store that several threads use.
    pub(crate) fn create(self, options: Options) -> Result<Db, Error> {
        match self {
            #[cfg(target_os = "linux")]
            FileDrive::Uring(drive) => Db::create(vec![*drive], options),
            FileDrive::Psync(drive) => Db::create(vec![*drive], options),
        }
    }

    /// Opens a store that several threads use.
    pub(crate) fn open(self, options: Options) -> Result<Db, Error> {
        match self {
            #[cfg(target_os = "linux")]
            FileDrive::Uring(drive) => Db::open(vec![*drive], options),
            FileDrive::Psync(drive) => Db::open(vec![*drive], options),
        }
    }
}
