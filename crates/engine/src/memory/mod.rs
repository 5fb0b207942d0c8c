//! State in memory, without I/O.

pub mod versions;
pub mod locks;
pub mod commits;
pub mod space;
pub mod catalogue;
pub mod record_cache;
pub mod checkpoint_notes;
pub mod backup_watch;
