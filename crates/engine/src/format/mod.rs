//! The format of a store on the drive: pages and nodes, records and blocks of the log, the superblock and the
//! layout.

pub(crate) mod page;
pub(crate) mod tree;
pub(crate) mod large_value;
pub(crate) mod index_entry;
mod number;
pub(crate) mod part;
pub(crate) mod log_record;
pub(crate) mod log_block;
pub(crate) mod layout;
pub(crate) mod sizing;
