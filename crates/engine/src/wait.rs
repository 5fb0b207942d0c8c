//! Coordination of tasks: a signal, a fair lock, concurrent futures, a future that continues after its caller
//! is dropped, retries of I/O that may fail, and the state that stops the store.

use crate::Error;
use fulgurite_device::{Handle, IoError};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// The future of a call of the store.
///
/// It is boxed, so that the code of the call is compiled once, in this crate. The code of an `async fn` is
/// compiled again in each crate that awaits it.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + 'a>>;

/// Wakes waiting tasks so that they check their condition again. All clones are the same signal.
#[derive(Clone, Default)]
pub(crate) struct Signal(Rc<RefCell<Vec<Waker>>>);

impl Signal {
    /// Waits until `ready` returns a value. Calls `ready` at once, and again after every [`Signal::notify`].
    pub(crate) async fn until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| match ready() {
            Some(value) => Poll::Ready(value),
            None => {
                let mut waiting = self.0.borrow_mut();
                if !waiting.last().is_some_and(|last| last.will_wake(context.waker())) {
                    waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }

    /// Wakes all waiting tasks.
    pub(crate) fn notify(&self) {
        // The list is taken out of the cell first, because a waker may run any code.
        let waiting = self.0.take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A fair lock: tasks get it in the order in which they requested it.
#[derive(Default)]
pub(crate) struct Turns {
    taken: Cell<bool>,
    /// The numbers of the waiting tasks, in the order of their requests.
    queue: RefCell<VecDeque<u64>>,
    drawn: Cell<u64>,
    freed: Signal,
}

impl Turns {
    /// Waits for the lock. The lock is held until the returned guard is dropped.
    pub(crate) async fn take(&self) -> Turn<'_> {
        let number = self.drawn.get();
        self.drawn.set(number + 1);
        self.queue.borrow_mut().push_back(number);
        let waiter = Waiter { turns: self, number };
        self.freed
            .until(|| {
                let is_next = !self.taken.get() && self.queue.borrow().front() == Some(&number);
                is_next.then(|| self.taken.set(true))
            })
            .await;
        drop(waiter);
        Turn(self)
    }

    /// Releases the lock, whose guard was forgotten.
    pub(crate) fn release(&self) {
        self.taken.set(false);
        self.freed.notify();
    }
}

/// An entry in the queue of a [`Turns`]. Dropping it, or the future that contains it, removes the entry.
struct Waiter<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.turns.queue.borrow_mut().retain(|number| *number != self.number);
        self.turns.freed.notify();
    }
}

/// The guard of a [`Turns`], which releases the lock when it is dropped.
pub(crate) struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Runs futures concurrently and returns their outputs in order.
pub(crate) async fn together<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (future, output) in std::iter::zip(&mut running, &mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Runs a future to completion in a task of its own, and waits for it. If the caller is dropped, the task
/// continues. Use this function for work that must not stop half-way.
pub(crate) async fn to_its_end<T: 'static>(handle: &Handle, future: impl Future<Output = T> + 'static) -> T {
    let (output, ended) = (Rc::new(Cell::new(None)), Signal::default());
    let (slot, has_ended) = (Rc::clone(&output), ended.clone());
    handle.spawn(async move {
        slot.set(Some(future.await));
        has_ended.notify();
    });
    ended.until(|| output.take()).await
}

/// The largest number of retries after the first attempt.
const TRIED_AGAIN: u32 = 3;

/// Retries an operation a few times if the drive fails, because most transfer errors are transient. An access
/// beyond the end of the drive always fails and is not retried.
pub(crate) async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut left = TRIED_AGAIN;
    loop {
        match attempt().await {
            Err(Error::Io(error)) if left > 0 && error != IoError::OutOfRange => left -= 1,
            outcome => return outcome,
        }
    }
}

/// Whether the store has stopped, and the reason. Every component that may stop the store has a clone.
#[derive(Clone, Default)]
pub(crate) struct Health(Rc<HealthState>);

#[derive(Default)]
struct HealthState {
    reason: RefCell<Option<String>>,
    /// The signals that are notified when the store stops, because tasks would otherwise wait on them for
    /// ever.
    waiting: RefCell<Vec<Signal>>,
}

impl Health {
    /// Fails if the store has stopped.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &*self.0.reason.borrow() {
            Some(why) => Err(Error::Fatal(why.clone())),
            None => Ok(()),
        }
    }

    /// Stops the store and returns the error for callers. If the store has stopped before, the first reason
    /// is kept.
    pub(crate) fn stop(&self, why: impl Into<String>) -> Error {
        let reason = self.0.reason.borrow_mut().get_or_insert_with(|| why.into()).clone();
        self.0.waiting.borrow().iter().for_each(Signal::notify);
        Error::Fatal(reason)
    }

    /// Registers `signal`, which is notified when the store stops.
    pub(crate) fn tell(&self, signal: &Signal) {
        self.0.waiting.borrow_mut().push(signal.clone());
    }
}
