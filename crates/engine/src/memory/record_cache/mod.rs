//! Records in memory by themselves, beside the pages of the pool, which lends them frames.
//!
//! A page is the unit of the drive, and mostly a few records of it are asked for and changed. So a part of the memory belongs
//! to records: those that were read, and those that were written and that their leaf lacks. For a row of 116 bytes on a page
//! of 4 KiB, memory holds about 29 times as many hot rows that way.
//!
//! - A *write* goes to the log as ever, and into this memory; its leaf is not read. The record is *pending* until it has been
//!   merged into its leaf.
//! - A *read* looks here first. A record that had to be fetched from the drive comes to stay.
//! - A *scan* reads leaves, and puts the pending records of each leaf over it.
//! - *Merging*: where room is needed, the oldest entries go that were not asked for since (second chance). One that is pending
//!   moves on and waits for more, unless its leaf and those beside it lack many records together. Then these leaves are read, get all
//!   their pending records at once, and are written when the pool wants to: a few long commands. Afterwards the newer records of such a
//!   leaf take room for nothing, until they are the oldest.
//! - A *checkpoint* merges the pending records that hold the redo point back, except those that were asked for: these are put
//!   into the log once more, at its end, and their leaves are not touched.
//!
//! **The log.** What is pending is in the log and nowhere else on the drive, so the redo point does not move past it. A record
//! that is carried along counts as old as before until its new place in the log is durable. Room for carrying everything along
//! once is kept free, and pending records take at most a third of the log. So a checkpoint can always make room, even if
//! there is none for the records of splits that merging may need. Recovery has each record pending since its last place in the
//! log: after a crash in the middle of a checkpoint, there is room for those that were not carried yet.
//!
//! **Old versions.** Who writes a record without reading its leaf does not know what it replaces. The old value is *beneath*
//! it, in the leaf, and readers of older states find it there; merging takes it along into the old versions.
//!
//! **Structure.** Pending records are listed by their leaf. A split, or two leaves that become one, share out the lists of the
//! pages that they hold.
//!
//! **What stays out**: large values, the catalogue, and writes to a leaf that is changed in the pool anyway, where a record of
//! its own would save nothing. Where there is no room, a write goes to its leaf as if there were no such memory.
//!
//! **Memory.** Entries lie in frames that the pool lends. As long as there are few records, pages have the memory; each frame that
//! records need is that of the page that would leave next. Room for commits under way is lent when it is promised; some frames more are
//! borrowed ahead, since the page that would leave next may have to be written first.
//!
//! After Bf-Tree's mini-pages (Hao and Chandramouli, VLDB 2024), which are kept by leaf, in size classes; here entries of all
//! leaves lie side by side in the order in which they came, without room between.

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

pub use cache::{Merged, Put, RecordCache, RecordCounters};
pub use ring::Record;
pub use sweep::Swept;
