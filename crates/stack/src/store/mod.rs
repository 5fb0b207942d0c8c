//! A store in a file: what the commands `load`, `get`, `scan`, `stat`, `check`, `repair` and `backup` do.
//!
//! Only `load` writes to the store that it is given. The others open it through a drive that keeps what recovery
//! writes elsewhere ([`fulgurite_uring::OverlayDevice`]), so they change no byte of it, and a store that was not
//! closed is recovered for them alone. What they make (`OUT`, a new store of `load`) appears whole or not at all;
//! see `new_file.rs`.
//!
//! The functions that read and write other files inside an executor's tasks block there: one task runs, so there
//! is nobody who would wait for it.

mod backup;
mod check;
mod file;
mod get;
mod input;
mod load;
mod new_file;
mod open;
mod repair;
mod scan;
mod stat;
mod text;

pub use backup::backup;
pub use check::check;
pub use get::{Value, get};
pub use load::{LoadAsked, load};
pub use open::StoreFile;
pub use repair::repair;
pub use scan::{Form, ScanAsked, scan};
pub use stat::stat;

use crate::{Row, StackError};

/// What a command has to say.
#[derive(Debug)]
pub struct Said {
    /// For programs.
    pub rows: Vec<Row>,
    /// For people, where words say it better than a table.
    pub text: Option<String>,
    /// Whether all is well; said after the rest.
    pub verdict: Result<(), StackError>,
}
