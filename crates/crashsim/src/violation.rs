//! What a seed can find wrong.

use std::fmt;

/// Kinds of violations. A shrunk history must show the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolationKind {
    /// An acknowledged transaction is gone.
    Lost,
    /// A transaction is there that failed or never asked to commit.
    Unissued,
    /// Something is there that came after something which is gone.
    NotAPrefix,
    /// A reader saw what is gone.
    SeenAndLost,
    /// A value that nobody wrote there, or a record missing that nobody deleted.
    WrongData,
    /// Reads that no serial order explains.
    NotSerialisable,
    /// The accounts' sum is another.
    Sum,
    /// The store's own check finds a problem, or its index and its table differ.
    Structure,
    /// An error that no fault explains.
    Error,
    /// A run that does not end.
    Stuck,
    /// A panic.
    Panic,
    /// The drive was used against its rules.
    Misuse,
    /// Two runs of one seed differ.
    NotDeterministic,
}

/// What was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which kind.
    pub kind: ViolationKind,
    /// What shows it.
    pub text: String,
}

impl Violation {
    /// A violation of `kind`, shown by `text`.
    pub fn new(kind: ViolationKind, text: impl Into<String>) -> Violation {
        Violation { kind, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}
