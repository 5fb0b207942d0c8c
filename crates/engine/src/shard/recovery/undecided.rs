//! The transactions of several shards that recovery meets in the log of one of them.

use crate::Lsn;
use crate::format::part::{GlobalId, Part, PartRef};
use std::collections::BTreeMap;

/// The prepared transactions that the log has not decided up to a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undecided(BTreeMap<GlobalId, Prepared>);

/// A prepared transaction.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The LSN of the record that prepares it.
    pub since: Lsn,
    /// Its encoded operations.
    pub ops: Box<[u8]>,
}

impl Undecided {
    /// Reads the part of the log record at `at`. Returns the transaction whose operations take effect with this
    /// record; `None` if there is none. Its record may also lie before the redo point: then its operations are in the
    /// pages.
    pub(crate) fn read(&mut self, at: Lsn, part: PartRef<'_>) -> Option<Prepared> {
        match part.of {
            Part::Prepared(id) => {
                self.0.insert(id, Prepared { since: at, ops: part.ops.into() });
                None
            }
            Part::Decided { id, committed } => self.0.remove(&id).filter(|_| committed),
            Part::Decides(_) => None,
        }
    }

    /// Returns the LSN from which the log is needed to go on at `at`: the transactions were prepared before.
    pub(crate) fn needed_from(&self, at: Lsn) -> Lsn {
        self.0.values().map(|prepared| prepared.since).fold(at, Lsn::min)
    }

    /// Returns every transaction with the LSN of its record and its encoded operations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (GlobalId, Lsn, Box<[u8]>)> {
        self.0.iter().map(|(id, prepared)| (*id, prepared.since, prepared.ops.clone()))
    }
}
