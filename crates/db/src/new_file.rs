//! Files that hold a new store. Such a file is written without a name (see [`Unfinished`]) and gets its name when it is
//! complete. It never replaces another file.

use crate::OpenError;
use fulgurite_files::obstacle;
use fulgurite_files::unfinished::Unfinished;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A new file that is being written. If this value is dropped before [`NewFile::finish`], no file remains.
pub struct NewFile {
    path: PathBuf,
    unfinished: Unfinished,
}

/// Returns the folder of a path.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl NewFile {
    /// Creates the file as a sparse drive of `bytes` zero bytes. Fails if the path exists, even as a link that leads
    /// nowhere.
    pub fn begin(path: &Path, bytes: u64) -> Result<NewFile, OpenError> {
        NewFile::refuse_existing(path)?;
        let unfinished = Unfinished::begin(folder_of(path)).map_err(|error| io_error(path, error))?;
        fulgurite_uring::make_sparse(unfinished.file(), bytes).map_err(|error| io_error(path, error))?;
        Ok(NewFile { path: path.to_owned(), unfinished })
    }

    /// Fails if the path exists, even as a link that leads nowhere.
    pub fn refuse_existing(path: &Path) -> Result<(), OpenError> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Ok(_) => Err(OpenError::Exists(path.to_owned())),
            Err(error) => Err(io_error(path, error)),
        }
    }

    /// Returns the path at which the file can be opened until it is complete.
    pub fn unfinished(&self) -> PathBuf {
        self.unfinished.path()
    }

    /// Returns the file for writing.
    pub fn file(&self) -> io::Result<File> {
        self.unfinished.file().try_clone()
    }

    /// Gives the file its name. A process that has the file open may continue to use it.
    pub fn finish(self) -> Result<(), OpenError> {
        let NewFile { path, unfinished } = self;
        // Sync the file first, because a power cut could otherwise leave the name with incomplete contents.
        unfinished.file().sync_all().map_err(|error| io_error(&path, error))?;
        unfinished.put_new(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => OpenError::Exists(path.clone()),
            _ => io_error(&path, error),
        })?;
        // Sync the folder, because this makes the name durable. Ignore an error, because file systems that cannot sync
        // a folder do not need it.
        let _ = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Describes why the system refused a path.
pub(crate) fn io_error(path: &Path, error: io::Error) -> OpenError {
    OpenError::Io { path: path.to_owned(), what: obstacle(path, &error), error }
}
