//! Tools for a whole store: backup, check, compaction, repair, and the shape of its trees.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod repair;
pub(crate) mod tree_shape;
