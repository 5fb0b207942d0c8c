//! The host's commands, the commands to the drive below that serve them, and the pages under way.

use fulgurite_base::{Nanos, Ppn};
use fulgurite_device::{Buffer, IoError, Operation, Tag};

/// A command of the host's.
pub(crate) struct InFlight {
    pub tag: Tag,
    pub operation: Operation,
    pub submitted: Nanos,
    /// What it waits for: commands below, pages that are on their way, and its own placing.
    pub parts: u32,
    /// Pages of a write that have their places.
    pub placed: u32,
    pub status: Result<(), IoError>,
}

/// A command below, by what it is for.
pub(crate) enum Part {
    /// Pages of a host read.
    Read { command: u32, first: Ppn },
    /// Pages of a host write, all in one segment.
    Write { command: u32, first: Ppn, pages: u32 },
    /// A flush of the host's.
    Flush { command: u32 },
    /// Pages of the victim, to be moved; whether they are tried again if that fails.
    Fetch { first: Ppn, pages: u32, buffer: Option<Buffer>, again: bool },
    /// Pages that were moved, all in one segment.
    Store { first: Ppn, pages: u32 },
    /// The victim is garbage.
    Discard,
    /// Pages that hold nothing.
    Pad { first: Ppn },
}

/// A page that is not yet where the map says.
pub(crate) enum Arriving {
    /// The host writes it; these parts of reads wait: the command, and which of its pages.
    Written { readers: Vec<(u32, u32)> },
    /// Collection moves it from here.
    Moved { from: Ppn },
    /// It never arrived.
    Lost(IoError),
}
