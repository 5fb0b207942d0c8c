//! Pages on the drive: the header that all of them have, and its checksum.
//!
//! | bytes | header field |
//! |---|---|
//! | 0–4 | CRC-32C of the rest of the page, started from the store's salt (the low 32 bits of its identity) |
//! | 4 | kind: 1 leaf, 2 inner node, 3 map of used pages, 4 free; 0 is no page of a store |
//! | 5 | level: 0 for a leaf |
//! | 6–8 | reserved, zero |
//! | 8–16 | the page's own number |
//! | 16–24 | structure LSN: the last structure change that the page contains |
//! | 24–32 | LSN: the end of the log when the page was last changed |
//! | 32–36 | the tree that it belongs to |
//!
//! Numbers are little-endian. [`node`] and [`map`] describe the rest of the page.

mod header;
pub(crate) mod map;
pub(crate) mod node;

pub(crate) use header::*;

/// Returns the first fault of a page whose checksum is right, or `None`. Only a bug or an attack causes such
/// a fault. For pages of 4 KiB, the check of a leaf with 34 records takes 86 ns, compared with 156 ns for the
/// checksum. The check of a node with 200 records takes 327 ns. (Measured by `cost_of_checking_a_node`.)
pub(crate) fn fault(bytes: &[u8]) -> Option<String> {
    node::Node::new(bytes).and_then(|node| node.check().err())
}
