//! Memory for entries of variable length: a ring of chunks that are filled and emptied in the same order.

use crate::Lsn;
use crate::format::page::{get_u16, get_u32, get_u64, set};
use fulgurite_base::FrameId;
use fulgurite_pool::{Lent, Loan};
use std::collections::VecDeque;

/// The alignment of entries, in bytes.
const STEP: usize = 8;
/// The number of bytes before an entry's key. They are: the slot of the next entry of the same leaf (4), the
/// leaf (4), the LSN since which the entry is or was pending (8), the tree (4), the length of the key with
/// two flags (2), and the length of the value (2).
const HEAD: usize = 24;
/// The flag in the length of the key that marks a pending entry.
const PENDING: u16 = 1 << 15;
/// The flag in the length of the key that marks an entry that was used since the flag was cleared. A new
/// entry does not have the flag.
const ASKED_FOR: u16 = 1 << 14;
/// The bits of the length of the key. They suffice for the longest key of the largest page.
const KEY: u16 = ASKED_FOR - 1;
/// Replaces the length of the value if the record is deleted.
const GONE: u16 = u16::MAX;
/// Replaces the tree if the entry is dead.
const DEAD: u32 = u32::MAX;
/// Replaces the slot of the next entry of the same leaf if there is none.
const END: u32 = u32::MAX;

/// The position of an entry: its chunk, and its offset in the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(pub(super) u32);

/// A record of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub tree: u32,
    pub key: &'a [u8],
    /// The value of the record; `None` if the record is deleted.
    pub value: Option<&'a [u8]>,
}

impl Record<'_> {
    /// Returns the number of bytes of an entry for the record.
    pub(crate) fn bytes(&self) -> usize {
        (HEAD + self.key.len() + self.value.map_or(0, <[u8]>::len)).next_multiple_of(STEP)
    }
}

/// The state of a chunk, which is the memory of a frame.
#[derive(Clone, Copy, Default)]
struct Chunk {
    /// The number of bytes of the chunk's entries.
    used: u32,
    /// The number of pending entries.
    pending: u32,
    /// A lower bound of the LSNs since which the chunk's entries are pending.
    since: Lsn,
}

/// The chunks with their states, and the frames that they are in.
pub(super) struct Ring {
    frames: Lent,
    chunk_bytes: usize,
    /// The number of bits of a slot that are the position within its chunk.
    bits: u32,
    /// The states of chunks by frame number, including frames that are not borrowed.
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    /// The numbers of the full chunks, the oldest first.
    full: VecDeque<u32>,
    filling: Option<u32>,
    /// Memory for an entry that is copied; kept to save allocations.
    copy: Vec<u8>,
}

impl Ring {
    /// The number of bytes of an entry in addition to its key and its value.
    pub(super) const HEAD: usize = HEAD;

    /// Creates a ring of chunks of `chunk_bytes`, a power of two, in lent frames.
    pub(super) fn new(chunk_bytes: usize, frames: Lent) -> Ring {
        let bits = (chunk_bytes / STEP).ilog2();
        let (chunks, free, full) = (Vec::new(), Vec::new(), VecDeque::new());
        Ring { frames, chunk_bytes, bits, chunks, free, full, filling: None, copy: Vec::new() }
    }

    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// Returns the number of chunks with entries.
    pub(super) fn used(&self) -> usize {
        self.full.len() + usize::from(self.filling.is_some())
    }

    /// Appends an entry, and begins a new chunk for it if necessary and `may_begin` is true. Returns `None`
    /// if there is no space.
    pub(super) fn push(&mut self, entry: Record<'_>, may_begin: bool) -> Option<Slot> {
        let slot = self.make_room(entry.bytes(), may_begin)?;
        let into = self.bytes_mut(slot);
        set(into, 0, &END.to_le_bytes());
        set(into, 8, &0u64.to_le_bytes());
        set(into, 16, &entry.tree.to_le_bytes());
        set(into, 20, &(entry.key.len() as u16).to_le_bytes());
        set(into, 22, &entry.value.map_or(GONE, |value| value.len() as u16).to_le_bytes());
        set(into, HEAD, entry.key);
        set(into, HEAD + entry.key.len(), entry.value.unwrap_or_default());
        Some(slot)
    }

    /// Appends a copy of an entry, which is neither pending nor listed, like [`Ring::push`].
    pub(super) fn push_copy(&mut self, slot: Slot, may_begin: bool) -> Option<Slot> {
        let bytes = self.size(slot);
        let new = self.make_room(bytes, may_begin)?;
        // The two chunks are frames of the pool, which cannot be borrowed together.
        let mut copy = std::mem::take(&mut self.copy);
        copy.clear();
        copy.extend_from_slice(&self.bytes(slot)[16..bytes]);
        let into = self.bytes_mut(new);
        set(into, 16, &copy);
        set(into, 0, &END.to_le_bytes());
        set(into, 8, &0u64.to_le_bytes());
        self.copy = copy;
        let flags = self.flags(new);
        set(self.bytes_mut(new), 20, &(flags & KEY).to_le_bytes());
        Some(new)
    }

    /// Takes space for an entry of so many bytes.
    fn make_room(&mut self, bytes: usize, may_begin: bool) -> Option<Slot> {
        let has_room = |chunk: &u32| self.chunks[*chunk as usize].used as usize + bytes <= self.chunk_bytes;
        let chunk = match self.filling.filter(has_room) {
            Some(chunk) => chunk,
            None if !may_begin || bytes > self.chunk_bytes => return None,
            None => self.begin()?,
        };
        let used = &mut self.chunks[chunk as usize].used;
        let at = *used as usize;
        *used += bytes as u32;
        Some(Slot(chunk << self.bits | (at / STEP) as u32))
    }

    /// Begins a chunk. Returns `None` if no chunk is free and no frame can be borrowed.
    fn begin(&mut self) -> Option<u32> {
        if !self.reserve(1) {
            return None;
        }
        let chunk = self.free.pop()?;
        self.full.extend(self.filling.replace(chunk));
        Some(chunk)
    }

    /// Ensures that so many chunks can be begun. Returns false if not enough frames can be borrowed.
    pub(super) fn reserve(&mut self, chunks: usize) -> bool {
        while self.free.len() < chunks {
            let Some(frame) = self.frames.borrow_one() else { return false };
            self.add_frame(frame);
        }
        true
    }

    /// Returns the number of chunks that can be begun at once.
    pub(super) fn ready(&self) -> usize {
        self.free.len()
    }

    /// Returns the lent frames, through which more frames are requested.
    pub(super) fn frames(&self) -> &Lent {
        &self.frames
    }

    /// Adds a frame that was requested.
    pub(super) fn add(&mut self, loan: Loan) {
        let frame = self.frames.add(loan);
        self.add_frame(frame);
    }

    fn add_frame(&mut self, frame: FrameId) {
        if self.chunks.len() <= frame.index() {
            self.chunks.resize(frame.index() + 1, Chunk::default());
        }
        self.free.push(frame.0);
    }

    /// Gives back the frame of a free chunk, if there is one.
    pub(super) fn give_back(&mut self) {
        if let Some(chunk) = self.free.pop() {
            self.frames.give_back(FrameId(chunk));
        }
    }

    /// Removes a full chunk by its index, the oldest first. The contents of the chunk are unchanged until
    /// [`Ring::free`] or [`Ring::put_back`].
    pub(super) fn take(&mut self, at: usize) -> Option<u32> {
        self.full.remove(at)
    }

    /// Iterates over the full chunks, the oldest first.
    #[cfg(test)]
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.full.iter().copied()
    }

    /// Inserts a chunk again at the index from which it was taken.
    pub(super) fn put_back(&mut self, at: usize, chunk: u32) {
        self.full.insert(at, chunk);
    }

    pub(super) fn free(&mut self, chunk: u32) {
        self.chunks[chunk as usize] = Chunk::default();
        self.free.push(chunk);
    }

    /// Returns the live entries of a chunk.
    pub(super) fn entries(&self, chunk: u32) -> Vec<Slot> {
        let (mut at, mut slots) = (0, Vec::new());
        while at < self.chunks[chunk as usize].used as usize {
            let slot = Slot(chunk << self.bits | (at / STEP) as u32);
            if self.is_alive(slot) {
                slots.push(slot);
            }
            at += self.size(slot);
        }
        slots
    }

    /// Returns the chunks that may have entries pending since before `goal`.
    pub(super) fn pending_before(&self, goal: Lsn) -> Vec<u32> {
        let is_old = |chunk: &Chunk| chunk.pending > 0 && chunk.since < goal;
        (0..self.chunks.len() as u32).filter(|chunk| is_old(&self.chunks[*chunk as usize])).collect()
    }

    /// Returns a lower bound of the LSNs since which the entries of a chunk are pending.
    pub(super) fn oldest_in(&self, chunk: u32) -> Lsn {
        self.chunks[chunk as usize].since
    }

    /// Returns a lower bound of the LSNs since which entries are pending; `None` if no entry is pending.
    pub(super) fn oldest_pending(&self) -> Option<Lsn> {
        self.chunks.iter().filter(|chunk| chunk.pending > 0).map(|chunk| chunk.since).min()
    }

    /// Scans a chunk to recompute the bound that [`Ring::oldest_in`] returns.
    pub(super) fn find_since(&mut self, chunk: u32) {
        let pending = self.entries(chunk).into_iter().filter(|slot| self.is_pending(*slot));
        let since = pending.map(|slot| self.since(slot)).min();
        self.chunks[chunk as usize].since = since.unwrap_or(Lsn(u64::MAX));
    }

    fn chunk(&self, slot: Slot) -> usize {
        (slot.0 >> self.bits) as usize
    }

    fn at(&self, slot: Slot) -> usize {
        (slot.0 as usize & ((1 << self.bits) - 1)) * STEP
    }

    /// Returns the bytes from the start of an entry to the end of its chunk.
    #[inline]
    fn bytes(&self, slot: Slot) -> &[u8] {
        &self.frames.bytes(FrameId(self.chunk(slot) as u32))[self.at(slot)..]
    }

    fn bytes_mut(&mut self, slot: Slot) -> &mut [u8] {
        let (chunk, at) = (self.chunk(slot), self.at(slot));
        &mut self.frames.bytes_mut(FrameId(chunk as u32))[at..]
    }

    fn size(&self, slot: Slot) -> usize {
        let bytes = self.bytes(slot);
        let value = match get_u16(bytes, 22) {
            GONE => 0,
            value => usize::from(value),
        };
        (HEAD + usize::from(get_u16(bytes, 20) & KEY) + value).next_multiple_of(STEP)
    }

    pub(super) fn is_alive(&self, slot: Slot) -> bool {
        get_u32(self.bytes(slot), 16) != DEAD
    }

    #[inline]
    pub(super) fn entry(&self, slot: Slot) -> Record<'_> {
        let bytes = self.bytes(slot);
        let key = HEAD + usize::from(get_u16(bytes, 20) & KEY);
        let value = match get_u16(bytes, 22) {
            GONE => None,
            value => Some(&bytes[key..key + usize::from(value)]),
        };
        Record { tree: get_u32(bytes, 16), key: &bytes[HEAD..key], value }
    }

    /// Replaces the value of an entry. Returns false and changes nothing if the new value takes another space
    /// than the old one.
    pub(super) fn overwrite(&mut self, slot: Slot, value: Option<&[u8]>) -> bool {
        let old = self.size(slot);
        let Record { tree, key, .. } = self.entry(slot);
        if (Record { tree, key, value }).bytes() != old {
            return false;
        }
        let from = HEAD + key.len();
        let bytes = self.bytes_mut(slot);
        set(bytes, 22, &value.map_or(GONE, |value| value.len() as u16).to_le_bytes());
        set(bytes, from, value.unwrap_or_default());
        true
    }

    /// Marks an entry as dead. The entry must not be pending.
    pub(super) fn kill(&mut self, slot: Slot) {
        debug_assert!(!self.is_pending(slot));
        set(self.bytes_mut(slot), 16, &DEAD.to_le_bytes());
    }

    fn flags(&self, slot: Slot) -> u16 {
        get_u16(self.bytes(slot), 20)
    }

    fn set_flag(&mut self, slot: Slot, flag: u16, is_set: bool) {
        let flags = self.flags(slot);
        let flags = if is_set { flags | flag } else { flags & !flag };
        set(self.bytes_mut(slot), 20, &flags.to_le_bytes());
    }

    /// Whether the entry was used since its use flag was cleared.
    pub(super) fn is_asked_for(&self, slot: Slot) -> bool {
        self.flags(slot) & ASKED_FOR != 0
    }

    /// Sets or clears the use flag of an entry.
    #[inline]
    pub(super) fn set_asked_for(&mut self, slot: Slot, is_asked_for: bool) {
        if self.is_asked_for(slot) != is_asked_for {
            self.set_flag(slot, ASKED_FOR, is_asked_for);
        }
    }

    #[inline]
    pub(super) fn is_pending(&self, slot: Slot) -> bool {
        self.flags(slot) & PENDING != 0
    }

    /// Returns the LSN since which the entry is or was pending; 0 if it never was.
    pub(super) fn since(&self, slot: Slot) -> Lsn {
        Lsn(get_u64(self.bytes(slot), 8))
    }

    /// Marks the entry as pending since `since`.
    pub(super) fn set_pending(&mut self, slot: Slot, since: Lsn) {
        let was_pending = self.is_pending(slot);
        self.set_flag(slot, PENDING, true);
        set(self.bytes_mut(slot), 8, &since.0.to_le_bytes());
        let chunk = self.chunk(slot);
        let chunk = &mut self.chunks[chunk];
        chunk.since = if chunk.pending == 0 { since } else { chunk.since.min(since) };
        chunk.pending += u32::from(!was_pending);
    }

    /// Marks the entry as clean.
    pub(super) fn set_settled(&mut self, slot: Slot) {
        if self.is_pending(slot) {
            self.set_flag(slot, PENDING, false);
            let chunk = self.chunk(slot);
            self.chunks[chunk].pending -= 1;
        }
    }

    /// Returns the leaf of an entry, as last set.
    pub(super) fn leaf(&self, slot: Slot) -> u32 {
        get_u32(self.bytes(slot), 4)
    }

    /// Returns the next entry of the same leaf.
    pub(super) fn next(&self, slot: Slot) -> Option<Slot> {
        Some(get_u32(self.bytes(slot), 0)).filter(|next| *next != END).map(Slot)
    }

    /// Sets the leaf of an entry, and the next entry of the same leaf.
    pub(super) fn set_leaf(&mut self, slot: Slot, leaf: u32, next: Option<Slot>) {
        let bytes = self.bytes_mut(slot);
        set(bytes, 0, &next.map_or(END, |next| next.0).to_le_bytes());
        set(bytes, 4, &leaf.to_le_bytes());
    }
}
