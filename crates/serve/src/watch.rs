//! Lets other threads look at the drive, which belongs to the server's thread. Somebody who looks rings the server's
//! bell; the server then publishes the drive's state. While nobody looks, nothing is published.

use crate::live::Live;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A state that is younger is given to everybody, so that any number of viewers cost the drive five looks a second.
const FRESH: Duration = Duration::from_millis(200);

/// The time in which the server answers a look, unless it has other work.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time after which nobody is looking any more.
const AWAY: Duration = Duration::from_secs(10);

/// An event descriptor that wakes the server.
#[derive(Clone)]
pub(crate) struct Bell(pub Arc<OwnedFd>);

impl Bell {
    /// Creates a bell that is silent.
    pub(crate) fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wakes the thread that waits for the bell.
    pub(crate) fn ring(&self) {
        // A bell that rings already needs no second ring.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Makes the bell silent.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

/// The reason why there is nothing to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// The server has ended.
    Ended,
    /// The server did not answer in time.
    Busy,
}

/// The place at which the server publishes the drive's state.
pub(crate) struct Watch {
    bell: Bell,
    is_wanted: AtomicBool,
    shown: Mutex<Shown>,
    changed: Condvar,
}

#[derive(Default)]
struct Shown {
    /// The last state, and when it was published.
    latest: Option<(Instant, Arc<Live>)>,
    has_ended: bool,
}

impl Shown {
    fn younger_than(&self, age: Duration) -> Option<&Arc<Live>> {
        self.latest.as_ref().filter(|(made, _)| made.elapsed() < age).map(|(_, live)| live)
    }
}

impl Watch {
    /// Creates a place without a state. `bell` wakes the server.
    pub(crate) fn new(bell: Bell) -> Watch {
        Watch { bell, is_wanted: AtomicBool::new(false), shown: Mutex::default(), changed: Condvar::new() }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of the drive now or a fifth of a second ago.
    pub(crate) fn look(&self) -> Result<Arc<Live>, Unseen> {
        let (asked, mut shown) = (Instant::now(), self.shown());
        if let (false, Some(live)) = (shown.has_ended, shown.younger_than(FRESH)) {
            return Ok(Arc::clone(live));
        }
        self.is_wanted.store(true, Ordering::SeqCst);
        self.bell.ring();
        loop {
            if shown.has_ended {
                return Err(Unseen::Ended);
            }
            let newer = shown.latest.as_ref().filter(|(made, _)| *made > asked);
            if let Some((_, live)) = newer {
                return Ok(Arc::clone(live));
            }
            let left = PATIENCE.saturating_sub(asked.elapsed());
            if left.is_zero() {
                return Err(Unseen::Busy);
            }
            shown = self.changed.wait_timeout(shown, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether somebody waits for the drive's state. The server then publishes it.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.swap(false, Ordering::SeqCst)
    }

    /// Publishes the drive's state.
    pub(crate) fn publish(&self, live: Live) {
        self.shown().latest = Some((Instant::now(), Arc::new(live)));
        self.changed.notify_all();
    }

    /// Forgets a state that nobody has looked at for ten seconds. Returns whether there was one.
    pub(crate) fn is_left(&self) -> bool {
        let mut shown = self.shown();
        shown.younger_than(AWAY).is_none() && shown.latest.take().is_some()
    }

    /// Tells everybody that the drive has ended.
    pub(crate) fn end(&self) {
        self.shown().has_ended = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Moment;
    use crate::pace::Lateness;
    use fulgurite_base::Nanos;
    use fulgurite_stack::serve::{Look, Requests};

    fn live() -> Live {
        let requests =
            Requests { count: 0, pages: 0, latency_sum_ns: 0, counts_up_to: vec![0; 19], recent: None };
        let look = Look {
            reads: requests.clone(),
            writes: requests,
            drive: None,
            flash: None,
            host_pages_written: None,
            pages_programmed: None,
            pool: None,
            page_bytes: 512,
        };
        let now = Moment {
            time: Nanos::ZERO,
            look,
            in_flight: 0,
            pages_unflushed: 0,
            is_on: true,
            power_cuts: 0,
            faults: Vec::new(),
            lateness: Lateness::default(),
        };
        Live { now, before: None }
    }

    /// The rule: a look rings the bell and waits for the state; looks within a fifth of a second share it. Without a
    /// look nothing is wanted, and the end is told to all who wait.
    #[test]
    fn looks_share_a_state_that_is_made_on_request() {
        let watch = Arc::new(Watch::new(Bell::new().unwrap()));
        assert!(!watch.is_wanted());
        let look = |watch: &Arc<Watch>| {
            let watch = Arc::clone(watch);
            std::thread::spawn(move || watch.look())
        };
        let looking = look(&watch);
        while !watch.is_wanted() {
            std::thread::yield_now();
        }
        watch.publish(live());
        let first = looking.join().unwrap().unwrap();
        if let Some(shared) = watch.shown().younger_than(FRESH) {
            assert!(Arc::ptr_eq(&first, shared));
        }
        assert!(!watch.is_left(), "a young state is kept");
        watch.shown().latest = Some((Instant::now().checked_sub(AWAY).unwrap(), first));
        let again = look(&watch);
        while !watch.is_wanted() {
            std::thread::yield_now();
        }
        watch.end();
        assert_eq!(again.join().unwrap().unwrap_err(), Unseen::Ended);
        assert!(watch.is_left() && !watch.is_left());
        assert_eq!(watch.look().unwrap_err(), Unseen::Ended);
    }
}
