//! The large values that the log deletes.
//!
//! The structure that recovery has redone is that of the log's end. If a value is put in one batch and deleted in a
//! later one, putting its pieces would split leaves that a merge has just freed, and the log may lack the space for
//! that. Nobody reads the value any more, so its pieces are not put at all.
//!
//! A single deleted piece tells: whoever deletes a piece deletes the others too, with the same log record or from a
//! mark or a dropped table that the next opening finds. A number is never given to another value.

use crate::format::large_value::LargeValue;
use crate::format::log_record::OpRef;
use crate::format::tree::LARGE;
use rustc_hash::FxHashSet;

/// The number of values that are remembered. The others are put, and deleted again.
const MOST: usize = 1 << 16;

/// The numbers of the values of which the log deletes a piece.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletedValues(FxHashSet<u64>);

impl DeletedValues {
    /// Notes an operation that takes effect.
    pub(crate) fn note(&mut self, op: OpRef<'_>) {
        if let Some(number) = piece_of(op).filter(|_| op.value.is_none() && self.0.len() < MOST) {
            self.0.insert(number);
        }
    }

    /// Whether an operation puts a piece of a deleted value.
    pub(crate) fn has(&self, op: &OpRef<'_>) -> bool {
        !self.0.is_empty()
            && op.value.is_some()
            && piece_of(*op).is_some_and(|number| self.0.contains(&number))
    }
}

/// Returns the number of the value whose piece an operation puts or deletes; `None` for any other operation.
pub(super) fn piece_of(op: OpRef<'_>) -> Option<u64> {
    (op.tree == LARGE && op.key.len() == 12).then(|| LargeValue::number_of(op.key))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_deleted_values_are_known() {
        let key = |number| LargeValue { number, bytes: 0 }.key(1);
        let op = |tree, key, value| OpRef { tree, key, value, large: false };
        let mut deleted = DeletedValues::default();
        let (one, two, mark) = (key(1), key(2), LargeValue::mark(2));
        deleted.note(op(LARGE, &one, None));
        deleted.note(op(LARGE, &two, Some(b"piece")));
        deleted.note(op(LARGE, &mark, None));
        deleted.note(op(7, &two, None));
        assert!(deleted.has(&op(LARGE, &one, Some(b"piece"))));
        assert!(!deleted.has(&op(LARGE, &one, None)), "a deletion is redone");
        assert!(!deleted.has(&op(LARGE, &two, Some(b"piece"))) && !deleted.has(&op(7, &one, Some(b"row"))));
    }
}
