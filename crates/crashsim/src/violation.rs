//! Defines the violations that a seed can reveal.

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
    /// A read returned a value that no transaction wrote under this key, or found no record although none was
    /// deleted.
    WrongData,
    /// No serial order explains all reads.
    NotSerialisable,
    /// The sum of the accounts is wrong.
    Sum,
    /// The check of the store itself finds a problem, or an index differs from its table.
    Structure,
    /// An error occurred that no fault explains.
    Error,
    /// The run does not end.
    Stuck,
    /// The engine or the test panicked.
    Panic,
    /// The engine violated the interface of the drive.
    Misuse,
    /// Two runs of one seed differ.
    NotDeterministic,
}

/// A violation of a guarantee of the store, with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind of the violation.
    pub kind: ViolationKind,
    /// The description of the evidence.
    pub text: String,
}

impl Violation {
    /// Creates a violation of `kind` with the evidence `text`.
    pub fn new(kind: ViolationKind, text: impl Into<String>) -> Violation {
        Violation { kind, text: text.into() }
    }

    /// Whether both are the same violation in histories of different lengths: their kinds are equal, and so
    /// are the texts of errors of the store. Numbers in these texts may differ.
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
        // The names of the transaction and of the client differ between histories, so they are not compared.
        let lost = violation(ViolationKind::Lost, "t1 of client 2 is lost");
        assert!(lost.is_like(&violation(ViolationKind::Lost, "t3 is lost")));
        assert!(!lost.is_like(&violation(ViolationKind::Sum, "t1 of client 2 is lost")));
    }
}
