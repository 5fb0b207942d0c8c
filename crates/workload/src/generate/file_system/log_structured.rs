//! Generates the writes of a log-structured file system, after F2FS. The file system never overwrites in
//! place, so it cleans segments.
//!
//! A transaction appends its changed blocks, then the nodes with their addresses. A node has the addresses of
//! 1,018 blocks and is found through a table, which is omitted. Data blocks, nodes and moved blocks are
//! appended to separate logs. When few segments are free, the segment with the fewest valid blocks is
//! *cleaned*: its valid blocks are appended to a log, and the segment is discarded (`trim`). Cleaning moves
//! blocks without writing their nodes. A checkpoint writes these nodes after four moves for each existing
//! node.
//!
//! *Differences from F2FS.* F2FS has six logs, also considers the age of a segment in cleaning, and reuses a
//! cleaned segment only after a checkpoint.

use super::{Changes, ChangesConfig, check_pages, with_changes};
use crate::generate::generator::{Generator, RequestSource};
use crate::generate::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::{COUNT, SHARE};
use fulgurite_base::{Share, SpecError, opt};
use std::collections::{BTreeSet, VecDeque};

/// The options of `log-structured`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogStructuredConfig {
    /// The share of the pages that hold files: data blocks and nodes.
    pub fill: Share,
    /// The number of pages in a segment. It is lowered to a 64th of all pages if it exceeds that.
    pub segment_pages: u32,
    /// The changes that the transactions make.
    pub changes: ChangesConfig,
}

impl Default for LogStructuredConfig {
    /// A segment has 512 pages, because a segment of F2FS has 2 MiB in blocks of 4 KiB.
    fn default() -> LogStructuredConfig {
        let changes = ChangesConfig::default();
        LogStructuredConfig { fill: Share::percent(80), segment_pages: 512, changes }
    }
}

with_changes!(
    LogStructuredConfig,
    opt!("fill", fill, SHARE, Share::percent(1) => Share::percent(95), "pages that hold files"),
    opt!(
        "segment", segment_pages, COUNT, 2 => 1 << 16,
        "pages in a segment, which is cleaned as a whole; at most a 64th of all"
    )
);

/// The number of block addresses in a node.
const IN_NODE: u32 = 1_018;
/// Cleaning begins when fewer segments than this are free, because each log may need one while a segment is
/// cleaned.
const RESERVE: usize = 4;
/// The least number of segments in the space.
const LEAST_SEGMENTS: u64 = 64;
/// The number of moved blocks for each node between two checkpoints.
const MOVES_PER_NODE: usize = 4;
/// The value that stands for no block or no page.
const NOTHING: u32 = u32::MAX;
/// The number of segments that files cannot fill: one for each log, the reserve, and one for cleaning to gain
/// space.
const SPARE_SEGMENTS: u64 = LOGS as u64 + RESERVE as u64 + 1;

/// The log to which a block is appended.
#[derive(Clone, Copy)]
enum Log {
    Data,
    Nodes,
    Moved,
}

const LOGS: usize = 3;

/// The state of a segment with respect to the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// A log appends to the segment.
    Open,
    Full,
}

impl Recipe for LogStructuredConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let Space { name, pages, seed, .. } = space;
        // In a small space, segments are smaller, so that cleaning can choose a victim among at least 64 of
        // them.
        let segment_pages = u64::from(self.segment_pages).min(pages / LEAST_SEGMENTS);
        check_pages(name, pages, 1_000)?;
        let segments = pages / segment_pages;
        let files = self.fill.of(segments * segment_pages);
        // A node and its 1,018 blocks have 1,019 pages, so one page in 1,019 of the files is a node.
        let nodes = files.div_ceil(u64::from(IN_NODE) + 1).max(1);
        if segments * segment_pages < files + SPARE_SEGMENTS * segment_pages || files < nodes + 100 {
            return Err(SpecError::new(format!(
                "pages of {name}: {pages} leave too few segments of {segment_pages} pages free with fill={}; \
                 accepted: more pages, or a smaller segment= or fill=",
                self.fill
            )));
        }
        let blocks = files - nodes;
        let mut files = LogStructured {
            segment_pages: segment_pages as u32,
            blocks: blocks as u32,
            place: vec![NOTHING; files as usize],
            holds: vec![NOTHING; (segments * segment_pages) as usize],
            valid: vec![0; segments as usize],
            states: vec![State::Free; segments as usize],
            free: (0..segments as u32).collect(),
            heads: [None; LOGS],
            moves: 0,
            moved_nodes: BTreeSet::new(),
            changes: Changes::new(self.changes, blocks, seed),
            out: VecDeque::new(),
        };
        (0..files.place.len() as u32).for_each(|block| files.append(block, files.log(block)));
        // The initial contents of the drive are not part of the workload, so their writes are dropped.
        files.out.clear();
        Ok(Generator::new(files))
    }

    fn writes_anything(&self) -> bool {
        true
    }

    fn trims_anything(&self) -> bool {
        true
    }
}

/// The state of the file system, with the addresses of its blocks and the states of its segments. Nodes are
/// numbered after the data blocks.
#[derive(Debug)]
struct LogStructured {
    segment_pages: u32,
    blocks: u32,
    /// The page of each block, and the valid block in each page.
    place: Vec<u32>,
    holds: Vec<u32>,
    /// For each segment, its number of valid pages and its state.
    valid: Vec<u32>,
    states: Vec<State>,
    free: VecDeque<u32>,
    /// For each log, the next page and the end of its open segment; `None` if it has no open segment.
    heads: [Option<(u32, u32)>; LOGS],
    /// The number of data blocks moved since the last checkpoint, and the nodes that the next checkpoint will
    /// write for them.
    moves: usize,
    moved_nodes: BTreeSet<u32>,
    changes: Changes,
    out: VecDeque<Request>,
}

impl LogStructured {
    fn log(&self, block: u32) -> Log {
        if block < self.blocks { Log::Data } else { Log::Nodes }
    }

    fn transaction(&mut self) {
        let changed = self.changes.next();
        let nodes: BTreeSet<u32> = changed.iter().map(|block| self.node(*block)).collect();
        changed.into_iter().chain(nodes).for_each(|block| self.write(block));
        if self.moves >= MOVES_PER_NODE * (self.place.len() - self.blocks as usize) {
            self.moves = 0;
            std::mem::take(&mut self.moved_nodes).into_iter().for_each(|node| self.write(node));
        }
    }

    /// Writes a new version of a block to its log, after cleaning segments if few are free.
    fn write(&mut self, block: u32) {
        while self.free.len() < RESERVE {
            self.clean();
        }
        self.append(block, self.log(block));
    }

    fn node(&self, block: u32) -> u32 {
        self.blocks + block / IN_NODE
    }

    fn segment(&self, page: u32) -> usize {
        (page / self.segment_pages) as usize
    }

    /// Writes a block to the end of a log, and invalidates its previous page.
    fn append(&mut self, block: u32, log: Log) {
        let (page, end) = match self.heads[log as usize] {
            Some(head) => head,
            None => {
                let segment = self.free.pop_front().expect("cleaning keeps segments free");
                self.states[segment as usize] = State::Open;
                (segment * self.segment_pages, (segment + 1) * self.segment_pages)
            }
        };
        let is_full = page + 1 == end;
        self.heads[log as usize] = (!is_full).then_some((page + 1, end));
        let segment = self.segment(page);
        if is_full {
            self.states[segment] = State::Full;
        }
        let before = std::mem::replace(&mut self.place[block as usize], page);
        if before != NOTHING {
            self.holds[before as usize] = NOTHING;
            let segment = self.segment(before);
            self.valid[segment] -= 1;
        }
        self.holds[page as usize] = block;
        self.valid[segment] += 1;
        self.out.push_back(Request::of_page(Op::Write, page.into()));
    }

    /// Moves the valid blocks of the full segment with the fewest of them, and discards the segment.
    fn clean(&mut self) {
        let full = (0..self.valid.len()).filter(|segment| self.states[*segment] == State::Full);
        let victim = full.min_by_key(|segment| self.valid[*segment]).expect("files fill segments");
        let first = victim as u32 * self.segment_pages;
        for page in first..first + self.segment_pages {
            let block = self.holds[page as usize];
            if block == NOTHING {
                continue;
            }
            let log = match self.log(block) {
                Log::Data => {
                    self.moves += 1;
                    self.moved_nodes.insert(self.node(block));
                    Log::Moved
                }
                nodes => nodes,
            };
            self.append(block, log);
        }
        let pages = first..first + self.segment_pages;
        self.out.extend(pages.map(|page| Request::of_page(Op::Trim, page.into())));
        self.states[victim] = State::Free;
        self.free.push_back(victim as u32);
    }
}

impl RequestSource for LogStructured {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            self.transaction();
        }
    }
}
