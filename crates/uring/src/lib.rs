//! Real drives behind [`fulgurite_device::Device`].
//!
//! A drive is a file or a block device, used without the page cache where the system allows it.
//! [`UringDevice`] keeps many commands in flight through io_uring (Linux); [`PsyncDevice`] does one after
//! the other with plain system calls, anywhere. Time is the machine's monotonic clock, counted from the
//! opening. It stands in for the drive's own clock; no other crate below `study` reads a clock.
//!
//! A drive that Fulgurite made carries a mark behind its last page. Anything else is refused, unless the
//! caller says that its contents may go: see [`DriveOptions::destroy_contents`].

mod drive_file;
#[cfg(target_os = "linux")]
mod parker;
mod psync;
#[cfg(target_os = "linux")]
mod uring;

pub use drive_file::{DriveOptions, OpenError, check};
pub use psync::PsyncDevice;
#[cfg(target_os = "linux")]
pub use uring::UringDevice;
