//! ACE: write as many dirty pages as the drive writes at once, evict one.
//!
//! "ACEing the Bufferpool Management Paradigm for Modern Storage Devices" (ICDE 2023). Where the victim
//! frame is clean it is evicted: exactly the replacement policy. Where it is dirty, the first n_w dirty
//! frames *of the virtual eviction order* are written concurrently, become clean and stay; the next misses
//! then find clean victims. Cost: the order is read until n_w dirty frames are found, which is long where
//! dirty pages are rare. Without prefetching, one frame is evicted, so hits and misses stay those of the
//! replacement policy wherever it ignores dirtiness. With prefetching, a miss that has written a batch
//! evicts the first n_e frames and reads as many pages, the missed one among them, concurrently.

use super::{Constructor, WriteBack, take_batch};

pub(super) const ENTRY: (&str, &str, Constructor) = (
    "ace",
    "write n_w dirty frames together in eviction order, wait, evict one; n_w=<the drive's k_w>,n_e=<n_w>",
    |spec, k_w| {
        let (n_w, n_e) = take_batch(spec, k_w)?;
        Ok(WriteBack { name: "ace", n_w, n_e, ..WriteBack::SINGLE })
    },
);
