//! A medium that is overwritten in place (3D XPoint). The physical address is the logical address, so no page
//! becomes invalid, no block is erased, and write amplification is exactly one.

/// The set of written pages, one bit each in `written`, and the number of pages that the host wrote.
#[derive(Clone, Debug)]
pub(super) struct InPlace {
    pub(super) written: Vec<u64>,
    pub(super) host_pages: u64,
}

impl InPlace {
    pub(super) fn new(pages: u32, filled: bool) -> InPlace {
        let word = if filled { u64::MAX } else { 0 };
        InPlace { written: vec![word; pages.div_ceil(64) as usize], host_pages: 0 }
    }

    pub(super) fn is_written(&self, lpn: u32) -> bool {
        self.written[(lpn / 64) as usize] >> (lpn % 64) & 1 == 1
    }

    pub(super) fn write(&mut self, lpn: u32) {
        self.host_pages += 1;
        self.written[(lpn / 64) as usize] |= 1 << (lpn % 64);
    }

    pub(super) fn trim(&mut self, lpn: u32) {
        self.written[(lpn / 64) as usize] &= !(1 << (lpn % 64));
    }
}
