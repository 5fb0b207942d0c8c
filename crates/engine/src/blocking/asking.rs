//! Whether a thread that waits still wants what it waits for.

use fulgurite_base::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Says whether the calling thread still wants what it waits for.
pub type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// How long a thread waits before it is asked again.
const ASK_EVERY: Nanos = Nanos(20_000_000);

/// What a waiting thread is asked, and when next.
pub struct Asking<'a> {
    goes_on: Option<&'a GoesOn>,
    /// On the core's clock. That of a simulated drive may stand still while threads wait for each other, so a wait that has
    /// taken its time counts too.
    next: Nanos,
}

impl<'a> Asking<'a> {
    /// A thread that begins to wait now; `None` is never asked.
    pub fn new(goes_on: Option<&'a GoesOn>, now: impl FnOnce() -> Nanos) -> Asking<'a> {
        Asking { goes_on, next: goes_on.map_or(Nanos(0), |_| now() + ASK_EVERY) }
    }

    /// How long the thread may wait before it is asked.
    pub fn patience(&self) -> Option<Nanos> {
        self.goes_on.map(|_| ASK_EVERY)
    }

    /// Notes that it has waited as long.
    pub fn has_waited(&mut self) {
        self.next = Nanos(0);
    }

    /// Whether it is to be asked now.
    pub fn is_due(&self, now: impl FnOnce() -> Nanos) -> bool {
        self.goes_on.is_some() && now() >= self.next
    }

    /// Asks it. Who panics does not want anything any more.
    pub fn ask(&self) -> bool {
        self.goes_on.is_none_or(|goes_on| catch_unwind(AssertUnwindSafe(|| goes_on())).unwrap_or(false))
    }

    /// It goes on to wait.
    pub fn again(&mut self, now: Nanos) {
        self.next = now + ASK_EVERY;
    }
}
