//! A model of a shard for the driving protocol. Its jobs end at once, or wait for a device, for a timer, or
//! for each other. One thread of the model is the device, which completes all commands that are not errands.

use crate::blocking::asking::GoesOn;
use crate::blocking::driving::Driving;
use crate::blocking::faults::Planted;
use crate::blocking::jobs::{Broken, Core, Job, Next};
use crate::blocking::primitives::Primitives;
use fulgurite_base::Nanos;
use fulgurite_device::{Done, Errand, Park, Tag};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use shuttle::thread;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The job number of the command that several jobs wait for (the *common command*).
const COMMON: Job = Job(u64::MAX - 2);

/// The primitives of the model checker.
pub(super) struct Model;

/// The bell of the model.
#[derive(Default)]
pub(super) struct Bell {
    is_rung: Mutex<bool>,
    changed: Condvar,
}

/// A locked mutex, and the mutex itself, which `let_in` needs.
pub(super) struct Guard<'a, T> {
    locked: MutexGuard<'a, T>,
    mutex: &'a Mutex<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.locked
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.locked
    }
}

impl Primitives for Model {
    type Mutex<T: Send> = Mutex<T>;
    type Guard<'a, T: Send + 'a> = Guard<'a, T>;
    type Bell = Bell;
    const LONGEST_HOLD: Nanos = Nanos::ZERO;

    fn mutex<T: Send>(value: T) -> Mutex<T> {
        Mutex::new(value)
    }

    fn lock<T: Send>(mutex: &Mutex<T>) -> Guard<'_, T> {
        Guard { locked: mutex.lock().unwrap(), mutex }
    }

    fn try_lock<T: Send>(mutex: &Mutex<T>) -> Option<Guard<'_, T>> {
        mutex.try_lock().ok().map(|locked| Guard { locked, mutex })
    }

    fn let_in<'a, T: Send + 'a>(Guard { locked, mutex }: Guard<'a, T>) -> Guard<'a, T> {
        drop(locked);
        Model::lock(mutex)
    }

    /// Ends a sleep with a limit at any moment, chosen at random.
    fn sleep(bell: &Bell, at_most: Option<Nanos>) -> bool {
        if at_most.is_some() && thread_rng().r#gen() {
            thread::yield_now();
            return true;
        }
        let mut is_rung = bell.is_rung.lock().unwrap();
        while !*is_rung {
            is_rung = bell.changed.wait(is_rung).unwrap();
        }
        *is_rung = false;
        false
    }

    fn ring(bell: &Bell) {
        *bell.is_rung.lock().unwrap() = true;
        bell.changed.notify_one();
    }
}

/// The queues that the thread of the device and the parked driver share.
#[derive(Default)]
struct Ring {
    /// The commands that turns have left.
    left: Vec<Job>,
    submitted: VecDeque<Job>,
    completed: Vec<Job>,
    unparked: bool,
    /// Whether errands are held back from ending.
    errands_last: bool,
    /// The virtual time of the device, which advances when a thread waits for a timer.
    now: u64,
    /// Whether the device accepts commands without completing them.
    stands_still: bool,
    gone: bool,
}

/// A device whose commands are completed by a thread of its own.
pub(super) struct Device {
    ring: Mutex<Ring>,
    /// Whether commands are left. It is no part of the model, so that threads that submit nothing add no schedules.
    has_left: AtomicBool,
    changed: Condvar,
}

impl Device {
    fn new() -> Arc<Device> {
        Arc::new(Device { ring: Mutex::default(), has_left: AtomicBool::default(), changed: Condvar::new() })
    }

    /// Completes commands, one at a time, until the device is dropped.
    fn work(&self) {
        let mut ring = self.ring.lock().unwrap();
        while !ring.gone {
            match if ring.stands_still { None } else { ring.submitted.pop_front() } {
                Some(job) => {
                    drop(ring);
                    // Yields to other threads for the duration of the command.
                    thread::yield_now();
                    ring = self.ring.lock().unwrap();
                    ring.completed.push(job);
                    self.changed.notify_all();
                }
                None => ring = self.changed.wait(ring).unwrap(),
            }
        }
    }

    fn stand_still(&self, stands_still: bool) {
        self.ring.lock().unwrap().stands_still = stands_still;
        self.changed.notify_all();
    }

    /// Sets whether errands are held back.
    fn hold_errands(&self, hold: bool) {
        self.ring.lock().unwrap().errands_last = hold;
        self.changed.notify_all();
    }

    /// Executes an errand.
    fn errand(&self) {
        thread::yield_now();
        let mut ring = self.ring.lock().unwrap();
        while ring.errands_last {
            ring = self.changed.wait(ring).unwrap();
        }
    }

    fn end(&self) {
        self.ring.lock().unwrap().gone = true;
        self.changed.notify_all();
    }
}

impl Park for Device {
    fn park(&self, timeout: Option<Nanos>) {
        let mut ring = self.ring.lock().unwrap();
        // One second is the longest wait of the protocol itself. The model ignores this limit, because it
        // would hide a lost wake-up.
        let until = timeout.filter(|left| left.0 < 1_000_000_000).map(|left| ring.now + left.0);
        while ring.completed.is_empty() && !ring.unparked {
            if let Some(until) = until {
                ring.now = ring.now.max(until);
                break;
            }
            ring = self.changed.wait(ring).unwrap();
        }
        ring.unparked = false;
    }

    fn unpark(&self) {
        self.ring.lock().unwrap().unparked = true;
        self.changed.notify_all();
    }

    fn submit(&self) {
        if !self.has_left.swap(false, Relaxed) {
            return;
        }
        let mut ring = self.ring.lock().unwrap();
        let left = std::mem::take(&mut ring.left);
        ring.submitted.extend(left);
        drop(ring);
        self.changed.notify_all();
    }
}

/// The model of a shard, which is the core of the protocol.
pub(super) struct Shard {
    device: Arc<Device>,
    ready: VecDeque<Job>,
    to_submit: Vec<Job>,
    in_flight: usize,
    /// The jobs that issue another command after their first.
    twofold: Vec<Job>,
    /// The jobs that wait for the common command in progress. Those in `next_common` wait for the next common
    /// command, which begins after it.
    common: Vec<Job>,
    next_common: Vec<Job>,
    /// The job until whose end errands are held back; `None` if they are not held back.
    before_errands: Option<Job>,
    timers: Vec<(u64, Job)>,
    /// Whether a job owns the lock of the model; `queue` holds the jobs that wait for it.
    held: bool,
    queue: VecDeque<Job>,
    given_up: Vec<Job>,
}

impl Shard {
    fn now(&self) -> u64 {
        self.device.ring.lock().unwrap().now
    }

    /// Processes completed commands and timers that are due.
    fn reap(&mut self) {
        let mut ring = self.device.ring.lock().unwrap();
        if !self.to_submit.is_empty() {
            ring.left.append(&mut self.to_submit);
            self.device.has_left.store(true, Relaxed);
        }
        self.in_flight -= ring.completed.len();
        let completed: Vec<Job> = ring.completed.drain(..).collect();
        let now = ring.now;
        drop(ring);
        for job in completed {
            self.command_ended(job);
        }
        self.device.changed.notify_all();
        self.timers.sort_unstable_by_key(|(at, _)| *at);
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            self.ready.push_back(self.timers.remove(0).1);
        }
    }
}

impl Shard {
    fn begin_common(&mut self) {
        self.common = std::mem::take(&mut self.next_common);
        self.in_flight += 1;
        self.to_submit.push(COMMON);
    }

    fn command_ended(&mut self, job: Job) {
        if job == COMMON {
            self.ready.extend(self.common.drain(..));
            if !self.next_common.is_empty() {
                self.begin_common();
            }
            return;
        }
        if self.before_errands == Some(job) {
            self.device.hold_errands(false);
        }
        match self.twofold.iter().position(|twofold| *twofold == job) {
            Some(place) => {
                self.twofold.remove(place);
                self.in_flight += 1;
                self.to_submit.push(job);
            }
            None => self.ready.push_back(job),
        }
    }

    /// Passes the lock of the model to the job that has waited longest.
    fn unlock(&mut self) {
        match self.queue.pop_front() {
            Some(job) => self.ready.push_back(job),
            None => self.held = false,
        }
    }
}

impl Core for Shard {
    fn turn(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken> {
        ended.extend(self.ready.drain(..));
        self.reap();
        Ok(())
    }

    fn wait(&mut self, ended: &mut Vec<Job>) -> Result<(), Broken> {
        self.reap();
        self.device.submit();
        if self.ready.is_empty() {
            let until = self.timers.first().map(|(at, _)| *at);
            let now = Shard::now(self);
            self.device.park(until.map(|until| Nanos(until.saturating_sub(now))));
            self.reap();
        }
        ended.extend(self.ready.drain(..));
        Ok(())
    }

    fn errand(&mut self, job: Job, ended: &mut Vec<Job>) -> Result<Option<Errand>, Broken> {
        ended.extend(self.ready.drain(..));
        let is_common = self.to_submit == [COMMON] && self.carries_for_all(job);
        if self.to_submit != [job] && !is_common {
            return Ok(None);
        }
        let job = if is_common { COMMON } else { job };
        self.to_submit.clear();
        self.in_flight -= 1;
        let device = Arc::clone(&self.device);
        let work = move || {
            device.errand();
            Ok(())
        };
        Ok(Some(Errand { tag: Tag(job.0), work: Box::new(work) }))
    }

    fn has_errand_for_all(&self) -> bool {
        self.ready.is_empty() && self.to_submit == [COMMON]
    }

    fn carries_for_all(&self, job: Job) -> bool {
        self.common.contains(&job) || self.next_common.contains(&job)
    }

    fn end_errand(&mut self, done: Done, ended: &mut Vec<Job>) -> Result<(), Broken> {
        self.command_ended(Job(done.tag.0));
        self.turn(ended)
    }

    fn give_up(&mut self, job: Job, _: &mut Vec<Job>) -> Result<(), Broken> {
        self.queue.retain(|waiting| *waiting != job);
        // The job may have got the lock of the model already, so the lock is passed on.
        if let Some(place) = self.ready.iter().position(|ready| *ready == job) {
            self.ready.remove(place);
            self.unlock();
        }
        self.given_up.push(job);
        Ok(())
    }

    fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::default()
    }

    fn next(&self) -> Next {
        if !self.ready.is_empty() || !self.to_submit.is_empty() {
            return Next::Turn;
        }
        let until = self.timers.iter().map(|(at, _)| Nanos(*at)).min();
        if until.is_some() || self.in_flight > 0 { Next::Wait { until } } else { Next::Nothing }
    }

    fn now(&self) -> Nanos {
        Nanos(Shard::now(self))
    }
}

/// A model shard that threads drive.
pub(super) struct World {
    pub driving: Driving<Shard, Model>,
    device: Arc<Device>,
    /// Whether a thread that others wait for outside of the shard has finished.
    pub is_done: AtomicBool,
}

impl World {
    /// Runs `threads` threads, each with its index, the thread of the device, and a keeper if requested.
    pub(super) fn run(
        parks: bool,
        keeper: bool,
        planted: Option<Planted>,
        threads: usize,
        work: impl Fn(&World, usize) + Send + Sync + 'static,
    ) {
        let device = Device::new();
        let shard = Shard {
            device: Arc::clone(&device),
            ready: VecDeque::new(),
            to_submit: Vec::new(),
            in_flight: 0,
            twofold: Vec::new(),
            common: Vec::new(),
            next_common: Vec::new(),
            before_errands: None,
            timers: Vec::new(),
            held: false,
            queue: VecDeque::new(),
            given_up: Vec::new(),
        };
        let park = parks.then(|| Arc::clone(&device) as Arc<dyn Park>);
        let mut driving = Driving::new(shard, park);
        driving.planted = planted;
        let world = Arc::new(World { driving, device: Arc::clone(&device), is_done: AtomicBool::new(false) });
        let kernel = thread::spawn(move || device.work());
        let keeper = keeper.then(|| {
            let world = Arc::clone(&world);
            thread::spawn(move || world.driving.keep())
        });
        let work = Arc::new(work);
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let (world, work) = (Arc::clone(&world), Arc::clone(&work));
                thread::spawn(move || work(&world, thread))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        world.driving.stop_keeper();
        if let Some(keeper) = keeper {
            keeper.join().unwrap();
        }
        world.driving.finish();
        world.device.end();
        kernel.join().unwrap();
    }

    /// Executes a job that ends at once, like a read from memory.
    pub(super) fn read(&self) {
        assert_eq!(self.driving.call(None, |_, _| Some(7)), Ok(Some(7)));
    }

    /// Executes a job that ends with its command.
    pub(super) fn io(&self) {
        self.wait_for(|shard, job| {
            shard.in_flight += 1;
            shard.to_submit.push(job);
        });
    }

    /// Executes a job that ends with the common command, or with the next one.
    pub(super) fn commit(&self) {
        self.wait_for(|shard, job| {
            shard.next_common.push(job);
            if shard.common.is_empty() {
                shard.begin_common();
            }
        });
    }

    /// Executes a job that issues several commands, which are no errands, and another one after the first. It
    /// ends with all of them.
    pub(super) fn io_and_more(&self) {
        self.wait_for(|shard, job| {
            shard.in_flight += 2;
            shard.to_submit.extend([job, Job(u64::MAX - 1)]);
            shard.twofold.push(job);
        });
    }

    /// Executes a job that ends with several commands.
    pub(super) fn large_io(&self) {
        self.wait_for(|shard, job| {
            shard.in_flight += 2;
            shard.to_submit.extend([Job(u64::MAX - 1), job]);
        });
    }

    /// Executes a job that ends with several commands and holds errands back until its end.
    pub(super) fn io_before_errands(&self) {
        self.wait_for(|shard, job| {
            shard.in_flight += 2;
            shard.to_submit.extend([Job(u64::MAX - 1), job]);
            shard.before_errands = Some(job);
            shard.device.hold_errands(true);
        });
    }

    /// Sets whether the device completes commands.
    pub(super) fn device_stands_still(&self, stands_still: bool) {
        self.device.stand_still(stands_still);
    }

    /// Executes a job that ends after `nanos` of virtual time.
    pub(super) fn sleep(&self, nanos: u64) {
        self.wait_for(|shard, job| {
            let at = Shard::now(shard) + nanos;
            shard.timers.push((at, job));
        });
    }

    /// Starts a command that no job waits for.
    pub(super) fn leave_io(&self) {
        let left = self.driving.call(None, |shard, _| {
            shard.in_flight += 1;
            shard.to_submit.push(Job(u64::MAX - 1));
            Some(())
        });
        assert_eq!(left, Ok(Some(())));
    }

    /// Executes a job that ends when it has the lock of the model.
    pub(super) fn lock(&self) {
        assert!(self.lock_while(None), "nobody gives it up");
    }

    /// Executes a job that ends when it has the lock of the model, or when the thread has been asked
    /// `questions` times. Returns whether it has the lock.
    pub(super) fn lock_or_leave(&self, questions: usize) -> bool {
        let asked = AtomicUsize::new(0);
        let goes_on = move || {
            thread::yield_now();
            asked.fetch_add(1, Relaxed) + 1 < questions
        };
        self.lock_while(Some(&GoesOn::new(goes_on)))
    }

    fn lock_while(&self, goes_on: Option<&GoesOn>) -> bool {
        let mut own = None;
        let outcome = self.driving.call(goes_on, |shard, job| {
            own = Some(job);
            if !shard.held {
                shard.held = true;
                return Some(());
            }
            shard.queue.push_back(job);
            None
        });
        assert!(outcome.is_ok());
        let is_given_up =
            self.driving.call(None, |shard, _| Some(shard.given_up.iter().any(|job| own == Some(*job))));
        is_given_up == Ok(Some(false))
    }

    /// Executes a job that ends when it has the lock of the model. The function that is asked takes as long
    /// as errands do.
    pub(super) fn lock_with_slow_answers(&self) {
        let device = Arc::clone(&self.device);
        let goes_on = move || {
            device.errand();
            true
        };
        assert!(self.lock_while(Some(&GoesOn::new(goes_on))), "it goes on");
    }

    /// Passes the lock of the model to the job that has waited longest, which is ready then. This job ends at
    /// once.
    pub(super) fn unlock(&self) {
        let outcome = self.driving.call(None, |shard, _| {
            shard.unlock();
            Some(())
        });
        assert_eq!(outcome, Ok(Some(())));
    }

    fn wait_for(&self, start: impl FnOnce(&mut Shard, Job)) {
        let outcome = self.driving.call(None, |shard, job| {
            start(shard, job);
            None::<()>
        });
        assert_eq!(outcome, Ok(None));
    }
}
