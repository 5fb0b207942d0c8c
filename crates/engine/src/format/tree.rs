//! The identity of a tree, and the numbers of the trees that every store has.

use fulgurite_base::PageId;

/// The number of the catalogue, the tree of the names of tables and indexes.
pub(crate) const CATALOGUE: u32 = 0;
/// The number of the tree of large values.
pub(crate) const LARGE: u32 = 1;
/// The first number of a tree of a user's table or index.
pub(crate) const FIRST_USER_TREE: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tree {
    pub id: u32,
    pub root: PageId,
}
