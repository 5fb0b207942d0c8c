//! Jobs of threads, and the interface of the single-threaded core that executes them.

use fulgurite_base::Nanos;
use fulgurite_device::{Done, Errand};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The number of a job. Numbers are in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Job(pub u64);

/// The next action that a core needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A turn: a task is ready to run.
    Turn,
    /// A wait: no task is ready, but commands or timers are pending.
    Wait {
        /// The time of the next timer; `None` if no timer is pending.
        until: Option<Nanos>,
    },
    /// No action: the core is idle.
    Nothing,
}

/// A single-threaded core that threads drive; see `driving`.
pub(super) trait Core {
    /// Runs ready tasks without waiting, and appends the jobs that ended.
    fn turn(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Waits for a pending command or timer, and appends the jobs that ended.
    fn wait(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Runs ready tasks. If the job then waits for exactly one command, the command may be returned, and the
    /// caller must execute it.
    fn errand(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<Option<Errand>, Broken>;

    /// Whether only one command is pending and several jobs wait for it.
    fn has_errand_for_all(&self) -> bool;

    /// Whether the thread of a job may execute a command that several jobs wait for.
    fn carries_for_all(&self, job: Job) -> bool;

    /// Processes the completion of an errand, runs ready tasks, and appends the jobs that ended.
    fn end_errand(&mut self, done: Done, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Cancels a job that has not ended, and appends the jobs that ended.
    fn give_up(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Returns a flag for other threads: once it is set, [`Core::turn`] returns after the running task.
    fn interrupt(&self) -> Arc<AtomicBool>;

    /// Returns the next action that the core needs. Commands that are executed as errands do not count as
    /// pending.
    fn next(&self) -> Next;

    /// Returns the current time on the clock of [`Next::Wait`].
    fn now(&self) -> Nanos;
}

/// The core is unusable: a thread panicked in it, or its device violated its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;
