//! Files that hold a new store. Such a file is made without its name (see `unfinished.rs`) and gets it when it is
//! complete. It never takes the place of another file.

use fulgurite_base::units;
use fulgurite_files::obstacle;
use fulgurite_files::output::is_standard;
use fulgurite_files::unfinished::Unfinished;
use fulgurite_stack::StackError;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file under way; dropped, it leaves nothing.
pub struct NewFile {
    /// The argument that names it.
    argument: &'static str,
    path: PathBuf,
    unfinished: Unfinished,
}

impl NewFile {
    /// Begins the file that `argument` names: a drive of `bytes` bytes, all zeros, that takes up room as it is
    /// written.
    pub fn begin(argument: &'static str, path: &Path, bytes: u64) -> Result<NewFile, StackError> {
        refuse_existing(argument, path)?;
        let cannot = |error: io::Error| {
            StackError::request(format!(
                "{argument} {} cannot be made with a length of {}: {}; accepted: a new file, in a folder that exists and takes files of this length",
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

    /// Where it can be opened until it is complete.
    pub fn unfinished(&self) -> PathBuf {
        self.unfinished.path()
    }

    /// The file, to be written to.
    pub fn file(&self) -> Result<File, StackError> {
        self.unfinished.file().try_clone().map_err(|error| self.failed(&error))
    }

    /// What to report when writing it has failed.
    pub fn failed(&self, error: &io::Error) -> StackError {
        StackError::run(format!(
            "{} {} cannot be written: {}",
            self.argument,
            self.path.display(),
            obstacle(&self.path, error)
        ))
    }

    /// Gives it its name. Whoever has it open goes on with it.
    pub fn finish(self) -> Result<(), StackError> {
        // Without this a power cut could leave the name with a part of the contents.
        self.unfinished.file().sync_all().map_err(|error| self.failed(&error))?;
        let NewFile { argument, path, unfinished } = self;
        unfinished.put_new(&path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(argument, &path),
            _ => StackError::run(format!(
                "{argument} {} cannot be written: {}",
                path.display(),
                obstacle(&path, &error)
            )),
        })?;
        // The name is durable with its folder. Some file systems cannot flush one; they have nothing to flush
        // then.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

/// Refuses a path that something has, be it a link that leads nowhere.
pub fn refuse_existing(argument: &str, path: &Path) -> Result<(), StackError> {
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

/// Refuses `-`: a store needs random access, which standard input and output do not have.
pub fn refuse_standard(argument: &str, path: &Path) -> Result<(), StackError> {
    if !is_standard(path) {
        return Ok(());
    }
    Err(StackError::request(format!(
        "{argument} - is standard input or output, which cannot hold a store; accepted: a file (./- for one of this name)"
    )))
}

fn exists(argument: &str, path: &Path) -> StackError {
    StackError::request(format!("{argument} {} exists; accepted: a new file", path.display()))
}
