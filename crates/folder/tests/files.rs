//! Without power cuts, a folder is like a folder of the machine's file system.

use fulgurite_base::Prng;
use fulgurite_folder::{Folder, FolderError, Kind, Onto, ROOT, Rules};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// The same operations on both.
struct Pair {
    folder: Folder,
    real: PathBuf,
    /// Open files, which may have lost their names.
    open: Vec<(u64, File)>,
    random: Prng,
    counts: [u64; 2],
}

impl Pair {
    /// Returns a path of one to three names, and its names.
    fn path(&mut self) -> (PathBuf, Vec<&'static str>) {
        let names: Vec<&str> =
            (0..1 + self.random.below(3)).map(|_| NAMES[self.random.below(4) as usize]).collect();
        (self.real.join(names.join("/")), names)
    }

    /// Returns the folder of a path and its last name.
    fn parent<'a>(&self, names: &[&'a str]) -> Result<(u64, &'a [u8]), FolderError> {
        let (last, folders) = names.split_last().unwrap();
        let mut at = ROOT;
        for name in folders {
            at = self.folder.lookup(at, name.as_bytes())?;
        }
        Ok((at, last.as_bytes()))
    }

    fn inode(&self, names: &[&str]) -> Result<u64, FolderError> {
        let (folder, name) = self.parent(names)?;
        self.folder.lookup(folder, name)
    }

    /// Whether a name of the path is a symbolic link, which the kernel would follow.
    fn has_link(&self, names: &[&str]) -> bool {
        (1..=names.len()).any(|count| {
            let inode = self.inode(&names[..count]);
            inode.is_ok_and(|inode| self.folder.attributes(inode).unwrap().kind == Kind::Symlink)
        })
    }

    fn compare<T, U>(&mut self, what: &str, real: io::Result<T>, ours: Result<U, FolderError>) {
        let real = real.map_err(|error| error.raw_os_error().unwrap()).err();
        assert_eq!(ours.map_err(FolderError::errno).err(), real, "{what}");
        self.counts[usize::from(real.is_none())] += 1;
    }

    fn step(&mut self) {
        let (path, names) = self.path();
        let (other, others) = self.path();
        if self.has_link(&names[..names.len() - 1]) || self.has_link(&others[..others.len() - 1]) {
            return;
        }
        let at = self.parent(&names);
        let to = self.parent(&others);
        match self.random.below(14) {
            0 | 1 => {
                let ours = at.and_then(|(folder, name)| self.folder.create(folder, name, 0o644, 0));
                let real = File::create_new(&path)
                    .and_then(|file| file.set_permissions(Permissions::from_mode(0o644)));
                self.compare("create", real, ours);
            }
            2 => {
                let ours = at.and_then(|(folder, name)| self.folder.mkdir(folder, name, 0o755, 0));
                let real = fs::create_dir(&path)
                    .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
                self.compare("mkdir", real, ours);
            }
            3 => {
                let ours = at.and_then(|(folder, name)| self.folder.symlink(folder, name, b"nowhere", 0));
                self.compare("symlink", symlink("nowhere", &path), ours);
            }
            4 => {
                let ours = self.inode(&names).and_then(|inode| {
                    let (folder, name) = to?;
                    self.folder.link(inode, folder, name, 0)
                });
                self.compare("link", fs::hard_link(&path, &other), ours);
            }
            5 => {
                let ours = at.and_then(|(folder, name)| self.folder.unlink(folder, name, 0));
                self.compare("unlink", fs::remove_file(&path), ours);
            }
            6 => {
                let ours = at.and_then(|(folder, name)| self.folder.rmdir(folder, name, 0));
                self.compare("rmdir", fs::remove_dir(&path), ours);
            }
            7..=9 => self.rename(at, &path, to, &other),
            _ if self.has_link(&names) => {}
            10 => {
                let mode = [0o700, 0o755, 0o777][self.random.below(3) as usize];
                let ours = self.inode(&names).and_then(|inode| self.folder.set_mode(inode, mode));
                self.compare("mode", fs::set_permissions(&path, Permissions::from_mode(mode)), ours);
            }
            11 => {
                let opened = File::options().read(true).write(true).open(&path);
                let inode = self.inode(&names);
                let ours = inode.and_then(|inode| self.folder.truncate(inode, 0, 0));
                self.compare("open", opened.as_ref().map(|_| ()).map_err(copied), ours);
                if let (Ok(file), Ok(inode)) = (opened, inode) {
                    file.set_len(0).unwrap();
                    self.folder.open(inode).unwrap();
                    self.open.push((inode, file));
                }
            }
            _ => self.change_bytes(),
        }
        if self.open.len() > 3 {
            let (inode, _) = self.open.swap_remove(self.random.below(4) as usize);
            self.folder.close(inode);
        }
    }

    fn rename(
        &mut self,
        at: Result<(u64, &'static [u8]), FolderError>,
        path: &Path,
        to: Result<(u64, &'static [u8]), FolderError>,
        other: &Path,
    ) {
        let (onto, flags) = [
            (Onto::Replace, RenameFlags::empty()),
            (Onto::Replace, RenameFlags::empty()),
            (Onto::Refuse, RenameFlags::NOREPLACE),
            (Onto::Exchange, RenameFlags::EXCHANGE),
        ][self.random.below(4) as usize];
        // The kernel looks at both folders before it looks a name up.
        let ours = at.and_then(|from| {
            self.folder.entries(from.0).map(drop)?;
            self.folder.rename(from, to?, onto, 0)
        });
        let real = renameat_with(CWD, path, CWD, other, flags).map_err(io::Error::from);
        self.compare(&format!("{onto:?} {path:?} {other:?}"), real, ours);
    }

    /// Changes and reads the bytes of an open file.
    fn change_bytes(&mut self) {
        let Some(at) = self.random.below(self.open.len() as u64 + 1).checked_sub(1) else { return };
        let (inode, file) = &self.open[at as usize];
        let (offset, length) = (self.random.below(20_000), self.random.below(9_000));
        let size = file.metadata().unwrap().len();
        match self.random.below(4) {
            0 | 1 => {
                let data = vec![self.random.below(256) as u8; length as usize];
                file.write_all_at(&data, offset).unwrap();
                self.folder.write(*inode, offset, &data, 0).unwrap();
            }
            2 => {
                file.set_len(offset).unwrap();
                self.folder.truncate(*inode, offset, 0).unwrap();
            }
            _ => {
                let zeros = vec![0; size.saturating_sub(offset).min(length) as usize];
                file.write_all_at(&zeros, offset).unwrap();
                self.folder.zero(*inode, offset, length, 0).unwrap();
            }
        }
        let mut ours = Vec::new();
        self.folder.read(*inode, offset / 2, 9_000, &mut ours).unwrap();
        let mut real = vec![0; 9_000];
        let count = file.read_at(&mut real, offset / 2).unwrap();
        assert!(ours == real[..count], "the bytes differ");
    }

    /// Compares everything below a folder.
    fn compare_tree(&self, folder: u64, path: &Path) {
        let mut real: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        real.sort();
        let ours: Vec<(&[u8], u64)> = self.folder.entries(folder).unwrap().collect();
        assert_eq!(real.len(), ours.len());
        for (path, (name, inode)) in real.iter().zip(ours) {
            assert_eq!(path.file_name().unwrap().as_encoded_bytes(), name);
            let (real, ours) = (fs::symlink_metadata(path).unwrap(), self.folder.attributes(inode).unwrap());
            if real.is_dir() {
                assert_eq!((Kind::Folder, real.mode() & 0o777), (ours.kind, ours.mode));
                self.compare_tree(inode, path);
            } else if real.is_symlink() {
                assert_eq!(
                    (Kind::Symlink, real.len(), real.nlink() as u32),
                    (ours.kind, ours.size, ours.links)
                );
                assert_eq!(self.folder.read_link(inode), Ok(&b"nowhere"[..]));
            } else {
                let found = (Kind::File, ours.mode, ours.size, ours.links);
                assert_eq!((ours.kind, real.mode() & 0o777, real.len(), real.nlink() as u32), found);
                let mut bytes = Vec::new();
                self.folder.read(inode, 0, usize::MAX, &mut bytes).unwrap();
                assert!(fs::read(path).unwrap() == bytes, "the bytes differ");
            }
        }
    }
}

fn copied(error: &io::Error) -> io::Error {
    io::Error::from_raw_os_error(error.raw_os_error().unwrap())
}

/// The rule: every operation has the outcome that the machine's file system has, its error included, for names,
/// links, renames of all kinds, modes, and the bytes of open files with and without a name. Bytes of removed files
/// are freed.
#[test]
fn a_folder_is_like_one_of_the_machine() {
    let mut counts = [0; 2];
    for seed in 0..60 {
        let real = tempfile::tempdir().unwrap();
        let mut pair = Pair {
            folder: Folder::new(Rules::default()),
            real: real.path().to_owned(),
            open: Vec::new(),
            random: Prng::new(seed, "files"),
            counts,
        };
        for step in 0..500 {
            pair.step();
            if step % 50 == 0 {
                pair.compare_tree(ROOT, real.path());
            }
        }
        pair.compare_tree(ROOT, real.path());
        counts = pair.counts;
        for name in NAMES {
            remove(&mut pair.folder, ROOT, name.as_bytes());
        }
        pair.open.iter().for_each(|(inode, _)| pair.folder.close(*inode));
        pair.folder.sync_all();
        assert_eq!(pair.folder.bytes_used(), 0, "seed {seed}");
    }
    assert!(counts.iter().all(|count| *count > 2_000), "{counts:?}");
}

/// Removes a name, and everything below it.
fn remove(folder: &mut Folder, parent: u64, name: &[u8]) {
    let Ok(inode) = folder.lookup(parent, name) else { return };
    let inside: Vec<Vec<u8>> =
        folder.entries(inode).into_iter().flatten().map(|(name, _)| name.to_vec()).collect();
    inside.iter().for_each(|name| remove(folder, inode, name));
    let removed = folder.unlink(parent, name, 0).or_else(|_| folder.rmdir(parent, name, 0));
    removed.unwrap();
}

/// The rule: names and sizes that no folder can have are refused, and a folder without space refuses a write until a
/// removed file is closed.
#[test]
fn limits_are_refused() {
    let mut folder = Folder::new(Rules { bytes: 8 * 4_096, ..Rules::default() });
    for (name, error) in [
        (vec![b'x'; 256], FolderError::NameTooLong),
        (b"".to_vec(), FolderError::Invalid),
        (b"..".to_vec(), FolderError::Invalid),
        (b"a/b".to_vec(), FolderError::Invalid),
        (b"a\0".to_vec(), FolderError::Invalid),
    ] {
        assert_eq!(folder.create(ROOT, &name, 0o600, 0), Err(error));
    }
    let long = folder.create(ROOT, &[b'x'; 255], 0o600, 0).unwrap();
    assert_eq!(folder.truncate(long, (1 << 40) + 1, 0), Err(FolderError::TooLarge));
    assert_eq!(folder.write(long, 1 << 40, b"x", 0), Err(FolderError::TooLarge));
    assert_eq!(folder.write(long, u64::MAX, b"x", 0), Err(FolderError::TooLarge));
    folder.truncate(long, 1 << 40, 0).unwrap();
    folder.write(long, (1 << 40) - 1, b"x", 0).unwrap();
    folder.write(long, 0, &[1; 7 * 4_096], 0).unwrap();
    assert_eq!(folder.write(long, 1 << 30, b"x", 0), Err(FolderError::NoSpace));
    folder.write(long, 0, b"x", 0).unwrap();
    folder.open(long).unwrap();
    folder.unlink(ROOT, &[b'x'; 255], 0).unwrap();
    let next = folder.create(ROOT, b"next", 0o600, 0).unwrap();
    assert_eq!(folder.write(next, 0, b"x", 0), Err(FolderError::NoSpace));
    folder.close(long);
    folder.write(next, 0, &[1; 8 * 4_096], 0).unwrap();
    assert_eq!(folder.bytes_used(), 8 * 4_096);
    assert_eq!(folder.attributes(long).err(), Some(FolderError::NotFound));
}
