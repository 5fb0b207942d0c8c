//! Work on a whole store: backup, check, repair, making it smaller, measuring its trees.

pub mod backup;
pub mod check;
pub mod compact;
pub mod repair;
pub mod tree_shape;
