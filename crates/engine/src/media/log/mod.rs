//! The log: what was committed, in order, and every change of the structure of trees.
//!
//! The log is an endless stream of bytes, kept in a ring of blocks; a place in it is an [`Lsn`](crate::Lsn). Each flush
//! begins with a new block, so no block is written twice and none that was durable can be torn. A record may go over
//! several blocks of one flush.
//!
//! | bytes | header of a block |
//! |---|---|
//! | 0–4 | CRC-32C of everything behind it, begun with the store's salt |
//! | 4–8 | `FLOG` |
//! | 8–16 | the place of the block in the log |
//! | 16–24 | what was durable when the block was written: the log up to this place |
//! | 24–28 | CRC of the block before |
//! | 28–30 | bytes of records in this block, behind the header |
//! | 30–32 | 1 in the first block of a flush, which begins with a record |
//!
//! A crash may leave the first blocks of a flush without the last ones. The log then goes on behind them, and the record
//! that they do not finish is dropped where the next flush begins.
//!
//! A flush of more than a *window* is written window by window, each durable before the next. So what a crash has cut off lies
//! less than a window behind the log's end, and a block that lies further behind shows that the log has lost its end.
//! A window is a quarter of the ring, at most 8 MiB.
//!
//! The salt keeps blocks of an older store, which was on the drive before, from passing for blocks of this one.
//!
//! The CRC of the block before makes the blocks a chain. A block of an earlier round of the ring, or of a part of the
//! log that a crash has cut off, does not continue it. Where the chain ends, the log ends, unless a later block says that the
//! log beyond the end was durable: then something was lost, and that is an error.

mod frames;
mod writer;
mod reader;

pub use frames::RecordReader;
pub use reader::{LogReader, Tail};
pub use writer::{Log, LogStart};
