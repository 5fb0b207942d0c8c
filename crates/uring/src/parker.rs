//! A parker: it lets a thread that does not hold a device wait for the device's ring, and submit its entries.

use fulgurite_base::Nanos;
use fulgurite_device::Park;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::sync::{Mutex, PoisonError};

/// Waits until a ring has completions, or until another thread ends the wait. Any thread can poll the ring's
/// file.
pub(crate) struct RingParker {
    ring: OwnedFd,
    /// The event that another thread makes readable to end the wait.
    event: OwnedFd,
    /// Whether entries in the submission queue wait for [`RingParker::submit`].
    has_left: AtomicBool,
    /// The error of a submission that can never succeed, until the device takes it.
    error: Mutex<Option<io::Error>>,
}

impl RingParker {
    /// Creates a parker for the ring with this file.
    pub(crate) fn new(ring: BorrowedFd<'_>) -> io::Result<RingParker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (has_left, error) = (AtomicBool::new(false), Mutex::default());
        Ok(RingParker { ring: ring.try_clone_to_owned()?, event, has_left, error })
    }

    /// Leaves the entries of the submission queue to the next [`Park::submit`].
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Release);
    }

    /// Takes the error of a submission that can never succeed.
    pub(crate) fn take_error(&self) -> Option<io::Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether a ring may be entered later although the system refused it now.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    let passes = [libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::ETIME];
    error.raw_os_error().is_some_and(|code| passes.contains(&code))
}

impl Park for RingParker {
    fn park(&self, timeout: Option<Nanos>) {
        let timeout = timeout.map(|left| Timespec {
            tv_sec: (left.0 / 1_000_000_000) as i64,
            tv_nsec: (left.0 % 1_000_000_000) as i64,
        });
        let mut files = [
            PollFd::from_borrowed_fd(self.ring.as_fd(), PollFlags::IN),
            PollFd::new(&self.event, PollFlags::IN),
        ];
        // An interrupted wait is harmless, because the caller checks the ring in any case.
        let _ = poll(&mut files, timeout.as_ref());
        if !files[1].revents().is_empty() {
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }

    fn submit(&self) {
        if !self.has_left.swap(false, AcqRel) {
            return;
        }
        // The kernel submits as many entries as the queue has. If another thread is in this call too, each entry is
        // submitted by one of them.
        // SAFETY: the call has no pointers, and the file is open.
        let outcome = unsafe {
            let (ring, all) = (self.ring.as_raw_fd(), u32::MAX);
            libc::syscall(libc::SYS_io_uring_enter, ring, all, 0_u32, 0_u32, std::ptr::null::<u8>(), 0_usize)
        };
        if outcome >= 0 {
            return;
        }
        let error = io::Error::last_os_error();
        if is_passing(&error) {
            self.leave();
        } else {
            *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            // The device ends the commands in its next wait.
            self.unpark();
        }
    }

    fn unpark(&self) {
        // The write fails only if the counter of the event is at its maximum, and then the event is readable
        // already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}
