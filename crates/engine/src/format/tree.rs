//! Trees by number, and the trees of every store.

use fulgurite_base::PageId;

/// The tree of the names of tables and indexes.
pub const CATALOGUE: u32 = 0;
/// The tree of large values.
pub const LARGE: u32 = 1;
/// The first tree of a user's table or index.
pub const FIRST_USER_TREE: u32 = 2;

/// A tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree {
    /// Its number.
    pub id: u32,
    /// Its root.
    pub root: PageId,
}
