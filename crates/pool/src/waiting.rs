//! Tasks that wait for a latch, for a page that is being read, for a frame, or for a write. They are served in the
//! order in which they came. A latch is handed to the next waiter, not left free to be taken, so that no task
//! starves.

use fulgurite_base::FrameId;
use fulgurite_device::IoError;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What has become of a waiting task's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing yet.
    Waiting,
    /// Here is the frame, latched.
    Latched(FrameId),
    /// It is worth trying again.
    TryAgain,
    /// The task has taken the answer, or no longer wants one.
    Over,
}

/// A waiting task.
pub(crate) struct Waiter {
    /// Whether it wants the latch for itself.
    pub write: bool,
    wish: Cell<Wish>,
    waker: Cell<Option<Waker>>,
}

impl Waiter {
    pub fn new(write: bool) -> Rc<Waiter> {
        Rc::new(Waiter { write, wish: Cell::new(Wish::Waiting), waker: Cell::new(None) })
    }

    pub fn is_waiting(&self) -> bool {
        self.wish.get() == Wish::Waiting
    }

    pub fn answer(&self, answer: Wish) {
        self.wish.set(answer);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// The answer; `None` where there is none yet.
    pub fn poll(&self, context: &Context<'_>) -> Option<Wish> {
        if self.is_waiting() {
            // A later poll may come with another waker, so the last one counts.
            self.waker.set(Some(context.waker().clone()));
            return None;
        }
        Some(self.wish.replace(Wish::Over))
    }

    /// Gives up. An answer that was not taken is returned.
    pub fn give_up(&self) -> Wish {
        self.wish.replace(Wish::Over)
    }
}

/// Tasks that take turns at something scarce.
#[derive(Default)]
pub(crate) struct Turns(RefCell<VecDeque<Rc<Waiter>>>);

impl Turns {
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Gives the next task its turn.
    pub fn next(&self) {
        while let Some(waiter) = self.0.borrow_mut().pop_front() {
            // A future that was dropped leaves its entry in the queue.
            if waiter.is_waiting() {
                return waiter.answer(Wish::TryAgain);
            }
        }
    }

    /// Waits for a turn; `again` after one that was in vain, which keeps its place.
    pub fn wait(&self, again: bool) -> Turn<'_> {
        let waiter = Waiter::new(false);
        let mut queue = self.0.borrow_mut();
        match again {
            true => queue.push_front(Rc::clone(&waiter)),
            false => queue.push_back(Rc::clone(&waiter)),
        }
        Turn { turns: self, waiter }
    }
}

/// A turn to come. Dropped after it has come and before it was noticed, it goes to the next task.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    waiter: Rc<Waiter>,
}

impl Future for Turn<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.waiter.poll(context) {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A turn that came and was not used would be lost, and those behind it would wait for ever.
        if self.waiter.give_up() == Wish::TryAgain {
            self.turns.next();
        }
    }
}

/// Pages that are written together, and the tasks that wait for them.
pub(crate) struct Batch {
    /// Their frames.
    pub frames: Vec<FrameId>,
    outcome: Cell<Option<Result<(), IoError>>>,
    waiters: RefCell<Vec<Waker>>,
}

impl Batch {
    pub fn new(frames: Vec<FrameId>) -> Batch {
        Batch { frames, outcome: Cell::new(None), waiters: RefCell::default() }
    }

    pub fn outcome(&self) -> Option<Result<(), IoError>> {
        self.outcome.get()
    }

    /// Tells the outcome to the tasks that wait. Returns whether there were any.
    pub fn end(&self, outcome: Result<(), IoError>) -> bool {
        self.outcome.set(Some(outcome));
        let waiters = self.waiters.take();
        let awaited = !waiters.is_empty();
        waiters.into_iter().for_each(Waker::wake);
        awaited
    }
}

impl Future for &Batch {
    type Output = Result<(), IoError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        let mut waiters = self.waiters.borrow_mut();
        // A task that waits for several pages polls here for each of them, one after the other.
        if !waiters.last().is_some_and(|last| last.will_wake(context.waker())) {
            waiters.push(context.waker().clone());
        }
        Poll::Pending
    }
}
