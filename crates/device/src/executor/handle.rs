//! The interface of an executor for its tasks: commands to the device, the clock, and other tasks.

use super::state::{Core, Kind, Task, Waiter};
use crate::{Arena, Caps, Device, IoError, Operation, ShareRun};
use fulgurite_base::{Lpn, Nanos};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A task's access to the device, the clock and the other tasks.
///
/// `Handle<D>` names the type of its device, so calls of the device can be inlined. `Handle` accepts every
/// device: code above it is compiled once and calls the device through a table of functions.
pub struct Handle<D: ?Sized = dyn Device> {
    core: Rc<RefCell<Core<D>>>,
    /// The part of the device and the core that the handle is restricted to; `None` if it is not.
    place: Option<Rc<Place>>,
}

/// A part of a device, and the core that uses it.
#[derive(Clone)]
struct Place {
    /// The first page of the part.
    first: u64,
    /// The capabilities of the part.
    caps: Rc<Caps>,
    /// Whether it is less than the whole device.
    is_part: bool,
    /// The core of the tasks, the commands and the CPU time; `None` for the core of the running task.
    cpu: Option<usize>,
}

impl Place {
    /// Translates an address within the part. An address outside of it becomes one that no device has, so that the
    /// device refuses the command as it refuses any other one beyond its end.
    fn lpn(&self, lpn: Lpn, pages: u32) -> Lpn {
        if self.caps.has(lpn, pages) { Lpn(self.first + lpn.0) } else { Lpn(u64::MAX) }
    }

    fn translate(&self, mut operation: Operation) -> Operation {
        match &mut operation {
            Operation::Read { lpn, pages, .. }
            | Operation::Write { lpn, pages, .. }
            | Operation::Trim { lpn, pages } => *lpn = self.lpn(*lpn, *pages),
            Operation::Share { runs } => {
                for ShareRun { destination, source, pages } in runs {
                    *destination = self.lpn(*destination, *pages);
                    *source = self.lpn(*source, *pages);
                }
            }
            Operation::Flush => {}
        }
        operation
    }
}

impl<D: ?Sized> Clone for Handle<D> {
    fn clone(&self) -> Self {
        Handle { core: Rc::clone(&self.core), place: self.place.clone() }
    }
}

impl<D: Device + 'static> From<Handle<D>> for Handle {
    fn from(handle: Handle<D>) -> Handle {
        Handle { core: handle.core, place: handle.place }
    }
}

impl<D: ?Sized> Handle<D> {
    pub(super) fn new(core: Rc<RefCell<Core<D>>>) -> Handle<D> {
        Handle { core, place: None }
    }
}

impl<D: Device + ?Sized> Handle<D> {
    /// Returns a handle for which `pages` pages from `first` on are the whole device. A command beyond them fails with
    /// [`IoError::OutOfRange`]. A flush covers the whole device. Once a flush of any part has failed, all later flushes
    /// of parts fail too: the device may have lost what another part has written, and reports it only once. Returns
    /// `None` if the device does not have these pages.
    pub fn part(&self, first: Lpn, pages: u64) -> Option<Handle<D>> {
        let place = self.place();
        let caps = Rc::new(place.caps.part(first, pages)?);
        let place = Place { first: place.first + first.0, caps, is_part: true, cpu: place.cpu };
        Some(Handle { core: Rc::clone(&self.core), place: Some(Rc::new(place)) })
    }

    /// Returns a handle whose tasks, commands and CPU time belong to the core `cpu`, whichever task uses it. Cores are
    /// numbered from 0; larger numbers wrap around.
    pub fn on_core(&self, cpu: u32) -> Handle<D> {
        let cpus = self.core.borrow().cpus.len();
        let place = Place { cpu: Some(cpu as usize % cpus), ..self.place() };
        Handle { core: Rc::clone(&self.core), place: Some(Rc::new(place)) }
    }

    fn place(&self) -> Place {
        let whole =
            || Place { first: 0, caps: Rc::clone(&self.core.borrow().caps), is_part: false, cpu: None };
        self.place.as_deref().cloned().unwrap_or_else(whole)
    }

    /// Returns the core of what the handle begins.
    fn cpu(&self, core: &Core<D>) -> usize {
        self.place.as_ref().and_then(|place| place.cpu).unwrap_or_else(|| core.cpu())
    }

    /// Returns the properties and capabilities of the device, or of the part of it that the handle is restricted to.
    pub fn caps(&self) -> Rc<Caps> {
        match &self.place {
            Some(place) => Rc::clone(&place.caps),
            None => Rc::clone(&self.core.borrow().caps),
        }
    }

    /// Returns the time on the device's clock.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.core.borrow().device.now()
    }

    /// Returns the number of erases of the erase block that holds `lpn`, if the device counts erases.
    pub fn erases(&self, lpn: Lpn) -> Option<u64> {
        let lpn = self.place.as_ref().map_or(lpn, |place| place.lpn(lpn, 1));
        self.core.borrow().device.erases(lpn)
    }

    /// Announces memory that most commands will use, so that the device can map this memory once.
    pub fn register(&self, arena: &Arc<Arena>) {
        self.core.borrow_mut().device.register(arena);
    }

    /// Returns the number of commands submitted to the device and the number of completions received.
    pub fn conservation(&self) -> (u64, u64) {
        let core = self.core.borrow();
        (core.submitted, core.completed)
    }

    /// Adds a task on the core of the handle, or else of the running task.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Box::pin(future), Kind::Ordinary);
    }

    /// Adds a task that a thread waits for, on the same core as [`Handle::spawn`]. The task runs before other
    /// tasks.
    pub fn spawn_awaited(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Box::pin(future), Kind::Awaited);
    }

    /// Adds a task that many threads wait for, on the same core as [`Handle::spawn`]. Each of these threads
    /// may execute the task's commands; see [`Executor::errand`](super::Executor::errand).
    pub fn spawn_for_all(&self, future: impl Future<Output = ()> + 'static) {
        self.spawn_as(Box::pin(future), Kind::ForAll);
    }

    fn spawn_as(&self, future: Task, kind: Kind) {
        let mut core = self.core.borrow_mut();
        let cpu = self.cpu(&core);
        core.spawn(future, cpu, kind);
    }

    /// Submits one operation at once. The future ends when the operation completes.
    pub fn submit(&self, operation: Operation) -> Io<D> {
        self.submit_all(std::iter::once(operation))
    }

    /// Submits all of the operations at once. The future ends when the last operation completes, with the
    /// first failure if there was one.
    pub fn submit_all(&self, operations: impl Iterator<Item = Operation>) -> Io<D> {
        let mut core = self.core.borrow_mut();
        let cpu = self.cpu(&core);
        let slot = match &self.place {
            None => core.submit(operations, cpu, false),
            Some(place) => {
                core.submit(operations.map(|operation| place.translate(operation)), cpu, place.is_part)
            }
        };
        Io { core: Rc::clone(&self.core), slot }
    }

    /// Waits until the device's clock reads `at`.
    pub async fn sleep_until(&self, at: Nanos) {
        let mut set: Option<(Nanos, u64)> = None;
        poll_fn(|context| {
            let mut core = self.core.borrow_mut();
            if core.device.now() >= at {
                return Poll::Ready(());
            }
            // A task may be polled for other reasons, but one sleep needs only one timer. The timer wakes the
            // task that polled last.
            core.set_timer(at, &mut set, context);
            Poll::Pending
        })
        .await;
    }

    /// Waits for a future for at most `patience`. Returns `None` and drops the future if it has not ended by
    /// then.
    pub async fn within<T>(&self, patience: Nanos, future: impl Future<Output = T>) -> Option<T> {
        let (mut future, mut end) = (pin!(future), pin!(self.sleep_until(self.now() + patience)));
        poll_fn(|context| match (future.as_mut().poll(context), end.as_mut().poll(context)) {
            (Poll::Ready(output), _) => Poll::Ready(Some(output)),
            (_, Poll::Ready(())) => Poll::Ready(None),
            _ => Poll::Pending,
        })
        .await
    }

    /// Lets other tasks run, and the drive start its commands, before this task continues. No virtual time
    /// passes. A task with a long computation calls this function while reads of its own are in flight.
    pub async fn pause(&self) {
        let mut is_set = false;
        poll_fn(|context| {
            if std::mem::replace(&mut is_set, true) {
                return Poll::Ready(());
            }
            let mut core = self.core.borrow_mut();
            // A timer for the present moment fires only after the device was polled, so the drive has started
            // its commands by then.
            let now = core.device.now();
            core.set_timer(now, &mut None, context);
            Poll::Pending
        })
        .await;
    }

    /// Charges `cost` of CPU time to the core of the handle, or else of the running task. Tasks that use the same core
    /// queue for the CPU time.
    pub async fn compute(&self, cost: Nanos) {
        let done = {
            let mut core = self.core.borrow_mut();
            let now = core.device.now();
            let cpu = self.cpu(&core);
            let free = &mut core.cpus[cpu].free;
            // The CPU time is reserved at once, so that the next task queues behind this task.
            *free = (*free).max(now) + cost;
            *free
        };
        self.sleep_until(done).await;
    }
}

/// The wait for the end of one or more commands; see [`Handle::submit_all`].
#[must_use = "the outcome of I/O must be looked at"]
pub struct Io<D: ?Sized = dyn Device> {
    core: Rc<RefCell<Core<D>>>,
    slot: usize,
}

impl<D: Device + ?Sized> Future for Io<D> {
    type Output = Result<(), IoError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut core = self.core.borrow_mut();
        let slot = &core.slots[self.slot];
        if slot.remaining == 0 {
            return Poll::Ready(slot.failure.map_or(Ok(()), Err));
        }
        let waiter = core.waiter(context);
        core.slots[self.slot].waiter = waiter;
        Poll::Pending
    }
}

impl<D: ?Sized> Drop for Io<D> {
    fn drop(&mut self) {
        let mut core = self.core.borrow_mut();
        let slot = &mut core.slots[self.slot];
        if slot.remaining == 0 {
            core.slots.remove(self.slot);
        } else {
            slot.abandoned = true;
            slot.waiter = Waiter::Nobody;
        }
    }
}
