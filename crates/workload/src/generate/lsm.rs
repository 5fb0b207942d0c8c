//! Generates the page writes of a store that keeps its data in sorted tables, after RocksDB with leveled compaction
//! (O'Neil et al., "The Log-Structured Merge-Tree", 1996).
//!
//! Changes go to a log, and in memory to a table, which is written to level 0 when it is full. Four tables of level 0
//! are merged into level 1. Each further level has room for ten times as many tables as the one above it. A level that
//! has more gives its next table, in the order of keys, to the level below, where it is merged with the tables that
//! have the same keys. A merge writes new tables and deletes the old ones. The last level has all data; the others
//! have newer versions of some of them. So the deeper its level, the longer a table lives.
//!
//! Writes carry a placement hint. With `hints=native` and `hints=tuned` they are the lifetimes that RocksDB gives to
//! the kernel by level, as it is and as its pull request 13994 proposes; with `hints=level` each level has its own.
//!
//! *Assumptions.* Keys are changed uniformly, so that a table has the keys of a fixed share of every level. A table has
//! 64 pages and lies in one extent, the next free one, circling through the space. A table is written while others of
//! other levels are, eight pages of each in turn. Deleted tables are trimmed, as on a file system that discards, unless
//! `trim=no`. Reads are omitted.

use super::file_system::check_pages;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::{SHARE, YES_NO};
use fulgurite_base::{Choice, Declared, Form, Opt, Share, SpecError, opt};
use std::collections::VecDeque;
use std::ops::Range;

/// The hints that writes carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LsmHints {
    /// The log is short, levels 0 and 1 are medium, level 2 is long, and deeper ones are extreme.
    #[default]
    Native,
    /// The log is short, levels 0 to 3 are medium, level 4 is long, and deeper ones are extreme.
    Tuned,
    /// The log and each level have one of their own.
    Level,
}

impl Choice for LsmHints {
    const NAMES: &'static [(&'static str, LsmHints)] =
        &[("native", LsmHints::Native), ("tuned", LsmHints::Tuned), ("level", LsmHints::Level)];
}

/// The hint of the log.
const LOG: u16 = 1;

impl LsmHints {
    /// Returns the hint of a table of this level.
    fn of_level(self, level: usize) -> u16 {
        let [medium, long, extreme] = [2, 3, 4];
        match (self, level) {
            (LsmHints::Native, 0..=1) | (LsmHints::Tuned, 0..=3) => medium,
            (LsmHints::Native, 2) | (LsmHints::Tuned, 4) => long,
            (LsmHints::Native | LsmHints::Tuned, _) => extreme,
            (LsmHints::Level, level) => medium + level as u16,
        }
    }
}

/// The options of `lsm-like`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LsmConfig {
    /// The share of the pages that hold tables.
    pub fill: Share,
    /// The hints that writes carry.
    pub hints: LsmHints,
    /// Whether deleted tables are trimmed.
    pub trim: bool,
}

impl Default for LsmConfig {
    fn default() -> LsmConfig {
        LsmConfig { fill: Share::percent(80), hints: LsmHints::Native, trim: true }
    }
}

impl Declared for LsmConfig {
    const OPTIONS: &'static [Opt<LsmConfig>] = &[
        opt!("fill", fill, SHARE, Share::percent(10) => Share::percent(95), "pages that hold tables"),
        opt!(
            "hints",
            hints,
            Form::<LsmHints>::choice("native|tuned|level"),
            "native, tuned: the lifetimes that RocksDB gives by level, as it is or as proposed; level: one a level"
        ),
        opt!("trim", trim, YES_NO, "deleted tables are trimmed"),
    ];
}

/// The number of pages of a table.
const TABLE: u32 = 64;
/// The number of pages of a table that are written before another table has its turn.
const TURN: u32 = 8;
/// The number of tables of level 0 that are merged, and of tables for which level 1 has room.
const WIDTH: usize = 4;
/// The ratio of the room of a level to that of the one above it.
const RATIO: usize = 10;
/// The number of extents beside those of full levels: the outputs of the merges of one round.
const SPARE: usize = 160;

/// Tables that are written one after the other, and what is deleted afterwards.
#[derive(Debug)]
struct Job {
    tables: VecDeque<u32>,
    /// The number of pages of the first table that were written.
    written: u32,
    /// The extents that are deleted when all tables are written.
    deletes: Vec<u32>,
    stream: u16,
}

/// The number of keys, each as a share of the space of keys.
const KEYS: u64 = 1 << 40;

/// A table: its extent, and its keys from `low` up to `high`.
#[derive(Clone, Copy, Debug)]
struct Table {
    extent: u32,
    low: u64,
    high: u64,
}

/// The store: the tables of each level in the order of their keys, which differ except in level 0.
#[derive(Debug)]
struct Lsm {
    config: LsmConfig,
    levels: Vec<Vec<Table>>,
    /// For each level, the least key of the next table that it gives to the level below.
    next: Vec<u64>,
    is_free: Vec<bool>,
    /// The extent from which a free one is looked for.
    from: usize,
    /// The jobs that take turns.
    jobs: VecDeque<Job>,
    out: VecDeque<Request>,
}

impl Recipe for LsmConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        check_pages(space.name, space.pages, u64::from(TABLE))?;
        let extents = (space.pages / u64::from(TABLE)) as usize;
        let full = self.fill.of(extents as u64) as usize;
        // The upper levels, as many as there must be for the last one to be at most ten times the one above it.
        let mut upper = vec![WIDTH];
        while full.saturating_sub(upper.iter().sum()) > RATIO * upper[upper.len() - 1] {
            upper.push(RATIO * upper[upper.len() - 1]);
        }
        let last = full.saturating_sub(upper.iter().sum());
        if last < RATIO || extents < full + SPARE {
            return Err(SpecError::new(format!(
                "pages of {}: {} are too few for fill={}; accepted: more pages, or a smaller fill=",
                space.name, space.pages, self.fill
            )));
        }
        let mut lsm = Lsm {
            config: *self,
            levels: vec![Vec::new(); upper.len() + 2],
            next: vec![0; upper.len() + 2],
            is_free: vec![true; extents],
            from: 0,
            jobs: VecDeque::new(),
            out: VecDeque::new(),
        };
        // The load fills the last level.
        lsm.merge(Vec::new(), upper.len() + 1, 0..KEYS, last);
        Ok(Generator::new(lsm))
    }

    fn writes_anything(&self) -> bool {
        true
    }

    fn trims_anything(&self) -> bool {
        self.trim
    }
}

impl Lsm {
    /// Takes the next free extent. There is one, since [`SPARE`] extents are more than a round takes.
    fn take(&mut self) -> u32 {
        let extents = self.is_free.len();
        let at = (0..extents).map(|at| (self.from + at) % extents).find(|at| self.is_free[*at]);
        let extent = at.expect("a round takes fewer extents than are spare");
        self.is_free[extent] = false;
        self.from = (extent + 1) % extents;
        extent as u32
    }

    fn job(&self, level: usize, tables: &[Table], deletes: Vec<u32>) -> Job {
        let stream = self.config.hints.of_level(level);
        Job { tables: tables.iter().map(|table| table.extent).collect(), written: 0, deletes, stream }
    }

    /// Returns the positions of the tables of a level that have some of these keys.
    fn overlap(&self, level: usize, keys: &Range<u64>) -> Range<usize> {
        let tables = &self.levels[level];
        tables.partition_point(|table| table.high <= keys.start)
            ..tables.partition_point(|table| table.low < keys.end)
    }

    /// Merges `tables`, which have left their level and have the keys `keys`, with those of `level` that have some of
    /// these keys too, into `count` new ones.
    fn merge(&mut self, tables: Vec<Table>, level: usize, keys: Range<u64>, count: usize) {
        let range = self.overlap(level, &keys);
        let old = &self.levels[level][range.clone()];
        let low = old.first().map_or(keys.start, |first| first.low.min(keys.start));
        let high = old.last().map_or(keys.end, |last| last.high.max(keys.end));
        let at = |part: usize| low + (u128::from(high - low) * part as u128 / count as u128) as u64;
        let new = |part: usize| Table { extent: self.take(), low: at(part), high: at(part + 1) };
        let new: Vec<Table> = (0..count).map(new).collect();
        let old = self.levels[level].splice(range, new.iter().copied());
        let deletes = tables.into_iter().chain(old).map(|table| table.extent).collect();
        self.jobs.push_back(self.job(level, &new, deletes));
    }

    /// Moves the next table of a level to the level below.
    fn push_down(&mut self, level: usize) {
        let tables = &mut self.levels[level];
        // After the last table comes the first again.
        let at = tables.partition_point(|table| table.low < self.next[level]) % tables.len();
        let table = tables.remove(at);
        self.next[level] = table.high;
        let keys = table.low..table.high;
        let overlap = self.overlap(level + 1, &keys).len();
        // The last level has all keys already, so it gets newer versions of some. The others are so small that few
        // keys are in both.
        let is_last = level + 2 == self.levels.len();
        self.merge(vec![table], level + 1, keys, overlap + usize::from(!is_last || overlap == 0));
    }

    /// Begins the work of the time in which the memory fills up once. Each level is merged at most once, the deepest
    /// first, so that no table is merged again before it was written.
    fn round(&mut self) {
        let mut room = WIDTH * RATIO.pow(self.levels.len() as u32 - 3);
        for level in (1..self.levels.len() - 1).rev() {
            if self.levels[level].len() > room {
                self.push_down(level);
            }
            room /= RATIO;
        }
        if self.levels[0].len() >= WIDTH {
            let newest = std::mem::take(&mut self.levels[0]);
            let below = self.levels[1].len();
            self.merge(newest, 1, 0..KEYS, below + WIDTH);
        }
        let (log, table) = (self.take(), Table { extent: self.take(), low: 0, high: KEYS });
        self.levels[0].push(table);
        self.jobs.push_back(Job { tables: [log].into(), written: 0, deletes: vec![log], stream: LOG });
        self.jobs.push_back(self.job(0, &[table], Vec::new()));
    }

    /// Lets the next job write some pages, or delete its tables.
    fn turn(&mut self) {
        let Some(mut job) = self.jobs.pop_front() else { return self.round() };
        let Some(table) = job.tables.front().copied() else {
            for extent in job.deletes {
                self.is_free[extent as usize] = true;
                let first = u64::from(extent) * u64::from(TABLE);
                if self.config.trim {
                    let pages = first..first + u64::from(TABLE);
                    self.out.extend(pages.map(|page| Request::of_page(Op::Trim, page)));
                }
            }
            return;
        };
        let first = u64::from(table) * u64::from(TABLE);
        let pages = job.written..(job.written + TURN).min(TABLE);
        job.written = pages.end;
        let write = |page: u32| Request {
            stream: job.stream,
            ..Request::of_page(Op::Write, first + u64::from(page))
        };
        self.out.extend(pages.map(write));
        if job.written == TABLE {
            job.tables.pop_front();
            job.written = 0;
        }
        self.jobs.push_back(job);
    }
}

impl RequestSource for Lsm {
    fn request(&mut self) -> Request {
        loop {
            if let Some(request) = self.out.pop_front() {
                return request;
            }
            self.turn();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: u64 = 64 * 2_000;

    fn start(text: &str) -> Generator {
        text.parse::<crate::GeneratorConfig>().unwrap().start(PAGES, 4096, 7).unwrap()
    }

    /// The rule: only free pages are written, and only written ones trimmed. The levels fill as much of the space as
    /// they may, and each table is written as a whole.
    #[test]
    fn tables_are_written_to_free_extents() {
        let mut is_written = vec![false; PAGES as usize];
        let (mut held, mut most) = (0u64, 0);
        for request in start("lsm-like:fill=70%").take(2_000_000) {
            let is_write = request.op == Op::Write;
            assert!(is_write || request.op == Op::Trim);
            assert_ne!(
                std::mem::replace(&mut is_written[request.page as usize], is_write),
                is_write,
                "{request:?}"
            );
            if is_write {
                held += 1
            } else {
                held -= 1
            }
            most = most.max(held);
        }
        assert!((PAGES * 70 / 100..PAGES * 80 / 100).contains(&most), "{most}");
        let whole =
            is_written.chunks(TABLE as usize).filter(|table| table.iter().all(|written| *written)).count();
        assert!(whole as u64 * u64::from(TABLE) > held - 64 * 40, "{whole} tables of {held} pages");
    }

    /// The rule: the deeper its level, the longer a table lives, and the more is written of it. A table of level 0 is
    /// written once for each one that leaves the memory.
    #[test]
    fn deeper_tables_live_longer() {
        let mut born = vec![(0u64, 0u16); PAGES as usize];
        let (mut now, mut lives, mut writes) = (0u64, vec![(0u64, 0u64); 8], [0u64; 8]);
        for request in start("lsm-like:fill=70%,hints=level").skip(200_000).take(6_000_000) {
            let page = request.page as usize;
            if request.op == Op::Write {
                now += 1;
                writes[request.stream as usize] += 1;
                born[page] = (now, request.stream);
            } else if born[page].1 > 0 {
                let of = &mut lives[born[page].1 as usize];
                *of = (of.0 + now - born[page].0, of.1 + 1);
            }
        }
        let mean: Vec<u64> = lives[1..6].iter().map(|(sum, count)| sum / count).collect();
        assert!(mean.is_sorted() && mean[4] > 10 * mean[1], "{mean:?}");
        assert!(writes[1].abs_diff(writes[2]) <= 64, "{writes:?}");
        // Level 1 has four tables, which are written again for each four of level 0.
        let of_level_1 = writes[3] as f64 / writes[2] as f64;
        assert!((1.9..2.4).contains(&of_level_1), "{of_level_1}");
        assert!(writes[4] > 5 * writes[2] && writes[5] > 5 * writes[2], "{writes:?}");
    }

    /// The rule: hints are the lifetimes of RocksDB by level, and a space that is too small is refused.
    #[test]
    fn hints_are_lifetimes_by_level() {
        let of = |hints: LsmHints| (0..7).map(|level| hints.of_level(level)).collect::<Vec<_>>();
        assert_eq!(of(LsmHints::Native), [2, 2, 3, 4, 4, 4, 4]);
        assert_eq!(of(LsmHints::Tuned), [2, 2, 2, 2, 3, 4, 4]);
        assert_eq!(of(LsmHints::Level), [2, 3, 4, 5, 6, 7, 8]);
        let config: crate::GeneratorConfig = "lsm-like:fill=95%".parse().unwrap();
        assert!(config.start(6_400, 4096, 7).unwrap_err().to_string().contains("too few for fill=95%"));
        assert!(start("lsm-like:trim=no").take(3_000_000).all(|request| request.op == Op::Write));
    }
}
