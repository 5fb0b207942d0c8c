//! An Intel Optane SSD (3D XPoint), as characterised in the ACE study (Papon and Athanassoulis, ICDE 2023).
//!
//! The medium is overwritten in place, so no page becomes invalid, and writes cost about as much as reads.

use super::reference_e::reference_e;
use super::target::{Concurrency::Is, Preset, Target};
use crate::SsdConfig;
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;

pub(super) const PRESET: Preset = Preset {
    name: "optane",
    about: "an Intel Optane SSD (3D XPoint, written in place)",
    source: "ACE (ICDE 2023), table of empirical asymmetry and concurrency; closed-loop fit",
    config,
    targets: &[
        Target { page_bytes: 4096, alpha: 1.1, k_r: Is(6), k_w: Is(5) },
        Target { page_bytes: 8192, alpha: 1.0, k_r: Is(4), k_w: Is(4) },
    ],
    misses: "",
    bounds: None,
};

fn config() -> SsdConfig {
    SsdConfig {
        channels: 7,
        chips: 1,
        dies: 2,
        planes: 1,
        blocks: 512,
        pages: 128,
        page_bytes: 4096,
        op: Share::ZERO,
        read: Nanos::from_micros(4),
        program: Nanos::from_micros(10),
        erase: Nanos::from_micros(1),
        transfer: Nanos::from_micros(1),
        read_command: Nanos(240),
        read_page: Nanos(1_580),
        read_latency: Nanos::from_micros(3),
        write_command: Nanos(600),
        write_page: Nanos(1_400),
        write_latency: Nanos::from_micros(8),
        write_buffer: 1 << 20,
        queue_depth: 1024,
        in_place: true,
        precondition: Precondition::Fill,
        ..reference_e()
    }
}
