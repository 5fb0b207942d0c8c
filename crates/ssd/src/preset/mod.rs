//! Ready-made drives. Each stands for a device that the literature characterises, with its source
//! and the figures that it should show when it is measured the same way.
//!
//! The capacities are scaled down: alpha, k_r and k_w do not depend on them, and a run should
//! take seconds. Every parameter can be changed in place (`p4510:channels=4,program_us=400`).

mod optane;
mod p4510;
mod preemptive_gc;
mod reference_e;
mod sata;
mod virtual_ssd;

pub use reference_e::reference_e;

use crate::SsdConfig;
use fulgurite_base::{Spec, SpecError};

/// What a published characterisation says of a concurrency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// This many requests reach the plateau.
    Is(u32),
    /// The plateau was not reached with this many.
    MoreThan(u32),
}

/// The published figures of a device for one page size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Request size.
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
    /// What it stands for.
    pub about: &'static str,
    /// Where its figures come from.
    pub source: &'static str,
    /// Its parameters.
    pub config: fn() -> SsdConfig,
    /// What it should show.
    pub targets: &'static [Target],
    /// Where it is known to miss a target, and why.
    pub misses: &'static str,
}

/// Every preset.
pub const PRESETS: &[Preset] = &[
    p4510::WITH_FILE_SYSTEM,
    p4510::RAW,
    sata::PRESET,
    optane::PRESET,
    virtual_ssd::PRESET,
    reference_e::PRESET,
    preemptive_gc::PRESET,
];

/// The preset called `name`.
pub fn by_name(name: &str) -> Result<&'static Preset, SpecError> {
    let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| SpecError::unknown("device", name, &names))
}

/// The configuration of `preset:key=value,…`.
pub fn configure(spec: Spec) -> Result<SsdConfig, SpecError> {
    (by_name(spec.name())?.config)().with_options(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_small_enough_to_precondition_quickly() {
        for preset in PRESETS {
            let config = (preset.config)();
            assert_eq!(config.validate(), Ok(()), "{}", preset.name);
            assert!(config.logical_pages() <= 1 << 21, "{}", preset.name);
        }
    }

    #[test]
    fn a_preset_is_changed_in_place() {
        let config = configure(Spec::parse("p4510:channels=4,program_us=400").unwrap()).unwrap();
        assert_eq!((config.channels, config.program.0), (4, 400_000));
        assert!(configure(Spec::parse("p4510:chanels=4").unwrap()).is_err());
        assert!(
            configure(Spec::parse("p4511").unwrap())
                .unwrap_err()
                .to_string()
                .contains("did you mean `p4510`?")
        );
    }
}
