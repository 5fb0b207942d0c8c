//! Estimates the wall-clock time of steps and requests. Each cost has a least and a most value.
//!
//! The least value was measured with the optimised command on a quiet machine. The most value was measured
//! with a build that has all checks, on a busy machine. Both machines are servers of 2024. On other machines
//! both values may be off by a factor of two.

use crate::Stack;
use crate::device::DriveConfig;
use crate::run::{Benchmarked, PoolStage, Requested, Rows, Run, Sampling, Sizes};
use fulgurite_bench::{BenchmarkConfig, Extent};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_pool::{ReplacementConfig, WriteBackConfig};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};

/// A range of wall-clock time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seconds {
    /// The least number of seconds.
    pub least: f64,
    /// The largest number of seconds.
    pub most: f64,
}

const fn between(least: f64, most: f64) -> Seconds {
    Seconds { least, most }
}

/// The cost of a run without requests.
pub(super) const RUN: Seconds = between(0.5e-3, 5e-3);
/// The costs per physical page of preconditioning a simulated drive, and of filling a layer.
const PRECONDITIONED: Seconds = between(0.08e-6, 0.25e-6);
const FILLED: Seconds = between(0.5e-6, 1.2e-6);
/// The cost of a byte of a new file.
const MADE: Seconds = between(0.7e-9, 4e-9);
/// The costs of measuring either reads or writes on a simulated drive, on a layer above one, and on a real
/// drive, whose clock is the wall clock.
const MEASURED: Seconds = between(0.05, 0.25);
const MEASURED_LAYER: Seconds = between(0.8, 3.0);
const MEASURED_REAL: Seconds = between(20.0, 32.0);
/// The costs of a request to a pool without a drive, on `mem`, on a simulated drive, on a layer, and on a
/// real drive.
const COUNTED: Seconds = between(15e-9, 60e-9);
const HELD: Seconds = between(0.5e-6, 3e-6);
const POOLED: Seconds = between(0.2e-6, 0.9e-6);
const LAYERED: Seconds = between(0.6e-6, 3.5e-6);
const REAL: Seconds = between(20e-6, 120e-6);
/// The cost of each frame that a replacement policy visits in search of a victim, averaged over all frames
/// and requests.
const PASSED: Seconds = between(0.3e-9, 1.6e-9);
/// The costs of a request without a pool to a simulated drive, and to a layer above one.
const TIMED: Seconds = between(0.3e-6, 2.5e-6);
const TIMED_LAYER: Seconds = between(1.2e-6, 10e-6);
/// The cost of a page write to a translation layer without time, with the copies that it causes on average.
const WRITTEN: Seconds = between(40e-9, 130e-9);
/// The cost of such a page write with a placement policy that looks ahead or simulates.
const PLACED: Seconds = between(80e-9, 350e-9);

impl Seconds {
    /// Returns the range, with both ends raised to at least `seconds`.
    pub fn at_least(self, seconds: f64) -> Seconds {
        between(self.least.max(seconds), self.most.max(seconds))
    }

    /// Returns the geometric mean of the two ends.
    pub fn middle(self) -> f64 {
        (self.least * self.most).sqrt()
    }
}

impl Mul<f64> for Seconds {
    type Output = Seconds;

    fn mul(self, times: f64) -> Seconds {
        between(self.least * times, self.most * times)
    }
}

impl Add for Seconds {
    type Output = Seconds;

    fn add(self, other: Seconds) -> Seconds {
        between(self.least + other.least, self.most + other.most)
    }
}

impl AddAssign for Seconds {
    fn add_assign(&mut self, other: Seconds) {
        *self = *self + other;
    }
}

impl Sum for Seconds {
    fn sum<I: Iterator<Item = Seconds>>(parts: I) -> Seconds {
        parts.fold(Seconds::default(), Add::add)
    }
}

impl Stack {
    /// Returns the cost of preparing the device and the layer, once for all runs on them.
    pub(super) fn made(&self) -> Seconds {
        let drive = match &self.device.drive {
            DriveConfig::Simulated { config, .. } if !config.in_place => {
                PRECONDITIONED * config.physical_pages() as f64
            }
            DriveConfig::File(file) => MADE * file.missing_bytes() as f64,
            _ => Seconds::default(),
        };
        let layer = if self.layer.is_some() { FILLED * self.pages() as f64 } else { Seconds::default() };
        drive + layer
    }

    /// Returns the cost of measuring the reads or the writes of the stack.
    fn measured(&self) -> Seconds {
        match (self.device.is_real(), &self.layer) {
            (true, _) => MEASURED_REAL,
            (_, Some(_)) => MEASURED_LAYER,
            _ => MEASURED,
        }
    }

    /// Returns the cost of a characterisation, which measures reads and writes.
    pub(super) fn profiled(&self) -> Seconds {
        self.measured() * 2.0
    }
}

impl Run {
    /// Returns the cost of measuring the drive for a write-back policy. `None` if all parameters of the
    /// policy were given.
    pub(super) fn asks(&self) -> Option<Seconds> {
        let policy = &self.stack.write_back()?.policy;
        let mut asked = false;
        let resolved = policy.resolve(|| {
            asked = true;
            Ok(1)
        });
        // If one measured number does not resolve the policy, the policy needs the curves of both reads and
        // writes.
        match (resolved.is_err(), asked) {
            (true, _) => Some(self.stack.profiled()),
            (_, true) => Some(self.stack.measured()),
            _ => None,
        }
    }
}

/// Returns the cost of the requests of a pool run.
pub(super) fn pooled(requested: &Requested, pool: &PoolStage, stack: &Stack) -> Seconds {
    let ops = requested.known_ops() as f64;
    let frames = f64::from(pool.frames);
    let each = match (&stack.device.drive, &stack.layer) {
        (DriveConfig::None, _) => COUNTED,
        (DriveConfig::File(_), _) => REAL,
        (_, Some(_)) => LAYERED,
        (DriveConfig::Mem(_), _) => HELD,
        _ => POOLED,
    };
    // The second term is the cost of filling the tables of frames before the first request.
    each * ops + COUNTED * frames + searched(pool) * (ops * frames)
}

/// Returns the number of times that a pool run serves its requests, or the like of that.
pub(super) fn passes(run: &Run, pool: &PoolStage) -> f64 {
    let of_curve = match run.measure.rows {
        Rows::Sizes(sizes) if sizes.sampling != Sampling::Exact => 3.0,
        Rows::Sizes(_) if pool.policies.replacement.is_lru() => 2.0,
        Rows::Sizes(_) => Sizes::COUNT as f64,
        _ => 1.0,
    };
    // Its order is a tree, and it serves the requests twice.
    if pool.policies.replacement.needs_future() { 4.0 * of_curve } else { of_curve }
}

/// Returns the cost, per frame of the pool, of searching a victim at a request.
fn searched(pool: &PoolStage) -> Seconds {
    use ReplacementConfig as R;
    let is_alone = matches!(pool.write_back.policy, WriteBackConfig::Single(_));
    match pool.policies.replacement {
        // These policies visit their clean frames, or their whole order, at every miss.
        R::CflruC(_) | R::CflruE(_) | R::DlCflruE(_) | R::CcfLru(_) => PASSED,
        // These policies keep no list in eviction order, so each batch is a search.
        R::Lfu(_) | R::WTinyLfu(_) | R::TwoQ(_) if !is_alone => PASSED,
        _ => Seconds::default(),
    }
}

/// Returns the cost of requests to a drive without a pool.
pub(super) fn timed(requested: &Requested, stack: &Stack) -> Seconds {
    let each = match (stack.device.is_real(), &stack.layer) {
        (true, _) => REAL,
        (_, Some(_)) => TIMED_LAYER,
        _ => TIMED,
    };
    each * requested.known_ops() as f64
}

/// Returns the cost of page writes to a translation layer without time, with those of the fill.
pub(super) fn written(pages: u64, placement: &PlacementConfig) -> Seconds {
    let is_dear = placement.needs_future() || matches!(placement, PlacementConfig::Fulgurite(_));
    let each = if is_dear { PLACED } else { WRITTEN };
    each * pages as f64
}

/// Returns the costs of a benchmark: the first per byte of its data that is loaded and checked, the second
/// per transaction.
fn of_benchmark(benchmark: &BenchmarkConfig) -> (Seconds, Seconds) {
    let name = benchmark.name();
    match name.split('-').next().unwrap_or(name) {
        "ycsb" if name == "ycsb-e" => (between(2e-9, 6e-9), between(25e-6, 100e-6)),
        "ycsb" => (between(2e-9, 6e-9), between(1.5e-6, 20e-6)),
        "tpcc" => (between(5e-9, 15e-9), between(70e-6, 350e-6)),
        "linkbench" => (between(15e-9, 40e-9), between(12e-6, 80e-6)),
        "sysbench" if name.starts_with("sysbench-read") => (between(18e-9, 50e-9), between(100e-6, 450e-6)),
        "sysbench" => (between(18e-9, 50e-9), between(3e-6, 80e-6)),
        // The other benchmarks are scans, which read a share of the data per transaction.
        _ => (between(18e-9, 50e-9), between(15e-12, 80e-12) * benchmark.data_bytes() as f64),
    }
}

/// Returns the cost of loading a benchmark's data, and the cost of checking the data at the end of each run.
pub(super) fn loaded(benchmark: &BenchmarkConfig) -> [Seconds; 2] {
    let (of_byte, _) = of_benchmark(benchmark);
    let all = of_byte * benchmark.data_bytes() as f64;
    [all * 0.8, all * 0.2]
}

/// Returns the cost of the transactions of a benchmark.
pub(super) fn transacted(asked: &Benchmarked, is_real: bool) -> Seconds {
    let of = |extent: &Extent| match extent {
        Extent::Ops(ops) => of_benchmark(&asked.benchmark).1 * *ops as f64,
        Extent::Time(time) if is_real => between(1.0, 1.1) * time.as_secs_f64(),
        // If many users keep the drive busy, a second of virtual time takes about a second of wall-clock
        // time.
        Extent::Time(time) => between(0.1, 2.0) * time.as_secs_f64(),
    };
    of(&asked.stop) + of(&asked.warm_up)
}
