//! Defines the outcome of checking a history, which is an anomaly or a verdict.

use std::fmt;

/// The kinds of anomalies, named as in the literature; see [`crate::serial`] for ww, wr and rw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AnomalyName {
    /// A read returned a value that no transaction wrote under this key, or found no record although none was
    /// deleted.
    Unwritten,
    /// A transaction did not see its own writes.
    Internal,
    /// Aborted read: a committed transaction saw a write of a transaction that did not commit.
    G1a,
    /// Intermediate read: a transaction saw a version that its writer overwrote in the same transaction.
    G1b,
    /// Write cycle: a cycle of ww dependencies only.
    G0,
    /// Circular information flow: a cycle of ww and wr dependencies.
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
    /// Returns the name of the anomaly in the literature, or a description if it has none.
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
    /// The kind of the anomaly.
    pub name: AnomalyName,
    /// Whether the history is an anomaly only because of the real-time order.
    pub realtime: bool,
    /// The description of the reads and writes that prove the anomaly.
    pub text: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let realtime = if self.realtime { "-realtime" } else { "" };
        write!(f, "{}{realtime}: {}", self.name.text(), self.text)
    }
}

/// The outcome if no anomaly was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A serial order exists.
    Serialisable,
    /// There are too many possible serial orders to try them all.
    Undecided,
}
