//! Cancellation of calls: asks a waiting thread regularly whether it still wants its result.

use fulgurite_base::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The time between two questions to a thread, unless it asks for another.
pub(super) const ASK_EVERY: Nanos = Nanos(20_000_000);

/// A function that says whether the calling thread still wants the result.
#[derive(Clone)]
pub(super) struct GoesOn {
    ask: Arc<dyn Fn() -> bool + Send + Sync>,
    every: Nanos,
}

impl GoesOn {
    /// Creates a function that is called every [`ASK_EVERY`].
    pub(super) fn new(ask: impl Fn() -> bool + Send + Sync + 'static) -> GoesOn {
        GoesOn::at_times(ASK_EVERY, ask)
    }

    /// Creates a function with another time between two calls.
    pub(super) fn at_times(every: Nanos, ask: impl Fn() -> bool + Send + Sync + 'static) -> GoesOn {
        GoesOn { ask: Arc::new(ask), every }
    }

    /// Asks the thread. A panic of the function counts as no.
    pub(super) fn ask(&self) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.ask)())).unwrap_or(false)
    }
}

/// The function that asks a waiting thread, and the time of the next question.
pub(super) struct Asking<'a> {
    goes_on: Option<&'a GoesOn>,
    /// The time of the next question, on the clock of the core. The clock of a simulated drive may stand
    /// still while threads wait for each other, so a wall-clock wait of that time makes the question due as
    /// well.
    next: Nanos,
}

impl<'a> Asking<'a> {
    /// Starts the timer for a thread that begins to wait. If `goes_on` is `None`, the thread is never asked.
    pub(super) fn new(goes_on: Option<&'a GoesOn>, now: impl FnOnce() -> Nanos) -> Asking<'a> {
        Asking { goes_on, next: goes_on.map_or(Nanos(0), |goes_on| now() + goes_on.every) }
    }

    /// Returns how long the thread may sleep before it is asked; `None` if it is never asked.
    pub(super) fn patience(&self) -> Option<Nanos> {
        self.goes_on.map(|goes_on| goes_on.every)
    }

    /// Makes the question due, because the thread has slept for [`Asking::patience`].
    pub(super) fn has_waited(&mut self) {
        self.next = Nanos(0);
    }

    /// Whether the thread should be asked now.
    pub(super) fn is_due(&self, now: impl FnOnce() -> Nanos) -> bool {
        self.goes_on.is_some() && now() >= self.next
    }

    /// Asks the thread whether it still wants its result.
    pub(super) fn ask(&self) -> bool {
        self.goes_on.is_none_or(GoesOn::ask)
    }

    /// Restarts the timer after a question.
    pub(super) fn again(&mut self, now: Nanos) {
        self.next = now + self.patience().unwrap_or_default();
    }
}
