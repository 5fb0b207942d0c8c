//! FEMU's black-box SSD (Li et al., "The CASE of FEMU", FAST 2018), an emulator for running databases and
//! other software.
//!
//! These values are from its sources: 40/200/2000 µs to read, program and erase, 8 channels × 8 LUNs (dies)
//! of one plane, 256 pages of 4 KiB in a block. A line is a block of every LUN. It is allocated and collected
//! as one unit, when 75 % or 95 % of the lines are used. The following is assumed: transfers on the channel
//! take no time; there is no write buffer, so a write is acknowledged when its page is programmed; the user
//! has 12 GiB of 16; a collection occupies its LUNs until it ends. The drive is scaled down to 128 lines of
//! 256. One thing differs: collection begins at 95 %, the second threshold. With the first threshold, a full
//! drive of this size would collect before every write.

use super::reference_e::reference_e;
use super::target::Preset;
use crate::{SsdConfig, WriteCache};
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::Collect;
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::Schedule;

pub(super) const PRESET: Preset = Preset {
    name: "femu",
    about: "the emulator FEMU's black-box SSD: 8 channels of 8 LUNs, no write buffer",
    source: "FAST 2018, and the defaults in the emulator's sources; an emulator, not a device",
    config,
    targets: &[],
    misses: "",
    bounds: None,
};

fn config() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 8,
        dies: 1,
        planes: 1,
        blocks: 128,
        pages: 256,
        // The user has 12 GiB of 16.
        op: Share::from_ppm(333_333),
        read: Nanos::from_micros(40),
        program: Nanos::from_micros(200),
        erase: Nanos::from_micros(2_000),
        transfer: Nanos::ZERO,
        write_cache: WriteCache::Off,
        collect: Collect { schedule: Schedule::NON_PREEMPTIVE, reserve: 6, ..Collect::PLAIN },
        precondition: Precondition::Fill,
        ..reference_e()
    }
}
