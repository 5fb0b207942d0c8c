//! A parker: it lets a thread that does not hold a device wait for the device's ring, and submit its entries.

use fulgurite_base::Nanos;
use fulgurite_device::Park;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicI32};

/// Waits until a ring has completions, or until another thread ends the wait. Any thread can poll the ring's
/// file.
pub(crate) struct RingParker {
    ring: OwnedFd,
    /// The event that another thread makes readable to end the wait.
    event: OwnedFd,
    /// Whether entries in the submission queue wait for [`RingParker::submit`].
    has_left: AtomicBool,
    /// The system's error code if it refuses to enter the ring; 0 if it does not.
    refused: AtomicI32,
}

impl RingParker {
    /// Creates a parker for the ring with this file.
    pub(crate) fn new(ring: BorrowedFd<'_>) -> io::Result<RingParker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (has_left, refused) = (AtomicBool::new(false), AtomicI32::new(0));
        Ok(RingParker { ring: ring.try_clone_to_owned()?, event, has_left, refused })
    }

    /// Leaves the entries of the submission queue to the next [`Park::submit`].
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Release);
    }

    /// Returns the system's error code if it has refused a submission for good.
    pub(crate) fn refused(&self) -> Option<i32> {
        Some(self.refused.load(Acquire)).filter(|code| *code != 0)
    }
}

/// Returns the error code of a call that entered a ring, if no later call can succeed. An interrupted or busy call can
/// be repeated.
pub(crate) fn refusal(error: &io::Error) -> Option<i32> {
    let passes = [libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::ETIME];
    Some(error.raw_os_error().unwrap_or(libc::EIO)).filter(|code| !passes.contains(code))
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
        match refusal(&io::Error::last_os_error()) {
            None => self.leave(),
            Some(code) => {
                self.refused.store(code, Release);
                // The device ends the commands in its next wait.
                self.unpark();
            }
        }
    }

    fn unpark(&self) {
        // The write fails only if the counter of the event is at its maximum, and then the event is readable
        // already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}
