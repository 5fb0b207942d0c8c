//! Opens the file or block device of a drive. A file that does not exist is created, a file or device with
//! Fulgurite's mark is used, and any other one is refused.

use crate::mark::{self, MARK_BYTES, Mark};
use fulgurite_base::units;
use fulgurite_device::Caps;
use rustix::fs::{FileType, FlockOperation, OFlags, Stat};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// The options for opening a real drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveOptions {
    /// The size of a page in bytes, a power of two from 512 to 1 MiB.
    pub page_bytes: u32,
    /// The number of pages of the drive; `None` to use the size of an existing drive.
    pub pages: Option<u64>,
    /// The queue depth: the most commands that may be in flight at once.
    pub queue_depth: u32,
    /// Whether the device polls for completions without sleeping, which uses a core for a lower latency. It
    /// affects io_uring only.
    pub poll: bool,
    /// Whether several threads will use the device, one at a time. A ring for a single thread is a little
    /// cheaper but refuses other threads. It affects io_uring only.
    pub many_threads: bool,
    /// Whether a file or device without Fulgurite's mark may be overwritten.
    pub destroy_contents: bool,
    /// Whether a file that is created or enlarged takes space on the disk only as it is written. A write fails if the
    /// disk is full by then. Otherwise the file is filled once.
    pub sparse: bool,
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
            sparse: false,
        }
    }
}

/// The reason why a drive could not be opened. The drive was not changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A system call failed.
    #[error("{}: {error}", path.display())]
    Io {
        /// The path of the drive.
        path: PathBuf,
        /// The error that the system reported.
        error: io::Error,
    },
    /// The file or device has no mark of Fulgurite.
    #[error(
        "{} was not made by Fulgurite; its contents are kept unless they may be destroyed (--destroy-contents)",
        .0.display()
    )]
    NotOurs(PathBuf),
    /// The drive does not exist, and the options have no size for a new one.
    #[error("{} does not exist; to make it, give its size (size=1GiB)", .0.display())]
    NoSize(PathBuf),
    /// The folder of a new drive does not exist.
    #[error("{} cannot be made: there is no such folder; accepted: a place in a folder that exists", .0.display())]
    NoFolder(PathBuf),
    /// The path leads to a folder, a pipe or a terminal, which cannot store pages.
    #[error("{} is neither a file nor a block device; accepted: one of them", .0.display())]
    NotADrive(PathBuf),
    /// The file holds this command's own input or output, such as `/dev/stdout`.
    #[error("{} is this command's own input or output", .0.display())]
    OwnStream(PathBuf),
    /// This process or another one has the drive open.
    #[error("{} is in use; a drive has one user at a time", .0.display())]
    InUse(PathBuf),
    /// The file system has no room for a new or larger file.
    #[error(
        "{} cannot have {}: its file system has room for {}; accepted: a smaller drive (size=), or another place",
        path.display(), units::humane_size(*bytes), units::humane_size(*free)
    )]
    NoRoom {
        /// The path of the drive.
        path: PathBuf,
        /// The requested size of the drive, in bytes.
        bytes: u64,
        /// The space that is available for the drive, in bytes.
        free: u64,
    },
    /// The block device is smaller than the requested size, and a block device cannot grow.
    #[error("{} has room for {has} pages, {asked} were asked for", path.display())]
    TooSmall {
        /// The path of the drive.
        path: PathBuf,
        /// The number of pages that fit on the device.
        has: u64,
        /// The number of pages that were requested.
        asked: u64,
    },
    /// The page size is not supported.
    #[error("a page of {0} bytes cannot be used; accepted: a power of two from 512 to 1 MiB")]
    PageSize(u32),
    /// The pages are smaller than the sectors of the drive, or than the blocks of its file system.
    #[error(
        "{} reads and writes whole sectors of {sector} bytes, so a page of {page} bytes cannot be used; accepted: \
         page={sector} or more", path.display()
    )]
    Sector {
        /// The path of the drive.
        path: PathBuf,
        /// The size of a page in bytes.
        page: u32,
        /// The size of a sector in bytes.
        sector: u32,
    },
    /// io_uring is not available, or it is forbidden.
    #[error("io_uring cannot be used here ({0}); accepted here: engine=psync")]
    NoUring(io::Error),
}

/// The open file or device of a drive, its capabilities and its lock.
pub(crate) struct DriveFile {
    pub file: Arc<File>,
    pub caps: Caps,
    /// The lock, which keeps other users out until it is dropped.
    _lock: Lock,
}

/// The lock of a drive. Dropping it unlocks the drive.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is released explicitly, because closing the file is not enough: a process that is being
        // started may hold a copy of the file for a moment.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// The kind of file that was found at a path.
pub(crate) enum Found {
    Nothing,
    /// The path leads to a file or a block device.
    Drive {
        /// The number of bytes before the address of the mark.
        bytes: u64,
        /// Whether this is a file of length zero, which has no contents to lose. A block device always has
        /// contents.
        is_empty: bool,
        is_block_device: bool,
        /// The number of bytes that the file occupies on the disk.
        taken: u64,
        /// The mark; `None` if the file or device has no mark.
        mark: Option<Mark>,
    },
}

pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> OpenError + '_ {
    |error| OpenError::Io { path: path.to_owned(), error }
}

pub(crate) fn look(path: &Path) -> Result<Found, OpenError> {
    // The type is checked before the file is opened, because opening a pipe waits for its writer.
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
    let bytes = mark::place(all);
    let mark = Mark::read(&file, bytes).filter(|_| all >= MARK_BYTES);
    // The system counts blocks of 512 bytes, independent of the file system's block size.
    let taken = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
    Ok(Found::Drive { bytes, is_empty: all == 0 && !is_block_device, is_block_device, taken, mark })
}

/// Returns whether standard input, output or error is the file of `stat`. Such a file may still be empty,
/// because its contents are not written yet.
fn is_own_stream(stat: &Stat) -> bool {
    // The device number and the inode number identify a file under any name.
    let same = |stream: BorrowedFd| {
        rustix::fs::fstat(stream).is_ok_and(|own| (own.st_dev, own.st_ino) == (stat.st_dev, stat.st_ino))
    };
    same(io::stdin().as_fd()) || same(io::stdout().as_fd()) || same(io::stderr().as_fd())
}

/// Returns the folder of `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Fails if the file system has no room for a file of `bytes` bytes that occupies `taken` bytes already.
fn check_room(path: &Path, bytes: u64, taken: u64) -> Result<(), OpenError> {
    // If the file system does not report its free space, the check passes and the write itself may fail.
    let Ok(system) = rustix::fs::statvfs(folder_of(path)) else { return Ok(()) };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    match bytes.saturating_add(MARK_BYTES).saturating_sub(taken) <= free {
        true => Ok(()),
        false => Err(OpenError::NoRoom { path: path.to_owned(), bytes, free: free.saturating_add(taken) }),
    }
}

/// Checks whether the drive at `path` can be used with these options. Returns its number of pages, and
/// changes nothing.
pub fn check(path: &Path, options: &DriveOptions) -> Result<u64, OpenError> {
    if !options.page_bytes.is_power_of_two() || !(512..=1 << 20).contains(&options.page_bytes) {
        return Err(OpenError::PageSize(options.page_bytes));
    }
    let no_size = || OpenError::NoSize(path.to_owned());
    let room_for = |pages: u64, taken| match options.sparse {
        true => Ok(pages),
        false => check_room(path, pages.saturating_mul(u64::from(options.page_bytes)), taken).map(|()| pages),
    };
    match look(path)? {
        Found::Nothing if !folder_of(path).is_dir() => Err(OpenError::NoFolder(path.to_owned())),
        Found::Nothing => room_for(options.pages.ok_or_else(no_size)?, 0),
        Found::Drive { mark: None, is_empty: false, .. } if !options.destroy_contents => {
            Err(OpenError::NotOurs(path.to_owned()))
        }
        // A file that is too short for pages and a mark tells no size, so the options must give one.
        Found::Drive { mark: None, bytes: 0, is_block_device: false, taken, .. } => {
            room_for(options.pages.ok_or_else(no_size)?, taken)
        }
        Found::Drive { bytes, is_block_device, taken, mark, .. } => {
            let has = bytes / u64::from(options.page_bytes);
            let asked = options.pages.unwrap_or(has);
            match (is_block_device, asked > has) {
                (true, true) => Err(OpenError::TooSmall { path: path.to_owned(), has, asked }),
                (true, false) => Ok(asked),
                (false, false) if matches!(mark, Some(Mark::Whole | Mark::Loading)) => Ok(asked),
                (false, _) => room_for(asked, taken),
            }
        }
    }
}

impl DriveFile {
    /// Opens the drive at `path`, and makes or enlarges it if necessary.
    pub(crate) fn open(path: &Path, options: &DriveOptions) -> Result<DriveFile, OpenError> {
        let pages = check(path, options)?;
        let lock = lock(path)?;
        // The mark is behind the pages and starts at a whole block, because `look` expects it there.
        let bytes = (pages * u64::from(options.page_bytes)).next_multiple_of(MARK_BYTES);
        // The lock has created the file if it did not exist.
        let (has, is_block_device, is_empty, mark) = match look(path)? {
            Found::Nothing => (0, false, true, None),
            Found::Drive { bytes, is_block_device, is_empty, mark, .. } => {
                (bytes, is_block_device, is_empty, mark)
            }
        };
        if let Some(sector) = sector(path).filter(|sector| !options.page_bytes.is_multiple_of(*sector)) {
            if is_empty {
                let _ = std::fs::remove_file(path);
            }
            return Err(OpenError::Sector { path: path.to_owned(), page: options.page_bytes, sector });
        }
        // `check` accepts a file without a mark only if its contents may be lost, so nothing of it is kept.
        let (kept, whole) = match mark {
            Some(Mark::Whole | Mark::Loading) => (has, true),
            Some(Mark::Making { kept }) => (kept.min(has), false),
            None => (0, false),
        };
        if !whole || bytes > kept {
            let is_filled = is_block_device || !options.sparse;
            mark::make(path, kept, bytes.max(kept), is_block_device, is_filled).map_err(|error| {
                if is_empty {
                    // The incomplete file that a full disk has left is removed, because it has no contents.
                    let _ = std::fs::remove_file(path);
                }
                at(path)(error)
            })?;
        }
        let file = Arc::new(open_direct(path).map_err(at(path))?);
        let caps = Caps {
            page_bytes: options.page_bytes,
            pages,
            queue_depth: options.queue_depth.clamp(1, 4096),
            pages_per_command: (1 << 20) / options.page_bytes,
            atomic_bytes: atomic_bytes(&file),
            durable_writes: true,
            share_pages: 0,
            streams: 1,
            fdp: None,
            zones: None,
            contents: true,
            erase_counts: false,
            erase_pages: 0,
        };
        Ok(DriveFile { file, caps, _lock: lock })
    }
}

/// Opens the drive and locks it for this user before anything is written to it. A file that does not exist is
/// created, so that only one of two concurrent users can create the drive.
fn lock(path: &Path) -> Result<Lock, OpenError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    locked(file.map_err(at(path))?, path, FlockOperation::NonBlockingLockExclusive)
}

/// Locks a file in the mode `how`, without waiting for other users.
pub(crate) fn locked(file: File, path: &Path, how: FlockOperation) -> Result<Lock, OpenError> {
    match rustix::fs::flock(&file, how) {
        Ok(()) => Ok(Lock(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(OpenError::InUse(path.to_owned())),
        Err(error) => Err(at(path)(error.into())),
    }
}

/// Returns the length in bytes of the longest write that the file system and the drive below it never tear
/// (Linux 6.11 and later); 0 if the system guarantees none.
#[cfg(target_os = "linux")]
pub(crate) fn atomic_bytes(file: &File) -> u32 {
    use rustix::fs::{AtFlags, StatxFlags};
    /// The flag `STATX_WRITE_ATOMIC`, which asks for the limits of atomic writes.
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

/// Returns the flags of the system call that writes `bytes` bytes at `at`. The write is untorn if the drive
/// supports that, and durable if `durable` is set.
#[cfg(target_os = "linux")]
pub(crate) fn write_flags(caps: &Caps, at: u64, bytes: u32, durable: bool) -> u32 {
    // The flag `RWF_ATOMIC`: the call fails if the write could be torn.
    const UNTORN: u32 = 0x40;
    const DURABLE: u32 = rustix::io::ReadWriteFlags::DSYNC.bits();
    let is_atomic =
        bytes.is_power_of_two() && bytes <= caps.atomic_bytes && at.is_multiple_of(u64::from(bytes));
    (if is_atomic { UNTORN } else { 0 }) | (if durable { DURABLE } else { 0 })
}

/// Returns the unit of direct I/O in bytes; `None` if the system does not tell it.
#[cfg(target_os = "linux")]
fn sector(path: &Path) -> Option<u32> {
    use rustix::fs::{AtFlags, StatxFlags};
    /// The flag `STATX_DIOALIGN`, of Linux 6.1.
    const ALIGNMENT: StatxFlags = StatxFlags::from_bits_retain(0x2000);
    let found = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::empty(), ALIGNMENT).ok()?;
    Some(found.stx_dio_offset_align).filter(|bytes| *bytes > 0)
}

#[cfg(not(target_os = "linux"))]
fn sector(_: &Path) -> Option<u32> {
    None
}

/// Opens the drive with direct I/O, or through the page cache if the file system has no direct I/O.
fn open_direct(path: &Path) -> io::Result<File> {
    let open = |flags: OFlags| {
        OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path)
    };
    #[cfg(target_os = "linux")]
    match open(OFlags::DIRECT) {
        // File systems without direct I/O answer EINVAL, so the drive is then opened through the page cache.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {}
        outcome => return outcome,
    }
    open(OFlags::empty())
}
