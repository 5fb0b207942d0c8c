//! The log, with all commits in order and all structure changes of trees.
//!
//! The log is an endless stream of bytes, stored in a ring of blocks. A position in the log is an
//! [`Lsn`](crate::Lsn). Each flush begins with a new block, so no block is written twice, and a torn write
//! cannot damage a durable block. A record may span several blocks of one flush.
//!
//! | bytes | header of a block |
//! |---|---|
//! | 0–4 | CRC-32C of the rest of the block, started from the store's salt |
//! | 4–8 | `FLOG` |
//! | 8–16 | LSN of the block |
//! | 16–24 | durable LSN when the block was written |
//! | 24–28 | CRC of the previous block |
//! | 28–30 | bytes of records in this block, after the header |
//! | 30–32 | 1 in the first block of a flush, which begins with a record |
//!
//! After a crash, the first blocks of a flush may be on the drive without the last ones. The log then
//! continues after the first blocks. The record that they leave incomplete is dropped at the beginning of the
//! next flush.
//!
//! A flush of more than a *window* is written window by window, and each window is durable before the next
//! one is written. So the blocks of an interrupted flush are within a window of the log's end. A block beyond
//! that distance shows that the log has lost its end. A window is a quarter of the ring, at most 8 MiB.
//!
//! The checksums of blocks start from the store's salt, so blocks of an earlier store on the same drive are
//! invalid.
//!
//! The CRC of the previous block makes the blocks a chain. A block does not continue the chain if it was
//! written in an earlier round of the ring, or belongs to a part of the log that a crash cut off. The log
//! ends where the chain ends. If a later block says that the log beyond this end was durable, data was lost,
//! and reading fails.

mod assembler;
mod writer;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use assembler::RecordAssembler;
pub(crate) use reader::{LogReader, Tail};
pub(crate) use writer::{Log, LogStart};
