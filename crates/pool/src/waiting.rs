//! Tasks that wait for a latch, for a page that is being read, for a frame, or for a write. They are served
//! in the order of their requests. A released latch is given to the next waiter directly, so that no task
//! starves.

use fulgurite_base::FrameId;
use fulgurite_device::IoError;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The state of a waiting task's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Not answered yet.
    Waiting,
    /// The task holds the latch of this frame.
    Latched(FrameId),
    /// The task must try again.
    TryAgain,
    /// The task has taken the answer, or has given up.
    Over,
}

/// A waiting task.
pub(crate) struct Waiter {
    /// Whether it needs the latch exclusively.
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

    /// Takes the answer; `None` if there is none yet.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Option<Wish> {
        if self.is_waiting() {
            // A later poll may bring another waker, so the last one counts.
            self.waker.set(Some(context.waker().clone()));
            return None;
        }
        Some(self.wish.replace(Wish::Over))
    }

    /// Gives up. Returns an answer that was not taken.
    pub(crate) fn give_up(&self) -> Wish {
        self.wish.replace(Wish::Over)
    }
}

/// Tasks that wait for their turn, in order.
#[derive(Default)]
pub(crate) struct Turns(RefCell<VecDeque<Rc<Waiter>>>);

impl Turns {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Gives the next task its turn.
    pub(crate) fn next(&self) {
        while let Some(waiter) = self.0.borrow_mut().pop_front() {
            // A dropped future leaves its entry in the queue.
            if waiter.is_waiting() {
                return waiter.answer(Wish::TryAgain);
            }
        }
    }

    /// Waits for a turn. With `again`, the task goes to the front, because its last turn was in vain.
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

/// The wait for a turn. If it is dropped after the turn was given and before the task noticed it, the next
/// task gets the turn.
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

/// Pages that are written together, and the tasks that wait for them.
pub(crate) struct Batch {
    /// Their frames.
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

    /// Gives the outcome to the waiting tasks. Returns whether there were any.
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
        // A task that waits for several pages may poll here repeatedly, so its waker is kept once.
        if !waiters.last().is_some_and(|last| last.will_wake(context.waker())) {
            waiters.push(context.waker().clone());
        }
        Poll::Pending
    }
}
