//! Applies operations to the leaf of their keys.

use super::merge;
use crate::format::log_record::{Op, OpRef, look_ahead};
use crate::format::page;
use crate::format::page::node::leaf;
use crate::format::page::node::{Cell, NodeMut};
use crate::format::tree::Tree;
use crate::memory::record_cache::{Put, Record};
use crate::memory::versions::Replaced;
use crate::shard::Shard;
use crate::{Error, Lsn};
use fulgurite_base::PageId;

/// The position of an operation in the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Applied {
    /// The LSN at which the log record of the operation begins.
    pub since: Lsn,
    /// The LSN at which the log record of the operation ends.
    pub lsn: Lsn,
    /// Whether readers of older states may need the old value.
    pub keep_old: bool,
}

impl Shard {
    /// Applies logged operations, in ascending order of their keys, up to the first that belongs to another
    /// leaf. Returns the number of applied operations, at least one. Recovery uses it, when no reader needs
    /// old values.
    ///
    /// Fails with [`Error::Full`] if the leaf has to be split and the log has no space for that.
    pub(crate) async fn apply_run(&self, tree: Tree, ops: &[OpRef<'_>], at: Applied) -> Result<usize, Error> {
        let Some(first) = ops.first() else { return Ok(0) };
        let (mut done, mut is_smaller, mut since) = (0, false, at.since);
        let is_sparse = {
            let mut guard = self.find_for_change(tree, first.key).await?;
            let number = page::number(guard.bytes());
            let bytes = guard.bytes_mut();
            let before = leaf(bytes)?.used();
            for op in ops {
                look_ahead(ops, done);
                if !leaf(bytes)?.covers(op.key) {
                    break;
                }
                let mut fits = change(bytes, *op)?;
                // The end state of the leaf fitted into a page before the crash. So if an operation does not
                // fit, those that shrink a record are applied first.
                if !fits && make_smaller(bytes, &ops[done..])? {
                    is_smaller = true;
                    fits = change(bytes, *op)?;
                }
                if !fits {
                    break;
                }
                since = self.state.records_mut().forget(tree.id, op.key).map_or(since, |old| old.min(since));
                done += 1;
            }
            if done > 0 || is_smaller {
                self.note_change(bytes, number, Applied { since, ..at });
            }
            number != tree.root && merge::should_look(leaf(bytes)?, before)
        };
        // Some log space must remain for copying pending records forward, even if it is not enough for all of
        // them at once.
        let has_room = self.log_left() >= self.change_bytes() + self.durable.log().capacity() / 32;
        if done == 0 && !has_room {
            let (free, pages) = (self.state.space().available(), self.state.space().pages());
            return Err(Error::Full { free, pages, needed: 1 });
        }
        if done == 0 {
            // The leaf may have to be split, which the single operation below does.
            self.apply(tree, &first.to_op(), at).await?;
            return Ok(1);
        }
        if is_sparse {
            self.shrink(tree, first.key).await?;
        }
        Ok(done)
    }

    /// Applies a logged operation to the record cache, or to its leaf if the cache has no space.
    pub(crate) async fn apply_to_cache(&self, tree: Tree, op: &Op, at: Applied) -> Result<(), Error> {
        let is_pending = self.state.records().is_pending(tree.id, &op.key);
        // While the parent is latched the structure cannot change, so this remains the leaf of the key.
        let (parent, leaf) = match is_pending {
            true => (None, tree.root),
            false => {
                let (parent, leaf) = self.leaf_page(tree, &op.key).await?;
                (Some(parent), leaf)
            }
        };
        let record = Record { tree: tree.id, key: &op.key, value: op.value.as_deref() };
        let put = {
            let mut records = self.state.records_mut();
            if at.keep_old {
                let newest = records.peek(tree.id, &op.key);
                let old = newest.map_or(Replaced::InLeaf, |value| Replaced::Cell(value.map(Cell::inline)));
                self.state.versions_mut().keep(tree.id, &op.key, at.lsn, old);
            }
            records.put(record, leaf, at.since)
        };
        // The latch of the parent is released before the wait for the leaf, because a task that splits the
        // leaf holds the latch of the leaf and waits for the parent.
        drop(parent);
        match put {
            Put::NoRoom => self.apply(tree, op, at).await,
            Put::Done => Ok(()),
        }
    }

    /// Applies a logged operation to its leaf.
    pub(crate) async fn apply(&self, tree: Tree, op: &Op, at: Applied) -> Result<(), Error> {
        let sparse = loop {
            let mut guard = self.find_for_change(tree, &op.key).await?;
            let node = leaf(guard.bytes())?;
            let cost = op.cell().map_or(0, |cell| node.cost(op.key.len(), cell.bytes.len()));
            // The old version is settled without a wait before the change, so that a reader finds either the
            // old or the new value.
            let in_leaf = node.search(&op.key).ok().map(|index| node.value(index));
            self.state.versions_mut().settle(tree.id, &op.key, in_leaf);
            if at.keep_old {
                let records = self.state.records();
                let newer = records.peek(tree.id, &op.key).map(|value| value.map(Cell::inline));
                // The old value of a large one need not be read here: it was read before the commit was
                // appended.
                let old = Replaced::Cell(newer.unwrap_or(in_leaf));
                self.state.versions_mut().keep(tree.id, &op.key, at.lsn, old);
            }
            let (number, before) = (page::number(guard.bytes()), node.used());
            let bytes = guard.bytes_mut();
            if change(bytes, op.as_ref())? {
                // The cached record is older than this operation, so it is dropped. The leaf becomes dirty
                // since the LSN of the cached record if that is older, because the dropped value may be
                // durable before this operation is.
                let since = self.state.records_mut().forget(tree.id, &op.key);
                let since = since.map_or(at.since, |since| since.min(at.since));
                let at = Applied { since, ..at };
                self.note_change(bytes, number, at);
                break number != tree.root && merge::should_look(leaf(bytes)?, before);
            }
            drop(guard);
            self.make_room(tree, &op.key, cost).await?;
        };
        if sparse {
            self.shrink(tree, &op.key).await?;
        }
        Ok(())
    }

    /// Marks a leaf as dirty, with the LSNs of the changes that it contains now.
    pub(crate) fn note_change(&self, bytes: &mut [u8], number: PageId, at: Applied) {
        let lsn = page::lsn(bytes).max(at.lsn);
        page::set_lsn(bytes, lsn);
        self.mark_leaf(number, bytes, at.since);
    }
}

/// Applies the operations that need no additional space in the leaf. Returns whether there were any.
fn make_smaller(bytes: &mut [u8], ops: &[OpRef<'_>]) -> Result<bool, Error> {
    let mut any = false;
    for op in ops {
        let node = leaf(bytes)?;
        if !node.covers(op.key) {
            break;
        }
        let Ok(index) = node.search(op.key) else { continue };
        if op.value.map_or(0, <[u8]>::len) < node.value(index).bytes.len() {
            any |= change(bytes, *op)?;
        }
    }
    Ok(any)
}

/// Applies an operation to the leaf that covers its key. Returns false if the leaf has no space.
pub(crate) fn change(bytes: &mut [u8], op: OpRef<'_>) -> Result<bool, Error> {
    match op.cell() {
        Some(cell) => Ok(NodeMut::new(bytes).put(op.key, cell)),
        None => {
            if let Ok(index) = leaf(bytes)?.search(op.key) {
                NodeMut::new(bytes).remove(index);
            }
            Ok(true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Applied;
    use crate::format::log_record::{Op, OpRef};
    use crate::format::page;
    use crate::{Durability, Options, Store};
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, MemDevice};
    use std::rc::Rc;

    #[test]
    fn a_crash_leaves_a_value_while_a_newer_one_replaces_its_pending_record() {
        let drive = || MemDevice::new(4096, 4096, 64, Nanos::from_micros(10));
        let options = || Options {
            memory_bytes: 16 << 20,
            log_bytes: 4 << 20,
            relaxed_window: Nanos(u64::MAX / 4),
            ..Options::default()
        };
        let executor = Executor::new(drive());
        let handle = executor.handle();
        let work = async move {
            let store = Store::create(handle, options()).await.unwrap();
            let [table, others] =
                [store.create_table("t").await.unwrap(), store.create_table("others").await.unwrap()];
            let put = async |table, key: u8, value: &[u8], durability| {
                let transaction = store.begin();
                transaction.put(table, &[key], value).await.unwrap();
                transaction.commit_with(durability).await.unwrap();
            };
            // Makes the leaf clean: a write to a dirty leaf would not go to the record cache.
            store.checkpoint().await.unwrap();
            put(table, 0, b"old", Durability::Flush).await;
            assert_eq!(store.statistics().records_pending, 1);
            let behind = store.0.durable.log().tail();
            put(others, 0, b"later", Durability::Flush).await;
            // A value that is too large for the record cache goes to the leaf and replaces the cached record.
            put(table, 0, &[2; 20_000], Durability::Relaxed).await;
            assert!(store.0.state.records().peek(table.0.id, &[0]).is_none());
            // The log of the old value may be freed only once the new value is durable, in a leaf or in the
            // log.
            store.0.checkpoint(behind).await.unwrap();
            // Simulates a power cut: nothing is written from here on.
            store.0.health.stop("the power is gone".to_owned());
        };
        executor.block_on(work).unwrap();
        let drive = executor.with_device(|device| std::mem::replace(device, drive()));
        let executor = Executor::new(drive);
        let handle = executor.handle();
        let found = executor.block_on(async move {
            let store = Store::open(handle, options()).await.unwrap();
            let table = store.table("t").await.unwrap();
            store.snapshot().get(table, &[0]).await.unwrap()
        });
        assert!(found.unwrap().is_some(), "neither the old value nor the new one is there");
    }

    /// The rule: if the record cache holds a pending record of a key, an operation on the leaf of this key
    /// replaces that record, also on a store that was full.
    #[test]
    fn an_operation_on_a_leaf_replaces_the_pending_record() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let handle = executor.handle();
        let work = async move {
            let options = Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, ..Options::default() };
            let store = Store::create(handle, options).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            // Makes the leaf clean: a write to a dirty leaf would not go to the record cache.
            store.checkpoint().await.unwrap();
            let transaction = store.begin();
            transaction.put(table, b"key", b"old").await.unwrap();
            transaction.commit_with(Durability::Flush).await.unwrap();
            let since = store.0.state.records().least();
            assert!(since.is_some(), "the record is pending");
            let tree = table.0;
            let later = OpRef { tree: tree.id, key: b"key", value: Some(b"new"), large: false };
            let at = Applied {
                since: store.0.durable.log().tail(),
                lsn: store.0.durable.log().tail(),
                keep_old: false,
            };
            assert_eq!(store.0.apply_run(tree, &[later], at).await, Ok(1));
            assert_eq!(
                store.statistics().records_pending,
                0,
                "the old value would come back over the new one"
            );
            let changed = store.0.durable.pages().changed(|changed| changed.least());
            assert_eq!(changed, since, "until the leaf is written, the log of the record counts");
            assert_eq!(store.snapshot().get(table, b"key").await.unwrap().as_deref(), Some(&b"new"[..]));
        };
        executor.block_on(work).unwrap();
    }

    /// The rule: a write that the record cache refuses holds no latch on the parent while it waits for its
    /// leaf, because a split of this leaf may be waiting for the parent.
    #[test]
    fn a_write_that_the_cache_refuses_does_not_block_a_split() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let handle = executor.handle();
        let work = async move {
            let options =
                Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, records: 0, ..Options::default() };
            let store = Store::create(handle.clone(), options).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            let transaction = store.begin();
            for key in 0..100u8 {
                transaction.put(table, &[key], &[key; 180]).await.unwrap();
            }
            transaction.commit().await.unwrap();
            let (shard, tree) = (Rc::clone(&store.0), table.0);
            let (parent, leaf) = shard.leaf_page(tree, &[50]).await.unwrap();
            let parent_page = page::number(parent.bytes());
            assert_ne!(parent_page, leaf, "the tree has a parent above the leaf");
            drop(parent);
            let divided = shard.write_page(leaf).await.unwrap();
            let writer = Rc::clone(&shard);
            handle.spawn(async move {
                let op = Op { tree: tree.id, key: [50].into(), value: Some([7].into()), large: false };
                let at = Applied {
                    since: writer.durable.log().tail(),
                    lsn: writer.durable.log().tail(),
                    keep_old: false,
                };
                writer.apply_to_cache(tree, &op, at).await.unwrap();
            });
            // Lets the write go on until it waits for the leaf.
            for _ in 0..3 {
                handle.pause().await;
            }
            let above = shard.write_page(parent_page).await.unwrap();
            drop((above, divided));
            // The leaf can be latched only after the write, which asked for it earlier.
            drop(shard.write_page(leaf).await.unwrap());
            let found = store.snapshot().get(table, &[50]).await.unwrap();
            assert_eq!(found.as_deref(), Some(&[7][..]));
        };
        executor.block_on(work).unwrap();
    }

    /// The rule: a sequence of operations whose end result fits into its leaf splits no leaf. Recovery
    /// applies operations in the order of keys, so a leaf may need more space in between than it ever did
    /// before the crash, and a full log has no space for a split.
    #[test]
    fn operations_that_fit_in_the_end_split_no_leaf() {
        let executor = Executor::new(MemDevice::new(4096, 4096, 64, Nanos::from_micros(10)));
        let handle = executor.handle();
        let work = async move {
            let options =
                Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, records: 0, ..Options::default() };
            let store = Store::create(handle, options).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            let transaction = store.begin();
            for key in 0..20u8 {
                transaction.put(table, &[key], &[key; 180]).await.unwrap();
            }
            transaction.commit().await.unwrap();
            let tree = table.0;
            let value = |len: usize| Some(&[7u8; 400][..len]);
            let op = |key: &'static [u8], value| OpRef { tree: tree.id, key, value, large: false };
            let run = [
                op(&[0], value(400)),
                op(&[3], value(250)),
                op(&[9], value(10)),
                op(&[12], None),
                op(&[20], value(90)),
            ];
            let at = Applied {
                since: store.0.durable.log().tail(),
                lsn: store.0.durable.log().tail(),
                keep_old: false,
            };
            assert_eq!(store.0.apply_run(tree, &run, at).await, Ok(5));
            assert_eq!(store.0.counters.get().splits, 0);
            let (snapshot, mut lens) = (store.snapshot(), Vec::new());
            for key in [0, 3, 9, 12, 20] {
                lens.push(snapshot.get(table, &[key]).await.unwrap().map(|value| value.len()));
            }
            assert_eq!(lens, [Some(400), Some(250), Some(10), None, Some(90)]);
        };
        executor.block_on(work).unwrap();
    }
}
