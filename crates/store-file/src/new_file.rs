//! Creates files that hold a new store. Such a file is written without a name (see [`Unfinished`]) and gets
//! its name when it is complete. It never replaces another file.

use fulgurite_base::units;
use fulgurite_files::obstacle;
use fulgurite_files::output::is_standard;
use fulgurite_files::unfinished::Unfinished;
use fulgurite_stack::StackError;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A new file that is being written. If this value is dropped before [`NewFile::finish`], no file remains.
pub(crate) struct NewFile {
    /// The argument that names the file, for errors.
    argument: &'static str,
    path: PathBuf,
    unfinished: Unfinished,
}

impl NewFile {
    /// Creates the file that `argument` names, as a sparse drive of `bytes` zero bytes.
    pub(crate) fn begin(argument: &'static str, path: &Path, bytes: u64) -> Result<NewFile, StackError> {
        refuse_existing(argument, path)?;
        let cannot = |error: io::Error| {
            StackError::request(format!(
                "{argument} {} cannot be made with a length of {}: {}; accepted: a new file, in a folder that \
                    exists and takes files of this length",
                path.display(),
                units::format_size(bytes),
                obstacle(path, &error)
            ))
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let unfinished = Unfinished::begin(folder.unwrap_or(Path::new("."))).map_err(cannot)?;
        fulgurite_uring::make_sparse(unfinished.file(), bytes).map_err(cannot)?;
        Ok(NewFile { argument, path: path.to_owned(), unfinished })
    }

    /// Returns the path at which the file can be opened until it is complete.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.unfinished.path()
    }

    /// Returns the file for writing.
    pub(crate) fn file(&self) -> Result<File, StackError> {
        self.unfinished.file().try_clone().map_err(|error| self.failed(&error))
    }

    /// Returns the error for a failed write to the file.
    pub(crate) fn failed(&self, error: &io::Error) -> StackError {
        cannot_be_written(self.argument, &self.path, error)
    }

    /// Gives the file its name. A process that has the file open may continue to use it.
    pub(crate) fn finish(self) -> Result<(), StackError> {
        // Sync the file first, because a power cut could otherwise leave the name with incomplete contents.
        self.unfinished.file().sync_all().map_err(|error| self.failed(&error))?;
        let NewFile { argument, path, unfinished } = self;
        unfinished.put_new(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(argument, &path),
            _ => cannot_be_written(argument, &path, &error),
        })?;
        // Sync the folder, because this makes the name durable. Ignore an error, because file systems that
        // cannot sync a folder do not need it.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Refuses a path that exists, even if the path is a dangling symbolic link.
pub(crate) fn refuse_existing(argument: &str, path: &Path) -> Result<(), StackError> {
    refuse_standard(argument, path)?;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(exists(argument, path)),
        Err(error) => Err(StackError::request(format!(
            "{argument} {} cannot be made: {}; accepted: a new file, in a folder that exists",
            path.display(),
            obstacle(path, &error)
        ))),
    }
}

/// Refuses `-`: a store needs random access, which standard input and output do not offer.
pub(crate) fn refuse_standard(argument: &str, path: &Path) -> Result<(), StackError> {
    if !is_standard(path) {
        return Ok(());
    }
    Err(StackError::request(format!(
        "{argument} - is standard input or output, which cannot hold a store; accepted: a file (./- for one of this \
            name)"
    )))
}

fn cannot_be_written(argument: &str, path: &Path, error: &io::Error) -> StackError {
    StackError::run(format!("{argument} {} cannot be written: {}", path.display(), obstacle(path, error)))
}

fn exists(argument: &str, path: &Path) -> StackError {
    StackError::request(format!("{argument} {} exists; accepted: a new file", path.display()))
}
