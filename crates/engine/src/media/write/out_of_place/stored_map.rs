//! Reads the map from pages to addresses from the drive: the newest snapshot, and the commits of its journal.

use super::block::{self, BlockInfo, BlockKind};
use crate::Error;
use crate::format::layout::{BLOCK_HEADER, Layout, Superblock, addresses_in_a_block};
use crate::format::page::Salt;
use crate::media::image::Source;
use crate::wait::insist;
use fulgurite_base::PageId;

/// The address of a unit that was never written.
pub(crate) const UNMAPPED: u32 = u32::MAX;

/// The map as it was read from the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredMap {
    /// The address of each unit; [`UNMAPPED`] if the unit was never written.
    pub addresses: Vec<u32>,
    /// The number of the snapshot.
    pub epoch: u64,
    /// The index of the next block in the journal. After an interrupted commit, this is the end of the
    /// journal. The next commit then starts a new journal, so that no journal has remains of a commit before
    /// a durable commit.
    pub next_block: u64,
    /// The number of the last complete commit.
    pub number: u64,
}

fn damaged(layout: &Layout, what: &str) -> Error {
    Error::corrupt(layout.data, format!("the map of pages: {what}"))
}

/// The number of blocks that are read concurrently.
const READ_TOGETHER: usize = 64;

struct Reader<'a> {
    source: &'a dyn Source,
    layout: Layout,
    salt: Salt,
}

impl Reader<'_> {
    /// Reads `count` blocks from block `first` on.
    async fn read(&self, first: u64, count: u64) -> Result<Vec<u8>, Error> {
        let size = u64::from(self.layout.block_bytes);
        let mut bytes = vec![0; (count * size) as usize];
        for (at, piece) in
            (first..).step_by(READ_TOGETHER).zip(bytes.chunks_mut(READ_TOGETHER * size as usize))
        {
            insist(async || self.source.read(at * size, piece).await).await?;
        }
        Ok(bytes)
    }

    fn block<'b>(&self, bytes: &'b [u8], index: u64) -> &'b [u8] {
        let size = self.layout.block_bytes as usize;
        &bytes[index as usize * size..][..size]
    }

    /// Returns the first block of the half of the map's area that an epoch uses.
    fn half(&self, epoch: u64) -> u64 {
        self.layout.map + (epoch % 2) * self.layout.half()
    }

    /// Returns the head with the highest epoch. Each half of the map's area has two copies of its head, so
    /// that damage to one copy does not bring back an older map.
    async fn head(&self) -> Result<BlockInfo, Error> {
        let mut newest: Option<BlockInfo> = None;
        for half in 0..2 {
            for address in [self.half(half), self.half(half) + self.layout.half() - 1] {
                let bytes = self.read(address, 1).await?;
                let head = block::open(&bytes, self.salt)
                    .filter(|info| info.kind == BlockKind::Head && info.epoch % 2 == half);
                newest = [newest, head].into_iter().flatten().max_by_key(|info| info.epoch);
            }
        }
        newest.ok_or_else(|| damaged(&self.layout, "none of its heads is intact"))
    }

    async fn snapshot(&self, head: &BlockInfo) -> Result<Vec<u32>, Error> {
        let units = self.layout.units as usize;
        let per_block = addresses_in_a_block(self.layout.block_bytes) as usize;
        let bytes = self.read(self.half(head.epoch) + 1, self.layout.snapshot).await?;
        let mut addresses = Vec::with_capacity(units);
        for index in 0..self.layout.snapshot {
            let block = self.block(&bytes, index);
            let entries = per_block.min(units - addresses.len());
            let is_it = |info: &BlockInfo| {
                (info.kind, info.epoch, u64::from(info.index), info.entries as usize)
                    == (BlockKind::AddressMap, head.epoch, index, entries)
            };
            if !block::open(block, self.salt).is_some_and(|info| is_it(&info)) {
                return Err(damaged(&self.layout, &format!("block {index} of its snapshot is damaged")));
            }
            addresses.extend((0..entries).map(|entry| block::address(block, entry)));
        }
        Ok(addresses)
    }

    /// Returns the header of a block of the journal, or `None` if the block does not belong to the journal of
    /// `epoch`.
    fn changes(&self, journal: &[u8], epoch: u64, index: u64) -> Option<BlockInfo> {
        let is_there = index < self.layout.journal;
        let info = is_there.then(|| block::open(self.block(journal, index), self.salt)).flatten()?;
        (info.kind == BlockKind::Changes && info.epoch == epoch).then_some(info)
    }

    /// Returns the header of the commit at block `at`, or `None` if the commit is incomplete or does not
    /// follow commit `last`.
    fn commit(&self, journal: &[u8], epoch: u64, at: u64, last: u64) -> Option<BlockInfo> {
        let first = self.changes(journal, epoch, at).filter(|first| first.number == last + 1)?;
        let is_part = |index: u64| {
            let part = self.changes(journal, epoch, at + index);
            part.is_some_and(|part| BlockInfo { index: index as u32, entries: part.entries, ..first } == part)
        };
        (0..u64::from(first.of)).all(is_part).then_some(first)
    }

    /// Applies the changes in a block to the map.
    fn apply(&self, block: &[u8], entries: u32, addresses: &mut [u32]) -> Result<(), Error> {
        for entry in 0..entries as usize {
            let (unit, address) = (block::address(block, 2 * entry), block::address(block, 2 * entry + 1));
            let Some(known) = addresses.get_mut(unit as usize) else {
                return Err(damaged(&self.layout, "it has a unit that the store does not have"));
            };
            *known = address;
        }
        Ok(())
    }

    /// Applies all complete commits to the map. Returns the next block of the journal and the number of the
    /// last commit.
    ///
    /// The last complete commit may be followed by remains of the next one, which a crash interrupted. A
    /// commit begins only when the previous one is durable, so any later commit shows that a durable one was
    /// lost.
    async fn commits(&self, head: &BlockInfo, addresses: &mut [u32]) -> Result<(u64, u64), Error> {
        let journal =
            self.read(self.half(head.epoch) + 1 + self.layout.snapshot, self.layout.journal).await?;
        let (mut at, mut last) = (0, head.number);
        while let Some(commit) = self.commit(&journal, head.epoch, at, last) {
            for index in at..at + u64::from(commit.of) {
                let entries = self.changes(&journal, head.epoch, index).map_or(0, |info| info.entries);
                self.apply(self.block(&journal, index), entries, addresses)?;
            }
            (at, last) = (at + u64::from(commit.of), commit.number);
        }
        let behind = (at..self.layout.journal).filter_map(|index| self.changes(&journal, head.epoch, index));
        match behind.map(|info| info.number).max() {
            Some(number) if number > last + 1 => {
                Err(damaged(&self.layout, "a commit of its journal is damaged"))
            }
            Some(number) if number > last => Ok((self.layout.journal, last)),
            _ => Ok((at, last)),
        }
    }
}

/// Returns the superblock in the head of a map; `None` if these bytes are no such head.
pub(crate) fn superblock_in_head(bytes: &[u8]) -> Option<Superblock> {
    let superblock = Superblock::decode(bytes.get(BLOCK_HEADER..)?).ok()?;
    superblock.out_of_place.map(|_| superblock)
}

/// Reads the map of a store. Fails with [`Error::Corrupt`] if a durable part of the map is damaged.
pub(crate) async fn read(
    source: &dyn Source,
    layout: Layout,
    superblock: &Superblock,
) -> Result<StoredMap, Error> {
    let reader = Reader { source, layout, salt: superblock.salt() };
    let head = reader.head().await?;
    let mut addresses = reader.snapshot(&head).await?;
    let (next_block, last) = reader.commits(&head, &mut addresses).await?;
    if last < layout.shape.commit {
        return Err(damaged(&layout, "its journal has lost its end"));
    }
    let is_sound = |address: &u32| *address == UNMAPPED || u64::from(*address) < layout.physical();
    if !addresses.iter().all(is_sound) {
        return Err(damaged(&layout, "it has an address that the drive does not have"));
    }
    Ok(StoredMap { addresses, epoch: head.epoch, next_block, number: last })
}

/// Returns the addresses of a page's units. A compressed page has addresses for the first few units only, and
/// other pages for all. Empty if the page was never written.
pub(crate) fn units_of<'a>(addresses: &'a [u32], layout: &Layout, page: PageId) -> &'a [u32] {
    let Some(first) = layout.first_unit(page) else { return &[] };
    let all =
        addresses.get(first as usize..(first + u64::from(layout.page_units)) as usize).unwrap_or_default();
    let len = all.iter().position(|address| *address == UNMAPPED).unwrap_or(all.len());
    &all[..len]
}
