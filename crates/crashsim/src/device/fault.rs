//! The kinds of faults, and the behaviour that each fault allows the store.

use fulgurite_base::Choice;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A read reports a medium error. The next read of the same page succeeds.
    ReadError,
    /// A write reports a medium error. Each of its pages has its old contents, its new contents or a mixture.
    /// An atomic write leaves all pages old or all new.
    WriteError,
    /// A flush reports a medium error. Some writes that were not durable yet are lost at the next power cut,
    /// even if later flushes succeed. Until then they can be read.
    FlushError,
    /// A read returns another page, or an older version of the page from another place on the drive.
    MisdirectedRead,
    /// A read returns the version before the last write since the power came on, as from a stale cache.
    /// Versions from before the power came on are not returned: such a page is valid in itself, so only a
    /// second copy could reveal that it is old.
    StaleRead,
    /// A read finds a bit flipped on the medium, permanently.
    Rot,
    /// A write goes to another address and is acknowledged. The right address keeps its old contents.
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

/// The commands among which a fault chooses one by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Flushes.
    Flushes,
}

/// The behaviour that is allowed after a fault. Wrong data is never allowed: a read returns what was written,
/// or an error.
///
/// Without a fault, with only power cuts, the store must open, contain everything that it acknowledged, and
/// pass its check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// An operation may fail, and the store may refuse further work until it is reopened.
    pub errors: bool,
    /// Opening may fail permanently, and the check may report problems, because the drive lost data that
    /// cannot be restored.
    pub damage: bool,
    /// The last commits may be lost without an error. If the last block of the log was never written, the log
    /// looks as if it ended before that block. The survivors are still a prefix of the commits.
    pub lost_tail: bool,
}

impl Allowed {
    /// The union of both.
    pub fn or(self, other: Allowed) -> Allowed {
        Allowed {
            errors: self.errors || other.errors,
            damage: self.damage || other.damage,
            lost_tail: self.lost_tail || other.lost_tail,
        }
    }
}

impl FaultKind {
    /// The commands that are counted for this fault.
    pub fn counted(self) -> Counted {
        match self {
            FaultKind::ReadError | FaultKind::MisdirectedRead | FaultKind::StaleRead | FaultKind::Rot => {
                Counted::Reads
            }
            FaultKind::WriteError | FaultKind::MisdirectedWrite | FaultKind::LostWrite => Counted::Writes,
            FaultKind::FlushError => Counted::Flushes,
        }
    }

    /// The behaviour that this fault allows.
    pub fn allows(self) -> Allowed {
        match self {
            // The drive reports the error, and durable data is intact.
            FaultKind::ReadError | FaultKind::WriteError | FaultKind::FlushError => {
                Allowed { errors: true, ..Allowed::default() }
            }
            // The medium is intact, but the store cannot know that, and it may have written wrong data that
            // it read. A log block that is read as another block or as its predecessor ends the log.
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

/// A fault. It strikes one command, counted from zero since the fault was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// The number of the command, among those of [`FaultKind::counted`].
    pub nth: u64,
}
