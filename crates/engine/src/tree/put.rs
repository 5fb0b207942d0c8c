//! One operation on one leaf.

use super::{Tree, leaf, merge};
use crate::log::Op;
use crate::page;
use crate::page::node::NodeMut;
use crate::shard::Shard;
use crate::{Error, Lsn};
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
    /// Does an operation that is in the log.
    pub async fn apply(&self, tree: Tree, op: &Op, at: Applied) -> Result<(), Error> {
        let sparse = loop {
            let mut guard = self.find_for_change(tree, &op.key).await?;
            let node = leaf(guard.bytes())?;
            let found = node.search(&op.key);
            let cost = op.cell().map_or(0, |cell| node.cost(op.key.len(), cell.bytes.len()));
            if at.keep_old {
                // In the same step as the change, so that a reader finds the one or the other.
                let old = found.ok().map(|index| node.value(index));
                // A large value was read before the commit was appended.
                self.versions.borrow_mut().keep(tree.id, &op.key, at.lsn, old);
            }
            let number = page::number(guard.bytes());
            let mut node = NodeMut::new(guard.bytes_mut());
            let done = match (op.cell(), found) {
                (Some(cell), _) => node.put(&op.key, cell),
                (None, Ok(index)) => {
                    node.remove(index);
                    true
                }
                (None, Err(_)) => true,
            };
            if done {
                let bytes = guard.bytes_mut();
                let lsn = page::lsn(bytes).max(at.lsn);
                page::set_lsn(bytes, lsn);
                self.mark(number, at.since);
                break op.value.is_none() && number != tree.root && merge::is_sparse(leaf(bytes)?);
            }
            drop(guard);
            self.make_room(tree, &op.key, cost).await?;
        };
        if sparse { self.shrink(tree, &op.key).await } else { Ok(()) }
    }
}
