//! Checks the contents of pages with stamps, on drives that keep contents. Every write puts a stamp into its
//! page, and every read of a written page must find the stamp of the last write.

use std::sync::atomic::{AtomicU64, Ordering};

/// The stamps that one run has written.
pub(super) struct Stamps {
    run: u64,
    /// The number of changes of each page, by page number.
    versions: Vec<u32>,
    checked: u64,
}

impl Stamps {
    pub(super) fn new(pages: u64) -> Stamps {
        Stamps {
            // A file may hold the stamps of an earlier process, so the stamp includes the process id.
            run: u64::from(std::process::id()) << 32 ^ STAMPED_RUNS.fetch_add(1, Ordering::Relaxed),
            versions: vec![0; pages as usize],
            checked: 0,
        }
    }

    /// Returns the stamp of a page: the run, the page and the version. It differs from the stamp of every
    /// other page and of every earlier content of the page.
    fn stamp(&self, page: u64) -> [u8; 20] {
        let mut stamp = [0; 20];
        // The constant is ASCII for `fulgurit`, so that a page of zeros is no valid stamp.
        stamp[..8].copy_from_slice(&(self.run ^ 0x6675_6c67_7572_6974).to_le_bytes());
        stamp[8..16].copy_from_slice(&page.to_le_bytes());
        stamp[16..].copy_from_slice(&self.versions[page as usize].to_le_bytes());
        stamp
    }

    pub(super) fn change(&mut self, page: u64, bytes: &mut [u8]) {
        self.versions[page as usize] += 1;
        let stamp = self.stamp(page);
        bytes[..stamp.len()].copy_from_slice(&stamp);
        // A stamp at each end shows a torn write. Pages have at least 512 bytes, so the two never overlap.
        let end = bytes.len() - stamp.len();
        bytes[end..].copy_from_slice(&stamp);
    }

    /// Whether the run has changed a page.
    pub(super) fn is_written(&self, page: u64) -> bool {
        self.versions[page as usize] > 0
    }

    /// Returns the number of reads whose stamp was compared with that of the last write.
    pub(super) fn checked(&self) -> u64 {
        self.checked
    }

    /// Checks the stamps of a page that was read. The error describes the fault of the page.
    pub(super) fn check(&mut self, page: u64, bytes: &[u8]) -> Result<(), String> {
        let stamp = self.stamp(page);
        let (first, last) = (&bytes[..stamp.len()], &bytes[bytes.len() - stamp.len()..]);
        let written = self.versions[page as usize] > 0;
        self.checked += u64::from(written);
        match (written, first == stamp && last == stamp) {
            (true, false) => Err(format!(
                "page {page} is not what was written last (version {}): an update was lost or misplaced",
                self.versions[page as usize]
            )),
            // A page that was never written may hold old contents of a file. So compare only the first eight
            // bytes, which identify the run.
            (false, _) if first[..8] == stamp[..8] => {
                Err(format!("page {page} was never written, and has the stamp of another page"))
            }
            _ => Ok(()),
        }
    }
}

/// A counter that distinguishes the runs of a process in their stamps.
static STAMPED_RUNS: AtomicU64 = AtomicU64::new(0);
