//! Opens a store in a file.

use crate::new_file::refuse_standard;
use crate::text;
use fulgurite_base::units;
use fulgurite_db::{FileDrive, shape};
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, Error, Options, SHARDS, Store, Table};
use fulgurite_files::{holds_store, obstacle};
use fulgurite_stack::device::AnyDrive;
use fulgurite_stack::{StackError, Unit, memory};
use fulgurite_uring::{DriveOptions, OpenError, OverlayDevice, ReadOnlyFile};
use std::path::{Path, PathBuf};

/// The least memory of a command in bytes, which suffices for enough frames of the largest page size.
const LEAST_MEMORY: u64 = 2 << 20;
/// Bytes of memory that a store of any size may use. Memory beyond this and beyond twice the store's size
/// would stay unused.
const ANY_MEMORY: u64 = 64 << 20;

/// The file of a store, and the memory for the store.
#[derive(Clone, Debug)]
pub struct StoreFile {
    /// The path of the file or block device.
    pub path: PathBuf,
    /// Bytes of memory for the store; `None` for the default.
    memory_bytes: Option<u64>,
}

/// An open store, and the executor that runs its tasks.
pub(crate) struct Opened {
    pub executor: Executor<AnyDrive>,
    pub store: Store,
}

impl StoreFile {
    /// Whether the user gave `--memory`.
    pub(crate) fn has_memory(&self) -> bool {
        self.memory_bytes.is_some()
    }

    /// Describes the store in the file at `path`; `memory` is the value of `--memory`. The file is not
    /// opened.
    pub fn new(path: PathBuf, memory: Option<&str>) -> Result<StoreFile, StackError> {
        refuse_standard("FILE", &path)?;
        let memory_bytes = read_size("--memory", memory)?;
        if let Some(memory_bytes) = memory_bytes.filter(|bytes| *bytes < LEAST_MEMORY) {
            return Err(StackError::request(format!(
                "--memory {} is too little for a store; accepted: {} or more",
                units::format_size(memory_bytes),
                units::format_size(LEAST_MEMORY)
            )));
        }
        Ok(StoreFile { path, memory_bytes })
    }

    /// Returns the options for the store in a file of `bytes` bytes.
    pub(crate) fn options(&self, bytes: u64) -> Result<Options, StackError> {
        let map_memory = shape(&self.path).map_or(0, |shape| shape.map_memory);
        let memory_bytes = self.memory(bytes, map_memory)?;
        // Commits need not wait for the drive, since a load makes its records durable when it closes the
        // store.
        Ok(Options { memory_bytes, durability: Durability::Relaxed, ..Options::default() })
    }

    /// Returns the bytes of memory for a store in a file of `bytes` bytes. The default is that of the engine
    /// plus `map_memory`, which the map of pages out of place takes.
    pub(crate) fn memory(&self, bytes: u64, map_memory: u64) -> Result<u64, StackError> {
        let typed = self.memory_bytes.unwrap_or(Options::default().memory_bytes + map_memory);
        let most = bytes.saturating_mul(2).max(ANY_MEMORY + map_memory);
        let what = match self.memory_bytes {
            Some(typed) => format!("--memory {}", units::format_size(typed)),
            // Name the store instead of an option, because the user has not asked for this memory.
            None => format!("a store of {}", Unit::Bytes.humane(bytes as f64)),
        };
        memory::check(&what, typed.min(most))?;
        Ok(typed.min(most))
    }

    /// Opens the file for reading. Meanwhile no other process may have the file open for writing.
    pub(crate) fn read_only(&self) -> Result<ReadOnlyFile, StackError> {
        ReadOnlyFile::open(&self.path).map_err(|error| refused(&self.path, error))
    }

    /// Opens a drive with the contents of the file. Writes to this drive do not change the file. Also returns
    /// the options for a store on this drive.
    pub(crate) fn overlay(&self) -> Result<(Executor<AnyDrive>, Options), StackError> {
        let file = self.read_only()?;
        let options = self.options(file.bytes())?;
        let beside = tempfile::tempfile().map_err(|error| {
            StackError::run(format!(
                "no temporary file can be made in {}: {error}",
                std::env::temp_dir().display()
            ))
        })?;
        let drive: AnyDrive = Box::new(OverlayDevice::new(file, beside));
        Ok((Executor::new(drive), options))
    }

    /// Opens the store without a change to the file.
    pub(crate) fn open_to_read(&self) -> Result<Opened, StackError> {
        let (executor, options) = self.overlay()?;
        let opening = Store::open(executor.handle(), options);
        let store =
            executor.block_on(opening).map_err(StackError::run)?.map_err(|error| self.failed(&error))?;
        let opened = Opened { executor, store };
        self.refuse_shard(&opened)?;
        Ok(opened)
    }

    /// Refuses a file that holds only one shard of a store, because such a file has only some of the keys.
    pub(crate) fn refuse_shard(&self, opened: &Opened) -> Result<(), StackError> {
        let store = opened.store.clone();
        let found = opened.executor.block_on(async move { store.table(SHARDS).await });
        if found.map_err(StackError::run)?.is_err() {
            return Ok(());
        }
        Err(StackError::request(format!(
            "{} is one drive of a store of several shards, which only a program opens (blocking::Db); accepted: a \
                store in one file",
            self.path.display()
        )))
    }

    /// Whether the file holds a store.
    pub(crate) fn holds_store(&self) -> bool {
        holds_store(&self.path)
    }

    /// Returns the error of a command for an error of the engine.
    pub(crate) fn failed(&self, error: &Error) -> StackError {
        let file = self.path.display();
        match error {
            Error::NotAStore => StackError::request(format!(
                "{file} holds no store; accepted: a file with a store, as fulgurite load makes it"
            )),
            Error::Version { .. } => StackError::request(format!("{file}: {error}")),
            Error::MapMemory { needed, given } => {
                memory::too_little_for_map(&format!("in {file}"), *given, *needed)
            }
            error if is_damage(error) => StackError::run(format!(
                "{file}: {error}; fulgurite check says what is lost, fulgurite repair saves the rest"
            )),
            error => StackError::run(format!("{file}: {error}")),
        }
    }

    /// Returns the table called `name`. The error lists the tables that exist.
    pub(crate) async fn table(&self, store: &Store, name: &str) -> Result<Table, StackError> {
        match store.table(name).await {
            Err(Error::NoTable(_)) => {
                let tables = store.tables().await.map_err(|error| self.failed(&error))?;
                let mut names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                let accepted =
                    if names.is_empty() { "none, it is empty".to_owned() } else { names.join(", ") };
                // Escape the name, which may be empty or contain a line break.
                let name = if name.is_empty() { "``".to_owned() } else { text::escape(name.as_bytes()) };
                Err(StackError::request(format!(
                    "TABLE {name} is not in {}; accepted: {accepted}",
                    self.path.display()
                )))
            }
            found => found.map_err(|error| self.failed(&error)),
        }
    }
}

/// Whether an error means that the store is damaged. Wrong options mean damage too: the only options that can
/// be wrong for an existing store are the sizes that it holds itself.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::LogCorrupt { .. } | Error::Options(_))
}

/// Opens a drive in a file for writing by one thread.
pub(crate) fn open_drive(path: &Path, options: &DriveOptions) -> Result<AnyDrive, StackError> {
    let drive = FileDrive::open(path, options).map_err(|error| refused(path, error))?;
    Ok(match drive {
        #[cfg(target_os = "linux")]
        FileDrive::Uring(drive) => drive,
        FileDrive::Psync(drive) => drive,
        FileDrive::Overlay(drive) => drive,
    })
}

pub(crate) fn refused(path: &Path, error: OpenError) -> StackError {
    let file = path.display();
    StackError::request(match error {
        OpenError::NotOurs(_) => format!(
            "{file} lacks Fulgurite's mark behind its last page: the file was cut, or something was written behind \
                it; fulgurite repair saves what is there"
        ),
        OpenError::InUse(_) => {
            format!("{file} is in use; while one process writes a store, no other process may open it")
        }
        OpenError::Io { error, .. } if error.kind() == std::io::ErrorKind::NotFound => {
            format!("FILE {file} does not exist; accepted: a file or block device that holds a store")
        }
        OpenError::Io { error, .. } => format!(
            "FILE {file} cannot be opened: {}; accepted: a file or block device that holds a store",
            obstacle(path, &error)
        ),
        OpenError::NotADrive(_) => {
            format!("FILE {file} is neither a file nor a block device; accepted: one of them")
        }
        error => error.to_string(),
    })
}

/// Reads the size that is the value of `argument`; `None` if the argument was not given.
pub(crate) fn read_size(argument: &str, text: Option<&str>) -> Result<Option<u64>, StackError> {
    let size = text.map(units::parse_size).transpose();
    size.map_err(|error| StackError::request(format!("{argument}: {error}")))
}

/// Reads a key, which is text with escapes.
pub(crate) fn read_key(argument: &str, text: &str) -> Result<Vec<u8>, StackError> {
    text::unescape(text.as_bytes())
        .map_err(|error| StackError::request(format!("{argument} {text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_file::NewFile;
    use fulgurite_engine::blocking::Db;

    #[test]
    fn one_shard_of_several_is_no_store_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["shard", "other"].map(|name| folder.path().join(name));
        let new = [&path, &other].map(|path| NewFile::begin("FILE", path, 8 << 20).unwrap());
        let drives = new
            .iter()
            .map(|new| {
                let options = DriveOptions { many_threads: true, ..DriveOptions::default() };
                fulgurite_uring::PsyncDevice::open(&new.unfinished(), &options).unwrap()
            })
            .collect();
        let file = StoreFile::new(path, None).unwrap();
        let options = Options { log_bytes: 1 << 20, ..file.options(8 << 20).unwrap() };
        let db = Db::create(drives, options).unwrap();
        db.create_table("own").unwrap();
        db.close().unwrap();
        drop(db);
        new.into_iter().for_each(|new| new.finish().unwrap());
        let refused = file.open_to_read().map(drop).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("several shards"), "{refused}");
    }
}
