//! The state of a core that its lock guards, and the state of each waiting thread; see `driving`.

use super::jobs::{Core, Job};
use super::primitives::Primitives;
use fulgurite_base::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The job number of the keeper, which comes after all others.
pub(super) const KEEPER: Job = Job(u64::MAX);

/// The holder of the driver's role. No other thread can observe a thread that drives with the lock held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Free,
    /// The thread of this job becomes the driver when it has the lock.
    Handed(Job),
    /// The thread of this job is the driver, and is parked.
    Parked(Job),
}

/// The state of a thread that waits for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    /// The thread has the lock, or is about to take it.
    Awake,
    Asleep,
    /// The thread executes an errand, and comes back by itself.
    Away,
    /// The thread is parked, at most until this time; `None` means no timer limits the park.
    Parked(Option<Nanos>),
}

pub(super) struct Waiting<P: Primitives> {
    pub sleeper: Arc<Sleeper<P>>,
    pub thread: ThreadState,
    pub ended: bool,
}

/// The bell that a thread sleeps on without the lock.
pub(super) struct Sleeper<P: Primitives> {
    pub bell: P::Bell,
    /// Whether the job has ended and its entry in `waiting` was removed, so that the thread need not take the
    /// lock.
    pub is_done: AtomicBool,
}

pub(super) struct State<C, P: Primitives> {
    pub core: C,
    pub role: Role,
    /// The job of the thread that was woken to execute a command that several jobs wait for, until this
    /// thread has the lock.
    pub carrier: Option<Job>,
    pub drawn: u64,
    /// The time at which the driver last let other threads take the lock.
    pub held_since: Nanos,
    /// The threads that wait for their jobs, by job, in order of arrival.
    pub waiting: BTreeMap<Job, Waiting<P>>,
    /// A reusable buffer, empty between uses.
    pub ended: Vec<Job>,
    pub broken: bool,
    pub keeper_stopped: bool,
}

impl<C: Core, P: Primitives> State<C, P> {
    /// Whether a woken thread is about to execute the only pending command.
    pub(super) fn is_carried(&self) -> bool {
        self.carrier.is_some() && self.core.has_errand_for_all()
    }

    pub(super) fn set_thread(&mut self, job: Job, thread: ThreadState) {
        if let Some(waiting) = self.waiting.get_mut(&job) {
            waiting.thread = thread;
        }
    }

    /// Records that the thread of a job has the lock. If it was woken for a command, it now looks for this
    /// command itself.
    pub(super) fn has_come(&mut self, job: Job) {
        self.carrier = self.carrier.filter(|carrier| *carrier != job);
    }

    pub(super) fn has_ended(&self, job: Job) -> bool {
        self.waiting.get(&job).is_none_or(|waiting| waiting.ended)
    }
}
