//! Reads the pages of a damaged store, in the state to which recovery would bring them.

use super::log::LogRead;
use crate::Lsn;
use crate::format::layout::Layout;
use crate::format::layout::Superblock;
use crate::format::log_record::{Delta, Op};
use crate::format::page::node::Node;
use crate::format::page::{self, Kind, map};
use crate::media::image::Source;
use crate::media::write::out_of_place;
use crate::memory::space::Space;
use fulgurite_base::PageId;
use std::collections::{BTreeMap, BTreeSet};

/// An intact leaf without a parent.
pub(super) struct Stray {
    pub page: PageId,
    pub tree: u32,
    pub lsn: Lsn,
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
}

/// The pages of a damaged store, and the last operation of the log on each key.
pub(super) struct Pages<'a> {
    source: &'a dyn Source,
    /// The layout and the readable part of the page map, for a store that writes out of place; otherwise
    /// `None`.
    map: Option<(Layout, Vec<u32>)>,
    pub superblock: Superblock,
    pub space: Space,
    /// The pages changed by the log, with their contents after its structure changes; `None` if a change
    /// could not be applied.
    changed: BTreeMap<PageId, Option<Vec<u8>>>,
    /// The pages that were made from their images because the drive did not have them.
    made: BTreeSet<PageId>,
    /// Intact copies in the double-write area of pages that are damaged at their home location.
    copies: BTreeMap<PageId, Vec<u8>>,
    /// The last operation of the log on each key, by tree and key.
    pub ops: BTreeMap<(u32, Vec<u8>), Op>,
    /// The end of the readable log if it is damaged there; `None` if the log was read to its end.
    pub cut: Option<Lsn>,
}

impl<'a> Pages<'a> {
    /// Reads the page map, and redoes the structure changes of the log.
    pub(super) async fn new(source: &'a dyn Source, superblock: Superblock, log: LogRead) -> Pages<'a> {
        let space = Space::new(superblock.data_start(), superblock.pages, superblock.page_bytes);
        let cut = log.damage.is_some().then_some(log.end);
        let (changed, copies, ops) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let map = match superblock.layout() {
            None => None,
            Some(layout) => {
                let kept = out_of_place::read(source, layout, &superblock).await.map(|map| map.addresses);
                let places = match kept {
                    Ok(places) => places,
                    Err(_) => out_of_place::find_scattered(source, &layout, &superblock).await,
                };
                Some((layout, places))
            }
        };
        let made = BTreeSet::new();
        let mut pages = Pages { source, map, superblock, space, changed, made, copies, ops, cut };
        pages.find_copies().await;
        for (lsn, entry) in log.entries {
            let (changes, stored) = Delta::by_page(&entry.deltas);
            for page in stored.into_iter().filter(|page| pages.made.contains(page)) {
                // The image and the log behind it do not add up to the page, so recovery would not accept the
                // image either.
                pages.changed.insert(page, None);
            }
            for (page, deltas) in changes {
                pages.change(page, lsn, &deltas).await;
            }
            let fits = |op: &Op| op.as_ref().fits(pages.superblock.page_bytes);
            let ops = entry.ops.into_iter().filter(fits).map(|op| ((op.tree, op.key.to_vec()), op));
            pages.ops.extend(ops);
        }
        pages
    }

    /// Returns the numbers of all data pages.
    pub(super) fn numbers(&self) -> impl Iterator<Item = PageId> + use<> {
        (self.superblock.data_start().0..self.superblock.pages).map(PageId)
    }

    /// Returns the contents of a page; `None` if it is damaged or cannot be relied on.
    pub(super) async fn get(&self, page: PageId) -> Option<Vec<u8>> {
        match self.changed.get(&page) {
            Some(bytes) => bytes.clone(),
            None => self.stored(page).await,
        }
    }

    async fn stored(&self, page: PageId) -> Option<Vec<u8>> {
        let usable = |bytes: &[u8]| {
            page::is_whole(bytes, page, self.superblock.salt()) && page::fault(bytes).is_none()
        };
        let home = self.read(page).await.filter(|bytes| usable(bytes));
        home.or_else(|| self.copies.get(&page).cloned())
    }

    async fn read(&self, page: PageId) -> Option<Vec<u8>> {
        if let Some((layout, places)) = &self.map {
            return out_of_place::read_page(self.source, places, layout, (page, self.superblock.salt()))
                .await;
        }
        let size = u64::from(self.superblock.page_bytes);
        let mut bytes = vec![0; size as usize];
        self.source.read(page.0.checked_mul(size)?, &mut bytes).await.ok().map(|()| bytes)
    }

    /// Finds the copies in the double-write area. Copies that are older than the redo point protect nothing
    /// and are ignored, as recovery does.
    async fn find_copies(&mut self) {
        let (first, pages) = (self.superblock.double_write_start().0, self.superblock.double_write_pages);
        let (salt, redo) = (self.superblock.salt(), self.superblock.redo);
        if self.superblock.clean || self.map.is_some() {
            return;
        }
        for index in first..first + pages {
            let Some(bytes) = self.read(PageId(index)).await else { continue };
            let number = page::number(&bytes);
            let usable = page::is_whole(&bytes, number, salt) && page::fault(&bytes).is_none();
            let newer = |old: &Vec<u8>| page::lsn(old) <= page::lsn(&bytes);
            if usable && page::lsn(&bytes) >= redo && self.copies.get(&number).is_none_or(newer) {
                self.copies.insert(number, bytes);
            }
        }
    }

    /// Redoes the structure changes of one log record on one page.
    async fn change(&mut self, number: PageId, lsn: Lsn, deltas: &[&Delta]) {
        let data = self.superblock.data_start().0..self.superblock.pages;
        if !data.contains(&number.0) {
            return;
        }
        let replaces = deltas.first().is_some_and(|delta| delta.replaces_page());
        let empty = || replaces.then(|| vec![0; self.superblock.page_bytes as usize]);
        let before = self.get(number).await.or_else(empty);
        let is_behind = before.as_ref().is_some_and(|bytes| page::structure_lsn(bytes) < lsn);
        if is_behind && replaces {
            self.made.insert(number);
        }
        let after = before.and_then(|mut bytes| {
            if !is_behind {
                return Some(bytes);
            }
            // The LSN is taken before the changes are applied, because the LSN field of an image says nothing
            // about the page's past.
            let newest = page::lsn(&bytes).max(lsn);
            for delta in deltas {
                delta.apply(&mut bytes).ok().filter(|()| page::fault(&bytes).is_none())?;
            }
            page::set_structure_lsn(&mut bytes, lsn);
            page::set_lsn(&mut bytes, newest);
            Some(bytes).filter(|bytes| page::number(bytes) == number)
        });
        self.changed.insert(number, after);
    }

    /// Returns the leaves that have no parent and that are not known to be free.
    pub(super) async fn strays(&self, reached: &BTreeSet<PageId>) -> Vec<Stray> {
        let mut strays = Vec::new();
        let mut current: Option<(PageId, Option<Vec<u8>>)> = None;
        for page in self.numbers().filter(|page| self.space.is_data(*page)) {
            let (map, index) = self.space.place(page);
            if current.as_ref().is_none_or(|(known, _)| *known != map) {
                let bytes = self.get(map).await.filter(|bytes| page::kind(bytes) == Some(Kind::Map));
                current = Some((map, bytes));
            }
            let bits = current.as_ref().and_then(|(_, bits)| bits.as_ref());
            // If the allocation map is lost, every page may be in use.
            if reached.contains(&page) || bits.is_some_and(|bits| !map::is_used(bits, index)) {
                continue;
            }
            if let Some(bytes) = self.get(page).await
                && let Some(node) = Node::new(&bytes).filter(|node| node.level() == 0)
            {
                let (low, high) = (node.low().to_vec(), node.high().map(<[u8]>::to_vec));
                strays.push(Stray { page, tree: page::tree(&bytes), lsn: page::lsn(&bytes), low, high });
            }
        }
        strays
    }
}
