//! Encodes and decodes the records of the log, and applies their structure changes to pages.
//!
//! A record is `length (4), CRC-32C of the record's LSN and of the payload (4), payload`. The payload
//! consists of a list of structure changes, followed by a list of operations. Each list is preceded by its
//! length. Lengths and counts are LEB128 numbers. A record of a transaction of several shards has a third
//! part (see [`Part`]); any other record ends behind the operations.
//!
//! *Operations* are logical and absolute: they set the value of a key in a tree, or delete the key.
//! Operations are idempotent, and redoing older ones before newer ones gives the same result, so pages need
//! not record which operations they contain. *Deltas*, the structure changes, are physical. Each delta
//! changes the bytes of one page, and the structure LSN of the page records which deltas the page contains. A
//! record is applied as a whole.

use crate::Lsn;
use crate::format::number::{put_bytes, put_number, take_byte, take_bytes, take_number};
use crate::format::page::node::{Cell, Node, NodeMut, longest_key, longest_record};
use crate::format::page::{self, Kind, map};
use crate::format::part::{Part, PartRef};
use fulgurite_base::{PageId, prefetch};
use std::collections::BTreeMap;

/// An operation: a change of one key of one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub tree: u32,
    pub key: Box<[u8]>,
    /// The new value; `None` deletes the key.
    pub value: Option<Box<[u8]>>,
    /// Whether `value` is a reference to a large value.
    pub large: bool,
}

impl Op {
    /// Returns the value as stored in a leaf; `None` if the operation deletes its key.
    pub(crate) fn cell(&self) -> Option<Cell<'_>> {
        self.as_ref().cell()
    }

    /// Borrows the operation.
    pub(crate) fn as_ref(&self) -> OpRef<'_> {
        OpRef { tree: self.tree, key: &self.key, value: self.value.as_deref(), large: self.large }
    }

    /// Returns an upper bound of the bytes that the operation takes in the log.
    pub(crate) fn bytes(&self) -> usize {
        Op::bytes_of(&self.key, self.value.as_deref())
    }

    /// Returns the same for an operation with this key and value.
    pub(crate) fn bytes_of(key: &[u8], value: Option<&[u8]>) -> usize {
        20 + key.len() + value.map_or(0, <[u8]>::len)
    }
}

/// An operation that borrows the bytes of a record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpRef<'a> {
    /// See [`Op::tree`].
    pub tree: u32,
    /// See [`Op::key`].
    pub key: &'a [u8],
    /// See [`Op::value`].
    pub value: Option<&'a [u8]>,
    /// See [`Op::large`].
    pub large: bool,
}

impl<'a> OpRef<'a> {
    /// Returns the value as stored in a leaf; `None` if the operation deletes its key.
    pub(crate) fn cell(&self) -> Option<Cell<'a>> {
        self.value.map(|bytes| Cell { bytes, large: self.large })
    }

    /// Whether the record that the operation writes fits into a leaf.
    pub(crate) fn fits(&self, page_bytes: u32) -> bool {
        let value = self.value.map_or(0, <[u8]>::len);
        self.key.len() <= longest_key(page_bytes)
            && self.key.len() + value <= longest_record(page_bytes).max(self.key.len() + 16)
            && (!self.large || value == 16)
    }

    /// Copies the operation into an owned one.
    pub(crate) fn to_op(self) -> Op {
        Op { tree: self.tree, key: self.key.into(), value: self.value.map(Box::from), large: self.large }
    }

    fn put(self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.tree));
        out.push(u8::from(self.value.is_some()) | u8::from(self.large) << 1);
        put_bytes(out, self.key);
        if let Some(value) = self.value {
            put_bytes(out, value);
        }
    }

    fn take(input: &mut &'a [u8]) -> Option<OpRef<'a>> {
        let tree = u32::try_from(take_number(input)?).ok()?;
        let flags = take_byte(input)?;
        let key = take_bytes(input)?;
        let value = if flags & 1 == 1 { Some(take_bytes(input)?) } else { None };
        Some(OpRef { tree, key, value, large: flags & 2 == 2 })
    }
}

/// The distance of prefetching into the processor's cache, in operations. Prefetching is necessary because
/// the bytes of operations are in the order of the log, which differs from the order in which operations are
/// applied.
pub(crate) const AHEAD: usize = 12;

/// Prefetches the bytes of the operation that is applied [`AHEAD`] operations after the first `done` ones.
#[inline]
pub(crate) fn look_ahead(ops: &[OpRef<'_>], done: usize) {
    if let Some(op) = ops.get(done + AHEAD) {
        prefetch(op.key, 0);
        // The value is stored after the key, so the first cache line of the value comes with the key.
        let value = op.value.unwrap_or_default();
        prefetch(value, value.len() / 2);
        prefetch(value, value.len().saturating_sub(1));
    }
}

/// A structure change: a change of the bytes of one page as part of a change of a tree's structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Replaces the page by a node. The encoded node omits the free space of its page.
    Image {
        page: PageId,
        /// See [`Delta::image`].
        node: Box<[u8]>,
    },
    /// Reduces a node to the keys below `high`, which becomes its high fence.
    Keep { page: PageId, high: Box<[u8]> },
    /// Adds a child to an inner node.
    AddChild {
        page: PageId,
        /// The low fence of the child.
        key: Box<[u8]>,
        child: PageId,
    },
    /// Removes a child from an inner node.
    DropChild {
        page: PageId,
        /// The low fence of the child.
        key: Box<[u8]>,
    },
    /// Makes the page a free page.
    Free { page: PageId },
    /// Records that the page was written to the drive with operations that are older than its image in the
    /// log and not contained in that image. This delta does not change the page.
    Stored { page: PageId },
    /// Marks pages in the map of a group as used or free.
    Map {
        /// The page of the map.
        page: PageId,
        /// The index of the first marked page within its group.
        from: u32,
        /// The number of marked pages.
        count: u32,
        /// Whether the pages become used; false if they become free.
        used: bool,
    },
}

impl Delta {
    /// Creates an image of the node in `bytes`.
    pub(crate) fn image(bytes: &[u8]) -> Delta {
        Delta::Image { page: page::number(bytes), node: pack(bytes).into() }
    }

    /// Groups the structure changes of a record by page. Returns them with the pages that the record lists as
    /// written. A record may change a page in several steps, all with the LSN of the record.
    pub(crate) fn by_page(deltas: &[Delta]) -> (BTreeMap<PageId, Vec<&Delta>>, Vec<PageId>) {
        let (mut changes, mut stored) = (BTreeMap::new(), Vec::new());
        for delta in deltas {
            match delta {
                Delta::Stored { page } => stored.push(*page),
                delta => changes.entry(delta.page()).or_insert_with(Vec::new).push(delta),
            }
        }
        (changes, stored)
    }

    /// Returns the page that the structure change concerns.
    pub(crate) fn page(&self) -> PageId {
        match self {
            Delta::Image { page, .. }
            | Delta::Keep { page, .. }
            | Delta::AddChild { page, .. }
            | Delta::DropChild { page, .. }
            | Delta::Free { page }
            | Delta::Stored { page }
            | Delta::Map { page, .. } => *page,
        }
    }

    /// Whether the structure change replaces the whole page.
    pub(crate) fn replaces_page(&self) -> bool {
        matches!(self, Delta::Image { .. } | Delta::Free { .. })
    }

    /// Applies the structure change to a page, both in normal operation and in recovery.
    pub(crate) fn apply(&self, bytes: &mut [u8]) -> Result<(), String> {
        match self {
            Delta::Image { node, .. } => unpack(node, bytes),
            Delta::Free { page } => {
                page::init(bytes, Kind::Free, 0, *page, 0);
                Ok(())
            }
            Delta::Stored { .. } => Ok(()),
            Delta::Map { from, count, used, .. } => {
                let end = from.checked_add(*count).filter(|end| map::has(bytes, *end));
                let end = end
                    .filter(|_| page::kind(bytes) == Some(Kind::Map))
                    .ok_or("it is not a map of these pages")?;
                (*from..end).for_each(|index| map::set_used(bytes, index, *used));
                Ok(())
            }
            Delta::Keep { high, .. } => {
                let node = Node::new(bytes).ok_or("it is not a node")?;
                let low = node.low().to_vec();
                // The new high fence must be above the low fence and at most the old high fence.
                let inside = low[..] < **high && node.high().is_none_or(|old| **high <= *old);
                if !inside || high.len() > longest_key(bytes.len() as u32) {
                    return Err("its new fence is outside the old ones".to_owned());
                }
                NodeMut::new(bytes).refence((&low, Some(high)));
                Ok(())
            }
            Delta::AddChild { key, child, .. } => {
                Node::new(bytes).filter(|node| node.covers(key)).ok_or("it is not the parent")?;
                let value = child.0.to_le_bytes();
                NodeMut::new(bytes).put(key, Cell::inline(&value)).then_some(()).ok_or("it has no space")?;
                Ok(())
            }
            Delta::DropChild { key, .. } => {
                let node = Node::new(bytes).ok_or("it is not a node")?;
                let index = node.search(key).map_err(|_| "it has no such child")?;
                NodeMut::new(bytes).remove(index);
                Ok(())
            }
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self {
            Delta::Image { .. } => 1,
            Delta::Keep { .. } => 2,
            Delta::AddChild { .. } => 3,
            Delta::DropChild { .. } => 4,
            Delta::Free { .. } => 5,
            Delta::Map { .. } => 6,
            Delta::Stored { .. } => 7,
        };
        out.push(kind);
        put_number(out, self.page().0);
        match self {
            Delta::Image { node: bytes, .. }
            | Delta::Keep { high: bytes, .. }
            | Delta::DropChild { key: bytes, .. } => put_bytes(out, bytes),
            Delta::AddChild { key, child, .. } => {
                put_bytes(out, key);
                put_number(out, child.0);
            }
            Delta::Free { .. } | Delta::Stored { .. } => {}
            Delta::Map { from, count, used, .. } => {
                put_number(out, u64::from(*from));
                put_number(out, u64::from(*count));
                out.push(u8::from(*used));
            }
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Delta> {
        let kind = take_byte(input)?;
        let page = PageId(take_number(input)?);
        Some(match kind {
            1 => Delta::Image { page, node: take_bytes(input)?.into() },
            2 => Delta::Keep { page, high: take_bytes(input)?.into() },
            3 => {
                let key = take_bytes(input)?.into();
                Delta::AddChild { page, key, child: PageId(take_number(input)?) }
            }
            4 => Delta::DropChild { page, key: take_bytes(input)?.into() },
            5 => Delta::Free { page },
            6 => {
                let from = u32::try_from(take_number(input)?).ok()?;
                let count = u32::try_from(take_number(input)?).ok()?;
                Delta::Map { page, from, count, used: take_byte(input)? == 1 }
            }
            7 => Delta::Stored { page },
            _ => return None,
        })
    }
}

/// Encodes a page without its free space as `bytes before the free space (4), those bytes, bytes after the
/// free space`.
fn pack(bytes: &[u8]) -> Vec<u8> {
    let (first, last) = Node::new(bytes).map_or((bytes.len(), bytes.len()), |node| node.parts());
    let mut packed = (first as u32).to_le_bytes().to_vec();
    packed.extend_from_slice(&bytes[..first]);
    packed.extend_from_slice(&bytes[last..]);
    packed
}

fn unpack(packed: &[u8], bytes: &mut [u8]) -> Result<(), String> {
    let first = packed.get(..4).map_or(0, |len| page::get_u32(len, 0) as usize);
    let parts = packed.get(4..).filter(|parts| first <= parts.len() && parts.len() <= bytes.len());
    let parts = parts.ok_or("its image has the wrong length")?;
    bytes.fill(0);
    bytes[..first].copy_from_slice(&parts[..first]);
    let last = bytes.len() - (parts.len() - first);
    bytes[last..].copy_from_slice(&parts[first..]);
    Ok(())
}

/// Encodes a list of operations.
pub(crate) fn put_ops(ops: &[Op], out: &mut Vec<u8>) {
    put_number(out, ops.len() as u64);
    ops.iter().for_each(|op| op.as_ref().put(out));
}

/// Decodes a list of operations without copying them, and calls `each` with each of them. Returns `None` if the list
/// is invalid.
pub(crate) fn take_ops<'a>(input: &mut &'a [u8], mut each: impl FnMut(OpRef<'a>)) -> Option<()> {
    for _ in 0..take_number(input)? {
        each(OpRef::take(input)?);
    }
    Some(())
}

/// The contents of a record of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub deltas: Vec<Delta>,
    /// The operations, which are applied after the structure changes. Those of a [`Part::Prepared`] wait for the
    /// decision.
    pub ops: Vec<Op>,
    /// The part of the record in a transaction of several shards; `None` for any other record.
    pub part: Option<Part>,
}

/// The contents of a record of the log, without the operations that take effect with it.
pub(crate) struct Visited<'a> {
    pub deltas: Vec<Delta>,
    pub part: Option<PartRef<'a>>,
}

/// The number of bytes of a record before its payload.
pub(crate) const FRAME: usize = 8;

impl Entry {
    /// Creates a record that consists of structure changes.
    pub(crate) fn of_deltas(deltas: Vec<Delta>) -> Entry {
        Entry { deltas, ..Entry::default() }
    }

    /// Creates a record that consists of operations.
    pub(crate) fn of_ops(ops: Vec<Op>) -> Entry {
        Entry { ops, ..Entry::default() }
    }

    /// Encodes the record for position `at` of the log, and appends its bytes to `out`.
    pub(crate) fn encode(&self, at: Lsn, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME]);
        put_number(out, self.deltas.len() as u64);
        self.deltas.iter().for_each(|delta| delta.encode(out));
        let waits = matches!(self.part, Some(Part::Prepared(_)));
        put_ops(if waits { &[] } else { &self.ops }, out);
        if let Some(part) = &self.part {
            part.encode(out);
        }
        if waits {
            put_ops(&self.ops, out);
        }
        let len = (out.len() - start - FRAME) as u32;
        page::set(out, start, &len.to_le_bytes());
        let crc = Entry::crc(at, &out[start + FRAME..]);
        page::set(out, start + 4, &crc.to_le_bytes());
    }

    /// Returns the checksum of a record's payload, which depends on the record's position in the log.
    pub(crate) fn crc(at: Lsn, payload: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&at.0.to_le_bytes()), payload)
    }

    /// Decodes the payload of a record. Returns `None` if the payload is invalid.
    pub(crate) fn read(payload: &[u8]) -> Option<Entry> {
        let mut ops = Vec::new();
        let Visited { deltas, part } = Entry::visit(payload, |op| ops.push(op.to_op()))?;
        if let Some(PartRef { of: Part::Prepared(_), ops: mut waiting }) = part {
            take_ops(&mut waiting, |op| ops.push(op.to_op()))?;
        }
        Some(Entry { deltas, ops, part: part.map(|part| part.of) })
    }

    /// Decodes the payload of a record without copying its operations, and calls `each` with each operation that takes
    /// effect with it. Returns the rest, or `None` if the payload is invalid.
    pub(crate) fn visit<'a>(payload: &'a [u8], each: impl FnMut(OpRef<'a>)) -> Option<Visited<'a>> {
        let input = &mut &*payload;
        let deltas = take_number(input)?;
        let deltas = (0..deltas).map(|_| Delta::decode(input)).collect::<Option<_>>()?;
        take_ops(input, each)?;
        if input.is_empty() {
            return Some(Visited { deltas, part: None });
        }
        let of = Part::decode(input)?;
        let ops = *input;
        if let Part::Prepared(_) = of {
            take_ops(input, |_| ())?;
        }
        input.is_empty().then_some(Visited { deltas, part: Some(PartRef { of, ops }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::part::GlobalId;

    #[test]
    fn a_record_reads_back_only_at_its_lsn() {
        let mut bytes = vec![0; 4096];
        let mut node = NodeMut::init(&mut bytes, PageId(9), 4, 0, (b"a", Some(b"ax")));
        node.put(b"ab", Cell::inline(b"value"));
        let deltas = vec![
            Delta::image(&bytes),
            Delta::Keep { page: PageId(300), high: b"k".to_vec().into() },
            Delta::AddChild { page: PageId(1), key: b"k".to_vec().into(), child: PageId(1 << 40) },
            Delta::DropChild { page: PageId(1), key: Box::default() },
            Delta::Free { page: PageId(5) },
            Delta::Map { page: PageId(2), from: 3, count: 700, used: true },
            Delta::Stored { page: PageId(70_000) },
        ];
        let put = |large| Op { tree: 300, key: vec![1; 200].into(), value: Some(vec![2; 9].into()), large };
        let delete = Op { tree: 0, key: Box::default(), value: None, large: false };
        let entry = Entry { deltas, ops: vec![put(true), put(false), delete], part: None };
        let mut out = vec![7];
        entry.encode(Lsn(1000), &mut out);
        let (len, crc) = (page::get_u32(&out, 1) as usize, page::get_u32(&out, 5));
        let payload = &out[1 + FRAME..];
        assert_eq!(len, payload.len());
        assert_eq!(Entry::read(payload), Some(entry.clone()));
        assert_eq!((Entry::crc(Lsn(1000), payload), Entry::crc(Lsn(1001), payload) == crc), (crc, false));
        let mut again = vec![1; 4096];
        entry.deltas[0].apply(&mut again).expect("an image fits");
        assert_eq!(again, bytes);
        // An image omits free space, so this image is much shorter than the page.
        assert!(out.len() < 800, "{}", out.len());
    }
    /// The rule: a record of a transaction of several shards reads back. The operations of a prepared one wait for the
    /// decision. A record without such a part has the bytes that it always had.
    #[test]
    fn a_part_reads_back_and_is_absent_otherwise() {
        let id = GlobalId { coordinator: 2, opening: 1 << 40, number: 300 };
        let ops =
            || vec![Op { tree: 16, key: vec![1; 9].into(), value: Some(vec![2; 5].into()), large: false }];
        let payload = |entry: &Entry| {
            let mut out = Vec::new();
            entry.encode(Lsn(7), &mut out);
            out.split_off(FRAME)
        };
        let parts = [
            Part::Prepared(id),
            Part::Decides(id),
            Part::Decided { id, committed: true },
            Part::Decided { id, committed: false },
        ];
        for part in parts {
            let entry = Entry { part: Some(part), ..Entry::of_ops(ops()) };
            let bytes = payload(&entry);
            assert_eq!(Entry::read(&bytes), Some(entry));
            let mut now = 0;
            let visited = Entry::visit(&bytes, |_| now += 1).expect("it is valid");
            assert_eq!(now, usize::from(!matches!(part, Part::Prepared(_))));
            assert_eq!(visited.part.map(|part| part.of), Some(part));
            assert!(
                (0..bytes.len()).all(|len| Entry::read(&bytes[..len]).is_none_or(|cut| cut.part.is_none()))
            );
            assert_eq!(Entry::read(&[&bytes[..], &[0]].concat()), None);
        }
        assert_eq!(payload(&Entry::of_ops(ops()))[..4], [0, 1, 16, 1]);
        assert_eq!(payload(&Entry::of_ops(ops())).len(), 2 + 2 + 10 + 6);
    }
}
