//! Changes the records and fences of a node.

use super::read::{Cell, HINTS, LARGE, Node, SLOT, SLOTS, head};
use crate::format::page::header::{self, Kind, get_u16, set};
use fulgurite_base::PageId;

pub(crate) struct NodeMut<'a>(&'a mut [u8]);

impl<'a> NodeMut<'a> {
    /// Wraps a page that contains a node.
    pub(crate) fn new(bytes: &'a mut [u8]) -> NodeMut<'a> {
        NodeMut(bytes)
    }

    /// Makes `bytes` an empty node with these fences.
    pub(crate) fn init(
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

    #[inline]
    pub(crate) fn node(&self) -> Node<'_> {
        Node(self.0)
    }

    fn set_len(&mut self, len: usize) {
        set(self.0, 36, &(len as u16).to_le_bytes());
    }

    fn set_garbage(&mut self, bytes: usize) {
        set(self.0, 44, &(bytes as u32).to_le_bytes());
    }

    /// Inserts or replaces a record. Returns false and changes nothing if the node has no space.
    pub(crate) fn put(&mut self, key: &[u8], value: Cell<'_>) -> bool {
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
        // The insertion succeeds, because the space was checked above.
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

    pub(crate) fn remove(&mut self, index: usize) {
        let node = self.node();
        let (len, record) = (node.len(), node.suffix(index).len() + node.value(index).bytes.len());
        let garbage = node.garbage() + record;
        self.set_garbage(garbage);
        let (from, to) = (SLOTS + (index + 1) * SLOT, SLOTS + len * SLOT);
        self.0.copy_within(from..to, from - SLOT);
        self.set_len(len - 1);
        self.hint(index);
    }

    /// Updates the hints after the records from index `changed` on have moved.
    fn hint(&mut self, changed: usize) {
        let len = self.node().len();
        let (step, before) = (len / (HINTS + 1), len.saturating_sub(1) / (HINTS + 1));
        let after = (len + 1) / (HINTS + 1);
        if step < 2 {
            return;
        }
        // If the distance between hinted records is unchanged, hints before the changed record are unchanged.
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

    /// Rebuilds the node with new fences, and keeps the records between them.
    pub(crate) fn refence(&mut self, (low, high): (&[u8], Option<&[u8]>)) {
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

    /// Appends a record with the highest key. Returns false and changes nothing if the node has no space.
    pub(crate) fn push(&mut self, key: &[u8], value: Cell<'_>) -> bool {
        let len = self.node().len();
        self.insert(len, key, value)
    }
}

fn length(value: Cell<'_>) -> u16 {
    value.bytes.len() as u16 | if value.large { LARGE } else { 0 }
}

/// Returns the split point of a full node: the index of the first record of the right node. Both nodes get
/// about the same number of bytes. If records arrive in ascending order (`ascending`), all records but the
/// last stay in the left node.
pub(crate) fn middle(node: Node<'_>, ascending: bool) -> usize {
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

/// Returns the shortest key that is above `left` and at most `right`. `right` must be above `left`.
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    let common = std::iter::zip(left, right).take_while(|(a, b)| a == b).count();
    &right[..common + 1]
}
