//! A store in a file, for programs that embed it.
//!
//! [`Db::open`] opens the store in a file, and makes what is not there. A [`Db`] dereferences to the engine's
//! [`blocking::Db`](fulgurite_engine::blocking::Db), which has the tables and transactions, and which any thread may
//! use. This crate adds the file: its size, its growth, and copies of it.
//!
//! ```
//! use fulgurite_db::{Db, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("shop.store");
//! let db = Db::open(&path, Options::default())?;
//! let users = db.create_table("users")?;
//! db.put(&users, b"ada", b"1815")?;
//! assert_eq!(db.get(&users, b"ada")?, Some(b"1815".to_vec()));
//! db.close()?;
//! # Ok(())
//! # }
//! ```

mod error;
pub mod keys;
mod options;
mod shape;
mod drive;
mod new_file;
mod image;
mod db;
#[cfg(feature = "metrics")]
mod metrics;

pub use db::Db;
pub use drive::FileDrive;
pub use error::OpenError;
pub use fulgurite_base::Nanos;
pub use fulgurite_engine::blocking::{Extract, Index, Keeper, Records, Snapshot, Table, Transaction};
pub use fulgurite_engine::{
    BackupReport, CheckReport, CompactReport, Direction, Durability, Error, IndexRow,
    Options as EngineOptions, PlaceConfig, Prefix, Problem, Record, Statistics, prefix,
};
pub use image::{FileSink, FileSource, FileWriter};
pub use new_file::NewFile;
pub use options::{Access, Options};
pub use shape::shape;
