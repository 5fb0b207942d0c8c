//! Runs long work in a thread of its own. Meanwhile the caller's thread waits with the GIL (the interpreter's
//! lock) released, reports progress, and checks for signals.

use crate::errors::of_stack;
use crate::policies::interrupt;
use fulgurite_stack::{Progress, StackError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The wall-clock interval between checks for signals. A person who presses Ctrl-C does not notice this
/// delay.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The wall-clock interval between progress reports.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// The maximum wall-clock time that the caller waits for cancelled work to end. Work ends at its next
/// progress report. After this time the caller returns without waiting further.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
/// The wall-clock interval between attempts to interrupt a method of a policy.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The Python function that is called with the numbers of finished and of all requests, the numbers of
/// finished and of all runs, and the current activity other than requests.
pub(crate) type Listener<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Runs `work` in a thread of its own. The work is cancelled if a signal handler or `listener` raises an
/// exception.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    listener: Listener<'_, '_>,
    work: impl FnOnce(&Progress) -> Result<T, StackError> + Send + 'static,
) -> PyResult<T> {
    let progress = Progress::default();
    let (sender, receiver) = channel();
    let own = progress.clone();
    thread::Builder::new()
        .name("fulgurite".to_owned())
        .spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| own.watching(|| work(&own))));
            // Ignores a failure to send: if the caller was interrupted, nobody receives the outcome.
            let _ = sender.send(outcome.unwrap_or_else(|panic| Err(StackError::of_panic(panic))));
        })
        .map_err(|error| of_stack(StackError::run(format!("no thread can be started: {error}"))))?;
    let mut told = Instant::now();
    let mut receiver: Receiver<Result<T, StackError>> = receiver;
    loop {
        // Moves the receiver into the closure and back, because only its owner may use it.
        let (back, received) = py.detach(move || {
            let received = receiver.recv_timeout(LOOK_EVERY);
            (receiver, received)
        });
        receiver = back;
        let is_due = told.elapsed() >= TELL_EVERY || received.is_ok();
        let interrupted = py.check_signals().and_then(|()| match listener.filter(|_| is_due) {
            Some(listener) => tell(&progress, listener),
            None => Ok(()),
        });
        if let Err(interrupted) = interrupted {
            progress.stop();
            let since = Instant::now();
            while since.elapsed() < ENDS_WITHIN {
                // Interrupts a policy that is inside a long method. This is repeated, because a method may
                // catch the exception.
                interrupt(py, Progress::is_stopped);
                let (back, ended) = py.detach(move || {
                    let received = receiver.recv_timeout(ASK_EVERY);
                    (receiver, !matches!(received, Err(RecvTimeoutError::Timeout)))
                });
                receiver = back;
                if ended {
                    break;
                }
            }
            return Err(interrupted);
        }
        if is_due {
            told = Instant::now();
        }
        match received {
            Ok(outcome) => return outcome.map_err(of_stack),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(of_stack(StackError::run("the work ended without a result")));
            }
        }
    }
}

fn tell(progress: &Progress, listener: &Bound<'_, PyAny>) -> PyResult<()> {
    let now = progress.snapshot();
    listener.call1((now.done, now.total, now.runs_done, now.runs, now.step)).map(drop)
}
