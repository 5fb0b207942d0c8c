//! Cancellation of calls: asks a waiting thread regularly whether it still wants its result.

use fulgurite_base::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Returns whether the calling thread still wants the result.
pub(super) type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// The time between two questions to a thread.
const ASK_EVERY: Nanos = Nanos(20_000_000);

/// The function that asks a waiting thread, and the time of the next question.
pub(super) struct Asking<'a> {
    goes_on: Option<&'a GoesOn>,
    /// The time of the next question, on the clock of the core. The clock of a simulated drive may stand
    /// still while threads wait for each other, so a wall-clock wait of [`ASK_EVERY`] makes the question due
    /// as well.
    next: Nanos,
}

impl<'a> Asking<'a> {
    /// Starts the timer for a thread that begins to wait. If `goes_on` is `None`, the thread is never asked.
    pub(super) fn new(goes_on: Option<&'a GoesOn>, now: impl FnOnce() -> Nanos) -> Asking<'a> {
        Asking { goes_on, next: goes_on.map_or(Nanos(0), |_| now() + ASK_EVERY) }
    }

    /// Returns how long the thread may sleep before it is asked; `None` if it is never asked.
    pub(super) fn patience(&self) -> Option<Nanos> {
        self.goes_on.map(|_| ASK_EVERY)
    }

    /// Makes the question due, because the thread has slept for [`Asking::patience`].
    pub(super) fn has_waited(&mut self) {
        self.next = Nanos(0);
    }

    /// Whether the thread should be asked now.
    pub(super) fn is_due(&self, now: impl FnOnce() -> Nanos) -> bool {
        self.goes_on.is_some() && now() >= self.next
    }

    /// Asks the thread whether it still wants its result. A panic of the function counts as no.
    pub(super) fn ask(&self) -> bool {
        self.goes_on.is_none_or(|goes_on| catch_unwind(AssertUnwindSafe(|| goes_on())).unwrap_or(false))
    }

    /// Restarts the timer after a question.
    pub(super) fn again(&mut self, now: Nanos) {
        self.next = now + ASK_EVERY;
    }
}
