//! The cost of records: their bytes in memory including the tables, and their bytes in the log.

use super::ring::Record;
use crate::memory::locks::hash_of_key;
use crate::options::RECORD_TABLES_PART;

/// The approximate bytes of an entry in the tables: in the key table, and in the list of its leaf.
pub(super) const ENTRY_TABLES: u64 = 16;
/// The least number of bytes that an entry counts for, so that the tables do not exceed their share.
pub(super) const LEAST_COST: u64 = RECORD_TABLES_PART * ENTRY_TABLES;
/// An upper bound of the bytes of a pending record in the log, in addition to its key, its value, and a 64th
/// of both for block headers.
pub(super) const IN_LOG: u64 = 24;

pub(super) fn hash(entry: Record<'_>) -> u64 {
    // Mix the bits, because consecutive keys differ in few bits. The key table uses the upper bits of the
    // hash as tags and the lower ones as positions.
    let hash = hash_of_key(entry.tree, entry.key);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the bytes of entries including their share of the tables.
pub(super) fn with_tables(bytes: u64) -> u64 {
    (bytes * RECORD_TABLES_PART).div_ceil(RECORD_TABLES_PART - 1)
}

/// Returns the part of the space `most` that is reserved for deletions, because deletions free space in a
/// full store.
pub(super) fn reserved_for_deletes(most: u64) -> u64 {
    most / 16
}

pub(super) fn in_log(entry: Record<'_>) -> u64 {
    let bytes = (entry.key.len() + entry.value.map_or(0, <[u8]>::len)) as u64;
    IN_LOG + bytes + bytes / 64
}
