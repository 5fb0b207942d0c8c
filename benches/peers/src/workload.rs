//! What the threads do: the workloads, and which rows they touch.

use crate::rows::mix;
use fulgurite_base::Prng;
use serde::{Deserialize, Serialize};

/// A mix of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Reads only (YCSB's C).
    C,
    /// Half reads, half updates (YCSB's A).
    A,
    /// 95 % updates.
    Write,
    /// Scans of 100 rows.
    Scan,
}

impl Workload {
    /// All of them, in the order of the table.
    pub const ALL: [Workload; 4] = [Workload::C, Workload::Scan, Workload::A, Workload::Write];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Workload::C => "c",
            Workload::A => "a",
            Workload::Write => "write",
            Workload::Scan => "scan",
        }
    }

    /// How many operations of a hundred are updates.
    pub fn updates_percent(self) -> u64 {
        match self {
            Workload::C | Workload::Scan => 0,
            Workload::A => 50,
            Workload::Write => 95,
        }
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

    fn rank(&self, random: &mut Prng) -> u64 {
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

/// Every row once, in an order that looks random: a full-period congruential sequence over the next power of two.
pub fn shuffled(rows: u64) -> impl Iterator<Item = u64> {
    let size = rows.next_power_of_two().max(4);
    let start = mix(rows) & (size - 1);
    let step =
        move |state: u64| state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
    let mut state = start;
    (0..size)
        .map(move |_| {
            let now = state;
            state = step(state) & (size - 1);
            // The low bits of such a sequence have short periods: a bijection of the same bits hides that.
            scatter(now, size)
        })
        .filter(move |&row| row < rows)
}

/// A bijection of `0..size`, a power of two.
fn scatter(value: u64, size: u64) -> u64 {
    let mask = size - 1;
    let half = size.trailing_zeros().div_ceil(2);
    let mut v = value;
    for factor in [0x9e37_79b9_7f4a_7c15u64, 0xbf58_476d_1ce4_e5b9] {
        v = v.wrapping_mul(factor) & mask;
        v ^= v >> half;
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffled_table_has_every_row_once() {
        for rows in [1, 2, 3, 1000, 4096, 5000] {
            let mut all: Vec<u64> = shuffled(rows).collect();
            assert!(rows < 1000 || all.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 20);
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<u64>>());
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
