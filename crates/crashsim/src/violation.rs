//! The violations that a seed can find.

use std::fmt;

/// The kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolationKind {
    /// An acknowledged transaction is lost.
    Lost,
    /// A transaction survived that failed or never requested its commit.
    Unissued,
    /// A transaction survived although an earlier one is lost.
    NotAPrefix,
    /// A reader saw a write that is lost.
    SeenAndLost,
    /// A value that no transaction wrote there, or a missing record that none deleted.
    WrongData,
    /// There is no serial order that explains all reads.
    NotSerialisable,
    /// The sum of the accounts is wrong.
    Sum,
    /// The store's own check finds a problem, or an index differs from its table.
    Structure,
    /// An error that no fault explains.
    Error,
    /// The run does not end.
    Stuck,
    /// A panic.
    Panic,
    /// The engine broke the rules of the drive's interface.
    Misuse,
    /// Two runs of one seed differ.
    NotDeterministic,
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its kind.
    pub kind: ViolationKind,
    /// The evidence.
    pub text: String,
}

impl Violation {
    /// A violation of `kind` with the evidence `text`.
    pub fn new(kind: ViolationKind, text: impl Into<String>) -> Violation {
        Violation { kind, text: text.into() }
    }

    /// Whether both are the same violation in histories of different lengths: the kind is equal, and for
    /// errors of the store also their text. Numbers in the text may differ.
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
        // The transaction and the client that are named vary between histories.
        let lost = violation(ViolationKind::Lost, "t1 of client 2 is lost");
        assert!(lost.is_like(&violation(ViolationKind::Lost, "t3 is lost")));
        assert!(!lost.is_like(&violation(ViolationKind::Sum, "t1 of client 2 is lost")));
    }
}
