//! A folder with one file, `drive`, whose bytes are those of the served drive, through FUSE.
//!
//! The file is opened without a cache of the kernel, so each system call reaches the drive. `fsync` is a flush, and a
//! hole made by `fallocate` is a trim. A thread takes the kernel's requests and hands those about the drive to the
//! server's loop, which answers them.

use crate::watch::Bell;
use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Session, SessionACL, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

/// The name of the file.
pub(crate) const FILE: &str = "drive";

const ROOT: u64 = 1;
const DRIVE: u64 = 2;

/// The time for which the kernel may keep attributes. They never change.
const TTL: Duration = Duration::from_secs(3600);

/// The most requests that wait for the server.
const WAITING_AT_MOST: usize = 1_024;

/// The most asynchronous requests that the kernel sends before one of them is answered.
const ASYNCHRONOUS_AT_MOST: u16 = 256;

/// The mode bits of `fallocate` that make a hole: `FALLOC_FL_PUNCH_HOLE` and `FALLOC_FL_ZERO_RANGE`.
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;

/// A request about the drive.
pub(crate) enum Asked {
    Read { offset: u64, length: u32, reply: ReplyData },
    Write { offset: u64, data: Vec<u8>, durable: bool, reply: ReplyWrite },
    Zero { offset: u64, length: u64, reply: ReplyEmpty },
    Flush { reply: ReplyEmpty },
}

/// The answer that a request waits for.
pub(crate) enum Ticket {
    Read { offset: u64, length: u32, reply: ReplyData },
    Write { bytes: u32, reply: ReplyWrite },
    Empty(ReplyEmpty),
}

impl Ticket {
    /// Answers with an error.
    pub(crate) fn fail(self, errno: Errno) {
        match self {
            Ticket::Read { reply, .. } => reply.error(errno),
            Ticket::Write { reply, .. } => reply.error(errno),
            Ticket::Empty(reply) => reply.error(errno),
        }
    }
}

/// A mounted folder. It is unmounted when this value is dropped.
pub(crate) struct Mounted {
    /// The requests of the kernel.
    pub requests: Receiver<Asked>,
    /// Becomes readable when there are requests.
    pub bell: Bell,
    _session: fuser::BackgroundSession,
}

/// Mounts the folder on `folder`, which must be an empty folder. Its file has `bytes` bytes.
pub(crate) fn mount(folder: &Path, bytes: u64, block_bytes: u32) -> io::Result<Mounted> {
    // The system would also cover a file, below which nobody finds the drive, and files that a user misses.
    if std::fs::read_dir(folder)?.next().is_some() {
        return Err(io::ErrorKind::DirectoryNotEmpty.into());
    }
    let bell = Bell::new()?;
    let (sender, requests) = sync_channel(WAITING_AT_MOST);
    let now = SystemTime::now();
    let folder_of_drive = Folder { bytes, block_bytes, sender, bell: bell.clone(), made: now };
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("fulgurite".to_owned()), MountOption::NoAtime];
    config.acl = SessionACL::Owner;
    let session = Session::new(folder_of_drive, folder, &config)?.spawn()?;
    Ok(Mounted { requests, bell, _session: session })
}

struct Folder {
    bytes: u64,
    block_bytes: u32,
    sender: SyncSender<Asked>,
    bell: Bell,
    made: SystemTime,
}

impl Folder {
    fn attributes(&self, inode: u64) -> FileAttr {
        let is_drive = inode == DRIVE;
        FileAttr {
            ino: INodeNo(inode),
            size: if is_drive { self.bytes } else { 0 },
            blocks: if is_drive { self.bytes / 512 } else { 0 },
            atime: self.made,
            mtime: self.made,
            ctime: self.made,
            crtime: self.made,
            kind: if is_drive { FileType::RegularFile } else { FileType::Directory },
            perm: if is_drive { 0o600 } else { 0o700 },
            nlink: if is_drive { 1 } else { 2 },
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: self.block_bytes,
            flags: 0,
        }
    }

    /// Hands a request to the server's loop. Without a server, the request is dropped, which answers it with an error.
    fn hand(&self, asked: Asked) {
        if self.sender.send(asked).is_ok() {
            self.bell.ring();
        }
    }

    /// Returns the part of a range that lies in the file.
    fn within(&self, offset: u64, length: u64) -> u64 {
        self.bytes.saturating_sub(offset).min(length)
    }
}

impl Filesystem for Folder {
    /// Lets the kernel send asynchronous requests, those of a loop device for one, without waiting for each answer.
    /// A kernel that cannot do so sends them one at a time.
    fn init(&mut self, _: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        if config.add_capabilities(InitFlags::FUSE_ASYNC_DIO).is_ok() {
            // A number other than 0 is always accepted.
            let _ = config.set_max_background(ASYNCHRONOUS_AT_MOST);
        }
        Ok(())
    }

    fn lookup(&self, _: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent.0 == ROOT && name == FILE {
            reply.entry(&TTL, &self.attributes(DRIVE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &fuser::Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match inode.0 {
            ROOT | DRIVE => reply.attr(&TTL, &self.attributes(inode.0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _: &fuser::Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A drive keeps its size, as a block device does. Other attributes are accepted and have no effect.
        match size {
            Some(size) if size != self.bytes && inode.0 == DRIVE => reply.error(Errno::EPERM),
            _ => reply.attr(&TTL, &self.attributes(inode.0)),
        }
    }

    fn open(&self, _: &fuser::Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode.0 != DRIVE {
            return reply.error(Errno::EISDIR);
        }
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.within(offset, u64::from(size)) {
            0 => reply.data(&[]),
            length => self.hand(Asked::Read { offset, length: length as u32, reply }),
        }
    }

    fn write(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let length = self.within(offset, data.len() as u64);
        if length == 0 && !data.is_empty() {
            return reply.error(Errno::ENOSPC);
        }
        let synchronous = (rustix::fs::OFlags::SYNC | rustix::fs::OFlags::DSYNC).bits() as i32;
        let durable = flags.0 & synchronous != 0;
        self.hand(Asked::Write { offset, data: data[..length as usize].to_vec(), durable, reply });
    }

    fn flush(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A program that closes a file has flushed nothing.
        reply.ok();
    }

    fn fsync(&self, _: &fuser::Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.hand(Asked::Flush { reply });
    }

    fn fallocate(
        &self,
        _: &fuser::Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let length = self.within(offset, length);
        if mode & (PUNCH_HOLE | ZERO_RANGE) != 0 {
            self.hand(Asked::Zero { offset, length, reply });
        } else {
            // The space of a drive is always there.
            reply.ok();
        }
    }

    fn readdir(
        &self,
        _: &fuser::Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode.0 != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (ROOT, FileType::Directory, "."),
            (ROOT, FileType::Directory, ".."),
            (DRIVE, FileType::RegularFile, FILE),
        ];
        for (at, (inode, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(INodeNo(inode), at as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &fuser::Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = self.bytes / u64::from(self.block_bytes);
        reply.statfs(blocks, 0, 0, 1, 0, self.block_bytes, 255, self.block_bytes);
    }
}
