//! The folder: two trees, the bytes of the files, and the changes between the durable tree and the present one.
//!
//! A file's bytes have the addresses from `inode << 40` on, so inode numbers are never used twice. Bytes beyond a
//! file's size are zero, in every state that a cut can leave.

use crate::error::FolderError;
use crate::pending::Journal;
use crate::rules::{Model, Rules};
use crate::tree::{Attributes, Body, Change, Inode, Kind, ROOT, Tree};
use fulgurite_disk::Versions;
use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of a page, in which contents are stored and files are extended.
const PAGE_BYTES: u64 = 4_096;
/// The most bytes of a file, as a power of two.
const FILE_SHIFT: u32 = 40;
/// The inode numbers end before this one, so that no address overflows.
const INODES: u64 = (1 << (64 - FILE_SHIFT)) - 1;
/// The most changes that a cut can lose. Each may hold a page, so they are bounded apart from their bytes.
const CHANGES: usize = 32_768;

/// A folder of files. Clones share the bytes.
///
/// Inodes are known by number; that of the folder itself is [`ROOT`]. `now` is the time in the unit of the caller.
#[derive(Clone)]
pub struct Folder {
    pub(crate) rules: Rules,
    /// With all changes.
    pub(crate) live: Tree,
    /// With the durable changes. It holds every inode from its creation on, with a name or without.
    pub(crate) durable: Tree,
    pub(crate) versions: Versions,
    pub(crate) journal: Journal,
    /// The number of times that each inode is open.
    pub(crate) opens: BTreeMap<u64, u64>,
    next_inode: u64,
}

impl Folder {
    /// Creates an empty folder.
    pub fn new(rules: Rules) -> Folder {
        let pages = 1 << (64 - PAGE_BYTES.trailing_zeros());
        let mut versions =
            Versions::new(pages, PAGE_BYTES as u32, rules.tear_bytes.max(1), rules.cache_bytes);
        // No change has the number 0.
        versions.reserve();
        Folder {
            rules,
            live: Tree::new(),
            durable: Tree::new(),
            versions,
            journal: Journal::default(),
            opens: BTreeMap::new(),
            next_inode: ROOT + 1,
        }
    }

    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Returns the bytes of all files, in whole pages. Those of a removed file count until its removal is durable.
    pub fn bytes_used(&self) -> u64 {
        self.versions.pages_written() * PAGE_BYTES
    }

    /// Returns the attributes of an inode.
    pub fn attributes(&self, inode: u64) -> Result<Attributes, FolderError> {
        let Inode { body, mode, mtime, links, .. } = self.live.inode(inode)?;
        let (kind, size) = match body {
            Body::File(size) => (Kind::File, *size),
            Body::Folder(_) => (Kind::Folder, 0),
            Body::Symlink(target) => (Kind::Symlink, target.len() as u64),
        };
        Ok(Attributes { kind, mode: *mode, size, links: *links, mtime: *mtime })
    }

    /// Changes the permission bits of an inode.
    pub fn set_mode(&mut self, inode: u64, mode: u32) -> Result<(), FolderError> {
        if self.live.inode(inode)?.mode != mode {
            let number = self.versions.reserve();
            self.record(number, number, Change::Mode { inode, mode });
        }
        Ok(())
    }

    /// Appends at most `length` bytes of a file from `offset` on to `out`: fewer at its end.
    pub fn read(&self, file: u64, offset: u64, length: usize, out: &mut Vec<u8>) -> Result<(), FolderError> {
        let size = self.live.file(file)?;
        let length = size.saturating_sub(offset).min(length as u64);
        if length > 0 {
            self.versions.read(addresses(file, offset..size).start, length as usize, out);
        }
        Ok(())
    }

    /// Writes `data` to a file from `offset` on, and extends it if necessary.
    pub fn write(&mut self, file: u64, offset: u64, data: &[u8], now: i64) -> Result<(), FolderError> {
        let size = self.live.file(file)?;
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= 1 << FILE_SHIFT);
        let end = end.ok_or(FolderError::TooLarge)?;
        if data.is_empty() {
            return Ok(());
        }
        self.reserve(addresses(file, offset..end))?;
        let (inside, beyond) = data.split_at(end.min(size).saturating_sub(offset) as usize);
        let call = self.overwrite(file, offset, inside.len() as u64, Some(inside));
        self.extend(file, offset.max(size), beyond, call, now);
        self.touch(file, now);
        Ok(())
    }

    /// Makes a range of a file read as zeros. Its size stays, so the part of the range beyond the end is ignored.
    pub fn zero(&mut self, file: u64, offset: u64, length: u64, now: i64) -> Result<(), FolderError> {
        let size = self.live.file(file)?;
        let length = size.saturating_sub(offset).min(length);
        self.overwrite(file, offset, length, None);
        self.touch(file, now);
        Ok(())
    }

    /// Changes the size of a file. Bytes that it gains are zeros.
    pub fn truncate(&mut self, file: u64, size: u64, now: i64) -> Result<(), FolderError> {
        let from = self.live.file(file)?;
        if size > 1 << FILE_SHIFT {
            return Err(FolderError::TooLarge);
        }
        if size != from {
            // The zeros have the number of the truncation, so they are lost with it. Whole pages are freed.
            let number = match size < from {
                true => self.versions.write(addresses(file, size..page_end(from)), None),
                false => self.versions.reserve(),
            };
            self.record(number, number, Change::Size { file, from, to: size, by_write: false, now });
        }
        self.touch(file, now);
        Ok(())
    }

    /// Writes inside the size of a file. Returns the number of the first change.
    fn overwrite(&mut self, file: u64, offset: u64, length: u64, data: Option<&[u8]>) -> Option<u64> {
        let (mut at, end) = (offset, offset + length);
        let mut call = None;
        while at < end {
            let to = self.journal.owner(file, at).1.min(end);
            let part = (at - offset) as usize..(to - offset) as usize;
            let number = self.write_bytes(file, at..to, data.map(|data| &data[part]));
            // Zeros over zeros change nothing.
            if self.versions.is_losable(number) {
                let change = Change::Data { file, offset: at };
                self.record(number, *call.get_or_insert(number), change);
            }
            at = to;
        }
        call
    }

    /// Writes beyond the end of a file, in one change for each page.
    fn extend(&mut self, file: u64, offset: u64, data: &[u8], mut call: Option<u64>, now: i64) {
        let unit = PAGE_BYTES.max(self.rules.tear_bytes);
        let (mut at, end) = (offset, offset + data.len() as u64);
        while let (true, Ok(from)) = (at < end, self.live.file(file)) {
            let to = end.min((at / unit + 1) * unit);
            let bytes = &data[(at - offset) as usize..(to - offset) as usize];
            let size = Change::Size { file, from, to, by_write: true, now };
            match self.rules.model {
                // The bytes have the number of the extension, so neither is kept without the other.
                Model::Journaled => {
                    let number = self.write_bytes(file, at..to, Some(bytes));
                    self.record(number, *call.get_or_insert(number), size);
                }
                Model::Strict => {
                    let number = self.versions.reserve();
                    self.record(number, *call.get_or_insert(number), size);
                    let number = self.write_bytes(file, at..to, Some(bytes));
                    let data = Change::Data { file, offset: at };
                    self.record(number, call.unwrap_or(number), data);
                }
            }
            at = to;
        }
    }

    fn write_bytes(&mut self, file: u64, range: Range<u64>, data: Option<&[u8]>) -> u64 {
        let number = self.versions.write(addresses(file, range), data);
        self.versions.complete(number, false);
        number
    }

    fn touch(&mut self, file: u64, now: i64) {
        if let Some(file) = self.live.inodes.get_mut(&file) {
            file.mtime = now;
        }
    }

    /// Checks that a write has space. A folder without space makes the removals of files durable first.
    fn reserve(&mut self, range: Range<u64>) -> Result<(), FolderError> {
        let is_full = |folder: &Folder| {
            let pages = folder.versions.pages_written() + folder.versions.pages_missing(range.clone());
            pages * PAGE_BYTES > folder.rules.bytes
        };
        if is_full(self) {
            let ordered = self.journal.pending.iter().filter(|(_, pending)| pending.change.is_ordered());
            self.store(ordered.map(|(number, _)| *number).collect());
        }
        if is_full(self) { Err(FolderError::NoSpace) } else { Ok(()) }
    }

    /// Creates an inode without a name, and returns it.
    pub(crate) fn new_inode(&mut self, inode: Inode) -> Result<u64, FolderError> {
        let number = self.next_inode;
        if number >= INODES {
            return Err(FolderError::NoSpace);
        }
        self.next_inode += 1;
        self.live.inodes.insert(number, inode.clone());
        self.durable.inodes.insert(number, inode);
        Ok(number)
    }

    /// Makes a change that a cut may lose, and stores the oldest changes if there are too many.
    pub(crate) fn record(&mut self, number: u64, call: u64, change: Change) {
        self.journal.insert(number, call, change.clone(), &self.rules, &self.live);
        self.live.apply(&change);
        while let Some(oldest) = self.versions.overflow() {
            self.store(vec![oldest]);
        }
        while let Some((oldest, _)) = self.journal.pending.first_key_value().filter(|_| self.is_long()) {
            self.store(vec![*oldest]);
        }
    }

    fn is_long(&self) -> bool {
        self.journal.pending.len() > CHANGES
    }

    /// Makes changes durable, with all that they need.
    fn store(&mut self, numbers: Vec<u64>) {
        let durable = self.journal.store(numbers);
        for (number, change) in &durable {
            self.versions.store(*number);
            self.durable.apply(change);
        }
        for inode in durable.iter().flat_map(|(_, change)| change.inodes()) {
            self.reap(inode);
        }
    }

    /// Frees an inode that is not open and that no cut can bring back: it has no name, and no change of its names is
    /// pending.
    fn reap(&mut self, inode: u64) {
        let is_named = |(_, change): (u64, &Change)| matches!(change, Change::Names { .. });
        if self.live.inodes.get(&inode).is_none_or(|inode| inode.links > 0)
            || self.opens.contains_key(&inode)
            || self.journal.of(inode).any(is_named)
        {
            return;
        }
        let numbers: Vec<u64> = self.journal.of(inode).map(|(number, _)| number).collect();
        for number in numbers {
            self.versions.store(number);
            self.journal.forget(number);
        }
        self.discard(inode);
        self.live.inodes.remove(&inode);
        self.durable.inodes.remove(&inode);
    }

    /// Frees the bytes of a file, whose writes are durable.
    pub(crate) fn discard(&mut self, file: u64) {
        if let Some(size) = self.live.file(file).ok().filter(|size| *size > 0) {
            let number = self.versions.write(addresses(file, 0..page_end(size)), None);
            self.versions.store(number);
        }
    }

    /// Notes that an inode is open once more: it lives without a name until it is closed as often.
    pub fn open(&mut self, inode: u64) -> Result<(), FolderError> {
        self.live.inode(inode)?;
        *self.opens.entry(inode).or_insert(0) += 1;
        Ok(())
    }

    /// Notes that an inode is open once less.
    pub fn close(&mut self, inode: u64) {
        let Some(opens) = self.opens.get_mut(&inode) else { return };
        *opens -= 1;
        if *opens == 0 {
            self.opens.remove(&inode);
            self.reap(inode);
        }
    }

    /// Syncs a file, its bytes, size and mode, or a folder and its names.
    pub fn sync(&mut self, inode: u64) -> Result<(), FolderError> {
        self.live.inode(inode)?;
        if self.rules.lying {
            return Ok(());
        }
        let is_covered = |change: &Change| !matches!(change, Change::Names { .. }) || change.is_in(inode);
        let changes = self.journal.of(inode).filter(|(_, change)| is_covered(change));
        let mut numbers: Vec<u64> = changes.map(|(number, _)| number).collect();
        if self.rules.model == Model::Journaled {
            numbers.push(self.journal.last_ordered());
        }
        self.store(numbers);
        Ok(())
    }

    /// Makes everything durable, even if the rules say that syncs have no effect.
    pub fn sync_all(&mut self) {
        self.store(self.journal.pending.keys().copied().collect());
    }
}

/// Returns the end of the last page of a file of this size.
fn page_end(size: u64) -> u64 {
    size.next_multiple_of(PAGE_BYTES)
}

/// Returns the addresses of a range of a file.
pub(crate) fn addresses(file: u64, range: Range<u64>) -> Range<u64> {
    (file << FILE_SHIFT) + range.start..(file << FILE_SHIFT) + range.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Onto;

    /// The rule: changes that are durable take no memory, however they became so.
    #[test]
    fn nothing_is_left_of_durable_changes() {
        for model in [Model::Journaled, Model::Strict] {
            let mut folder = Folder::new(Rules { model, cache_bytes: 0, ..Rules::default() });
            let inner = folder.mkdir(ROOT, b"d", 0o755, 0).unwrap();
            let file = folder.create(inner, b"f", 0o644, 0).unwrap();
            folder.write(file, 100, &[1; 10_000], 0).unwrap();
            folder.truncate(file, 50, 0).unwrap();
            folder.rename((inner, b"f"), (ROOT, b"f"), Onto::Replace, 0).unwrap();
            folder.sync(inner).unwrap();
            folder.rmdir(ROOT, b"d", 0).unwrap();
            folder.sync_all();
            assert!(folder.journal.is_empty(), "{model:?}");
            assert_eq!(folder.versions.pages_unflushed(), 0);
            assert_eq!(folder.durable.inodes.len(), 2);
        }
    }
}
