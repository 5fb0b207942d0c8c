//! Log sequence numbers (LSNs), which are positions in the log.

use std::fmt;

/// A position in the log: the number of log bytes before it since the store was created. The LSN of a commit
/// is the end of its log record, so LSNs order commits. A commit is durable once the log is durable up to its
/// LSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
