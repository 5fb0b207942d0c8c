//! A file or block device that is only read.

use crate::drive_file::{self, Found, Lock, OpenError, at, atomic_bytes, look};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file or block device that is open for reading and never written. It needs no mark, because nothing in it
/// can be lost.
///
/// Any number of readers may have it open at once, but not while a drive has it open for writing.
pub struct ReadOnlyFile {
    file: File,
    bytes: u64,
    /// The lock, which keeps writers out until it is dropped.
    _lock: Lock,
}

impl ReadOnlyFile {
    /// Opens the file at `path`. Fails if it does not exist, if it is neither a file nor a block device, and
    /// with [`OpenError::InUse`] if it is open as a drive.
    pub fn open(path: &Path) -> Result<ReadOnlyFile, OpenError> {
        if let Found::Nothing = look(path)? {
            return Err(at(path)(io::ErrorKind::NotFound.into()));
        }
        let open = || File::open(path).map_err(at(path));
        let lock = drive_file::locked(open()?, path, FlockOperation::NonBlockingLockShared)?;
        let file = open()?;
        let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0));
        let bytes = end.map_err(|error| at(path)(error.into()))?;
        Ok(ReadOnlyFile { file, bytes, _lock: lock })
    }

    /// Returns the length in bytes, including a mark at the end.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the bytes from `at` on into `into`. Fails if the file is too short.
    pub fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    /// Returns the length in bytes of the longest write that the drive never tears.
    pub(crate) fn atomic_bytes(&self) -> u32 {
        atomic_bytes(&self.file)
    }
}
