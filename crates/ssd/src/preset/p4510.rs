//! Intel P4510 1 TB (NVMe, TLC), as characterised in "ACE: Asymmetry- and Concurrency-Aware Bufferpool
//! Management" (ICDE 2023): behind a file system, and as a raw device.
//!
//! Serial costs follow from the published plateaus: 1/X at 4 and 8 KiB, where X is the throughput, gives the
//! costs per command and per page. Array read time and delays follow from k ≈ X·L plus the effect of random
//! collisions on the dies, where k is the concurrency and L the latency. Program time and over-provisioning
//! are such that garbage collection keeps up with the write path at the plateau, since the measured device
//! was not full of live data.

use super::reference_e::reference_e;
use super::target::{Concurrency::Is, Preset, Target};
use crate::SsdConfig;
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;

const SOURCE: &str = "ACE (ICDE 2023), table of empirical asymmetry and concurrency; closed-loop fit";

pub(super) const WITH_FILE_SYSTEM: Preset = Preset {
    name: "p4510",
    about: "Intel P4510 1 TB, NVMe TLC, through a file system",
    source: SOURCE,
    config: with_file_system,
    targets: &[
        Target { page_bytes: 4096, alpha: 2.8, k_r: Is(80), k_w: Is(8) },
        Target { page_bytes: 8192, alpha: 2.0, k_r: Is(40), k_w: Is(7) },
    ],
    misses: "",
    bounds: None,
};

pub(super) const RAW: Preset = Preset {
    name: "p4510-raw",
    about: "Intel P4510 1 TB, NVMe TLC, as a raw device",
    source: SOURCE,
    config: raw,
    targets: &[
        Target { page_bytes: 4096, alpha: 3.0, k_r: Is(16), k_w: Is(6) },
        Target { page_bytes: 8192, alpha: 3.0, k_r: Is(15), k_w: Is(4) },
    ],
    misses: "k_w at 8 KiB is 5 for 4: by k = X·L the study has 8 KiB writes acknowledged sooner than 4 KiB ones; \
             the model has one delay for both",
    bounds: None,
};

fn with_file_system() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 2,
        dies: 2,
        planes: 4,
        blocks: 80,
        pages: 128,
        page_bytes: 4096,
        op: Share::percent(60),
        read: Nanos::from_micros(48),
        program: Nanos::from_micros(150),
        erase: Nanos::from_micros(3_000),
        transfer: Nanos(5_500),
        read_command: Nanos(600),
        read_page: Nanos(1_500),
        read_latency: Nanos::from_micros(32),
        write_command: Nanos(4_700),
        write_page: Nanos(1_250),
        write_latency: Nanos::from_micros(40),
        write_buffer: 16 << 20,
        queue_depth: 1024,
        nominal: 1_000_000_000_000,
        precondition: Precondition::Steady,
        ..reference_e()
    }
}

fn raw() -> SsdConfig {
    SsdConfig {
        read: Nanos::from_micros(50),
        read_command: Nanos(3_600),
        read_page: Nanos(1_200),
        read_latency: Nanos::from_micros(1),
        write_command: Nanos(10_700),
        write_page: Nanos(3_600),
        write_latency: Nanos::from_micros(66),
        ..with_file_system()
    }
}
