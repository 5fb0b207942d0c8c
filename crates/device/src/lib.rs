//! The interface between software and drives, with an executor for tasks over one drive.
//!
//! A [`Device`] takes [`Command`]s and returns [`Completion`]s, like an NVMe queue pair. Time belongs to the
//! device: [`Device::wait`] of a simulated drive advances its virtual clock to the next event, and that of a
//! real drive enters the kernel. So one [`Executor`] serves both, and no code above the device reads a clock.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod buffer;
mod failure;
mod fdp;
mod zone;
mod command;
pub mod executor;
#[cfg(feature = "conformance")]
pub mod conformance;
mod fault;
mod mem;
mod meter;

pub use buffer::{Arena, Buffer};
pub use command::{
    Caps, Command, Completion, Device, Done, Errand, IoError, Operation, Park, QueueFull, ShareRun, Tag,
};
pub use executor::{Executor, Handle, Io, Outlook, RunError, TaskId};
pub use failure::{Doing, Failure};
pub use fault::{Fault, FaultDevice};
pub use fdp::{FdpCaps, FdpEvent, FdpEventKind, FdpLog};
pub use mem::MemDevice;
pub use meter::{Meter, MeterError};
pub use zone::{Zone, ZoneCaps, ZoneError};
