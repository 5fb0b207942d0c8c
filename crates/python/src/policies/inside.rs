//! The threads that are inside a policy's method.
//!
//! Such a thread reports no progress until the method returns, so stopping its run is not enough: Python raises an exception in
//! it. At the end of the interpreter no thread may be left inside, because Python ends a thread that then asks for its
//! lock, and a thread cannot be ended across Rust's frames: the process would abort.

use fulgurite_stack::{Progress, StackError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_long, c_ulong};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Threads that are inside, or about to be.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whether the interpreter ends, so that nobody may go in.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// Those that are inside. It is locked by who has the interpreter's lock, and let go before that is: so nobody has it at a fork.
static INSIDE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// A thread, as Python numbers it, and what its work is reported to.
struct Entry {
    thread: c_ulong,
    progress: Option<Progress>,
}

fn list() -> MutexGuard<'static, Vec<Entry>> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a thread as long as it lives.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Keeps a thread in the list as long as it lives.
struct Listed(c_ulong);

impl Drop for Listed {
    fn drop(&mut self) {
        let mut list = list();
        // A policy may start a run itself; the inner call leaves first.
        if let Some(at) = list.iter().rposition(|entry| entry.thread == self.0) {
            list.remove(at);
        }
    }
}

/// Does `work` with the interpreter's lock, as a thread that is inside a policy.
pub fn attach<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    COUNT.fetch_add(1, Ordering::SeqCst);
    let _counted = Counted;
    if IS_CLOSED.load(Ordering::SeqCst) {
        StackError::run("stopped, since the interpreter ends").unwind();
    }
    Python::attach(|py| {
        // SAFETY: it takes nothing and touches nothing of the interpreter.
        let thread = unsafe { ffi::PyThread_get_thread_ident() };
        list().push(Entry { thread, progress: Progress::of_thread() });
        let _listed = Listed(thread);
        work(py)
    })
}

/// Raises KeyboardInterrupt in the threads that are inside and whose progress is `meant`.
pub fn interrupt(_: Python<'_>, meant: impl Fn(&Progress) -> bool) {
    raise_in(|entry| entry.progress.as_ref().is_some_and(&meant));
}

fn raise_in(is_meant: impl Fn(&Entry) -> bool) {
    for entry in list().iter().filter(|entry| is_meant(entry)) {
        // SAFETY: the caller has the interpreter's lock, and the exception is a class that lives as long as the interpreter. A
        // thread in the list has its state, because it leaves the list before it lets go of that.
        #[allow(clippy::cast_possible_wrap)] // a number in C's older signature
        unsafe {
            ffi::PyThreadState_SetAsyncExc(entry.thread as c_long, ffi::PyExc_KeyboardInterrupt);
        }
    }
}

/// Lets nobody in any more, and raises in who is inside. How many still are, or are about to be.
#[pyfunction]
fn leave_policies() -> usize {
    IS_CLOSED.store(true, Ordering::SeqCst);
    raise_in(|_| true);
    COUNT.load(Ordering::SeqCst)
}

/// After a fork: the threads of the other process are not in this one.
#[pyfunction]
fn forget_policies() {
    COUNT.store(0, Ordering::SeqCst);
    list().clear();
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leave_policies, module)?)?;
    module.add_function(wrap_pyfunction!(forget_policies, module)?)
}
