//! Cancellation: a waiting thread is asked whether it still wants the result.

use fulgurite_base::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Returns whether the calling thread still wants the result.
pub(super) type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// The time between two questions.
const ASK_EVERY: Nanos = Nanos(20_000_000);

/// The function that a waiting thread calls, and when it calls it next.
pub(super) struct Asking<'a> {
    goes_on: Option<&'a GoesOn>,
    /// On the core's clock. A simulated drive's clock may stand still while threads wait for each other, so a
    /// real wait of [`ASK_EVERY`] counts too.
    next: Nanos,
}

impl<'a> Asking<'a> {
    /// Starts the timer of a thread that begins to wait. With `None` the thread is never asked.
    pub(super) fn new(goes_on: Option<&'a GoesOn>, now: impl FnOnce() -> Nanos) -> Asking<'a> {
        Asking { goes_on, next: goes_on.map_or(Nanos(0), |_| now() + ASK_EVERY) }
    }

    /// The time that the thread may sleep before it is asked.
    pub(super) fn patience(&self) -> Option<Nanos> {
        self.goes_on.map(|_| ASK_EVERY)
    }

    /// Notes that the thread has slept for [`Asking::patience`].
    pub(super) fn has_waited(&mut self) {
        self.next = Nanos(0);
    }

    /// Whether the thread is to be asked now.
    pub(super) fn is_due(&self, now: impl FnOnce() -> Nanos) -> bool {
        self.goes_on.is_some() && now() >= self.next
    }

    /// Asks the thread. A panic counts as no.
    pub(super) fn ask(&self) -> bool {
        self.goes_on.is_none_or(|goes_on| catch_unwind(AssertUnwindSafe(|| goes_on())).unwrap_or(false))
    }

    /// Restarts the timer.
    pub(super) fn again(&mut self, now: Nanos) {
        self.next = now + ASK_EVERY;
    }
}
