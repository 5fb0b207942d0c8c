//! Asks the operating system to back large tables with huge pages. This is a hint: correctness does not
//! depend on it.

use std::mem::MaybeUninit;

/// Asks the system to back memory that is not used yet with huge pages. Random accesses then miss the TLB
/// less often, and one page fault maps 2 MiB. Resident memory grows in steps of that size.
///
/// The system may refuse. The contents do not change.
pub fn advise_huge_pages<T>(unused: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        // The usual huge page size of processors with 4 KiB pages. Smaller ranges contain no huge page.
        const HUGE: usize = 2 << 20;
        let start = unused.as_mut_ptr() as usize;
        let (first, end) = (start.next_multiple_of(PAGE), (start + size_of_val(unused)) / PAGE * PAGE);
        if first + HUGE <= end {
            // SAFETY: the advice concerns whole pages inside memory that the caller lends, and changes no contents.
            let _ = unsafe { madvise(first as *mut _, end - first, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = unused;
}
