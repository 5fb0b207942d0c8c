//! How far runs have come, and what they are doing.
//!
//! Requests and runs are counted. What takes long beside requests (reading a trace, preconditioning a drive, measuring
//! one) is a [`Step`], which [`step`] begins. Steps begin deep in the stack, so the progress that they belong to is
//! known by their thread: see [`Progress::watching`]. Remarks go the same way.

use crate::StackError;
use std::cell::RefCell;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

/// How far runs have come, to be looked at from another thread. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    durable: AtomicU64,
    total: AtomicU64,
    runs_done: AtomicU64,
    runs: AtomicU64,
    /// The steps under way, in the order in which they began.
    steps: Mutex<Vec<Arc<StepCounts>>>,
    remarks: Mutex<Vec<String>>,
    /// Who looks, and is woken where a step begins.
    watcher: OnceLock<Thread>,
    is_stopped: AtomicBool,
}

/// A step and how far it has come.
#[derive(Debug)]
struct StepCounts {
    what: String,
    done: AtomicU64,
    /// Zero where it is not known.
    total: u64,
}

/// What a thread that draws the progress sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Requests that were performed.
    pub done: u64,
    /// Requests to perform, as far as is known; zero where it is not.
    pub total: u64,
    /// Runs that have ended.
    pub runs_done: u64,
    /// Runs in all; zero before they begin.
    pub runs: u64,
    /// What is done beside requests: the step that began last, with what is done of it and what there is to do, zero
    /// where that is not known.
    pub step: Option<(String, u64, u64)>,
}

impl Progress {
    /// A run reports once in this number of requests: an atomic addition for each would show in its speed.
    const STEP: u64 = 1 << 14;

    /// Of what is done, so much stays whatever happens.
    pub fn keep(&self, done: u64) {
        self.0.durable.store(done, Ordering::Relaxed);
    }

    /// What [`Progress::keep`] was told last.
    pub fn durable(&self) -> u64 {
        self.0.durable.load(Ordering::Relaxed)
    }

    /// How far runs have come now.
    pub fn snapshot(&self) -> Snapshot {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let step = self.steps().last().map(|step| (step.what.clone(), count(&step.done), step.total));
        let Counts { done, total, runs_done, runs, .. } = &*self.0;
        Snapshot {
            done: count(done),
            total: count(total),
            runs_done: count(runs_done),
            runs: count(runs),
            step,
        }
    }

    /// Sets the number of requests to perform.
    pub fn expect(&self, ops: u64) {
        self.0.total.store(ops, Ordering::Relaxed);
    }

    /// Sets the number of runs.
    pub fn expect_runs(&self, runs: u64) {
        self.0.runs.store(runs, Ordering::Relaxed);
    }

    /// Ends every run that reports to this progress: each fails with the next thing that it reports. For callers that
    /// live on, where the command would end its process.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// The progress that this thread's work is reported to.
    pub fn of_thread() -> Option<Progress> {
        WATCHED.with_borrow(Clone::clone)
    }

    /// Whether [`Progress::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// Leaves the run by unwinding if it shall not go on. No result has room for this: futures and policies stand between
    /// here and the runner, which catches it.
    fn check_stopped(&self) {
        if self.is_stopped() {
            StackError::run("stopped, since its caller asked for that").unwind();
        }
    }

    pub(crate) fn add(&self, ops: u64) {
        self.0.done.fetch_add(ops, Ordering::Relaxed);
        self.check_stopped();
    }

    pub(crate) fn add_run(&self) {
        self.0.runs_done.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports that `left` requests remain of the `ops` that one run performs.
    #[inline]
    pub fn left(&self, left: u64, ops: u64) {
        if left.is_multiple_of(Progress::STEP) {
            // The first report of a run has fewer requests behind it than the others.
            self.add((ops - left).min(Progress::STEP));
        }
    }

    /// Forgets what was done so far: it prepared for what is to be counted.
    pub fn restart(&self) {
        self.0.done.store(0, Ordering::Relaxed);
        self.0.runs_done.store(0, Ordering::Relaxed);
    }

    /// Does `work`; the steps that this thread begins meanwhile belong to this progress.
    pub fn watching<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Puts back what was there before, also after a panic.
        struct Before(Option<Progress>);
        impl Drop for Before {
            fn drop(&mut self) {
                WATCHED.set(self.0.take());
            }
        }
        let _before = Before(WATCHED.replace(Some(self.clone())));
        work()
    }

    /// Unparks `watcher` whenever a step begins, so that a short one is seen too. The first watcher stays.
    pub fn wake(&self, watcher: Thread) {
        let _ = self.0.watcher.set(watcher);
    }

    /// Takes what was remarked so far: sentences for people that belong to no table.
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn steps(&self) -> MutexGuard<'_, Vec<Arc<StepCounts>>> {
        // Steps come and go whole, so a panic elsewhere leaves the list usable.
        self.0.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static WATCHED: RefCell<Option<Progress>> = const { RefCell::new(None) };
}

/// Ends the run that this thread executes if the progress that it watches was stopped: for work that reports nothing for
/// long.
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

/// A step under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Step {
    counts: Arc<StepCounts>,
    progress: Option<Progress>,
}

/// Begins a step, which `what` names, in `total` parts or, where that is not known, zero.
pub fn step(what: impl Into<String>, total: u64) -> Step {
    let counts = Arc::new(StepCounts { what: what.into(), done: AtomicU64::new(0), total });
    // Nobody watches in most tests and in programs of other people.
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
    /// Reports that `parts` more are done.
    pub fn add(&self, parts: u64) {
        self.counts.done.fetch_add(parts, Ordering::Relaxed);
        if let Some(progress) = &self.progress {
            progress.check_stopped();
        }
    }

    /// Counts what is read of `source` as parts of the step.
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

    /// The rule: a run of any length adds as many requests as it has, so that a percentage of many short runs is true.
    #[test]
    fn a_run_counts_as_many_requests_as_it_has() {
        for ops in [1, 5000, Progress::STEP - 1, Progress::STEP, Progress::STEP + 1, 5 * Progress::STEP / 2] {
            let progress = Progress::default();
            (0..ops).rev().for_each(|left| progress.left(left, ops));
            assert_eq!(progress.snapshot().done, ops);
        }
    }

    #[test]
    fn what_is_read_is_counted() {
        let progress = Progress::default();
        progress.watching(|| {
            let mut source = step("reading t", 5).reading(&b"12345"[..]);
            let mut first = [0; 2];
            source.read_exact(&mut first).unwrap();
            assert_eq!(progress.snapshot().step, Some(("reading t".to_owned(), 2, 5)));
        });
    }
}
