//! Queues of waiting tasks. A task waits for a latch, for a page that is being read, for a frame, or for a
//! write. Tasks are served in the order of their requests. A released latch is given to the next waiting task
//! directly, so that no task starves.

use fulgurite_base::FrameId;
use fulgurite_device::IoError;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The state of a waiting task's request: still waiting, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The request has no answer yet.
    Waiting,
    /// The task now holds the latch of this frame.
    Latched(FrameId),
    /// The task must make its request again.
    TryAgain,
    /// The task has taken the answer, or has given up.
    Over,
}

/// The request of a waiting task.
pub(crate) struct Waiter {
    /// Whether the task needs an exclusive latch.
    pub write: bool,
    wish: Cell<Wish>,
    waker: Cell<Option<Waker>>,
}

impl Waiter {
    pub(crate) fn new(write: bool) -> Rc<Waiter> {
        Rc::new(Waiter { write, wish: Cell::new(Wish::Waiting), waker: Cell::new(None) })
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.wish.get() == Wish::Waiting
    }

    pub(crate) fn answer(&self, answer: Wish) {
        self.wish.set(answer);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Returns the answer and marks it as taken; `None` if there is none yet.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Option<Wish> {
        if self.is_waiting() {
            // A later poll may bring another waker, so only the waker of the last poll is kept.
            self.waker.set(Some(context.waker().clone()));
            return None;
        }
        Some(self.wish.replace(Wish::Over))
    }

    /// Ends the wait. Returns the answer if it was not taken.
    pub(crate) fn give_up(&self) -> Wish {
        self.wish.replace(Wish::Over)
    }
}

/// The queue of tasks that wait for their turn to look for a frame.
#[derive(Default)]
pub(crate) struct Turns(RefCell<VecDeque<Rc<Waiter>>>);

impl Turns {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Gives the next waiting task its turn.
    pub(crate) fn next(&self) {
        while let Some(waiter) = self.0.borrow_mut().pop_front() {
            // A dropped future leaves its entry in the queue, and that entry is skipped.
            if waiter.is_waiting() {
                return waiter.answer(Wish::TryAgain);
            }
        }
    }

    /// Waits for a turn. With `again`, the task goes to the front of the queue, because its last turn was in
    /// vain.
    pub(crate) fn wait(&self, again: bool) -> Turn<'_> {
        let waiter = Waiter::new(false);
        let mut queue = self.0.borrow_mut();
        match again {
            true => queue.push_front(Rc::clone(&waiter)),
            false => queue.push_back(Rc::clone(&waiter)),
        }
        Turn { turns: self, waiter }
    }
}

/// The wait for a turn. If it is dropped after the turn was given and before the task took the turn, the next
/// task gets it.
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
        // An unused turn must not be lost, or the tasks behind it would wait for ever.
        if self.waiter.give_up() == Wish::TryAgain {
            self.turns.next();
        }
    }
}

/// A batch of pages that are written together, and the tasks that wait for the end of the write.
pub(crate) struct Batch {
    /// The frames whose pages are written.
    pub frames: Vec<FrameId>,
    outcome: Cell<Option<Result<(), IoError>>>,
    waiters: RefCell<Vec<Waker>>,
}

impl Batch {
    pub(crate) fn new(frames: Vec<FrameId>) -> Batch {
        Batch { frames, outcome: Cell::new(None), waiters: RefCell::default() }
    }

    pub(crate) fn outcome(&self) -> Option<Result<(), IoError>> {
        self.outcome.get()
    }

    /// Gives the outcome to the waiting tasks. Returns whether any task waited.
    pub(crate) fn end(&self, outcome: Result<(), IoError>) -> bool {
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
        // A task that waits for several batches may poll this one repeatedly, so its waker is added only
        // once.
        if !waiters.last().is_some_and(|last| last.will_wake(context.waker())) {
            waiters.push(context.waker().clone());
        }
        Poll::Pending
    }
}
