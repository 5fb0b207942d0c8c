//! Trees by number, with the trees that every store has.

use fulgurite_base::PageId;

/// The tree of tables and indexes by name.
pub const CATALOGUE: u32 = 0;
/// The tree of the pieces of large values.
pub const LARGE: u32 = 1;
/// The first tree of a user.
pub const FIRST_USER_TREE: u32 = 2;

/// A tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tree {
    /// Its number.
    pub id: u32,
    /// Its root.
    pub root: PageId,
}
