//! What records cost: in memory with their tables, and in the log.

use super::ring::Record;
use crate::memory::locks::hash_of_key;
use crate::options::RECORD_TABLES_PART;

/// Bytes of tables for an entry, about: its place by key, and its leaf's list.
pub const ENTRY_TABLES: u64 = 16;
/// Bytes that an entry counts for at least, so that tables do not take more than that.
pub const LEAST_COST: u64 = RECORD_TABLES_PART * ENTRY_TABLES;
/// What a pending record takes in the log beside its key, its value and a 64th of both for the heads of blocks, at most.
pub const IN_LOG: u64 = 24;

pub fn hash(entry: Record<'_>) -> u64 {
    // The table takes its tags from the upper bits and places from the lower ones; keys that are counted up differ in few.
    let hash = hash_of_key(entry.tree, entry.key);
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What entries of so many bytes take with their part of the tables.
pub fn with_tables(bytes: u64) -> u64 {
    (bytes * RECORD_TABLES_PART).div_ceil(RECORD_TABLES_PART - 1)
}

/// Of so much room, what is for writes that take records away: on a full store they are what makes room.
pub fn kept_to_remove(most: u64) -> u64 {
    most / 16
}

pub fn in_log(entry: Record<'_>) -> u64 {
    let bytes = (entry.key.len() + entry.value.map_or(0, <[u8]>::len)) as u64;
    IN_LOG + bytes + bytes / 64
}
