//! Reads and writes files that a user names.
//!
//! [`output`] writes output files and checks their paths. [`unfinished`] holds a file that has no name until
//! it is complete. [`obstacle`] describes why the system refused a path. [`holds_store`] tells whether a file
//! holds a store.

mod obstacle;
mod store;
pub mod unfinished;
pub mod output;

pub use obstacle::obstacle;
pub use store::holds_store;
