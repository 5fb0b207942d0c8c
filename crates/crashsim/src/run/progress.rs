//! The progress of clients that make tables and drop them.

use std::collections::BTreeMap;

/// How far the client of a table has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of records of the table.
    pub rows: u32,
    /// The length of their values in bytes.
    pub len: usize,
    pub is_made: bool,
    pub is_filled: bool,
    pub is_being_dropped: bool,
    pub is_dropped: bool,
}

/// The tables that clients have made in this life of the store, by name.
pub(super) type Tables = BTreeMap<String, Progress>;
