//! A synchronous device: it executes one command after the other with plain system calls. It is slow and
//! simple, and works on every Unix.

use crate::drive_file::{DriveFile, DriveOptions, OpenError};
use fulgurite_base::Nanos;
use fulgurite_device::{
    Arena, Buffer, Caps, Command, Completion, Device, Failure, IoError, Operation, QueueFull,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A real drive without concurrency: commands wait in a queue, and each [`Device::wait`] executes one.
pub struct PsyncDevice {
    drive: DriveFile,
    queue: VecDeque<Command>,
    /// The buffer for commands that have none.
    scratch: Arc<Arena>,
    opened: Instant,
}

impl PsyncDevice {
    /// Opens the drive at `path`, and creates or enlarges it if necessary.
    pub fn open(path: &Path, options: &DriveOptions) -> Result<PsyncDevice, OpenError> {
        let drive = DriveFile::open(path, options)?;
        let longest = drive.caps.page_bytes as usize * drive.caps.pages_per_command as usize;
        Ok(PsyncDevice {
            drive,
            queue: VecDeque::new(),
            scratch: Arena::new(longest),
            opened: Instant::now(),
        })
    }
}

/// Executes a command with plain system calls. `scratch` is the buffer for a command that has none.
pub(crate) fn perform(
    file: &File,
    caps: &Caps,
    scratch: &Arc<Arena>,
    operation: &Operation,
) -> Result<(), IoError> {
    if let Some(fault) = operation.fault(caps) {
        return Err(fault);
    }
    let page = u64::from(caps.page_bytes);
    let scratch = |pages: u32| scratch.buffer(0, pages as usize * page as usize);
    let outcome = match operation {
        Operation::Read { lpn, pages, into } => {
            let buffer: Buffer = into.clone().unwrap_or_else(|| scratch(*pages));
            // SAFETY: from submission to completion the buffer belongs to the device.
            file.read_exact_at(unsafe { buffer.bytes_mut() }, lpn.0 * page)
        }
        Operation::Write { lpn, pages, from, durable, .. } => {
            let buffer: Buffer = from.clone().unwrap_or_else(|| scratch(*pages));
            // SAFETY: from submission to completion no other code changes the buffer.
            write(file, caps, unsafe { buffer.bytes() }, lpn.0 * page, *durable)
        }
        Operation::Trim { pages: 0, .. } => Ok(()),
        Operation::Trim { lpn, pages } => {
            let zeros = vec![0; *pages as usize * page as usize];
            trim(file, lpn.0 * page, &zeros)
        }
        Operation::Share { .. } => return Err(IoError::Unsupported),
        Operation::Flush => file.sync_data(),
    };
    outcome.map_err(|error| IoError::System(Failure::of(operation, &error)))
}

/// Writes all bytes at the address `at`. The write is untorn if the drive supports that, and durable if
/// `durable` is set.
fn write(file: &File, caps: &Caps, mut bytes: &[u8], mut at: u64, durable: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    loop {
        use crate::drive_file::write_flags;
        use rustix::io::{Errno, ReadWriteFlags, pwritev2};
        let flags = write_flags(caps, at, bytes.len() as u32, durable);
        if flags == 0 {
            return file.write_all_at(bytes, at);
        }
        let flags = ReadWriteFlags::from_bits_retain(flags);
        match pwritev2(file, &[io::IoSlice::new(bytes)], at, flags) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) if written == bytes.len() => return Ok(()),
            Ok(written) => (bytes, at) = (&bytes[written..], at + written as u64),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = caps;
        file.write_all_at(bytes, at)?;
        if durable { file.sync_data() } else { Ok(()) }
    }
}

/// Frees the range of bytes, or writes zeros if the file system cannot free it.
fn trim(file: &File, at: u64, zeros: &[u8]) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::FallocateFlags;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(file, flags, at, zeros.len() as u64).is_ok() {
            return Ok(());
        }
    }
    file.write_all_at(zeros, at)
}

impl Device for PsyncDevice {
    fn caps(&self) -> &Caps {
        &self.drive.caps
    }

    fn now(&self) -> Nanos {
        Nanos(self.opened.elapsed().as_nanos() as u64)
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.queue.len() >= self.drive.caps.queue_depth as usize {
            return Err(QueueFull(command));
        }
        self.queue.push_back(command);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        // A command blocks until it ends, so each wait executes one command and returns its completion.
        if let Some(Command { tag, operation }) = self.queue.pop_front() {
            let PsyncDevice { drive, scratch, .. } = self;
            let status = perform(&drive.file, &drive.caps, scratch, &operation);
            completions.push(Completion { tag, at: self.now(), status });
        } else if let Some(deadline) = deadline {
            std::thread::sleep(Duration::from_nanos(deadline.saturating_sub(self.now()).0));
        }
    }
}
