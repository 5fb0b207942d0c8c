//! Reads the records and fences of a node.

use crate::Error;
use crate::format::page::header::{self, Kind, get_u16, get_u32, get_u64};
use fulgurite_base::PageId;
use std::cmp::Ordering;

/// The offset of the slots in the page.
pub(super) const SLOTS: usize = 120;
/// The bytes of a record's slot.
pub(crate) const SLOT: usize = 10;
pub(super) const HINTS: usize = 16;
/// The bit of a value's length that marks a reference to a large value.
pub(super) const LARGE: u16 = 1 << 15;

/// Returns the length of the longest key for pages of this size, in bytes.
pub(crate) const fn longest_key(page_bytes: u32) -> usize {
    page_bytes as usize / 8
}

/// Returns the size of the largest record in a leaf, key and value together, in bytes. Even a leaf with two
/// records of this size and two fences of the longest kind can be split.
pub(crate) const fn longest_record(page_bytes: u32) -> usize {
    page_bytes as usize * 5 / 16
}

/// A value as stored in a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    /// The bytes of the value, or of the reference to a large value.
    pub bytes: &'a [u8],
    /// Whether `bytes` is a reference to a large value.
    pub large: bool,
}

impl<'a> Cell<'a> {
    /// Creates the cell of a value that is stored in the leaf itself.
    pub(crate) fn inline(bytes: &'a [u8]) -> Cell<'a> {
        Cell { bytes, large: false }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(pub(super) &'a [u8]);

pub(super) fn head(suffix: &[u8]) -> u32 {
    match suffix {
        [a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        _ => {
            let mut padded = [0; 4];
            padded[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(padded)
        }
    }
}

/// Returns the node in a page to which a search has led. Fails if the page is no node.
#[inline]
pub(crate) fn leaf(bytes: &[u8]) -> Result<Node<'_>, Error> {
    Node::new(bytes).ok_or_else(|| Error::corrupt(header::number(bytes), "it is not a node"))
}

impl<'a> Node<'a> {
    /// Returns the node in a page; `None` if the page is no node.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Option<Node<'a>> {
        matches!(header::kind(bytes), Some(Kind::Leaf | Kind::Inner)).then_some(Node(bytes))
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(get_u16(self.0, 36))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the level of the node; 0 for a leaf.
    #[inline]
    pub(crate) fn level(&self) -> u8 {
        header::level(self.0)
    }

    #[inline]
    pub(super) fn prefix_len(&self) -> usize {
        usize::from(get_u16(self.0, 38))
    }

    pub(super) fn heap(&self) -> usize {
        get_u32(self.0, 40) as usize
    }

    pub(super) fn garbage(&self) -> usize {
        get_u32(self.0, 44) as usize
    }

    pub(super) fn low_len(&self) -> usize {
        usize::from(get_u16(self.0, 48))
    }

    pub(super) fn high_len(&self) -> usize {
        usize::from(get_u16(self.0, 50))
    }

    /// Returns the low fence, the lower bound of all keys.
    #[inline]
    pub(crate) fn low(&self) -> &'a [u8] {
        &self.0[self.0.len() - self.low_len()..]
    }

    /// Returns the high fence. All keys are below it. `None` for the last node of a level.
    #[inline]
    pub(crate) fn high(&self) -> Option<&'a [u8]> {
        let end = self.0.len() - self.low_len();
        (self.0[52] == 0).then(|| &self.0[end - self.high_len()..end])
    }

    /// Returns the common prefix of all keys.
    #[inline]
    pub(crate) fn prefix(&self) -> &'a [u8] {
        &self.low()[..self.prefix_len()]
    }

    /// Whether `key` is between the fences.
    #[inline]
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        self.low() <= key && self.high().is_none_or(|high| key < high)
    }

    #[inline]
    pub(super) fn slot(&self, index: usize) -> &'a [u8] {
        &self.0[SLOTS + index * SLOT..][..SLOT]
    }

    #[inline]
    pub(super) fn head_at(&self, index: usize) -> u32 {
        get_u32(self.0, SLOTS + index * SLOT + 6)
    }

    /// Returns the key of a record without the prefix.
    #[inline]
    pub(crate) fn suffix(&self, index: usize) -> &'a [u8] {
        let slot = self.slot(index);
        let at = usize::from(get_u16(slot, 0));
        &self.0[at..at + usize::from(get_u16(slot, 2))]
    }

    pub(crate) fn key(&self, index: usize) -> Vec<u8> {
        [self.prefix(), self.suffix(index)].concat()
    }

    #[inline]
    pub(crate) fn value(&self, index: usize) -> Cell<'a> {
        let slot = self.slot(index);
        let at = usize::from(get_u16(slot, 0)) + usize::from(get_u16(slot, 2));
        let len = get_u16(slot, 4);
        Cell { bytes: &self.0[at..at + usize::from(len & !LARGE)], large: len & LARGE != 0 }
    }

    /// Returns the child at an index of an inner node.
    #[inline]
    pub(crate) fn child(&self, index: usize) -> PageId {
        PageId(get_u64(self.value(index).bytes, 0))
    }

    /// Whether a page is the child at `index` of this inner node, judged by the level and the fences of the
    /// page. The function copies nothing.
    pub(crate) fn has_child(&self, index: usize, page: &[u8]) -> bool {
        let Some(child) = Node::new(page) else { return false };
        let is_key =
            |index: usize, fence: &[u8]| fence.strip_prefix(self.prefix()) == Some(self.suffix(index));
        let high = match child.high() {
            Some(fence) if index + 1 < self.len() => is_key(index + 1, fence),
            fence => index + 1 == self.len() && fence == self.high(),
        };
        usize::from(child.level()) + 1 == usize::from(self.level()) && is_key(index, child.low()) && high
    }

    /// Returns the index of `key`, or its insertion point as an error.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        // All keys between the fences begin with the prefix. Any other key is below or above all of them.
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

    /// Returns the range of the records that may have the head `wanted`, according to the hints.
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

    /// Returns the index of the child that covers `key`.
    #[inline]
    pub(crate) fn child_for(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(index) => index,
            Err(index) => index.saturating_sub(1),
        }
    }

    /// Returns the number of free bytes, including garbage.
    pub(crate) fn free(&self) -> usize {
        self.heap() - SLOTS - self.len() * SLOT + self.garbage()
    }

    /// Returns the number of bytes of the records and their slots.
    pub(crate) fn used(&self) -> usize {
        self.0.len() - SLOTS - self.low_len() - self.high_len() - self.free()
    }

    /// Returns the number of bytes that a record of this size would take in this node.
    pub(crate) fn cost(&self, key_len: usize, value_len: usize) -> usize {
        SLOT + key_len - self.prefix_len() + value_len
    }

    /// Iterates over the records, with full keys.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Vec<u8>, Cell<'a>)> + use<'a> {
        let node = *self;
        (0..node.len()).map(move |index| (node.key(index), node.value(index)))
    }

    /// Returns the end of the slots and the offset of the heap. The bytes between the two are free.
    pub(crate) fn parts(&self) -> (usize, usize) {
        (SLOTS + self.len() * SLOT, self.heap())
    }
}
