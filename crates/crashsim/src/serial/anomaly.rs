//! The result of checking a history: an anomaly or a verdict.

use std::fmt;

/// The kinds of anomalies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AnomalyName {
    /// A read returned a value that no transaction wrote there, or no record although none was deleted.
    Unwritten,
    /// A transaction did not see its own writes.
    Internal,
    /// Aborted read: a committed transaction saw a write of a transaction that did not commit.
    G1a,
    /// Intermediate read: a transaction saw a version that its writer overwrote in the same transaction.
    G1b,
    /// Write cycle: only ww dependencies.
    G0,
    /// Circular information flow: ww and wr dependencies.
    G1c,
    /// Two transactions saw the same version, and both overwrote it.
    LostUpdate,
    /// A cycle with one rw dependency, as in read skew.
    GSingle,
    /// A cycle with several rw dependencies, none of them on a predicate, as in write skew.
    G2Item,
    /// A cycle with several rw dependencies, at least one of them on a predicate.
    G2,
}

impl AnomalyName {
    /// The name in the literature, if it has one.
    pub(crate) fn text(self) -> &'static str {
        match self {
            AnomalyName::Unwritten => "unwritten",
            AnomalyName::Internal => "internal",
            AnomalyName::G1a => "G1a",
            AnomalyName::G1b => "G1b",
            AnomalyName::G0 => "G0",
            AnomalyName::G1c => "G1c",
            AnomalyName::LostUpdate => "lost-update",
            AnomalyName::GSingle => "G-single",
            AnomalyName::G2Item => "G2-item",
            AnomalyName::G2 => "G2",
        }
    }
}

/// An anomaly with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anomaly {
    /// Its kind.
    pub name: AnomalyName,
    /// Whether it is an anomaly only because of real time.
    pub realtime: bool,
    /// The reads and writes that show it.
    pub text: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let realtime = if self.realtime { "-realtime" } else { "" };
        write!(f, "{}{realtime}: {}", self.name.text(), self.text)
    }
}

/// The result if no anomaly was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A serial order exists.
    Serialisable,
    /// There are too many possible orders to try them all.
    Undecided,
}
