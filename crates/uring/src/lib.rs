//! Real drives behind [`fulgurite_device::Device`].
//!
//! A drive is a file or a block device, used without the page cache where the system allows it.
//! [`UringDevice`] keeps many commands in flight through io_uring (Linux); [`PsyncDevice`] does one after
//! the other with plain system calls, anywhere. [`OverlayDevice`] reads a file and keeps what is written
//! elsewhere. Time is the machine's monotonic clock, counted from the opening. It stands in for the drive's own
//! clock; no other crate below `study` reads a clock.
//!
//! A drive that Fulgurite made carries a mark behind its last page. Anything else is refused, unless the
//! caller says that its contents may go: see [`DriveOptions::destroy_contents`]. A drive whose making was interrupted is
//! ours too, and is made anew.

mod mark;
mod drive_file;
#[cfg(target_os = "linux")]
mod parker;
mod psync;
mod read_only;
mod overlay;
#[cfg(target_os = "linux")]
mod uring;

pub use drive_file::{DriveOptions, OpenError, check};
pub use mark::{is_drive, is_half_loaded, make_sparse, mark_loading};
pub use overlay::OverlayDevice;
pub use psync::PsyncDevice;
pub use read_only::ReadOnlyFile;
#[cfg(target_os = "linux")]
pub use uring::UringDevice;
