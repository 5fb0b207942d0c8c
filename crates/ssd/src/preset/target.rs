//! A ready-made drive as data, with the published figures that it should show.

use crate::SsdConfig;
use fulgurite_base::Declared;
use fulgurite_base::option::with_name;

/// A published concurrency: the number of requests at once that reach the plateau of throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// This many requests reach the plateau.
    Is(u32),
    /// The plateau was not reached with this many requests.
    MoreThan(u32),
}

/// The published figures of a device for one page size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The size of a request in bytes.
    pub page_bytes: u32,
    /// The read/write asymmetry: read throughput over write throughput.
    pub alpha: f64,
    /// The concurrency of reads.
    pub k_r: Concurrency,
    /// The concurrency of writes.
    pub k_w: Concurrency,
}

/// How far a measured drive is from a simulated one: the least and the most of the drive's response time over
/// the simulated one, at the rates that the drive sustained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The bounds of the median of reads.
    pub read_p50: [f64; 2],
    /// The bounds of the 99th percentile of reads.
    pub read_p99: [f64; 2],
    /// The bounds of the median of writes.
    pub write_p50: [f64; 2],
    /// The bounds of the 99th percentile of writes.
    pub write_p99: [f64; 2],
}

impl Bounds {
    /// The names of the bounds, in files and tables.
    pub const NAMES: [&'static str; 4] = ["read_p50", "read_p99", "write_p50", "write_p99"];

    /// Creates bounds from their values in the order of [`Bounds::NAMES`].
    pub const fn new([read_p50, read_p99, write_p50, write_p99]: [[f64; 2]; 4]) -> Bounds {
        Bounds { read_p50, read_p99, write_p50, write_p99 }
    }

    /// Returns the values in the order of [`Bounds::NAMES`].
    pub fn values(&self) -> [[f64; 2]; 4] {
        [self.read_p50, self.read_p99, self.write_p50, self.write_p99]
    }
}

/// A ready-made drive.
pub struct Preset {
    /// The name of the preset on the command line.
    pub name: &'static str,
    /// The device that the preset represents, in one line for help texts.
    pub about: &'static str,
    /// The source of the published figures.
    pub source: &'static str,
    /// Creates the configuration of the drive.
    pub config: fn() -> SsdConfig,
    /// The figures that the drive should show, one entry for each page size.
    pub targets: &'static [Target],
    /// The targets that the drive misses, and the reasons; empty if it misses none.
    pub misses: &'static str,
    /// How far the measured drive is from this one; `None` if nobody has compared them.
    pub bounds: Option<Bounds>,
}

impl Preset {
    /// Returns the canonical text of a drive made from this preset: the preset's name and the changed
    /// parameters.
    pub fn canonical(&self, config: &SsdConfig) -> String {
        with_name(self.name, &config.options_beside(&(self.config)()))
    }
}
