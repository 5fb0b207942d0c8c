//! Is a history strictly serialisable? A checker in the manner of Elle (Kingsbury and Alvaro, PVLDB 2020).
//!
//! Every write has a version of its own, so a read names the write that it saw. From that follow dependencies
//! between transactions, which every serial order must respect:
//!
//! - *wr*: the reader comes after the writer whose version it saw;
//! - *ww*: the writer of an earlier version comes before the writer of a later one;
//! - *rw*: the reader of a version comes before the writer of a later one;
//! - *rt* (real time): what had ended comes before what began afterwards.
//!
//! A scan reads every key of its range, also those without a record; an rw dependency of such a key is that of a
//! predicate. The order of versions is not observed. It follows from what was: if T saw the version of W, then
//! each other writer U of that key comes before W or after T. One of the two is often impossible, because it would
//! close a cycle; then the other holds. What is left undecided is tried out, up to a bound. A read of nothing may
//! have seen the beginning or any deletion, and is treated in the same way.
//!
//! The checker is exact: it reports an anomaly only where no serial order exists, and misses one only where it
//! gives up, which [`Verdict::Undecided`] says. A cycle is named as in Adya's thesis (1999).
//!
//! A snapshot may be older than acknowledged `relaxed` commits, so in a history with such commits only what is known
//! to be durable comes before it in real time.

mod cycle;
mod graph;
mod observe;
mod solve;
#[cfg(test)]
mod tests;

use crate::history::History;
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

/// Whether the transactions for which `committed` is true have a serial order that respects real time.
///
/// `committed` has one entry for each transaction of `history`. Where the end of a transaction is not known,
/// the caller decides, for instance by what is there after a crash.
pub fn check(history: &History, committed: &[bool]) -> Result<Verdict, Anomaly> {
    let observed = observe::observe(history, committed)?;
    solve::solve(history, &observed)
}
