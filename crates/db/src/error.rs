//! The reasons why a file cannot be opened as a store.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a store in a file could not be opened, made or copied. A file that exists was not changed.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The file cannot be opened as a drive.
    #[error(transparent)]
    Drive(#[from] fulgurite_uring::OpenError),
    /// The engine refused the options, or the store is damaged.
    #[error("{}: {error}", path.display())]
    Store {
        /// The path of the file.
        path: PathBuf,
        /// The error of the engine.
        error: fulgurite_engine::Error,
    },
    /// A system call failed.
    #[error("{}: {what}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The reason, which names the component of the path that caused it.
        what: String,
        /// The error that the system reported.
        error: io::Error,
    },
    /// There is no file at the path, and the options do not allow to make one.
    #[error("{} does not exist; accepted: a store, or Access::Create", .0.display())]
    Missing(PathBuf),
    /// The file exists, and a new one was asked for.
    #[error("{} exists; accepted: a new file", .0.display())]
    Exists(PathBuf),
    /// The file exists and holds no store.
    #[error("{} holds no store and is left as it is; accepted: a store, or a path without a file", .0.display())]
    NotAStore(PathBuf),
    /// An option differs from the store that exists.
    #[error("{name} {asked} was asked for, and the store in {} has {has}; accepted: {has}, or none; \
             a copy may differ (Db::copy)", path.display())]
    Differs {
        /// The path of the file.
        path: PathBuf,
        /// The name of the option.
        name: &'static str,
        /// The value of the option.
        asked: String,
        /// The value that the store has.
        has: String,
    },
    /// The size of the file is not a whole number of pages.
    #[error(
        "a size of {bytes} bytes is not a whole number of pages of {page_bytes}; accepted: a multiple, up to 1 EiB"
    )]
    Size {
        /// The size that was asked for, in bytes.
        bytes: u64,
        /// The size of a page in bytes.
        page_bytes: u32,
    },
}
