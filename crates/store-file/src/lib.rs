//! Opens a store in a file for a program, and implements the commands `load`, `get`, `scan`, `stat`, `check`,
//! `repair`, `compact` and `backup`.
//!
//! Only `load` and `compact` write to an existing store. The other commands open the store through
//! [`fulgurite_uring::OverlayDevice`], which writes to a temporary file. So they do not change the store, and
//! the writes of recovery after a crash stay in that temporary file. A new file (`OUT`, or a new store of
//! `load`) is either complete or absent; see `new_file.rs`.
//!
//! Some functions block on other files inside a task of an executor. This is harmless because only one task
//! runs.

mod new_file;
mod report;
mod text;
mod input;
mod open;
mod check;
mod new_store;
mod database;
mod backup;
mod load;
mod repair;
mod compact;
mod scan;
mod get;
mod stat;

pub use backup::{backup, backup_open, copy, copy_open};
pub use check::check;
pub use compact::compact;
pub use database::{create, open};
pub use get::{Value, get};
pub use load::{LoadAsked, load};
pub use new_store::NewStore;
pub use open::StoreFile;
pub use repair::repair;
pub use report::Report;
pub use scan::{Form, ScanAsked, scan};
pub use stat::stat;
