//! The rows of a store: keys, values, and the check of a value.
//!
//! A key has 16 bytes. The first 8 are the row's position, spread evenly over all of `u64` and big-endian, so
//! that keys share no long prefix. The last 8 are a hash of the row's number. A value has 100 bytes: the row, the
//! version, and 84 bytes that follow from both and look random. So values are incompressible, and each value
//! differs from all others.
//!
//! A store is loaded with the rows `0..loaded`, whose keys are ordered like their numbers. Each row is followed
//! by a gap for a few new rows. New rows are numbered from `loaded` on. A shuffled order assigns each to a gap
//! (like YCSB's hashed inserts), so that new rows are spread over the table. The second round over all gaps uses
//! the second slot of each, and so on.

use crate::shuffle::Shuffle;
use anyhow::{Result, bail, ensure};

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;
/// Bytes that a user hands over with one update.
pub const ROW_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// A key as the engines see it.
pub type Key = [u8; KEY_BYTES];

/// A key with its value.
#[derive(Clone, Copy)]
pub struct Record {
    pub key: Key,
    pub value: [u8; VALUE_BYTES],
}

/// The step of SplitMix64: a bijection of `u64` that looks random.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which write a value comes from. `LOADED` is the load; other versions name the run, the thread and its count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version(pub u64);

impl Version {
    /// The version of every row after the load.
    pub const LOADED: Version = Version(0);

    /// The `count`th update of `thread` in the run `run`. `run` is not 0; `count` stays below 2^40.
    pub fn new(run: u16, thread: u8, count: u64) -> Version {
        Version(u64::from(run) << 48 | u64::from(thread) << 40 | count)
    }

    /// The run that wrote it; 0 is the load.
    pub fn run(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The thread that wrote it.
    pub fn thread(self) -> u8 {
        (self.0 >> 40) as u8
    }

    /// Its place among the updates of its thread.
    pub fn count(self) -> u64 {
        self.0 & ((1 << 40) - 1)
    }
}

/// The number of positions per loaded row: the row itself, and new rows behind it.
pub const SLOTS: u64 = 16;

/// A table that was created for `loaded` rows.
#[derive(Clone, Copy)]
pub struct Rows {
    loaded: u64,
    /// The distance between the keys of two neighbouring loaded rows.
    step: u64,
    shuffle: Shuffle,
}

impl Rows {
    /// `loaded` is at least 1.
    pub fn new(loaded: u64) -> Rows {
        Rows { loaded, step: u64::MAX / loaded, shuffle: Shuffle::new(loaded) }
    }

    /// The number of loaded rows.
    pub fn loaded(self) -> u64 {
        self.loaded
    }

    /// The maximum number of rows, including new ones.
    pub fn room(self) -> u64 {
        self.loaded * SLOTS
    }

    /// The row that an application inserts in this turn: first the loaded rows in a shuffled order, then the
    /// new ones.
    pub fn nth(self, turn: u64) -> u64 {
        if turn < self.loaded { self.shuffle.row(turn) } else { turn }
    }

    /// The turn of `row`.
    pub fn turn(self, row: u64) -> u64 {
        if row < self.loaded { self.shuffle.place(row) } else { row }
    }

    /// The position of `row` in the order of keys. Not every position has a row.
    pub fn position(self, row: u64) -> u64 {
        if row < self.loaded {
            return row * SLOTS;
        }
        let new = row - self.loaded;
        self.shuffle.row(new % self.loaded) * SLOTS + 1 + new / self.loaded
    }

    /// The row that is at `position` once it is inserted.
    pub fn at(self, position: u64) -> u64 {
        let (gap, slot) = (position / SLOTS, position % SLOTS);
        if slot == 0 { gap } else { self.shuffle.place(gap) + slot * self.loaded }
    }

    /// The key of `row`.
    pub fn key(self, row: u64) -> Key {
        let position = self.position(row);
        let head = position / SLOTS * self.step + position % SLOTS * (self.step / SLOTS);
        let mut key = [0; KEY_BYTES];
        key[..8].copy_from_slice(&head.to_be_bytes());
        key[8..].copy_from_slice(&mix(row).to_be_bytes());
        key
    }

    /// The row of `key`.
    ///
    /// # Errors The bytes are not a key of this table.
    pub fn row(self, key: &[u8]) -> Result<u64> {
        ensure!(key.len() == KEY_BYTES, "a key of {} bytes", key.len());
        let mut head = [0; 8];
        head.copy_from_slice(&key[..8]);
        let head = u64::from_be_bytes(head);
        let (gap, slot) = (head / self.step, head % self.step / (self.step / SLOTS));
        ensure!(gap < self.loaded && slot < SLOTS, "a key that was never written");
        let row = self.at(gap * SLOTS + slot);
        ensure!(self.key(row) == key, "a key that was never written");
        Ok(row)
    }

    /// The record of `row` as written by `version`.
    pub fn record(self, row: u64, version: Version) -> Record {
        Record { key: self.key(row), value: value(row, version) }
    }

    /// The version of the value that was found for `row`.
    ///
    /// # Errors The value belongs to another row, or was never written.
    pub fn check(self, row: u64, found: &[u8]) -> Result<Version> {
        if found.len() != VALUE_BYTES {
            bail!("row {row}: a value of {} bytes", found.len());
        }
        let mut word = [0; 8];
        word.copy_from_slice(&found[8..16]);
        let version = Version(u64::from_le_bytes(word));
        ensure!(
            found == value(row, version),
            "row {row}: the value belongs to another row or was never written"
        );
        Ok(version)
    }
}

fn value(row: u64, version: Version) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    value[..8].copy_from_slice(&row.to_le_bytes());
    value[8..16].copy_from_slice(&version.0.to_le_bytes());
    let mut state = mix(row) ^ mix(version.0 ^ 0x5bd1_e995);
    for chunk in value[16..].chunks_mut(8) {
        state = mix(state);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_positions_and_lead_back_to_their_rows() {
        for loaded in [1000, 8_000_000] {
            let rows = Rows::new(loaded);
            let mut last = None;
            for position in (0..3 * SLOTS).chain(rows.room() - 2 * SLOTS..rows.room()) {
                let row = rows.at(position);
                let key = rows.key(row);
                assert_eq!((rows.position(row), rows.row(&key).unwrap()), (position, row));
                assert_eq!(rows.nth(rows.turn(row)), row);
                assert!(last < Some(key));
                last = Some(key);
            }
        }
    }

    /// New rows are inserted between loaded ones. Every gap gets a row before any gap gets a second one.
    #[test]
    fn new_rows_fall_into_all_gaps_in_turn() {
        let rows = Rows::new(1000);
        for slot in 1..SLOTS {
            let mut gaps: Vec<u64> = (0..1000)
                .map(|new| {
                    let position = rows.position(slot * 1000 + new);
                    assert_eq!(position % SLOTS, slot);
                    position / SLOTS
                })
                .collect();
            assert!(gaps.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 20);
            gaps.sort_unstable();
            assert_eq!(gaps, (0..1000).collect::<Vec<u64>>());
        }
    }

    #[test]
    fn a_foreign_key_is_refused() {
        let rows = Rows::new(1000);
        let mut key = rows.key(5);
        key[15] ^= 1;
        assert!(rows.row(&key).is_err());
        assert!(rows.row(&key[..15]).is_err());
    }

    #[test]
    fn a_value_passes_for_its_own_row_and_version_only() {
        let rows = Rows::new(1000);
        let version = Version::new(3, 2, 99);
        let mut record = rows.record(5, version);
        assert_eq!(rows.check(5, &record.value).unwrap(), version);
        assert_eq!((version.run(), version.thread(), version.count()), (3, 2, 99));
        assert!(rows.check(6, &record.value).is_err());
        assert!(rows.check(5, &record.value[..99]).is_err());
        // A version that was never written, and a torn tail.
        record.value[8] ^= 1;
        assert!(rows.check(5, &record.value).is_err());
        record.value[8] ^= 1;
        record.value[99] ^= 1;
        assert!(rows.check(5, &record.value).is_err());
    }
}
