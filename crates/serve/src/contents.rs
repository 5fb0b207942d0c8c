//! Contents of a drive in a sparse file, which outlives the server. The file holds the bytes of the drive at their
//! addresses, with holes for pages without contents: a raw image, as other tools read and write them.

use fulgurite_disk::Backing;
use fulgurite_files::obstacle;
use fulgurite_stack::StackError;
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A file with the contents of one drive. It is locked, so that no two servers use it.
pub(crate) struct Contents {
    file: File,
    /// The path of a file that was made for this drive. It is removed unless the drive is served.
    made: Option<PathBuf>,
    is_kept: AtomicBool,
}

impl Contents {
    /// Opens the file at `path` for a drive of so many bytes, and creates it if there is none.
    ///
    /// # Errors
    ///
    /// Refuses a file of another size, one that is not regular, and one that another server uses.
    pub(crate) fn open(path: &Path, bytes: u64) -> Result<Contents, StackError> {
        let refused = |why: String| StackError::request(format!("--contents {}: {why}", path.display()));
        let failed =
            |error: io::Error| refused(format!("the file cannot be used: {}", obstacle(path, &error)));
        let open = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let (file, made) = match open {
            Ok(file) => (file, Some(path.to_path_buf())),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (OpenOptions::new().read(true).write(true).open(path).map_err(failed)?, None)
            }
            Err(error) => return Err(failed(error)),
        };
        let contents = Contents { file, made, is_kept: AtomicBool::new(false) };
        let found = contents.file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(refused("is no regular file; accepted: a regular or a new file".to_owned()));
        }
        match rustix::fs::flock(&contents.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(refused("another server uses this file; accepted: a file of its own".to_owned()));
            }
            Err(error) => return Err(failed(error.into())),
        }
        if contents.made.is_some() {
            contents.file.set_len(bytes).map_err(failed)?;
        } else if found.len() != bytes {
            return Err(refused(format!(
                "the file has {} bytes and the drive {bytes}; accepted: a new file, or one of a drive of this size",
                found.len()
            )));
        }
        Ok(contents)
    }

    /// Keeps the file, because the drive is served from now on.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::SeqCst);
    }

    /// Returns the pages that the file has no hole for, in ascending ranges.
    pub(crate) fn written(&self, page_bytes: u64) -> io::Result<Vec<Range<u64>>> {
        let mut written: Vec<Range<u64>> = Vec::new();
        let mut at = 0;
        loop {
            // At the end of the data there is no such offset.
            let start = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Err(Errno::NXIO) => return Ok(written),
                found => found?,
            };
            at = rustix::fs::seek(&self.file, SeekFrom::Hole(start))?;
            let first = (start / page_bytes).max(written.last().map_or(0, |last| last.end));
            written.push(first..at.div_ceil(page_bytes));
        }
    }
}

impl Drop for Contents {
    fn drop(&mut self) {
        if let (Some(path), false) = (&self.made, *self.is_kept.get_mut()) {
            // A file that is gone already needs no removal.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Backing for Contents {
    fn read(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, offset)
    }

    fn clear(&self, offset: u64, length: u64) -> io::Result<()> {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, hole, offset, length) {
            // Not every file system has holes. Zeros read the same.
            Err(Errno::OPNOTSUPP) => self.file.write_all_at(&vec![0; length as usize], offset),
            cleared => Ok(cleared?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a file that was made for a drive is gone if the drive was not served. Other files stay.
    #[test]
    fn only_a_file_that_was_made_in_vain_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contents");
        drop(Contents::open(&path, 4_096).unwrap());
        assert!(!path.exists());
        std::fs::write(&path, [7; 4_096]).unwrap();
        drop(Contents::open(&path, 4_096).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), [7; 4_096]);
    }

    /// The rule: a file is found again with the pages that were written and not cleared, whatever the size of a page
    /// of the drive.
    #[test]
    fn a_file_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contents");
        let contents = Contents::open(&path, 1 << 20).unwrap();
        contents.keep();
        for page in [3, 4, 9, 11] {
            contents.write(page * 16_384, &[page as u8; 16_384]).unwrap();
        }
        contents.clear(9 * 16_384, 16_384).unwrap();
        assert!(
            Contents::open(&path, 1 << 20).is_err_and(|error| error.to_string().contains("another server"))
        );
        drop(contents);
        let contents = Contents::open(&path, 1 << 20).unwrap();
        assert_eq!(contents.written(16_384).unwrap(), [3..5, 11..12]);
        assert_eq!(contents.written(1 << 20).unwrap(), [0..1, 1..1]);
        let mut page = [0; 16_384];
        contents.read(4 * 16_384, &mut page).unwrap();
        assert_eq!(page, [4; 16_384]);
        drop(contents);
        assert!(
            Contents::open(&path, 2 << 20).is_err_and(|error| error.to_string().contains("1048576 bytes"))
        );
        assert!(Contents::open(folder.path(), 1 << 20).is_err());
    }
}
