//! The second stage of a commit: reserves memory, pages and log space for the worst case, so that nothing can
//! fail for lack of space once the record of the commit is in the log.

use super::stage::{Admitted, MOST_REMOVALS, Operations, Prepared, Room, Target, record};
use crate::format::large_value::LargeValue;
use crate::format::log_record::Op;
use crate::format::page::node::longest_record;
use crate::memory::record_cache::{Record, RecordCache};
use crate::shard::Shard;
use crate::{Error, Lsn};
use std::rc::Rc;

/// The number of attempts to make room in the record cache.
const MOST_ATTEMPTS: u32 = 8;

/// The bytes of an operation that deletes a piece of a large value, or puts or deletes a mark.
const REMOVAL: usize = 36;

/// The size of the writes of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    writes: u64,
    /// The bytes of its operations in the log.
    bytes: u64,
    /// The number of records and of pieces of large values that it puts.
    puts: u64,
    /// The number of pieces of large values, and of references to them, which go to leaves.
    pieces: u64,
    /// The bytes to reserve in the record cache for the rest.
    reserved: u64,
}

impl Size {
    /// Returns the size of one write, for a store with pages of `page_bytes`.
    pub(crate) fn of(tree: u32, key: &[u8], value: Option<&[u8]>, page_bytes: u32) -> Size {
        let bytes = Op::bytes_of(key, value) as u64;
        let length = value.map_or(0, <[u8]>::len);
        if key.len() + length > longest_record(page_bytes) {
            let pieces = LargeValue { number: 0, bytes: length as u64 }.pieces(page_bytes);
            // Each piece has a key of 12 bytes, and the reference to the value has 16 bytes.
            let bytes = bytes + 36 + 32 * u64::from(pieces);
            let pieces = u64::from(pieces) + 1;
            return Size { writes: 1, bytes, puts: pieces, pieces, reserved: 0 };
        }
        let reserved = RecordCache::reserved_bytes(Record { tree, key, value });
        Size { writes: 1, bytes, puts: u64::from(value.is_some()), pieces: 0, reserved }
    }

    /// Returns the size of a write whose value is staged: the reference to it, which goes to its leaf, and its mark.
    pub(crate) fn of_staged(key: &[u8]) -> Size {
        let bytes = (Op::bytes_of(key, Some(&[0; 16])) + REMOVAL) as u64;
        Size { writes: 1, bytes, puts: 1, pieces: 1, reserved: 0 }
    }
}

impl std::ops::Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size {
            writes: self.writes + other.writes,
            bytes: self.bytes + other.bytes,
            puts: self.puts + other.puts,
            pieces: self.pieces + other.pieces,
            reserved: self.reserved + other.reserved,
        }
    }
}

/// Returns the number of pages that this many splits of leaves can need.
fn pages_for(splits: u64) -> u64 {
    splits + splits / 2 + 8
}

impl Shard {
    /// Waits until there is space for a commit, and reserves it, with `beside` more bytes of log. Records for which the
    /// record cache has no space go to their leaves.
    pub(super) async fn admit(self: &Rc<Self>, prepared: Prepared, beside: u64) -> Result<Admitted, Error> {
        let Prepared { mut operations, leaves: (fixed, for_now), replaced, user_bytes, marks } = prepared;
        let bytes = operations.record_bytes();
        if bytes > 0 {
            self.until_frames(bytes).await;
        }
        let (records, more_leaves) = self.reserve_records(&mut operations);
        let mut reservation = Reservation { shard: self, pages: 0, records };
        self.borrow_frames_later();
        if more_leaves > 0 {
            self.evict_records_later();
        }
        let mut room = self.room_for(&operations, fixed + for_now + more_leaves, records);
        if room.is_err() && operations.prefer_cache() {
            // Its leaves could need too many splits at once. From the cache, records are merged one leaf at a time. The
            // transaction waits until the cache has room, so that its limit does not depend on the moment.
            self.state.records_mut().release(std::mem::take(&mut reservation.records));
            self.until_cache_has_room(operations.record_bytes()).await?;
            let (records, more_leaves) = self.reserve_records(&mut operations);
            reservation.records = records;
            room = self.room_for(&operations, fixed + more_leaves, records);
        }
        let room = room?;
        let room = Room { log: room.log + beside, ..room };
        self.state.space().reserve(room.pages)?;
        reservation.pages = room.pages;
        self.until_log_fits(room.log).await?;
        self.log_room.reserve(room.log);
        std::mem::forget(reservation);
        Ok(Admitted { operations, replaced, user_bytes, room, marks })
    }

    /// Reserves space in the record cache. Operations for which there is none get their leaves as targets.
    /// Returns the number of bytes reserved, and the number of operations that now go to leaves.
    fn reserve_records(&self, operations: &mut Operations) -> (u64, u64) {
        let mut records = self.state.records_mut();
        let (mut reserved, mut leaves) = (0, 0);
        for (op, target) in std::iter::zip(&operations.ops, &mut operations.targets) {
            if *target != Target::Cache {
                continue;
            }
            match records.reserve(record(op)) {
                Some(bytes) => reserved += bytes,
                None => {
                    *target = Target::LeafForNow;
                    leaves += 1;
                }
            }
        }
        (reserved, leaves)
    }

    /// Returns the most pages and log bytes that operations can need that change `leaves` leaves.
    ///
    /// Each leaf is split once, and again for each quarter of a page that is put into it. Every two of these
    /// splits cause one split in the levels above. A record for the cache counts like a changed leaf, as far as there
    /// are so many, so a full store refuses the record before it lacks the pages to merge it. A record that still
    /// cannot be merged stays in the cache.
    fn room_for(&self, operations: &Operations, leaves: u64, records: u64) -> Result<Room, Error> {
        let page = u64::from(self.page_bytes());
        let bytes: u64 = operations.ops.iter().map(|op| op.bytes() as u64).sum();
        let puts = operations.ops.iter().filter(|op| op.value.is_some()).count() as u64;
        let cached = operations.iter().filter(|(_, target)| *target == Target::Cache);
        let (mut cached_ops, mut cached_puts, mut cached_bytes) = (0, 0, 0);
        for (op, _) in cached {
            cached_ops += 1;
            cached_puts += u64::from(op.value.is_some());
            cached_bytes += op.bytes() as u64;
        }
        let splits = |puts: u64, leaves: u64, bytes: u64| puts.min(leaves + 2 + 4 * bytes / page);
        // Cached deletions change no leaf now, and merging them frees space.
        if cached_ops == operations.ops.len() as u64 && puts == 0 {
            return Ok(Room { pages: 0, log: self.log_bytes_for(bytes, 0)?, records });
        }
        let cached_leaves = cached_ops.min(self.state.space().used());
        // The splits that cached records cause are logged when these records are merged, so their log space
        // is not reserved now.
        let split_now = pages_for(splits(puts - cached_puts, leaves, bytes - cached_bytes));
        let pages = pages_for(splits(puts, leaves + cached_leaves, bytes));
        Ok(Room { pages, log: self.log_bytes_for(bytes, split_now)?, records })
    }

    /// Returns the log space that operations of `bytes` bytes can need that allocate `pages` pages. Fails if
    /// this is more than one transaction may use.
    fn log_bytes_for(&self, bytes: u64, pages: u64) -> Result<u64, Error> {
        let blocks = bytes / 4064 * 4096 + 8192;
        let need = blocks + pages * (u64::from(self.page_bytes()) / 2 + 1024);
        let most = self.durable.log().capacity() / 4;
        if need > most {
            Err(Error::TransactionTooLarge { bytes, most: bytes * most / need })
        } else {
            Ok(need)
        }
    }

    /// Merges records until the record cache has room for `bytes` more, as far as that is possible.
    async fn until_cache_has_room(self: &Rc<Self>, bytes: u64) -> Result<(), Error> {
        for _ in 0..MOST_ATTEMPTS {
            self.until_frames(bytes).await;
            if self.state.records_mut().make_room(bytes) {
                break;
            }
            self.merge_all().await;
            // The merges may have needed log space, and more of them may need some.
            self.checkpoint(Lsn(u64::MAX)).await?;
            self.state.records_mut().make_room(bytes);
            self.until_frames(bytes).await;
        }
        Ok(())
    }

    /// Refuses a transaction of this size if it is larger than any may be.
    ///
    /// A transaction is always accepted if its leaves can be split with the log, even if each write goes to another
    /// one, or if the record cache can take its records. If the cache is as large as a transaction may be, all others
    /// are refused. With a smaller cache, the commit decides, which knows how many leaves the transaction changes.
    pub(crate) fn check_size(&self, size: Size) -> Result<(), Error> {
        let Size { writes, mut bytes, puts, pieces, reserved } = size;
        if self.durable.has_had_large_values() {
            // Each write may replace a large value, whose pieces are deleted or which gets a mark.
            bytes += (MOST_REMOVALS as u64 + writes) * REMOVAL as u64;
        }
        self.log_bytes_for(bytes, 0)?;
        if self.log_bytes_for(bytes, pages_for(puts)).is_ok() {
            return Ok(());
        }
        let most_reserved = self.state.records().most_reserved();
        if most_reserved < self.durable.log().capacity() / 4 {
            return Ok(());
        }
        if reserved > most_reserved {
            return Err(Error::TransactionTooLarge { bytes, most: bytes * most_reserved / reserved });
        }
        self.log_bytes_for(bytes, pages_for(pieces)).map(drop)
    }

    /// Releases the reservations of a commit that has ended.
    pub(super) fn give_back(&self, room: Room) {
        self.state.space().release(room.pages);
        self.state.records_mut().release(room.records);
        self.log_room.end_commit(room.log);
    }
}

/// The reservations of a commit that is not admitted yet. Dropping the value releases them.
struct Reservation<'a> {
    shard: &'a Shard,
    pages: u64,
    /// The reserved bytes of the record cache.
    records: u64,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.shard.state.space().release(self.pages);
        self.shard.state.records_mut().release(self.records);
        self.shard.log_room.notify();
    }
}
