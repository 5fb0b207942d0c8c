//! Inodes and names, and the changes to them. A folder has two trees: one with all changes, one with the durable ones.

use crate::error::FolderError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The inode of the folder itself.
pub const ROOT: u64 = 1;

/// A name inside a folder. The trees and the changes share its bytes.
pub(crate) type Name = Arc<[u8]>;

/// The kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file with bytes.
    File,
    /// A folder with names.
    Folder,
    /// A symbolic link.
    Symlink,
}

/// The attributes of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The kind.
    pub kind: Kind,
    /// The permission bits.
    pub mode: u32,
    /// The size in bytes: of a file, or of a link's target. 0 for a folder.
    pub size: u64,
    /// The number of names. A folder has 1, so that nobody counts its folders by it.
    pub links: u32,
    /// The time of the last change, in the unit of the caller. A cut takes it back with the change of a size or name.
    pub mtime: i64,
}

/// The contents of an inode, apart from a file's bytes.
#[derive(Clone)]
pub(crate) enum Body {
    /// A file of this size in bytes.
    File(u64),
    /// The inodes by name.
    Folder(BTreeMap<Name, u64>),
    /// The target of a symbolic link.
    Symlink(Name),
}

/// An inode.
#[derive(Clone)]
pub(crate) struct Inode {
    pub(crate) body: Body,
    pub(crate) mode: u32,
    pub(crate) mtime: i64,
    /// The number of names.
    pub(crate) links: u32,
    /// The folder and the name that it got last.
    pub(crate) place: (u64, Name),
    /// The number of the change that created it.
    pub(crate) born: u64,
}

/// The kind of a change of names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Link,
    Remove,
    Rename,
    Exchange,
}

/// A name that changes.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) folder: u64,
    pub(crate) name: Name,
    pub(crate) before: Option<u64>,
    pub(crate) after: Option<u64>,
}

/// A change that a cut keeps or loses; only bytes may be torn.
#[derive(Clone)]
pub(crate) enum Change {
    /// Names get another inode, or none. `moves` is whether folders get other names, and `removes` is a folder that
    /// has none from then on.
    Names { verb: Verb, entries: Vec<Entry>, moves: bool, removes: Option<u64>, now: i64 },
    /// A file gets another size, by a write beyond its end or by a truncation.
    Size { file: u64, from: u64, to: u64, by_write: bool, now: i64 },
    /// An inode gets another mode.
    Mode { inode: u64, mode: u32 },
    /// Bytes inside the size of a file change, from an offset on.
    Data { file: u64, offset: u64 },
}

impl Change {
    /// Returns the inodes that the change concerns.
    pub(crate) fn inodes(&self) -> Vec<u64> {
        match self {
            Change::Names { entries, .. } => entries
                .iter()
                .flat_map(|entry| [Some(entry.folder), entry.before, entry.after].into_iter().flatten())
                .collect(),
            Change::Size { file, .. } | Change::Data { file, .. } => vec![*file],
            Change::Mode { inode, .. } => vec![*inode],
        }
    }

    /// Whether it changes a name in this folder.
    pub(crate) fn is_in(&self, folder: u64) -> bool {
        matches!(self, Change::Names { entries, .. } if entries.iter().any(|entry| entry.folder == folder))
    }

    /// Whether a journal of metadata holds it in its place. Bytes, and extensions with them, are stored later.
    pub(crate) fn is_ordered(&self) -> bool {
        !matches!(self, Change::Data { .. } | Change::Size { by_write: true, .. })
    }
}

/// Inodes by number.
#[derive(Clone)]
pub(crate) struct Tree {
    pub(crate) inodes: BTreeMap<u64, Inode>,
}

impl Tree {
    /// Creates a tree of an empty folder.
    pub(crate) fn new() -> Tree {
        let root = Inode {
            body: Body::Folder(BTreeMap::new()),
            mode: 0o755,
            mtime: 0,
            links: 1,
            place: (ROOT, Name::from(&b""[..])),
            born: 0,
        };
        Tree { inodes: BTreeMap::from([(ROOT, root)]) }
    }

    /// Returns an inode.
    pub(crate) fn inode(&self, inode: u64) -> Result<&Inode, FolderError> {
        self.inodes.get(&inode).ok_or(FolderError::NotFound)
    }

    /// Returns the names in a folder.
    pub(crate) fn names(&self, folder: u64) -> Result<&BTreeMap<Name, u64>, FolderError> {
        match &self.inode(folder)?.body {
            Body::Folder(names) => Ok(names),
            _ => Err(FolderError::NotFolder),
        }
    }

    /// Returns the size of a file.
    pub(crate) fn file(&self, file: u64) -> Result<u64, FolderError> {
        match &self.inode(file)?.body {
            Body::File(size) => Ok(*size),
            Body::Folder(_) => Err(FolderError::IsFolder),
            Body::Symlink(_) => Err(FolderError::Invalid),
        }
    }

    /// Whether an inode is a folder.
    pub(crate) fn is_folder(&self, inode: u64) -> bool {
        self.names(inode).is_ok()
    }

    /// Makes a change. Bytes are elsewhere.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Names { entries, now, .. } => {
                entries.iter().for_each(|entry| self.set_name(entry, *now));
            }
            Change::Size { file, to, now, .. } => {
                if let Some(file) = self.inodes.get_mut(file) {
                    (file.body, file.mtime) = (Body::File(*to), *now);
                }
            }
            Change::Mode { inode, mode } => {
                if let Some(inode) = self.inodes.get_mut(inode) {
                    inode.mode = *mode;
                }
            }
            Change::Data { .. } => {}
        }
    }

    fn set_name(&mut self, Entry { folder, name, after, .. }: &Entry, now: i64) {
        let Some(Inode { body: Body::Folder(names), mtime, .. }) = self.inodes.get_mut(folder) else {
            return;
        };
        *mtime = now;
        let before = match after {
            Some(inode) => names.insert(name.clone(), *inode),
            None => names.remove(name),
        };
        if let Some(before) = before.and_then(|before| self.inodes.get_mut(&before)) {
            before.links -= 1;
        }
        if let Some(inode) = after.and_then(|inode| self.inodes.get_mut(&inode)) {
            inode.links += 1;
            inode.place = (*folder, name.clone());
        }
    }

    /// Returns the path of a name in words.
    fn path(&self, folder: u64, name: &Name) -> String {
        let mut path = String::from_utf8_lossy(name).into_owned();
        let mut at = folder;
        while let Some(Inode { place: (folder, name), .. }) = self.inodes.get(&at).filter(|_| at != ROOT) {
            path = format!("{}/{path}", String::from_utf8_lossy(name));
            at = *folder;
        }
        path
    }

    /// Returns the path of an inode by its last name, in words.
    pub(crate) fn path_of(&self, inode: u64) -> String {
        match self.inodes.get(&inode) {
            Some(_) if inode == ROOT => "the folder".into(),
            Some(Inode { place: (folder, name), .. }) => self.path(*folder, name),
            None => "a removed file".into(),
        }
    }

    /// Returns a change in words.
    pub(crate) fn describe(&self, change: &Change) -> String {
        match change {
            Change::Names { verb, entries, .. } => {
                let paths: Vec<String> =
                    entries.iter().map(|entry| self.path(entry.folder, &entry.name)).collect();
                let [first, .., last] = &paths[..] else {
                    let path = paths.concat();
                    return match verb {
                        Verb::Create => format!("creation of {path}"),
                        Verb::Link => format!("link {path}"),
                        _ => format!("removal of {path}"),
                    };
                };
                match verb {
                    Verb::Exchange => format!("exchange of {first} and {last}"),
                    _ => format!("rename of {first} to {last}"),
                }
            }
            Change::Size { file, to, by_write, .. } => {
                let noun = if *by_write { "extension" } else { "truncation" };
                format!("{noun} of {} to {} bytes", self.path_of(*file), grouped(*to))
            }
            Change::Mode { inode, mode } => format!("mode {mode:o} of {}", self.path_of(*inode)),
            Change::Data { file, .. } => self.path_of(*file),
        }
    }
}

/// Returns a number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}
