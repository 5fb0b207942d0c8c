//! The drive of "Preemptible I/O Scheduling of Garbage Collection for Solid State Drives" (Lee, Kim, Shipman,
//! Oral, Kim; IEEE TCAD 2013, after ISPASS 2011). The authors simulate it with the SSD extension of DiskSim.
//!
//! These values are from Lee et al.: 8 channels with one element (die) each, 64 pages of 4 KiB in a block,
//! 0.025/0.200/1.5 ms to read, program and erase, 15 % reserved, 5 % minimum free blocks, greedy victims, no
//! write buffer, 20 µs to suspend. The drive is filled with valid data at the start. The 25 ns a byte on the
//! channel are from the sample parameters of the SSD extension. Two things differ. An element has one plane
//! of eight, and half of its blocks, which changes capacities but no times. The hard threshold is a fifth of
//! the soft one, the lower of the two in the publication.
//!
//! Each element, and so each channel, collects separately. A page's element follows from its address, as in
//! the SSD extension.

use super::reference_e::reference_e;
use super::target::Preset;
use crate::{GcUnit, SsdConfig, WriteCache};
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Collect, Stripe};

pub(super) const PRESET: Preset = Preset {
    name: "preemptive-gc",
    about: "the simulated drive of the semi-preemptive GC study: SLC, no write buffer",
    source: "IEEE TCAD 32(2), 2013, Table VI, and the SSD extension of DiskSim",
    config,
    targets: &[],
    misses: "",
    bounds: None,
};

fn config() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 1,
        dies: 1,
        planes: 1,
        blocks: 1024,
        pages: 64,
        // 15 % of all blocks are reserved.
        op: Share::from_ppm(176_471),
        read: Nanos::from_micros(25),
        program: Nanos::from_micros(200),
        erase: Nanos::from_micros(1_500),
        transfer: Nanos(102_400),
        write_cache: WriteCache::Off,
        collect: Collect { schedule: Schedule::NON_PREEMPTIVE, reserve: 51, hard: 10, ..Collect::PLAIN },
        gc_unit: GcUnit::Channel,
        stripe: Stripe::Address,
        endurance: 100_000,
        precondition: Precondition::Fill,
        ..reference_e()
    }
}
