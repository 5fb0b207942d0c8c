//! Defines the kinds of drive faults, and the behaviour of the store that each fault allows.

use fulgurite_base::Choice;

/// The kind of a drive fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A read reports a medium error. The next read of the same page succeeds.
    ReadError,
    /// A write reports a medium error. Each of its pages then has its old contents, its new contents or a
    /// mixture of both. After an atomic write all pages are old, or all are new.
    WriteError,
    /// A flush reports a medium error. Some writes that were not durable yet are lost at the next power cut,
    /// even if later flushes succeed. Until the power cut they can still be read.
    FlushError,
    /// A read returns another page, or an older version of the page from another address on the drive.
    MisdirectedRead,
    /// A read returns the contents from before the last write since the power came on, as from a stale cache.
    /// Versions from before the power came on are not returned: such a page is valid in itself, so only a
    /// second copy could reveal that it is old.
    StaleRead,
    /// A read finds a bit that has flipped on the medium permanently.
    Rot,
    /// A write goes to another address and is acknowledged. Its own address keeps the old contents.
    MisdirectedWrite,
    /// A write is acknowledged and never performed.
    LostWrite,
}

impl Choice for FaultKind {
    const NAMES: &'static [(&'static str, FaultKind)] = &[
        ("read-error", FaultKind::ReadError),
        ("write-error", FaultKind::WriteError),
        ("flush-error", FaultKind::FlushError),
        ("misdirected-read", FaultKind::MisdirectedRead),
        ("stale-read", FaultKind::StaleRead),
        ("rot", FaultKind::Rot),
        ("misdirected-write", FaultKind::MisdirectedWrite),
        ("lost-write", FaultKind::LostWrite),
    ];
}

/// The commands among which a fault selects one by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Read commands.
    Reads,
    /// Write commands.
    Writes,
    /// Flush commands.
    Flushes,
}

/// The behaviour of the store that is allowed after a fault. Wrong data is never allowed: a read returns the
/// data that was written, or an error.
///
/// If there were only power cuts and no fault, the store must open, contain everything that it acknowledged,
/// and pass its check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Whether an operation may fail, and the store may refuse further work until it is reopened.
    pub errors: bool,
    /// Whether opening may fail permanently and the check may report problems, because the drive has lost
    /// data that cannot be restored.
    pub damage: bool,
    /// Whether the last commits may be lost without an error. If the last block of the log was never written,
    /// the log looks as if it ended before this block. The surviving commits are still a prefix of all
    /// commits.
    pub lost_tail: bool,
}

impl Allowed {
    /// Returns the behaviour that at least one of the two allows.
    pub fn or(self, other: Allowed) -> Allowed {
        Allowed {
            errors: self.errors || other.errors,
            damage: self.damage || other.damage,
            lost_tail: self.lost_tail || other.lost_tail,
        }
    }
}

impl FaultKind {
    /// Returns the kind of commands among which this fault selects one.
    pub fn counted(self) -> Counted {
        match self {
            FaultKind::ReadError | FaultKind::MisdirectedRead | FaultKind::StaleRead | FaultKind::Rot => {
                Counted::Reads
            }
            FaultKind::WriteError | FaultKind::MisdirectedWrite | FaultKind::LostWrite => Counted::Writes,
            FaultKind::FlushError => Counted::Flushes,
        }
    }

    /// Returns the behaviour that this fault allows.
    pub fn allows(self) -> Allowed {
        match self {
            // The drive reports the error, and all durable data is intact.
            FaultKind::ReadError | FaultKind::WriteError | FaultKind::FlushError => {
                Allowed { errors: true, ..Allowed::default() }
            }
            // The medium is intact, but the store cannot know this, and it may have written wrong data that
            // it read. A log block that is read as another block, or as an older version, ends the log.
            FaultKind::MisdirectedRead | FaultKind::StaleRead => {
                Allowed { errors: true, damage: true, lost_tail: true }
            }
            // A damaged block at the tail of the log looks like a torn block.
            FaultKind::Rot | FaultKind::MisdirectedWrite | FaultKind::LostWrite => {
                Allowed { errors: true, damage: true, lost_tail: true }
            }
        }
    }
}

/// A drive fault. It strikes one command, which is counted from zero since the fault was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The number of the command, counted among the commands of [`FaultKind::counted`].
    pub nth: u64,
}
