//! The record cache, which holds single records in memory, in frames lent by the buffer pool.
//!
//! The drive's unit is the page, but usually only a few records of a page are read and written. So a part of
//! the memory holds single records: those that were read, and those that were written and are not yet in
//! their leaf. If a record has 116 bytes and a page has 4 KiB, memory holds about 29 times as many hot
//! records in this way.
//!
//! - A *write* is appended to the log as usual and inserted into the cache. Its leaf is not read. The record
//!   is *pending* until it is merged into its leaf.
//! - A *read* searches the cache first. A record that had to be read from the drive is inserted.
//! - A *scan* reads leaves, and applies the pending records of each leaf to its contents.
//! - *Eviction and merging* happen when space is needed. The oldest entries that were not used since their
//!   insertion are evicted (second chance). A pending record is moved to the head of the ring, unless its
//!   leaf and the adjacent ones have many pending records together. Then these leaves are read with a few
//!   large commands, all their pending records are merged, and the pool writes the leaves back later. The
//!   merged records are clean, and are evicted when they are the oldest.
//! - A *checkpoint* merges the pending records that hold back the redo point, except those in use. Records in
//!   use are appended to the log again (copied forward), and their leaves are not read.
//!
//! **The log.** A pending record is on the drive only in the log, so the redo point does not move past it. A
//! record that is copied forward keeps its old LSN until the copy is durable. Log space for copying all
//! pending records forward once is reserved, and pending records take at most a third of the log. So a
//! checkpoint can always free log space, even if there is none for the records of splits that merging may
//! need. In recovery, each record is pending since its last position in the log. So after a crash during a
//! checkpoint, there is space for the records that were not copied yet.
//!
//! **Old versions.** A write that does not read its leaf does not know the old value. That value is *beneath*
//! the record, in the leaf, where readers of older states find it. Merging moves the value to the old
//! versions.
//!
//! **Structure.** Pending records are listed by leaf. When a leaf is split, or two leaves are joined, their
//! lists are redistributed.
//!
//! **Excluded** are large values, the catalogue, and writes to a leaf that is dirty in the pool anyway, for
//! which a pending record saves nothing. If there is no space, a write goes to its leaf as if there were no
//! cache.
//!
//! **Memory.** Entries are in frames that the pool lends. While there are few records, the memory holds
//! pages. Each frame that records need is taken from the page that would be evicted next. Frames for commits
//! in progress are borrowed when space is reserved. Some more frames are borrowed ahead, because the next
//! victim may have to be written first.
//!
//! The design follows the mini-pages of Bf-Tree (Hao and Chandramouli, VLDB 2024). Mini-pages are kept by
//! leaf, in size classes. Here, entries of all leaves are stored contiguously in the order of insertion,
//! without free space between them.

mod ring;
mod cost;
mod tables;
mod merge_threshold;
mod division;
mod cache;
mod lending;
mod share;
mod sweep;
mod pending;
#[cfg(test)]
mod tests;

pub use cache::RecordCounters;
pub(crate) use cache::{Merged, Put, RecordCache};
pub(crate) use ring::Record;
pub(crate) use sweep::Swept;
