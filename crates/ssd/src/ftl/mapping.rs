//! The page map: logical to physical, physical to logical, and a bit for each physical page that
//! says whether it is valid. 4 + 4 + ⅛ bytes a page.

use fulgurite_base::Ppn;

const UNMAPPED: u32 = u32::MAX;

/// The two directions of the map and the valid bitmap; they agree at all times.
#[derive(Clone, Debug)]
pub struct Mapping {
    pub(crate) l2p: Vec<u32>,
    pub(crate) p2l: Vec<u32>,
    pub(crate) valid: Vec<u64>,
}

impl Mapping {
    pub(super) fn new(logical_pages: u32, physical_pages: u32) -> Mapping {
        Mapping {
            l2p: vec![UNMAPPED; logical_pages as usize],
            p2l: vec![UNMAPPED; physical_pages as usize],
            valid: vec![0; physical_pages.div_ceil(64) as usize],
        }
    }

    /// Where `lpn` lies, if anywhere.
    #[inline]
    pub fn lookup(&self, lpn: u32) -> Option<Ppn> {
        let ppn = self.l2p[lpn as usize];
        (ppn != UNMAPPED).then_some(Ppn(ppn))
    }

    /// The logical page last written to `ppn`.
    #[inline]
    pub(super) fn owner(&self, ppn: Ppn) -> u32 {
        self.p2l[ppn.0 as usize]
    }

    /// Whether `ppn` holds the current copy of its logical page.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[(ppn.0 / 64) as usize] >> (ppn.0 % 64) & 1 == 1
    }

    /// Makes `ppn` the place of `lpn`. The old place must have been unmapped.
    #[inline]
    pub(super) fn map(&mut self, lpn: u32, ppn: Ppn) {
        self.l2p[lpn as usize] = ppn.0;
        self.p2l[ppn.0 as usize] = lpn;
        self.valid[(ppn.0 / 64) as usize] |= 1 << (ppn.0 % 64);
    }

    /// Makes the place of `lpn` garbage and returns it.
    #[inline]
    pub(super) fn unmap(&mut self, lpn: u32) -> Option<Ppn> {
        let ppn = self.lookup(lpn)?;
        self.l2p[lpn as usize] = UNMAPPED;
        self.valid[(ppn.0 / 64) as usize] &= !(1 << (ppn.0 % 64));
        Some(ppn)
    }

    /// The first valid page in `from..end`.
    #[inline]
    pub(super) fn next_valid(&self, from: u32, end: u32) -> Option<Ppn> {
        let mut at = from;
        while at < end {
            let word = self.valid[(at / 64) as usize] >> (at % 64);
            if word != 0 {
                let found = at + word.trailing_zeros();
                return (found < end).then_some(Ppn(found));
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    pub(super) fn bytes(&self) -> usize {
        (self.l2p.len() + self.p2l.len()) * size_of::<u32>() + self.valid.len() * size_of::<u64>()
    }
}
