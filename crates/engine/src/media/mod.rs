//! I/O on the drive: flushes, the log, the superblock, pages and their protection against torn writes, and
//! images.

pub(crate) mod scratch;
pub(crate) mod commands;
pub(crate) mod image;
pub(crate) mod superblock;
pub(crate) mod barrier;
pub(crate) mod log;
pub(crate) mod write;
