//! The state of an executor: its tasks, their commands in flight, the simulated cores and the timers.

use crate::{Caps, Command, Completion, Device, IoError, Operation, QueueFull, Tag};
use fulgurite_base::Nanos;
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use thiserror::Error;

/// The reasons why an executor cannot continue to run its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // each message names the fields
pub enum RunError {
    /// Tasks wait, and no command in flight and no timer can wake them.
    #[error(
        "stalled: {tasks} tasks wait, {in_flight} commands were never completed \
         (submitted {submitted}, completed {completed})"
    )]
    Stalled { tasks: usize, in_flight: u64, submitted: u64, completed: u64 },
    /// The device completed a command that is not in flight.
    #[error("the device completed tag {0}, which is not in flight")]
    StrayCompletion(u64),
}

/// The task or the waker to wake at the end of a request. A task of this executor is woken by its number,
/// which needs no clone and no lock. A future that is polled with another waker (as in `FuturesUnordered`)
/// keeps a clone of that waker.
pub(super) enum Waiter {
    Nobody,
    Task(u32),
    Foreign(Waker),
}

/// A request of a task: one or more commands that complete together.
pub(super) struct Slot {
    /// The serial number, which distinguishes this request from an earlier one in the same slot.
    pub(crate) serial: u32,
    pub(crate) remaining: u32,
    pub(crate) failure: Option<IoError>,
    pub(crate) waiter: Waiter,
    /// Whether the future of the request was dropped, so that the last completion frees the slot.
    pub(crate) abandoned: bool,
    /// Whether the request has a flush for a part of the device.
    pub(crate) flushes_part: bool,
}

pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The id of a task while an executor runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(pub(super) u32);

/// The tasks that were woken through a standard [`Waker`] and not yet made ready.
pub(super) type ForeignWakes = Arc<Mutex<Vec<u32>>>;

struct TaskWaker {
    task: u32,
    /// Whether the task is already among `wakes`, because one wake is enough. A task that waits for several
    /// events leaves several wakers. If each of these wakers added a wake, a task that waits for all events
    /// again after every wake would be woken more and more often.
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

/// The kind of a task, which decides its priority.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ordinary,
    /// A thread waits for the task, so it runs before ordinary tasks; see
    /// [`Executor::try_now`](super::Executor::try_now) and
    /// [`Handle::spawn_awaited`](super::Handle::spawn_awaited).
    Awaited,
    /// Many threads wait for the task, and each of them may execute its commands; see
    /// [`Handle::spawn_for_all`](super::Handle::spawn_for_all).
    ForAll,
}

/// The most awaited tasks that run while other tasks are ready, before one of these other tasks runs.
const MOST_OVERTAKEN: u32 = 16;

/// A simulated core.
#[derive(Default)]
pub(super) struct Cpu {
    /// The time at which the core has done all work that was charged to it.
    pub(crate) free: Nanos,
    /// The commands of the core's tasks that the device had no room for, in order.
    pub(crate) backlog: VecDeque<Command>,
}

pub(super) struct Core<D: ?Sized> {
    pub(crate) caps: Rc<Caps>,
    pub(crate) slots: Slab<Slot>,
    pub(crate) cpus: Vec<Cpu>,
    /// The number of commands in the backlogs of all cores.
    pub(crate) waiting: usize,
    /// The core whose backlog submits the next command.
    pub(crate) next_cpu: usize,
    /// The tasks; `None` in the slot of a task while it runs.
    pub(crate) tasks: Slab<Option<Task>>,
    /// The core of the task in each slot of `tasks`.
    pub(crate) homes: Vec<u32>,
    /// The priority of the task in each slot of `tasks`.
    pub(crate) kinds: Vec<Kind>,
    /// The waker of each slot of `tasks`. A waker names only its slot, so it serves all tasks that occupy the
    /// slot one after another.
    pub(crate) wakers: Vec<Waker>,
    /// For each slot of `tasks`, whether its task is among the wakes that came through its waker.
    pub(crate) woken: Vec<Arc<AtomicBool>>,
    pub(crate) ready: VecDeque<u32>,
    /// The ready tasks that threads wait for.
    pub(crate) urgent: VecDeque<u32>,
    /// The number of awaited tasks that ran while other tasks were ready, since one of the other tasks ran.
    pub(crate) overtaken: u32,
    /// The timers by their time; timers of equal times are in the order in which they were set.
    pub(crate) timers: BTreeMap<(Nanos, u64), Waiter>,
    pub(crate) timers_set: u64,
    /// The running task, and the pointer that identifies its waker.
    pub(crate) current: (u32, *const ()),
    pub(crate) submitted: u64,
    pub(crate) completed: u64,
    /// The failure of the first flush of a part of the device that has failed; `None` if none has.
    pub(crate) failed_flush: Option<IoError>,
    /// The number of commands in flight that their callers execute as errands.
    pub(crate) errands: u64,
    /// The task that submitted the last command.
    pub(crate) submitter: u32,
    /// The tag of the last command of a [`Kind::ForAll`] task since the device last waited.
    pub(crate) for_all_tag: Option<Tag>,
    /// Whether the device must be polled: commands were submitted or errands have ended.
    pub(crate) fresh: bool,
    /// The number of commands submitted since the device last waited.
    pub(crate) begun: u32,
    pub(crate) wakes: ForeignWakes,
    /// The last field, because its type may be unsized.
    pub(crate) device: D,
}

impl<D: Device> Core<D> {
    pub(crate) fn new(device: D, cores: u32) -> Core<D> {
        let caps = Rc::new(device.caps().clone());
        Core {
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
            failed_flush: None,
            errands: 0,
            for_all_tag: None,
            submitter: u32::MAX,
            fresh: false,
            begun: 0,
            wakes: ForeignWakes::default(),
            device,
        }
    }
}

impl<D: Device + ?Sized> Core<D> {
    /// Adds a task on a core. Without a future, this function reserves the slot for a task that is already
    /// running.
    pub(crate) fn add(&mut self, future: Option<Task>, cpu: usize, kind: Kind) -> u32 {
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

    pub(crate) fn spawn(&mut self, future: Task, cpu: usize, kind: Kind) {
        let task = self.add(Some(future), cpu, kind);
        self.make_ready(task);
    }

    pub(crate) fn make_ready(&mut self, task: u32) {
        match self.kinds[task as usize] {
            Kind::Ordinary => self.ready.push_back(task),
            Kind::Awaited | Kind::ForAll => self.urgent.push_back(task),
        }
    }

    /// Takes the next task to run from the queues of ready tasks.
    pub(crate) fn next_ready(&mut self) -> Option<u32> {
        let is_due = self.overtaken >= MOST_OVERTAKEN && !self.ready.is_empty();
        if !is_due && let Some(task) = self.urgent.pop_front() {
            self.overtaken += u32::from(!self.ready.is_empty());
            return Some(task);
        }
        self.overtaken = 0;
        self.ready.pop_front()
    }

    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.urgent.is_empty()
    }

    /// Returns the core of the running task.
    pub(crate) fn cpu(&self) -> usize {
        self.homes.get(self.current.0 as usize).map_or(0, |cpu| *cpu as usize)
    }

    /// Records that `task` is running. Returns the waker of the task.
    pub(crate) fn begin(&mut self, task: u32) -> Waker {
        let waker = self.wakers[task as usize].clone();
        self.current = (task, waker.data());
        waker
    }

    pub(crate) fn submit(
        &mut self,
        operations: impl Iterator<Item = Operation>,
        cpu: usize,
        is_part: bool,
    ) -> usize {
        // The number of submitted commands only grows, so a serial number repeats only after 2^32 commands.
        let serial = self.submitted as u32;
        let slot = self.slots.insert(Slot {
            serial,
            remaining: 0,
            failure: None,
            waiter: Waiter::Nobody,
            abandoned: false,
            flushes_part: false,
        });
        let tag = Tag(u64::from(serial) << 32 | slot as u64);
        for operation in operations {
            self.slots[slot].remaining += 1;
            self.slots[slot].flushes_part |= is_part && matches!(operation, Operation::Flush);
            self.push(Command { tag, operation }, cpu);
        }
        slot
    }

    pub(crate) fn push(&mut self, command: Command, cpu: usize) {
        self.submitted += 1;
        self.submitter = self.current.0;
        if self.is_last_for_all() {
            self.for_all_tag = Some(command.tag);
        }
        self.fresh = true;
        self.begun += 1;
        // A command must not overtake commands that wait for room in the device, on any core.
        let refused = if self.waiting > 0 { Err(QueueFull(command)) } else { self.device.submit(command) };
        if let Err(QueueFull(command)) = refused {
            self.cpus[cpu].backlog.push_back(command);
            self.waiting += 1;
        }
    }

    /// Returns whether the last command belongs to a [`Kind::ForAll`] task.
    pub(crate) fn is_last_for_all(&self) -> bool {
        self.kinds.get(self.submitter as usize) == Some(&Kind::ForAll)
    }

    /// Submits waiting commands while the device has room, one command of each core in turn.
    pub(crate) fn drain_backlogs(&mut self) {
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

    pub(crate) fn complete(&mut self, completion: Completion) -> Result<(), RunError> {
        let (serial, key) = ((completion.tag.0 >> 32) as u32, completion.tag.0 as u32 as usize);
        let slot = self
            .slots
            .get_mut(key)
            .filter(|slot| slot.serial == serial && slot.remaining > 0)
            .ok_or(RunError::StrayCompletion(completion.tag.0))?;
        self.completed += 1;
        slot.remaining -= 1;
        slot.failure = slot.failure.or(completion.status.err());
        if slot.flushes_part {
            self.failed_flush = self.failed_flush.or(slot.failure);
            slot.failure = self.failed_flush;
        }
        if slot.remaining > 0 {
            return Ok(());
        }
        let waiter = std::mem::replace(&mut slot.waiter, Waiter::Nobody);
        // The future of an abandoned request is gone, so the slot is freed here.
        if slot.abandoned {
            self.slots.remove(key);
        }
        self.wake(waiter);
        Ok(())
    }

    pub(crate) fn wake(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Nobody => {}
            Waiter::Task(task) => self.make_ready(task),
            Waiter::Foreign(waker) => waker.wake(),
        }
    }

    pub(crate) fn fire_timers(&mut self) -> Nanos {
        let now = self.device.now();
        while let Some(timer) = self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            let waiter = timer.remove();
            self.wake(waiter);
        }
        now
    }

    /// Sets a timer that wakes the polling task: the timer named by `set`, or a new one, whose key is then
    /// stored in `set`.
    pub(crate) fn set_timer(&mut self, at: Nanos, set: &mut Option<(Nanos, u64)>, context: &Context<'_>) {
        let key = *set.get_or_insert_with(|| {
            self.timers_set += 1;
            (at, self.timers_set)
        });
        let waiter = self.waiter(context);
        self.timers.insert(key, waiter);
    }

    pub(crate) fn waiter(&self, context: &Context<'_>) -> Waiter {
        let (task, own) = self.current;
        if context.waker().data() == own {
            Waiter::Task(task)
        } else {
            Waiter::Foreign(context.waker().clone())
        }
    }
}
