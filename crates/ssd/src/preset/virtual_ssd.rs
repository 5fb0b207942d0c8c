//! A cloud provider's virtual SSD, as characterised in the ACE study (Papon and Athanassoulis, ICDE 2023). It
//! has long delays and provisioned rates that the study's load did not saturate, so its published
//! concurrencies k are lower bounds.

use super::reference_e::reference_e;
use super::target::{Concurrency::MoreThan, Preset, Target};
use crate::SsdConfig;
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;

pub(super) const PRESET: Preset = Preset {
    name: "virtual",
    about: "a cloud provider's virtual SSD, capped in operations",
    source: "ACE (ICDE 2023), table of empirical asymmetry and concurrency; closed-loop fit",
    config,
    targets: &[
        Target { page_bytes: 4096, alpha: 2.0, k_r: MoreThan(11), k_w: MoreThan(19) },
        Target { page_bytes: 8192, alpha: 1.9, k_r: MoreThan(6), k_w: MoreThan(10) },
    ],
    misses: "",
    bounds: None,
};

fn config() -> SsdConfig {
    SsdConfig {
        channels: 64,
        chips: 2,
        dies: 2,
        planes: 1,
        blocks: 128,
        pages: 32,
        page_bytes: 4096,
        op: Share::percent(28),
        read: Nanos::from_micros(60),
        program: Nanos::from_micros(200),
        erase: Nanos::from_micros(2_000),
        transfer: Nanos::from_micros(1),
        read_command: Nanos(6_000),
        read_page: Nanos(39_000),
        read_latency: Nanos::from_micros(500),
        write_command: Nanos(20_000),
        write_page: Nanos(70_000),
        write_latency: Nanos::from_micros(1_810),
        write_buffer: 16 << 20,
        queue_depth: 1024,
        precondition: Precondition::Steady,
        ..reference_e()
    }
}
