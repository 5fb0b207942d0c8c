//! The host's commands in the layer, the commands to the drive below that serve them, and the state of pages
//! whose writes are in flight.

use fulgurite_base::{Nanos, Ppn};
use fulgurite_device::{Buffer, IoError, Operation, Tag};

/// A host command that has not completed.
pub(crate) struct InFlight {
    pub(crate) tag: Tag,
    pub(crate) operation: Operation,
    pub(crate) submitted: Nanos,
    /// The number of events that the command still waits for: commands to the drive below, pages in flight,
    /// and the assignment of physical addresses to its own pages.
    pub(crate) parts: u32,
    /// The number of pages of a write that have physical addresses.
    pub(crate) placed: u32,
    pub(crate) status: Result<(), IoError>,
}

/// A command to the drive below, by its purpose.
pub(crate) enum Part {
    /// Reads pages of a host read. `command` is the key of the host command, `first` the first physical page.
    Read { command: u32, first: Ppn },
    /// Writes pages of a host write, all in one segment.
    Write { command: u32, first: Ppn, pages: u32 },
    /// Flushes for a host flush.
    Flush { command: u32 },
    /// Reads pages of the victim, to move them. If the command fails and `again` is true, each page is read
    /// once more.
    Fetch { first: Ppn, pages: u32, buffer: Option<Buffer>, again: bool },
    /// Writes moved pages, all in one segment.
    Store { first: Ppn, pages: u32 },
    /// Trims the victim.
    Discard,
    /// Writes padding pages, from the physical page `first` on.
    Pad { first: Ppn },
}

/// The state of a page that cannot be read at its new address on the drive below.
pub(crate) enum Arriving {
    /// The host's write of the page is in flight. Each entry of `readers` is a read that waits for it: the
    /// command, and the index of the page in that command.
    Written { readers: Vec<(u32, u32)> },
    /// Collection is moving the page, which can still be read at its old address `from`.
    Moved { from: Ppn },
    /// The write of the page failed, so reads of it fail with this error.
    Lost(IoError),
}
