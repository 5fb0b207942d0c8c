//! Reports the progress of runs to another thread.
//!
//! Requests and runs are counted. Other long work (reading a trace, preconditioning or measuring a drive) is
//! a [`Step`], which [`step`] begins.
//!
//! A step belongs to the progress of its thread, which [`Progress::watching`] sets in a thread-local
//! variable. Remarks belong to it in the same way. The thread-local variable is on purpose. Steps begin in
//! trace readers, in memos of preconditioned drives, and in policies that measure the drive while a setting
//! is resolved. If the progress were an argument, every signature between the command line and those
//! functions would need it, and so would the policies that users write. A run stays on one thread, so no
//! progress is missed.

use crate::StackError;
use std::cell::RefCell;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// The progress of runs. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>, Option<Arc<Expected>>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    durable: AtomicU64,
    total: AtomicU64,
    runs_done: AtomicU64,
    runs: AtomicU64,
    /// The nanoseconds that all runs are expected to take, and the nanoseconds of these that have passed.
    expected: AtomicU64,
    passed: AtomicU64,
    /// The running steps, in the order in which they began.
    steps: Mutex<Vec<Arc<StepCounts>>>,
    remarks: Mutex<Vec<String>>,
    /// The thread that shows the progress. A step that begins wakes this thread.
    watcher: OnceLock<Thread>,
    is_stopped: AtomicBool,
}

/// The expected wall-clock time of one run.
#[derive(Debug)]
struct Expected {
    nanos: u64,
    requests: u64,
    /// The nanoseconds of the expected time that have passed.
    passed: AtomicU64,
}

/// A step and its completed parts.
#[derive(Debug)]
struct StepCounts {
    what: String,
    done: AtomicU64,
    /// The number of parts of the step; 0 if it is not known.
    total: u64,
}

/// The state of the progress at one moment, for the thread that shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of completed requests.
    pub done: u64,
    /// The number of all requests, as far as it is known; 0 if it is not.
    pub total: u64,
    /// The number of completed runs.
    pub runs_done: u64,
    /// The number of all runs; 0 before the first one begins.
    pub runs: u64,
    /// The nanoseconds of the expected time of all runs that have passed.
    pub passed: u64,
    /// The expected time of all runs, in nanoseconds; 0 if it is not known.
    pub expected: u64,
    /// The step that began last: its name, the number of its completed parts, and the number of all its
    /// parts, which is 0 if it is not known. `None` if no step is running.
    pub step: Option<(String, u64, u64)>,
}

impl Progress {
    /// The number of requests between two reports of a run. An atomic addition for each request would slow
    /// the run down.
    const STEP: u64 = 1 << 14;

    /// Sets the number of completed requests whose results are durable, so that an interrupt does not lose
    /// them.
    pub fn keep(&self, done: u64) {
        self.0.durable.store(done, Ordering::Relaxed);
    }

    /// Returns the number of requests that [`Progress::keep`] has set.
    pub fn durable(&self) -> u64 {
        self.0.durable.load(Ordering::Relaxed)
    }

    /// Returns the current state of the progress.
    pub fn snapshot(&self) -> Snapshot {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let step = self.steps().last().map(|step| (step.what.clone(), count(&step.done), step.total));
        let Counts { done, total, runs_done, runs, passed, expected, .. } = &*self.0;
        Snapshot {
            done: count(done),
            total: count(total),
            runs_done: count(runs_done),
            runs: count(runs),
            passed: count(passed),
            expected: count(expected),
            step,
        }
    }

    /// Sets the number of requests that all runs will perform.
    pub fn expect(&self, ops: u64) {
        self.0.total.store(ops, Ordering::Relaxed);
    }

    /// Sets the number of runs.
    pub(crate) fn expect_runs(&self, runs: u64) {
        self.0.runs.store(runs, Ordering::Relaxed);
    }

    /// Sets the seconds that all runs are expected to take. Only the ratio of these seconds to those of each
    /// run matters.
    pub(crate) fn expect_seconds(&self, seconds: f64) {
        self.0.expected.store(nanos(seconds), Ordering::Relaxed);
    }

    /// Returns this progress for one run, with the expected time and number of requests of that run.
    pub(crate) fn of_run(&self, seconds: f64, requests: u64) -> Progress {
        let expected = Expected { nanos: nanos(seconds), requests, passed: AtomicU64::new(0) };
        Progress(Arc::clone(&self.0), Some(Arc::new(expected)))
    }

    /// Cancels every run that reports to this progress: each run fails at its next report. It serves callers
    /// that continue after the cancellation; the command ends its process instead.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the progress that this thread watches; `None` if it watches none.
    pub fn of_thread() -> Option<Progress> {
        WATCHED.with_borrow(Clone::clone)
    }

    /// Whether [`Progress::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Unwinds the run if it was cancelled. Futures and policies between here and the runner cannot return a
    /// result, so the run unwinds to the runner, which catches it.
    fn check_stopped(&self) {
        if self.is_stopped() {
            StackError::run("stopped, since its caller asked for that").unwind();
        }
    }

    /// Reports that `ops` more requests are complete.
    pub fn add(&self, ops: u64) {
        self.0.done.fetch_add(ops, Ordering::Relaxed);
        if let Some(expected) = &self.1 {
            let part = u128::from(expected.nanos) * u128::from(ops) / u128::from(expected.requests.max(1));
            self.pass(expected, u64::try_from(part).unwrap_or(u64::MAX));
        }
        self.check_stopped();
    }

    /// Adds `nanos` to the passed time of a run, up to its expected time. The run may have more requests than
    /// were expected.
    fn pass(&self, expected: &Expected, nanos: u64) {
        let before = expected.passed.fetch_add(nanos, Ordering::Relaxed);
        self.0.passed.fetch_add(nanos.min(expected.nanos.saturating_sub(before)), Ordering::Relaxed);
    }

    pub(crate) fn add_run(&self) {
        self.0.runs_done.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the rest of the run's expected time to the passed time, because the run has succeeded.
    pub(crate) fn end(&self) {
        if let Some(expected) = &self.1 {
            self.pass(expected, expected.nanos);
        }
    }

    /// Skips a run whose rows are known from an earlier execution. Its requests count as complete, but its
    /// expected time does not count, because the run is not executed.
    pub(crate) fn skip(&self, ops: u64) {
        self.0.done.fetch_add(ops, Ordering::Relaxed);
        if let Some(expected) = &self.1 {
            expected.passed.store(expected.nanos, Ordering::Relaxed);
            let _ = self.0.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| {
                Some(all.saturating_sub(expected.nanos))
            });
        }
    }

    /// Reports that `left` of a run's `ops` requests remain.
    #[inline]
    pub fn left(&self, left: u64, ops: u64) {
        if left.is_multiple_of(Progress::STEP) {
            // The first report of a run may cover fewer requests than the others.
            self.add((ops - left).min(Progress::STEP));
        }
    }

    /// Sets the counts of requests, runs and passed time to zero after preparatory runs.
    pub fn restart(&self) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.runs_done.store(0, Ordering::Relaxed);
        self.0.passed.store(0, Ordering::Relaxed);
    }

    /// Calls `work`. Steps that this thread begins meanwhile belong to this progress.
    pub fn watching<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the former progress of the thread, also after a panic.
        struct Before(Option<Progress>);
        impl Drop for Before {
            fn drop(&mut self) {
                WATCHED.set(self.0.take());
            }
        }
        let _before = Before(WATCHED.replace(Some(self.clone())));
        work()
    }

    /// Sets the thread that is unparked when a step begins, so that short steps are shown. Only the first
    /// call has an effect.
    pub fn wake(&self, watcher: Thread) {
        let _ = self.0.watcher.set(watcher);
    }

    /// Takes the remarks that were left so far. A remark is a sentence for people that is not part of a
    /// table.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Leaves remarks that were taken before.
    pub fn put_remarks(&self, remarks: Vec<String>) {
        self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner).extend(remarks);
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Arc<StepCounts>>> {
        // Steps are inserted and removed whole, so a panic elsewhere leaves the list usable.
        self.0.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

thread_local! {
    static WATCHED: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

/// Unwinds this thread's run if the run was cancelled. Work that reports nothing for a long time calls this.
pub fn check_stopped() {
    WATCHED.with_borrow(|progress| {
        if let Some(progress) = progress {
            progress.check_stopped();
        }
    });
}

/// Leaves a sentence for the people who watch this thread's progress.
pub fn remark(sentence: String) {
    if let Some(progress) = WATCHED.with_borrow(Clone::clone) {
        progress.0.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }
}

/// A running step. It ends when this value is dropped.
#[derive(Debug)]
pub struct Step {
    counts: Arc<StepCounts>,
    progress: Option<Progress>,
}

/// Begins the step `what` with `total` parts; `total` is 0 if their number is not known.
pub fn step(what: impl Into<String>, total: u64) -> Step {
    let counts = Arc::new(StepCounts { what: what.into(), done: AtomicU64::new(0), total });
    // A thread without a progress still gets a step, since most tests and other programs watch no progress.
    let progress = WATCHED.with_borrow(Clone::clone);
    if let Some(progress) = &progress {
        progress.steps().push(Arc::clone(&counts));
        if let Some(watcher) = progress.0.watcher.get() {
            watcher.unpark();
        }
    }
    Step { counts, progress }
}

impl Step {
    /// Reports that `parts` more parts are complete.
    pub fn add(&self, parts: u64) {
        self.counts.done.fetch_add(parts, Ordering::Relaxed);
        if let Some(progress) = &self.progress {
            progress.check_stopped();
        }
    }

    /// Counts the bytes that are read from `source` as parts of the step.
    pub fn reading<R: Read>(self, source: R) -> impl Read {
        Counted { source, step: self }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(progress) = &self.progress {
            progress.steps().retain(|step| !Arc::ptr_eq(step, &self.counts));
        }
    }
}

struct Counted<R> {
    source: R,
    step: Step,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        self.step.add(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_belongs_to_the_progress_that_its_thread_watches() {
        let progress = Progress::default();
        drop(step("nobody looks", 0));
        progress.watching(|| {
            let first = step("reading t", 10);
            let second = step("sorting", 0);
            first.add(3);
            assert_eq!(progress.snapshot().step, Some(("sorting".to_owned(), 0, 0)));
            drop(second);
            assert_eq!(progress.snapshot().step, Some(("reading t".to_owned(), 3, 10)));
        });
        assert_eq!(progress.snapshot(), Snapshot::default());
        let _after = step("nobody looks any more", 0);
        assert_eq!(progress.snapshot().step, None);
    }

    /// A run of any length adds exactly its number of requests to the count. Otherwise the percentage of many
    /// short runs would be wrong.
    #[test]
    fn a_run_counts_as_many_requests_as_it_has() {
        for ops in [1, 5000, Progress::STEP - 1, Progress::STEP, Progress::STEP + 1, 5 * Progress::STEP / 2] {
            let progress = Progress::default();
            (0..ops).rev().for_each(|left| progress.left(left, ops));
            assert_eq!(progress.snapshot().done, ops);
        }
    }

    /// Each run counts by its expected time and not by its number of requests. A run whose rows are known
    /// does not count.
    #[test]
    fn runs_count_by_the_time_that_they_are_expected_to_take() {
        let progress = Progress::default();
        progress.expect_seconds(10e-9);
        let seen = || (progress.snapshot().passed, progress.snapshot().expected);
        let long = progress.of_run(6e-9, 3);
        long.add(1);
        assert_eq!(seen(), (2, 10), "a third of six");
        let short = progress.of_run(1e-9, 1000);
        short.add(1000);
        short.end();
        assert_eq!(seen(), (3, 10));
        progress.of_run(3e-9, 5).skip(5);
        assert_eq!(seen(), (3, 7));
        long.add(1);
        assert_eq!(seen(), (5, 7));
        long.end();
        assert_eq!(seen(), (7, 7), "fewer requests than were known");
        long.add(7);
        assert_eq!(seen(), (7, 7), "more requests than were known");
        assert_eq!(progress.snapshot().done, 1014);
    }

    #[test]
    fn reading_is_counted() {
        let progress = Progress::default();
        progress.watching(|| {
            let mut source = step("reading t", 5).reading(&b"12345"[..]);
            let mut first = [0; 2];
            source.read_exact(&mut first).unwrap();
            assert_eq!(progress.snapshot().step, Some(("reading t".to_owned(), 2, 5)));
        });
    }
}
