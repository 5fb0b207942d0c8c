//! RAW: a read never waits for a write.
//!
//! "Reads not blocked by writes", from MyFlashSQL: the page of a dirty victim frame goes to a write buffer,
//! the read is issued at once, and the write completes behind it. Here nothing is copied: the frame itself
//! becomes the buffer and a spare frame takes the read. Until the write has ended the page is found where
//! it is, for reading at once, for changing after the write. `buffers` frames of the pool are spare, so
//! the memory is that of the other policies; with all of them under way, a miss waits for one. O(1).

use super::{Constructor, WriteBack, take_positive};

pub(super) const ENTRY: (&str, &str, Constructor) =
    ("raw", "read at once, write the dirty victim frame behind it; buffers=<2 k_w>", |spec, k_w| {
        let buffers = match take_positive(spec, "buffers")? {
            Some(buffers) => buffers,
            None => 2 * k_w()?,
        };
        Ok(WriteBack { name: "raw", buffers, ..WriteBack::SINGLE })
    });
