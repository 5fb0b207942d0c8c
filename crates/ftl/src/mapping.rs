//! The page map: logical to physical, physical to logical, and a bit for each physical page that
//! says whether it is valid. 4 + 4 + ⅛ bytes a page.
//!
//! A physical page may belong to several logical pages (SHARE). Physical to logical then names one of
//! them, the owner; the others stand in a side table that only shared pages pay for.

use fulgurite_base::{Ppn, advise_huge_pages, prefetch};
use rustc_hash::FxHashMap;

const UNMAPPED: u32 = u32::MAX;

/// The two directions of the map and the valid bitmap; they agree at all times.
#[derive(Debug)]
pub struct Mapping {
    l2p: Vec<u32>,
    p2l: Vec<u32>,
    valid: Vec<u64>,
    /// Logical pages of a physical page besides its owner; no empty lists. Never iterated in an
    /// order that matters.
    sharers: FxHashMap<u32, Vec<u32>>,
}

/// Valid pages of a victim, and whose they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moving {
    pub from: Vec<u32>,
    pub lpns: Vec<u32>,
}

impl Clone for Mapping {
    fn clone(&self) -> Mapping {
        Mapping {
            // A derived clone would allocate without the advice for huge pages.
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
            l2p: filled(UNMAPPED, logical_pages as usize),
            p2l: filled(UNMAPPED, physical_pages as usize),
            valid: filled(0, physical_pages.div_ceil(64) as usize),
            sharers: FxHashMap::default(),
        }
    }

    /// Where `lpn` lies, if anywhere.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Ppn> {
        let ppn = self.l2p[lpn as usize];
        (ppn != UNMAPPED).then_some(Ppn(ppn))
    }

    /// Fetches the entry of `lpn` into the cache ahead of its use. On a drive of a terabyte every entry is a
    /// cache miss, and these cost more than all the rest of a write.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.l2p, lpn as usize);
    }

    /// The same for the owner of `ppn`.
    #[inline]
    pub fn prefetch_owner(&self, ppn: Ppn) {
        prefetch(&self.p2l, ppn.0 as usize);
    }

    /// The logical page last written to `ppn`, or one of those that share it.
    #[inline]
    pub fn owner(&self, ppn: Ppn) -> u32 {
        self.p2l[ppn.0 as usize]
    }

    /// Whether `ppn` holds the current copy of a logical page.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[(ppn.0 / 64) as usize] >> (ppn.0 % 64) & 1 == 1
    }

    /// The validity of `count` pages from `ppn`, at most 8, as bits.
    #[inline]
    pub fn valid_bits(&self, ppn: Ppn, count: u32) -> u8 {
        let (word, bit) = ((ppn.0 / 64) as usize, ppn.0 % 64);
        let low = self.valid[word] >> bit;
        // A shift by 64 would overflow, and the last word has no successor.
        let high = if bit + count > 64 { self.valid[word + 1] << (64 - bit) } else { 0 };
        ((low | high) & ((1 << count) - 1)) as u8
    }

    /// Makes `ppn` the place of `lpn`. The old place must have been unmapped.
    #[inline]
    pub(crate) fn map(&mut self, lpn: u32, ppn: Ppn) {
        self.l2p[lpn as usize] = ppn.0;
        self.p2l[ppn.0 as usize] = lpn;
        self.valid[(ppn.0 / 64) as usize] |= 1 << (ppn.0 % 64);
    }

    /// Unmaps `lpn` and returns its place if that became garbage by it.
    #[inline]
    pub(crate) fn unmap(&mut self, lpn: u32) -> Option<Ppn> {
        let ppn = self.lookup(lpn)?;
        self.l2p[lpn as usize] = UNMAPPED;
        // Most drives share nothing: one look at the table saves a hash for each page.
        if !self.sharers.is_empty() && self.leave(lpn, ppn) {
            return None;
        }
        self.valid[(ppn.0 / 64) as usize] &= !(1 << (ppn.0 % 64));
        Some(ppn)
    }

    /// Makes `ppn` garbage, which nobody shares and whose owner is about to be mapped elsewhere.
    #[inline]
    pub(crate) fn forget(&mut self, ppn: Ppn) {
        self.valid[(ppn.0 / 64) as usize] &= !(1 << (ppn.0 % 64));
    }

    /// Takes `lpn` from those that share `ppn`; false if nobody does.
    fn leave(&mut self, lpn: u32, ppn: Ppn) -> bool {
        let Some(sharers) = self.sharers.get_mut(&ppn.0) else { return false };
        let owner = &mut self.p2l[ppn.0 as usize];
        if *owner == lpn {
            // The page must keep an owner, so one of the sharers takes over.
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
        self.l2p[lpn as usize] = ppn.0;
        self.sharers.entry(ppn.0).or_default().push(lpn);
    }

    /// Moves a valid page with all who share it.
    #[inline]
    pub(crate) fn relocate(&mut self, from: Ppn, to: Ppn) {
        self.valid[(from.0 / 64) as usize] &= !(1 << (from.0 % 64));
        self.map(self.owner(from), to);
        if !self.sharers.is_empty()
            && let Some(sharers) = self.sharers.remove(&from.0)
        {
            sharers.iter().for_each(|sharer| self.l2p[*sharer as usize] = to.0);
            self.sharers.insert(to.0, sharers);
        }
    }

    /// The first valid page in `from..end`.
    #[inline]
    pub(crate) fn next_valid(&self, from: u32, end: u32) -> Option<Ppn> {
        let mut at = from;
        while at < end {
            let word = self.valid[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros();
                // The word may go on with pages behind `end`.
                return (found < end).then_some(Ppn(found));
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    /// Appends the valid pages in `from..end` and their owners.
    pub(crate) fn valid_in(&self, from: u32, end: u32, pages: &mut Moving) {
        let mut at = from;
        while at < end {
            let mut word = self.valid[(at / 64) as usize] >> (at % 64);
            let next = ((at / 64 + 1) * 64).min(end);
            // A whole word needs no mask, and making one would shift by 64.
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

    /// Makes the pages from `first` on the places of `lpns`, one after the other. Their old places keep their
    /// bits.
    #[inline]
    pub(crate) fn map_run(&mut self, lpns: &[u32], first: u32) {
        // A cache miss takes longer than one entry, so entries are fetched several pages ahead.
        const AHEAD: usize = 16;
        let places = &mut self.p2l[first as usize..first as usize + lpns.len()];
        for (at, (lpn, owner)) in lpns.iter().zip(places).enumerate() {
            if let Some(ahead) = lpns.get(at + AHEAD) {
                prefetch(&self.l2p, *ahead as usize);
            }
            self.l2p[*lpn as usize] = first + at as u32;
            *owner = *lpn;
        }
        self.fill_valid(first, first + lpns.len() as u32, true);
    }

    /// Marks all pages in `from..end` as valid or as garbage.
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

    /// Whether `lpn` shares `ppn` with its owner.
    pub(crate) fn shares(&self, lpn: u32, ppn: Ppn) -> bool {
        self.sharers.get(&ppn.0).is_some_and(|sharers| sharers.contains(&lpn))
    }

    /// Owners and sharers of valid pages. A scan.
    pub(crate) fn owners_and_sharers(&self) -> u64 {
        let owners: u64 = self.valid.iter().map(|word| u64::from(word.count_ones())).sum();
        let sharers: usize = self.sharers.values().map(Vec::len).sum();
        owners + sharers as u64
    }

    /// Whether any page is shared.
    pub(crate) fn has_sharers(&self) -> bool {
        !self.sharers.is_empty()
    }

    /// Memory held, in bytes; shared pages aside, which cost some 32 bytes each.
    pub fn bytes(&self) -> usize {
        (self.l2p.len() + self.p2l.len()) * size_of::<u32>()
            + self.valid.len() * size_of::<u64>()
            + self.sharers.len() * 32
    }
}

/// An empty table with room for `len` entries, on huge pages where the system has them.
fn with_room<T>(len: usize) -> Vec<T> {
    let mut table: Vec<T> = Vec::with_capacity(len);
    advise_huge_pages(table.spare_capacity_mut());
    table
}

fn filled<T: Copy>(value: T, len: usize) -> Vec<T> {
    let mut table = with_room(len);
    table.resize(len, value);
    table
}

fn copied<T: Copy>(of: &[T]) -> Vec<T> {
    let mut table = with_room(of.len());
    table.extend_from_slice(of);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;

    const PAGES: u32 = 256;

    /// A map in which one page of so many is valid, about.
    fn thinly_filled(one_in: u64) -> Mapping {
        let mut map = Mapping::new(PAGES, PAGES);
        let mut prng = Prng::new(3, "valid");
        (0..PAGES).filter(|_| prng.below(one_in) == 0).for_each(|page| map.map(page, Ppn(page)));
        map
    }

    /// The rule: the bits of a run of pages are those of its pages, also where the run lies in two words of the bitmap, or at its end.
    #[test]
    fn bits_of_a_run_are_those_of_its_pages() {
        let map = thinly_filled(2);
        for count in 1..=8 {
            for first in 0..=PAGES - count {
                let bits = map.valid_bits(Ppn(first), count);
                let expected = (0..count).map(|at| u8::from(map.is_valid(Ppn(first + at))) << at).sum::<u8>();
                assert_eq!(bits, expected, "{count} pages from {first}");
            }
        }
    }

    /// The rule: the next valid page is the first in the range, and none where the range has none, whatever lies behind it.
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
