//! Reads the log of a damaged store as far as possible.

use crate::Lsn;
use crate::format::layout::Superblock;
use crate::format::log_block::Block;
use crate::format::log_record::{Entry, Op};
use crate::format::part::{GlobalId, Part};
use crate::media::image::Source;
use crate::media::log::RecordAssembler;
use std::collections::BTreeMap;

/// The readable part of the log.
#[derive(Default)]
pub(super) struct LogRead {
    /// The log records, each with the LSN of its end and the operations that take effect with it.
    pub entries: Vec<(Lsn, Entry)>,
    /// The operations of transactions of several shards that the log does not decide. Another shard knows whether they
    /// are committed.
    pub in_doubt: BTreeMap<GlobalId, Vec<Op>>,
    /// The LSN at which reading ended.
    pub end: Lsn,
    /// The damage at `end`; `None` if the log ends there regularly.
    pub damage: Option<String>,
}

impl LogRead {
    fn add(&mut self, end: Lsn, mut entry: Entry) {
        match entry.part {
            Some(Part::Prepared(id)) => drop(self.in_doubt.insert(id, std::mem::take(&mut entry.ops))),
            Some(Part::Decided { id, committed }) => {
                let ops = self.in_doubt.remove(&id).filter(|_| committed);
                entry.ops = ops.unwrap_or_default();
            }
            Some(Part::Decides(_)) | None => {}
        }
        self.entries.push((end, entry));
    }
}

/// Returns every intact block of the ring that is at its own position, with its checksum, by its LSN.
pub(super) async fn blocks(source: &dyn Source, superblock: &Superblock) -> BTreeMap<u64, (Block, u32)> {
    let (block, ring, start) = ring(superblock);
    let mut found = BTreeMap::new();
    let mut bytes = vec![0; block as usize];
    for place in (0..ring).step_by(block as usize) {
        if source.read(start + place, &mut bytes).await.is_err() {
            continue;
        }
        if let Some((header, crc)) =
            Block::read(&bytes, false, superblock.salt()).filter(|(header, _)| header.at.0 % ring == place)
        {
            found.insert(header.at.0, (header, crc));
        }
    }
    found
}

/// Returns the block size, the size of the ring, and the offset at which the ring begins on the drive, all in
/// bytes.
fn ring(superblock: &Superblock) -> (u64, u64, u64) {
    let (page, block) = (u64::from(superblock.page_bytes), u64::from(superblock.block_bytes));
    (block, superblock.log_pages * page / block * block, superblock.log_start().0 * page)
}

/// Reads the log from the redo point to its end or to the first damage.
pub(super) async fn read(source: &dyn Source, superblock: &Superblock) -> LogRead {
    if superblock.clean {
        return LogRead { end: superblock.log_end, ..LogRead::default() };
    }
    let (block, ring, start) = ring(superblock);
    let known = blocks(source, superblock).await;
    let mut read = LogRead::default();
    let mut records = RecordAssembler::default();
    let mut at = superblock.redo.0 / block * block;
    let mut previous = None;
    let mut bytes = vec![0; block as usize];
    while let Some((header, crc)) = known.get(&at) {
        let follows = previous.is_none_or(|previous| previous == header.previous);
        if !follows || source.read(start + at % ring, &mut bytes).await.is_err() {
            break;
        }
        records.add(header, &bytes, superblock.redo);
        while let Some(record) = records.next(|_, payload| Entry::read(payload)) {
            match record {
                Ok((_, end, entry)) => read.add(end, entry),
                Err(place) => {
                    read.damage = Some(format!("the record at {place} is not what was written there"));
                    read.end = place;
                    return read;
                }
            }
        }
        previous = Some(*crc);
        at += block;
    }
    read.end = Lsn(at);
    let durable = known.values().map(|(header, _)| header.durable.0).max().unwrap_or(0);
    let durable = durable.max(superblock.log_end.0);
    if durable > at {
        read.damage = Some(format!("it was durable up to {durable} and can be read up to {at}"));
    }
    read
}
