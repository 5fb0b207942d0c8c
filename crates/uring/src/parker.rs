//! Lets a thread that does not hold the device wait for its ring.

use fulgurite_base::Nanos;
use fulgurite_device::Park;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Waits until a ring has completions. The ring's file can be polled by any thread.
pub(crate) struct RingParker {
    ring: OwnedFd,
    /// Readable once somebody wants the wait to end.
    event: OwnedFd,
}

impl RingParker {
    /// A parker for a ring, by the ring's file.
    pub fn new(ring: BorrowedFd<'_>) -> io::Result<RingParker> {
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
        // An interrupted wait is harmless: the caller looks at the ring in any case.
        let _ = poll(&mut files, timeout.as_ref());
        if !files[1].revents().is_empty() {
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }

    fn unpark(&self) {
        // It fails only where the counter is at its end, and then the event is readable already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }
}
