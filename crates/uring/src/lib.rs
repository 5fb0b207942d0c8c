//! Real drives as devices: files and block devices behind the interface [`fulgurite_device::Device`].
//!
//! A drive is a file or a block device, used with direct I/O where the system allows it. [`UringDevice`]
//! keeps many commands in flight through io_uring (Linux). [`PsyncDevice`] executes one command after the
//! other with plain system calls, on every Unix. [`OverlayDevice`] reads a file and stores writes in another
//! file. The clock of a real drive is the wall-clock time since it was opened, by the machine's monotonic
//! clock. No other crate below `study` reads a clock.
//!
//! A drive that Fulgurite created carries a mark behind its last page. Any other file or device is refused,
//! unless the caller allows its contents to be destroyed: see [`DriveOptions::destroy_contents`]. A drive
//! whose creation was interrupted has a mark too, and is created again.

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
