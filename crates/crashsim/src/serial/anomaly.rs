//! The answers of the checker: an anomaly, or a verdict.

use std::fmt;

/// What is wrong with a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnomalyName {
    /// A read saw what nobody wrote there, or missed what nobody deleted.
    Unwritten,
    /// A transaction did not see its own writes.
    Internal,
    /// Aborted read: a committed transaction saw a write that did not commit.
    G1a,
    /// Intermediate read: a transaction saw a version that its writer wrote over.
    G1b,
    /// Write cycle: ww alone.
    G0,
    /// Circular information flow: ww and wr.
    G1c,
    /// Two transactions saw the same version and both wrote over it.
    LostUpdate,
    /// A cycle with one rw dependency, as in read skew.
    GSingle,
    /// A cycle with several rw dependencies, none of a predicate, as in write skew.
    G2Item,
    /// A cycle with several rw dependencies, one of them of a predicate.
    G2,
}

impl AnomalyName {
    /// The name as in the literature, where it has one.
    pub fn text(self) -> &'static str {
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

/// An anomaly and what shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Which.
    pub name: AnomalyName,
    /// Whether it is one only because of real time.
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

/// The answer where no anomaly was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A serial order exists.
    Serialisable,
    /// Too many orders are possible to try them all.
    Undecided,
}
