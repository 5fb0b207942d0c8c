//! Prefetch instructions: ask the processor to load memory that is used soon. This is only a hint, so
//! correctness does not depend on it.

/// Begins to load `entries[index]` into the processor's cache, on processors that can. An index out of range
/// is ignored.
#[inline(always)]
pub fn prefetch<T>(entries: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(entry) = entries.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of a valid address only affects the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (entries, index);
}
