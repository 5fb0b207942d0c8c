//! The host's commands, the commands to the drive below that serve them, and the pages in flight.

use fulgurite_base::{Nanos, Ppn};
use fulgurite_device::{Buffer, IoError, Operation, Tag};

/// A host command.
pub(crate) struct InFlight {
    pub(crate) tag: Tag,
    pub(crate) operation: Operation,
    pub(crate) submitted: Nanos,
    /// The number of events that it waits for: commands below, pages in flight, and its own placing.
    pub(crate) parts: u32,
    /// Pages of a write that have their places.
    pub(crate) placed: u32,
    pub(crate) status: Result<(), IoError>,
}

/// A command below, by its purpose.
pub(crate) enum Part {
    /// Pages of a host read.
    Read { command: u32, first: Ppn },
    /// Pages of a host write, all in one segment.
    Write { command: u32, first: Ppn, pages: u32 },
    /// A host flush.
    Flush { command: u32 },
    /// A read of pages of the victim, to move them. With `again`, failed pages are read once more.
    Fetch { first: Ppn, pages: u32, buffer: Option<Buffer>, again: bool },
    /// A write of moved pages, all in one segment.
    Store { first: Ppn, pages: u32 },
    /// A trim of the victim.
    Discard,
    /// A write of empty pages.
    Pad { first: Ppn },
}

/// A page that is not yet at its place in the map.
pub(crate) enum Arriving {
    /// The host is writing it. These parts of reads wait: the command, and the page's number in it.
    Written { readers: Vec<(u32, u32)> },
    /// Collection is moving it from here.
    Moved { from: Ppn },
    /// Its write failed.
    Lost(IoError),
}
