//! The kinds of faults, and what a store may answer when one has happened.

use fulgurite_base::Choice;

/// A way in which the drive fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// A read reports a medium error; the next one of the same page succeeds.
    ReadError,
    /// A write reports a medium error. Each of its pages is old, new or torn; one that is atomic is old or new.
    WriteError,
    /// A flush reports a medium error. Part of what was not durable yet will not survive the next power cut, whatever
    /// later flushes report. Until then it can be read.
    FlushError,
    /// A read returns another page, or another version of its own from where that lies.
    MisdirectedRead,
    /// A read returns the version that a page had before its last write since the power came on, as from a cache that is
    /// out of step. An old version from before is a whole page like any other: nothing but a second copy of what was
    /// written would tell it apart.
    StaleRead,
    /// A read finds a bit turned over on the medium, for good.
    Rot,
    /// A write goes to another address and is acknowledged; the right address keeps what it had.
    MisdirectedWrite,
    /// A write is acknowledged and never done.
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

/// The command that a fault counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Reads.
    Reads,
    /// Writes.
    Writes,
    /// Flushes.
    Flushes,
}

/// What a store may do after a fault. Wrong data is never among it: what is read is what was written, or an error.
///
/// Without a fault, after power cuts alone, a store opens, has everything that it acknowledged, and its check
/// finds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// An operation may fail, and the store may refuse to go on until it is opened again.
    pub errors: bool,
    /// Opening may fail for good, and the check may report problems: the drive lost what nothing can bring back.
    pub damage: bool,
    /// The last commits may be gone without an error. A log that ends earlier because its last block was never written
    /// looks like a log that ended there. What is there is still a prefix of the commits.
    pub lost_tail: bool,
}

impl Allowed {
    /// What either of the two allows.
    pub fn or(self, other: Allowed) -> Allowed {
        Allowed {
            errors: self.errors || other.errors,
            damage: self.damage || other.damage,
            lost_tail: self.lost_tail || other.lost_tail,
        }
    }
}

impl FaultKind {
    /// Which commands are counted to say when it happens.
    pub fn counted(self) -> Counted {
        match self {
            FaultKind::ReadError | FaultKind::MisdirectedRead | FaultKind::StaleRead | FaultKind::Rot => {
                Counted::Reads
            }
            FaultKind::WriteError | FaultKind::MisdirectedWrite | FaultKind::LostWrite => Counted::Writes,
            FaultKind::FlushError => Counted::Flushes,
        }
    }

    /// What a store may do once it has happened.
    pub fn allows(self) -> Allowed {
        match self {
            // The drive says that it failed, and what was durable still is.
            FaultKind::ReadError | FaultKind::WriteError | FaultKind::FlushError => {
                Allowed { errors: true, ..Allowed::default() }
            }
            // The medium is sound, but a store cannot know that, and may have written down what it was told. A log block
            // that reads as another one, or as its predecessor, ends the log.
            FaultKind::MisdirectedRead | FaultKind::StaleRead => {
                Allowed { errors: true, damage: true, lost_tail: true }
            }
            // A block of the log's tail cannot be told from a torn one.
            FaultKind::Rot | FaultKind::MisdirectedWrite | FaultKind::LostWrite => {
                Allowed { errors: true, damage: true, lost_tail: true }
            }
        }
    }
}

/// One fault: the command of its kind, counted from zero since it was armed, that it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// To which of the commands that [`FaultKind::counted`] names.
    pub nth: u64,
}
