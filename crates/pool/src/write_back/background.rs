//! Background: a cleaner keeps the frames that leave next clean, so that a miss seldom meets a dirty one.
//!
//! As PostgreSQL's background writer and InnoDB's page cleaner do; the honest baseline. When fewer than
//! half of the first `ahead` frames of the eviction order are known to be clean, the cleaner goes through
//! them and writes the dirty ones, `n_w` at a time: one, as PostgreSQL does, or more, as InnoDB with
//! asynchronous I/O. A frame being written cannot leave. A miss that meets a dirty frame all the same
//! writes it alone and waits, as both systems do. *Difference.* Theirs wake by a timer (200 ms, 1 s) and
//! estimate the demand; this one is woken by the evictions themselves, which is at least as good.
//! O(1) amortised.

use super::{Constructor, WriteBack, take_positive};

/// Frames kept clean where nothing else is asked for; the scan depth of InnoDB is 1,024 for large pools.
const AHEAD: u32 = 64;

pub(super) const ENTRY: (&str, &str, Constructor) = (
    "background",
    "a cleaner writes ahead of the evictions; a miss that meets a dirty frame does as in single; ahead=64,n_w=1",
    |spec, _| {
        let ahead = take_positive(spec, "ahead")?.unwrap_or(AHEAD);
        let cleaner_n_w = take_positive(spec, "n_w")?.unwrap_or(1);
        Ok(WriteBack { name: "background", ahead, cleaner_n_w, ..WriteBack::SINGLE })
    },
);
