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

mod anomaly;
mod cycle;
mod graph;
mod observe;
mod solve;
#[cfg(test)]
mod tests;

pub use anomaly::{Anomaly, AnomalyName, Verdict};

use crate::history::History;

/// Whether the transactions for which `committed` is true have a serial order that respects real time.
///
/// `committed` has one entry for each transaction of `history`. Where the end of a transaction is not known,
/// the caller decides, for instance by what is there after a crash.
pub fn check(history: &History, committed: &[bool]) -> Result<Verdict, Anomaly> {
    let observed = observe::observe(history, committed)?;
    solve::solve(history, &observed)
}
