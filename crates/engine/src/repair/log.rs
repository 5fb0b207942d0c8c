//! The log of a damaged store, as far as it can be read.

use crate::Lsn;
use crate::image::Source;
use crate::layout::Superblock;
use crate::log::Entry;
use crate::log::block::{Block, HEADER};
use crate::page::get_u32;
use std::collections::BTreeMap;

/// Bytes of a record's frame: length and checksum.
const FRAME: usize = 8;

/// What could be read.
#[derive(Default)]
pub struct LogRead {
    /// The records with their ends.
    pub entries: Vec<(Lsn, Entry)>,
    /// Where reading ended.
    pub end: Lsn,
    /// What was lost there; `None` where the log ends there by itself.
    pub damage: Option<String>,
}

/// Every whole block of the ring that lies where it says, by its place in the log, with its CRC.
pub async fn blocks(source: &impl Source, superblock: &Superblock) -> BTreeMap<u64, (Block, u32)> {
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

/// Bytes of a block, bytes of the ring, where it begins.
fn ring(superblock: &Superblock) -> (u64, u64, u64) {
    let (page, block) = (u64::from(superblock.page_bytes), u64::from(superblock.block_bytes));
    (block, superblock.log_pages * page / block * block, superblock.log_start().0 * page)
}

/// Reads the log from the redo point on, up to its end or to the first damage.
pub async fn read(source: &impl Source, superblock: &Superblock) -> LogRead {
    if superblock.clean {
        return LogRead { end: superblock.log_end, ..LogRead::default() };
    }
    let (block, ring, start) = ring(superblock);
    let known = blocks(source, superblock).await;
    let mut stream = Stream::default();
    let mut at = superblock.redo.0 / block * block;
    let mut previous = None;
    let mut bytes = vec![0; block as usize];
    while let Some((header, crc)) = known.get(&at) {
        let follows = previous.is_none_or(|previous| previous == header.previous);
        if !follows || source.read(start + at % ring, &mut bytes).await.is_err() {
            break;
        }
        stream.add(superblock.redo.0, at + HEADER as u64, &bytes[HEADER..HEADER + header.used as usize]);
        previous = Some(*crc);
        at += block;
    }
    let durable = known.values().map(|(header, _)| header.durable.0).max().unwrap_or(0);
    let durable = durable.max(superblock.log_end.0);
    let (entries, parsed, broken) = stream.entries();
    let mut read = LogRead { entries, end: Lsn(at), damage: None };
    if durable > at {
        read.damage = Some(format!("it was durable up to {durable} and can be read up to {at}"));
    }
    if broken {
        read.damage = Some(format!("the record at {parsed} is not what was written there"));
        read.end = Lsn(parsed);
    }
    read
}

/// Bytes of records, and where they lie in the log.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    places: Vec<(usize, u64)>,
}

impl Stream {
    /// Adds a block's bytes that lie at `at`; what lies before `redo` is not wanted.
    fn add(&mut self, redo: u64, at: u64, bytes: &[u8]) {
        let skip = (redo.saturating_sub(at) as usize).min(bytes.len());
        self.places.push((self.bytes.len(), at + skip as u64));
        self.bytes.extend_from_slice(&bytes[skip..]);
    }

    fn place(&self, index: usize) -> u64 {
        let run = self.places.partition_point(|(from, _)| *from <= index).saturating_sub(1);
        self.places.get(run).map_or(0, |(from, at)| at + (index - from) as u64)
    }

    /// The records, where the first is that is none, and whether that is damage: a record that merely ends too early is
    /// the log's torn end.
    fn entries(&self) -> (Vec<(Lsn, Entry)>, u64, bool) {
        let mut entries = Vec::new();
        let mut taken = 0;
        while let Some(frame) = self.bytes.get(taken..taken + FRAME) {
            let (len, crc) = (get_u32(frame, 0) as usize, get_u32(frame, 4));
            let from = taken + FRAME;
            let Some(payload) = self.bytes.get(from..from + len) else { break };
            match Entry::decode(Lsn(self.place(taken)), crc, payload) {
                Some(entry) => entries.push((Lsn(self.place(from + len - 1) + 1), entry)),
                None => return (entries, self.place(taken), true),
            }
            taken = from + len;
        }
        (entries, self.place(taken), false)
    }
}
