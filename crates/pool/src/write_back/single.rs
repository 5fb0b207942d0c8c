//! Single: one read is exchanged for one write.
//!
//! What database pools do when no cleaner has run ahead ("single page flush"): the victim frame is
//! written if it is dirty, the miss waits for that, and the frame is evicted. O(1). It uses neither the
//! drive's concurrency nor its asymmetry, and is the baseline of the others.

use super::{Constructor, WriteBack};

pub(super) const ENTRY: (&str, &str, Constructor) =
    ("single", "write the one dirty victim frame, wait, evict it", |_, _| Ok(WriteBack::SINGLE));
