//! The state of a store in memory; these modules do no I/O.

pub(crate) mod versions;
pub mod locks;
pub(crate) mod commits;
pub(crate) mod decisions;
pub(crate) mod space;
pub(crate) mod catalogue;
pub(crate) mod record_cache;
pub(crate) mod checkpoint_notes;
pub(crate) mod backup_watch;
