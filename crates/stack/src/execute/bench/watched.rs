//! A device below a store. It counts the commands that it gets, and it can be examined while the store uses it.

use crate::device::{AnyDrive, Observed};
use crate::execute::done::Done;
use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, Operation, QueueFull};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The device.
pub struct Watched {
    drive: Rc<RefCell<AnyDrive>>,
    caps: Caps,
    pages_written: Rc<Cell<u64>>,
}

/// Looks at a [`Watched`] device from outside.
#[derive(Clone)]
pub struct Watcher {
    drive: Rc<RefCell<AnyDrive>>,
    pages_written: Rc<Cell<u64>>,
}

/// What a device has done.
pub struct Seen {
    /// By its own counts.
    pub done: Done,
    /// Pages that it was told to write, with those that it had counted before it was watched.
    pub pages_written: u64,
}

impl Watched {
    /// Watches `drive`.
    pub fn new(drive: AnyDrive) -> (Watched, Watcher) {
        let caps = drive.caps().clone();
        // A drive below a layer was loaded a moment ago and still counts that, so this count goes on from its own.
        let before = Done::by(&*drive).host_pages_written().unwrap_or(0);
        let drive = Rc::new(RefCell::new(drive));
        let pages_written = Rc::new(Cell::new(before));
        let watcher = Watcher { drive: Rc::clone(&drive), pages_written: Rc::clone(&pages_written) };
        (Watched { drive, caps, pages_written }, watcher)
    }
}

impl Watcher {
    /// What the device has done so far.
    pub fn look(&self) -> Seen {
        Seen { done: Done::by(&**self.drive.borrow()), pages_written: self.pages_written.get() }
    }

    /// The device, when nobody else uses it any more.
    pub fn into_drive(self) -> Option<AnyDrive> {
        Rc::into_inner(self.drive).map(RefCell::into_inner)
    }

    /// Gives `f` the device, while no task runs.
    pub fn with<T>(&self, f: impl FnOnce(&mut dyn Observed) -> T) -> T {
        f(&mut **self.drive.borrow_mut())
    }
}

impl Device for Watched {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.drive.borrow().now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let pages = match &command.operation {
            Operation::Write { pages, .. } => u64::from(*pages),
            _ => 0,
        };
        self.drive.borrow_mut().submit(command)?;
        self.pages_written.set(self.pages_written.get() + pages);
        Ok(())
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        self.drive.borrow().erases(lpn)
    }

    fn register(&mut self, arena: &std::sync::Arc<Arena>) {
        self.drive.borrow_mut().register(arena);
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.drive.borrow_mut().wait(deadline, completions);
    }
}
