//! Reports the progress of runs to another thread.
//!
//! Requests and runs are counted. Other long work (reading a trace, preconditioning a drive, measuring one)
//! is a [`Step`], which [`step`] begins.
//!
//! A step belongs to the progress of its thread, which [`Progress::watching`] sets; remarks do too. This
//! thread-local is on purpose. Steps begin in trace readers, in memos of preconditioned drives, and in
//! policies that measure the drive while a setting is resolved. As an argument, the progress would run
//! through every signature between the command line and those places, and through policies that users write.
//! A run stays on one thread, so no progress is missed.

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
    /// Nanoseconds that all runs are expected to take, and the part of them that has passed.
    expected: AtomicU64,
    passed: AtomicU64,
    /// The running steps, in the order in which they began.
    steps: Mutex<Vec<Arc<StepCounts>>>,
    remarks: Mutex<Vec<String>>,
    /// The thread that shows the progress; a step that begins wakes it.
    watcher: OnceLock<Thread>,
    is_stopped: AtomicBool,
}

/// The expected time of one run.
#[derive(Debug)]
struct Expected {
    nanos: u64,
    requests: u64,
    /// The part of it that has passed.
    passed: AtomicU64,
}

/// A step and its progress.
#[derive(Debug)]
struct StepCounts {
    what: String,
    done: AtomicU64,
    /// Zero if it is not known.
    total: u64,
}

/// A snapshot for the thread that shows the progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Completed requests.
    pub done: u64,
    /// All requests, as far as is known; zero if it is not.
    pub total: u64,
    /// Completed runs.
    pub runs_done: u64,
    /// All runs; zero before they begin.
    pub runs: u64,
    /// The part of the expected time of all runs that has passed, in nanoseconds.
    pub passed: u64,
    /// The expected time of all runs, in nanoseconds; zero if it is not known.
    pub expected: u64,
    /// The step that began last, its completed parts and all its parts; zero parts if they are not known.
    pub step: Option<(String, u64, u64)>,
}

impl Progress {
    /// A run reports once per this number of requests, because an atomic addition for each would slow it
    /// down.
    const STEP: u64 = 1 << 14;

    /// Sets the number of requests whose results an interrupt keeps.
    pub fn keep(&self, done: u64) {
        self.0.durable.store(done, Ordering::Relaxed);
    }

    /// The number that [`Progress::keep`] has set.
    pub fn durable(&self) -> u64 {
        self.0.durable.load(Ordering::Relaxed)
    }

    /// The current progress.
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

    /// Sets the number of requests to perform.
    pub fn expect(&self, ops: u64) {
        self.0.total.store(ops, Ordering::Relaxed);
    }

    /// Sets the number of runs.
    pub(crate) fn expect_runs(&self, runs: u64) {
        self.0.runs.store(runs, Ordering::Relaxed);
    }

    /// Sets the seconds that all runs are expected to take. Only their ratio to those of each run matters.
    pub(crate) fn expect_seconds(&self, seconds: f64) {
        self.0.expected.store(nanos(seconds), Ordering::Relaxed);
    }

    /// The same progress, for a run with an expected time and number of requests.
    pub(crate) fn of_run(&self, seconds: f64, requests: u64) -> Progress {
        let expected = Expected { nanos: nanos(seconds), requests, passed: AtomicU64::new(0) };
        Progress(Arc::clone(&self.0), Some(Arc::new(expected)))
    }

    /// Stops every run that reports to this progress: each fails at its next report. For callers that
    /// continue after it; the command ends its process instead.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// The progress of this thread.
    pub fn of_thread() -> Option<Progress> {
        WATCHED.with_borrow(Clone::clone)
    }

    /// Whether [`Progress::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Unwinds the run if it was stopped. Futures and policies between here and the runner cannot return a
    /// result; the runner catches the panic.
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

    /// Adds to the passed time of a run, up to its expected time: the run may have more requests than were
    /// known.
    fn pass(&self, expected: &Expected, nanos: u64) {
        let before = expected.passed.fetch_add(nanos, Ordering::Relaxed);
        self.0.passed.fetch_add(nanos.min(expected.nanos.saturating_sub(before)), Ordering::Relaxed);
    }

    pub(crate) fn add_run(&self) {
        self.0.runs_done.fetch_add(1, Ordering::Relaxed);
    }

    /// The run has succeeded, so all of its expected time has passed.
    pub(crate) fn end(&self) {
        if let Some(expected) = &self.1 {
            self.pass(expected, expected.nanos);
        }
    }

    /// The rows of the run are known from an earlier execution. It takes no time, so its expected time does
    /// not count.
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
            // The first report of a run covers fewer requests than the others.
            self.add((ops - left).min(Progress::STEP));
        }
    }

    /// Resets the counts after preparatory runs.
    pub fn restart(&self) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.runs_done.store(0, Ordering::Relaxed);
        self.0.passed.store(0, Ordering::Relaxed);
    }

    /// Runs `work`; steps that this thread begins meanwhile belong to this progress.
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

    /// Unparks `watcher` when a step begins, so that short steps are shown. Only the first call has an
    /// effect.
    pub fn wake(&self, watcher: Thread) {
        let _ = self.0.watcher.set(watcher);
    }

    /// Takes the remarks so far: sentences for people that are not part of a table.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner))
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

/// Unwinds this thread's run if its progress was stopped; for work that reports nothing for a long time.
pub fn check_stopped() {
    WATCHED.with_borrow(|progress| {
        if let Some(progress) = progress {
            progress.check_stopped();
        }
    });
}

/// Leaves a sentence for the people who watch this thread's progress.
pub(crate) fn remark(sentence: String) {
    if let Some(progress) = WATCHED.with_borrow(Clone::clone) {
        progress.0.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
    }
}

/// A running step; it ends when this is dropped.
#[derive(Debug)]
pub struct Step {
    counts: Arc<StepCounts>,
    progress: Option<Progress>,
}

/// Begins the step `what` with `total` parts; zero if the number is not known.
pub fn step(what: impl Into<String>, total: u64) -> Step {
    let counts = Arc::new(StepCounts { what: what.into(), done: AtomicU64::new(0), total });
    // Most tests and other programs have no progress.
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
    /// Reports that `parts` more are complete.
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

    /// A run of any length adds exactly its number of requests, so that the percentage of many short runs is
    /// right.
    #[test]
    fn a_run_counts_as_many_requests_as_it_has() {
        for ops in [1, 5000, Progress::STEP - 1, Progress::STEP, Progress::STEP + 1, 5 * Progress::STEP / 2] {
            let progress = Progress::default();
            (0..ops).rev().for_each(|left| progress.left(left, ops));
            assert_eq!(progress.snapshot().done, ops);
        }
    }

    /// Each run counts by its expected time, whatever its number of requests, and a run whose rows are known
    /// counts for nothing.
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
