//! Finds the layout of a damaged store: from a superblock, or from its pages if both superblocks are lost.
//!
//! The checksum of a page is a CRC that begins with the salt of the store, and a CRC can be calculated
//! backwards. So each intact page reveals the salt with which its checksum was made. The pages of one store
//! agree on the salt; random bytes do not.

use super::log::blocks;
use crate::format::layout::{FORMAT, HEAD, Superblock, double_write_pages};
use crate::format::log_block::Block;
use crate::format::page::{self, Kind};
use crate::format::tree::{CATALOGUE, LARGE};
use crate::media::image::Source;
use crate::media::superblock;
use crate::media::write::out_of_place::superblock_in_head;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use std::collections::BTreeMap;

/// The page sizes and block sizes that a store may have, in bytes.
const SIZES: [u32; 5] = [4096, 8192, 16384, 32768, 65536];
/// The number of intact pages that must agree on a salt. Every store has more than this.
const LEAST_VOTES: u32 = 2;

/// Returns the superblock of a damaged store, and whether it was guessed from pages.
pub(super) async fn superblock(source: &dyn Source) -> Result<(Superblock, bool), Error> {
    let found = superblock::read_both(source).await;
    let version = found.iter().flat_map(|found| found.as_ref().err()).find(|error| {
        // A store of another version is not damaged, so it is refused.
        matches!(error, Error::Version { .. })
    });
    if let Some(error) = version {
        return Err(error.clone());
    }
    let whole = found.iter().all(Result::is_ok);
    let newest = found.into_iter().flatten().max_by_key(|superblock| superblock.generation);
    match newest {
        // If the other superblock is damaged, the clean mark of this one may be out of date, as when a store
        // is opened.
        Some(superblock) if whole => Ok((superblock, false)),
        Some(superblock) => {
            let mut superblock = Superblock { clean: false, ..superblock };
            let found = blocks(source, &superblock).await;
            let block = u64::from(superblock.block_bytes);
            // If the damaged superblock was the newer one, the log may have overwritten the redo point of
            // this one since. Then the log is followed back from its end.
            if !found.contains_key(&(superblock.redo.0 / block * block)) {
                follow_back(&found, &mut superblock);
            }
            Ok((superblock, false))
        }
        None => Ok((guess(source).await?, true)),
    }
}

/// Returns the salt that gives the bytes of a page the checksum that the page contains.
fn salt_of(page: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|index| {
        (0..8).fold(index as u32, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 })
    });
    let mut by_top = [0u8; 256];
    for (index, entry) in table.iter().enumerate() {
        by_top[(entry >> 24) as usize] = index as u8;
    }
    let mut state = !page::get_u32(page, 0);
    for byte in page[4..].iter().rev() {
        let index = by_top[(state >> 24) as usize];
        state = (state ^ table[usize::from(index)]) << 8 | u32::from(index ^ byte);
    }
    !state
}

/// A page whose number is equal to its position on the drive.
struct Vote {
    page: u64,
    kind: Option<Kind>,
    tree: u32,
}

async fn guess(source: &dyn Source) -> Result<Superblock, Error> {
    let mut votes: BTreeMap<(u32, u32), Vec<Vote>> = BTreeMap::new();
    for size in SIZES {
        let mut bytes = vec![0; size as usize];
        for page in 0..source.len() / u64::from(size) {
            let read = source.read(page * u64::from(size), &mut bytes).await.is_ok();
            if !read || page::kind(&bytes).is_none() || page::number(&bytes) != PageId(page) {
                continue;
            }
            let vote = Vote { page, kind: page::kind(&bytes), tree: page::tree(&bytes) };
            votes.entry((size, salt_of(&bytes))).or_default().push(vote);
        }
    }
    let most = votes.into_iter().max_by_key(|(_, pages)| pages.len());
    if let Some(kept) = kept_by_a_map(source).await {
        // The map belongs to a store that writes out of place, where a page lies at the address of its own
        // number only by chance. If several pages lie there and have the salt of another store, a store
        // that writes in place was made later, and the map is left over from before.
        let others = |((_, salt), pages): &((u32, u32), Vec<Vote>)| {
            pages.len() >= LEAST_VOTES as usize && *salt != kept.salt().0
        };
        if !most.as_ref().is_some_and(others) {
            let mut superblock = Superblock { clean: false, ..kept };
            let found = blocks(source, &superblock).await;
            follow_back(&found, &mut superblock);
            return Ok(superblock);
        }
    }
    let ((page_bytes, salt), pages) = most.ok_or(Error::NotAStore)?;
    if pages.len() < LEAST_VOTES as usize {
        return Err(Error::NotAStore);
    }
    // The first allocation map and the two first roots behind it have lower numbers than all other pages of
    // their kinds, so they show where the data begin.
    let first = |wanted: &dyn Fn(&Vote) -> bool, offset: u64| {
        pages.iter().filter(|vote| wanted(vote)).filter_map(|vote| vote.page.checked_sub(offset)).min()
    };
    let is_node = |vote: &Vote| matches!(vote.kind, Some(Kind::Leaf | Kind::Inner));
    let starts = [
        first(&|vote| vote.kind == Some(Kind::Map), 0),
        first(&|vote| is_node(vote) && vote.tree == CATALOGUE, 1),
        first(&|vote| is_node(vote) && vote.tree == LARGE, 2),
    ];
    let data_start = starts.into_iter().flatten().min().ok_or(Error::NotAStore)?;
    from_pages(source, page_bytes, salt, data_start).await
}

/// Returns the newest superblock of which the page map of an out-of-place store contains a copy. The LSNs in
/// this superblock are out of date.
async fn kept_by_a_map(source: &dyn Source) -> Option<Superblock> {
    let mut newest: Option<Superblock> = None;
    let mut bytes = vec![0; 4096];
    for at in (0..source.len()).step_by(4096) {
        let len = bytes.len().min((source.len() - at) as usize);
        if source.read(at, &mut bytes[..len]).await.is_ok()
            && let Some(kept) = superblock_in_head(&bytes)
            && newest.as_ref().is_none_or(|known| known.generation < kept.generation)
        {
            newest = Some(kept);
        }
    }
    newest
}

/// Creates the superblock of a store whose data pages begin at `data_start`. Its redo point is at the oldest
/// log block from which a chain of blocks leads to the end of the log.
async fn from_pages(
    source: &dyn Source,
    page_bytes: u32,
    salt: u32,
    data_start: u64,
) -> Result<Superblock, Error> {
    let head = HEAD / u64::from(page_bytes);
    let pages = source.len() / u64::from(page_bytes);
    let double_write_pages = double_write_pages(pages);
    let log_pages = data_start.checked_sub(head + double_write_pages).filter(|pages| *pages > 0);
    let mut superblock = Superblock {
        format: FORMAT,
        generation: 1,
        page_bytes,
        block_bytes: 4096,
        pages,
        log_pages: log_pages.ok_or(Error::NotAStore)?,
        double_write_pages,
        redo: Lsn(0),
        log_end: Lsn(0),
        log_crc: 0,
        clean: false,
        next_large: 1,
        identity: u128::from(salt),
        out_of_place: None,
    };
    let mut most = 0;
    for block_bytes in SIZES {
        let found = blocks(source, &Superblock { block_bytes, ..superblock.clone() }).await;
        if found.len() > most {
            most = found.len();
            superblock.block_bytes = block_bytes;
        }
    }
    let found = blocks(source, &superblock).await;
    follow_back(&found, &mut superblock);
    Ok(superblock)
}

/// Sets the end of the log behind its last block. Sets the redo point as early as the chain of blocks leads
/// back from there.
fn follow_back(found: &BTreeMap<u64, (Block, u32)>, superblock: &mut Superblock) {
    let block = u64::from(superblock.block_bytes);
    let Some(mut at) = found.last_key_value().map(|(at, _)| *at) else { return };
    superblock.log_end = Lsn(at + block);
    superblock.redo = superblock.log_end;
    while let Some((this, _)) = found.get(&at) {
        let before = at.checked_sub(block).and_then(|before| found.get(&before));
        // The redo point must be the beginning of a log record, and the first block of a flush begins with
        // one.
        if this.first {
            superblock.redo = Lsn(at);
        }
        match before {
            Some((_, crc)) if *crc == this.previous => at -= block,
            _ => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::{Salt, init, seal};

    #[test]
    fn a_page_tells_the_salt_that_it_was_sealed_with() {
        let mut page = vec![0; 4096];
        init(&mut page, Kind::Leaf, 0, PageId(7), 3);
        page[500] = 9;
        seal(&mut page, Salt(0xDEAD_1234));
        assert_eq!(salt_of(&page), 0xDEAD_1234);
    }
}
