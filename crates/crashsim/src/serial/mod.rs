//! Checks whether a history is strictly serialisable, in the manner of Elle (Kingsbury and Alvaro, PVLDB
//! 2020).
//!
//! Each write has a unique version, so a read identifies the write that it saw. This gives dependencies
//! between transactions, which every serial order must respect:
//!
//! - *wr*: a reader follows the writer whose version it saw;
//! - *ww*: the writer of a later version follows the writer of an earlier one;
//! - *rw*: the writer of a later version follows a reader of an earlier one;
//! - *rt* (real time): a transaction follows all those that ended before it began.
//!
//! A scan reads every key of its range, including keys without a record. An rw dependency on a key without a
//! record is a dependency on a predicate. The order of versions cannot be observed, so it is derived. If
//! transaction T saw the version of W, each other writer U of the same key precedes W or follows T. Often one
//! of these two alternatives is impossible because it would close a cycle, so the other one holds. The
//! remaining alternatives are tried, up to a limit. A read that found no record may have seen the initial
//! state or any deletion, which gives alternatives too.
//!
//! The checker is exact: it reports an anomaly only if there is no serial order. It misses an anomaly only if
//! it reaches the limit, and then returns [`Verdict::Undecided`]. Cycles are named as in Adya's thesis
//! (1999).
//!
//! A snapshot may be older than acknowledged `relaxed` commits. So in a history with such commits, only
//! transactions that are known to be durable precede a snapshot in real time.

mod anomaly;
mod observe;
mod graph;
mod cycle;
mod solve;
#[cfg(test)]
mod tests;

pub(crate) use anomaly::{Anomaly, AnomalyName, Verdict};

use crate::history::History;

/// Checks whether the transactions for which `committed` is true have a serial order that respects real time.
///
/// `committed` has one entry per transaction of `history`. If the end of a transaction is unknown, the caller
/// decides, for example from the contents of the store after a crash.
pub(crate) fn check(history: &History, committed: &[bool]) -> Result<Verdict, Anomaly> {
    let observed = observe::observe(history, committed)?;
    solve::solve(history, &observed)
}
