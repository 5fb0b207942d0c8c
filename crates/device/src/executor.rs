//! A single-threaded executor: one core drives one device, or several simulated cores share one.
//!
//! In each turn it runs every ready task, lets the device wait, and wakes tasks by tag. Tasks run in the order in which they were
//! woken, those that somebody waits for before others; so a run on a simulated drive repeats exactly.
//!
//! Cores are simulated: each has CPU time of its own, and a queue of its own for commands that the device has no room for.
//! All tasks run on the one thread that there is, in the order of the device's clock. A task stays on its core, and those that
//! it adds are on the same one.
//!
//! A command in flight belongs to the executor, not to the future that asked for it: dropping the
//! future leaves the command to complete, with its buffer kept alive until then.

use crate::{Arena, Caps, Command, Completion, Device, Done, Errand, IoError, Operation, QueueFull, Tag};
use fulgurite_base::{Lpn, Nanos};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use thiserror::Error;

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// Tasks wait, and nothing that could wake them is under way.
    #[error(
        "stalled: {tasks} tasks wait, {in_flight} commands were never completed (submitted {submitted}, completed {completed})"
    )]
    Stalled {
        /// Tasks that have not ended.
        tasks: usize,
        /// Commands without a completion.
        in_flight: u64,
        /// Commands handed to the device.
        submitted: u64,
        /// Completions received.
        completed: u64,
    },
    /// The device completed a command that is not in flight.
    #[error("the device completed tag {0}, which is not in flight")]
    StrayCompletion(u64),
}

/// Whom to wake. Tasks of this executor are woken by number, which needs no clone and no lock. A future that
/// is polled under another waker (as in `FuturesUnordered`) keeps a clone of it.
enum Waiter {
    Nobody,
    Task(u32),
    Foreign(Waker),
}

/// One request of a task: one or more commands that complete together.
struct Slot {
    /// Tells this request from an earlier one in the same place of the slab.
    serial: u32,
    remaining: u32,
    failure: Option<IoError>,
    waiter: Waiter,
    /// The future is gone: free the slot with its last completion.
    abandoned: bool,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A task of an executor, as long as it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(u32);

/// What an executor could do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Tasks can run, or commands are to be handed to the device: [`Executor::turn`].
    Ready,
    /// Commands are under way, or timers run: somebody should wait for the device.
    Waiting {
        /// When the next timer fires, on the device's clock.
        until: Option<Nanos>,
    },
    /// Nothing. Tasks that have not ended wait for each other, or for somebody outside.
    Idle,
}

/// Wakes that come through a standard [`Waker`].
type ForeignWakes = Arc<Mutex<Vec<u32>>>;

struct TaskWaker {
    task: u32,
    /// Whether the task is among `wakes`. A task that waits for several things leaves several wakers, and one wake is
    /// enough: with one for each, a task that waits again for all of them at every wake would be woken ever more often.
    is_woken: Arc<AtomicBool>,
    wakes: ForeignWakes,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.wakes.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
        }
    }
}

/// What a task is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordinary,
    /// A thread waits for it, see [`Executor::try_now`] and [`Handle::spawn_awaited`].
    Awaited,
    /// Many wait for it, and its commands are everybody's, see [`Handle::spawn_for_all`].
    ForAll,
}

/// Tasks that others wait for are run first; after so many of them, one of the others is.
const MOST_OVERTAKEN: u32 = 16;

/// A simulated core.
#[derive(Default)]
struct Cpu {
    /// When it has done all work that was charged to it.
    free: Nanos,
    /// Its commands that met a full device, in order.
    backlog: VecDeque<Command>,
}

struct Core<D> {
    device: D,
    caps: Rc<Caps>,
    slots: Slab<Slot>,
    cpus: Vec<Cpu>,
    /// Commands in all backlogs.
    waiting: usize,
    /// Whose backlog is next to give the device a command.
    next_cpu: usize,
    /// `None` while the task runs.
    tasks: Slab<Option<Task>>,
    /// The core of the task in each place of `tasks`.
    homes: Vec<u32>,
    /// What the task in each place is.
    kinds: Vec<Kind>,
    /// The waker of each place in `tasks`. It only says the place, so one serves all tasks that come to be there.
    wakers: Vec<Waker>,
    /// Whether a task is among the wakes that came through its waker.
    woken: Vec<Arc<AtomicBool>>,
    ready: VecDeque<u32>,
    /// Those that threads wait for.
    urgent: VecDeque<u32>,
    /// How many of these were run while others were ready.
    overtaken: u32,
    /// Timers by time; those of equal times by the order in which they were set.
    timers: BTreeMap<(Nanos, u64), Waiter>,
    timers_set: u64,
    /// The task that runs, and what its own waker points at.
    current: (u32, *const ()),
    submitted: u64,
    completed: u64,
    /// Commands in flight that their callers carry out.
    errands: u64,
    /// The task that has submitted the last command.
    submitter: u32,
    /// The last command that is everybody's, since the device last waited.
    everybodys: Option<Tag>,
    /// Whether the device has news that were not looked at: commands that it was given, or errands that are done.
    fresh: bool,
    /// Commands since it last waited.
    begun: u32,
    wakes: ForeignWakes,
}

impl<D: Device> Core<D> {
    /// Adds a task on a core, or the place of one that runs already.
    fn add(&mut self, future: Option<Task>, cpu: usize, kind: Kind) -> u32 {
        let task = u32::try_from(self.tasks.insert(future)).expect("fewer than 2^32 tasks");
        if self.wakers.len() == task as usize {
            let is_woken = Arc::new(AtomicBool::new(false));
            let wakes = Arc::clone(&self.wakes);
            self.wakers.push(Waker::from(Arc::new(TaskWaker {
                task,
                is_woken: Arc::clone(&is_woken),
                wakes,
            })));
            self.woken.push(is_woken);
            self.homes.push(0);
            self.kinds.push(Kind::Ordinary);
        }
        self.homes[task as usize] = cpu as u32;
        self.kinds[task as usize] = kind;
        task
    }

    fn spawn(&mut self, future: Task, cpu: usize, kind: Kind) {
        let task = self.add(Some(future), cpu, kind);
        self.make_ready(task);
    }

    fn make_ready(&mut self, task: u32) {
        match self.kinds[task as usize] {
            Kind::Ordinary => self.ready.push_back(task),
            Kind::Awaited | Kind::ForAll => self.urgent.push_back(task),
        }
    }

    /// The task that is run next.
    fn next_ready(&mut self) -> Option<u32> {
        let is_due = self.overtaken >= MOST_OVERTAKEN && !self.ready.is_empty();
        if !is_due && let Some(task) = self.urgent.pop_front() {
            self.overtaken += u32::from(!self.ready.is_empty());
            return Some(task);
        }
        self.overtaken = 0;
        self.ready.pop_front()
    }

    fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.urgent.is_empty()
    }

    /// The core of the task that runs.
    fn cpu(&self) -> usize {
        self.homes.get(self.current.0 as usize).map_or(0, |cpu| *cpu as usize)
    }

    /// Notes that a task runs. Returns its waker.
    fn begin(&mut self, task: u32) -> Waker {
        let waker = self.wakers[task as usize].clone();
        self.current = (task, waker.data());
        waker
    }

    fn submit(&mut self, operations: impl Iterator<Item = Operation>) -> usize {
        // The number of commands grows, so a serial comes again only after 2^32 of them.
        let serial = self.submitted as u32;
        let slot = self.slots.insert(Slot {
            serial,
            remaining: 0,
            failure: None,
            waiter: Waiter::Nobody,
            abandoned: false,
        });
        let tag = Tag(u64::from(serial) << 32 | slot as u64);
        for operation in operations {
            self.slots[slot].remaining += 1;
            self.push(Command { tag, operation });
        }
        slot
    }

    fn push(&mut self, command: Command) {
        self.submitted += 1;
        self.submitter = self.current.0;
        if self.is_everybodys() {
            self.everybodys = Some(command.tag);
        }
        self.fresh = true;
        self.begun += 1;
        // A command must not overtake those that wait for room in the device, whichever core's they are.
        let refused = if self.waiting > 0 { Err(QueueFull(command)) } else { self.device.submit(command) };
        if let Err(QueueFull(command)) = refused {
            let cpu = self.cpu();
            self.cpus[cpu].backlog.push_back(command);
            self.waiting += 1;
        }
    }

    /// Whether the last command is everybody's.
    fn is_everybodys(&self) -> bool {
        self.kinds.get(self.submitter as usize) == Some(&Kind::ForAll)
    }

    /// Gives the device what it has room for, one command of each core in turn.
    fn drain_backlogs(&mut self) {
        while self.waiting > 0 {
            let backlog = &mut self.cpus[self.next_cpu].backlog;
            if let Some(command) = backlog.pop_front() {
                if let Err(QueueFull(command)) = self.device.submit(command) {
                    backlog.push_front(command);
                    return;
                }
                self.waiting -= 1;
            }
            self.next_cpu = (self.next_cpu + 1) % self.cpus.len();
        }
    }

    fn complete(&mut self, completion: Completion) -> Result<(), RunError> {
        let (serial, key) = ((completion.tag.0 >> 32) as u32, completion.tag.0 as u32 as usize);
        let slot = self
            .slots
            .get_mut(key)
            .filter(|slot| slot.serial == serial && slot.remaining > 0)
            .ok_or(RunError::StrayCompletion(completion.tag.0))?;
        self.completed += 1;
        slot.remaining -= 1;
        slot.failure = slot.failure.or(completion.status.err());
        if slot.remaining > 0 {
            return Ok(());
        }
        let waiter = std::mem::replace(&mut slot.waiter, Waiter::Nobody);
        // No future is left to free the slot.
        if slot.abandoned {
            self.slots.remove(key);
        }
        self.wake(waiter);
        Ok(())
    }

    fn wake(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Nobody => {}
            Waiter::Task(task) => self.make_ready(task),
            Waiter::Foreign(waker) => waker.wake(),
        }
    }

    fn fire_timers(&mut self) -> Nanos {
        let now = self.device.now();
        while let Some(timer) = self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            let waiter = timer.remove();
            self.wake(waiter);
        }
        now
    }

    /// Has a timer wake who polls: the one that `set` names, or a new one, which is noted there.
    fn set_timer(&mut self, at: Nanos, set: &mut Option<(Nanos, u64)>, context: &Context<'_>) {
        let key = *set.get_or_insert_with(|| {
            self.timers_set += 1;
            (at, self.timers_set)
        });
        let waiter = self.waiter(context);
        self.timers.insert(key, waiter);
    }

    fn waiter(&self, context: &Context<'_>) -> Waiter {
        let (task, own) = self.current;
        if context.waker().data() == own {
            Waiter::Task(task)
        } else {
            Waiter::Foreign(context.waker().clone())
        }
    }
}

/// Runs tasks over one device.
///
/// With several cores it simulates them; see the module.
pub struct Executor<D> {
    core: Rc<RefCell<Core<D>>>,
    wakes: ForeignWakes,
    interrupt: Arc<AtomicBool>,
    /// Empty; its memory is used again.
    completions: Cell<Vec<Completion>>,
}

impl<D: Device + 'static> Executor<D> {
    /// An executor that drives `device`, on one core.
    pub fn new(device: D) -> Executor<D> {
        Executor::with_cores(device, 1)
    }

    /// An executor that drives `device` from this many cores, at least one.
    ///
    /// More than one are simulated, so the device should be simulated too: on a real drive all of them are one thread.
    pub fn with_cores(device: D, cores: u32) -> Executor<D> {
        let caps = Rc::new(device.caps().clone());
        let core = Core {
            device,
            caps,
            slots: Slab::new(),
            cpus: (0..cores.max(1)).map(|_| Cpu::default()).collect(),
            waiting: 0,
            next_cpu: 0,
            tasks: Slab::new(),
            homes: Vec::new(),
            kinds: Vec::new(),
            wakers: Vec::new(),
            woken: Vec::new(),
            ready: VecDeque::new(),
            urgent: VecDeque::new(),
            overtaken: 0,
            timers: BTreeMap::new(),
            timers_set: 0,
            current: (u32::MAX, std::ptr::null()),
            submitted: 0,
            completed: 0,
            errands: 0,
            everybodys: None,
            submitter: u32::MAX,
            fresh: false,
            begun: 0,
            wakes: ForeignWakes::default(),
        };
        let wakes = Arc::clone(&core.wakes);
        Executor {
            core: Rc::new(RefCell::new(core)),
            wakes,
            interrupt: Arc::default(),
            completions: Cell::default(),
        }
    }

    /// What tasks use to reach the device.
    pub fn handle(&self) -> Handle<D> {
        Handle { core: Rc::clone(&self.core) }
    }

    /// Adds a task, on the first core; it first runs in [`Executor::run`].
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_on(0, future);
    }

    /// Adds a task on a core, which is counted from 0 and taken modulo the number of cores.
    pub fn spawn_on(&self, cpu: u32, future: impl Future<Output = ()> + 'static) {
        let mut core = self.core.borrow_mut();
        let cpu = cpu as usize % core.cpus.len();
        core.spawn(Box::pin(future), cpu, Kind::Ordinary);
    }

    /// Runs until every task has ended and every command has completed.
    pub fn run(&self) -> Result<(), RunError> {
        loop {
            self.run_all();
            let core = self.core.borrow();
            if core.tasks.is_empty() && core.submitted == core.completed {
                return Ok(());
            }
            drop(core);
            self.wait()?;
        }
    }

    /// Waits for the device, until something completes or a timer fires, and wakes who waited for that.
    ///
    /// Fails where there is nothing to wait for.
    pub fn wait(&self) -> Result<(), RunError> {
        let deadline = self.core.borrow().timers.first_key_value().map(|((at, _), _)| *at);
        let (any, now) = self.advance(deadline)?;
        let core = self.core.borrow();
        // A device returns early with nothing only if it has nothing left to complete.
        if !any && deadline.is_none_or(|deadline| now < deadline) {
            return Err(RunError::Stalled {
                tasks: core.tasks.len(),
                in_flight: core.submitted - core.completed,
                submitted: core.submitted,
                completed: core.completed,
            });
        }
        Ok(())
    }

    /// Runs what is ready, hands its commands to the device and takes what has completed. It does not wait.
    pub fn turn(&self) -> Result<(), RunError> {
        self.run_ready();
        let core = self.core.borrow();
        if core.submitted == core.completed && core.timers.is_empty() {
            return Ok(());
        }
        let now = core.device.now();
        drop(core);
        self.advance(Some(now)).map(drop)
    }

    /// Where one command of `task` is all that the device was given since the last turn, the caller may get it to carry it out
    /// itself, without the executor: see [`Device::take_errand`]. With `for_all`, it may get one that is everybody's, beside others too.
    pub fn errand(&self, task: TaskId, for_all: bool) -> Option<Errand> {
        let mut core = self.core.borrow_mut();
        let everybodys = core.everybodys.filter(|_| for_all);
        // What waits for room in the queue comes first.
        if core.waiting > 0 || (everybodys.is_none() && core.submitter != task.0) {
            return None;
        }
        let errand = core.device.take_errand(everybodys)?;
        core.errands += 1;
        // Where others were begun, the device may have something to tell already.
        (core.fresh, core.begun, core.everybodys) = (core.begun > 1, 0, None);
        Some(errand)
    }

    /// Set by whoever wants a turn to come back after the task that runs now, although others are ready.
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }

    /// Whether nothing is to be done but one command that is everybody's, see [`Executor::errand`].
    pub fn has_errand_for_all(&self) -> bool {
        let core = self.core.borrow();
        let is_woken = || !self.wakes.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        core.begun == 1 && core.is_everybodys() && core.waiting == 0 && !core.is_ready() && !is_woken()
    }

    /// An errand is done: who waits for it is woken.
    pub fn end_errand(&self, Done { tag, status }: Done) -> Result<(), RunError> {
        let mut core = self.core.borrow_mut();
        core.errands -= 1;
        core.device.end_errand();
        let at = core.device.now();
        core.complete(Completion { tag, at, status })
    }

    /// What could be done next.
    #[inline]
    pub fn outlook(&self) -> Outlook {
        let core = self.core.borrow();
        let woken = || !self.wakes.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if core.fresh || core.is_ready() || woken() {
            return Outlook::Ready;
        }
        let until = core.timers.first_key_value().map(|((at, _), _)| *at);
        // For an errand nobody need wait but who carries it out.
        if until.is_some() || core.submitted > core.completed + core.errands {
            Outlook::Waiting { until }
        } else {
            Outlook::Idle
        }
    }

    /// Lets the device wait until a command completes or until `deadline`. Returns whether any has completed, and the time.
    fn advance(&self, deadline: Option<Nanos>) -> Result<(bool, Nanos), RunError> {
        let mut core = self.core.borrow_mut();
        // The last completions have made room in the queue.
        core.drain_backlogs();
        let mut completions = self.completions.take();
        core.device.wait(deadline, &mut completions);
        (core.fresh, core.begun, core.everybodys) = (false, 0, None);
        let any = !completions.is_empty();
        for completion in completions.drain(..) {
            core.complete(completion)?;
        }
        self.completions.replace(completions);
        let now = core.fire_timers();
        Ok((any, now))
    }

    /// Polls `future` at once. If it ends, its output is returned. If not, it becomes a task, and what `end` returns,
    /// given the task, is called with its output once it has ended.
    ///
    /// Must not be called by a task.
    pub fn try_now<T, E: FnOnce(T) + 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
        end: impl FnOnce(TaskId) -> E,
    ) -> Option<T> {
        let mut future = Box::pin(future);
        let (id, waker) = {
            let mut core = self.core.borrow_mut();
            let id = core.add(None, 0, Kind::Awaited);
            (id, core.begin(id))
        };
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut core = self.core.borrow_mut();
        match poll {
            Poll::Ready(output) => {
                core.tasks.remove(id as usize);
                // The borrow ends before the future is dropped, which may reach for the core: locals drop in reverse order.
                Some(output)
            }
            Poll::Pending => {
                let end = end(TaskId(id));
                core.tasks[id as usize] = Some(Box::pin(async move { end(future.await) }));
                None
            }
        }
    }

    /// Drops a task, as the one who waits for a future may drop it. What it has begun on the device goes on.
    ///
    /// Must not be called by a task.
    pub fn cancel(&self, task: TaskId) {
        // It is dropped outside the borrow: what the future holds may reach for the core.
        let _future = self.core.borrow_mut().tasks.try_remove(task.0 as usize);
    }

    /// Runs `future` to its end, with every other task, and returns its output.
    pub fn block_on<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Result<T, RunError> {
        let output = self.run_until(future)?;
        self.run()?;
        Ok(output)
    }

    /// Runs `future` to its end and returns its output. Other tasks run meanwhile, and are left where they are then.
    pub fn run_until<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Result<T, RunError> {
        let output = Rc::new(Cell::new(None));
        let slot = Rc::clone(&output);
        self.spawn(async move { slot.set(Some(future.await)) });
        loop {
            self.run_all();
            if let Some(output) = output.take() {
                return Ok(output);
            }
            self.wait()?;
        }
    }

    /// Gives `f` the device, for inspection between runs.
    pub fn with_device<T>(&self, f: impl FnOnce(&mut D) -> T) -> T {
        f(&mut self.core.borrow_mut().device)
    }

    /// Runs what is ready, or until [`Executor::interrupt`] is set. What comes of it stays with the executor until [`Executor::turn`].
    pub fn run_ready(&self) {
        while self.run_one() && !self.interrupt.swap(false, Ordering::Relaxed) {}
    }

    /// Runs what is ready.
    fn run_all(&self) {
        while self.run_one() {}
    }

    /// Runs a task that is ready. Whether there was one.
    fn run_one(&self) -> bool {
        loop {
            let mut core = self.core.borrow_mut();
            // Wakers must be `Send` and cannot reach the core, so their wakes are collected here.
            for task in self.wakes.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // A wake that comes from here on is a new one.
                core.woken[task as usize].store(false, Ordering::Release);
                core.make_ready(task);
            }
            let Some(id) = core.next_ready() else { return false };
            // A task may be woken after it ended, or twice: both are harmless.
            let Some(mut task) = core.tasks.get_mut(id as usize).and_then(Option::take) else { continue };
            let waker = core.begin(id);
            // The borrow ends here, because the task reaches for the core itself.
            drop(core);
            let poll = task.as_mut().poll(&mut Context::from_waker(&waker));
            let mut core = self.core.borrow_mut();
            // The borrow ends before an ended task is dropped, since locals drop in reverse order.
            match poll {
                Poll::Pending => core.tasks[id as usize] = Some(task),
                Poll::Ready(()) => drop(core.tasks.remove(id as usize)),
            }
            return true;
        }
    }
}

impl<D> Drop for Executor<D> {
    fn drop(&mut self) {
        // Tasks hold handles to the core, and the core holds the tasks: break the circle. The
        // futures are dropped outside the borrow because they reach for the core themselves. Some add tasks as they are
        // dropped, to wait for I/O that is under way.
        loop {
            let tasks = std::mem::take(&mut self.core.borrow_mut().tasks);
            if tasks.is_empty() {
                return;
            }
        }
    }
}

/// A task's access to the device, the clock and the other tasks.
pub struct Handle<D> {
    core: Rc<RefCell<Core<D>>>,
}

impl<D> Clone for Handle<D> {
    fn clone(&self) -> Self {
        Handle { core: Rc::clone(&self.core) }
    }
}

impl<D: Device> Handle<D> {
    /// What the device is and can do.
    pub fn caps(&self) -> Rc<Caps> {
        Rc::clone(&self.core.borrow().caps)
    }

    /// The device's clock.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.core.borrow().device.now()
    }

    /// How often the erase block that holds `lpn` was erased, where the device tells.
    pub fn erases(&self, lpn: Lpn) -> Option<u64> {
        self.core.borrow().device.erases(lpn)
    }

    /// Announces memory that most commands will use.
    pub fn register(&self, arena: &Arc<Arena>) {
        self.core.borrow_mut().device.register(arena);
    }

    /// Commands handed to the device and completions received, so far.
    pub fn conservation(&self) -> (u64, u64) {
        let core = self.core.borrow();
        (core.submitted, core.completed)
    }

    /// Adds a task beside the one that runs, on the same core.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Box::pin(future), Kind::Ordinary);
    }

    /// The same for what somebody waits for: it runs before others.
    pub fn spawn_awaited(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Box::pin(future), Kind::Awaited);
    }

    /// The same for what many wait for: whoever does may carry its commands out, see [`Executor::errand`].
    pub fn spawn_for_all(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Box::pin(future), Kind::ForAll);
    }

    fn spawn_as(&self, future: Task, kind: Kind) {
        let mut core = self.core.borrow_mut();
        let cpu = core.cpu();
        core.spawn(future, cpu, kind);
    }

    /// Submits one operation now; the future ends with it.
    pub fn submit(&self, operation: Operation) -> Io<D> {
        self.submit_all(std::iter::once(operation))
    }

    /// Submits the operations now, all at once; the future ends when the last of them does, with
    /// the first failure if there was one.
    pub fn submit_all(&self, operations: impl Iterator<Item = Operation>) -> Io<D> {
        let slot = self.core.borrow_mut().submit(operations);
        Io { handle: self.clone(), slot }
    }

    /// Waits until the clock reads `at`.
    pub async fn sleep_until(&self, at: Nanos) {
        let mut set: Option<(Nanos, u64)> = None;
        poll_fn(|context| {
            let mut core = self.core.borrow_mut();
            if core.device.now() >= at {
                return Poll::Ready(());
            }
            // A task may be polled for other reasons, and one sleep needs one timer. It wakes who polled last.
            core.set_timer(at, &mut set, context);
            Poll::Pending
        })
        .await;
    }

    /// Waits for a future, but no longer than `patience`. One that has not ended then is dropped, and this gives `None`.
    pub async fn within<T>(&self, patience: Nanos, future: impl Future<Output = T>) -> Option<T> {
        let (mut future, mut end) = (pin!(future), pin!(self.sleep_until(self.now() + patience)));
        poll_fn(|context| match (future.as_mut().poll(context), end.as_mut().poll(context)) {
            (Poll::Ready(output), _) => Poll::Ready(Some(output)),
            (_, Poll::Ready(())) => Poll::Ready(None),
            _ => Poll::Pending,
        })
        .await
    }

    /// Lets other tasks run, and the drive begin what it was asked for, before this task goes on. No time passes. For a task
    /// that computes for long beside reads of its own.
    pub async fn pause(&self) {
        let mut is_set = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_set, true) {
                return Poll::Ready(());
            }
            let mut core = self.core.borrow_mut();
            // A timer fires after the device was looked at.
            let now = core.device.now();
            core.set_timer(now, &mut None, context);
            Poll::Pending
        })
        .await;
    }

    /// Spends `cost` of CPU on the task's core. Tasks that compute there at once queue for it.
    pub async fn compute(&self, cost: Nanos) {
        let done = {
            let mut core = self.core.borrow_mut();
            let now = core.device.now();
            let cpu = core.cpu();
            let free = &mut core.cpus[cpu].free;
            // The core is reserved at once, so that the next task queues behind this one.
            *free = (*free).max(now) + cost;
            *free
        };
        self.sleep_until(done).await;
    }
}

/// The end of one or more commands; see [`Handle::submit_all`].
#[must_use = "the outcome of I/O must be looked at"]
pub struct Io<D> {
    handle: Handle<D>,
    slot: usize,
}

impl<D: Device> Future for Io<D> {
    type Output = Result<(), IoError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut core = self.handle.core.borrow_mut();
        let slot = &core.slots[self.slot];
        if slot.remaining == 0 {
            return Poll::Ready(slot.failure.map_or(Ok(()), Err));
        }
        let waiter = core.waiter(context);
        core.slots[self.slot].waiter = waiter;
        Poll::Pending
    }
}

impl<D> Drop for Io<D> {
    fn drop(&mut self) {
        let mut core = self.handle.core.borrow_mut();
        let slot = &mut core.slots[self.slot];
        if slot.remaining == 0 {
            core.slots.remove(self.slot);
        } else {
            slot.abandoned = true;
            slot.waiter = Waiter::Nobody;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDevice;

    #[test]
    fn requests_leave_nothing_behind() {
        let executor = Executor::new(MemDevice::new(128, 512, 4, Nanos(10)));
        let handle = executor.handle();
        let work = async move {
            for page in 0..20 {
                handle.submit(Operation::read(Lpn(page), 1)).await.unwrap();
                drop(handle.submit_all((0..3).map(|page| Operation::read(Lpn(page), 1))));
            }
        };
        executor.block_on(work).unwrap();
        let core = executor.core.borrow();
        assert!(core.slots.is_empty() && core.tasks.is_empty(), "{} requests", core.slots.len());
    }
}
