//! The format on the drive: pages and nodes, records and blocks of the log, the superblock and the layout.

pub mod page;
pub mod tree;
pub mod large_value;
pub mod index_entry;
pub mod log_record;
pub mod log_block;
pub mod layout;
pub mod sizing;
