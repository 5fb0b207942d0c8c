//! Ready-made drives, called presets. Each represents a device from the literature, with its source and the
//! figures that it should show under the same measurements: alpha, the read/write asymmetry, and k_r and k_w,
//! the concurrencies of reads and of writes.
//!
//! The capacities are scaled down: alpha, k_r and k_w do not depend on the capacity, and a run should take
//! seconds. Every parameter can be changed (`p4510:channels=4,program_us=400`).

mod target;
mod reference_e;
mod femu;
mod optane;
mod p4510;
mod preemptive_gc;
mod real_drives;
mod sata;
mod virtual_ssd;

pub use reference_e::reference_e;
pub use target::{Bounds, Concurrency, Preset, Target};

use crate::SsdConfig;
use fulgurite_base::{Declared, Entry, Registry, Spec, SpecError};

macro_rules! presets {
    ($($preset:path)*) => {
        static REGISTRY: Registry<Preset> = Registry {
            kind: "device",
            entries: &[$(Entry {
                name: $preset.name,
                about: $preset.about,
                options: || ($preset.config)().describe_options(),
                make: $preset,
            },)*],
        };
    };
}

presets! {
    p4510::WITH_FILE_SYSTEM
    p4510::RAW
    sata::PRESET
    optane::PRESET
    virtual_ssd::PRESET
    reference_e::PRESET
    femu::PRESET
    preemptive_gc::PRESET
    real_drives::PE8110
    real_drives::PM9A3
    real_drives::P5520
    real_drives::M7450_PRO
    real_drives::M7450_MAX
    real_drives::CM7_R
    real_drives::WD_DC
}

/// Returns the registry of all presets.
pub fn registry() -> &'static Registry<Preset> {
    &REGISTRY
}

/// Returns the preset called `name`.
pub fn by_name(name: &str) -> Result<&'static Preset, SpecError> {
    Ok(&REGISTRY.get(name)?.make)
}

/// Returns the configuration of `preset:key=value,…`.
pub fn configure(spec: Spec) -> Result<SsdConfig, SpecError> {
    (by_name(spec.name())?.config)().changed_by(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_small_enough_to_precondition_quickly() {
        for preset in registry().entries.iter().map(|entry| &entry.make) {
            let config = (preset.config)();
            assert_eq!(config.validate(), Ok(()), "{}", preset.name);
            assert!(config.logical_pages() <= 1 << 22, "{}", preset.name);
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

    /// The rule: a drive has one canonical text. Writing out a preset's value, or using `streams=N`, does not
    /// change the text.
    #[test]
    fn a_drive_has_one_canonical_text() {
        let canonical = |text: &str| {
            let spec = Spec::parse(text).unwrap();
            by_name(spec.name()).unwrap().canonical(&configure(spec).unwrap())
        };
        for preset in registry().entries.iter().map(|entry| &entry.make) {
            assert_eq!(canonical(preset.name), preset.name);
            for option in (preset.config)().describe_options() {
                let text = format!("{}:{}={}", preset.name, option.key, option.default);
                let written_out = Spec::parse(&text).and_then(configure);
                // Some values are refused, because the option has no effect on this preset.
                if let Ok(config) = written_out {
                    assert_eq!(preset.canonical(&config), preset.name, "{text}");
                }
            }
        }
        assert_eq!(canonical("reference-e:op=7%,read_us=40"), "reference-e:op=7%");
        let by_hints = "reference-e:gc_reserve=9,placement=hints:streams=4";
        assert_eq!(canonical(by_hints), by_hints);
        assert_eq!(canonical("reference-e:streams=4,gc_reserve=9"), by_hints);
        assert_eq!(canonical("reference-e:streams=1"), "reference-e");
    }
}
