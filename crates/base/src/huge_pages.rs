//! Huge pages: asks the operating system to back large tables with them. This is only a hint, so correctness
//! does not depend on it.

/// Asks the system to back memory that was not touched yet with huge pages. Random accesses then miss the TLB
/// (the cache of address translations) less often, and one page fault maps 2 MiB. Resident memory grows in
/// steps of 2 MiB.
///
/// The system may refuse the request. The contents of the memory do not change.
pub fn advise_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        // The size of a huge page, as is usual on processors with 4 KiB pages. A smaller range contains no
        // huge page.
        const HUGE: usize = 2 << 20;
        let start = memory.as_mut_ptr() as usize;
        let (first, end) = (start.next_multiple_of(PAGE), (start + size_of_val(memory)) / PAGE * PAGE);
        if first + HUGE <= end {
            // SAFETY: the advice concerns whole pages inside memory that the caller lends, and changes no
            // contents.
            let _ = unsafe { madvise(first as *mut _, end - first, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}
