//! A device that keeps many commands in flight through io_uring.
//!
//! Submitted commands are collected and passed to the kernel together by the next [`Device::wait`], so that a
//! batch costs one system call. The file and the memory given to [`Device::register`] are registered with the
//! ring, so the kernel need not look up the file and map the memory for every command. A command that
//! transfers too few bytes or is interrupted continues at the byte where it stopped.
//!
//! If several threads use the device, a single command is faster if the waiting thread executes it with a
//! plain system call: see [`Device::take_errand`].

use crate::drive_file::{DriveFile, DriveOptions, OpenError, write_flags};
use crate::parker::{RingParker, refusal};
use crate::psync::perform;
use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{
    Arena, Buffer, Caps, Command, Completion, Device, Doing, Errand, Failure, IoError, Operation, Park,
    QueueFull, Tag,
};
use io_uring::squeue::Entry;
use io_uring::{IoUring, Probe, opcode, types};
use rustix::io::Errno;
use slab::Slab;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The drive's file, as it is registered with the ring.
const FILE: types::Fixed = types::Fixed(0);
/// The most arenas that can be registered with the ring.
const ARENAS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandKind {
    Read,
    Write,
    Trim,
    Flush,
}

/// A command in flight. Its buffer keeps the memory allocated.
struct Flight {
    tag: Tag,
    kind: CommandKind,
    buffer: Option<Buffer>,
    /// The number of transferred bytes, the start address, and the number of all bytes.
    done: u32,
    at: u64,
    bytes: u32,
    /// The registered arena of the buffer; `None` if the buffer's arena is not registered.
    arena: Option<u16>,
    durable: bool,
}

impl Flight {
    /// Returns the failure of the command with the system's error code.
    fn failure(&self, code: Option<i32>, page_bytes: u32) -> Failure {
        let doing = match self.kind {
            CommandKind::Read => Doing::Read,
            CommandKind::Write => Doing::Write,
            CommandKind::Trim => Doing::Trim,
            CommandKind::Flush => Doing::Flush,
        };
        let lpn = Lpn(self.at / u64::from(page_bytes));
        Failure { doing, lpn, pages: self.bytes / page_bytes, code }
    }
}

/// A real drive that is used through io_uring.
pub struct UringDevice {
    ring: IoUring,
    drive: DriveFile,
    /// The commands submitted since the last wait.
    fresh: Vec<Command>,
    /// The number of commands that waiting threads execute as errands.
    errands: usize,
    flights: Slab<Flight>,
    /// The commands that ended without a system call, with their outcomes.
    answered: Vec<(Tag, Result<(), IoError>)>,
    /// The registered arenas, each with its first address and its length.
    arenas: Vec<(Arc<Arena>, usize, usize)>,
    can_register: bool,
    /// The buffer for commands that have none.
    scratch: Arc<Arena>,
    poll: bool,
    /// The parker, which lets threads wait for the ring; `None` if only one thread uses the device.
    parker: Option<Arc<RingParker>>,
    /// The system's error code if it refuses to enter the ring, as some containers do. Every command fails then.
    refused: Option<i32>,
    opened: Instant,
}

impl UringDevice {
    /// Opens the drive at `path`, and creates or enlarges it if necessary.
    pub fn open(path: &Path, options: &DriveOptions) -> Result<UringDevice, OpenError> {
        let drive = DriveFile::open(path, options)?;
        let ring = Self::ring(drive.caps.queue_depth, options).map_err(OpenError::NoUring)?;
        ring.submitter().register_files(&[drive.file.as_raw_fd()]).map_err(OpenError::NoUring)?;
        // Without registration, or without the right to lock memory, the kernel maps the buffer of every
        // command. Registration touches all of the memory, which takes half a second for each GiB. That is
        // too long for a store with several threads. These threads execute most commands themselves, so
        // registration would gain little.
        let can_register = !options.many_threads && ring.submitter().register_buffers_sparse(ARENAS).is_ok();
        // SAFETY: the ring is open, and it outlives this borrow of its file.
        let file = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) };
        let parker =
            options.many_threads.then(|| RingParker::new(file)).transpose().map_err(OpenError::NoUring)?;
        let longest = drive.caps.page_bytes as usize * drive.caps.pages_per_command as usize;
        let mut device = UringDevice {
            ring,
            drive,
            fresh: Vec::new(),
            errands: 0,
            flights: Slab::new(),
            answered: Vec::new(),
            arenas: Vec::new(),
            can_register,
            scratch: Arena::new(longest),
            poll: options.poll,
            parker: parker.map(Arc::new),
            refused: None,
            opened: Instant::now(),
        };
        let scratch = Arc::clone(&device.scratch);
        device.register(&scratch);
        Ok(device)
    }

    /// Creates a ring. It uses the cheaper modes of newer kernels if they are supported and a single thread
    /// uses the ring.
    fn ring(depth: u32, options: &DriveOptions) -> std::io::Result<IoUring> {
        let mut builder = IoUring::builder();
        if !options.poll && !options.many_threads {
            // With these flags, completions appear only when the thread enters the kernel.
            builder.setup_single_issuer().setup_coop_taskrun().setup_defer_taskrun();
        }
        // Older kernels refuse these flags; a ring without them is then used.
        let ring = builder.build(depth).or_else(|_| IoUring::new(depth))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed =
            [opcode::ReadFixed::CODE, opcode::WriteFixed::CODE, opcode::Fsync::CODE, opcode::Fallocate::CODE];
        match needed.iter().all(|code| probe.is_supported(*code)) {
            true => Ok(ring),
            false => Err(std::io::Error::other("the kernel is too old")),
        }
    }

    /// Returns the submission entry for the rest of a command.
    fn entry(&self, key: usize) -> Entry {
        let flight = &self.flights[key];
        let (left, at) = (flight.bytes - flight.done, flight.at + u64::from(flight.done));
        let start = flight
            .buffer
            .as_ref()
            .map_or(std::ptr::null_mut(), |buffer| buffer.as_ptr().wrapping_add(flight.done as usize));
        // The rest of an interrupted write may need other flags, so they are computed for the rest.
        let flags = write_flags(&self.drive.caps, at, left, flight.durable) as i32;
        let entry = match (flight.kind, flight.arena) {
            (CommandKind::Read, Some(arena)) => {
                opcode::ReadFixed::new(FILE, start, left, arena).offset(at).build()
            }
            (CommandKind::Read, None) => opcode::Read::new(FILE, start, left).offset(at).build(),
            (CommandKind::Write, Some(arena)) => {
                opcode::WriteFixed::new(FILE, start, left, arena).offset(at).rw_flags(flags).build()
            }
            (CommandKind::Write, None) => {
                opcode::Write::new(FILE, start, left).offset(at).rw_flags(flags).build()
            }
            (CommandKind::Trim, _) => {
                use rustix::fs::FallocateFlags;
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                opcode::Fallocate::new(FILE, u64::from(left)).offset(at).mode(flags.bits() as i32).build()
            }
            (CommandKind::Flush, _) => opcode::Fsync::new(FILE).flags(types::FsyncFlags::DATASYNC).build(),
        };
        entry.user_data(key as u64)
    }

    fn push(&mut self, key: usize) {
        let entry = self.entry(key);
        // SAFETY: the flight keeps file and buffer alive until its completion is reaped, and `drop` waits for
        // all flights.
        while self.refused.is_none() && unsafe { self.ring.submission().push(&entry) }.is_err() {
            // A full submission queue has room again when the kernel has taken its entries, so the entries
            // are submitted.
            self.hand_over();
        }
    }

    /// Submits the queued entries to the kernel, without a wait.
    fn hand_over(&mut self) {
        let outcome = self.ring.submit();
        self.entered(outcome);
    }

    /// Notes the outcome of entering the ring. An interrupted or busy call is repeated by the caller; any other
    /// error would return for ever.
    fn entered(&mut self, outcome: std::io::Result<usize>) {
        self.refused = self.refused.or(outcome.err().and_then(|error| refusal(&error)));
    }

    /// Ends all commands with the error of a ring that the system refuses to enter.
    fn refuse(&mut self, code: i32, completions: &mut Vec<Completion>) {
        let (at, page_bytes) = (self.now(), self.drive.caps.page_bytes);
        for flight in self.flights.drain() {
            let status = Err(IoError::System(flight.failure(Some(code), page_bytes)));
            completions.push(Completion { tag: flight.tag, at, status });
            // The kernel may have taken the command earlier and still use its buffer, so the buffer is not freed.
            std::mem::forget(flight.buffer);
        }
    }

    /// Adds the submitted commands to the submission queue of the ring.
    fn begin_fresh(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        for command in fresh.drain(..) {
            self.begin(command);
        }
        self.fresh = fresh;
    }

    /// Adds a command to the submission queue of the ring, or answers it if there is no work to do.
    fn begin(&mut self, Command { tag, operation }: Command) {
        if let Some(fault) = operation.fault(&self.drive.caps) {
            return self.answered.push((tag, Err(fault)));
        }
        let page = self.drive.caps.page_bytes;
        let scratch = |pages: u32| self.scratch.buffer(0, pages as usize * page as usize);
        let mut durable = false;
        let (kind, lpn, pages, buffer) = match operation {
            Operation::Read { lpn, pages, into } => {
                (CommandKind::Read, lpn.0, pages, into.or_else(|| Some(scratch(pages))))
            }
            Operation::Write { lpn, pages, from, durable: asked, .. } => {
                durable = asked;
                (CommandKind::Write, lpn.0, pages, from.or_else(|| Some(scratch(pages))))
            }
            // The system call refuses a length of zero, so an empty trim is answered at once.
            Operation::Trim { pages: 0, .. } => return self.answered.push((tag, Ok(()))),
            Operation::Trim { lpn, pages } => (CommandKind::Trim, lpn.0, pages, None),
            Operation::Share { .. } => return self.answered.push((tag, Err(IoError::Unsupported))),
            Operation::Flush => (CommandKind::Flush, 0, 0, None),
        };
        let arena = buffer.as_ref().and_then(|buffer| {
            // A buffer is in one arena, so its first byte identifies it.
            let start = buffer.as_ptr() as usize;
            let holds = |(_, first, len): &(Arc<Arena>, usize, usize)| (*first..first + len).contains(&start);
            self.arenas.iter().position(holds).map(|place| place as u16)
        });
        let (at, bytes) = (lpn * u64::from(page), pages * page);
        let flight = Flight { tag, kind, buffer, done: 0, at, bytes, arena, durable };
        if let Some(code) = self.refused {
            let failure = flight.failure(Some(code), page);
            return self.answered.push((tag, Err(IoError::System(failure))));
        }
        let key = self.flights.insert(flight);
        self.push(key);
    }

    /// Moves the kernel's completions to `completions`.
    fn reap(&mut self, completions: &mut Vec<Completion>) {
        if let Some(code) = self.refused {
            return self.refuse(code, completions);
        }
        // The completion queue is borrowed during the loop, so commands are resubmitted only after the loop.
        let mut again = Vec::new();
        let (at, page_bytes) = (self.now(), self.drive.caps.page_bytes);
        for entry in self.ring.completion() {
            let key = entry.user_data() as usize;
            let flight = &mut self.flights[key];
            let result = entry.result();
            let transfers = matches!(flight.kind, CommandKind::Read | CommandKind::Write);
            // If the thread that submitted a command ends, the kernel may cancel the command before it has
            // begun; it is then submitted again. (Linux 6.18 does so only for files other than drives.)
            let interrupted = [Errno::AGAIN, Errno::INTR, Errno::CANCELED]
                .iter()
                .any(|errno| result == -errno.raw_os_error());
            if interrupted || (transfers && result > 0 && flight.done + (result as u32) < flight.bytes) {
                flight.done += if result > 0 { result as u32 } else { 0 };
                again.push(key);
                continue;
            }
            // A transfer of no bytes has reached the end of the file and would never finish, so it fails.
            let ended_short = transfers && result == 0;
            let code = (result < 0).then_some(-result);
            let status = match code.is_some() || ended_short {
                true => Err(IoError::System(flight.failure(code, page_bytes))),
                false => Ok(()),
            };
            completions.push(Completion { tag: flight.tag, at, status });
            self.flights.remove(key);
        }
        for key in again {
            self.push(key);
        }
    }

    fn has_completions(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Submits the queued entries to the kernel, and waits for a completion or the deadline.
    fn enter(&mut self, deadline: Option<Nanos>) {
        if self.poll {
            self.hand_over();
            let is_over = |device: &Self| deadline.is_some_and(|deadline| device.now() >= deadline);
            while self.refused.is_none() && !self.has_completions() && !is_over(self) {
                std::hint::spin_loop();
            }
            return;
        }
        // An interrupted wait is harmless, because every caller checks the completion queue again.
        let outcome = match deadline {
            None => self.ring.submit_and_wait(1),
            Some(deadline) => {
                let left = deadline.saturating_sub(self.now());
                let timespec = types::Timespec::from(Duration::from_nanos(left.0));
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&timespec))
            }
        };
        self.entered(outcome);
    }
}

impl Device for UringDevice {
    fn caps(&self) -> &Caps {
        &self.drive.caps
    }

    fn now(&self) -> Nanos {
        Nanos(self.opened.elapsed().as_nanos() as u64)
    }

    fn register(&mut self, arena: &Arc<Arena>) {
        let place = self.arenas.len();
        if !self.can_register || place >= ARENAS as usize {
            return;
        }
        let whole = arena.buffer(0, arena.len());
        let memory = [libc::iovec { iov_base: whole.as_ptr().cast(), iov_len: whole.len() }];
        // SAFETY: the arena is kept until the ring is gone, and the memory of an arena never moves.
        let outcome = unsafe { self.ring.submitter().register_buffers_update(place as u32, &memory, None) };
        // If the system refuses, for example because of a limit on locked memory, commands only become
        // slower.
        if outcome.is_ok() {
            self.arenas.push((Arc::clone(arena), whole.as_ptr() as usize, whole.len()));
        }
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let in_flight = self.flights.len() + self.answered.len() + self.fresh.len() + self.errands;
        if in_flight >= self.drive.caps.queue_depth as usize {
            return Err(QueueFull(command));
        }
        self.fresh.push(command);
        Ok(())
    }

    fn take_errand(&mut self, tag: Option<Tag>) -> Option<Errand> {
        let parker = Arc::clone(self.parker.as_ref()?);
        // Only these commands may be errands: a trim may take long, and a command without a buffer would use
        // the scratch buffer, which threads must not share.
        let fits = |command: &Command| match &command.operation {
            Operation::Read { into: buffer, .. } | Operation::Write { from: buffer, .. } => buffer.is_some(),
            Operation::Flush => true,
            Operation::Trim { .. } | Operation::Share { .. } => false,
        };
        let is_alone = self.fresh.len() == 1 && self.answered.is_empty();
        let is_meant = |command: &Command| tag.map_or(is_alone, |tag| tag == command.tag) && fits(command);
        let place = self.fresh.iter().position(is_meant)?;
        let Command { tag, operation } = self.fresh.remove(place);
        self.errands += 1;
        if !self.fresh.is_empty() {
            self.begin_fresh();
            // If their submission fails, the next wait submits the commands, or ends them.
            parker.leave();
        }
        let (file, caps) = (Arc::clone(&self.drive.file), self.drive.caps.clone());
        let scratch = Arc::clone(&self.scratch);
        Some(Errand { tag, work: Box::new(move || perform(&file, &caps, &scratch, &operation)) })
    }

    fn end_errand(&mut self) {
        self.errands -= 1;
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let before = completions.len();
        let at = self.now();
        self.refused = self.refused.or(self.parker.as_ref().and_then(|parker| parker.refused()));
        self.begin_fresh();
        completions.extend(self.answered.drain(..).map(|(tag, status)| Completion { tag, at, status }));
        self.reap(completions);
        let mut is_late = deadline.is_some_and(|deadline| deadline <= at);
        if completions.len() > before || is_late {
            // The commands are submitted now, so that the kernel executes them while the caller handles the
            // completions. (For a ring of a single thread, completions may also appear only when the kernel
            // is entered.)
            match &self.parker {
                Some(_) if self.ring.submission().is_empty() => {}
                // A caller that does not want to wait holds a lock; its thread submits the commands later.
                Some(parker) if is_late => parker.leave(),
                _ => {
                    self.hand_over();
                    self.reap(completions);
                }
            }
            return;
        }
        while completions.len() == before && !is_late {
            match (self.flights.is_empty(), deadline) {
                (true, None) => return,
                (true, Some(deadline)) => {
                    std::thread::sleep(Duration::from_nanos(deadline.saturating_sub(self.now()).0));
                }
                (false, deadline) => self.enter(deadline),
            }
            self.reap(completions);
            is_late = deadline.is_some_and(|deadline| self.now() >= deadline);
        }
    }

    fn parker(&self) -> Option<Arc<dyn Park>> {
        self.parker.clone().map(|parker| parker as Arc<dyn Park>)
    }

    fn is_bound_to_thread(&self) -> bool {
        self.parker.is_none()
    }
}

const _: () = {
    const fn moves_between_threads<T: Send>() {}
    moves_between_threads::<UringDevice>();
};

impl Drop for UringDevice {
    fn drop(&mut self) {
        // The kernel may still write into buffers, so they are freed only after all commands have ended.
        let mut completions = Vec::new();
        while !self.flights.is_empty() {
            completions.clear();
            self.enter(None);
            self.reap(&mut completions);
        }
        // The kernel frees a ring some time after its end. Until then a registered file would stay open, and its file
        // system could not be unmounted. An error changes nothing, since the ring ends anyway.
        let _ = self.ring.submitter().unregister_files();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: the kernel holds the file no longer than the device. Otherwise the file system could not be unmounted
    /// when a command ends. The system leases a file for writing only if nobody else has it open.
    #[test]
    fn the_file_is_closed_with_the_device() {
        let path = std::env::temp_dir().join(format!("fulgurite-closed-{}", std::process::id()));
        let options = DriveOptions { pages: Some(16), ..DriveOptions::default() };
        let opened = UringDevice::open(&path, &options);
        let own = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: the file is open.
        let leases = || unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0 };
        // The drive does not open if io_uring is forbidden altogether.
        let device = match opened {
            Err(OpenError::NoUring(_)) => return,
            opened => opened.unwrap(),
        };
        assert!(!leases(), "the device has the file open");
        drop(device);
        assert!(leases());
    }

    /// The rule: if the system refuses to enter the ring, as the filters of some containers do, every command ends
    /// with its error. The ring's file is replaced here by one that is no ring.
    #[test]
    fn commands_end_if_the_ring_cannot_be_entered() {
        let path = std::env::temp_dir().join(format!("fulgurite-refused-{}", std::process::id()));
        let options = DriveOptions { pages: Some(16), ..DriveOptions::default() };
        let opened = UringDevice::open(&path, &options);
        std::fs::remove_file(&path).unwrap();
        // The drive does not open if io_uring is forbidden altogether.
        let mut device = match opened {
            Err(OpenError::NoUring(_)) => return,
            opened => opened.unwrap(),
        };
        let no_ring = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: both files are open, and the ring's memory stays mapped.
        assert!(unsafe { libc::dup2(no_ring.as_raw_fd(), device.ring.as_raw_fd()) } >= 0);
        for (tag, deadline) in [(1, None), (2, Some(Nanos::from_micros(u64::from(u32::MAX)))), (3, None)] {
            let operation = Operation::Read { lpn: Lpn(0), pages: 1, into: None };
            device.submit(Command { tag: Tag(tag), operation }).unwrap();
            let mut completions = Vec::new();
            device.wait(deadline, &mut completions);
            let ended: Vec<_> = completions.iter().map(|completion| completion.tag).collect();
            assert_eq!(ended, [Tag(tag)]);
            assert!(matches!(completions[0].status, Err(IoError::System(Failure { code: Some(_), .. }))));
        }
    }
}
