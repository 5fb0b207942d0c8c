//! The format of a delta: records that were put into a leaf since its base was written, in one unit.
//!
//! | bytes | field |
//! |---|---|
//! | 0–4 | CRC-32C of the rest of the unit, started from the store's salt |
//! | 4 | kind: 5, which no page has |
//! | 5 | slot: the index of this unit among the units of the page |
//! | 6–8 | end of the records |
//! | 8–16 | number of the page |
//! | 16–20 | checksum of the page's base |
//! | 20–24 | zeros |
//! | 24–32 | LSN: the end of the log when the records were taken |
//! | 32– | records: length of the key (2), length of the value (2), key, value |
//! | –end | zeros |
//!
//! The checksum of the base ties a delta to it. A delta of an older base, which a drive returns that has lost a
//! write, is no delta of this page.

use crate::Lsn;
use crate::format::page::node::{Cell, NodeMut, leaf, longest_key, longest_record};
use crate::format::page::{self, Salt, array, get_u16, get_u32, set};
use fulgurite_base::PageId;

/// The bytes of a delta before its records.
const HEAD: usize = 32;
/// The bytes of a record before its key.
const RECORD_HEAD: usize = 4;
/// The kind of a delta, in the place where a page has its own.
const KIND: u8 = 5;

/// The page, the base and the slot of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Of {
    pub page: PageId,
    /// The checksum of the base.
    pub base: u32,
    pub slot: u32,
}

/// A delta that is being filled.
pub(super) struct Filling {
    bytes: Vec<u8>,
    end: usize,
}

impl Filling {
    /// Begins a delta in a unit of `unit_bytes`.
    pub(super) fn new(unit_bytes: usize) -> Filling {
        Filling { bytes: vec![0; unit_bytes], end: HEAD }
    }

    /// Whether another record fits.
    pub(super) fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        self.end + RECORD_HEAD + key.len() + value.len() <= self.bytes.len()
    }

    /// Adds a record, which must fit.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        set(&mut self.bytes, self.end, &(key.len() as u16).to_le_bytes());
        set(&mut self.bytes, self.end + 2, &(value.len() as u16).to_le_bytes());
        set(&mut self.bytes, self.end + RECORD_HEAD, key);
        set(&mut self.bytes, self.end + RECORD_HEAD + key.len(), value);
        self.end += RECORD_HEAD + key.len() + value.len();
    }

    /// Adds the header and the checksum. Returns the bytes of the unit.
    pub(super) fn seal(mut self, of: Of, lsn: Lsn, salt: Salt) -> Vec<u8> {
        let bytes = &mut self.bytes;
        (bytes[4], bytes[5]) = (KIND, of.slot as u8);
        set(bytes, 6, &(self.end as u16).to_le_bytes());
        set(bytes, 8, &of.page.0.to_le_bytes());
        set(bytes, 16, &of.base.to_le_bytes());
        set(bytes, 24, &lsn.0.to_le_bytes());
        page::seal(bytes, salt);
        self.bytes
    }
}

/// An intact delta.
#[derive(Clone, Copy)]
pub(super) struct Delta<'a>(&'a [u8]);

impl<'a> Delta<'a> {
    /// Returns the delta in a unit; `None` if the unit is no intact delta of this store.
    pub(super) fn read(unit: &'a [u8], salt: Salt) -> Option<Delta<'a>> {
        let end = usize::from(get_u16(unit, 6));
        let is_whole = unit[4] == KIND && (HEAD..=unit.len()).contains(&end);
        (is_whole && get_u32(unit, 0) == salt.sum(unit)).then_some(Delta(unit))
    }

    pub(super) fn of(self) -> Of {
        let (page, base) = (page::number(self.0), get_u32(self.0, 16));
        Of { page, base, slot: self.0[5].into() }
    }

    /// Returns the records, and fails at the first that does not end inside the delta.
    fn records(self) -> impl Iterator<Item = Option<(&'a [u8], &'a [u8])>> {
        let mut rest = &self.0[HEAD..usize::from(get_u16(self.0, 6))];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let record = split_record(rest);
            rest = record.map_or(&[], |(_, _, behind)| behind);
            Some(record.map(|(key, value, _)| (key, value)))
        })
    }

    /// Puts the records into a leaf, a page without faults, and raises its LSN. Returns false if they do not
    /// belong there, or the leaf has no room for them. Only a bug or an attack causes that.
    pub(super) fn apply(self, bytes: &mut [u8]) -> bool {
        let size = bytes.len() as u32;
        let puts = |record: Option<(&[u8], &[u8])>| {
            let Some((key, value)) = record else { return false };
            let is_usual = key.len() <= longest_key(size) && key.len() + value.len() <= longest_record(size);
            let is_its_leaf = leaf(bytes).is_ok_and(|node| node.level() == 0 && node.covers(key));
            is_usual && is_its_leaf && NodeMut::new(bytes).put(key, Cell::inline(value))
        };
        let fits = self.records().all(puts);
        let lsn = page::lsn(bytes).max(page::lsn(self.0));
        page::set_lsn(bytes, lsn);
        fits
    }
}

fn split_record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<RECORD_HEAD>()?;
    let [key, value] = [0, 2].map(|at| usize::from(u16::from_le_bytes(array(head, at))));
    let (key, rest) = rest.split_at_checked(key)?;
    let (value, rest) = rest.split_at_checked(value)?;
    Some((key, value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::node::Node;

    const OF: Of = Of { page: PageId(7), base: 99, slot: 3 };
    const SALT: Salt = Salt(5);

    fn leaf_page() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        NodeMut::init(&mut bytes, PageId(7), 9, 0, (b"a", Some(b"x")));
        assert!(NodeMut::new(&mut bytes).put(b"key", Cell::inline(b"old")));
        page::set_lsn(&mut bytes, Lsn(10));
        bytes
    }

    fn delta(records: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut filling = Filling::new(512);
        for (key, value) in records {
            assert!(filling.fits(key, value));
            filling.push(key, value);
        }
        assert!(filling.fits(b"", &[0; 100]) && !filling.fits(b"", &[0; 512 - HEAD]));
        filling.seal(OF, Lsn(20), SALT)
    }

    #[test]
    fn records_are_put_into_the_leaf() {
        let unit = delta(&[(b"key", b"new"), (b"other", b""), (b"a", &[1; 300])]);
        let (delta, mut bytes) = (Delta::read(&unit, SALT).unwrap(), leaf_page());
        assert_eq!(delta.of(), OF);
        assert!(delta.apply(&mut bytes));
        let records: Vec<_> =
            Node::new(&bytes).unwrap().records().map(|(key, value)| (key, value.bytes.len())).collect();
        assert_eq!(records, [(b"a".to_vec(), 300), (b"key".to_vec(), 3), (b"other".to_vec(), 0)]);
        assert_eq!((page::lsn(&bytes), page::fault(&bytes)), (Lsn(20), None));
    }

    #[test]
    fn damage_and_records_of_other_leaves_are_noticed() {
        let unit = delta(&[(b"key", b"new")]);
        assert!(Delta::read(&unit, Salt(6)).is_none(), "a delta of another store");
        for byte in 0..unit.len() {
            let mut damaged = unit.clone();
            damaged[byte] ^= 4;
            assert!(Delta::read(&damaged, SALT).is_none(), "byte {byte}");
        }
        for (key, value) in [(&b"x"[..], &b""[..]), (b"A", b""), (b"b", &[1; 1_300])] {
            let mut filling = Filling::new(4096);
            filling.push(key, value);
            let unit = filling.seal(OF, Lsn(20), SALT);
            assert!(!Delta::read(&unit, SALT).unwrap().apply(&mut leaf_page()), "{key:?}");
        }
        // The record ends behind the end of the records.
        let mut unit = unit;
        set(&mut unit, 34, &[200, 0]);
        page::seal(&mut unit, SALT);
        assert!(!Delta::read(&unit, SALT).unwrap().apply(&mut leaf_page()));
    }
}
