//! Defines the data that clients write: keys whose order the checkers know, and values that identify their
//! writer.
//!
//! The first bytes of a value contain its [`Version`], which is unique in the life of a store, and an amount
//! of money. The rest of the value is filler derived from the version. So a reader knows which write it sees,
//! and notices a wrong byte and a value of another write.

use fulgurite_base::fnv1a;
use std::fmt;

/// The number of a transaction, unique over all generations of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u32);

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// The identity of a write: the number of its transaction, and its index among the writes of this
/// transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Version(pub u64);

impl Version {
    /// Creates the identity of write number `nth` of `txn`, counted from zero.
    pub(crate) fn new(txn: TxnId, nth: u32) -> Version {
        Version(u64::from(txn.0) << 32 | u64::from(nth))
    }

    /// Returns the transaction that made the write.
    pub(crate) fn writer(self) -> TxnId {
        TxnId((self.0 >> 32) as u32)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.writer(), self.0 as u32)
    }
}

/// The tables of the store under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableName {
    /// Accounts, whose amounts have a constant sum.
    Accounts,
    /// Registers, which are read and updated.
    Registers,
    /// Rows, which are inserted and deleted and have a secondary index.
    Rows,
    /// Markers: one row per transaction that wrote. After a crash it shows whether the transaction survived.
    Markers,
}

impl TableName {
    /// All tables in the order of their keys.
    pub const ALL: [TableName; 4] =
        [TableName::Accounts, TableName::Registers, TableName::Rows, TableName::Markers];

    /// Returns the name of the table in the store.
    pub fn text(self) -> &'static str {
        match self {
            TableName::Accounts => "accounts",
            TableName::Registers => "registers",
            TableName::Rows => "rows",
            TableName::Markers => "markers",
        }
    }
}

/// The key of a record. Within a table, keys are ordered like their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table of the key.
    pub table: TableName,
    /// The number of the key, in the order of keys within its table.
    pub number: u32,
}

impl Key {
    /// Creates the key `number` of `table`.
    pub fn new(table: TableName, number: u32) -> Key {
        Key { table, number }
    }

    /// Returns the bytes of the key in the store. Keys of rows have a long common prefix and tails of
    /// different lengths, which exercises the truncation of prefixes and separators.
    pub fn bytes(self) -> Vec<u8> {
        match self.table {
            TableName::Rows => {
                let tail = "~".repeat((self.number.wrapping_mul(7) % 23) as usize);
                format!("rows/of/the/store/{:08}{tail}", self.number).into_bytes()
            }
            TableName::Markers => self.number.to_be_bytes().to_vec(),
            table => format!("{}{:06}", &table.text()[..1], self.number).into_bytes(),
        }
    }

    /// Returns the key of `table` with these bytes; `None` if there is none.
    pub fn from_bytes(table: TableName, bytes: &[u8]) -> Option<Key> {
        let digits = |range: std::ops::Range<usize>| -> Option<u32> {
            std::str::from_utf8(bytes.get(range)?).ok()?.parse().ok()
        };
        let number = match table {
            TableName::Rows => digits(18..26)?,
            TableName::Markers => u32::from_be_bytes(bytes.try_into().ok()?),
            _ => digits(1..7)?,
        };
        let key = Key::new(table, number);
        (key.bytes() == bytes).then_some(key)
    }

    /// Returns the key of the marker of `txn`. The keys are scattered, so that concurrent transactions do not
    /// all write to the last leaf.
    pub fn marker(txn: TxnId) -> Key {
        // The multiplication by an odd number maps different transactions to different keys.
        Key::new(TableName::Markers, txn.0.wrapping_mul(0x9e37_79b1))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table.text(), self.number)
    }
}

/// The number of bytes before the filler: version, amount, length, and a checksum of these three.
const HEAD: usize = 28;

/// A decoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// The write that created the value.
    pub version: Version,
    /// An amount of money, or a number by which the index groups rows.
    pub amount: i64,
}

impl Value {
    /// Returns the bytes of the value in the store: `len` bytes, but at least 28.
    pub(crate) fn encode(self, len: usize) -> Vec<u8> {
        let len = len.max(HEAD);
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(self.version.0.to_le_bytes());
        bytes.extend(self.amount.to_le_bytes());
        bytes.extend((len as u32).to_le_bytes());
        bytes.extend(fnv1a(&bytes[..20]).to_le_bytes());
        let mut word = self.version.0 ^ 0x5bd1_e995_9d1b_58d3;
        while bytes.len() < len {
            word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_add(1);
            let room = (len - bytes.len()).min(8);
            bytes.extend(&word.to_le_bytes()[..room]);
        }
        bytes
    }

    /// Decodes the bytes of [`Value::encode`]; `None` if any byte is wrong.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Value> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let value = Value { version: Version(word(0)?), amount: word(8)? as i64 };
        (value.encode(bytes.len()) == bytes).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_like_their_bytes_and_decode() {
        for table in TableName::ALL {
            let keys: Vec<Key> = (0..300).map(|number| Key::new(table, number * 37)).collect();
            assert!(keys.is_sorted_by_key(|key| key.bytes()));
            assert!(keys.iter().all(|key| Key::from_bytes(table, &key.bytes()) == Some(*key)));
        }
    }

    #[test]
    fn any_wrong_byte_is_noticed() {
        let bytes = Value { version: Version::new(TxnId(7), 2), amount: -5 }.encode(100);
        assert!(Value::decode(&bytes).is_some());
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            assert_eq!(Value::decode(&wrong), None, "byte {at}");
        }
        assert_eq!(Value::decode(&bytes[..99]), None);
    }
}
