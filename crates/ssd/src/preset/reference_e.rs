//! The reference geometry for comparing simulators: 8 channels × 4 dies, 8 GiB of flash, the timing
//! of FEMU's black-box mode (40/200/2000 µs), an 800 MT/s 8-bit channel, no host costs.

use super::Preset;
use crate::schedule::Schedule;
use crate::victim::VictimPolicy;
use crate::{Precondition, SsdConfig};
use fulgurite_base::{Nanos, Share};

pub(super) const PRESET: Preset = Preset {
    name: "reference-e",
    about: "the reference for comparing simulators: 8 GiB, 32 dies, no host costs",
    source: "MQSim-style configuration with FEMU's timing; no device stands behind it",
    config: reference_e,
    targets: &[],
    misses: "",
};

/// The configuration of `reference-e`.
pub fn reference_e() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 4,
        dies: 1,
        planes: 1,
        blocks: 256,
        pages: 256,
        page_bytes: 4096,
        op: Share::percent(28),
        read: Nanos::from_micros(40),
        program: Nanos::from_micros(200),
        erase: Nanos::from_micros(2_000),
        transfer: Nanos(5_120),
        read_command: Nanos::ZERO,
        read_page: Nanos::ZERO,
        read_latency: Nanos::ZERO,
        write_command: Nanos::ZERO,
        write_page: Nanos::ZERO,
        write_latency: Nanos::ZERO,
        write_buffer: 4 << 20,
        queue_depth: 1024,
        gc_reserve: 3,
        victim: VictimPolicy::Greedy,
        schedule: Schedule::Paced,
        in_place: false,
        precondition: Precondition::Steady,
    }
}
