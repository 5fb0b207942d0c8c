//! A SATA SSD, as characterised together with the P4510 in the ACE study (Papon and Athanassoulis, ICDE
//! 2023).
//!
//! The time per page, 7 µs for 4 KiB, is that of the SATA link (about 585 MB/s). Dies have a single plane, so
//! that an 8 KiB request reads two dies, which raises its read concurrency k_r to the published value.

use super::reference_e::reference_e;
use super::target::{Concurrency::Is, Preset, Target};
use crate::SsdConfig;
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;

pub(super) const PRESET: Preset = Preset {
    name: "sata",
    about: "a SATA SSD",
    source: "ACE (ICDE 2023), table of empirical asymmetry and concurrency; closed-loop fit",
    config,
    targets: &[
        Target { page_bytes: 4096, alpha: 1.5, k_r: Is(25), k_w: Is(9) },
        Target { page_bytes: 8192, alpha: 1.3, k_r: Is(21), k_w: Is(5) },
    ],
    misses: "k_w at 8 KiB is 6 for 5: by k = X·L the study has 8 KiB writes acknowledged sooner than 4 KiB ones; \
             the model has one delay for both",
    bounds: None,
};

fn config() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 3,
        dies: 1,
        planes: 1,
        blocks: 160,
        pages: 256,
        page_bytes: 4096,
        op: Share::percent(60),
        read: Nanos::from_micros(100),
        program: Nanos::from_micros(75),
        erase: Nanos::from_micros(3_000),
        transfer: Nanos::from_micros(8),
        read_command: Nanos(3_500),
        read_page: Nanos(7_000),
        read_latency: Nanos::from_micros(110),
        write_command: Nanos(9_000),
        write_page: Nanos(6_870),
        write_latency: Nanos::from_micros(118),
        write_buffer: 16 << 20,
        queue_depth: 256,
        precondition: Precondition::Steady,
        ..reference_e()
    }
}
