//! Twins of seven drives that one can buy, fitted to their latencies in "SSD-iq: Uncovering the Hidden Side of
//! SSD Performance" (Haas, Lee, Bonnet, Leis; PVLDB 18(11), 2025). `docs/validation/real-drives.md` has the
//! errors at the fitted rates and at others, and `scripts/twins` prints them.
//!
//! All have TLC flash with pages of 16 KiB. A die is a unit of collection, which moves pages in step with host
//! writes. Two kinds explain their reads. PE8110 and WD DC program a word line page by page, and a read waits
//! for the program of its die. The others program a word line at once, and a read suspends the program. Both
//! kinds suspend erases. The second difference is where commands wait once the write buffer is full: PE8110 and
//! WD DC work on few commands at once and take the others in order, so a read waits behind writes. PM9A3 and P5520
//! take some 240 commands, from the host's queues in turn. The 7450 and CM7-R take all, and reads never wait.
//!
//! The last line of each twin is how far the drive is from it, the second table of `scripts/twins`: the least and the
//! most of the drive's response time over the twin's, at the rates that the drive sustained.
//!
//! Each twin is a hundredth of its drive: it has all dies, and fewer and shorter erase blocks, which are erased
//! faster in proportion. So rates and latencies are the drive's, and a run takes seconds.

use super::reference_e::reference_e;
use super::target::{Bounds, Preset};
use crate::{GcUnit, SsdConfig};
use fulgurite_base::{Nanos, Share};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ftl::schedule::{Schedule, Suspend};
use fulgurite_ftl::{Collect, Stripe};

const SOURCE: &str = "SSD-iq (PVLDB 18(11), 2025): latency under load at 10K, 40K and 200K requests per second \
    (CM7-R: 10K, 100K and 500K), sequential writes; fitted";

macro_rules! twin {
    ($constant:ident, $name:literal, $about:literal, $config:expr, $misses:literal, $bounds:expr) => {
        pub(super) const $constant: Preset = Preset {
            name: $name,
            about: $about,
            source: SOURCE,
            config: || $config,
            targets: &[],
            misses: $misses,
            bounds: Some(Bounds::new($bounds)),
        };
    };
}

const MICROSECOND: u64 = 1_000;

/// Returns the maker's rating for so many drive writes per day over five years.
const fn rated(nominal: u64, dwpd: u64) -> u64 {
    nominal * dwpd * 5 * 365
}

/// Returns what the twins have in common: a drive of 16 dies whose word lines are programmed page by page.
fn by_page() -> SsdConfig {
    SsdConfig {
        channels: 8,
        chips: 2,
        dies: 1,
        planes: 2,
        blocks: 160,
        pages: 96,
        flash_page_bytes: 16 << 10,
        cell_bits: 3,
        read: Nanos::from_micros(45),
        read_spread: Share::percent(20),
        erase: Nanos::from_micros(500),
        transfer: Nanos(2 * MICROSECOND),
        read_command: Nanos(300),
        read_page: Nanos(300),
        write_command: Nanos(300),
        write_page: Nanos(300),
        write_buffer: 16 << 20,
        share_pages: 0,
        collect: Collect {
            schedule: Schedule { suspend: Suspend::Erases, ..Schedule::PACED },
            ..reference_e().collect
        },
        gc_unit: GcUnit::Die,
        stripe: Stripe::LeastLoaded,
        precondition: Precondition::Steady,
        ..reference_e()
    }
}

/// Returns the same drive with word lines that are programmed at once, and suspended by reads.
fn at_once() -> SsdConfig {
    let collect =
        Collect { schedule: Schedule { suspend: Suspend::All, ..Schedule::PACED }, ..by_page().collect };
    SsdConfig { one_shot: true, suspend: Nanos(10 * MICROSECOND), suspensions: 2, collect, ..by_page() }
}

/// Returns the over-provisioning of this many hundredths of a per cent.
const fn spare(hundredths: u32) -> Share {
    Share::from_ppm(hundredths * 100)
}

twin!(
    PE8110,
    "pe8110",
    "SK Hynix PE8110 960 GB, NVMe TLC",
    SsdConfig {
        op: spare(1_463),
        program: Nanos::from_micros(275),
        program_spread: Share::percent(25),
        read_latency: Nanos(8 * MICROSECOND),
        write_latency: Nanos(9_400),
        slots: 42,
        nominal: 960_000_000_000,
        ..by_page()
    },
    "a spread of writes at saturation (p90 6.7 ms; the twin has 5.6)",
    [[1.01, 1.09], [0.92, 1.10], [1.00, 1.00], [1.20, 2.29]]
);

twin!(
    WD_DC,
    "wd-dc",
    "WD DC 960 GB, NVMe TLC",
    SsdConfig {
        op: spare(1_185),
        read: Nanos(50_700),
        read_spread: Share::percent(26),
        program: Nanos::from_micros(389),
        program_spread: Share::percent(23),
        read_latency: Nanos(30 * MICROSECOND),
        write_latency: Nanos(12_600),
        slots: 28,
        nominal: 960_000_000_000,
        ..by_page()
    },
    "the 90th percentile of reads below saturation, where the twin is up to a half above the drive",
    [[0.90, 1.00], [0.70, 0.99], [0.98, 0.98], [1.21, 2.58]]
);

twin!(
    PM9A3,
    "pm9a3",
    "Samsung PM9A3 960 GB, NVMe TLC",
    SsdConfig {
        op: spare(1_616),
        read: Nanos::from_micros(48),
        read_spread: Share::percent(25),
        program: Nanos::from_micros(950),
        suspend: Nanos(8 * MICROSECOND),
        resume: Nanos(20 * MICROSECOND),
        suspend_points: 7,
        read_latency: Nanos(14 * MICROSECOND),
        write_latency: Nanos(11 * MICROSECOND),
        queue_depth: 230,
        nominal: 960_000_000_000,
        rated: rated(960_000_000_000, 1),
        ..at_once()
    },
    "short stalls of writes from 70K requests per second on; the tail of reads",
    [[0.85, 1.10], [1.15, 1.54], [0.95, 1.98], [1.17, 25.42]]
);

twin!(
    P5520,
    "p5520",
    "Solidigm D7-P5520 1.92 TB, NVMe TLC",
    SsdConfig {
        chips: 4,
        blocks: 120,
        op: spare(2_040),
        read: Nanos::from_micros(50),
        read_spread: spare(3_450),
        program: Nanos::from_micros(1_600),
        resume: Nanos(60 * MICROSECOND),
        suspend_points: 8,
        read_latency: Nanos(19 * MICROSECOND),
        write_latency: Nanos(7_600),
        queue_depth: 241,
        nominal: 1_920_000_000_000,
        rated: rated(1_920_000_000_000, 1),
        ..at_once()
    },
    "the tail of writes: 25 to 75 µs at all rates, and 7 ms at saturation; the tail of reads",
    [[0.88, 1.32], [0.97, 1.53], [0.97, 1.10], [3.17, 8.47]]
);

/// Returns what both 7450 have in common: one row of 28 holds parity.
fn micron_7450() -> SsdConfig {
    SsdConfig {
        blocks: 180,
        pages: 84,
        parity: 28,
        transfer: Nanos(2_600),
        read_latency: Nanos(15 * MICROSECOND),
        write_latency: Nanos(8_700),
        suspensions: 8,
        ..at_once()
    }
}

twin!(
    M7450_PRO,
    "7450-pro",
    "Micron 7450 PRO 960 GB, NVMe TLC",
    SsdConfig {
        op: spare(1_740),
        read: Nanos::from_micros(52),
        program: Nanos::from_micros(950),
        resume: Nanos::from_micros(500),
        suspend_points: 6,
        nominal: 960_000_000_000,
        rated: rated(960_000_000_000, 1),
        ..micron_7450()
    },
    "stalls of 5 to 15 ms, of writes and some reads, from 10K to 60K requests per second",
    [[0.93, 1.09], [0.98, 5.58], [0.97, 612.38], [0.77, 1136.79]]
);

twin!(
    M7450_MAX,
    "7450-max",
    "Micron 7450 MAX 800 GB, NVMe TLC",
    SsdConfig {
        op: spare(4_645),
        program: Nanos::from_micros(1_040),
        resume: Nanos::from_micros(660),
        suspend_points: 8,
        nominal: 800_000_000_000,
        rated: rated(800_000_000_000, 3),
        ..micron_7450()
    },
    "stalls of 4 to 12 ms of writes from 40K requests per second on",
    [[1.01, 1.23], [0.84, 1.11], [0.97, 389.01], [1.50, 720.53]]
);

twin!(
    CM7_R,
    "cm7-r",
    "Kioxia CM7-R 3.84 TB, NVMe TLC",
    SsdConfig {
        channels: 16,
        chips: 4,
        blocks: 120,
        pages: 48,
        op: spare(1_662),
        erase: Nanos::from_micros(300),
        program: Nanos::from_micros(900),
        resume: Nanos(60 * MICROSECOND),
        suspensions: 1,
        suspend_points: 4,
        read_latency: Nanos(24 * MICROSECOND),
        write_latency: Nanos(7_600),
        nominal: 3_840_000_000_000,
        rated: rated(3_840_000_000_000, 1),
        ..at_once()
    },
    "unequal users: at saturation some users' writes take 0.4 ms and others' 6 ms; stalls of 2 to 6 ms of writes from \
     100K requests per second on; the tail of reads",
    [[0.87, 1.02], [0.92, 1.83], [0.97, 91.51], [1.28, 673.02]]
);
