//! Where pages are written, and what protects them: the seam between the pool and the drive.
//!
//! [`Pages`] is what the pool sees. It seals a page with its checksum, waits until the log of its changes is durable, and notes
//! how far each changed page is behind the log, which is what checkpoints go by. Where the page goes is a [`Place`]: in place,
//! at its own number, protected as [`TornPages`](crate::TornPages) says; or out of place, where a map says.

mod bound;
mod changed;
mod double_write;
mod in_place;
pub mod out_of_place;
mod pages;
mod place;
mod sealed;

pub use double_write::{Area, restore_torn};
pub use in_place::InPlace;
pub use pages::Pages;
pub use place::Place;
pub use sealed::{Sealed, is_there, writes};

/// Pages that are written together at most; a larger batch is divided.
pub const BATCH: usize = 64;
