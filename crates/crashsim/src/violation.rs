//! What a seed can find wrong.

use std::fmt;

/// Kinds of violations.
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

    /// Whether a shorter history that shows `other` shows the same: the kind, and what the store said where that is
    /// all there is. Its numbers differ in a shorter history.
    pub fn is_like(&self, other: &Violation) -> bool {
        let words = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
        let says_all = matches!(self.kind, ViolationKind::Error | ViolationKind::Panic);
        self.kind == other.kind && (!says_all || words(&self.text) == words(&other.text))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_error_is_not_the_same_failure() {
        let violation = |kind, text: &str| Violation::new(kind, text);
        let damaged = violation(ViolationKind::Error, "page 567 is damaged");
        assert!(damaged.is_like(&violation(ViolationKind::Error, "page 31 is damaged")));
        assert!(!damaged.is_like(&violation(ViolationKind::Error, "torn pages: accepted: auto")));
        // Who lost what differs from history to history.
        let lost = violation(ViolationKind::Lost, "t1 of client 2 is gone");
        assert!(lost.is_like(&violation(ViolationKind::Lost, "t3 is gone")));
        assert!(!lost.is_like(&violation(ViolationKind::Sum, "t1 of client 2 is gone")));
    }
}
