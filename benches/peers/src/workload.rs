//! The workloads: their operations, and the rows that they access.

use crate::rows::mix;
use fulgurite_base::Prng;
use serde::{Deserialize, Serialize};

/// The workloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Inserts into an empty store.
    Load,
    /// Half reads, half updates (YCSB's A).
    A,
    /// 95 % reads, 5 % updates (YCSB's B).
    B,
    /// Reads only (YCSB's C).
    C,
    /// 95 % reads of the latest rows, 5 % inserts (YCSB's D).
    D,
    /// 95 % scans of 1 to 100 rows, 5 % inserts (YCSB's E).
    E,
    /// Half reads, half reads with an update of the same row (YCSB's F).
    F,
    /// Updates only, of rows that are all equally likely.
    Update,
    /// 95 % updates, 5 % reads.
    Write,
    /// Scans of 100 rows.
    Scan,
    /// Reads of 100 rows by one call.
    Batch,
}

/// An operation of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Read,
    Update,
    /// A read, then an update of the same row.
    ReadUpdate,
    Insert,
    /// A scan of [`MANY_ROWS`] rows.
    Scan,
    /// A scan of 1 to [`MANY_ROWS`] rows, each length equally likely.
    ShortScan,
    /// A read of [`MANY_ROWS`] rows by one call.
    Batch,
}

/// The distribution of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The scrambled Zipf distribution over the loaded rows.
    Zipf,
    /// All loaded rows are equally likely.
    Uniform,
    /// By the Zipf distribution over age: the row that was inserted last is the most likely one.
    Latest,
}

/// Rows of a scan, and of a read of many rows.
pub const MANY_ROWS: usize = 100;

impl Workload {
    /// All of them, in the order of the table.
    pub const ALL: [Workload; 11] = [
        Workload::Load,
        Workload::A,
        Workload::B,
        Workload::C,
        Workload::D,
        Workload::E,
        Workload::F,
        Workload::Update,
        Workload::Write,
        Workload::Scan,
        Workload::Batch,
    ];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Load => "load",
            Workload::A => "a",
            Workload::B => "b",
            Workload::C => "c",
            Workload::D => "d",
            Workload::E => "e",
            Workload::F => "f",
            Workload::Update => "update",
            Workload::Write => "write",
            Workload::Scan => "scan",
            Workload::Batch => "batch",
        }
    }

    /// Its operations, with how many of a hundred each is.
    fn parts(self) -> &'static [(u64, Operation)] {
        match self {
            Workload::Load => &[(100, Operation::Insert)],
            Workload::A => &[(50, Operation::Read), (50, Operation::Update)],
            Workload::B => &[(95, Operation::Read), (5, Operation::Update)],
            Workload::C => &[(100, Operation::Read)],
            Workload::D => &[(95, Operation::Read), (5, Operation::Insert)],
            Workload::E => &[(95, Operation::ShortScan), (5, Operation::Insert)],
            Workload::F => &[(50, Operation::Read), (50, Operation::ReadUpdate)],
            Workload::Update => &[(100, Operation::Update)],
            Workload::Write => &[(5, Operation::Read), (95, Operation::Update)],
            Workload::Scan => &[(100, Operation::Scan)],
            Workload::Batch => &[(100, Operation::Batch)],
        }
    }

    /// The next operation.
    pub fn draw(self, random: &mut Prng) -> Operation {
        let parts = self.parts();
        let mut left = if parts.len() > 1 { random.below(100) } else { 0 };
        for &(share, operation) in parts {
            if left < share {
                return operation;
            }
            left -= share;
        }
        unreachable!("the shares of {self:?} are below 100")
    }

    /// How its rows are drawn.
    pub fn choice(self) -> Choice {
        match self {
            Workload::D => Choice::Latest,
            Workload::Update => Choice::Uniform,
            _ => Choice::Zipf,
        }
    }

    /// It has operations that commit something.
    pub fn writes(self) -> bool {
        let commits =
            |operation| matches!(operation, Operation::Update | Operation::ReadUpdate | Operation::Insert);
        self.parts().iter().any(|&(_, operation)| commits(operation))
    }

    /// It adds rows, so it cannot run twice in one store.
    pub fn inserts(self) -> bool {
        self.parts().iter().any(|&(_, operation)| operation == Operation::Insert)
    }
}

/// Rows by a scrambled Zipf distribution: the method of Gray and others (SIGMOD 1994), as YCSB has it. The ranks are
/// then scattered over the table by a hash, so that hot rows are not neighbours.
#[derive(Clone)]
pub struct Zipf {
    rows: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Over `rows` rows with the skew `theta`, below 1. Takes some nanoseconds a row.
    pub fn new(rows: u64, theta: f64) -> Zipf {
        let zeta: f64 = (1..=rows).map(|rank| (rank as f64).powf(-theta)).sum();
        let two = 1.0 + 0.5f64.powf(theta);
        let eta = (1.0 - (2.0 / rows as f64).powf(1.0 - theta)) / (1.0 - two / zeta);
        Zipf { rows, theta, zeta, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// The next row.
    pub fn row(&self, random: &mut Prng) -> u64 {
        mix(self.rank(random)) % self.rows
    }

    /// The next rank: 0 is the most likely one.
    pub fn rank(&self, random: &mut Prng) -> u64 {
        let u = random.unit_f64();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1;
        }
        let rank = self.rows as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.rows - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every percentage of the table in the README: 10,000 draws, with a deviation of 50 at most.
    #[test]
    fn operations_come_as_often_as_they_should() {
        let mut random = Prng::new(1, "operations");
        for workload in Workload::ALL {
            assert_eq!(workload.parts().iter().map(|&(share, _)| share).sum::<u64>(), 100, "{workload:?}");
            let drawn: Vec<Operation> = (0..10_000).map(|_| workload.draw(&mut random)).collect();
            for &(share, operation) in workload.parts() {
                let count = drawn.iter().filter(|&&one| one == operation).count() as i64;
                assert!((count - 100 * share as i64).abs() < 250, "{workload:?}: {count} of {operation:?}");
            }
        }
    }

    /// The hottest rank has 1 / zeta of all accesses, the second 2^-theta of that.
    #[test]
    fn the_hottest_ranks_come_as_often_as_they_should() {
        let zipf = Zipf::new(10_000, 0.99);
        let mut random = Prng::new(1, "zipf");
        let draws = 200_000;
        let mut counts = [0u32; 2];
        for _ in 0..draws {
            if let Some(count) = counts.get_mut(zipf.rank(&mut random) as usize) {
                *count += 1;
            }
        }
        let hottest = f64::from(counts[0]) / f64::from(draws);
        assert!((hottest * zipf.zeta - 1.0).abs() < 0.05, "{hottest}");
        let second = f64::from(counts[1]) / f64::from(draws);
        assert!((second * zipf.zeta / 0.5f64.powf(0.99) - 1.0).abs() < 0.05, "{second}");
    }
}
