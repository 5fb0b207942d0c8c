//! ACE and RAW: batches of the drive's write concurrency that no read waits for.
//!
//! A miss on a dirty victim frame starts the write of the first n_w dirty frames of the eviction order, as
//! ACE does, and evicts the victim frame at once, as RAW does: its page is found until its write has ended.
//! The other frames of the batch stay in the pool and leave, when their turn comes, without a write of
//! their own; if it comes before the batch has ended, they too leave a spare frame behind. So the drive
//! gets ACE's batches and the misses wait for reads alone. O(1) but for reading the order, as in ACE.

use super::{Constructor, WriteBack, take_batch, take_positive};

pub(super) const ENTRY: (&str, &str, Constructor) = (
    "ace+raw",
    "ace whose batches no read waits for; n_w=<the drive's k_w>,n_e=<n_w>,buffers=<2 n_w>",
    |spec, k_w| {
        let (n_w, n_e) = take_batch(spec, k_w)?;
        let buffers = take_positive(spec, "buffers")?.unwrap_or(2 * n_w);
        Ok(WriteBack { name: "ace+raw", n_w, n_e, buffers, ..WriteBack::SINGLE })
    },
);
