//! Merges the sorted streams of the shards into one.

use crate::Direction;

/// Returns the shard whose next item comes first in a direction, given the next item of each shard that has one;
/// `None` if none has.
pub(crate) fn first<T: Ord>(heads: impl Iterator<Item = (T, usize)>, direction: Direction) -> Option<usize> {
    match direction {
        Direction::Forward => heads.min(),
        Direction::Backward => heads.max(),
    }
    .map(|(_, shard)| shard)
}
