//! Runs: one stack each, described as data, executed into rows.

mod done;
pub mod gc;
pub mod pool;
pub mod replay;
mod request_log;

use crate::device::DeviceDescription;
use crate::error::StudyError;
use crate::profile;
use crate::table::Row;
use fulgurite_base::{Histogram, fnv1a};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// One run of a study, checked and ready.
pub enum Run {
    /// A workload against a buffer pool on a device.
    Pool(Box<pool::PoolRun>),
    /// A workload's writes against a flash translation layer, counted without time.
    Gc(Box<gc::GcRun>),
    /// Timed requests against a drive.
    Replay(Box<replay::ReplayRun>),
    /// The characterisation of a device.
    Profile {
        /// The device.
        device: DeviceDescription,
        /// Request size.
        page_bytes: u32,
        /// Of all randomness.
        seed: u64,
    },
}

/// About how many requests the characterisation of a device takes.
const PROFILE_OPS: u64 = 1_000_000;

impl Run {
    /// How many requests it performs, as far as is known.
    pub fn ops(&self) -> u64 {
        match self {
            Run::Pool(run) if run.ops == u64::MAX => 0,
            Run::Pool(run) => run.ops,
            Run::Gc(run) => run.ops,
            Run::Replay(run) => run.ops,
            Run::Profile { .. } => PROFILE_OPS,
        }
    }

    /// Whether it uses a real drive, which no other run may use meanwhile.
    pub fn is_real(&self) -> bool {
        match self {
            Run::Pool(run) => run.device.is_real(),
            Run::Gc(_) => false,
            Run::Replay(run) => run.device.is_real(),
            Run::Profile { device, .. } => device.is_real(),
        }
    }

    /// Executes the run. A run that breaks a check gives an error, never a row.
    pub fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StudyError> {
        match self {
            Run::Pool(run) => Ok(vec![run.execute(progress)?]),
            Run::Gc(run) => run.execute(progress),
            Run::Replay(run) => run.execute(progress),
            Run::Profile { device, page_bytes, seed } => {
                let profile = profile::profile(device, *page_bytes, *seed)?;
                progress.add(PROFILE_OPS);
                Ok(vec![profile::row(device, &profile)])
            }
        }
    }
}

/// How far runs have come, for whoever watches from another thread. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    total: AtomicU64,
}

impl Progress {
    /// Runs report once in so many requests.
    const STEP: u64 = 1 << 14;

    /// Requests performed.
    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// Requests to perform.
    pub fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Sets the number of requests to perform.
    pub fn expect(&self, ops: u64) {
        self.0.total.store(ops, Ordering::Relaxed);
    }

    fn add(&self, ops: u64) {
        self.0.done.fetch_add(ops, Ordering::Relaxed);
    }

    /// Reports that `left` requests remain of those that one run performs.
    #[inline]
    pub(crate) fn left(&self, left: u64) {
        if left.is_multiple_of(Progress::STEP) {
            self.add(Progress::STEP);
        }
    }
}

/// The identity of a run: a hash of its full description and of Fulgurite's version.
fn run_id(description: &str) -> String {
    format!("{:016x}", fnv1a(format!("{} {description}", env!("CARGO_PKG_VERSION")).as_bytes()))
}

fn set_latency(row: &mut Row, latency: &Histogram) {
    row.set_some("latency_mean_ns", latency.mean_ns());
    row.set_some("latency_stddev_ns", latency.stddev_ns());
    row.set_some("latency_p50_ns", latency.percentile_ns(50.0));
    row.set_some("latency_p95_ns", latency.percentile_ns(95.0));
    row.set_some("latency_p99_ns", latency.percentile_ns(99.0));
    row.set_some("latency_p999_ns", latency.percentile_ns(99.9));
    row.set_some("latency_max_ns", latency.max_ns());
}

/// Sets the three columns about the simulator's own cost. They are the only ones that differ from
/// one execution to the next.
fn set_cost(row: &mut Row, start: Instant, ops: u64) {
    let seconds = start.elapsed().as_secs_f64();
    row.set("sim_wall_s", seconds);
    row.set("sim_ops_s", ops as f64 / seconds);
    row.set_some("peak_rss_bytes", peak_rss_bytes());
}

/// The process's peak memory, where the system tells.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
