//! One thread of a run: draws operations, checks what it reads, and counts.

use super::{MEASURING, STOPPED};
use crate::engine::{Engine, Session};
use crate::ledger::Ledger;
use crate::rows::{Record, Rows, Version};
use crate::setting::{Measure, Task};
use crate::workload::{Workload, Zipf};
use anyhow::{Result, ensure};
use fulgurite_base::Prng;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

/// Rows of a scan.
const SCAN_ROWS: usize = 100;

/// What one thread has done while it was measured.
pub struct Tally {
    pub ops: u64,
    pub updates: u64,
    /// Values that were found right.
    pub checked: u64,
    /// In ns.
    pub reads: Histogram<u64>,
    pub commits: Histogram<u64>,
}

impl Tally {
    /// Nothing yet.
    pub fn new() -> Result<Tally> {
        // A nanosecond to a hundred seconds, to three digits.
        let histogram = || Histogram::new_with_bounds(1, 100_000_000_000, 3);
        Ok(Tally { ops: 0, updates: 0, checked: 0, reads: histogram()?, commits: histogram()? })
    }

    /// Adds what another thread has done.
    pub fn add(&mut self, other: &Tally) -> Result<()> {
        self.ops += other.ops;
        self.updates += other.updates;
        self.checked += other.checked;
        self.reads.add(&other.reads)?;
        Ok(self.commits.add(&other.commits)?)
    }
}

/// One thread with its session.
pub struct User<'a> {
    session: Box<dyn Session + 'a>,
    rows: Rows,
    zipf: &'a Zipf,
    workload: Workload,
    batch_size: usize,
    random: Prng,
    ledger: Ledger,
    tally: Tally,
    value: Vec<u8>,
    batch: Vec<Record>,
    pending: Vec<(u64, Version)>,
}

impl<'a> User<'a> {
    /// Thread `number`.
    pub fn new(
        engine: &'a dyn Engine,
        rows: Rows,
        task: &Task,
        measure: &Measure,
        number: u8,
        zipf: &'a Zipf,
    ) -> Result<User<'a>> {
        Ok(User {
            session: engine.session()?,
            rows,
            zipf,
            workload: measure.workload,
            batch_size: measure.batch,
            random: Prng::new(task.seed, &format!("peers-{number}")),
            ledger: Ledger::new(measure.run, number, measure.aged),
            tally: Tally::new()?,
            value: Vec::new(),
            batch: Vec::new(),
            pending: Vec::new(),
        })
    }

    /// Works until the phase says stop. Only what begins in the measured phase is counted. Updates that were drawn but
    /// not committed when it ends are dropped.
    pub fn run(mut self, phase: &AtomicU8) -> Result<(Tally, Ledger)> {
        let mut measured = false;
        loop {
            match phase.load(Ordering::Relaxed) {
                STOPPED => return Ok((self.tally, self.ledger)),
                MEASURING if !measured => {
                    measured = true;
                    self.tally = Tally::new()?;
                }
                _ => {}
            }
            let row = self.zipf.row(&mut self.random);
            if self.workload == Workload::Scan {
                self.scan(row)?;
            } else if self.random.below(100) < self.workload.updates_percent() {
                self.update(row)?;
            } else {
                self.read(row)?;
            }
        }
    }

    fn read(&mut self, row: u64) -> Result<()> {
        let key = self.rows.key(row);
        let start = Instant::now();
        let found = self.session.get(&key, &mut self.value)?;
        self.tally.reads.saturating_record(nanos(start));
        ensure!(found, "row {row} is not there");
        let version = self.rows.check(row, &self.value)?;
        self.ledger.read(row, version)?;
        self.tally.ops += 1;
        self.tally.checked += 1;
        Ok(())
    }

    fn update(&mut self, row: u64) -> Result<()> {
        let version = self.ledger.next_version();
        self.batch.push(self.rows.record(row, version));
        self.pending.push((row, version));
        if self.batch.len() < self.batch_size {
            return Ok(());
        }
        let start = Instant::now();
        self.session.commit(&self.batch)?;
        self.tally.commits.saturating_record(nanos(start));
        self.tally.ops += self.batch.len() as u64;
        self.tally.updates += self.batch.len() as u64;
        self.batch.clear();
        for (row, version) in self.pending.drain(..) {
            self.ledger.committed(row, version);
        }
        Ok(())
    }

    fn scan(&mut self, row: u64) -> Result<()> {
        let (rows, ledger) = (self.rows, &self.ledger);
        let mut next = row;
        let start = Instant::now();
        let found = self.session.scan(&rows.key(row), SCAN_ROWS, &mut |key, value| {
            ensure!(rows.row(key)? == next, "a scan from row {row} gives another row than {next}");
            ledger.read(next, rows.check(next, value)?)?;
            next += 1;
            Ok(())
        })?;
        self.tally.reads.saturating_record(nanos(start));
        let wanted = (rows.len() - row).min(SCAN_ROWS as u64);
        ensure!(found as u64 == wanted && next - row == wanted, "a scan from row {row} gives {found} rows");
        self.tally.ops += 1;
        self.tally.checked += wanted;
        Ok(())
    }
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}
