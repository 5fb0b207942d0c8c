//! A single-threaded executor of tasks over one device: one core drives the device, or several simulated
//! cores share it.
//!
//! In each turn the executor runs every ready task, lets the device wait, and wakes tasks by the tags of
//! completions. Tasks run in the order in which they were woken, except that tasks with waiting threads run
//! first. So a run on a simulated drive repeats exactly.
//!
//! Each simulated core has its own CPU time and its own queue for commands that the device has no room for.
//! All tasks run on one thread, in the order of the device's clock. A task stays on its core, and the tasks
//! that it spawns run on the same core. A handle may be bound to a core ([`Handle::on_core`]); then what it begins
//! belongs to that core, whichever task uses it.
//!
//! A command in flight belongs to the executor, not to the future that asked for it. If the future is
//! dropped, the command still completes, and its buffer stays allocated until then.

mod state;
mod handle;

pub use handle::{Handle, Io};
pub use state::{RunError, TaskId};

use crate::{Completion, Device, Done, Errand};
use fulgurite_base::Nanos;
use state::{Core, ForeignWakes, Kind};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

/// The next step that an executor can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Tasks can run, or commands wait to be submitted to the device: call [`Executor::turn`].
    Ready,
    /// Commands are in flight, or timers are set: a thread should wait for the device.
    Waiting {
        /// The time at which the next timer fires, on the device's clock; `None` if no timer is set.
        until: Option<Nanos>,
    },
    /// No step is possible. Tasks that have not ended wait for each other, or for an event outside the
    /// executor.
    Idle,
}

/// Runs tasks over one device. Several cores are simulated; see the head of this module.
pub struct Executor<D: ?Sized = dyn Device> {
    core: Rc<RefCell<Core<D>>>,
    wakes: ForeignWakes,
    interrupt: Arc<AtomicBool>,
    /// A list of completions, always empty between calls; it is kept to reuse its memory.
    completions: Cell<Vec<Completion>>,
}

impl<D: Device + 'static> Executor<D> {
    /// Creates an executor that drives `device` from one core.
    pub fn new(device: D) -> Executor<D> {
        Executor::with_cores(device, 1)
    }

    /// Creates an executor that drives `device` from `cores` cores, at least one.
    ///
    /// Several cores are simulated, so the device should be simulated too: on a real drive all of them share
    /// one thread.
    pub fn with_cores(device: D, cores: u32) -> Executor<D> {
        Executor::over(Rc::new(RefCell::new(Core::new(device, cores))))
    }
}

impl Executor {
    /// Creates an executor that drives `device` from one core, and whose type does not name that of the
    /// device.
    pub fn of_any(device: impl Device + 'static) -> Executor {
        Executor::over(Rc::new(RefCell::new(Core::new(device, 1))))
    }
}

impl<D: Device + ?Sized + 'static> Executor<D> {
    fn over(core: Rc<RefCell<Core<D>>>) -> Executor<D> {
        let wakes = Arc::clone(&core.borrow().wakes);
        Executor { core, wakes, interrupt: Arc::default(), completions: Cell::default() }
    }

    /// Returns the interface for tasks.
    pub fn handle(&self) -> Handle<D> {
        Handle::new(Rc::clone(&self.core))
    }

    /// Adds a task on the first core. The task first runs in [`Executor::run`].
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_on(0, future);
    }

    /// Adds a task on the core `cpu`. Cores are numbered from 0; larger numbers wrap around.
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

    /// Waits for the device until a command completes or a timer fires, and wakes the waiting tasks.
    ///
    /// Fails if nothing is in flight and no timer is set.
    pub fn wait(&self) -> Result<(), RunError> {
        let deadline = self.core.borrow().timers.first_key_value().map(|((at, _), _)| *at);
        let (any, now) = self.advance(deadline)?;
        let core = self.core.borrow();
        // A device returns early without a completion only if no command is in flight, so tasks are stalled.
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

    /// Runs the ready tasks, submits their commands to the device and takes completions. It does not wait for
    /// the device.
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

    /// Runs the ready tasks, lets the device wait until a command completes or until `deadline`, and runs the tasks
    /// that this makes ready. Returns whether a command has completed. Timers must not be set.
    pub fn step(&self, deadline: Option<Nanos>) -> Result<bool, RunError> {
        self.run_all();
        let (any, _) = self.advance(deadline)?;
        self.run_all();
        // The completions have made room in the device's queue.
        self.core.borrow_mut().drain_backlogs();
        Ok(any)
    }

    /// Takes a command as an errand, so that the caller executes it itself, without the executor; see
    /// [`Device::take_errand`]. The command must be of `task` and the only one since the last turn. With
    /// `for_all`, it may also be the command of a task from [`Handle::spawn_for_all`], even if other commands
    /// were submitted.
    pub fn errand(&self, task: TaskId, for_all: bool) -> Option<Errand> {
        let mut core = self.core.borrow_mut();
        let for_all_tag = core.for_all_tag.filter(|_| for_all);
        // Commands that wait for room in the device's queue must be submitted before a later one is executed.
        if core.waiting > 0 || (for_all_tag.is_none() && core.submitter != task.0) {
            return None;
        }
        let errand = core.device.take_errand(for_all_tag)?;
        core.errands += 1;
        // If other commands were started, the device may already have completions, so the device must be
        // polled.
        (core.fresh, core.begun, core.for_all_tag) = (core.begun > 1, 0, None);
        Some(errand)
    }

    /// Returns a flag for other threads: if the flag is set, a turn returns after the running task, even if
    /// other tasks are ready.
    pub fn interrupt(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.interrupt)
    }

    /// Returns whether the only possible step is one command that any waiting thread may execute; see
    /// [`Executor::errand`].
    pub fn has_errand_for_all(&self) -> bool {
        let core = self.core.borrow();
        let is_woken = || !self.wakes.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        core.begun == 1 && core.is_last_for_all() && core.waiting == 0 && !core.is_ready() && !is_woken()
    }

    /// Ends an errand and wakes the task that waits for its command.
    pub fn end_errand(&self, Done { tag, status }: Done) -> Result<(), RunError> {
        let mut core = self.core.borrow_mut();
        core.errands -= 1;
        core.device.end_errand();
        let at = core.device.now();
        core.complete(Completion { tag, at, status })
    }

    /// Returns the next step that the executor can take.
    #[inline]
    pub fn outlook(&self) -> Outlook {
        let core = self.core.borrow();
        let woken = || !self.wakes.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if core.fresh || core.is_ready() || woken() {
            return Outlook::Ready;
        }
        let until = core.timers.first_key_value().map(|((at, _), _)| *at);
        // Only the thread that executes an errand waits for it, so errands do not count as commands in
        // flight.
        if until.is_some() || core.submitted > core.completed + core.errands {
            Outlook::Waiting { until }
        } else {
            Outlook::Idle
        }
    }

    /// Lets the device wait until a command completes or until `deadline`. Returns whether any command has
    /// completed, and the time on the device's clock.
    fn advance(&self, deadline: Option<Nanos>) -> Result<(bool, Nanos), RunError> {
        let mut core = self.core.borrow_mut();
        // The last completions have made room in the device's queue for commands that waited.
        core.drain_backlogs();
        let mut completions = self.completions.take();
        core.device.wait(deadline, &mut completions);
        (core.fresh, core.begun, core.for_all_tag) = (false, 0, None);
        let any = !completions.is_empty();
        for completion in completions.drain(..) {
            core.complete(completion)?;
        }
        self.completions.replace(completions);
        let now = core.fire_timers();
        Ok((any, now))
    }

    /// Polls `future` at once and returns its output if it ends. Otherwise it becomes a task. Then `end` is
    /// called with the task's id, and the closure that `end` returns is called with the output of the task.
    ///
    /// A task must not call this function.
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
                // The borrow of the core ends before the future is dropped, because locals drop in reverse
                // order. Dropping the future may borrow the core.
                Some(output)
            }
            Poll::Pending => {
                let end = end(TaskId(id));
                core.tasks[id as usize] = Some(Box::pin(async move { end(future.await) }));
                None
            }
        }
    }

    /// Cancels a task by dropping it. Its commands in flight still complete.
    ///
    /// A task must not call this function.
    pub fn cancel(&self, task: TaskId) {
        // The task is dropped outside the borrow of the core, because dropping it may borrow the core.
        let _future = self.core.borrow_mut().tasks.try_remove(task.0 as usize);
    }

    /// Runs `future` and all other tasks to their end, and returns its output.
    pub fn block_on<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Result<T, RunError> {
        let output = self.run_until(future)?;
        self.run()?;
        Ok(output)
    }

    /// Runs `future` to its end and returns its output. Other tasks run meanwhile and stay unfinished if they
    /// have not ended by then.
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

    /// Calls `f` with the device, so that the device can be inspected between runs.
    pub fn with_device<T>(&self, f: impl FnOnce(&mut D) -> T) -> T {
        f(&mut self.core.borrow_mut().device)
    }

    /// Runs the ready tasks until none is left or the flag of [`Executor::interrupt`] is set. The commands of
    /// the tasks are submitted at the next [`Executor::turn`].
    pub fn run_ready(&self) {
        while self.run_one() && !self.interrupt.swap(false, Ordering::Relaxed) {}
    }

    /// Runs the ready tasks until none is left, regardless of interrupts.
    fn run_all(&self) {
        while self.run_one() {}
    }

    /// Runs one ready task. Returns whether a task was ready.
    fn run_one(&self) -> bool {
        loop {
            let mut core = self.core.borrow_mut();
            // Wakers must be `Send` and cannot reach the core, so the tasks that they have woken are
            // collected here.
            for task in self.wakes.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // The flag is cleared first, because a wake after this line is a new one.
                core.woken[task as usize].store(false, Ordering::Release);
                core.make_ready(task);
            }
            let Some(id) = core.next_ready() else { return false };
            // A task may be woken twice, or after it has ended; both are harmless, because no task is found
            // here then.
            let Some(mut task) = core.tasks.get_mut(id as usize).and_then(Option::take) else { continue };
            let waker = core.begin(id);
            // The borrow of the core ends here, because the task borrows the core itself.
            drop(core);
            let poll = task.as_mut().poll(&mut Context::from_waker(&waker));
            let mut core = self.core.borrow_mut();
            // The borrow of the core ends before an ended task is dropped, because locals drop in reverse
            // order.
            match poll {
                Poll::Pending => core.tasks[id as usize] = Some(task),
                Poll::Ready(()) => drop(core.tasks.remove(id as usize)),
            }
            return true;
        }
    }
}

impl<D: ?Sized> Drop for Executor<D> {
    fn drop(&mut self) {
        // Tasks hold handles to the core, and the core holds the tasks, so dropping the tasks breaks this
        // cycle. The futures are dropped outside the borrow, because they borrow the core themselves. Some
        // futures spawn tasks as they are dropped, to wait for I/O in flight, so the loop repeats until no
        // task is left.
        loop {
            let tasks = std::mem::take(&mut self.core.borrow_mut().tasks);
            if tasks.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemDevice, Operation};
    use fulgurite_base::Lpn;

    #[test]
    fn finished_requests_free_their_slots() {
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
