//! Wraps the drive of a store that several threads use: a drive through io_uring if the system has it,
//! otherwise a drive with plain system calls.

use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{Arena, Caps, Command, Completion, Device, Errand, Park, QueueFull, Tag};
use fulgurite_stack::device::AnyDrive;
use fulgurite_uring::PsyncDevice;
#[cfg(target_os = "linux")]
use fulgurite_uring::UringDevice;
use std::sync::Arc;

/// A drive of either kind. Each call is passed to the inner drive.
pub enum SharedDrive {
    /// A drive through io_uring.
    #[cfg(target_os = "linux")]
    Uring(Box<UringDevice>),
    /// A drive with plain system calls.
    Psync(Box<PsyncDevice>),
}

macro_rules! each {
    ($self:expr, $drive:ident => $call:expr) => {
        match $self {
            #[cfg(target_os = "linux")]
            SharedDrive::Uring($drive) => $call,
            SharedDrive::Psync($drive) => $call,
        }
    };
}

impl SharedDrive {
    /// Returns the drive as a drive of any kind, for a store that only one thread uses.
    pub(crate) fn boxed(self) -> AnyDrive {
        match self {
            #[cfg(target_os = "linux")]
            SharedDrive::Uring(drive) => drive,
            SharedDrive::Psync(drive) => drive,
        }
    }
}

impl Device for SharedDrive {
    fn caps(&self) -> &Caps {
        each!(self, drive => drive.caps())
    }

    fn now(&self) -> Nanos {
        each!(self, drive => drive.now())
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        each!(self, drive => drive.submit(command))
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        each!(self, drive => drive.erases(lpn))
    }

    fn register(&mut self, arena: &Arc<Arena>) {
        each!(self, drive => drive.register(arena));
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        each!(self, drive => drive.wait(deadline, completions));
    }

    fn parker(&self) -> Option<Arc<dyn Park>> {
        each!(self, drive => drive.parker())
    }

    fn take_errand(&mut self, tag: Option<Tag>) -> Option<Errand> {
        each!(self, drive => drive.take_errand(tag))
    }

    fn end_errand(&mut self) {
        each!(self, drive => drive.end_errand());
    }

    fn is_bound_to_thread(&self) -> bool {
        each!(self, drive => drive.is_bound_to_thread())
    }
}
