//! I/O on the drive: flushes, the log, the superblock, pages and their protection, and images.

pub mod commands;
pub mod image;
pub mod superblock;
pub mod barrier;
pub mod log;
pub mod write;
