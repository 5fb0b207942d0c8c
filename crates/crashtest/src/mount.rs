//! Mounts a folder with FUSE. The kernel may cache bytes and names, since it alone changes them. It writes each `write`
//! through at once, and the pages of a mapping when it is synced or when the kernel stores them by itself, as it does
//! for a disk.

use crate::power::Power;
use fulgurite_folder::{Attributes, Folder, FolderError, Kind, Onto, ROOT};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, Session, SessionACL,
    TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;
use rustix::mount::UnmountFlags;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time for which the kernel may keep names. Nothing else changes them.
const TTL: Duration = Duration::from_secs(3_600);

/// The mode bits of `fallocate`: `FALLOC_FL_KEEP_SIZE`, `FALLOC_FL_PUNCH_HOLE`, `FALLOC_FL_ZERO_RANGE`.
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;

/// The size of a block in bytes.
const BLOCK_BYTES: u32 = 4_096;

/// A mount, which ends when this value is dropped.
pub(crate) struct Mount {
    at: PathBuf,
    _session: BackgroundSession,
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A process that was killed may be about to leave the folder, so that a plain unmount would fail. Only root may
        // do this; for others the session does the same by a helper program.
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
    }
}

/// Mounts the folder of `power` on `at`.
pub(crate) fn mount(power: Arc<Power>, at: &Path) -> io::Result<Mount> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("fulgurite".to_owned()), MountOption::NoAtime];
    // A program that root tests may change its user, as database servers want.
    config.acl = if rustix::process::geteuid().is_root() { SessionACL::All } else { SessionACL::Owner };
    let session = Session::new(Mounted { power, listings: Mutex::default() }, at, &config)?.spawn()?;
    Ok(Mount { at: at.to_owned(), _session: session })
}

/// The entries of a folder when it was opened, so that a program that removes them while it reads sees each.
type Listing = Vec<(u64, FileType, OsString)>;

struct Mounted {
    power: Arc<Power>,
    /// The last handle of an open folder, and the entries by handle.
    listings: Mutex<(u64, BTreeMap<u64, Listing>)>,
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

fn errno(error: FolderError) -> Errno {
    Errno::from_i32(error.errno())
}

/// Returns the attributes of an inode. It belongs to whoever looks, since the folder knows no owners.
fn attributes(folder: &Folder, inode: u64, request: &Request) -> Result<FileAttr, FolderError> {
    let Attributes { kind, mode, size, links, mtime } = folder.attributes(inode)?;
    let time = UNIX_EPOCH + Duration::from_secs(mtime.max(0) as u64);
    Ok(FileAttr {
        ino: INodeNo(inode),
        size,
        blocks: size.div_ceil(512),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: file_type(kind),
        perm: mode as u16 & 0o7777,
        nlink: links,
        uid: request.uid(),
        gid: request.gid(),
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    })
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Folder => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
    }
}

fn entry(reply: ReplyEntry, result: Result<FileAttr, FolderError>) {
    match result {
        // The kernel asks for attributes each time, because they depend on who looks.
        Ok(attributes) => reply.entry_with_ttls(&TTL, &Duration::ZERO, &attributes, Generation(0)),
        Err(error) => reply.error(errno(error)),
    }
}

fn empty(reply: ReplyEmpty, result: Result<(), FolderError>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn in_words(verb: &str, name: &OsStr) -> String {
    format!("{verb} of {}", name.display())
}

impl Filesystem for Mounted {
    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.power.look(reply, |folder, reply| {
            let found = folder.lookup(parent.0, name.as_bytes());
            entry(reply, found.and_then(|inode| attributes(folder, inode, request)));
        });
    }

    fn getattr(&self, request: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.power.look(reply, |folder, reply| match attributes(folder, inode.0, request) {
            Ok(attributes) => reply.attr(&Duration::ZERO, &attributes),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let answer = |reply: ReplyAttr, result: Result<FileAttr, FolderError>| match result {
            Ok(attributes) => reply.attr(&Duration::ZERO, &attributes),
            Err(error) => reply.error(errno(error)),
        };
        // Owners and times are accepted and have no effect, so they are no operation.
        if size.is_none() && mode.is_none() {
            let look = |folder: &mut Folder, reply| answer(reply, attributes(folder, inode.0, request));
            return self.power.look(reply, look);
        }
        let words = || match size {
            Some(size) => format!("truncation to {size} bytes"),
            None => "change of mode".to_owned(),
        };
        let perform = |folder: &mut Folder| {
            size.map_or(Ok(()), |size| folder.truncate(inode.0, size, now()))?;
            mode.map_or(Ok(()), |mode| folder.set_mode(inode.0, mode & 0o7777))?;
            attributes(folder, inode.0, request)
        };
        self.power.change(words, reply, perform, answer);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        self.power.look(reply, |folder, reply| match folder.read_link(inode.0) {
            Ok(target) => reply.data(target),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let perform = |folder: &mut Folder| {
            let inode = folder.mkdir(parent.0, name.as_bytes(), mode & !umask & 0o7777, now())?;
            attributes(folder, inode, request)
        };
        self.power.change(|| in_words("creation", name), reply, perform, entry);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let perform = |folder: &mut Folder| {
            let target = target.as_os_str().as_bytes();
            let inode = folder.symlink(parent.0, name.as_bytes(), target, now())?;
            attributes(folder, inode, request)
        };
        self.power.change(|| in_words("creation", name), reply, perform, entry);
    }

    fn link(&self, request: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let perform = |folder: &mut Folder| {
            folder.link(inode.0, parent.0, name.as_bytes(), now())?;
            attributes(folder, inode.0, request)
        };
        self.power.change(|| in_words("link", name), reply, perform, entry);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let perform = |folder: &mut Folder| folder.unlink(parent.0, name.as_bytes(), now());
        self.power.change(|| in_words("removal", name), reply, perform, empty);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let perform = |folder: &mut Folder| folder.rmdir(parent.0, name.as_bytes(), now());
        self.power.change(|| in_words("removal", name), reply, perform, empty);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let onto = if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            Onto::Exchange
        } else if flags.contains(RenameFlags::RENAME_NOREPLACE) {
            Onto::Refuse
        } else {
            Onto::Replace
        };
        let (from, to) = ((parent.0, name.as_bytes()), (new_parent.0, new_name.as_bytes()));
        let words = || format!("rename of {} to {}", name.display(), new_name.display());
        self.power.change(words, reply, |folder| folder.rename(from, to, onto, now()), empty);
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.power.look(reply, |folder, reply| match folder.open(inode.0) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let perform = |folder: &mut Folder| {
            let inode = folder.create(parent.0, name.as_bytes(), mode & !umask & 0o7777, now())?;
            folder.open(inode)?;
            attributes(folder, inode, request)
        };
        let answer = |reply: ReplyCreate, result: Result<FileAttr, FolderError>| match result {
            Ok(attributes) => {
                reply.created(&TTL, &attributes, Generation(0), FileHandle(0), FopenFlags::empty());
            }
            Err(error) => reply.error(errno(error)),
        };
        self.power.change(|| in_words("creation", name), reply, perform, answer);
    }

    fn release(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.power.look(reply, |folder, reply| {
            folder.close(inode.0);
            reply.ok();
        });
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.power.look(reply, |folder, reply| {
            let mut bytes = Vec::new();
            match folder.read(inode.0, offset, size as usize, &mut bytes) {
                Ok(()) => reply.data(&bytes),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        kind: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_synchronous = flags.0 & (OFlags::SYNC | OFlags::DSYNC).bits() as i32 != 0;
        let perform = |folder: &mut Folder| {
            folder.write(inode.0, offset, data, now())?;
            if is_synchronous { folder.sync(inode.0) } else { Ok(()) }
        };
        let answer = |reply: ReplyWrite, result: Result<(), FolderError>| match result {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(errno(error)),
        };
        let words = || format!("write of {} bytes at {offset}", data.len());
        if kind.contains(WriteFlags::FUSE_WRITE_CACHE) {
            return answer(reply, self.power.write_back(words, perform));
        }
        self.power.change(words, reply, perform, answer);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A program that closes a file has synced nothing.
        self.power.look(reply, |_, reply| reply.ok());
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.power.sync(|| "sync of a file".to_owned(), reply, inode.0, empty);
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.power.sync(|| "sync of a folder".to_owned(), reply, inode.0, empty);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let perform = |folder: &mut Folder| {
            if mode & (PUNCH_HOLE | ZERO_RANGE) != 0 {
                folder.zero(inode.0, offset, length, now())?;
            }
            let end = offset.checked_add(length).ok_or(FolderError::TooLarge)?;
            match folder.attributes(inode.0)?.size {
                size if size < end && mode & KEEP_SIZE == 0 => folder.truncate(inode.0, end, now()),
                _ => Ok(()),
            }
        };
        self.power.change(|| format!("allocation of {length} bytes at {offset}"), reply, perform, empty);
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.power.look(reply, |folder, reply| {
            let entries = match folder.entries(inode.0) {
                Ok(entries) => entries,
                Err(error) => return reply.error(errno(error)),
            };
            // The kernel resolves both dots by itself; their inode numbers are for show.
            let dots = [(&b"."[..], ROOT), (&b".."[..], ROOT)].into_iter();
            let listing = dots.chain(entries).map(|(name, inode)| {
                let kind =
                    folder.attributes(inode).map_or(FileType::Directory, |found| file_type(found.kind));
                (inode, kind, OsStr::from_bytes(name).to_owned())
            });
            let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
            listings.0 += 1;
            let handle = listings.0;
            listings.1.insert(handle, listing.collect());
            reply.opened(FileHandle(handle), FopenFlags::empty());
        });
    }

    fn readdir(&self, _: &Request, _: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        self.power.look(reply, |_, mut reply| {
            let listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
            let listing = listings.1.get(&handle.0).map_or(&[][..], Vec::as_slice);
            for (at, (inode, kind, name)) in listing.iter().enumerate().skip(offset as usize) {
                if reply.add(INodeNo(*inode), at as u64 + 1, *kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.power.look(reply, |_, reply| {
            self.listings.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&handle.0);
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.power.look(reply, |folder, reply| {
            let blocks = folder.rules().bytes / u64::from(BLOCK_BYTES);
            let free = blocks.saturating_sub(folder.bytes_used() / u64::from(BLOCK_BYTES));
            reply.statfs(blocks, free, free, 1 << 20, 1 << 20, BLOCK_BYTES, 255, BLOCK_BYTES);
        });
    }
}
