//! A parker: it lets a thread wait for the ring of a device that the thread does not hold.

use fulgurite_base::Nanos;
use fulgurite_device::Park;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Waits until a ring has completions, or until another thread ends the wait. Any thread can poll the ring's
/// file.
pub(crate) struct RingParker {
    ring: OwnedFd,
    /// The event that another thread makes readable to end the wait.
    event: OwnedFd,
}

impl RingParker {
    /// Creates a parker for the ring with this file.
    pub(crate) fn new(ring: BorrowedFd<'_>) -> io::Result<RingParker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(RingParker { ring: ring.try_clone_to_owned()?, event })
    }
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

    fn unpark(&self) {
        // The write fails only if the counter of the event is at its maximum, and then the event is readable
        // already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}
