//! The mark behind the last page of a drive that Fulgurite created, and the creation of drives.
//! The mark also tells whether the drive is being created or enlarged, or whether data are being loaded into
//! it. So a drive that an interrupted command has left is still recognised as Fulgurite's.

use rustix::fs::SeekFrom;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The first bytes of each kind of mark.
const WHOLE: &[u8; 24] = b"fulgurite drive, mark 1\n";
const MAKING: &[u8; 24] = b"fulgurite drive, making\n";
const LOADING: &[u8; 24] = b"fulgurite drive, loading";

/// The size of the mark in bytes. The mark has a block of its own, of the largest alignment that direct I/O
/// may need.
pub(crate) const MARK_BYTES: u64 = 4096;

/// The size in bytes of the pieces in which a new drive is filled once. Without the filling, the drive's
/// first reads would find holes, and its first writes would include the allocation of space.
const FILL_BYTES: usize = 1 << 20;

/// The kinds of mark, each a state of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The drive is complete.
    Whole,
    /// The drive is being created or enlarged, and only its first bytes are valid.
    Making {
        /// The number of valid bytes at the start of the drive.
        kept: u64,
    },
    /// Data are being loaded into the drive, so the earlier contents may be lost.
    Loading,
}

impl Mark {
    /// Reads the mark at `place`; `None` if there is none.
    pub(crate) fn read(file: &File, place: u64) -> Option<Mark> {
        let mut bytes = [0; 32];
        file.read_exact_at(&mut bytes, place).ok()?;
        let (text, kept) = bytes.split_first_chunk::<24>()?;
        match text {
            WHOLE => Some(Mark::Whole),
            LOADING => Some(Mark::Loading),
            MAKING => Some(Mark::Making { kept: u64::from_le_bytes(kept.try_into().ok()?) }),
            _ => None,
        }
    }

    fn write(self, file: &File, place: u64) -> io::Result<()> {
        let (text, kept) = match self {
            Mark::Whole => (WHOLE, 0),
            Mark::Loading => (LOADING, 0),
            Mark::Making { kept } => (MAKING, kept),
        };
        let mut block = [0; MARK_BYTES as usize];
        block[..24].copy_from_slice(text);
        block[24..32].copy_from_slice(&kept.to_le_bytes());
        file.write_all_at(&block, place)
    }
}

/// Returns the address of the mark in a file or device of `bytes` bytes: the start of its last whole block.
pub(crate) fn place(bytes: u64) -> u64 {
    (bytes / MARK_BYTES * MARK_BYTES).saturating_sub(MARK_BYTES)
}

/// Turns the file at `path` into a drive of `bytes` bytes, with zeros from `kept` on and the mark behind
/// them. If not `is_filled`, the zeros are not written, so the file takes no space on the disk for them.
pub(crate) fn make(
    path: &Path,
    kept: u64,
    bytes: u64,
    is_block_device: bool,
    is_filled: bool,
) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let end = if is_block_device {
        // The mark is expected at the end of the device, even if the used pages end before it.
        place(rustix::fs::seek(&file, SeekFrom::End(0))?)
    } else {
        // The mark itself makes the file longer, so that a drive is never longer without a mark at its end.
        if file.metadata()?.len() > bytes + MARK_BYTES {
            file.set_len(bytes + MARK_BYTES)?;
        }
        bytes
    };
    // This mark is durable before the filling begins, so that the drive is recognised if the filling is
    // interrupted.
    Mark::Making { kept }.write(&file, end)?;
    file.sync_all()?;
    // A file system without holes is filled.
    let mut at = if !is_filled && clear(&file, kept, end) { bytes } else { kept };
    let zeros = vec![0; FILL_BYTES];
    while at < bytes {
        let len = (bytes - at).min(FILL_BYTES as u64);
        file.write_all_at(&zeros[..len as usize], at)?;
        at += len;
    }
    // The contents must be durable before the mark says that the drive is complete.
    file.sync_all()?;
    Mark::Whole.write(&file, bytes)?;
    Mark::Whole.write(&file, end)?;
    file.sync_all()
}

/// Makes the bytes from `from` up to `to` read as zeros without space on the disk. Returns whether the file system can
/// do this.
fn clear(file: &File, from: u64, to: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::FallocateFlags;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        from == to || rustix::fs::fallocate(file, flags, from, to - from).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        from == to
    }
}

/// Turns an empty file into a drive of `bytes` bytes, a multiple of 4096, that reads as zeros. The drive
/// occupies disk space only as it is written, unlike a drive that is created by opening it. So a write fails
/// if the disk is full by then.
pub fn make_sparse(file: &File, bytes: u64) -> io::Result<()> {
    // The length is set first, so that a file system without room fails before anything is written.
    file.set_len(bytes + MARK_BYTES)?;
    Mark::Whole.write(file, bytes)
}

/// Returns whether Fulgurite created the file at `path` as a drive.
pub fn is_drive(path: &Path) -> bool {
    found(path).is_some()
}

/// Returns whether a load into the drive at `path` has begun and not ended, so that its contents are
/// incomplete.
pub fn is_half_loaded(path: &Path) -> bool {
    found(path) == Some(Mark::Loading)
}

fn found(path: &Path) -> Option<Mark> {
    let file = File::open(path).ok()?;
    let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).ok()?;
    Mark::read(&file, place(bytes))
}

/// Records the begin or the end of a load in the mark of the drive at `path`, which Fulgurite created.
///
/// Fails if the drive cannot be written.
pub fn mark_loading(path: &Path, begins: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let bytes = rustix::fs::seek(&file, SeekFrom::End(0))?;
    let mark = if begins { Mark::Loading } else { Mark::Whole };
    mark.write(&file, place(bytes))?;
    file.sync_all()
}
