//! Asks the system for large memory pages where a table is large. It is only a hint: nothing depends on it.

use std::mem::MaybeUninit;

/// Asks the system to back memory that is not used yet with huge pages, where it has them: then a look all over it rarely misses the TLB,
/// and a fault brings in 2 MiB at once. The memory that a process holds grows in such steps.
///
/// It is advice. It changes no contents, it may be refused, and nothing depends on it.
pub fn advise_huge_pages<T>(unused: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        // What a processor with pages of 4 KiB has mostly; a call for less than that would be for nothing.
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
