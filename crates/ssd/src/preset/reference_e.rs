//! The reference geometry for comparing simulators: 8 channels × 4 dies, 8 GiB of flash, the timing of FEMU's
//! black-box mode (40/200/2000 µs to read, program and erase), an 800 MT/s 8-bit channel, no host costs.

use super::target::Preset;
use crate::{GcUnit, SsdConfig, WriteCache};
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::{SUSPENSIONS, Schedule};
use fulgurite_ftl::{Collect, Stripe, WearLeveling};

pub(super) const PRESET: Preset = Preset {
    name: "reference-e",
    about: "the reference for comparing simulators: 8 GiB, 32 dies, no host costs",
    source: "MQSim-style configuration with FEMU's timing; no device stands behind it",
    config: reference_e,
    targets: &[],
    misses: "",
    bounds: None,
};

/// Returns the configuration of `reference-e`. The other presets use its values for parameters that their
/// sources do not give.
pub fn reference_e() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 4,
        dies: 1,
        planes: 1,
        blocks: 256,
        pages: 256,
        page_bytes: 4096,
        flash_page_bytes: 0,
        cell_bits: 1,
        one_shot: false,
        parity: 0,
        op: Share::percent(28),
        read: Nanos::from_micros(40),
        read_spread: Share::ZERO,
        program: Nanos::from_micros(200),
        program_spread: Share::ZERO,
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
        slots: 0,
        // Equals the limit in the command by the authors of SHARE (SIGMOD 2016): the pairs of pages that fit
        // into a block of 4 KiB.
        share_pages: 250,
        write_cache: WriteCache::Protected,
        collect: Collect { schedule: Schedule::PACED, reserve: 3, ..Collect::PLAIN },
        zones: 0,
        active_zones: 14,
        conventional: 0,
        gc_overlap: false,
        gc_unit: GcUnit::Drive,
        stripe: Stripe::RoundRobin,
        gc_idle: Nanos::from_micros(1_000),
        suspend: Nanos::from_micros(20),
        resume: Nanos::ZERO,
        suspensions: SUSPENSIONS,
        suspend_points: 0,
        wear_leveling: WearLeveling::Dynamic,
        wear_gap: 10,
        endurance: 3_000,
        nominal: 0,
        rated: 0,
        bad_blocks: Share::ZERO,
        read_mw: 83,
        program_mw: 83,
        erase_mw: 83,
        transfer_mw: 83,
        in_place: false,
        precondition: Precondition::Steady,
    }
}
