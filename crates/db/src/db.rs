//! The store in a file: opens and makes it, and copies it into other files.

use crate::drive::FileDrive;
use crate::image::FileWriter;
use crate::new_file::{NewFile, io_error};
use crate::options::{Access, Options};
use crate::{OpenError, shape};
use fulgurite_base::units::format_size;
use fulgurite_engine::blocking;
use fulgurite_engine::{
    BackupReport, Direction, Durability, Error, Options as EngineOptions, PlaceConfig, StoreShape,
};
use fulgurite_uring::{DriveOptions, ReadOnlyFile};
use std::fs;
use std::ops::{Bound, Deref};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The size of the pages of a drive in a file, in bytes.
const FILE_PAGE: u32 = 4096;
/// The largest file in bytes.
const MOST_BYTES: u64 = 1 << 60;

/// A store in a file, which any thread may use. Clones are handles of the same store.
///
/// It dereferences to [`blocking::Db`], which has the tables, transactions and snapshots. Call
/// [`close`](blocking::Db::close) first if the next opening should be fast.
#[derive(Clone)]
pub struct Db {
    db: blocking::Db,
    path: PathBuf,
}

impl Deref for Db {
    type Target = blocking::Db;

    fn deref(&self) -> &blocking::Db {
        &self.db
    }
}

impl Db {
    /// Opens the store in the file at `path`. After a crash this recovers it. Makes the store if there is no file,
    /// unless the options say otherwise; the new file appears with the store in it, or does not appear. While the store
    /// is open for writing, no other process can open it.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db, OpenError> {
        let path = path.as_ref();
        if options.access == Access::Create && fs::symlink_metadata(path).is_err() {
            match Db::create(path, &options) {
                // Another process has just made the file.
                Err(OpenError::Exists(_)) => {}
                made => return made,
            }
        }
        Db::open_existing(path, &options)
    }

    /// Makes an empty store in a new file.
    fn create(path: &Path, options: &Options) -> Result<Db, OpenError> {
        let (new, db) = make(path, options)?;
        new.finish()?;
        Ok(Db { db, path: path.to_owned() })
    }

    fn open_existing(path: &Path, options: &Options) -> Result<Db, OpenError> {
        if fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Err(OpenError::Missing(path.to_owned()));
        }
        // The file is locked for reading first, to report a path that is no file, and a store that is in use.
        let file = ReadOnlyFile::open(path)?;
        if !fulgurite_files::holds_store(path) {
            return Err(OpenError::NotAStore(path.to_owned()));
        }
        // A store whose superblocks cannot be read is left to the engine, which says why.
        let shape = shape(path);
        if let Some(shape) = shape {
            refuse_other_shape(path, options, &shape)?;
        }
        let is_read = options.access == Access::Read;
        let map_memory = shape.map_or(0, |shape| shape.map_memory);
        let usual = EngineOptions::default().memory_bytes + map_memory;
        let mut engine = EngineOptions {
            memory_bytes: options.memory_bytes.unwrap_or(usual),
            read_only: is_read,
            ..options.engine.clone()
        };
        let drive = if is_read {
            let beside = tempfile::tempfile().map_err(|error| io_error(&std::env::temp_dir(), error))?;
            FileDrive::overlay(file, beside)
        } else {
            drop(file);
            let has = fulgurite_uring::check(path, &shared())? * u64::from(FILE_PAGE);
            let asked = options.size_bytes.unwrap_or(has);
            if asked != has {
                refuse_size(path, asked, has, shape)?;
            }
            engine.grow = options.size_bytes.is_some() && shape.is_some_and(|shape| !shape.is_out_of_place);
            FileDrive::open(path, &DriveOptions { pages: Some(asked / u64::from(FILE_PAGE)), ..shared() })?
        };
        let db = drive.open_store(engine).map_err(|error| refused(path, error))?;
        Ok(Db { db, path: path.to_owned() })
    }

    /// Returns a handle whose calls can be cancelled; see [`blocking::Db::asking`].
    pub fn asking(&self, goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Db {
        Db { db: self.db.asking(goes_on), path: self.path.clone() }
    }

    /// Returns the path of the file, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the bytes that the file takes on the disk. They are fewer than its length while the store fills, and
    /// after [`compact`](blocking::Db::compact).
    pub fn disk_bytes(&self) -> Result<u64, OpenError> {
        let found = fs::metadata(&self.path).map_err(|error| io_error(&self.path, error))?;
        // The system counts blocks of 512 bytes, independent of the file system's block size.
        Ok(found.blocks() * 512)
    }

    /// Copies the store into a new file while it is in use. The copy contains every commit that was acknowledged before
    /// this call, and has the sizes of the store and its pages in place. The file gets its name when it is complete.
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<BackupReport, OpenError> {
        let path = path.as_ref();
        let bytes = shape(&self.path).map(|shape| shape.bytes.next_multiple_of(u64::from(FILE_PAGE)));
        let bytes = bytes.ok_or_else(|| refused(&self.path, Error::NotAStore))?;
        let new = NewFile::begin(path, bytes)?;
        let writer = FileWriter::new(new.file().map_err(|error| io_error(path, error))?);
        let made = self.db.backup_into(|_, handle| Ok(writer.sink(handle)));
        let reports = made.map_err(|error| match writer.take_error() {
            Some(error) => io_error(path, error),
            None => refused(&self.path, error),
        })?;
        new.finish()?;
        Ok(reports.into_iter().next().unwrap_or_default())
    }

    /// Copies the records of all tables, as one snapshot shows them, into a new store with the sizes and the place of
    /// these options. Unlike a [`backup`](Db::backup) it may have other sizes, it has full pages, and it has no
    /// indexes: `create_index` makes them again. Returns the number of records. The file gets its name when it is
    /// complete.
    pub fn copy(&self, path: impl AsRef<Path>, options: Options) -> Result<u64, OpenError> {
        let path = path.as_ref();
        let relaxed = EngineOptions { durability: Durability::Relaxed, ..options.engine.clone() };
        let (new, copy) = make(path, &Options { engine: relaxed, ..options })?;
        let from = |error| refused(&self.path, error);
        let snapshot = self.db.snapshot().map_err(from)?;
        let mut records = 0;
        for name in self.db.tables().map_err(from)? {
            let table = self.db.table(&name).map_err(from)?;
            let target = copy.create_table(&name).map_err(|error| refused(path, error))?;
            let mut failed = None;
            let scan = snapshot.scan(&table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
            let scan = scan.map_while(|record| match record {
                Ok(record) => {
                    records += 1;
                    Some(record)
                }
                Err(error) => {
                    failed = Some(error);
                    None
                }
            });
            let loaded = copy.bulk_load(&target, scan);
            failed.map_or(Ok(()), |error| Err(from(error)))?;
            loaded.map_err(|error| refused(path, error))?;
        }
        copy.close().map_err(|error| refused(path, error))?;
        drop(copy);
        new.finish()?;
        Ok(records)
    }
}

/// Makes an empty store in a new file, which has no name yet.
fn make(path: &Path, options: &Options) -> Result<(NewFile, blocking::Db), OpenError> {
    let engine = options.for_new();
    let (bytes, page_bytes) = (options.new_size(), engine.page_bytes.max(FILE_PAGE));
    if bytes > MOST_BYTES || bytes % u64::from(page_bytes) != 0 {
        return Err(OpenError::Size { bytes, page_bytes });
    }
    let new = NewFile::begin(path, bytes)?;
    let drive = FileDrive::open(&new.unfinished(), &shared())?;
    let db = drive.create(engine).map_err(|error| refused(path, error))?;
    Ok((new, db))
}

/// Returns the options of a drive that several threads use, and that takes space on the disk as it is written.
fn shared() -> DriveOptions {
    DriveOptions { many_threads: true, sparse: true, ..DriveOptions::default() }
}

fn refused(path: &Path, error: Error) -> OpenError {
    OpenError::Store { path: path.to_owned(), error }
}

/// Refuses options that differ from the store in the file.
fn refuse_other_shape(path: &Path, options: &Options, shape: &StoreShape) -> Result<(), OpenError> {
    let place = |is_out| if is_out { "out-of-place" } else { "in-place" }.to_owned();
    let is_out = options.place.as_ref().and_then(|place| match place {
        PlaceConfig::InPlace(_) => Some(false),
        PlaceConfig::OutOfPlace(_) => Some(true),
        PlaceConfig::Auto(_) => None,
    });
    let page = |bytes: u32| format_size(bytes.into());
    let asked = [
        ("page_bytes", options.page_bytes.map(page), page(shape.page_bytes)),
        ("log_bytes", options.log_bytes.map(format_size), format_size(shape.log_bytes)),
        ("place", is_out.map(place), place(shape.is_out_of_place)),
    ];
    for (name, asked, has) in asked {
        if let Some(asked) = asked.filter(|asked| *asked != has) {
            return Err(OpenError::Differs { path: path.to_owned(), name, asked, has });
        }
    }
    Ok(())
}

/// Refuses a smaller file, and a larger one for a store that cannot be extended.
fn refuse_size(path: &Path, asked: u64, has: u64, shape: Option<StoreShape>) -> Result<(), OpenError> {
    let can_grow = shape.is_some_and(|shape| !shape.is_out_of_place);
    if asked > has && asked <= MOST_BYTES && can_grow {
        let page_bytes = shape.map_or(FILE_PAGE, |shape| shape.page_bytes);
        return match asked % u64::from(page_bytes) {
            0 => Ok(()),
            _ => Err(OpenError::Size { bytes: asked, page_bytes }),
        };
    }
    let [asked, has] = [asked, has].map(format_size);
    Err(OpenError::Differs { path: path.to_owned(), name: "size_bytes", asked, has })
}
