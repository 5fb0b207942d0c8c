//! Staging: a value that would take much of the log is stored before its transaction commits.
//!
//! The pieces of the value are committed in small transactions, the first of which also puts a *mark*: the pieces
//! belong to no record. The transaction of the user then commits the reference to the value, and deletes the mark. So a
//! value may be larger than the log. A transaction that replaces or deletes such a value puts a mark for it, in place
//! of deleting thousands of pieces.
//!
//! A bulk load stores its large values in the same way. One mark holds for a range of numbers, which the load takes for
//! its values ([`LoadNumbers`]).
//!
//! A background task deletes the pieces of marked values, and then their marks. It leaves out the values of
//! transactions and loads in progress. Opening a store begins with the marks that a crash has left.

use super::Shard;
use crate::format::large_value::LargeValue;
use crate::format::log_record::Op;
use crate::format::page::node::{leaf, longest_record};
use crate::format::tree::LARGE;
use crate::shard::commit::Write;
use crate::shard::tree::{Seek, mark};
use crate::{Durability, Error};
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// The divisor of the log size that gives the longest value that is not staged, and the size of the transactions that
/// stage others. Any transaction may take this share of the log.
const SHARE: u64 = 64;
/// The number of pieces that one transaction deletes.
const DELETED_TOGETHER: usize = 256;

impl Shard {
    /// Whether a value of `bytes` bytes is stored in pieces.
    pub(crate) fn is_large(&self, bytes: u64) -> bool {
        bytes > longest_record(self.page_bytes()) as u64
    }

    /// Whether a value of `bytes` bytes is staged by a transaction that has `beside` bytes of large values already.
    pub(crate) fn is_staged(&self, bytes: u64, beside: u64) -> bool {
        bytes + beside > self.staged_together() && self.is_large(bytes)
    }

    /// Returns the size in bytes of the transactions that stage a value.
    fn staged_together(&self) -> u64 {
        self.durable.log().capacity() / SHARE
    }

    /// Stores the pieces of a value under a mark. Until [`Shard::unstage`] they are not deleted.
    pub(crate) async fn stage(self: &Rc<Self>, value: &[u8]) -> Result<LargeValue, Error> {
        let place = LargeValue { number: self.durable.take_large_number(), bytes: value.len() as u64 };
        self.state.staged_mut().insert(place.number, place.number + 1);
        let staged = self.put_pieces(place, value).await;
        staged.inspect_err(|_| self.unstage([place.number])).map(|()| place)
    }

    async fn put_pieces(self: &Rc<Self>, place: LargeValue, value: &[u8]) -> Result<(), Error> {
        let mut writes = vec![write(LargeValue::mark(place.number), Some(Box::default()))];
        let mut bytes = 0;
        for (piece, index) in
            value.chunks(crate::format::large_value::piece_bytes(self.page_bytes())).zip(0..)
        {
            bytes += piece.len() as u64;
            writes.push(write(place.key(index), Some(piece.into())));
            if bytes >= self.staged_together() {
                self.commit_own(std::mem::take(&mut writes)).await?;
                bytes = 0;
            }
        }
        self.commit_own(writes).await
    }

    /// Lets the background task delete the values with these marks if they still have them, because their
    /// transaction or load has ended. A mark is known by its first number.
    pub(crate) fn unstage(self: &Rc<Self>, numbers: impl IntoIterator<Item = u64>) {
        let mut any = false;
        for number in numbers {
            any |= self.state.staged_mut().remove(&number).is_some();
        }
        if any {
            self.delete_marked_later();
        }
    }

    /// Deletes marked values in a background task. It does nothing if such a task runs, or if the store is only read.
    pub(crate) fn delete_marked_later(self: &Rc<Self>) {
        let is_idle = self.options.read_only || !self.durable.has_had_large_values();
        if is_idle || self.check_open().is_err() {
            return;
        }
        self.state.set_has_marks(true);
        if !self.jobs.deletion().begin() {
            return;
        }
        let shard = Rc::clone(self);
        self.handle.spawn(async move {
            // The task may have passed a mark that counts only now, so it begins again.
            while shard.state.set_has_marks(false) {
                // An error is ignored: the marks stay, and the next task tries again.
                let _ = shard.delete_marked().await;
            }
            shard.jobs.deletion().end();
        });
    }

    async fn delete_marked(self: &Rc<Self>) -> Result<(), Error> {
        let mut from = 0;
        while let Some(marked) = self.next_mark(from).await? {
            from = marked.start + 1;
            if self.state.staged_mut().contains_key(&marked.start) {
                continue;
            }
            loop {
                self.check_open()?;
                let pieces = self.some_pieces(marked.clone()).await?;
                let is_last = pieces.len() < DELETED_TOGETHER;
                let mut writes: Vec<Write> = pieces.into_iter().map(|piece| write(piece, None)).collect();
                if is_last {
                    writes.push(write(LargeValue::mark(marked.start), None));
                }
                self.commit_own(writes).await?;
                if is_last {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the numbers of the first mark whose first number is `from` or higher.
    async fn next_mark(&self, from: u64) -> Result<Option<Range<u64>>, Error> {
        let mut key = LargeValue::mark(from);
        loop {
            let guard = self.find(self.tree(LARGE)?, Seek::At(&key), 0).await?;
            let node = leaf(guard.bytes())?;
            let first = node.search(&key).unwrap_or_else(|index| index);
            if first < node.len() {
                return Ok(LargeValue::marked(&node.key(first), node.value(first).bytes));
            }
            match node.high() {
                Some(high) => key = high.to_vec(),
                None => return Ok(None),
            }
        }
    }

    /// Returns the keys of the first pieces of some values, at most [`DELETED_TOGETHER`].
    async fn some_pieces(&self, numbers: Range<u64>) -> Result<Vec<Vec<u8>>, Error> {
        let mut key = LargeValue { number: numbers.start, bytes: 0 }.key(0);
        let mut pieces = Vec::new();
        loop {
            let guard = self.find(self.tree(LARGE)?, Seek::At(&key), 0).await?;
            let node = leaf(guard.bytes())?;
            for index in node.search(&key).unwrap_or_else(|index| index)..node.len() {
                let found = node.key(index);
                let is_one = LargeValue::number_of(&found).is_some_and(|number| numbers.contains(&number));
                if !is_one || pieces.len() == DELETED_TOGETHER {
                    return Ok(pieces);
                }
                pieces.push(found);
            }
            match node.high() {
                Some(high) => key = high.to_vec(),
                None => return Ok(pieces),
            }
        }
    }

    /// Commits writes of the store's own, whose keys nobody else writes.
    async fn commit_own(self: &Rc<Self>, writes: Vec<Write>) -> Result<(), Error> {
        self.check_open()?;
        let txn = self.transactions.next_id();
        self.commit(txn, writes, Durability::Relaxed, &Cell::new(false)).await.map(drop)
    }
}

/// The numbers that a bulk load takes for its large values, in ranges with a mark each. Dropping it lets the background
/// task delete the values that still have a mark.
pub(crate) struct LoadNumbers {
    shard: Rc<Shard>,
    /// The ranges, and the next number of the last one.
    ranges: Vec<Range<u64>>,
    next: u64,
}

/// The length of the first range of a load. Each further one is twice as long, so a load has few marks.
const FIRST_RANGE: u64 = 64;

impl LoadNumbers {
    /// Begins without numbers.
    pub(crate) fn new(shard: &Rc<Shard>) -> LoadNumbers {
        LoadNumbers { shard: Rc::clone(shard), ranges: Vec::new(), next: 0 }
    }

    /// Returns the number for a value. If it begins a range, also the operation that puts the mark, which must be
    /// committed before the pieces of the value or with them.
    pub(crate) fn take(&mut self) -> (u64, Option<Op>) {
        let mut begun = None;
        if self.ranges.last().is_none_or(|last| last.end == self.next) {
            let count = FIRST_RANGE << self.ranges.len().min(20);
            let first = self.shard.durable.take_large_numbers(count);
            self.shard.state.staged_mut().insert(first, first + count);
            self.ranges.push(first..first + count);
            self.next = first;
            begun = Some(mark(first, Some(count.to_le_bytes().into())));
        }
        self.next += 1;
        (self.next - 1, begun)
    }

    /// Returns the operations that delete the marks.
    pub(crate) fn unmark(&self) -> Vec<Op> {
        self.ranges.iter().map(|range| mark(range.start, None)).collect()
    }
}

impl Drop for LoadNumbers {
    fn drop(&mut self) {
        self.shard.unstage(self.ranges.iter().map(|range| range.start));
    }
}

fn write(key: Vec<u8>, value: Option<Box<[u8]>>) -> Write {
    Write { tree: LARGE, key: key.into(), value, staged: None }
}
