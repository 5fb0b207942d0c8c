//! Reads and writes files that a user names.
//!
//! [`output`] writes output files and checks their paths. [`unfinished`] holds a file that has no name until
//! it is complete. [`obstacle`] describes why the system refused a path. [`free_bytes`] tells how much room
//! a file system has, and [`holds_store`] whether a file holds a store.

mod obstacle;
mod room;
mod store;
pub mod unfinished;
pub mod output;

pub use obstacle::obstacle;
pub use room::free_bytes;
pub use store::holds_store;
