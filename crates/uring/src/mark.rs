//! The mark behind the last page of a drive that Fulgurite made, and how such a drive is made.
//!
//! The mark also says what was under way, since that may have been interrupted: the drive was being made or made larger,
//! or data were being loaded into it. So what an interrupted command leaves is known as ours.

use rustix::fs::SeekFrom;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What a mark begins with, by what it says.
const WHOLE: &[u8; 24] = b"fulgurite drive, mark 1\n";
const MAKING: &[u8; 24] = b"fulgurite drive, making\n";
const LOADING: &[u8; 24] = b"fulgurite drive, loading";

/// The mark has a block of its own, the largest that direct I/O may ask for.
pub(crate) const MARK_BYTES: u64 = 4096;

/// A new drive is written once, in pieces of this size: otherwise its first reads would find holes and its
/// first writes would pay for filling them.
const FILL_BYTES: usize = 1 << 20;

/// What stands behind the last page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Fulgurite made the drive.
    Whole,
    /// It was being made, or made larger, and only its first bytes are those of a drive.
    Making {
        /// How many they are.
        kept: u64,
    },
    /// Data were being loaded, so what it holds may be gone.
    Loading,
}

impl Mark {
    /// The mark that stands at `place`, if there is one.
    pub fn read(file: &File, place: u64) -> Option<Mark> {
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

/// Where the mark of a drive of `bytes` bytes, all together, stands: in the last whole block.
pub(crate) fn place(bytes: u64) -> u64 {
    (bytes / MARK_BYTES * MARK_BYTES).saturating_sub(MARK_BYTES)
}

/// Makes the file at `path` a drive of `bytes` bytes, with zeros from `kept` on, and the mark behind them.
pub(crate) fn make(path: &Path, kept: u64, bytes: u64, is_block_device: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let end = if is_block_device {
        // The mark is looked for at the end of the device, and the pages in use may end before it.
        place(rustix::fs::seek(&file, SeekFrom::End(0))?)
    } else {
        file.set_len(bytes + MARK_BYTES)?;
        bytes
    };
    // This comes first and is durable, so that the drive is known as ours whenever the filling is interrupted.
    Mark::Making { kept }.write(&file, end)?;
    file.sync_all()?;
    let zeros = vec![0; FILL_BYTES];
    let mut at = kept;
    while at < bytes {
        let len = (bytes - at).min(FILL_BYTES as u64);
        file.write_all_at(&zeros[..len as usize], at)?;
        at += len;
    }
    // An interrupted filling must not leave a drive that looks complete.
    file.sync_all()?;
    Mark::Whole.write(&file, bytes)?;
    Mark::Whole.write(&file, end)?;
    file.sync_all()
}

/// Makes an empty file a drive of `bytes` bytes, a multiple of 4096, that reads as zeros. It takes up room as it
/// is written, unlike a drive that opening makes: a disk that is full by then is an error of the write.
pub fn make_sparse(file: &File, bytes: u64) -> io::Result<()> {
    // The length comes first: a disk that does not take it shall fail before anything is written.
    file.set_len(bytes + MARK_BYTES)?;
    Mark::Whole.write(file, bytes)
}

/// Whether Fulgurite made the file at `path` as a drive.
pub fn is_drive(path: &Path) -> bool {
    found(path).is_some()
}

/// Whether a load into the drive at `path` was begun and has not ended, so that its contents are half of something.
pub fn is_half_loaded(path: &Path) -> bool {
    found(path) == Some(Mark::Loading)
}

fn found(path: &Path) -> Option<Mark> {
    let file = File::open(path).ok()?;
    let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).ok()?;
    Mark::read(&file, place(bytes))
}

/// Notes in the mark of the drive at `path`, which Fulgurite made, that a load into it begins or has ended.
///
/// Fails where the drive cannot be written.
pub fn mark_loading(path: &Path, begins: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let bytes = rustix::fs::seek(&file, SeekFrom::End(0))?;
    let mark = if begins { Mark::Loading } else { Mark::Whole };
    mark.write(&file, place(bytes))?;
    file.sync_all()
}
