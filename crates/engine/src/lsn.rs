//! Places in the log.

use std::fmt;

/// A place in the log: the number of bytes of log in front of it, since the store was made. A commit's LSN is the end
/// of its record, so it orders commits, and the log is durable up to a commit once it is durable up to that LSN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
