//! A ready-made drive as data, with the published figures that it should show.

use crate::SsdConfig;
use fulgurite_base::Declared;
use fulgurite_base::option::with_name;

/// A published concurrency.
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
    /// The request size.
    pub page_bytes: u32,
    /// Read throughput over write throughput.
    pub alpha: f64,
    /// Read concurrency.
    pub k_r: Concurrency,
    /// Write concurrency.
    pub k_w: Concurrency,
}

/// A ready-made drive.
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    /// The device that it represents.
    pub about: &'static str,
    /// The source of its figures.
    pub source: &'static str,
    /// Its parameters.
    pub config: fn() -> SsdConfig,
    /// The figures that it should show.
    pub targets: &'static [Target],
    /// The targets that it misses, and the reasons.
    pub misses: &'static str,
}

impl Preset {
    /// The canonical text of a drive made from this preset: the preset's name and the changed parameters.
    pub fn canonical(&self, config: &SsdConfig) -> String {
        with_name(self.name, &config.options_beside(&(self.config)()))
    }
}
