//! Operations on names. Each checks its arguments in the order of Linux and becomes one change.

use crate::error::FolderError;
use crate::folder::Folder;
use crate::tree::{Body, Change, Entry, Inode, Name, ROOT, Verb};
use std::collections::BTreeMap;

/// The treatment of a name that a rename would replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onto {
    /// It is replaced, as POSIX says.
    Replace,
    /// The rename is refused (`RENAME_NOREPLACE`).
    Refuse,
    /// The two names exchange their inodes (`RENAME_EXCHANGE`).
    Exchange,
}

impl Folder {
    /// Returns the inode of a name in a folder.
    pub fn lookup(&self, folder: u64, name: &[u8]) -> Result<u64, FolderError> {
        check(name)?;
        self.live.names(folder)?.get(name).copied().ok_or(FolderError::NotFound)
    }

    /// Returns the names in a folder and their inodes, by name.
    pub fn entries(&self, folder: u64) -> Result<impl Iterator<Item = (&[u8], u64)>, FolderError> {
        Ok(self.live.names(folder)?.iter().map(|(name, inode)| (&name[..], *inode)))
    }

    /// Returns the target of a symbolic link.
    pub fn read_link(&self, inode: u64) -> Result<&[u8], FolderError> {
        match &self.live.inode(inode)?.body {
            Body::Symlink(target) => Ok(target),
            _ => Err(FolderError::Invalid),
        }
    }

    /// Creates an empty file, and returns its inode.
    pub fn create(&mut self, folder: u64, name: &[u8], mode: u32, now: i64) -> Result<u64, FolderError> {
        self.add(folder, name, Body::File(0), mode, now)
    }

    /// Creates an empty folder, and returns its inode.
    pub fn mkdir(&mut self, folder: u64, name: &[u8], mode: u32, now: i64) -> Result<u64, FolderError> {
        self.add(folder, name, Body::Folder(BTreeMap::new()), mode, now)
    }

    /// Creates a symbolic link, and returns its inode.
    pub fn symlink(&mut self, folder: u64, name: &[u8], target: &[u8], now: i64) -> Result<u64, FolderError> {
        match target.len() {
            0 => Err(FolderError::NotFound),
            1..4_096 => self.add(folder, name, Body::Symlink(target.into()), 0o777, now),
            _ => Err(FolderError::NameTooLong),
        }
    }

    fn add(&mut self, folder: u64, name: &[u8], body: Body, mode: u32, now: i64) -> Result<u64, FolderError> {
        self.free(folder, name)?;
        let (born, name) = (self.versions.reserve(), Name::from(name));
        let inode = Inode { body, mode, mtime: now, links: 0, place: (folder, name.clone()), born };
        let inode = self.new_inode(inode)?;
        let entries = vec![Entry { folder, name, before: None, after: Some(inode) }];
        self.record(
            born,
            born,
            Change::Names { verb: Verb::Create, entries, moves: false, removes: None, now },
        );
        Ok(inode)
    }

    /// Gives a file or a symbolic link another name.
    pub fn link(&mut self, inode: u64, folder: u64, name: &[u8], now: i64) -> Result<(), FolderError> {
        let links = self.live.inode(inode)?.links;
        self.free(folder, name)?;
        if self.live.is_folder(inode) {
            return Err(FolderError::NotPermitted);
        }
        if links == 0 {
            return Err(FolderError::NotFound);
        }
        let entries = vec![Entry { folder, name: name.into(), before: None, after: Some(inode) }];
        self.change_names(Verb::Link, entries, false, None, now);
        Ok(())
    }

    /// Removes a name that is not a folder's. The inode lives while it has another name or is open.
    pub fn unlink(&mut self, folder: u64, name: &[u8], now: i64) -> Result<(), FolderError> {
        let inode = self.lookup(folder, name)?;
        if self.live.is_folder(inode) {
            return Err(FolderError::IsFolder);
        }
        let entries = vec![Entry { folder, name: name.into(), before: Some(inode), after: None }];
        self.change_names(Verb::Remove, entries, false, None, now);
        Ok(())
    }

    /// Removes an empty folder.
    pub fn rmdir(&mut self, folder: u64, name: &[u8], now: i64) -> Result<(), FolderError> {
        let inode = self.lookup(folder, name)?;
        if !self.live.names(inode)?.is_empty() {
            return Err(FolderError::NotEmpty);
        }
        let entries = vec![Entry { folder, name: name.into(), before: Some(inode), after: None }];
        self.change_names(Verb::Remove, entries, false, Some(inode), now);
        Ok(())
    }

    /// Gives the inode at `from` the name `to` instead. Both are a folder and a name in it.
    pub fn rename(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        onto: Onto,
        now: i64,
    ) -> Result<(), FolderError> {
        self.live.names(to.0)?;
        let source = self.lookup(from.0, from.1)?;
        let target = match self.lookup(to.0, to.1) {
            Err(FolderError::NotFound) if onto != Onto::Exchange => {
                self.free(to.0, to.1)?;
                None
            }
            found => Some(found?),
        };
        if target.is_some() && onto == Onto::Refuse {
            return Err(FolderError::Exists);
        }
        self.check_rename(from.0, source, to.0, target, onto)?;
        if target == Some(source) {
            return Ok(());
        }
        let back = target.filter(|_| onto == Onto::Exchange);
        let entries = vec![
            Entry { folder: from.0, name: from.1.into(), before: Some(source), after: back },
            Entry { folder: to.0, name: to.1.into(), before: target, after: Some(source) },
        ];
        let is_folder = |inode: Option<u64>| inode.is_some_and(|inode| self.live.is_folder(inode));
        let moves = is_folder(Some(source)) || is_folder(back);
        let removes = target.filter(|_| back.is_none() && is_folder(target));
        let verb = if back.is_some() { Verb::Exchange } else { Verb::Rename };
        self.change_names(verb, entries, moves, removes, now);
        Ok(())
    }

    /// Checks that no folder moves into itself, and that a name is replaced by one of its kind.
    fn check_rename(
        &self,
        from: u64,
        source: u64,
        to: u64,
        target: Option<u64>,
        onto: Onto,
    ) -> Result<(), FolderError> {
        if self.is_inside(to, source) {
            return Err(FolderError::Invalid);
        }
        let Some(target) = target else { return Ok(()) };
        let is_above = self.is_inside(from, target);
        match (self.live.is_folder(source), self.live.is_folder(target)) {
            _ if onto == Onto::Exchange => {
                if is_above {
                    Err(FolderError::Invalid)
                } else {
                    Ok(())
                }
            }
            _ if is_above => Err(FolderError::NotEmpty),
            (true, false) => Err(FolderError::NotFolder),
            (false, true) => Err(FolderError::IsFolder),
            (true, true) if source != target && !self.live.names(target)?.is_empty() => {
                Err(FolderError::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    /// Whether `folder` is `above` or lies in it.
    fn is_inside(&self, folder: u64, above: u64) -> bool {
        let mut at = folder;
        while at != above && at != ROOT {
            let Some(Inode { place, .. }) = self.live.inodes.get(&at) else { return false };
            at = place.0;
        }
        at == above
    }

    /// Checks that a folder can get this name.
    fn free(&self, folder: u64, name: &[u8]) -> Result<(), FolderError> {
        match self.lookup(folder, name) {
            Ok(_) => Err(FolderError::Exists),
            // A folder that was removed while it was open gets no names.
            Err(FolderError::NotFound) if self.live.inode(folder)?.links > 0 => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn change_names(&mut self, verb: Verb, entries: Vec<Entry>, moves: bool, removes: Option<u64>, now: i64) {
        let number = self.versions.reserve();
        self.record(number, number, Change::Names { verb, entries, moves, removes, now });
    }
}

/// Checks that a name can be one.
fn check(name: &[u8]) -> Result<(), FolderError> {
    match name {
        b"" | b"." | b".." => Err(FolderError::Invalid),
        _ if name.contains(&b'/') || name.contains(&0) => Err(FolderError::Invalid),
        _ if name.len() > 255 => Err(FolderError::NameTooLong),
        _ => Ok(()),
    }
}
