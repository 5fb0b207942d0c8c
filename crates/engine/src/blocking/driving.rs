//! Driving: the protocol by which threads share one single-threaded core, a variant of the leader/followers
//! pattern.
//!
//! A *core* is the executor and store of a shard. A mutex (the *lock*) guards it. A call takes the lock and
//! starts a *job*. If the job needs no I/O, it ends at once. A job that has to wait stays in the core. Then
//! some thread must *drive* the core: run ready tasks, and wait for the device. No thread is dedicated to
//! this. One of the threads that wait for their jobs has the role of the *driver*:
//!
//! - The driver waits for the device without the lock (it is *parked*), so that other calls can run. If the
//!   device does not support this, the driver waits with the lock held.
//! - A call that finds the driver parked runs a *turn* of the core itself: all ready tasks. The turn also
//!   submits the commands of the call to the device. If the job of the call has not ended then, its thread
//!   sleeps until the job ends or the thread becomes the driver.
//! - If a job waits for exactly one command, its thread executes the command itself, without the lock and
//!   without a driver. This is an *errand*. If the lock is held when the command completes, the thread leaves
//!   the completion to the holder of the lock. Otherwise it runs a turn itself.
//! - Many jobs may wait for the same command, as commits do for a write of the log. The thread of any of them
//!   may execute it as an errand. A thread that leaves such a command behind wakes one of them.
//! - The commands of a turn are left in a queue. The thread submits them when it has released the lock, because the
//!   kernel takes longer for them than the turn.
//! - A driver releases the lock regularly, because it may drive for a long time.
//! - A sleeping thread is woken when its job has ended, and returns without the lock.
//! - A driver whose own job has ended hands the role to the thread that has waited longest.
//! - A thread may be asked regularly whether it still wants its job. It is asked without the lock and without
//!   the role. If it does not want its job any more, the job is cancelled.
//! - An idle core needs no driver: its jobs wait for other calls. A call that returns hands the role to a
//!   sleeping thread if the core is not idle and has no driver.
//! - A *keeper* is a thread without a job that drives while no other thread does. It performs background
//!   work.
//!
//! Invariant: if the core is not idle and some thread sleeps, then a thread has the role or is about to take
//! the lock. A thread that releases the lock first processes the completions of errands that have arrived by
//! then. `tests` checks all of this under random schedules.

use super::asking::{Asking, GoesOn};
#[cfg(test)]
use super::faults::Planted;
use super::faults::fault;
use super::jobs::{Broken, Core, Job, Next};
use super::primitives::Primitives;
use super::state::{KEEPER, Role, Sleeper, State, ThreadState, Waiting};
use fulgurite_base::Nanos;
use fulgurite_device::{Done, Errand, Park};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The longest time that a driver is parked. The bound is needed because a kernel that rejected a command for
/// lack of memory does not signal when it has memory again.
const LONGEST_PARK: Nanos = Nanos(1_000_000_000);

/// A core that many threads share.
pub(super) struct Driving<C: Send, P: Primitives> {
    state: P::Mutex<State<C, P>>,
    /// The completions of errands that ended while another thread held the lock of `state`. A thread that
    /// holds the lock of `returned` never waits for the lock of `state`, so the two cannot deadlock.
    returned: P::Mutex<Vec<(Job, Done)>>,
    interrupt: Arc<AtomicBool>,
    park: Option<Arc<dyn Park>>,
    #[cfg(test)]
    pub planted: Option<Planted>,
}

type Guard<'a, C, P> = <P as Primitives>::Guard<'a, State<C, P>>;

impl<C: Core + Send, P: Primitives> Driving<C, P> {
    /// Shares `core`. `park` waits for the device of the core without the lock; `None` if the device does not
    /// support this.
    pub(super) fn new(core: C, park: Option<Arc<dyn Park>>) -> Driving<C, P> {
        let interrupt = core.interrupt();
        let state = State {
            core,
            role: Role::Free,
            carrier: None,
            drawn: 0,
            held_since: Nanos::ZERO,
            waiting: BTreeMap::new(),
            ended: Vec::new(),
            broken: false,
            keeper_stopped: false,
        };
        Driving {
            state: P::mutex(state),
            returned: P::mutex(Vec::new()),
            interrupt,
            park,
            #[cfg(test)]
            planted: None,
        }
    }

    /// Starts a job. If `start` returns a value, the job has ended, and the value is returned. Otherwise the
    /// thread waits until the core reports the end of the job, and `None` is returned. The job is cancelled
    /// if `goes_on` returns false.
    pub(super) fn call<T>(
        &self,
        goes_on: Option<&GoesOn>,
        start: impl FnOnce(&mut C, Job) -> Option<T>,
    ) -> Result<Option<T>, Broken> {
        let mut guard = P::lock(&self.state);
        if guard.broken {
            return Err(Broken);
        }
        let job = Job(guard.drawn);
        guard.drawn += 1;
        let started = catch_unwind(AssertUnwindSafe(|| start(&mut guard.core, job)));
        let outcome = started.unwrap_or_else(|panic| self.pass_panic(&mut guard, panic));
        if outcome.is_none() {
            match self.until_ended(job, goes_on, guard) {
                Some(locked) => guard = locked,
                None => return Ok(outcome),
            }
        }
        let outcome = if guard.broken { Err(Broken) } else { Ok(outcome) };
        self.leave(guard);
        outcome
    }

    /// Drives the core while no other thread does, until [`Driving::stop_keeper`] is called.
    pub(super) fn keep(&self) {
        let guard = P::lock(&self.state);
        if guard.keeper_stopped || guard.waiting.contains_key(&KEEPER) {
            return;
        }
        if let Some(guard) = self.until_ended(KEEPER, None, guard) {
            self.leave(guard);
        }
    }

    /// Makes [`Driving::keep`] return, now and in future calls.
    pub(super) fn stop_keeper(&self) {
        let mut guard = P::lock(&self.state);
        // The flag is set even if there is no keeper to wake: the thread of the keeper may not have started
        // yet.
        guard.keeper_stopped = true;
        self.end(&mut guard, KEEPER);
        self.leave(guard);
    }

    /// Completes all pending work. No other thread may have a job.
    pub(super) fn finish(&self) {
        let mut guard = P::lock(&self.state);
        // A keeper that is parked loses the role to this thread, and notices it when it wakes.
        while !guard.broken && guard.core.next() != Next::Nothing {
            guard = self.step(KEEPER, None, guard).0;
        }
        guard.role = Role::Free;
    }

    /// Waits until a job has ended or is cancelled, and drives if no other thread does. Returns the lock, or
    /// `None` if the thread does not hold it.
    fn until_ended<'a>(
        &'a self,
        job: Job,
        goes_on: Option<&GoesOn>,
        mut guard: Guard<'a, C, P>,
    ) -> Option<Guard<'a, C, P>> {
        let sleeper = Arc::new(Sleeper { bell: P::Bell::default(), is_done: AtomicBool::new(false) });
        let waiting = Waiting { sleeper: Arc::clone(&sleeper), thread: ThreadState::Awake, ended: false };
        guard.waiting.insert(job, waiting);
        let mut asking = Asking::new(goes_on, || guard.core.now());
        while !guard.broken && !guard.has_ended(job) {
            if asking.is_due(|| guard.core.now()) {
                let goes_on;
                (guard, goes_on) = self.ask(job, &mut asking, guard);
                if !goes_on && !guard.broken && !guard.has_ended(job) {
                    self.work(&mut guard, |core, ended| core.give_up(job, ended));
                    break;
                }
                continue;
            }
            // A thread that was handed the role drives before it looks for an errand.
            if job != KEEPER && guard.role != Role::Handed(job) {
                match self.errand(job, &mut guard) {
                    Some(errand) => {
                        guard = self.run_errand(job, &sleeper, errand, guard)?;
                        continue;
                    }
                    // The ready tasks that `errand` has run may have ended the job.
                    None if guard.broken || guard.has_ended(job) => break,
                    None => {}
                }
            }
            let next = guard.core.next();
            let drives = match guard.role {
                Role::Free => next != Next::Nothing,
                Role::Handed(to) => to == job,
                // A thread that must wait for the device takes the role from a keeper; otherwise the keeper
                // would have to wake it.
                Role::Parked(KEEPER) => matches!(next, Next::Wait { .. }),
                Role::Parked(_) => false,
            };
            if drives {
                guard = self.drive(job, &asking, guard);
            } else if matches!(guard.role, Role::Parked(_)) && next == Next::Turn {
                self.turn(&mut guard);
            } else {
                self.hurry(&mut guard);
                guard.set_thread(job, ThreadState::Asleep);
                let has_waited;
                (guard, has_waited) = self.sleep(job, &sleeper, asking.patience(), guard)?;
                if has_waited {
                    asking.has_waited();
                }
            }
        }
        self.forget(&mut guard, job);
        Some(guard)
    }

    /// Sleeps until the thread is woken, at most for `at_most`. Returns the lock and whether that time is
    /// over, or `None` if the job has ended.
    fn sleep<'a>(
        &'a self,
        job: Job,
        sleeper: &Sleeper<P>,
        at_most: Option<Nanos>,
        guard: Guard<'a, C, P>,
    ) -> Option<(Guard<'a, C, P>, bool)> {
        self.unlock(guard);
        let has_waited = P::sleep(&sleeper.bell, at_most);
        if sleeper.is_done.load(Acquire) {
            return None;
        }
        let mut guard = P::lock(&self.state);
        guard.set_thread(job, ThreadState::Awake);
        guard.has_come(job);
        Some((guard, has_waited))
    }

    /// Drives until the job of this thread has ended, the core is idle, another thread has taken the role,
    /// the thread may go on an errand, or it must be asked.
    fn drive<'a>(&'a self, job: Job, asking: &Asking<'_>, mut guard: Guard<'a, C, P>) -> Guard<'a, C, P> {
        loop {
            guard.role = Role::Free;
            if guard.has_ended(job) || guard.broken || guard.core.next() == Next::Nothing {
                return guard;
            }
            let has_role;
            (guard, has_role) = self.step(job, asking.patience(), guard);
            // The thread leaves the loop if ready tasks remain, because its job may now wait for a command
            // that can be an errand.
            let may_go = job != KEEPER && guard.core.next() == Next::Turn;
            let is_asked = asking.is_due(|| guard.core.now()) && !self.planted(fault!(DriverNotAsked));
            if !has_role || may_go || is_asked {
                guard.role = if has_role { Role::Free } else { guard.role };
                return guard;
            }
        }
    }

    fn errand(&self, job: Job, guard: &mut Guard<'_, C, P>) -> Option<Errand> {
        let mut errand = None;
        self.work(guard, |core, ended| {
            errand = core.errand(job, ended)?;
            Ok(())
        });
        errand
    }

    /// Executes an errand without the lock. Returns the lock, or `None` if the job has ended.
    fn run_errand<'a>(
        &'a self,
        job: Job,
        sleeper: &Sleeper<P>,
        errand: Errand,
        mut guard: Guard<'a, C, P>,
    ) -> Option<Guard<'a, C, P>> {
        self.step_aside(&mut guard);
        guard.set_thread(job, ThreadState::Away);
        self.unlock(guard);
        let done = errand.run();
        P::lock(&self.returned).push((job, done));
        let mut guard = match P::try_lock(&self.state) {
            Some(guard) => guard,
            None => {
                // The holder of the lock processes the completion and then rings the bell.
                self.interrupt.store(true, Relaxed);
                P::sleep(&sleeper.bell, None);
                if sleeper.is_done.load(Acquire) {
                    return None;
                }
                P::lock(&self.state)
            }
        };
        guard.set_thread(job, ThreadState::Awake);
        self.take_returned(&mut guard);
        Some(guard)
    }

    /// Processes the completions of errands.
    fn take_returned(&self, guard: &mut Guard<'_, C, P>) {
        loop {
            let returned = std::mem::take(&mut *P::lock(&self.returned));
            if returned.is_empty() {
                return;
            }
            for (job, done) in returned {
                if !guard.broken {
                    self.work(guard, |core, ended| core.end_errand(done, ended));
                }
                // Wakes the thread of the job, if the job has not ended: it may wait for more.
                if let Some(waiting) = guard.waiting.get_mut(&job)
                    && waiting.thread == ThreadState::Away
                {
                    waiting.thread = ThreadState::Awake;
                    P::ring(&waiting.sleeper.bell);
                }
            }
        }
    }

    /// Releases the lock, starts the commands that were left, and processes the completions of errands that have
    /// arrived.
    fn unlock(&self, guard: Guard<'_, C, P>) {
        drop(guard);
        self.submit();
        // A thread that completed an errand before the lock was released found it taken, and relies on its
        // holder, so its completion must not be left behind.
        while !P::lock(&self.returned).is_empty() && !self.planted(fault!(ReturnedUnseen)) {
            let Some(mut guard) = P::try_lock(&self.state) else { return };
            self.take_returned(&mut guard);
            self.look_after(&mut guard);
            drop(guard);
            self.submit();
        }
    }

    /// Starts the commands that turns of the core have left.
    fn submit(&self) {
        if let Some(park) = &self.park
            && !self.planted(fault!(NotSubmitted))
        {
            park.submit();
        }
    }

    /// Asks the thread, without the lock, whether it still wants its job.
    fn ask<'a>(
        &'a self,
        job: Job,
        asking: &mut Asking<'_>,
        mut guard: Guard<'a, C, P>,
    ) -> (Guard<'a, C, P>, bool) {
        if guard.role == Role::Handed(job) {
            guard.role = Role::Free;
        }
        self.step_aside(&mut guard);
        self.unlock(guard);
        let goes_on = asking.ask();
        let guard = P::lock(&self.state);
        asking.again(guard.core.now());
        (guard, goes_on)
    }

    /// Hands the role over if the core needs a driver, before this thread leaves the core.
    fn step_aside(&self, guard: &mut Guard<'_, C, P>) {
        let is_needed = guard.role == Role::Free && guard.core.next() != Next::Nothing;
        if is_needed && !self.planted(fault!(GoneFirst)) {
            self.hand_over(guard);
        }
        self.hurry(guard);
    }

    /// Makes one step of the driver: a turn of the core, or a wait for the device of at most `at_most`.
    /// Returns whether the thread is still the driver.
    fn step<'a>(
        &'a self,
        job: Job,
        at_most: Option<Nanos>,
        mut guard: Guard<'a, C, P>,
    ) -> (Guard<'a, C, P>, bool) {
        let until = match guard.core.next() {
            Next::Turn => {
                self.turn(&mut guard);
                let held = guard.core.now().saturating_sub(guard.held_since);
                return if held >= P::LONGEST_HOLD { self.let_others_in(job, guard) } else { (guard, true) };
            }
            Next::Wait { until } => until,
            Next::Nothing => return (guard, true),
        };
        let Some(park) = &self.park else {
            self.work(&mut guard, C::wait);
            return self.let_others_in(job, guard);
        };
        let longest = at_most.map_or(LONGEST_PARK, |at_most| at_most.min(LONGEST_PARK));
        let left = until.map_or(longest, |until| until.saturating_sub(guard.core.now()).min(longest));
        guard.role = Role::Parked(job);
        guard.set_thread(job, ThreadState::Parked(until));
        self.unlock(guard);
        park.park(Some(left));
        let mut guard = P::lock(&self.state);
        guard.held_since = guard.core.now();
        guard.set_thread(job, ThreadState::Awake);
        self.pass_on(&mut guard);
        let has_role = guard.role == Role::Parked(job) && !guard.broken;
        if has_role {
            self.turn(&mut guard);
        }
        (guard, has_role)
    }

    /// Lets threads take the lock that wait for it, including those that completed errands. The thread stays
    /// the driver unless another one takes the role. Returns whether it is still the driver.
    fn let_others_in<'a>(&'a self, job: Job, mut guard: Guard<'a, C, P>) -> (Guard<'a, C, P>, bool) {
        guard.role = Role::Handed(job);
        self.submit();
        let mut guard = P::let_in(guard);
        guard.held_since = guard.core.now();
        let has_role = guard.role == Role::Handed(job);
        (guard, has_role)
    }

    fn turn(&self, guard: &mut Guard<'_, C, P>) {
        self.take_returned(guard);
        self.work(guard, C::turn);
    }

    /// Calls `work` on the core, and wakes the threads whose jobs have ended.
    fn work(
        &self,
        guard: &mut Guard<'_, C, P>,
        work: impl FnOnce(&mut C, &mut Vec<Job>) -> Result<(), Broken>,
    ) {
        let mut ended = std::mem::take(&mut guard.ended);
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut guard.core, &mut ended)));
        for job in ended.drain(..) {
            self.end(guard, job);
        }
        guard.ended = ended;
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(Broken)) => self.break_down(guard),
            Err(panic) => self.pass_panic(guard, panic),
        }
    }

    /// Marks a job as ended and wakes its thread.
    fn end(&self, guard: &mut Guard<'_, C, P>, job: Job) {
        let Some(waiting) = guard.waiting.get_mut(&job) else { return };
        waiting.ended = true;
        match waiting.thread {
            ThreadState::Awake => {}
            ThreadState::Asleep if self.planted(fault!(NoWake)) => {}
            ThreadState::Asleep | ThreadState::Away => self.dismiss(guard, job),
            ThreadState::Parked(_) if self.planted(fault!(NoUnpark)) => {}
            ThreadState::Parked(_) => self.unpark(),
        }
    }

    /// Removes a thread from the waiting ones. If it was woken for the role or for a command, another thread
    /// may get the role or the command.
    fn forget(&self, guard: &mut Guard<'_, C, P>, job: Job) -> Option<Waiting<P>> {
        guard.has_come(job);
        if guard.role == Role::Handed(job) && !self.planted(fault!(RoleLost)) {
            guard.role = Role::Free;
        }
        guard.waiting.remove(&job)
    }

    /// Ends the wait of a thread that does not hold the lock. The thread returns without taking it.
    fn dismiss(&self, guard: &mut Guard<'_, C, P>, job: Job) {
        if let Some(waiting) = self.forget(guard, job) {
            waiting.sleeper.is_done.store(true, Release);
            P::ring(&waiting.sleeper.bell);
        }
    }

    /// Passes a wake-up on. A driver and a keeper whose role it took may be parked at the same time, and an
    /// unpark wakes only one of them, perhaps not the intended one.
    fn pass_on(&self, guard: &mut Guard<'_, C, P>) {
        let mut others = guard.waiting.values();
        let is_meant =
            others.any(|waiting| waiting.ended && matches!(waiting.thread, ThreadState::Parked(_)));
        if is_meant && !self.planted(fault!(KeptForItself)) {
            self.unpark();
        } else {
            self.hurry(guard);
        }
    }

    fn unpark(&self) {
        if let Some(park) = &self.park {
            park.unpark();
        }
    }

    /// Unparks the driver if ready tasks or an earlier timer must not wait for the end of its park.
    fn hurry(&self, guard: &mut Guard<'_, C, P>) {
        let Role::Parked(driver) = guard.role else { return };
        let Some(ThreadState::Parked(planned)) = guard.waiting.get(&driver).map(|waiting| waiting.thread)
        else {
            return;
        };
        let is_late = match guard.core.next() {
            Next::Turn => !guard.is_carried(),
            Next::Wait { until: Some(until) } => planned.is_none_or(|planned| until < planned),
            Next::Wait { until: None } | Next::Nothing => false,
        };
        if is_late && !self.planted(fault!(LateTimer)) {
            self.unpark();
        }
    }

    /// Returns from a call: finds a driver for the pending work, and releases the lock.
    fn leave(&self, mut guard: Guard<'_, C, P>) {
        self.look_after(&mut guard);
        self.unlock(guard);
    }

    /// Finds a driver for the pending work before the thread leaves.
    fn look_after(&self, guard: &mut Guard<'_, C, P>) {
        if guard.broken {
            return;
        }
        if guard.core.next() == Next::Turn
            && !matches!(guard.role, Role::Handed(_))
            && !self.pass_errand(guard)
        {
            self.turn(guard);
        }
        if guard.role == Role::Free && guard.core.next() != Next::Nothing && !guard.is_carried() {
            self.hand_over(guard);
        }
        self.hurry(guard);
    }

    /// If the only pending command is one that several jobs wait for, wakes a sleeping thread to execute it.
    /// Returns whether a thread was woken for it, now or earlier.
    fn pass_errand(&self, guard: &mut Guard<'_, C, P>) -> bool {
        if !guard.core.has_errand_for_all() {
            return false;
        }
        if guard.carrier.is_some() {
            return true;
        }
        let state = &mut **guard;
        let is_asleep = |waiting: &Waiting<P>| waiting.thread == ThreadState::Asleep && !waiting.ended;
        let mut sleepers = state.waiting.iter_mut().filter(|(_, waiting)| is_asleep(waiting));
        let Some((job, waiting)) = sleepers.find(|(job, _)| state.core.carries_for_all(**job)) else {
            return false;
        };
        if !self.planted(fault!(LeftToNobody)) {
            P::ring(&waiting.sleeper.bell);
        }
        state.carrier = Some(*job);
        true
    }

    /// Hands the role of the driver to the thread that has waited longest.
    fn hand_over(&self, guard: &mut Guard<'_, C, P>) {
        if self.planted(fault!(NoHandOver)) {
            return;
        }
        let can_drive = |thread| !matches!(thread, ThreadState::Awake | ThreadState::Away);
        let next = guard.waiting.iter().find(|(_, waiting)| can_drive(waiting.thread) && !waiting.ended);
        let Some((job, waiting)) = next else { return };
        let role = match waiting.thread {
            ThreadState::Asleep => {
                P::ring(&waiting.sleeper.bell);
                Role::Handed(*job)
            }
            // A keeper whose role was taken is still parked, so it becomes the driver again without being
            // woken.
            _ => Role::Parked(*job),
        };
        guard.role = role;
    }

    /// Marks the core as broken and wakes all waiting threads.
    fn break_down(&self, guard: &mut Guard<'_, C, P>) {
        guard.broken = true;
        guard.waiting.values().for_each(|waiting| P::ring(&waiting.sleeper.bell));
        self.unpark();
    }

    /// Propagates a panic in the core after waking the other threads.
    fn pass_panic(&self, guard: &mut Guard<'_, C, P>, panic: Box<dyn Any + Send>) -> ! {
        self.break_down(guard);
        resume_unwind(panic)
    }

    #[cfg(test)]
    fn planted(&self, fault: Planted) -> bool {
        self.planted == Some(fault)
    }

    #[cfg(not(test))]
    #[inline]
    fn planted(&self, (): ()) -> bool {
        false
    }
}
