//! One operation on one leaf.

use super::{Tree, leaf, merge};
use crate::log::{Op, OpRef};
use crate::page;
use crate::page::node::NodeMut;
use crate::recovery::look_ahead;
use crate::shard::Shard;
use crate::{Error, Lsn};
use fulgurite_base::PageId;
use fulgurite_device::Device;

/// Where an operation stands in the log.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// Where its record begins.
    pub since: Lsn,
    /// Where its record ends.
    pub lsn: Lsn,
    /// Whether readers of older states need what was there before.
    pub keep_old: bool,
}

impl<D: Device + 'static> Shard<D> {
    /// Does operations that are in the log, in ascending order of their keys, as far as they lie in the leaf of the first.
    /// Returns how many were done, at least one. For recovery: nobody needs what was there before.
    pub async fn apply_run(&self, tree: Tree, ops: &[OpRef<'_>], at: Applied) -> Result<usize, Error> {
        let Some(first) = ops.first() else { return Ok(0) };
        let (mut done, mut is_sparse) = (0, false);
        {
            let mut guard = self.find_for_change(tree, first.key).await?;
            let number = page::number(guard.bytes());
            let bytes = guard.bytes_mut();
            for op in ops {
                look_ahead(ops, done);
                if !leaf(bytes)?.covers(op.key) {
                    break;
                }
                if !change(bytes, *op)? {
                    break;
                }
                is_sparse |= op.value.is_none();
                done += 1;
            }
            if done > 0 {
                self.note_change(bytes, number, at);
            }
            is_sparse = is_sparse && number != tree.root && merge::is_sparse(leaf(bytes)?);
        }
        if done == 0 {
            // The leaf has to be divided.
            self.apply(tree, &first.to_op(), at).await?;
            return Ok(1);
        }
        if is_sparse {
            self.shrink(tree, first.key).await?;
        }
        Ok(done)
    }

    /// Does an operation that is in the log.
    pub async fn apply(&self, tree: Tree, op: &Op, at: Applied) -> Result<(), Error> {
        let sparse = loop {
            let mut guard = self.find_for_change(tree, &op.key).await?;
            let node = leaf(guard.bytes())?;
            let cost = op.cell().map_or(0, |cell| node.cost(op.key.len(), cell.bytes.len()));
            if at.keep_old {
                // In the same step as the change, so that a reader finds the one or the other.
                let old = node.search(&op.key).ok().map(|index| node.value(index));
                // A large value was read before the commit was appended.
                self.versions.borrow_mut().keep(tree.id, &op.key, at.lsn, old);
            }
            let number = page::number(guard.bytes());
            let bytes = guard.bytes_mut();
            if change(bytes, op.as_ref())? {
                self.note_change(bytes, number, at);
                break op.value.is_none() && number != tree.root && merge::is_sparse(leaf(bytes)?);
            }
            drop(guard);
            self.make_room(tree, &op.key, cost).await?;
        };
        if sparse { self.shrink(tree, &op.key).await } else { Ok(()) }
    }

    /// Notes that a leaf contains what the log says from there on.
    fn note_change(&self, bytes: &mut [u8], number: PageId, at: Applied) {
        let lsn = page::lsn(bytes).max(at.lsn);
        page::set_lsn(bytes, lsn);
        self.mark(number, at.since);
    }
}

/// Does an operation on the leaf that covers its key. False where there is no room.
fn change(bytes: &mut [u8], op: OpRef<'_>) -> Result<bool, Error> {
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
