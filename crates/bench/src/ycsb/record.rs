//! Computes the bytes of YCSB's records. A field begins with a stamp, the number of its updates.

use super::config::Records;
use crate::error::Error;

pub(super) const TABLE: &str = "usertable";

/// Scrambles a number by a bijection of 64 bits that scatters consecutive numbers: the finaliser of
/// SplitMix64 (Steele et al., OOPSLA 2014).
pub(super) fn scrambled(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Returns the bytes of a record whose fields all have this stamp.
pub(super) fn value(records: &Records, seed: u64, key: u64, stamp: u32) -> Vec<u8> {
    let field_bytes = records.field_bytes as usize;
    let mut value = vec![0; field_bytes * records.fields as usize];
    for (index, field) in value.chunks_exact_mut(field_bytes).enumerate() {
        fill(field, seed, key, index as u32, stamp);
    }
    value
}

/// Writes a field: the stamp, then bytes that are a function of the seed, the key, the field and the stamp.
pub(super) fn fill(field: &mut [u8], seed: u64, key: u64, index: u32, stamp: u32) {
    let (front, rest) = field.split_at_mut(4);
    front.copy_from_slice(&stamp.to_le_bytes());
    let mut state = scrambled(key ^ scrambled(seed) ^ (u64::from(index) << 32 | u64::from(stamp)));
    for chunk in rest.chunks_mut(8) {
        state = scrambled(state);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

pub(super) fn stamp(field: &[u8]) -> u32 {
    field.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Increments the stamp of one field and rewrites the bytes of the field.
pub(super) fn bump(
    record: &mut [u8],
    records: &Records,
    seed: u64,
    key: u64,
    index: u32,
) -> Result<(), Error> {
    let field = record.chunks_exact_mut(records.field_bytes as usize).nth(index as usize);
    let field = field.ok_or_else(|| Error::row(TABLE, format!("is too short (key {key:016x})")))?;
    let next = stamp(field).wrapping_add(1);
    fill(field, seed, key, index, next);
    Ok(())
}
