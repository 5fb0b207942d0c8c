//! Step 3 of recovery: redoes operations on records.

use super::{Names, RedoBatch, Redone, Undecided};
use crate::format::large_value::LargeValue;
use crate::format::log_record::{AHEAD, Entry, Op, OpRef, take_ops};
use crate::format::page::map;
use crate::format::page::node::Node;
use crate::format::page::node::leaf;
use crate::format::tree::{CATALOGUE, FIRST_USER_TREE, Tree};
use crate::media::log::{LogReader, LogStart};
use crate::memory::catalogue;
use crate::memory::record_cache::{Put, Record};
use crate::shard::Shard;
use crate::shard::tree::{Applied, Seek};
use crate::shard::trim::MOST_FREED;
use crate::wait::together;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use std::ops::Range;
use std::rc::Rc;

/// The number of allocation maps that are read at once.
const READ_TOGETHER: usize = 64;

/// The number of parts whose leaves are read while the operations of one part are applied.
const PARTS_AHEAD: usize = 4;

/// The operations of a batch on one tree whose leaves have the same parent.
struct Part {
    /// The index of the first operation of the next part.
    end: usize,
    /// The operations that are applied to leaves, as ranges of indexes: one range for each leaf.
    runs: Vec<Range<usize>>,
    /// The leaves to read ahead for `runs`.
    leaves: Vec<PageId>,
}

/// Adds the operations to the batch that take effect with the log record at `at`. Returns `None` if the record is
/// invalid.
fn redo_entry(batch: &mut RedoBatch, undecided: &mut Undecided, at: Lsn, payload: &[u8]) -> Option<()> {
    let add = |batch: &mut RedoBatch, op: OpRef<'_>| {
        // Those on the catalogue were redone before.
        if op.tree != CATALOGUE {
            batch.add(op)
        }
    };
    let visited = Entry::visit(payload, |op| add(batch, op))?;
    if let Some(prepared) = visited.part.and_then(|part| undecided.read(at, part)) {
        batch.begin_record(prepared.since);
        take_ops(&mut &prepared.ops[..], |op| add(batch, op))?;
    }
    Some(())
}

impl Shard {
    /// Counts the free pages of each allocation group.
    pub(crate) async fn count_free(&self) -> Result<(), Error> {
        let maps: Vec<(PageId, u32)> = self.state.space().maps().collect();
        for part in maps.chunks(READ_TOGETHER) {
            let counts = part.iter().map(|(map, pages)| async move {
                let guard = self.read_page(*map).await?;
                Ok::<u32, Error>(pages - map::count_used(guard.bytes(), *pages))
            });
            for (free, (map, _)) in std::iter::zip(together(counts.collect()).await, part) {
                self.state.space().set_free(*map, free?);
            }
        }
        Ok(())
    }

    /// Begins to note freed pages for their trim. Out of place these include the free pages to which the page map still
    /// gives an address.
    pub(crate) async fn find_freed(&self) -> Result<(), Error> {
        let Some(place) = self.durable.pages().backend().out_of_place() else {
            self.state.space().keep_some_freed(MOST_FREED);
            return Ok(());
        };
        for (map, pages) in self.state.space().maps() {
            let guard = self.read_page(map).await?;
            let free = (0..pages).filter(|index| !map::is_used(guard.bytes(), *index));
            let free = free.map(|index| PageId(map.0 + u64::from(index))).filter(|page| place.has(*page));
            self.state.space().keep_freed(free, self.durable.log().tail());
        }
        Ok(())
    }

    /// Reads the catalogue into memory. Fails with [`Error::SortedRuns`] on a store of format 5 that has runs.
    pub(crate) async fn load_catalogue(&self) -> Result<(), Error> {
        let tree = self.tree(CATALOGUE)?;
        let mut runs = Vec::new();
        self.state.catalogue_mut().clear();
        let look = |node: Node<'_>| {
            let mut known = self.state.catalogue_mut();
            for (key, value) in node.records() {
                match catalogue::own(&key, value.bytes).is_none() && catalogue::is_about_runs(&key) {
                    true => runs.extend(catalogue::run(value.bytes)),
                    false => known.add(&key, value.bytes)?,
                }
            }
            Ok(())
        };
        self.each_leaf(tree, look).await?;
        for run in runs {
            // The record may be older than the log, which frees the root of a run that is gone.
            let guard = self.read_page(run.root).await?;
            if catalogue::is_run_there(run, guard.bytes()) {
                return Err(Error::SortedRuns);
            }
        }
        Ok(())
    }

    /// Redoes the operations of the first batch, and those of the log behind this batch.
    pub(crate) async fn redo_records(
        self: &Rc<Self>,
        start: LogStart,
        redone: &Redone,
        batch: &mut RedoBatch,
    ) -> Result<(), Error> {
        let mut is_upward = true;
        self.durable.set_unredone(redone.rest.as_ref().map(|(rest, undecided)| undecided.needed_from(*rest)));
        self.redo_names(&redone.names, redone.tail.at).await?;
        self.redo_batch(batch, is_upward, redone.tail.at).await?;
        let Some((rest, mut undecided)) = redone.rest.clone() else { return Ok(()) };
        let start = LogStart { redo: rest, ..start };
        let mut reader = LogReader::new(self.handle.clone(), start, Some(redone.tail), &self.options);
        loop {
            batch.clear();
            let (mut is_end, mut last) = (false, None);
            while batch.make_room() && !is_end {
                let read = |at, payload: &[u8]| {
                    last = Some(at);
                    batch.begin_record(at);
                    redo_entry(batch, &mut undecided, at, payload)
                };
                is_end = reader.next(read).await?.is_none();
            }
            if is_end && planted!(self.options, LostTail) {
                batch.forget_last_record();
            }
            is_upward = !is_upward;
            self.redo_batch(batch, is_upward, redone.tail.at).await?;
            if is_end {
                self.durable.set_unredone(None);
                return Ok(());
            }
            // Recovery continues at the last record read: the next one begins at its end, and redoing a
            // record again changes nothing.
            let from = last.map(|last| undecided.needed_from(last));
            self.durable.set_unredone(from.or(self.durable.unredone()));
            if self.durable.log().used() > self.durable.log().capacity() * 3 / 4 {
                // The log may lack the space to redo the rest, so a checkpoint makes the redone operations
                // durable and frees log space.
                self.checkpoint(Lsn(u64::MAX)).await?;
            }
        }
    }

    /// Redoes the operations of a batch. Everything up to `end` is redone then.
    pub(crate) async fn redo_batch(
        self: &Rc<Self>,
        batch: &mut RedoBatch,
        is_upward: bool,
        end: Lsn,
    ) -> Result<(), Error> {
        let at = Applied { since: batch.since(), lsn: end, keep_old: false };
        batch.keep_last_by_key();
        self.counters.count(|counts| counts.recovered_ops += batch.len() as u64);
        let mut unused = Vec::new();
        for tree in batch.trees().collect::<Vec<u32>>() {
            let (is_live, was_given) = {
                let catalogue = self.state.catalogue();
                (catalogue.is_live(tree), catalogue.was_given(tree))
            };
            if is_live || !was_given {
                self.redo_tree(self.tree(tree)?, batch, is_upward, at).await?;
                continue;
            }
            // The tree is dropped later in the log.
            let ops = batch.run(tree, 0..batch.len_of(tree)).filter(|op| op.large);
            let values = ops.filter_map(|op| LargeValue::read(op.value?).ok());
            unused.extend(values);
        }
        self.delete_values(&unused).await
    }

    /// Redoes the operations on the catalogue, and reads it again.
    async fn redo_names(&self, names: &Names, end: Lsn) -> Result<(), Error> {
        if names.last.is_empty() {
            return Ok(());
        }
        let at = Applied { since: names.since, lsn: end, keep_old: false };
        self.counters.count(|counts| counts.recovered_ops += names.last.len() as u64);
        for (key, value) in &names.last {
            let op = Op { tree: CATALOGUE, key: key.clone(), value: value.clone(), large: false };
            self.apply(self.tree(CATALOGUE)?, &op, at).await?;
        }
        self.load_catalogue().await
    }

    /// Redoes operations on one tree. Every other batch goes through the parts of the tree downward, because
    /// the leaves at the end of one batch are still in the pool when the next begins. The leaves of the next
    /// parts are read while one part is applied.
    async fn redo_tree(
        self: &Rc<Self>,
        tree: Tree,
        batch: &RedoBatch,
        is_upward: bool,
        at: Applied,
    ) -> Result<(), Error> {
        let mut parts = Vec::new();
        let mut from = 0;
        if !batch.is_extended() {
            self.state.records_mut().expect(batch.len_of(tree.id), batch.bytes() / batch.len());
        }
        while from < batch.len_of(tree.id) {
            let part = self.part(tree, batch, from).await?;
            from = part.end;
            parts.push(part);
        }
        self.state.records_mut().index_new();
        if !is_upward {
            parts.reverse();
        }
        let mut ops = Vec::new();
        let mut fetched = 0;
        for (index, part) in parts.iter().enumerate() {
            for next in parts.iter().take(index + 1 + PARTS_AHEAD).skip(fetched) {
                self.durable.pool().fetch(&next.leaves).await?;
                fetched += 1;
            }
            if part.runs.is_empty() {
                continue;
            }
            self.handle.pause().await;
            ops.clear();
            let run = part.runs.iter().flat_map(|run| batch.run(tree.id, run.clone()));
            ops.extend(run.filter(|op| !batch.deleted.has(op)));
            let mut rest: &[OpRef<'_>] = &ops;
            while !rest.is_empty() {
                let done = match self.apply_run(tree, rest, at).await {
                    // Before the crash this operation may have been a pending record that could not be
                    // merged, so it becomes a pending record again.
                    Err(Error::Full { .. }) => {
                        let (op, is_user) = (rest[0].to_op(), tree.id >= FIRST_USER_TREE);
                        // Operations were left out of other trees, so their places say nothing.
                        let index = part.runs.iter().cloned().flatten().nth(ops.len() - rest.len());
                        let index = index.filter(|_| is_user);
                        let since = index.map_or(at.since, |index| batch.since_of(tree.id, index));
                        let at = Applied { since, ..at };
                        match is_user && !op.large {
                            true => self.apply_to_cache(tree, &op, at).await?,
                            false => self.apply(tree, &op, at).await?,
                        }
                        1
                    }
                    done => done?,
                };
                rest = &rest[done..];
            }
        }
        Ok(())
    }

    /// Returns the part with the operations from index `from` on. The record cache takes the operations for
    /// which it has space; their leaves need not be read.
    async fn part(&self, tree: Tree, batch: &RedoBatch, from: usize) -> Result<Part, Error> {
        let guard = self.find(tree, Seek::At(batch.get(tree.id, from).key), 1).await?;
        let parent = leaf(guard.bytes())?;
        let end = batch.end_below(tree.id, from, parent.high());
        let mut part = Part { end, runs: Vec::new(), leaves: Vec::new() };
        // Leaves of more than half of the pool would evict each other.
        let most = if parent.level() == 1 {
            self.durable.pool().limit() as usize / (2 + 2 * PARTS_AHEAD)
        } else {
            0
        };
        let mut at = from;
        while at < end {
            let (page, to) = match parent.level() {
                0 => (tree.root, end),
                _ => {
                    let index = parent.child_for(batch.get(tree.id, at).key);
                    let high = (index + 1 < parent.len()).then(|| parent.key(index + 1));
                    let to = batch.end_below(tree.id, at, high.as_deref().or(parent.high()));
                    (parent.child(index), to.max(at + 1))
                }
            };
            // If the operations do not all fit into memory, the batch uses the memory of the record cache, so
            // no operation may become a record.
            let may_keep = |(index, op): &(usize, OpRef<'_>)| {
                batch.prefetch(tree.id, index + AHEAD);
                self.keep_as_record(*op, page, batch.since_of(tree.id, *index))
            };
            let ops = std::iter::zip(at..to, batch.run(tree.id, at..to));
            let kept = if batch.is_extended() { 0 } else { ops.take_while(may_keep).count() };
            let rest = at + kept..to;
            if !rest.is_empty() {
                part.runs.push(rest);
                // An error is ignored here, because applying the operations meets it again.
                if part.leaves.len() < most {
                    part.leaves.push(page);
                }
            }
            at = to;
        }
        Ok(part)
    }

    /// Puts an operation into the record cache, if there is space. The batch has no other operation on this
    /// key, and the cache was empty before recovery. Large values and the engine's own trees are excluded.
    ///
    /// The record has been pending since the log position of this operation, even if that is the position of
    /// a copy. A crash may have come before all pending records were copied forward, and then the log has
    /// reserved space to copy each of the others once.
    fn keep_as_record(&self, op: OpRef<'_>, leaf: PageId, since: Lsn) -> bool {
        if op.large || op.tree < FIRST_USER_TREE {
            return false;
        }
        let mut records = self.state.records_mut();
        let record = Record { tree: op.tree, key: op.key, value: op.value };
        let Some(reserved) = records.reserve(record) else { return false };
        records.release(reserved);
        records.put_new(record, leaf, since) == Put::Done
    }
}

#[cfg(test)]
mod tests {
    use crate::format::layout::{FORMAT, WITH_RUNS};
    use crate::format::page::node::NodeMut;
    use crate::format::page::{self, Kind};
    use crate::format::tree::{CATALOGUE, Tree};
    use crate::media::superblock;
    use crate::repair;
    use crate::{Durability, Error, MemImage, Options, Source, Store};
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, Handle, MemDevice};

    fn options() -> Options {
        Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, ..Options::default() }
    }

    /// Creates a store of format 5 whose catalogue names a sorted run. If `is_there`, the root page of the
    /// run exists; otherwise it was freed.
    async fn with_a_run(handle: Handle<MemDevice>, is_there: bool) {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        store.create_table("t").await.unwrap();
        let shard = &store.0;
        let page = shard.pick().await.unwrap();
        let run = Tree { id: 1 << 31 | 7, root: page };
        let mut guard = shard.durable.pool().create(page).await.unwrap();
        NodeMut::init(guard.bytes_mut(), page, run.id, 0, (b"", None));
        if !is_there {
            // A freed page still names the tree that it belonged to.
            page::init(guard.bytes_mut(), Kind::Free, 0, page, run.id);
        }
        shard.mark(page, shard.durable.log().tail());
        drop(guard);
        let value = [&[4][..], &99u32.to_le_bytes(), &page.0.to_le_bytes(), &7u32.to_le_bytes()].concat();
        let newest = [&[5][..], &[0; 12], &7u32.to_le_bytes()].concat();
        let transaction = store.begin();
        let catalogue = shard.tree(CATALOGUE).unwrap();
        transaction.note(catalogue, [0xFF, 0, 0, 0, 7].into(), Some(value.into()));
        transaction.note(catalogue, [0xFF].into(), Some(newest.into()));
        transaction.commit_with(Durability::Flush).await.unwrap();
        store.close().await.unwrap();
        let mut closed = superblock::read(&handle).await.unwrap();
        closed.format = WITH_RUNS;
        closed.generation += 1;
        superblock::write(&handle, &closed).await.unwrap();
        closed.generation += 1;
        superblock::write(&handle, &closed).await.unwrap();
    }

    /// The rule: opening refuses a store with sorted runs and does not change it, so that the version that
    /// wrote the store can still open it.
    #[test]
    fn a_store_with_sorted_runs_is_refused_and_keeps_its_format() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let other = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let (handle, to) = (executor.handle(), other.handle());
        let image = executor.block_on(async move {
            with_a_run(handle.clone(), true).await;
            let opened = Store::open(handle.clone(), options()).await;
            assert_eq!(opened.err(), Some(Error::SortedRuns));
            assert_eq!(superblock::read(&handle).await.unwrap().format, WITH_RUNS);
            let mut bytes = vec![0; 4096 * 4096];
            handle.read(0, &mut bytes).await.unwrap();
            MemImage::new(bytes)
        });
        let image = image.unwrap();
        let repaired = other.block_on(async move { repair(&image, to, options()).await });
        assert_eq!(repaired.unwrap().err(), Some(Error::SortedRuns));
    }

    /// The rule: a store whose catalogue names only freed sorted runs can be opened, and its format version
    /// rises when it is written.
    #[test]
    fn a_store_whose_sorted_runs_are_gone_is_opened() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let other = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let (handle, to) = (executor.handle(), other.handle());
        let work = async move {
            with_a_run(handle.clone(), false).await;
            let mut bytes = vec![0; 4096 * 4096];
            handle.read(0, &mut bytes).await.unwrap();
            let store = Store::open(handle.clone(), options()).await.unwrap();
            assert_eq!(store.tables().await.unwrap().len(), 1);
            store.close().await.unwrap();
            assert_eq!(superblock::read(&handle).await.unwrap().format, FORMAT);
            MemImage::new(bytes)
        };
        let image = executor.block_on(work).unwrap();
        let repaired = other.block_on(async move { repair(&image, to, options()).await });
        assert!(repaired.unwrap().is_ok_and(|report| report.is_whole()));
    }
}
