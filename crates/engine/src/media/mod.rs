//! The drive: flushes, the log, the superblock's two places, pages with their protection, and images outside the drive.

pub mod commands;
pub mod image;
pub mod superblock;
pub mod barrier;
pub mod log;
pub mod write;
