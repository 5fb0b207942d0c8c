//! Work that takes long: done in a thread of its own, while the caller's thread waits without the interpreter's lock,
//! tells how far the work has come, and looks whether Python has a signal to handle.

use crate::errors::of_stack;
use crate::policies::interrupt;
use fulgurite_stack::{Progress, StackError};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often signals are looked for. A person who presses Ctrl-C notices no delay of this length.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often the progress is told.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// How long work that was stopped may take to end before its caller goes on without it. It ends by itself with the next
/// thing that it reports.
const ENDS_WITHIN: Duration = Duration::from_millis(500);
/// How often a policy is asked to leave its method meanwhile.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Called with what is done, what there is to do, the runs done, all runs, and what is done beside requests.
pub type Listener<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Does `work` in a thread of its own. Ends early, and ends the work too, where Python handles a signal with an exception or
/// `listener` raises one.
pub fn watched<T: Send + 'static>(
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
            // Nobody waits any more where the caller was interrupted.
            let _ = sender.send(outcome.unwrap_or_else(|panic| Err(StackError::of_panic(panic))));
        })
        .map_err(|error| of_stack(StackError::run(format!("no thread can be started: {error}"))))?;
    let mut told = Instant::now();
    let mut receiver: Receiver<Result<T, StackError>> = receiver;
    loop {
        // The receiver goes along, because only its owner may use it.
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
                // A policy that is in a long method is asked to leave it; again, because a method may catch what it gets.
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
                return Err(of_stack(StackError::run("the work ended without an outcome")));
            }
        }
    }
}

fn tell(progress: &Progress, listener: &Bound<'_, PyAny>) -> PyResult<()> {
    let now = progress.snapshot();
    listener.call1((now.done, now.total, now.runs_done, now.runs, now.step)).map(drop)
}
