//! Recovery: opens a store after a crash.
//!
//! 1. *Torn pages*: damaged pages are restored from intact double-write copies.
//! 2. *Structure*: the log is read from the redo point to its end. Each structure change is redone on the
//!    pages whose structure LSNs show that they do not contain it yet. Afterwards the trees have the
//!    structure of the log's end, and each key has a value that it had at some time since the redo point. A
//!    page that the drive has lost is made from its image in the log. The exception is a page about which the
//!    log notes that the drive has it: its image is incomplete (see [`crate::shard::checkpoint_notes`]).
//! 3. *Records*: the operations of the log are redone in batches. Operations are absolute, so it does no harm
//!    if a leaf contains some of them already. Only the last operation on each key of a batch is applied, in
//!    the order of keys, so a batch visits each leaf about once. If all operations fit into memory, the
//!    record cache takes as many as it has space for. They are merged into their leaves while the store is in
//!    use again. The other operations are applied to their leaves.
//!
//! The operations on the catalogue are gathered apart, those of the whole log, and are redone before all others.
//! So it is known which trees are dropped later in the log. Their pages may be free or belong to other trees, so
//! operations on them are left out. A large value that such an operation puts belongs to nothing; its pieces are
//! deleted at the end.
//!
//! During step 3 most of the memory belongs to the batch, since fewer batches visit fewer leaves; the pool
//! keeps a third of its frames. A full batch first drops operations on keys that have later ones. The first
//! batch is gathered during step 2. If all operations fit into it, the log is read once. Otherwise the log is
//! read again from the first operation that did not fit.
//!
//! The operations of a transaction of several shards are in a record that prepares it. They take effect at the later
//! record that says it is committed, with the LSN of the first one, from which the log is needed. At the end of the log
//! a prepared transaction may be in doubt; [`doubt`] ends it.
//!
//! After a crash during recovery the redo point is where it was, and everything is redone. Splits in step 3
//! are logged behind the log's end like any others.

mod undecided;
mod deleted_values;
mod redo_batch;
mod records;
mod doubt;

pub(crate) use redo_batch::RedoBatch;

use crate::format::large_value::LargeValue;
use crate::format::log_record::{Delta, Entry, OpRef, take_ops};
use crate::format::page;
use crate::format::part::{GlobalId, Part};
use crate::format::tree::{CATALOGUE, LARGE};
use crate::media::log::{LogReader, LogStart, Tail};
use crate::media::write::Pages;
use crate::{Error, Lsn, Options};
use deleted_values::piece_of;
use fulgurite_base::PageId;
use fulgurite_device::{Handle, IoError};
use fulgurite_pool::{BufferPool, PoolError, WriteGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use undecided::Undecided;

/// The result of step 2.
#[derive(Clone, Debug)]
pub(crate) struct Redone {
    /// The end of the log.
    pub tail: Tail,
    /// The LSNs of blocks behind the end of the log that recovery leaves out.
    pub left_over: Vec<Lsn>,
    /// The number of the next large value.
    pub next_large: u64,
    /// The LSN of the first log record whose operations did not fit into the first batch, with the transactions that
    /// were prepared before and decided from there on; `None` if all did.
    pub rest: Option<(Lsn, Undecided)>,
    /// The operations on the catalogue.
    pub names: Names,
    /// The transactions of several shards whose outcome the log does not say.
    pub undecided: Undecided,
    /// The transactions of several shards that this one has decided, with the LSNs of the last records that say so.
    pub decided: BTreeMap<GlobalId, Lsn>,
}

impl Redone {
    /// Returns the result for a store that was closed, whose log ends at `tail`.
    pub(crate) fn nothing(tail: Tail, next_large: u64) -> Redone {
        let (names, undecided, decided) = Default::default();
        Redone { tail, left_over: Vec::new(), next_large, rest: None, names, undecided, decided }
    }
}

/// The last operation of the log on each key of the catalogue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The keys with their new values; `None` deletes a key.
    pub last: BTreeMap<Box<[u8]>, Option<Box<[u8]>>>,
    /// The LSN of the first log record with such an operation.
    pub since: Lsn,
}

impl Names {
    /// Adds the next operation, of the log record at `at`.
    fn add(&mut self, op: OpRef<'_>, at: Lsn) {
        if self.last.is_empty() {
            self.since = at;
        }
        self.last.insert(op.key.into(), op.value.map(Box::from));
    }
}

/// Executes step 2, on a pool that has no log yet. Gathers operations for the first batch until it is full.
pub(crate) async fn redo_structure(
    handle: &Handle,
    pool: &BufferPool,
    pages: &Pages,
    (start, next_large, data): (LogStart, u64, Range<u64>),
    batch: &mut RedoBatch,
    options: &Options,
) -> Result<Redone, Error> {
    let mut reader = LogReader::new(handle.clone(), start, None, options);
    let mut next_large = next_large;
    let mut rest = None;
    let mut redo = PageRedo::default();
    let (mut names, mut undecided, mut decided) = (Names::default(), Undecided::default(), BTreeMap::new());
    loop {
        let mut fits = true;
        let read = |at: Lsn, payload: &[u8]| {
            if rest.is_none() && !batch.make_room() {
                rest = Some((at, undecided.clone()));
            }
            if rest.is_none() {
                batch.begin_record(at);
            }
            let mut look = |op: OpRef<'_>| {
                if let Some(number) = piece_of(op) {
                    next_large = next_large.max(number.saturating_add(1));
                } else if op.tree == LARGE
                    && let Some(marked) = LargeValue::marked(op.key, op.value.unwrap_or_default())
                {
                    // The numbers of a bulk load belong to it as long as the mark is there.
                    next_large = next_large.max(marked.end);
                }
                fits &= op.fits(pages.page_bytes());
                fits
            };
            let mut add = |batch: &mut RedoBatch, op: OpRef<'_>| {
                batch.deleted.note(op);
                if op.tree == CATALOGUE {
                    names.add(op, at);
                } else if rest.is_none() {
                    batch.add(op);
                }
            };
            let visited = Entry::visit(payload, |op| {
                if look(op) {
                    add(batch, op);
                }
            })?;
            if let Some(mut part) = visited.part {
                let effective = undecided.read(at, part);
                if let Part::Decides(id) = part.of {
                    decided.insert(id, at);
                }
                if let Part::Prepared(_) = part.of {
                    take_ops(&mut part.ops, |op| {
                        look(op);
                    })?;
                }
                if let Some(prepared) = effective {
                    if rest.is_none() {
                        batch.begin_record(prepared.since);
                    }
                    take_ops(&mut &prepared.ops[..], |op| add(batch, op))?;
                }
            }
            Some(visited.deltas)
        };
        let Some((since, lsn, deltas)) = reader.next(read).await? else { break };
        if !fits || !deltas.iter().all(|delta| data.contains(&delta.page().0)) {
            let what = "a record says what no store does".to_owned();
            return Err(Error::LogCorrupt { at: since, what });
        }
        redo.record(pool, pages, (since, lsn), &deltas, options).await?;
    }
    if let Some((_, error)) = redo.unread.pop_first() {
        return Err(error);
    }
    let (tail, left_over) = reader.tail().await?;
    // The log is written before the pages (write-ahead logging). So a page with a newer LSN than the log's
    // end shows that the log has lost its end.
    let newest = pages.newest_read();
    if newest > tail.at {
        let what = format!("a page has changes up to {newest}, and the log ends before");
        return Err(Error::LogCorrupt { at: tail.at, what });
    }
    if rest.is_none() && planted!(options, LostTail) {
        batch.forget_last_record();
    }
    Ok(Redone { tail, left_over, next_large, rest, names, undecided, decided })
}

/// The pages that step 2 redoes changes on.
#[derive(Default)]
struct PageRedo {
    /// The pages that cannot be read, with their errors. An error does not matter if the log later frees the
    /// page or replaces its contents: nobody needs the old contents then, and a backup does not even copy
    /// them.
    unread: BTreeMap<PageId, Error>,
    /// The pages that were made from their images because the drive did not have them.
    made: BTreeSet<PageId>,
}

impl PageRedo {
    /// Redoes the structure changes of the log record that reaches from `since` to `lsn`.
    async fn record(
        &mut self,
        pool: &BufferPool,
        pages: &Pages,
        (since, lsn): (Lsn, Lsn),
        deltas: &[Delta],
        options: &Options,
    ) -> Result<(), Error> {
        let (changes, stored) = Delta::by_page(deltas);
        for page in stored.into_iter().filter(|page| self.made.contains(page)) {
            let what = "it is not what was written there last, and the log has only a part of it";
            self.unread.insert(page, Error::corrupt(page, what));
        }
        for (page, deltas) in changes {
            if deltas.first().is_some_and(|delta| delta.replaces_page()) {
                self.unread.remove(&page);
            } else if self.unread.contains_key(&page) {
                continue;
            }
            match redo_page(pool, page, lsn, &deltas, options).await {
                Ok(is_made) => {
                    pages.mark(page, since);
                    if is_made {
                        self.made.insert(page);
                    }
                }
                Err(error @ Error::Corrupt { .. }) => drop(self.unread.insert(page, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Redoes changes on a page that does not contain them yet. Returns whether the page was made from its image.
async fn redo_page(
    pool: &BufferPool,
    page: PageId,
    lsn: Lsn,
    deltas: &[&Delta],
    options: &Options,
) -> Result<bool, Error> {
    let replaces = deltas.first().is_some_and(|delta| delta.replaces_page());
    let mut guard: WriteGuard = match pool.write(page).await {
        Ok(guard) => guard,
        // The log record replaces the whole page, so its damaged contents do not matter.
        Err(PoolError::Read { error: IoError::Corrupt, .. }) if replaces => {
            let mut guard = pool.create(page).await?;
            guard.bytes_mut().fill(0);
            guard
        }
        Err(error) => return Err(error.into()),
    };
    let contained = page::structure_lsn(guard.bytes());
    let is_behind = if planted!(options, WrongLsnCompare) {
        Lsn(contained.0 + 1) < lsn && contained.0 > 0
    } else {
        contained < lsn
    };
    if !is_behind {
        return Ok(false);
    }
    let bytes = guard.bytes_mut();
    // The LSN is taken before the changes are applied: they may replace the whole page by an image, whose LSN
    // field says nothing about the page's past.
    let newest = page::lsn(bytes).max(lsn);
    for delta in deltas {
        delta
            .apply(bytes)
            .and_then(|()| page::fault(bytes).map_or(Ok(()), Err))
            .map_err(|what| Error::corrupt(page, format!("the log does not fit it: {what}")))?;
        if page::kind(bytes).is_none() || page::number(bytes) != page {
            return Err(Error::corrupt(page, "the log makes another page of it"));
        }
    }
    page::set_structure_lsn(bytes, lsn);
    page::set_lsn(bytes, newest);
    Ok(replaces)
}

#[cfg(test)]
mod tests {
    use super::redo_page;
    use crate::format::log_record::Delta;
    use crate::format::page;
    use crate::{Lsn, Options, Store};
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, MemDevice};

    /// The rule: redoing a structure change does not lower the LSN of a page that already contains later operations.
    /// The LSN shows after another crash that the log has lost its end.
    #[test]
    fn a_page_keeps_the_lsn_of_operations_after_a_redone_change() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let handle = executor.handle();
        let work = async move {
            let options = Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, ..Options::default() };
            let store = Store::create(handle, options.clone()).await.unwrap();
            let root = store.create_table("t").await.unwrap().0.root;
            let pool = store.0.durable.pool();
            let (before, image) = {
                let mut guard = pool.write(root).await.unwrap();
                let before = page::structure_lsn(guard.bytes());
                page::set_lsn(guard.bytes_mut(), Lsn(before.0 + 1_000));
                (before, Delta::image(guard.bytes()))
            };
            for (lsn, newest) in [(before.0 + 10, before.0 + 1_000), (before.0 + 2_000, before.0 + 2_000)] {
                redo_page(pool, root, Lsn(lsn), &[&image], &options).await.unwrap();
                let guard = pool.write(root).await.unwrap();
                assert_eq!(
                    (page::structure_lsn(guard.bytes()), page::lsn(guard.bytes())),
                    (Lsn(lsn), Lsn(newest))
                );
            }
        };
        executor.block_on(work).unwrap();
    }
}
