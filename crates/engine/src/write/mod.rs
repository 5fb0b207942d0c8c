//! Where pages are written, and what protects them: the seam between the pool and the drive.
//!
//! [`InPlace`] puts a page at its own number. It seals the page with its checksum, waits until the log of its changes
//! is durable, protects the write as [`TornPages`](crate::TornPages) says, and notes how far each changed page is behind
//! the log, which is what checkpoints go by.

mod changed;
mod double_write;
mod in_place;

pub use double_write::restore_torn;
pub use in_place::{BATCH, InPlace, write, writes};
