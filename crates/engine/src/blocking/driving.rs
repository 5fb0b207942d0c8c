//! Who drives: the protocol by which threads share one single-threaded core.
//!
//! A mutex guards the core. A call locks it and tries its job; what is in memory is done right there. A job that has to
//! wait stays in the core, and then somebody must *drive*: run what becomes ready, and wait for the device. There is no
//! thread for that. Of the threads that wait for their jobs, one has the *role* of the driver:
//!
//! - The driver waits for the device without the lock (it is *parked*), so that other calls go on meanwhile. Where the
//!   device cannot be waited for in that way, it waits under the lock.
//! - A call that finds the driver parked runs its own turn of the core, which also hands its commands to the device.
//!   Where its job is not done then, the thread sleeps until the job is done or the role is handed to it.
//! - Where a job has one command to wait for, its thread carries the command out by itself, without the lock and without a
//!   driver: an *errand*. What it brings back it leaves to the thread that has the lock, where one has it, and else it runs a turn of
//!   the core itself.
//! - Many jobs may wait for one command, as commits do for the log. It is an errand for the thread of any of them. Who leaves such a
//!   command behind wakes one of them for it.
//! - A driver lets others have the lock now and then: what it carries on may go on for long.
//! - Who sleeps is told that its job has ended, and returns without the lock.
//! - A driver whose own job is done hands the role to the thread that has waited longest.
//! - A thread may be asked, now and then, whether it still wants its job. It is asked without the lock and without the role;
//!   where it says no, its job is given up.
//! - A core without anything under way needs no driver: its jobs wait for other calls. Every call that leaves looks
//!   whether there is something to wait for and nobody who does, and hands the role to one who sleeps.
//! - A *keeper* is a thread that does nothing but drive, where no other does: it carries what nobody waits for.
//!
//! What must hold: while something is under way in the core and some thread sleeps, one thread has the role or is about to
//! take the lock. Who gives the lock up looks for what was brought back from errands until then. All of this is checked under
//! random schedules in `tests`.

use super::asking::{Asking, GoesOn};
use super::primitives::Primitives;
use fulgurite_base::Nanos;
use fulgurite_device::{Done, Errand, Park};
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Number of a job. Jobs are numbered in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job(pub u64);

/// The job of a thread that only drives. It comes behind all others.
const KEEPER: Job = Job(u64::MAX);

/// No wait is longer. A kernel that could not take a command for want of memory tells nobody when it could.
const LONGEST_PARK: Nanos = Nanos(1_000_000_000);

/// What a core could do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Something is ready to run.
    Turn,
    /// Something is under way.
    Wait {
        /// A point in time at which something will be ready, where there is one.
        until: Option<Nanos>,
    },
    /// Nothing.
    Nothing,
}

/// What is driven.
pub trait Core {
    /// Runs what is ready, without waiting, and adds the jobs that ended.
    fn turn(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Waits for something that is under way, and adds the jobs that ended.
    fn wait(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Runs what is ready, and may give out a command that this job waits for and that came of it, for the caller to carry out itself.
    fn errand(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<Option<Errand>, Broken>;

    /// Whether nothing is to be done but one command that several jobs wait for.
    fn has_errand_for_all(&self) -> bool;

    /// Whether the thread of a job carries out such commands.
    fn carries_for_all(&self, job: Job) -> bool;

    /// Runs what is ready now that an errand is done.
    fn end_errand(&mut self, done: Done, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Ends a job that has not ended, and adds the jobs that ended.
    fn give_up(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<(), Broken>;

    /// Set by who wants the core to come back from a turn soon.
    fn interrupt(&self) -> Arc<AtomicBool>;

    /// What comes next. Errands do not count as under way.
    fn next(&self) -> Next;

    /// The clock of [`Next::Wait`].
    fn now(&self) -> Nanos;
}

/// The core cannot be used any more: a thread panicked in it, or its device broke the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Who has the role of the driver. A thread that drives under the lock is seen by nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Free,
    /// This thread will take it when it has the lock.
    Handed(Job),
    /// This thread waits for the device.
    Parked(Job),
}

/// Where a thread is that waits for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It has the lock, or is about to take it.
    Awake,
    Asleep,
    /// It carries something out, and comes back by itself.
    Away,
    /// It waits for the device, at the latest until then.
    Parked(Option<Nanos>),
}

struct Waiting<P: Primitives> {
    sleeper: Arc<Sleeper<P>>,
    place: Place,
    ended: bool,
}

/// What a thread waits on without the lock.
struct Sleeper<P: Primitives> {
    bell: P::Bell,
    /// Its job has ended, and it is not among those that wait any more: it need not take the lock.
    is_done: AtomicBool,
}

struct State<C, P: Primitives> {
    core: C,
    role: Role,
    /// Who was woken to carry out a command that several jobs wait for, and has not come yet.
    carrier: Option<Job>,
    drawn: u64,
    /// When a driver last let others have the lock.
    held_since: Nanos,
    /// The threads whose jobs have to wait, in the order in which they came.
    waiting: BTreeMap<Job, Waiting<P>>,
    /// Empty; its memory is used again.
    ended: Vec<Job>,
    broken: bool,
    keeper_stopped: bool,
}

impl<C: Core, P: Primitives> State<C, P> {
    /// Whether somebody is on the way for all that is to be done.
    fn is_carried(&self) -> bool {
        self.carrier.is_some() && self.core.has_errand_for_all()
    }

    fn set_place(&mut self, job: Job, place: Place) {
        if let Some(waiting) = self.waiting.get_mut(&job) {
            waiting.place = place;
        }
    }

    /// A thread has the lock. If it was woken to carry something out, it looks for that now.
    fn has_come(&mut self, job: Job) {
        self.carrier = self.carrier.filter(|carrier| *carrier != job);
    }

    fn has_ended(&self, job: Job) -> bool {
        self.waiting.get(&job).is_none_or(|waiting| waiting.ended)
    }
}

/// A core that many threads use.
pub struct Driving<C: Send, P: Primitives> {
    state: P::Mutex<State<C, P>>,
    /// What was brought back from errands while somebody had the lock. Nobody waits for the lock who has this one.
    returned: P::Mutex<Vec<(Job, Done)>>,
    interrupt: Arc<AtomicBool>,
    park: Option<Arc<dyn Park>>,
    #[cfg(test)]
    pub planted: Option<Planted>,
}

/// Faults that the model checker must find.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A driver that is done hands the role to nobody.
    NoHandOver,
    /// A thread whose job has ended is not woken.
    NoWake,
    /// A parked driver is not told that its job has ended.
    NoUnpark,
    /// A parked driver is not told of a timer that is due before it looks again.
    LateTimer,
    /// A thread that was handed the role, and whose job has ended meanwhile, keeps the role.
    RoleLost,
    /// A thread that is woken in place of another one does not tell it.
    KeptForItself,
    /// A driver that goes on an errand, or is asked, leaves what else is under way to nobody.
    GoneFirst,
    /// A thread is not asked while it drives.
    DriverNotAsked,
    /// Nobody is woken for a command that several jobs wait for.
    LeftToNobody,
    /// Who gives up the lock does not look for what was brought back from errands.
    ReturnedUnseen,
}

/// A fault for the model checker; nothing elsewhere.
#[cfg(test)]
macro_rules! fault {
    ($fault:ident) => {
        Planted::$fault
    };
}
#[cfg(not(test))]
macro_rules! fault {
    ($fault:ident) => {
        ()
    };
}

type Guard<'a, C, P> = <P as Primitives>::Guard<'a, State<C, P>>;

impl<C: Core + Send, P: Primitives> Driving<C, P> {
    /// Shares `core`, which `park` waits for, where it can be waited for without the lock.
    pub fn new(core: C, park: Option<Arc<dyn Park>>) -> Driving<C, P> {
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

    /// Starts a job. Where `start` returns something, the job has ended. Otherwise the core will name the job among those
    /// that ended, and this waits for it and returns `None`; or gives it up, where `goes_on` says so.
    pub fn call<T>(
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

    /// Drives whenever no other thread does, until [`Driving::stop_keeper`].
    pub fn keep(&self) {
        let guard = P::lock(&self.state);
        if guard.keeper_stopped || guard.waiting.contains_key(&KEEPER) {
            return;
        }
        if let Some(guard) = self.until_ended(KEEPER, None, guard) {
            self.leave(guard);
        }
    }

    /// Has [`Driving::keep`] return, now and from now on.
    pub fn stop_keeper(&self) {
        let mut guard = P::lock(&self.state);
        // The keeper's thread may not have come to its work yet.
        guard.keeper_stopped = true;
        self.end(&mut guard, KEEPER);
        self.leave(guard);
    }

    /// Carries everything that is under way to its end. No other thread has a job meanwhile.
    pub fn finish(&self) {
        let mut guard = P::lock(&self.state);
        // A keeper that waits for the device finds that it is not the driver any more.
        while !guard.broken && guard.core.next() != Next::Nothing {
            guard = self.step(KEEPER, None, guard).0;
        }
        guard.role = Role::Free;
    }

    /// Waits until a job has ended or is given up, driving where nobody else does. Returns the lock if the thread has it.
    fn until_ended<'a>(
        &'a self,
        job: Job,
        goes_on: Option<&GoesOn>,
        mut guard: Guard<'a, C, P>,
    ) -> Option<Guard<'a, C, P>> {
        let sleeper = Arc::new(Sleeper { bell: P::Bell::default(), is_done: AtomicBool::new(false) });
        let waiting = Waiting { sleeper: Arc::clone(&sleeper), place: Place::Awake, ended: false };
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
            // Who is handed the role carries the others' work first.
            if job != KEEPER && guard.role != Role::Handed(job) {
                match self.errand(job, &mut guard) {
                    Some(errand) => {
                        guard = self.run_errand(job, &sleeper, errand, guard)?;
                        continue;
                    }
                    // What was ready may have been all that the job waited for.
                    None if guard.broken || guard.has_ended(job) => break,
                    None => {}
                }
            }
            let next = guard.core.next();
            let drives = match guard.role {
                Role::Free => next != Next::Nothing,
                Role::Handed(to) => to == job,
                // A thread that has to wait for the device does that itself, rather than be woken by the keeper.
                Role::Parked(KEEPER) => matches!(next, Next::Wait { .. }),
                Role::Parked(_) => false,
            };
            if drives {
                guard = self.drive(job, &asking, guard);
            } else if matches!(guard.role, Role::Parked(_)) && next == Next::Turn {
                self.turn(&mut guard);
            } else {
                self.hurry(&mut guard);
                guard.set_place(job, Place::Asleep);
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

    /// Sleeps until the thread is woken, or for so long. Returns the lock, unless the job has ended, and whether it has slept that long.
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
        guard.set_place(job, Place::Awake);
        guard.has_come(job);
        Some((guard, has_waited))
    }

    /// Drives until the thread's own job has ended, nothing is under way, another thread has taken the role, or the thread is
    /// to be asked.
    fn drive<'a>(&'a self, job: Job, asking: &Asking<'_>, mut guard: Guard<'a, C, P>) -> Guard<'a, C, P> {
        loop {
            guard.role = Role::Free;
            if guard.has_ended(job) || guard.broken || guard.core.next() == Next::Nothing {
                return guard;
            }
            let has_role;
            (guard, has_role) = self.step(job, asking.patience(), guard);
            // A command that has come of it may be an errand.
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

    /// Carries out an errand, without the lock. Returns the lock, unless the job has ended meanwhile.
    fn run_errand<'a>(
        &'a self,
        job: Job,
        sleeper: &Sleeper<P>,
        errand: Errand,
        mut guard: Guard<'a, C, P>,
    ) -> Option<Guard<'a, C, P>> {
        self.step_aside(&mut guard);
        guard.set_place(job, Place::Away);
        self.unlock(guard);
        let done = errand.run();
        P::lock(&self.returned).push((job, done));
        let mut guard = match P::try_lock(&self.state) {
            Some(guard) => guard,
            None => {
                // Who has the lock looks for it, and rings.
                self.interrupt.store(true, Relaxed);
                P::sleep(&sleeper.bell, None);
                if sleeper.is_done.load(Acquire) {
                    return None;
                }
                P::lock(&self.state)
            }
        };
        guard.set_place(job, Place::Awake);
        self.take_returned(&mut guard);
        Some(guard)
    }

    /// Takes what was brought back from errands.
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
                // It may have more to wait for.
                if let Some(waiting) = guard.waiting.get_mut(&job)
                    && waiting.place == Place::Away
                {
                    waiting.place = Place::Awake;
                    P::ring(&waiting.sleeper.bell);
                }
            }
        }
    }

    /// Gives the lock up.
    fn unlock(&self, guard: Guard<'_, C, P>) {
        drop(guard);
        // Who came back from an errand until now has found the lock taken, and relies on this.
        while !P::lock(&self.returned).is_empty() && !self.planted(fault!(ReturnedUnseen)) {
            let Some(mut guard) = P::try_lock(&self.state) else { return };
            self.take_returned(&mut guard);
            self.look_after(&mut guard);
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

    /// A thread is about to do something else: what is under way does not wait for it.
    fn step_aside(&self, guard: &mut Guard<'_, C, P>) {
        let is_needed = guard.role == Role::Free && guard.core.next() != Next::Nothing;
        if is_needed && !self.planted(fault!(GoneFirst)) {
            self.hand_over(guard);
        }
        self.hurry(guard);
    }

    /// One step of a driver, which waits at most so long. Returns whether it is still the driver.
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
        guard.set_place(job, Place::Parked(until));
        self.unlock(guard);
        park.park(Some(left));
        let mut guard = P::lock(&self.state);
        guard.held_since = guard.core.now();
        guard.set_place(job, Place::Awake);
        self.pass_on(&mut guard);
        let has_role = guard.role == Role::Parked(job) && !guard.broken;
        if has_role {
            self.turn(&mut guard);
        }
        (guard, has_role)
    }

    /// Lets others have the lock that wait for it, among them who comes back from an errand. The role stays here, but for a thread that
    /// takes it. Returns whether this one still has it.
    fn let_others_in<'a>(&'a self, job: Job, mut guard: Guard<'a, C, P>) -> (Guard<'a, C, P>, bool) {
        guard.role = Role::Handed(job);
        let mut guard = P::let_in(guard);
        guard.held_since = guard.core.now();
        let has_role = guard.role == Role::Handed(job);
        (guard, has_role)
    }

    fn turn(&self, guard: &mut Guard<'_, C, P>) {
        self.take_returned(guard);
        self.work(guard, C::turn);
    }

    /// Has the core do something, and tells the threads whose jobs have ended.
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

    /// A job has ended: its thread is told.
    fn end(&self, guard: &mut Guard<'_, C, P>, job: Job) {
        let Some(waiting) = guard.waiting.get_mut(&job) else { return };
        waiting.ended = true;
        match waiting.place {
            Place::Awake => {}
            Place::Asleep if self.planted(fault!(NoWake)) => {}
            Place::Asleep | Place::Away => self.dismiss(guard, job),
            Place::Parked(_) if self.planted(fault!(NoUnpark)) => {}
            Place::Parked(_) => self.unpark(),
        }
    }

    /// A thread waits no more: what it was woken for is for others.
    fn forget(&self, guard: &mut Guard<'_, C, P>, job: Job) -> Option<Waiting<P>> {
        guard.has_come(job);
        if guard.role == Role::Handed(job) && !self.planted(fault!(RoleLost)) {
            guard.role = Role::Free;
        }
        guard.waiting.remove(&job)
    }

    /// The job of a thread without the lock has ended: it need not come back here.
    fn dismiss(&self, guard: &mut Guard<'_, C, P>, job: Job) {
        if let Some(waiting) = self.forget(guard, job) {
            waiting.sleeper.is_done.store(true, Release);
            P::ring(&waiting.sleeper.bell);
        }
    }

    /// A driver and a keeper whose role it took may wait for the device at once. An unpark wakes one of them, perhaps not
    /// the one that it was for.
    fn pass_on(&self, guard: &mut Guard<'_, C, P>) {
        let mut others = guard.waiting.values();
        let is_meant = others.any(|waiting| waiting.ended && matches!(waiting.place, Place::Parked(_)));
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

    /// Wakes a parked driver that would look too late.
    fn hurry(&self, guard: &mut Guard<'_, C, P>) {
        let Role::Parked(driver) = guard.role else { return };
        let Some(Place::Parked(planned)) = guard.waiting.get(&driver).map(|waiting| waiting.place) else {
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

    /// A thread is done here.
    fn leave(&self, mut guard: Guard<'_, C, P>) {
        self.look_after(&mut guard);
        self.unlock(guard);
    }

    /// What the thread leaves for others to do gets a driver.
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

    /// Sees to it that somebody who sleeps carries out a command that several jobs wait for. Whether there are both.
    fn pass_errand(&self, guard: &mut Guard<'_, C, P>) -> bool {
        if !guard.core.has_errand_for_all() {
            return false;
        }
        if guard.carrier.is_some() {
            return true;
        }
        let state = &mut **guard;
        let is_asleep = |waiting: &Waiting<P>| waiting.place == Place::Asleep && !waiting.ended;
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

    /// Gives the role to the thread that has waited longest.
    fn hand_over(&self, guard: &mut Guard<'_, C, P>) {
        if self.planted(fault!(NoHandOver)) {
            return;
        }
        let can_drive = |place| !matches!(place, Place::Awake | Place::Away);
        let next = guard.waiting.iter().find(|(_, waiting)| can_drive(waiting.place) && !waiting.ended);
        let Some((job, waiting)) = next else { return };
        let role = match waiting.place {
            Place::Asleep => {
                P::ring(&waiting.sleeper.bell);
                Role::Handed(*job)
            }
            // A keeper whose role was taken: it waits for the device still, and may go on.
            _ => Role::Parked(*job),
        };
        guard.role = role;
    }

    /// The core cannot go on: everybody who waits is told.
    fn break_down(&self, guard: &mut Guard<'_, C, P>) {
        guard.broken = true;
        guard.waiting.values().for_each(|waiting| P::ring(&waiting.sleeper.bell));
        self.unpark();
    }

    /// A thread has panicked in the core. The others are told, and the panic goes on.
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
