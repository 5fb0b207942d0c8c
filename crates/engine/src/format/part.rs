//! The records of a transaction of several shards.
//!
//! Each shard has a log of its own, so such a transaction has several records. One of its shards is the *coordinator*.
//! The others log their operations as *prepared*. Then the coordinator logs its operations as any commit, in a record
//! that also *decides* the transaction: it is committed if and only if this record is in the coordinator's log. At last
//! each of the other shards logs what was *decided*; its operations take effect with that record. See
//! `shard::commit::across`.
//!
//! The part of a record is `kind (1), coordinator, opening, number`, the last three as LEB128 numbers. The operations
//! of a prepared record follow.

use crate::format::number::{put_number, take_byte, take_number};

/// The identity of a transaction of several shards. It is never used twice: the opening is the generation of the
/// coordinator's superblock, which every opening of that shard raises durably before it writes anything else, and the
/// number counts within the opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GlobalId {
    /// The index of the shard that decides.
    pub coordinator: u32,
    pub opening: u64,
    pub number: u64,
}

/// The part of a record in a transaction of several shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The operations of the record take effect with a later record of this log that says so.
    Prepared(GlobalId),
    /// The transaction is committed in all its shards.
    Decides(GlobalId),
    /// The operations of an earlier prepared record take effect now, or never.
    Decided { id: GlobalId, committed: bool },
}

/// The part of a record whose operations are not copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartRef<'a> {
    pub of: Part,
    /// The encoded operations of a prepared record; empty for others.
    pub ops: &'a [u8],
}

/// An upper bound of the bytes of a record that consists of a part, with its frame.
pub(crate) const PART_RECORD: u64 = 64;

impl Part {
    /// Returns the transaction.
    pub(crate) fn id(self) -> GlobalId {
        match self {
            Part::Prepared(id) | Part::Decides(id) | Part::Decided { id, .. } => id,
        }
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let kind = match self {
            Part::Prepared(_) => 1,
            Part::Decides(_) => 2,
            Part::Decided { committed: true, .. } => 3,
            Part::Decided { committed: false, .. } => 4,
        };
        out.push(kind);
        let GlobalId { coordinator, opening, number } = self.id();
        [u64::from(coordinator), opening, number].into_iter().for_each(|number| put_number(out, number));
    }

    pub(super) fn decode(input: &mut &[u8]) -> Option<Part> {
        let kind = take_byte(input)?;
        let coordinator = u32::try_from(take_number(input)?).ok()?;
        let id = GlobalId { coordinator, opening: take_number(input)?, number: take_number(input)? };
        match kind {
            1 => Some(Part::Prepared(id)),
            2 => Some(Part::Decides(id)),
            3 | 4 => Some(Part::Decided { id, committed: kind == 3 }),
            _ => None,
        }
    }
}
