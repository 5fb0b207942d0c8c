//! Nodes of a tree. A node is a slotted page with records sorted by key, between two fence keys.
//!
//! The records of a leaf are keys and values. The records of an inner node are separators and children (page
//! numbers of eight bytes). Child `i` covers the keys from separator `i` up to separator `i + 1`. The first
//! separator is the node's low fence. For all keys of a node, `low fence ≤ key < high fence`. The common
//! prefix of the fences is the *prefix* of every key in the node, and is stored once, in the low fence.
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
//! | 120– | slots of 10 bytes: offset (2), bytes of the suffix (2), of the value (2; top bit: large), head (4) |
//! | –end | heap: records, the high fence, the low fence last |
//!
//! The *suffix* of a key is the key without the prefix. The *head* of a key is the first four bytes of the
//! suffix, as a big-endian number. Most comparisons are decided by the heads.

mod read;
mod check;
mod change;
#[cfg(test)]
mod tests;

pub(crate) use change::{NodeMut, middle, separator};
pub(crate) use read::{Cell, Node, SLOT, leaf, longest_key, longest_record};
