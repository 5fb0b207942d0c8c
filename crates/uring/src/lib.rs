//! Real drives behind [`fulgurite_device::Device`].
//!
//! A drive is a file or a block device, used without the page cache where the system allows it.
//! [`UringDevice`] keeps many commands in flight through io_uring (Linux). [`PsyncDevice`] executes one
//! command after the other with plain system calls, on every Unix. [`OverlayDevice`] reads a file and stores
//! writes elsewhere. Time is the machine's monotonic clock since the opening of the drive; it takes the place
//! of a drive's own clock. No other crate below `study` reads a clock.
//!
//! A drive that Fulgurite made carries a mark behind its last page. Any other file or device is refused,
//! unless the caller allows its contents to be destroyed: see [`DriveOptions::destroy_contents`]. A drive
//! whose making was interrupted has a mark too, and is made again.

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
