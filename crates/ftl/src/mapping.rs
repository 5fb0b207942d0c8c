//! The page map: logical to physical, physical to logical, and a valid bit for each physical page. It takes 4
//! + 4 + ⅛ bytes a page.
//!
//! Several logical pages may share a physical page (SHARE). The physical-to-logical map then names one of
//! them, the owner. The other logical pages, the sharers, are in a side table, so only shared pages take its
//! memory.

use fulgurite_base::{Ppn, StreamId, advise_huge_pages, prefetch};
use rustc_hash::FxHashMap;

/// The distance, in pages, to the page whose entries are prefetched, since a cache miss takes longer than one page.
pub(crate) const AHEAD: usize = 16;

/// The entry of an unmapped logical page. It is zero, because the system provides zeroed memory when it is touched. So
/// a map takes memory for the pages that were written, and none for the rest of a large drive.
const UNMAPPED: u32 = 0;

/// Returns the entry of a logical page at `ppn`, and the physical page of an entry. `u32::MAX` is no page number.
#[inline]
const fn entry(ppn: u32) -> u32 {
    !ppn
}

/// Both directions of the map and the valid bitmap. They always agree.
#[derive(Debug)]
pub struct Mapping {
    /// The [`entry`] of each logical page.
    l2p: Vec<u32>,
    p2l: Vec<u32>,
    valid: Vec<u64>,
    /// The logical pages of a physical page except its owner. No list is empty. Results never depend on the
    /// order of iteration.
    sharers: FxHashMap<u32, Vec<u32>>,
}

/// The valid pages of a victim, their owners and, if they go to several streams, those streams, in the same order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moving {
    pub(crate) from: Vec<u32>,
    pub(crate) lpns: Vec<u32>,
    pub(crate) streams: Vec<StreamId>,
}

impl Clone for Mapping {
    fn clone(&self) -> Mapping {
        Mapping {
            // Copies the tables separately, because a derived clone would allocate without asking for huge
            // pages.
            l2p: copied(&self.l2p),
            p2l: copied(&self.p2l),
            valid: copied(&self.valid),
            sharers: self.sharers.clone(),
        }
    }
}

impl Mapping {
    pub(crate) fn new(logical_pages: u32, physical_pages: u32) -> Mapping {
        Mapping {
            l2p: zeroed(logical_pages as usize),
            p2l: zeroed(physical_pages as usize),
            valid: zeroed(physical_pages.div_ceil(64) as usize),
            sharers: FxHashMap::default(),
        }
    }

    /// Returns the physical page of `lpn`; `None` if `lpn` is unmapped.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Ppn> {
        let found = self.l2p[lpn as usize];
        (found != UNMAPPED).then_some(Ppn(entry(found)))
    }

    /// Prefetches the map entry of `lpn`. On a drive of a terabyte every entry is a cache miss, and these
    /// misses cost more than the rest of a write.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.l2p, lpn as usize);
    }

    /// Prefetches the valid bit of the physical page of `lpn`. Reads the map entry of `lpn`.
    #[inline]
    pub fn prefetch_valid(&self, lpn: u32) {
        // No bit exists for an unmapped page; a prefetch out of range is ignored.
        prefetch(&self.valid, (entry(self.l2p[lpn as usize]) / 64) as usize);
    }

    /// Prefetches the entry that holds the owner of `ppn`.
    #[inline]
    pub fn prefetch_owner(&self, ppn: Ppn) {
        prefetch(&self.p2l, ppn.0 as usize);
    }

    /// Returns the owner of `ppn`: the logical page last written there, or one that shares it.
    #[inline]
    pub fn owner(&self, ppn: Ppn) -> u32 {
        self.p2l[ppn.0 as usize]
    }

    /// Returns whether `ppn` holds the current copy of a logical page.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[(ppn.0 / 64) as usize] >> (ppn.0 % 64) & 1 == 1
    }

    /// Returns the valid bits of `count` pages from `ppn`, at most 64.
    #[inline]
    pub fn valid_bits(&self, ppn: Ppn, count: u32) -> u64 {
        let (word, bit) = ((ppn.0 / 64) as usize, ppn.0 % 64);
        let low = self.valid[word] >> bit;
        // Treats the case within one word separately: a shift by 64 would overflow, and the last word has no
        // successor.
        let high = if bit + count > 64 { self.valid[word + 1] << (64 - bit) } else { 0 };
        (low | high) & (u64::MAX >> (64 - count))
    }

    /// Maps `lpn` to `ppn`. The old physical page of `lpn` must have been unmapped.
    #[inline]
    pub(crate) fn map(&mut self, lpn: u32, ppn: Ppn) {
        self.l2p[lpn as usize] = entry(ppn.0);
        self.p2l[ppn.0 as usize] = lpn;
        self.valid[(ppn.0 / 64) as usize] |= 1 << (ppn.0 % 64);
    }

    /// Unmaps `lpn`. Returns its physical page if that page became invalid.
    #[inline]
    pub(crate) fn unmap(&mut self, lpn: u32) -> Option<Ppn> {
        let ppn = self.lookup(lpn)?;
        self.l2p[lpn as usize] = UNMAPPED;
        // Checks for an empty table first, since most drives share no pages. This saves a hash for each page.
        if !self.sharers.is_empty() && self.leave(lpn, ppn) {
            return None;
        }
        self.valid[(ppn.0 / 64) as usize] &= !(1 << (ppn.0 % 64));
        Some(ppn)
    }

    /// Makes `ppn` invalid. No page shares it, and its owner is about to be mapped to another physical page.
    #[inline]
    pub(crate) fn forget(&mut self, ppn: Ppn) {
        self.valid[(ppn.0 / 64) as usize] &= !(1 << (ppn.0 % 64));
    }

    /// Removes `lpn` from the pages that share `ppn`. Returns false if no page shares it.
    fn leave(&mut self, lpn: u32, ppn: Ppn) -> bool {
        let Some(sharers) = self.sharers.get_mut(&ppn.0) else { return false };
        let owner = &mut self.p2l[ppn.0 as usize];
        if *owner == lpn {
            // Makes one of the sharers the owner, since the page must keep an owner.
            *owner = sharers.pop().expect("no list of sharers is empty");
        } else {
            sharers.retain(|sharer| *sharer != lpn);
        }
        if sharers.is_empty() {
            self.sharers.remove(&ppn.0);
        }
        true
    }

    /// Makes `lpn`, which must be unmapped, share the valid page `ppn`.
    pub(crate) fn share(&mut self, lpn: u32, ppn: Ppn) {
        self.l2p[lpn as usize] = entry(ppn.0);
        self.sharers.entry(ppn.0).or_default().push(lpn);
    }

    /// Moves a valid page with its owner and all sharers.
    #[inline]
    pub(crate) fn relocate(&mut self, from: Ppn, to: Ppn) {
        self.valid[(from.0 / 64) as usize] &= !(1 << (from.0 % 64));
        self.map(self.owner(from), to);
        if !self.sharers.is_empty()
            && let Some(sharers) = self.sharers.remove(&from.0)
        {
            sharers.iter().for_each(|sharer| self.l2p[*sharer as usize] = entry(to.0));
            self.sharers.insert(to.0, sharers);
        }
    }

    /// Returns the first valid page in `from..end`; `None` if there is none.
    #[inline]
    pub(crate) fn next_valid(&self, from: u32, end: u32) -> Option<Ppn> {
        let mut at = from;
        while at < end {
            let word = self.valid[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros();
                // Checks the bound, since the word may contain pages beyond `end`.
                return (found < end).then_some(Ppn(found));
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Appends the valid pages in `from..end` and their owners to `pages`.
    pub(crate) fn valid_in(&self, from: u32, end: u32, pages: &mut Moving) {
        let mut at = from;
        while at < end {
            let mut word = self.valid[(at / 64) as usize] >> (at % 64);
            let next = ((at / 64 + 1) * 64).min(end);
            // Masks only partial words: a whole word needs no mask, and its mask would need a shift by 64.
            if next - at < 64 {
                word &= (1 << (next - at)) - 1;
            }
            while word != 0 {
                let ppn = at + word.trailing_zeros();
                pages.from.push(ppn);
                pages.lpns.push(self.p2l[ppn as usize]);
                word &= word - 1;
            }
            at = next;
        }
    }

    /// Maps `lpns` to consecutive pages from `first` on. The valid bits of their old physical pages stay set.
    #[inline]
    pub(crate) fn map_run(&mut self, lpns: &[u32], first: u32) {
        let places = &mut self.p2l[first as usize..first as usize + lpns.len()];
        for (at, (lpn, owner)) in lpns.iter().zip(places).enumerate() {
            if let Some(ahead) = lpns.get(at + AHEAD) {
                prefetch(&self.l2p, *ahead as usize);
            }
            self.l2p[*lpn as usize] = entry(first + at as u32);
            *owner = *lpn;
        }
        self.fill_valid(first, first + lpns.len() as u32, true);
    }

    /// Marks all pages in `from..end` as valid or as invalid.
    pub(crate) fn fill_valid(&mut self, from: u32, end: u32, valid: bool) {
        let mut at = from;
        while at < end {
            let next = ((at / 64 + 1) * 64).min(end);
            let bits = if next - at == 64 { u64::MAX } else { ((1 << (next - at)) - 1) << (at % 64) };
            let word = &mut self.valid[(at / 64) as usize];
            *word = if valid { *word | bits } else { *word & !bits };
            at = next;
        }
    }

    /// Returns whether `lpn` shares `ppn` with its owner.
    pub(crate) fn shares(&self, lpn: u32, ppn: Ppn) -> bool {
        self.sharers.get(&ppn.0).is_some_and(|sharers| sharers.contains(&lpn))
    }

    /// Returns the number of owners and sharers of valid pages. This scans the map.
    pub(crate) fn owners_and_sharers(&self) -> u64 {
        let owners: u64 = self.valid.iter().map(|word| u64::from(word.count_ones())).sum();
        let sharers: usize = self.sharers.values().map(Vec::len).sum();
        owners + sharers as u64
    }

    /// Returns whether any page is shared.
    pub(crate) fn has_sharers(&self) -> bool {
        !self.sharers.is_empty()
    }

    /// Returns the memory held, in bytes. A shared page counts as 32 bytes.
    pub fn bytes(&self) -> usize {
        (self.l2p.len() + self.p2l.len()) * size_of::<u32>()
            + self.valid.len() * size_of::<u64>()
            + self.sharers.len() * 32
    }
}

/// Returns a table of `len` zeros, on huge pages if the system has them.
fn zeroed<T: Copy + From<u8>>(len: usize) -> Vec<T> {
    let mut table = vec![T::from(0); len];
    advise_huge_pages(&mut table);
    table
}

fn copied<T: Copy>(of: &[T]) -> Vec<T> {
    let mut table: Vec<T> = Vec::with_capacity(of.len());
    advise_huge_pages(table.spare_capacity_mut());
    table.extend_from_slice(of);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;

    const PAGES: u32 = 256;

    /// Returns a map in which about one page in `one_in` is valid.
    fn thinly_filled(one_in: u64) -> Mapping {
        let mut map = Mapping::new(PAGES, PAGES);
        let mut prng = Prng::new(3, "valid");
        (0..PAGES).filter(|_| prng.below(one_in) == 0).for_each(|page| map.map(page, Ppn(page)));
        map
    }

    /// The rule: the bits of a run are those of its pages, even if the run spans two words of the bitmap or
    /// ends with the bitmap.
    #[test]
    fn bits_of_a_run_are_those_of_its_pages() {
        let map = thinly_filled(2);
        for count in (1..=8).chain([48, 63, 64]) {
            for first in 0..=PAGES - count {
                let bits = map.valid_bits(Ppn(first), count);
                let expected =
                    (0..count).map(|at| u64::from(map.is_valid(Ppn(first + at))) << at).sum::<u64>();
                assert_eq!(bits, expected, "{count} pages from {first}");
            }
        }
    }

    /// The rule: the next valid page is the first one in the range; there is none if the range has none, even
    /// if a valid page follows the range.
    #[test]
    fn the_next_valid_page_is_in_the_range() {
        let map = thinly_filled(10);
        for from in 0..PAGES {
            for end in from..=PAGES {
                let first = (from..end).map(Ppn).find(|page| map.is_valid(*page));
                assert_eq!(map.next_valid(from, end), first, "{from} to {end}");
            }
        }
    }
}
