//! Trees by number, and the trees of every store.

use fulgurite_base::PageId;

/// The tree of the names of tables and indexes.
pub(crate) const CATALOGUE: u32 = 0;
/// The tree of large values.
pub(crate) const LARGE: u32 = 1;
/// The first tree of a user's table or index.
pub(crate) const FIRST_USER_TREE: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tree {
    pub id: u32,
    pub root: PageId,
}
