//! Files that hold a new store. Such a file is made under another name in its own folder,
//! `.fulgurite-*.unfinished`, and gets its name when it is complete. It never takes the place of another file. A
//! process that is killed may leave the unfinished one.

use crate::StackError;
use fulgurite_base::units;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file under way; dropped, it leaves nothing.
pub struct NewFile {
    /// The argument that names it.
    argument: &'static str,
    path: PathBuf,
    temporary: NamedTempFile,
}

impl NewFile {
    /// Begins the file that `argument` names: a drive of `bytes` bytes, all zeros, that takes up room as it is
    /// written.
    pub fn begin(argument: &'static str, path: &Path, bytes: u64) -> Result<NewFile, StackError> {
        refuse_existing(argument, path)?;
        let cannot = |error: io::Error| {
            StackError::request(format!(
                "{argument} {} cannot be made with a length of {}: {error}; accepted: a new file, in a folder that exists and takes files of this length",
                path.display(),
                units::format_size(bytes)
            ))
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".fulgurite-").suffix(".unfinished");
        // Less the umask, as for any new file; temporary files are private otherwise.
        builder.permissions(Permissions::from_mode(0o666));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let temporary = builder.tempfile_in(folder.unwrap_or(Path::new("."))).map_err(cannot)?;
        fulgurite_uring::make_sparse(temporary.as_file(), bytes).map_err(cannot)?;
        Ok(NewFile { argument, path: path.to_owned(), temporary })
    }

    /// Where it is until it is complete.
    pub fn unfinished(&self) -> &Path {
        self.temporary.path()
    }

    /// The file, to be written to.
    pub fn file(&self) -> Result<File, StackError> {
        self.temporary.as_file().try_clone().map_err(|error| self.failed(&error))
    }

    /// What to report when writing it has failed.
    pub fn failed(&self, error: &io::Error) -> StackError {
        StackError::run(format!("{} {} cannot be written: {error}", self.argument, self.path.display()))
    }

    /// Gives it its name. Whoever has it open goes on with it.
    pub fn finish(self) -> Result<(), StackError> {
        // Without this a power cut could leave the name with a part of the contents.
        self.temporary.as_file().sync_all().map_err(|error| self.failed(&error))?;
        let NewFile { argument, path, temporary } = self;
        temporary.persist_noclobber(&path).map_err(|failed| match failed.error.kind() {
            ErrorKind::AlreadyExists => exists(argument, &path),
            _ => {
                StackError::run(format!("{argument} {} cannot be written: {}", path.display(), failed.error))
            }
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
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Ok(_) => Err(exists(argument, path)),
        Err(error) => Err(StackError::request(format!("{argument} {}: {error}", path.display()))),
    }
}

fn exists(argument: &str, path: &Path) -> StackError {
    StackError::request(format!("{argument} {} exists; accepted: a new file", path.display()))
}
