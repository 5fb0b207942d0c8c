//! Runs: one stack each, described as data, executed into rows.

pub mod gc;
pub mod pool;

use crate::device::DeviceDescription;
use crate::error::StudyError;
use crate::profile;
use crate::table::Row;
use fulgurite_base::fnv1a;
use std::time::Instant;

/// One run of a study, checked and ready.
pub enum Run {
    /// A workload against a buffer pool on a device.
    Pool(Box<pool::PoolRun>),
    /// A workload's writes against a flash translation layer, counted without time.
    Gc(Box<gc::GcRun>),
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

impl Run {
    /// Executes the run. A run that breaks a check gives an error, never a row.
    pub fn execute(&self) -> Result<Row, StudyError> {
        match self {
            Run::Pool(run) => run.execute(),
            Run::Gc(run) => run.execute(),
            Run::Profile { device, page_bytes, seed } => {
                Ok(profile::row(device, &profile::profile(device, *page_bytes, *seed)?))
            }
        }
    }
}

/// The identity of a run: a hash of its full description and of Fulgurite's version.
fn run_id(description: &str) -> String {
    format!("{:016x}", fnv1a(format!("{} {description}", env!("CARGO_PKG_VERSION")).as_bytes()))
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
