//! The commands over a store in a file: `load`, `get`, `scan`, `stat`, `check`, `repair` and `backup`; and opening one for a
//! program.
//!
//! Of the commands only `load` writes to the store that it is given. The others open the store through a drive that keeps recovery's
//! writes elsewhere ([`fulgurite_uring::OverlayDevice`]). So they change no byte of it, and a store that was not closed
//! is recovered only for them. A new file (`OUT`, or a new store of `load`) appears whole or not at all; see
//! `new_file.rs`.
//!
//! Some functions read and write other files inside a task of an executor and block there. That does no harm, because
//! only one task runs.

mod backup;
mod check;
mod database;
mod file;
mod get;
mod input;
mod load;
mod new_file;
mod open;
mod repair;
mod report;
mod scan;
mod shared_drive;
mod stat;
mod text;

pub use backup::backup;
pub use check::check;
pub use database::{NewStore, create, open};
pub use get::{Value, get};
pub use load::{LoadAsked, load};
pub use open::StoreFile;
pub use repair::repair;
pub use report::Report;
pub use scan::{Form, ScanAsked, scan};
pub use shared_drive::SharedDrive;
pub use stat::stat;
