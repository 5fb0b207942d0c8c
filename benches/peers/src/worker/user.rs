//! One thread of a run: draws operations, checks the values that it reads, and counts.

use super::course::Course;
use super::{MEASURING, STOPPED};
use crate::engine::{Engine, Session};
use crate::inserts::Inserts;
use crate::ledger::Ledger;
use crate::rows::{Key, Record, Rows, Version};
use crate::setting::{Measure, Task};
use crate::workload::{Choice, MANY_ROWS, Operation, Workload, Zipf};
use anyhow::{Result, ensure};
use fulgurite_base::Prng;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// The state that the threads of a run share.
pub struct Shared<'a> {
    pub engine: &'a dyn Engine,
    pub rows: Rows,
    pub zipf: Zipf,
    pub inserts: Inserts,
}

/// The counts of one thread during the measurement.
pub struct Tally {
    pub ops: u64,
    /// The number of updated or inserted rows.
    pub written: u64,
    /// The number of values that were correct.
    pub checked: u64,
    /// In ns.
    pub reads: Histogram<u64>,
    pub commits: Histogram<u64>,
    /// When the thread ended.
    pub end: Instant,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Result<Tally> {
        // A nanosecond to a hundred seconds, to three digits.
        let histogram = || Histogram::new_with_bounds(1, 100_000_000_000, 3);
        let (reads, commits) = (histogram()?, histogram()?);
        Ok(Tally { ops: 0, written: 0, checked: 0, reads, commits, end: Instant::now() })
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Tally) -> Result<()> {
        self.ops += other.ops;
        self.written += other.written;
        self.checked += other.checked;
        self.end = self.end.max(other.end);
        self.reads.add(&other.reads)?;
        Ok(self.commits.add(&other.commits)?)
    }
}

/// One thread with its session.
pub struct User<'a> {
    session: Box<dyn Session + 'a>,
    shared: &'a Shared<'a>,
    workload: Workload,
    batch_size: usize,
    random: Prng,
    ledger: Ledger,
    tally: Tally,
    value: Vec<u8>,
    batch: Vec<Record>,
    pending: Vec<(u64, Version)>,
    /// Inserts that were drawn but not yet made.
    inserts_due: usize,
}

impl<'a> User<'a> {
    /// Thread `number`.
    pub fn new(shared: &'a Shared<'a>, task: &Task, measure: &Measure, number: u8) -> Result<User<'a>> {
        Ok(User {
            session: shared.engine.session()?,
            shared,
            workload: measure.workload,
            batch_size: measure.batch,
            random: Prng::new(task.seed, &format!("peers-{number}")),
            ledger: Ledger::new(measure.run, number, measure.aged),
            tally: Tally::new()?,
            value: Vec::new(),
            batch: Vec::new(),
            pending: Vec::new(),
            inserts_due: 0,
        })
    }

    /// Works until the phase says stop or all rows are loaded. Only operations that begin in the measured
    /// phase are counted. Writes that were drawn but not committed by then are dropped.
    pub fn run(mut self, phase: &AtomicU8) -> Result<(Tally, Ledger)> {
        let mut measured = false;
        loop {
            match phase.load(Ordering::Relaxed) {
                STOPPED => break,
                MEASURING if !measured => {
                    measured = true;
                    self.tally = Tally::new()?;
                }
                _ => {}
            }
            if !self.work()? {
                break;
            }
        }
        self.tally.end = Instant::now();
        Ok((self.tally, self.ledger))
    }

    /// Executes one operation. Returns false if all rows are loaded.
    fn work(&mut self) -> Result<bool> {
        match self.workload.draw(&mut self.random) {
            Operation::Read => {
                let row = self.row();
                self.read(row)?;
                self.tally.ops += 1;
            }
            Operation::Update => {
                let row = self.row();
                self.update(row)?;
            }
            Operation::ReadUpdate => {
                let row = self.row();
                self.read(row)?;
                self.update(row)?;
            }
            Operation::Insert => return self.insert(),
            Operation::Scan => self.scan(MANY_ROWS)?,
            Operation::ShortScan => {
                let length = 1 + self.random.below(MANY_ROWS as u64) as usize;
                self.scan(length)?;
            }
            Operation::Batch => self.read_many()?,
        }
        Ok(true)
    }

    /// The next row to access.
    fn row(&mut self) -> u64 {
        let Shared { rows, zipf, inserts, .. } = self.shared;
        match self.workload.choice() {
            Choice::Zipf => zipf.row(&mut self.random),
            Choice::Uniform => self.random.below(rows.loaded()),
            Choice::Latest => rows.nth(inserts.committed() - 1 - zipf.rank(&mut self.random)),
        }
    }

    fn read(&mut self, row: u64) -> Result<()> {
        let key = self.shared.rows.key(row);
        let start = Instant::now();
        let found = self.session.get(&key, &mut self.value)?;
        self.tally.reads.saturating_record(nanos(start));
        ensure!(found, "row {row} is not there");
        let version = self.shared.rows.check(row, &self.value)?;
        self.ledger.read(row, version)?;
        self.tally.checked += 1;
        Ok(())
    }

    fn read_many(&mut self) -> Result<()> {
        let (rows, wanted): (Rows, Vec<u64>) =
            (self.shared.rows, (0..MANY_ROWS).map(|_| self.row()).collect());
        let keys: Vec<Key> = wanted.iter().map(|&row| rows.key(row)).collect();
        let mut missing = vec![true; wanted.len()];
        let ledger = &self.ledger;
        let start = Instant::now();
        self.session.get_many(&keys, &mut |number, value| {
            let row = wanted[number];
            ensure!(missing[number], "row {row} comes twice");
            let Some(value) = value else { return Ok(()) };
            missing[number] = false;
            ledger.read(row, rows.check(row, value)?)
        })?;
        self.tally.reads.saturating_record(nanos(start));
        for (&row, missing) in wanted.iter().zip(missing) {
            ensure!(!missing, "row {row} is not there");
        }
        self.tally.ops += 1;
        self.tally.checked += MANY_ROWS as u64;
        Ok(())
    }

    fn update(&mut self, row: u64) -> Result<()> {
        self.write(row);
        if self.batch.len() < self.batch_size { Ok(()) } else { self.commit() }
    }

    /// Draws an insert, and makes all drawn inserts if they fill a commit. Their turns are taken only then,
    /// so that rows committed by others in the meantime count as committed at once.
    fn insert(&mut self) -> Result<bool> {
        self.inserts_due += 1;
        if self.inserts_due < self.batch_size {
            return Ok(true);
        }
        self.inserts_due = 0;
        let Shared { rows, inserts, .. } = self.shared;
        let taken = inserts.take(self.batch_size);
        if taken.is_empty() {
            ensure!(self.workload == Workload::Load, "there is no room for more new rows: more --rows");
            return Ok(false);
        }
        for turn in taken.clone() {
            self.write(rows.nth(turn));
        }
        self.commit()?;
        inserts.landed(&taken);
        Ok(true)
    }

    /// Adds a new value of `row` to the batch.
    fn write(&mut self, row: u64) {
        let version = self.ledger.next_version();
        self.batch.push(self.shared.rows.record(row, version));
        self.pending.push((row, version));
    }

    fn commit(&mut self) -> Result<()> {
        let start = Instant::now();
        self.session.commit(&self.batch)?;
        self.tally.commits.saturating_record(nanos(start));
        self.tally.ops += self.batch.len() as u64;
        self.tally.written += self.batch.len() as u64;
        self.batch.clear();
        for (row, version) in self.pending.drain(..) {
            self.ledger.committed(row, version);
        }
        Ok(())
    }

    fn scan(&mut self, length: usize) -> Result<()> {
        let row = self.row();
        let (rows, ledger) = (self.shared.rows, &self.ledger);
        let mut course = Course::new(rows, row, self.shared.inserts.committed());
        let start = Instant::now();
        let found = self.session.scan(&rows.key(row), length, &mut |key, value| {
            let row = course.pass(key)?;
            ledger.read(row, rows.check(row, value)?)
        })?;
        self.tally.reads.saturating_record(nanos(start));
        course.finish(found, length)?;
        self.tally.ops += 1;
        self.tally.checked += found as u64;
        Ok(())
    }
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
