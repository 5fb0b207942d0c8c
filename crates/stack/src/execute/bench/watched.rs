//! Wraps the device below a store: the wrapper counts page writes, and the run can inspect the device while
//! the store uses it.

use crate::device::{AnyDrive, Observed};
use crate::execute::device_counts::DeviceCounts;
use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, FdpLog, Operation, QueueFull, Zone};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A device that counts the pages written to it, and that a [`Watcher`] can inspect.
pub(super) struct Watched {
    drive: Rc<RefCell<AnyDrive>>,
    caps: Caps,
    pages_written: Rc<Cell<u64>>,
}

/// Inspects a [`Watched`] device while a store owns it.
#[derive(Clone)]
pub(super) struct Watcher {
    drive: Rc<RefCell<AnyDrive>>,
    pages_written: Rc<Cell<u64>>,
}

/// The counts of a device at one point of the run.
pub(super) struct Seen {
    /// The counts that the device itself reports.
    pub done: DeviceCounts,
    /// The number of page writes that the device has received, plus its own count when it was wrapped.
    pub pages_written: u64,
}

impl Watched {
    /// Wraps `drive`, and returns the watcher of the wrapped device.
    pub(super) fn new(drive: AnyDrive) -> (Watched, Watcher) {
        let caps = drive.caps().clone();
        // A drive below a layer has just been loaded and has counted the writes of the load. So this count
        // starts from the drive's own.
        let before = DeviceCounts::of(&*drive).host_pages_written().unwrap_or(0);
        let drive = Rc::new(RefCell::new(drive));
        let pages_written = Rc::new(Cell::new(before));
        let watcher = Watcher { drive: Rc::clone(&drive), pages_written: Rc::clone(&pages_written) };
        (Watched { drive, caps, pages_written }, watcher)
    }
}

impl Watcher {
    /// Returns the counts so far.
    pub(super) fn look(&self) -> Seen {
        Seen { done: DeviceCounts::of(&**self.drive.borrow()), pages_written: self.pages_written.get() }
    }

    /// Returns the device. `None` if the store or a task still uses it.
    pub(super) fn into_drive(self) -> Option<AnyDrive> {
        Rc::into_inner(self.drive).map(RefCell::into_inner)
    }

    /// Calls `f` with the device. No task may run meanwhile.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut dyn Observed) -> T) -> T {
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

    fn fdp_log(&self) -> Option<FdpLog> {
        self.drive.borrow().fdp_log()
    }

    fn zone(&self, lpn: Lpn) -> Option<Zone> {
        self.drive.borrow().zone(lpn)
    }

    fn register(&mut self, arena: &std::sync::Arc<Arena>) {
        self.drive.borrow_mut().register(arena);
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.drive.borrow_mut().wait(deadline, completions);
    }
}
