//! Jobs of threads, and the single-threaded core that executes them.

use fulgurite_base::Nanos;
use fulgurite_device::{Done, Errand};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Number of a job, in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Job(pub u64);

/// The state of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A task is ready to run.
    Turn,
    /// Commands or timers are pending.
    Wait {
        /// The time of the next timer, if there is one.
        until: Option<Nanos>,
    },
    /// Idle.
    Nothing,
}

/// A single-threaded core that threads drive.
pub(super) trait Core {
    /// Runs ready tasks without waiting, and adds the jobs that ended.
    fn turn(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Waits for a pending command or timer, and adds the jobs that ended.
    fn wait(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Runs ready tasks. May return the one command that the job now waits for, for the caller to execute.
    fn errand(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<Option<Errand>, Broken>;

    /// Whether only one command is pending and several jobs wait for it.
    fn has_errand_for_all(&self) -> bool;

    /// Whether the thread of a job executes such commands.
    fn carries_for_all(&self, job: Job) -> bool;

    /// Processes the completion of an errand, and runs ready tasks.
    fn end_errand(&mut self, done: Done, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Cancels a job that has not ended, and adds the jobs that ended.
    fn give_up(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// A flag that makes a turn return soon.
    fn interrupt(&self) -> Arc<AtomicBool>;

    /// The state of the core. Errands do not count as pending.
    fn next(&self) -> Next;

    /// The clock of [`Next::Wait`].
    fn now(&self) -> Nanos;
}

/// The core is unusable: a thread panicked in it, or its device violated its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;
