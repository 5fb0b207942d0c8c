//! What the clients write: keys with an order that the checkers know, and values that say who wrote them.
//!
//! A value's head names its [`Version`], which is written once in the life of a store, and an amount of money. The
//! rest is filler that follows from the version. So a reader knows whose write it sees, and a value of which a
//! byte is wrong, or which belongs to another write, is noticed.

use fulgurite_base::fnv1a;
use std::fmt;

/// A transaction's number, unique over all generations of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxnId(pub u32);

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// One write: the transaction that made it and its place among that transaction's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl Version {
    /// The `nth` write of `txn`, counted from zero.
    pub fn new(txn: TxnId, nth: u32) -> Version {
        Version(u64::from(txn.0) << 32 | u64::from(nth))
    }

    /// Who wrote it.
    pub fn writer(self) -> TxnId {
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
    /// Accounts, whose amounts keep their sum.
    Accounts,
    /// Registers that are read and written again.
    Registers,
    /// Rows that come and go, with a secondary index.
    Rows,
    /// One row for each transaction that wrote, which tells after a crash that it is there.
    Markers,
}

impl TableName {
    /// Every table, in the order of their keys.
    pub const ALL: [TableName; 4] =
        [TableName::Accounts, TableName::Registers, TableName::Rows, TableName::Markers];

    /// The table's name in the store.
    pub fn text(self) -> &'static str {
        match self {
            TableName::Accounts => "accounts",
            TableName::Registers => "registers",
            TableName::Rows => "rows",
            TableName::Markers => "markers",
        }
    }
}

/// A record's key: the order of keys is the order of their bytes within a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its table.
    pub table: TableName,
    /// Its place in the table's order.
    pub number: u32,
}

impl Key {
    /// The key `number` of `table`.
    pub fn new(table: TableName, number: u32) -> Key {
        Key { table, number }
    }

    /// The bytes in the store. Rows have a long common prefix and tails of different lengths, so that prefixes and
    /// separators are cut in many ways.
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

    /// The key that has these bytes in `table`; `None` where no key has them.
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

    /// Where the marker of `txn` is: spread, so that transactions do not meet at the end of the table.
    pub fn marker(txn: TxnId) -> Key {
        // An odd factor maps different transactions to different keys.
        Key::new(TableName::Markers, txn.0.wrapping_mul(0x9e37_79b1))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table.text(), self.number)
    }
}

/// Bytes before the filler: version, amount, length, and a check of these three.
const HEAD: usize = 28;

/// A value as clients understand it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The write that made it.
    pub version: Version,
    /// Money, or a number that the index groups by.
    pub amount: i64,
}

impl Value {
    /// The bytes in the store: at least 28, and `len` where that is more.
    pub fn encode(self, len: usize) -> Vec<u8> {
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

    /// Reads what [`Value::encode`] wrote; `None` where any byte is wrong.
    pub fn decode(bytes: &[u8]) -> Option<Value> {
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let value = Value { version: Version(word(0)?), amount: word(8)? as i64 };
        (value.encode(bytes.len()) == bytes).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_as_bytes_and_read_back() {
        for table in TableName::ALL {
            let keys: Vec<Key> = (0..300).map(|number| Key::new(table, number * 37)).collect();
            assert!(keys.is_sorted_by_key(|key| key.bytes()));
            assert!(keys.iter().all(|key| Key::from_bytes(table, &key.bytes()) == Some(*key)));
        }
    }

    #[test]
    fn a_wrong_byte_anywhere_is_noticed() {
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
