//! Tasks that wait for each other: a signal, a lock with turns, futures that end together, and one that goes on when nobody waits
//! for it any more; and attempts on a drive that may fail.

use crate::Error;
use fulgurite_device::{Device, Handle, IoError};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Something has changed: who waits looks again. Clones are the same signal.
#[derive(Clone, Default)]
pub struct Signal(Rc<RefCell<Vec<Waker>>>);

impl Signal {
    /// Waits until `ready` gives something. It is asked at once, and again after every [`Signal::notify`].
    pub async fn until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
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

    /// Wakes everybody who waits.
    pub fn notify(&self) {
        // The list leaves the cell because a waker may run anything.
        let waiting = self.0.take();
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// A lock that tasks take in the order in which they came.
#[derive(Default)]
pub struct Turns {
    taken: Cell<bool>,
    /// Numbers of those who wait, in order.
    queue: RefCell<VecDeque<u64>>,
    drawn: Cell<u64>,
    freed: Signal,
}

impl Turns {
    /// Waits for a turn, which lasts until what is returned is dropped.
    pub async fn take(&self) -> Turn<'_> {
        let number = self.drawn.get();
        self.drawn.set(number + 1);
        self.queue.borrow_mut().push_back(number);
        let place = Place { turns: self, number };
        self.freed
            .until(|| {
                let is_next = !self.taken.get() && self.queue.borrow().front() == Some(&number);
                is_next.then(|| self.taken.set(true))
            })
            .await;
        drop(place);
        Turn(self)
    }
}

/// A place in the queue, given back also when the future is dropped.
struct Place<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.turns.queue.borrow_mut().retain(|number| *number != self.number);
        self.turns.freed.notify();
    }
}

/// A turn.
pub struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.taken.set(false);
        self.0.freed.notify();
    }
}

/// Runs futures side by side and returns their outputs in order.
pub async fn together<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
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

/// Carries a future to its end in a task of its own, and waits for that. Who gives up ends the waiting only: what must not be left
/// half done goes here.
pub async fn to_its_end<D: Device + 'static, T: 'static>(
    handle: &Handle<D>,
    future: impl Future<Output = T> + 'static,
) -> T {
    let (output, ended) = (Rc::new(Cell::new(None)), Signal::default());
    let (slot, has_ended) = (Rc::clone(&output), ended.clone());
    handle.spawn(async move {
        slot.set(Some(future.await));
        has_ended.notify();
    });
    ended.until(|| output.take()).await
}

/// Attempts behind the first one.
const TRIED_AGAIN: u32 = 3;

/// Tries again a few times where the drive fails: what goes wrong on the way mostly does not happen twice. Beyond its end
/// it always fails.
pub async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut left = TRIED_AGAIN;
    loop {
        match attempt().await {
            Err(Error::Io(error)) if left > 0 && error != IoError::OutOfRange => left -= 1,
            outcome => return outcome,
        }
    }
}

/// Why the store stopped, once it has. Shared by everything that could stop it.
#[derive(Clone, Default)]
pub struct Health(Rc<HealthState>);

#[derive(Default)]
struct HealthState {
    reason: RefCell<Option<String>>,
    /// Those who wait for something that will not come any more.
    waiting: RefCell<Vec<Signal>>,
}

impl Health {
    /// Fails once the store has stopped.
    pub fn check(&self) -> Result<(), Error> {
        match &*self.0.reason.borrow() {
            Some(why) => Err(Error::Fatal(why.clone())),
            None => Ok(()),
        }
    }

    /// Stops the store; the first reason stays.
    pub fn stop(&self, why: impl Into<String>) -> Error {
        let reason = self.0.reason.borrow_mut().get_or_insert_with(|| why.into()).clone();
        self.0.waiting.borrow().iter().for_each(Signal::notify);
        Error::Fatal(reason)
    }

    /// Has `signal` given when the store stops.
    pub fn tell(&self, signal: &Signal) {
        self.0.waiting.borrow_mut().push(signal.clone());
    }
}
