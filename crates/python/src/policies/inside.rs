//! Tracks the threads that execute a method of a policy in Python.
//!
//! A thread inside a method reports no progress until the method returns, so cancelling its run is not
//! enough. Instead, Python raises an exception in that thread.
//!
//! When the interpreter shuts down, no thread may be inside a method. Once the shutdown has begun, Python
//! ends every thread that requests the GIL (the interpreter's lock). Ending a thread that has Rust frames on
//! its stack would abort the process.

use fulgurite_stack::{Progress, StackError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_long, c_ulong};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of threads that are inside a method or about to enter one.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether the interpreter is shutting down, so that no thread may enter a method.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// The threads that are inside a method. The mutex is locked and unlocked only by a thread that holds the
/// GIL, so no thread holds the mutex during a fork.
static INSIDE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// A thread with its number in Python and the progress of its run; `None` if it has no run.
struct Entry {
    thread: c_ulong,
    progress: Option<Progress>,
}

fn list() -> MutexGuard<'static, Vec<Entry>> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guard that counts a thread in [`COUNT`] until it is dropped.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A guard that lists a thread in [`INSIDE`] until it is dropped.
struct Listed(c_ulong);

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = list();
        // Removes the thread's last entry. A policy may start a run itself, so one thread may have several
        // entries, and the innermost is the last.
        if let Some(at) = list.iter().rposition(|entry| entry.thread == self.0) {
            list.remove(at);
        }
    }
}

/// Runs `work` with the GIL held, and counts and lists the thread as inside a method.
pub(super) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    COUNT.fetch_add(1, Ordering::SeqCst);
    let _counted = Counted;
    if IS_CLOSED.load(Ordering::SeqCst) {
        StackError::run("stopped, because the interpreter shuts down").unwind();
    }
    Python::attach(|py| {
        // SAFETY: the function has no arguments and does not access the interpreter.
        let thread = unsafe { ffi::PyThread_get_thread_ident() };
        list().push(Entry { thread, progress: Progress::of_thread() });
        let _listed = Listed(thread);
        work(py)
    })
}

/// Raises KeyboardInterrupt in the threads inside a method whose progress satisfies `meant`.
pub(crate) fn interrupt(_: Python<'_>, meant: impl Fn(&Progress) -> bool) {
    raise_in(|entry| entry.progress.as_ref().is_some_and(&meant));
}

fn raise_in(is_meant: impl Fn(&Entry) -> bool) {
    for entry in list().iter().filter(|entry| is_meant(entry)) {
        // SAFETY: the caller holds the GIL. The exception is a class that exists as long as the interpreter.
        // A listed thread has a thread state, because it leaves the list before it releases that state.
        #[allow(clippy::cast_possible_wrap)] // an older signature of the C function uses another type
        unsafe {
            ffi::PyThreadState_SetAsyncExc(entry.thread as c_long, ffi::PyExc_KeyboardInterrupt);
        }
    }
}

/// Lets no thread enter a method from now on, and raises an exception in those inside. Returns the number of
/// threads that are inside a method or about to enter one.
#[pyfunction]
fn leave_policies() -> usize {
    IS_CLOSED.store(true, Ordering::SeqCst);
    raise_in(|_| true);
    COUNT.load(Ordering::SeqCst)
}

/// Clears the lists after a fork, because the threads of the parent do not exist in the child.
#[pyfunction]
fn forget_policies() {
    COUNT.store(0, Ordering::SeqCst);
    list().clear();
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leave_policies, module)?)?;
    module.add_function(wrap_pyfunction!(forget_policies, module)?)
}
