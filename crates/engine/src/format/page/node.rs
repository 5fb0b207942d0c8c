//! A node of a tree: a slotted page with records sorted by key, between two fence keys.
//!
//! The records of a leaf are keys and values. Those of an inner node are separators and children (eight
//! bytes): child `i` covers the keys from separator `i` up to separator `i + 1`. The first separator is the
//! node's low fence. For all keys of a node, `low ≤ key < high`. The common prefix of the fences is the
//! *prefix* of every key in the node, and is stored once, in the low fence.
//!
//! | bytes | after the common header |
//! |---|---|
//! | 36–38 | number of records |
//! | 38–40 | bytes of the prefix |
//! | 40–44 | offset of the heap |
//! | 44–48 | garbage: bytes of the heap that no record uses |
//! | 48–50, 50–52 | lengths of the low and the high fence |
//! | 52 | 1 if the node has no high fence, because it is the last of its level |
//! | 53–56 | unused; in a leaf, anything that format 5 left there |
//! | 56–120 | hints: the heads of 16 keys, evenly spaced |
//! | 120– | slots of 10 bytes: offset (2), bytes of the key's suffix (2), of the value (2; top bit: large), head (4) |
//! | –end | heap: records, the high fence, the low fence last |
//!
//! A key's *suffix* is the key without the prefix. Its *head* is the first four bytes of the suffix, as a
//! big-endian number: most comparisons need no more.

use super::header::{self, Kind, get_u16, get_u32, get_u64, set};
use crate::Error;
use fulgurite_base::PageId;
use std::cmp::Ordering;

/// The offset of the slots.
const SLOTS: usize = 120;
const SLOT: usize = 10;
const HINTS: usize = 16;
/// Marks a reference to a large value.
const LARGE: u16 = 1 << 15;

/// The longest key for pages of this size, in bytes.
pub const fn longest_key(page_bytes: u32) -> usize {
    page_bytes as usize / 8
}

/// The largest record in a leaf, key and value together, in bytes. Even a leaf with two such records and two
/// fences of the longest kind can be split.
pub const fn longest_record(page_bytes: u32) -> usize {
    page_bytes as usize * 5 / 16
}

/// A value as stored in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell<'a> {
    /// The value, or the reference to a large value.
    pub bytes: &'a [u8],
    /// Whether it is a reference.
    pub large: bool,
}

impl<'a> Cell<'a> {
    /// A value stored in the leaf itself.
    pub fn inline(bytes: &'a [u8]) -> Cell<'a> {
        Cell { bytes, large: false }
    }
}

/// Read access to a node.
#[derive(Clone, Copy)]
pub struct Node<'a>(&'a [u8]);

fn head(suffix: &[u8]) -> u32 {
    match suffix {
        [a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => {
            let mut padded = [0; 4];
            padded[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(padded)
        }
    }
}

/// The node in a page that a search has found.
#[inline]
pub fn leaf(bytes: &[u8]) -> Result<Node<'_>, Error> {
    Node::new(bytes).ok_or_else(|| Error::corrupt(header::number(bytes), "it is not a node"))
}

impl<'a> Node<'a> {
    /// The node in a page; `None` if the page is no node.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Option<Node<'a>> {
        matches!(header::kind(bytes), Some(Kind::Leaf | Kind::Inner)).then_some(Node(bytes))
    }

    /// The page's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The number of records.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(get_u16(self.0, 36))
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The level: 0 for a leaf.
    #[inline]
    pub fn level(&self) -> u8 {
        header::level(self.0)
    }

    #[inline]
    fn prefix_len(&self) -> usize {
        usize::from(get_u16(self.0, 38))
    }

    fn heap(&self) -> usize {
        get_u32(self.0, 40) as usize
    }

    fn garbage(&self) -> usize {
        get_u32(self.0, 44) as usize
    }

    fn low_len(&self) -> usize {
        usize::from(get_u16(self.0, 48))
    }

    fn high_len(&self) -> usize {
        usize::from(get_u16(self.0, 50))
    }

    /// The low fence: the lower bound of all keys.
    #[inline]
    pub fn low(&self) -> &'a [u8] {
        &self.0[self.0.len() - self.low_len()..]
    }

    /// The high fence: all keys are below it. `None` for the last node of a level.
    #[inline]
    pub fn high(&self) -> Option<&'a [u8]> {
        let end = self.0.len() - self.low_len();
        (self.0[52] == 0).then(|| &self.0[end - self.high_len()..end])
    }

    /// The common prefix of all keys.
    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        &self.low()[..self.prefix_len()]
    }

    /// Whether `key` is between the fences.
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        self.low() <= key && self.high().is_none_or(|high| key < high)
    }

    #[inline]
    fn slot(&self, index: usize) -> &'a [u8] {
        &self.0[SLOTS + index * SLOT..][..SLOT]
    }

    #[inline]
    fn head_at(&self, index: usize) -> u32 {
        get_u32(self.0, SLOTS + index * SLOT + 6)
    }

    /// The key of a record without the prefix.
    #[inline]
    pub fn suffix(&self, index: usize) -> &'a [u8] {
        let slot = self.slot(index);
        let at = usize::from(get_u16(slot, 0));
        &self.0[at..at + usize::from(get_u16(slot, 2))]
    }

    /// The key of a record.
    pub fn key(&self, index: usize) -> Vec<u8> {
        [self.prefix(), self.suffix(index)].concat()
    }

    /// The value of a record.
    #[inline]
    pub fn value(&self, index: usize) -> Cell<'a> {
        let slot = self.slot(index);
        let at = usize::from(get_u16(slot, 0)) + usize::from(get_u16(slot, 2));
        let len = get_u16(slot, 4);
        Cell { bytes: &self.0[at..at + usize::from(len & !LARGE)], large: len & LARGE != 0 }
    }

    /// The child at an index of an inner node.
    #[inline]
    pub fn child(&self, index: usize) -> PageId {
        PageId(get_u64(self.value(index).bytes, 0))
    }

    /// Whether a page matches this inner node's entry for a child: its level, and its fences. Copies nothing.
    pub fn has_child(&self, index: usize, page: &[u8]) -> bool {
        let Some(child) = Node::new(page) else { return false };
        let is_key =
            |index: usize, fence: &[u8]| fence.strip_prefix(self.prefix()) == Some(self.suffix(index));
        let high = match child.high() {
            Some(fence) if index + 1 < self.len() => is_key(index + 1, fence),
            fence => index + 1 == self.len() && fence == self.high(),
        };
        usize::from(child.level()) + 1 == usize::from(self.level()) && is_key(index, child.low()) && high
    }

    /// The index of `key`, or its insertion point.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        // All keys between the fences begin with the prefix. Other keys are below or above all of them.
        let Some(suffix) = key.strip_prefix(prefix) else {
            return Err(if key < prefix { 0 } else { self.len() });
        };
        let wanted = head(suffix);
        let (mut from, mut to) = self.hinted(wanted);
        while from < to {
            let middle = (from + to) / 2;
            let order = match self.head_at(middle).cmp(&wanted) {
                Ordering::Equal => self.suffix(middle).cmp(suffix),
                order => order,
            };
            match order {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(from)
    }

    /// The range of records that may have this head, according to the hints.
    #[inline]
    fn hinted(&self, wanted: u32) -> (usize, usize) {
        let len = self.len();
        let step = len / (HINTS + 1);
        // With few records, a search without hints is faster.
        if step < 2 {
            return (0, len);
        }
        let hint = |place: usize| get_u32(self.0, 56 + 4 * place);
        let less = (0..HINTS).take_while(|place| hint(*place) < wanted).count();
        let not_more = less + (less..HINTS).take_while(|place| hint(*place) == wanted).count();
        let from = less * step;
        let to = if not_more == HINTS { len } else { (not_more + 1) * step + 1 };
        (from, to.min(len))
    }

    /// The index of the child whose range covers `key`.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// Free bytes, including garbage.
    pub fn free(&self) -> usize {
        self.heap() - SLOTS - self.len() * SLOT + self.garbage()
    }

    /// Bytes of the records and their slots.
    pub fn used(&self) -> usize {
        self.0.len() - SLOTS - self.low_len() - self.high_len() - self.free()
    }

    /// Bytes that a record of this size takes here.
    pub fn cost(&self, key_len: usize, value_len: usize) -> usize {
        SLOT + key_len - self.prefix_len() + value_len
    }

    /// The records, with full keys.
    pub fn records(&self) -> impl Iterator<Item = (Vec<u8>, Cell<'a>)> + use<'a> {
        let node = *self;
        (0..node.len()).map(move |index| (node.key(index), node.value(index)))
    }

    /// The end of the slots and the offset of the heap. The bytes between are free.
    pub fn parts(&self) -> (usize, usize) {
        (SLOTS + self.len() * SLOT, self.heap())
    }

    /// Checks everything that reading and writing rely on, so that no input makes them panic. Pages are
    /// checked once, when they are read from the drive. Only a bug can make a node with a valid checksum
    /// fail.
    pub fn check(&self) -> Result<(), String> {
        self.check_frame()?;
        let used = self.check_records()?;
        self.check_hints()?;
        if self.level() > 0 {
            self.check_children()?;
        }
        if let Some(last) = self.len().checked_sub(1)
            && !(self.covers(&self.key(0)) && self.covers(&self.key(last)))
        {
            return Err("its keys are not between its fences".to_owned());
        }
        if self.0.len() - self.heap() != used + self.garbage() {
            return Err("its heap sizes do not add up".to_owned());
        }
        Ok(())
    }

    /// Checks that slots, heap and fences do not overlap, and that fences and prefix agree.
    fn check_frame(&self) -> Result<(), String> {
        let (slots, size) = (SLOTS + self.len() * SLOT, self.0.len());
        let fences = self.low_len() + self.high_len();
        if slots + fences > size || self.heap() > size - fences || self.heap() < slots {
            return Err("its slots, heap and fences overlap".to_owned());
        }
        if (self.level() == 0) != (header::kind(self.0) == Some(Kind::Leaf)) {
            return Err("its kind and its level do not agree".to_owned());
        }
        if self.high().is_some_and(|high| high <= self.low()) {
            return Err("its fences are out of order".to_owned());
        }
        // If both fences begin with the prefix, so does every key between them.
        let common = |high: &[u8]| high.starts_with(self.low().get(..self.prefix_len()).unwrap_or(&[0; 0]));
        let right = match self.high() {
            Some(high) => self.prefix_len() <= self.low_len() && common(high),
            None => self.prefix_len() == 0,
        };
        if right { Ok(()) } else { Err("its prefix is not the common prefix of its fences".to_owned()) }
    }

    /// Checks each record. Returns the bytes of the heap that records and fences use.
    fn check_records(&self) -> Result<usize, String> {
        let size = self.0.len();
        let fences = self.low_len() + self.high_len();
        let (heap, end) = (self.heap(), size - fences);
        let mut used = fences;
        let mut before: Option<(u32, &[u8])> = None;
        // `check_frame` has shown that the slots are inside the page. This loop runs for every page read.
        let slots = self.0[SLOTS..SLOTS + self.len() * SLOT].chunks_exact(SLOT);
        for (index, slot) in slots.enumerate() {
            let at = usize::from(get_u16(slot, 0));
            let key = usize::from(get_u16(slot, 2));
            let record = key + usize::from(get_u16(slot, 4) & !LARGE);
            // In an empty page of 64 KiB, a record of no bytes has offset 65536, which is stored as 0.
            let is_nowhere = at == 0 && record == 0;
            if !is_nowhere && (at < heap || at + record > end) {
                return Err(format!("record {index} is outside the heap"));
            }
            used += record;
            let (own, suffix) = (get_u32(slot, 6), &self.0[at..at + key]);
            if own != head(suffix) {
                return Err(format!("record {index} has the head of another key"));
            }
            // If the heads differ, they give the order of the keys.
            let ordered = before.is_none_or(|(least, key)| least < own || (least == own && key < suffix));
            if !ordered {
                return Err(format!("records {} and {index} are out of order", index - 1));
            }
            before = Some((own, suffix));
        }
        Ok(used)
    }

    /// Checks that the hints are correct: a wrong one makes a search miss records.
    fn check_hints(&self) -> Result<(), String> {
        let step = self.len() / (HINTS + 1);
        let right = |place: usize| get_u32(self.0, 56 + 4 * place) == self.head_at((place + 1) * step);
        if step < 2 || (0..HINTS).all(right) { Ok(()) } else { Err("its hints are wrong".to_owned()) }
    }

    /// Checks that an inner node has children, and that the first one starts at its low fence.
    fn check_children(&self) -> Result<(), String> {
        if self.is_empty() {
            return Err("it has no children".to_owned());
        }
        if self.key(0) != self.low() {
            return Err("its first child does not begin at its low fence".to_owned());
        }
        match (0..self.len()).find(|index| self.value(*index).bytes.len() != 8 || self.value(*index).large) {
            Some(index) => Err(format!("its child {index} is not a page")),
            None => Ok(()),
        }
    }
}

/// Write access to a node.
pub struct NodeMut<'a>(&'a mut [u8]);

impl<'a> NodeMut<'a> {
    /// The node in a page.
    pub fn new(bytes: &'a mut [u8]) -> NodeMut<'a> {
        NodeMut(bytes)
    }

    /// An empty node between two fences.
    pub fn init(
        bytes: &'a mut [u8],
        page: PageId,
        tree: u32,
        level: u8,
        (low, high): (&[u8], Option<&[u8]>),
    ) -> NodeMut<'a> {
        let kind = if level == 0 { Kind::Leaf } else { Kind::Inner };
        header::init(bytes, kind, level, page, tree);
        let size = bytes.len();
        let prefix = high.map_or(0, |high| std::iter::zip(low, high).take_while(|(a, b)| a == b).count());
        let high_bytes = high.unwrap_or_default();
        let heap = size - low.len() - high_bytes.len();
        set(bytes, size - low.len(), low);
        set(bytes, heap, high_bytes);
        set(bytes, 38, &(prefix as u16).to_le_bytes());
        set(bytes, 40, &(heap as u32).to_le_bytes());
        set(bytes, 48, &(low.len() as u16).to_le_bytes());
        set(bytes, 50, &(high_bytes.len() as u16).to_le_bytes());
        bytes[52] = u8::from(high.is_none());
        NodeMut(bytes)
    }

    /// Read access.
    #[inline]
    pub fn node(&self) -> Node<'_> {
        Node(self.0)
    }

    fn set_len(&mut self, len: usize) {
        set(self.0, 36, &(len as u16).to_le_bytes());
    }

    fn set_garbage(&mut self, bytes: usize) {
        set(self.0, 44, &(bytes as u32).to_le_bytes());
    }

    /// Inserts or replaces a record. Returns false, with nothing changed, if there is no space.
    pub fn put(&mut self, key: &[u8], value: Cell<'_>) -> bool {
        match self.node().search(key) {
            Ok(index) => self.replace(index, value),
            Err(index) => self.insert(index, key, value),
        }
    }

    fn replace(&mut self, index: usize, value: Cell<'_>) -> bool {
        let old = self.node().value(index).bytes.len();
        let (slot, key_len) = (SLOTS + index * SLOT, self.node().suffix(index).len());
        if value.bytes.len() <= old {
            let at = usize::from(get_u16(self.0, slot)) + key_len;
            set(self.0, at, value.bytes);
            set(self.0, slot + 4, &length(value).to_le_bytes());
            let garbage = self.node().garbage() + old - value.bytes.len();
            self.set_garbage(garbage);
            return true;
        }
        if self.node().free() + key_len + old < key_len + value.bytes.len() {
            return false;
        }
        let key = self.node().key(index);
        self.remove(index);
        // The space was checked above.
        self.insert(index, &key, value)
    }

    fn insert(&mut self, index: usize, key: &[u8], value: Cell<'_>) -> bool {
        let node = self.node();
        let (len, prefix) = (node.len(), node.prefix_len());
        let suffix = &key[prefix..];
        let record = suffix.len() + value.bytes.len();
        if node.free() < SLOT + record {
            return false;
        }
        if node.heap() - SLOTS - len * SLOT < SLOT + record {
            self.tidy();
        }
        let at = self.node().heap() - record;
        set(self.0, at, suffix);
        set(self.0, at + suffix.len(), value.bytes);
        let (from, to) = (SLOTS + index * SLOT, SLOTS + len * SLOT);
        self.0.copy_within(from..to, from + SLOT);
        set(self.0, from, &(at as u16).to_le_bytes());
        set(self.0, from + 2, &(suffix.len() as u16).to_le_bytes());
        set(self.0, from + 4, &length(value).to_le_bytes());
        set(self.0, from + 6, &head(suffix).to_le_bytes());
        set(self.0, 40, &(at as u32).to_le_bytes());
        self.set_len(len + 1);
        self.hint(index);
        true
    }

    /// Removes a record.
    pub fn remove(&mut self, index: usize) {
        let node = self.node();
        let (len, record) = (node.len(), node.suffix(index).len() + node.value(index).bytes.len());
        let garbage = node.garbage() + record;
        self.set_garbage(garbage);
        let (from, to) = (SLOTS + (index + 1) * SLOT, SLOTS + len * SLOT);
        self.0.copy_within(from..to, from - SLOT);
        self.set_len(len - 1);
        self.hint(index);
    }

    /// Updates the hints after records from `changed` on have moved.
    fn hint(&mut self, changed: usize) {
        let len = self.node().len();
        let (step, before) = (len / (HINTS + 1), len.saturating_sub(1) / (HINTS + 1));
        let after = (len + 1) / (HINTS + 1);
        if step < 2 {
            return;
        }
        // If the spacing is unchanged, hints before the change are unchanged.
        let first = if step == before && step == after { (changed / step).saturating_sub(1) } else { 0 };
        for place in first..HINTS {
            let hint = self.node().head_at((place + 1) * step);
            set(self.0, 56 + 4 * place, &hint.to_le_bytes());
        }
    }

    /// Compacts the heap, so that the free space is contiguous.
    fn tidy(&mut self) {
        let old = self.0.to_vec();
        let old = Node(&old);
        let mut at = self.0.len() - old.low_len() - old.high_len();
        for index in 0..old.len() {
            let (suffix, value) = (old.suffix(index), old.value(index).bytes);
            at -= suffix.len() + value.len();
            set(self.0, at, suffix);
            set(self.0, at + suffix.len(), value);
            set(self.0, SLOTS + index * SLOT, &(at as u16).to_le_bytes());
        }
        set(self.0, 40, &(at as u32).to_le_bytes());
        self.set_garbage(0);
    }

    /// Rebuilds the node with other fences, keeping the records between them.
    pub fn refence(&mut self, (low, high): (&[u8], Option<&[u8]>)) {
        let old = self.0.to_vec();
        let node = Node(&old);
        let (page, tree) = (header::number(&old), header::tree(&old));
        let (structure_lsn, lsn) = (header::structure_lsn(&old), header::lsn(&old));
        let mut new = NodeMut::init(self.0, page, tree, node.level(), (low, high));
        for (key, value) in node.records() {
            if new.node().covers(&key) {
                new.push(&key, value);
            }
        }
        header::set_structure_lsn(self.0, structure_lsn);
        header::set_lsn(self.0, lsn);
    }

    /// Appends a record with the highest key. Returns false, with nothing changed, if there is no space.
    pub fn push(&mut self, key: &[u8], value: Cell<'_>) -> bool {
        let len = self.node().len();
        self.insert(len, key, value)
    }
}

fn length(value: Cell<'_>) -> u16 {
    value.bytes.len() as u16 | if value.large { LARGE } else { 0 }
}

/// The split point of a node that is full: the index of the first record of the right half. Both halves get
/// about the same bytes; if records arrive in ascending order, nearly all stay on the left.
pub fn middle(node: Node<'_>, ascending: bool) -> usize {
    let len = node.len();
    if ascending {
        return len - 1;
    }
    let half = node.used() / 2;
    let mut sum = 0;
    for index in 0..len {
        let cost = SLOT + node.suffix(index).len() + node.value(index).bytes.len();
        if sum + cost / 2 >= half && index > 0 {
            return index;
        }
        sum += cost;
    }
    len - 1
}

/// The shortest key that is above `left` and at most `right`. `right` must be above `left`.
pub fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let common = std::iter::zip(left, right).take_while(|(a, b)| a == b).count();
    &right[..common + 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn fresh(bytes: &mut [u8], fences: (&[u8], Option<&[u8]>)) {
        NodeMut::init(bytes, PageId(1), 1, 0, fences);
    }

    fn contents(bytes: &[u8]) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let node = Node::new(bytes).expect("a node");
        node.check().expect("a sound node");
        node.records().map(|(key, value)| (key, value.bytes.to_vec())).collect()
    }

    /// An empty key with an empty value is a record like any other, at every position of the heap.
    #[test]
    fn a_record_of_no_bytes_is_kept() {
        for size in [4096, 65536] {
            let mut bytes = vec![0; size];
            fresh(&mut bytes, (&[], None));
            let mut model = BTreeMap::new();
            let quarter = size / 4;
            // The longer value leaves garbage. The last long record fits only after the heap is compacted.
            let long =
                [(&b"a"[..], quarter - 9), (b"a", quarter), (b"b", quarter), (b"c", quarter), (b"d", 9)];
            let empty = [(&b""[..], 0), (b"", 3), (b"", 0)];
            for (key, length) in empty[..1].iter().chain(&long).chain(&empty).copied() {
                let value = vec![7; length];
                assert!(NodeMut::new(&mut bytes).put(key, Cell::inline(&value)));
                model.insert(key.to_vec(), value);
                assert_eq!(contents(&bytes), model);
            }
            NodeMut::new(&mut bytes).remove(0);
            model.remove(&b""[..]);
            assert_eq!(contents(&bytes), model);
        }
    }

    proptest! {
        /// Compared with the standard library's map. Keys are short and over a small alphabet, so that heads
        /// collide.
        #[test]
        fn a_node_is_a_map(
            operations in prop::collection::vec(
                (prop::collection::vec(0u8..3, 0..9), 0usize..200, 0u8..4), 0..400
            ),
            fenced in any::<bool>(),
        ) {
            let mut bytes = vec![0; 4096];
            let fences: (&[u8], Option<&[u8]>) =
                if fenced { (&[1, 1], Some(&[1, 1, 2, 2])) } else { (&[], None) };
            fresh(&mut bytes, fences);
            let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for (key, len, what) in operations {
                let key = if fenced { [&[1, 1][..], &key].concat() } else { key };
                let mut node = NodeMut::new(&mut bytes);
                if !node.node().covers(&key) {
                    continue;
                }
                let found = node.node().search(&key);
                prop_assert_eq!(found.is_ok(), model.contains_key(&key));
                prop_assert_eq!(found.unwrap_or_else(|at| at), model.range(..key.clone()).count());
                if what == 0 {
                    if let Ok(index) = found {
                        node.remove(index);
                    }
                    model.remove(&key);
                } else {
                    let value = vec![what; len];
                    let cost = node.node().cost(key.len(), len);
                    let old = model.get(&key).map_or(0, |old| node.node().cost(key.len(), old.len()));
                    let fits = node.node().free() + old >= cost;
                    prop_assert_eq!(node.put(&key, Cell::inline(&value)), fits);
                    if fits {
                        model.insert(key, value);
                    }
                }
                prop_assert_eq!(contents(&bytes), model.clone());
            }
        }

        /// A full node always splits into two, so that either takes one more of the largest records.
        #[test]
        fn a_full_node_divides(sizes in prop::collection::vec(1usize..1200, 3..60), last in 1usize..1280) {
            let mut bytes = vec![0; 4096];
            fresh(&mut bytes, (b"", None));
            let mut node = NodeMut::new(&mut bytes);
            for (index, size) in sizes.iter().enumerate() {
                let key = (index as u32 * 2).to_be_bytes();
                if !node.push(&key, Cell::inline(&vec![1; size.saturating_sub(4)])) {
                    break;
                }
            }
            let node = Node::new(&bytes).unwrap();
            prop_assume!(node.len() > 1);
            let at = middle(node, false);
            prop_assert!(at > 0 && at < node.len());
            let separator = separator(&node.key(at - 1), &node.key(at)).to_vec();
            prop_assert!(node.key(at - 1) < separator && separator <= node.key(at));
            for fences in [(&b""[..], Some(&separator[..])), (&separator[..], None)] {
                let mut half = bytes.clone();
                NodeMut::new(&mut half).refence(fences);
                let room = Node::new(&half).unwrap().free();
                let cost = Node::new(&half).unwrap().cost(4, last.saturating_sub(4));
                prop_assert!(room >= cost || Node::new(&half).unwrap().len() > 1, "{room} < {cost}");
            }
        }
    }
}
