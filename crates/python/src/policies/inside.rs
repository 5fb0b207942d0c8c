//! Tracks the threads that are inside a policy's method.
//!
//! Such a thread reports no progress until the method returns, so stopping its run is not enough: Python
//! raises an exception in it. When the interpreter shuts down, no thread may be inside. Python ends a thread
//! that then requests its lock. Ending a thread that has Rust frames on its stack would abort the process.

use fulgurite_stack::{Progress, StackError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_long, c_ulong};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of threads that are inside or about to be.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether the interpreter is shutting down, so that no thread may enter.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// The threads that are inside. The lock is taken and released only while the interpreter's lock is held, so
/// no thread holds it during a fork.
static INSIDE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// A thread with its number in Python and the progress of its run.
struct Entry {
    thread: c_ulong,
    progress: Option<Progress>,
}

fn list() -> MutexGuard<'static, Vec<Entry>> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a thread during its lifetime.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lists a thread during its lifetime.
struct Listed(c_ulong);

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = list();
        // A policy may start a run itself. The inner entry is removed first.
        if let Some(at) = list.iter().rposition(|entry| entry.thread == self.0) {
            list.remove(at);
        }
    }
}

/// Runs `work` with the interpreter's lock, as a thread inside a policy.
pub(super) fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    COUNT.fetch_add(1, Ordering::SeqCst);
    let _counted = Counted;
    if IS_CLOSED.load(Ordering::SeqCst) {
        StackError::run("stopped, because the interpreter shuts down").unwind();
    }
    Python::attach(|py| {
        // SAFETY: it has no arguments and does not access the interpreter.
        let thread = unsafe { ffi::PyThread_get_thread_ident() };
        list().push(Entry { thread, progress: Progress::of_thread() });
        let _listed = Listed(thread);
        work(py)
    })
}

/// Raises KeyboardInterrupt in the threads inside whose progress is `meant`.
pub(crate) fn interrupt(_: Python<'_>, meant: impl Fn(&Progress) -> bool) {
    raise_in(|entry| entry.progress.as_ref().is_some_and(&meant));
}

fn raise_in(is_meant: impl Fn(&Entry) -> bool) {
    for entry in list().iter().filter(|entry| is_meant(entry)) {
        // SAFETY: the caller has the interpreter's lock. The exception is a class that exists as long as the
        // interpreter. A listed thread has its thread state, because it leaves the list before it releases
        // the state.
        #[allow(clippy::cast_possible_wrap)] // an older signature of the C function uses another type
        unsafe {
            ffi::PyThreadState_SetAsyncExc(entry.thread as c_long, ffi::PyExc_KeyboardInterrupt);
        }
    }
}

/// Lets no thread enter from now on, and raises an exception in those inside. Returns the number of threads
/// that are inside or about to be.
#[pyfunction]
fn leave_policies() -> usize {
    IS_CLOSED.store(true, Ordering::SeqCst);
    raise_in(|_| true);
    COUNT.load(Ordering::SeqCst)
}

/// After a fork: the threads of the parent do not exist in the child.
#[pyfunction]
fn forget_policies() {
    COUNT.store(0, Ordering::SeqCst);
    list().clear();
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leave_policies, module)?)?;
    module.add_function(wrap_pyfunction!(forget_policies, module)?)
}
