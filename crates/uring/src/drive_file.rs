//! The file or block device that is the drive: it is made, recognised by its mark, or refused.

use fulgurite_device::Caps;
use rustix::fs::{FileType, FlockOperation, OFlags, Stat};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What a drive shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveOptions {
    /// Bytes in a page: a power of two, at least 512.
    pub page_bytes: u32,
    /// Pages on the drive; those that an existing drive has, where nothing is said.
    pub pages: Option<u64>,
    /// Commands that may be in flight at once.
    pub queue_depth: u32,
    /// Look for completions without sleeping: a core for less latency. io_uring only.
    pub poll: bool,
    /// Whether several threads will use the device, one at a time. A ring that one thread has for itself is a little
    /// cheaper, and refuses all others. io_uring only.
    pub many_threads: bool,
    /// Whether a file or device that Fulgurite did not make may be overwritten.
    pub destroy_contents: bool,
}

impl Default for DriveOptions {
    fn default() -> DriveOptions {
        DriveOptions {
            page_bytes: 4096,
            pages: None,
            queue_depth: 256,
            poll: false,
            many_threads: false,
            destroy_contents: false,
        }
    }
}

/// Why a drive could not be opened. Nothing was changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// The drive.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// There is something that Fulgurite did not make.
    #[error("{} was not made by Fulgurite; its contents are left alone unless they may be destroyed (--destroy-contents)", .0.display())]
    NotOurs(PathBuf),
    /// There is nothing, and no size for a new drive.
    #[error("{} does not exist; to make it, say how large it shall be (size=1GiB)", .0.display())]
    NoSize(PathBuf),
    /// A new drive needs a folder that exists.
    #[error("{} cannot be made: there is no such folder", .0.display())]
    NoFolder(PathBuf),
    /// A folder, a pipe, a terminal: what cannot hold pages.
    #[error("{} is neither a file nor a block device", .0.display())]
    NotADrive(PathBuf),
    /// A file that holds this command's own input or output, such as `/dev/stdout`.
    #[error("{} is this command's own input or output", .0.display())]
    OwnStream(PathBuf),
    /// Somebody has the drive open: this process or another one.
    #[error("{} is in use; a drive has one user at a time", .0.display())]
    InUse(PathBuf),
    /// A block device cannot grow.
    #[error("{} has room for {has} pages, {asked} were asked for", path.display())]
    TooSmall {
        /// The drive.
        path: PathBuf,
        /// Pages that fit.
        has: u64,
        /// Pages asked for.
        asked: u64,
    },
    /// The page is not a page.
    #[error("a page of {0} bytes cannot be used; accepted: a power of two from 512 to 1 MiB")]
    PageSize(u32),
    /// io_uring is missing or forbidden.
    #[error("io_uring cannot be used here ({0}); psync does without")]
    NoUring(io::Error),
}

/// What stands behind the last page of a drive that is ours.
const MARK: &[u8; 24] = b"fulgurite drive, mark 1\n";
/// The mark has a block of its own, the largest that direct I/O may ask for.
const MARK_BYTES: u64 = 4096;
/// A new drive is written once, in pieces of this size: otherwise its first reads would find holes and its
/// first writes would pay for filling them.
const FILL_BYTES: usize = 1 << 20;

/// An open drive.
pub(crate) struct DriveFile {
    pub file: Arc<File>,
    pub caps: Caps,
    /// Keeps others out as long as it lives.
    _lock: Lock,
}

/// The lock of a drive.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not do: a process that is being started may hold a copy of it for a moment.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// What was found at a path.
pub(crate) enum Found {
    Nothing,
    /// A file or device.
    Drive {
        /// Bytes in front of the mark's place.
        bytes: u64,
        /// A file of no length: it has no contents to lose. A block device always has some.
        is_empty: bool,
        is_block_device: bool,
        /// Whether the mark is there.
        ours: bool,
    },
}

pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> OpenError + '_ {
    |error| OpenError::Io { path: path.to_owned(), error }
}

pub(crate) fn look(path: &Path) -> Result<Found, OpenError> {
    // The type comes before the opening, because opening a pipe waits for its writer.
    let stat = match rustix::fs::stat(path) {
        Ok(stat) => stat,
        Err(rustix::io::Errno::NOENT) => return Ok(Found::Nothing),
        Err(error) => return Err(at(path)(error.into())),
    };
    let is_block_device = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => false,
        FileType::BlockDevice => true,
        _ => return Err(OpenError::NotADrive(path.to_owned())),
    };
    if is_own_stream(&stat) {
        return Err(OpenError::OwnStream(path.to_owned()));
    }
    let file = File::open(path).map_err(at(path))?;
    let all =
        rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0)).map_err(|error| at(path)(error.into()))?;
    // The mark is in the last whole block.
    let bytes = (all / MARK_BYTES * MARK_BYTES).saturating_sub(MARK_BYTES);
    let mut mark = [0; MARK.len()];
    let ours = all >= MARK_BYTES && file.read_exact_at(&mut mark, bytes).is_ok() && mark == *MARK;
    Ok(Found::Drive { bytes, is_empty: all == 0 && !is_block_device, is_block_device, ours })
}

/// Whether standard input, output or error goes to the file of `stat`. Such a file may be empty still: its
/// contents are on their way.
fn is_own_stream(stat: &Stat) -> bool {
    // Device and inode identify a file under any name.
    let same = |stream: BorrowedFd| {
        rustix::fs::fstat(stream).is_ok_and(|own| (own.st_dev, own.st_ino) == (stat.st_dev, stat.st_ino))
    };
    same(io::stdin().as_fd()) || same(io::stdout().as_fd()) || same(io::stderr().as_fd())
}

fn in_a_folder(path: &Path) -> bool {
    path.parent().is_none_or(|folder| folder == Path::new("") || folder.is_dir())
}

/// Whether the drive at `path` may be used as `options` say, and how many pages it has or would have.
/// Nothing is changed.
pub fn check(path: &Path, options: &DriveOptions) -> Result<u64, OpenError> {
    if !options.page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&options.page_bytes) {
        return Err(OpenError::PageSize(options.page_bytes));
    }
    match look(path)? {
        Found::Nothing if !in_a_folder(path) => Err(OpenError::NoFolder(path.to_owned())),
        Found::Nothing => options.pages.ok_or_else(|| OpenError::NoSize(path.to_owned())),
        Found::Drive { ours: false, is_empty: false, .. } if !options.destroy_contents => {
            Err(OpenError::NotOurs(path.to_owned()))
        }
        // A file with no room beside a mark tells no size.
        Found::Drive { ours: false, bytes: 0, is_block_device: false, .. } => {
            options.pages.ok_or_else(|| OpenError::NoSize(path.to_owned()))
        }
        Found::Drive { bytes, is_block_device, .. } => {
            let has = bytes / u64::from(options.page_bytes);
            let asked = options.pages.unwrap_or(has);
            if asked > has && is_block_device {
                return Err(OpenError::TooSmall { path: path.to_owned(), has, asked });
            }
            Ok(asked)
        }
    }
}

impl DriveFile {
    /// Opens the drive at `path`, making or growing it where need be.
    pub fn open(path: &Path, options: &DriveOptions) -> Result<DriveFile, OpenError> {
        let pages = check(path, options)?;
        let lock = lock(path)?;
        // The mark behind the pages starts at a whole block, where `look` expects it.
        let bytes = (pages * u64::from(options.page_bytes)).next_multiple_of(MARK_BYTES);
        let (has, is_block_device, ours) = match look(path)? {
            Found::Nothing => (0, false, false),
            Found::Drive { bytes, is_block_device, ours, .. } => (bytes, is_block_device, ours),
        };
        // Contents that Fulgurite did not write are overwritten from the start.
        let kept = if ours { has } else { 0 };
        if !ours || bytes > kept {
            make(path, kept, bytes, is_block_device).map_err(at(path))?;
        }
        let file = Arc::new(open_direct(path).map_err(at(path))?);
        let caps = Caps {
            page_bytes: options.page_bytes,
            pages,
            queue_depth: options.queue_depth.clamp(1, 4096),
            pages_per_command: (1 << 20) / options.page_bytes,
            atomic_bytes: atomic_bytes(&file),
            share: false,
            streams: 1,
            contents: true,
            erase_counts: false,
        };
        Ok(DriveFile { file, caps, _lock: lock })
    }
}

/// Opens the drive and locks it for this user alone, before anything is written to it. A file that does not exist is
/// made, so that of two who would make it one is refused.
fn lock(path: &Path) -> Result<Lock, OpenError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    locked(file.map_err(at(path))?, path, FlockOperation::NonBlockingLockExclusive)
}

/// Locks a file as `how` says, without waiting.
pub(crate) fn locked(file: File, path: &Path, how: FlockOperation) -> Result<Lock, OpenError> {
    match rustix::fs::flock(&file, how) {
        Ok(()) => Ok(Lock(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse(path.to_owned())),
        Err(error) => Err(at(path)(error.into())),
    }
}

/// Writes zeros from `from` up to `bytes`, and the mark behind them.
fn make(path: &Path, from: u64, bytes: u64, is_block_device: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    let zeros = vec![0; FILL_BYTES];
    let mut at = from;
    while at < bytes {
        let len = (bytes - at).min(FILL_BYTES as u64);
        file.write_all_at(&zeros[..len as usize], at)?;
        at += len;
    }
    // The mark comes last: an interrupted filling leaves no drive that looks complete.
    let mark = mark();
    file.write_all_at(&mark, bytes)?;
    if is_block_device {
        // The mark is looked for at the end of the device, and the pages in use may end before it.
        let end = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
        file.write_all_at(&mark, (end / MARK_BYTES * MARK_BYTES).saturating_sub(MARK_BYTES))?;
    } else {
        file.set_len(bytes + MARK_BYTES)?;
    }
    file.sync_all()
}

/// The block behind the last page of a drive that is ours.
fn mark() -> [u8; MARK_BYTES as usize] {
    let mut mark = [0; MARK_BYTES as usize];
    mark[..MARK.len()].copy_from_slice(MARK);
    mark
}

/// Makes an empty file a drive of `bytes` bytes, a multiple of 4096, that reads as zeros. It takes up room as it
/// is written, unlike a drive that opening makes: a disk that is full by then is an error of the write.
pub fn make_sparse(file: &File, bytes: u64) -> io::Result<()> {
    // The length comes first: a disk that does not take it shall fail before anything is written.
    file.set_len(bytes + MARK_BYTES)?;
    file.write_all_at(&mark(), bytes)
}

/// The longest write that the file system and the drive below it never tear (Linux 6.11 and later), in bytes; 0 where
/// they promise none.
#[cfg(target_os = "linux")]
pub(crate) fn atomic_bytes(file: &File) -> u32 {
    use rustix::fs::{AtFlags, StatxFlags};
    /// `STATX_WRITE_ATOMIC`.
    const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x1_0000);
    match rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC) {
        Ok(stat) if stat.stx_mask & WRITE_ATOMIC.bits() != 0 => stat.stx_atomic_write_unit_max,
        _ => 0,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn atomic_bytes(_file: &File) -> u32 {
    0
}

/// Whether a write of `bytes` at `at` can be asked to be untorn of a drive with these capabilities.
#[cfg(target_os = "linux")]
pub(crate) fn is_atomic(caps: &Caps, at: u64, bytes: u32) -> bool {
    bytes.is_power_of_two() && bytes <= caps.atomic_bytes && at.is_multiple_of(u64::from(bytes))
}

/// `RWF_ATOMIC`: the system call fails if the write cannot be kept untorn.
#[cfg(target_os = "linux")]
pub(crate) const UNTORN: u32 = 0x40;

/// Opens without the page cache, or with it where the file system knows no other way.
fn open_direct(path: &Path) -> io::Result<File> {
    let open = |flags: OFlags| {
        OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
    };
    #[cfg(target_os = "linux")]
    match open(OFlags::DIRECT) {
        // File systems without direct I/O answer EINVAL.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {}
        outcome => return outcome,
    }
    open(OFlags::empty())
}
