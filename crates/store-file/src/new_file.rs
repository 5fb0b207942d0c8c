//! Files that hold a new store, with errors that name the argument (see [`fulgurite_db::NewFile`]).

use fulgurite_base::units;
use fulgurite_db::OpenError;
use fulgurite_files::obstacle;
use fulgurite_files::output::is_standard;
use fulgurite_stack::StackError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// A new file that is being written. If this value is dropped before [`NewFile::finish`], no file remains.
pub(crate) struct NewFile {
    /// The argument that names the file, for errors.
    argument: &'static str,
    path: PathBuf,
    new: fulgurite_db::NewFile,
}

impl NewFile {
    /// Creates the file that `argument` names, as a sparse drive of `bytes` zero bytes.
    pub(crate) fn begin(argument: &'static str, path: &Path, bytes: u64) -> Result<NewFile, StackError> {
        refuse_existing(argument, path)?;
        let new = fulgurite_db::NewFile::begin(path, bytes).map_err(|error| match error {
            OpenError::Io { error, .. } => StackError::request(format!(
                "{argument} {} cannot be made with a length of {}: {}; accepted: a new file, in a folder that \
                    exists and takes files of this length",
                path.display(),
                units::format_size(bytes),
                obstacle(path, &error)
            )),
            error => refused(argument, path, error),
        })?;
        Ok(NewFile { argument, path: path.to_owned(), new })
    }

    /// Returns the path at which the file can be opened until it is complete.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.new.unfinished()
    }

    /// Returns the file for writing.
    pub(crate) fn file(&self) -> Result<File, StackError> {
        self.new.file().map_err(|error| self.failed(&error))
    }

    /// Returns the error for a failed write to the file.
    pub(crate) fn failed(&self, error: &io::Error) -> StackError {
        cannot_be_written(self.argument, &self.path, error)
    }

    /// Gives the file its name. A process that has the file open may continue to use it.
    pub(crate) fn finish(self) -> Result<(), StackError> {
        let NewFile { argument, path, new } = self;
        new.finish().map_err(|error| match error {
            OpenError::Io { error, .. } => cannot_be_written(argument, &path, &error),
            error => refused(argument, &path, error),
        })
    }
}

/// Refuses a path that exists, even if the path is a dangling symbolic link.
pub(crate) fn refuse_existing(argument: &str, path: &Path) -> Result<(), StackError> {
    refuse_standard(argument, path)?;
    fulgurite_db::NewFile::refuse_existing(path).map_err(|error| match error {
        OpenError::Io { error, .. } => StackError::request(format!(
            "{argument} {} cannot be made: {}; accepted: a new file, in a folder that exists",
            path.display(),
            obstacle(path, &error)
        )),
        error => refused(argument, path, error),
    })
}

fn refused(argument: &str, path: &Path, error: OpenError) -> StackError {
    StackError::request(match error {
        OpenError::Exists(_) => format!("{argument} {} exists; accepted: a new file", path.display()),
        error => error.to_string(),
    })
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
