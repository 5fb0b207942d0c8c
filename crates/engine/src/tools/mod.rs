//! Tools for a whole store: backup, check, compaction, repair, the shape of its trees.

pub mod backup;
pub mod check;
pub mod compact;
pub mod repair;
pub mod tree_shape;
