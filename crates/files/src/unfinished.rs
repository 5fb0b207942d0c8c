//! Holds files that are being written. Such a file gets its name when it is complete, so no other process
//! sees an incomplete file.
//!
//! If the system supports it (`O_TMPFILE`), the file has no name until it is complete, and it disappears when
//! the process ends for any reason. Elsewhere the file is called `.fulgurite-*.unfinished` in the same
//! folder. Dropping the file removes this name; so does [`abandon_all`], for an interrupted process. A folder
//! that was created for files is removed if it stays empty.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::{Builder, TempPath};

/// The paths of this process's unfinished files on systems that require a name.
static NAMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn named() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // Paths are inserted and removed whole, so a panic elsewhere leaves the set usable.
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The paths of folders that this process has created for files.
static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn made() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes every named unfinished file of this process, and every empty folder that it has created. The
/// command calls this before its process ends.
pub fn abandon_all() {
    for path in named().iter() {
        // Ignore an error: if the file has just got its final name, there is nothing to remove.
        let _ = fs::remove_file(path);
    }
    remove_empty(&made());
}

/// Removes those of `folders` that are empty. The system refuses to remove other folders, so no files are at
/// risk.
fn remove_empty(folders: &BTreeSet<PathBuf>) {
    // Go backwards, because the set lists a folder before the folders in it.
    folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
}

/// The folders that were created for a path. Dropping this value removes those that are empty.
pub struct MadeFolders(BTreeSet<PathBuf>);

impl MadeFolders {
    /// Creates the folder at `path` and its missing parents.
    pub fn make(path: &Path) -> io::Result<MadeFolders> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let missing: BTreeSet<PathBuf> =
            path.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
        made().extend(missing.iter().cloned());
        // Own the folders before they are created: if creation fails half-way, dropping `folders` removes
        // those that exist.
        let folders = MadeFolders(missing);
        fs::create_dir_all(path).map(|()| folders)
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        remove_empty(&self.0);
        made().retain(|folder| !self.0.contains(folder));
    }
}

/// A file that is being written. If this value is dropped before the file gets its final name, no file
/// remains.
pub struct Unfinished {
    file: File,
    /// The temporary name of the file; `None` for a file without a name.
    name: Option<UnfinishedName>,
}

/// The temporary name of an unfinished file.
struct UnfinishedName(TempPath);

impl Drop for UnfinishedName {
    fn drop(&mut self) {
        named().remove(self.0.to_path_buf().as_path());
    }
}

impl UnfinishedName {
    /// Chooses a free name in `folder`, at which `make` creates a file or a link.
    fn new<T>(folder: &Path, make: impl FnMut(&Path) -> io::Result<T>) -> io::Result<(T, UnfinishedName)> {
        let mut builder = Builder::new();
        let (made, path) =
            builder.prefix(".fulgurite-").suffix(".unfinished").make_in(folder, make)?.into_parts();
        named().insert(path.to_path_buf());
        Ok((made, UnfinishedName(path)))
    }

    /// Renames the file to its final name `path`. If `is_new`, fails if that name exists; otherwise replaces
    /// an existing file.
    fn rename(self, path: &Path, is_new: bool) -> io::Result<()> {
        // Dropping `self` at the end removes only the temporary name, if that still exists. The file already
        // has its final name by then.
        let from = self.0.to_path_buf();
        if is_new {
            // Link instead of renaming, because a hard link never replaces another file.
            return fs::hard_link(from, path);
        }
        fs::rename(from, path)
    }
}

impl Unfinished {
    /// Creates an unfinished file in `folder`, with the permissions of a new file.
    pub fn begin(folder: &Path) -> io::Result<Unfinished> {
        #[cfg(target_os = "linux")]
        if let Some(file) = without_name(folder)? {
            return Ok(Unfinished { file, name: None });
        }
        Unfinished::with_name(folder)
    }

    /// Creates an unfinished file with a temporary name, for systems without unnamed files.
    fn with_name(folder: &Path) -> io::Result<Unfinished> {
        let make = |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
        let (file, name) = UnfinishedName::new(folder, make)?;
        Ok(Unfinished { file, name: Some(name) })
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file for writing.
    pub fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }

    /// Returns a path at which this process can open the file while it is being written.
    pub fn path(&self) -> PathBuf {
        match &self.name {
            Some(name) => name.0.to_path_buf(),
            None => descriptor_path(&self.file),
        }
    }

    /// Gives the file the name `path`, and replaces an existing file. `path` must be in the folder that
    /// [`Unfinished::begin`] was given.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        let Unfinished { file, name } = self;
        if let Some(name) = name {
            return name.rename(path, false);
        }
        match link(&file, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            done => return done,
        }
        // A hard link cannot replace a file, so the file first gets a temporary name and is then renamed.
        let folder = path.parent().unwrap_or(Path::new("/"));
        let ((), name) = UnfinishedName::new(folder, |free| link(&file, free))?;
        name.rename(path, false)
    }

    /// Gives the file the name `path`. Fails if that name exists.
    pub fn put_new(self, path: &Path) -> io::Result<()> {
        let Unfinished { file, name } = self;
        match name {
            Some(name) => name.rename(path, true),
            None => link(&file, path),
        }
    }
}

/// Returns the path of an open file, which may have no name.
fn descriptor_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates a file without a name in `folder`; `None` if the system or the file system does not support it.
#[cfg(target_os = "linux")]
fn without_name(folder: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags};
    use rustix::io::Errno;
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)) {
        Ok(file) => {
            let file = File::from(file);
            // Use a file with a temporary name if `/proc` is missing, because an unnamed file could never get
            // a name then.
            let has_path = fs::metadata(descriptor_path(&file)).is_ok();
            Ok(has_path.then_some(file))
        }
        // Systems and file systems without unnamed files return these errors; old kernels return EISDIR.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives an unnamed file the name `path`. Fails if that name exists.
#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};
    let linked = rustix::fs::linkat(CWD, descriptor_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW);
    Ok(linked?)
}

#[cfg(not(target_os = "linux"))]
fn link(_: &File, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_appears_when_it_is_complete_and_leaves_nothing_before() {
        for begin in [Unfinished::begin, Unfinished::with_name] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("new");
            let mut file = begin(folder.path()).unwrap();
            file.file_mut().write_all(b"new").unwrap();
            assert_eq!(fs::read(file.path()).unwrap(), b"new", "it can be opened by its path");
            file.put_new(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            let mut other = begin(folder.path()).unwrap();
            other.file_mut().write_all(b"other").unwrap();
            assert_eq!(other.put_new(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
            let mut other = begin(folder.path()).unwrap();
            other.file_mut().write_all(b"other").unwrap();
            other.replace(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"other");
            assert_eq!(names(folder.path()), ["new"]);
        }
        // The following cases share this test because `abandon_all` affects all files of the process.
        for begin in [Unfinished::begin, Unfinished::with_name] {
            let folder = tempfile::tempdir().unwrap();
            drop(begin(folder.path()).unwrap());
            assert!(names(folder.path()).is_empty());
        }
        let folder = tempfile::tempdir().unwrap();
        let _under_way = Unfinished::with_name(folder.path()).unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        abandon_all();
        assert!(names(folder.path()).is_empty(), "an interrupted process leaves nothing either");
    }
}
