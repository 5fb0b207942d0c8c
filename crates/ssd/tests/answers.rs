//! Records the answer times of small drives, to the nanosecond, and their activity meanwhile, under every
//! schedule, unit and kind of write cache. These times depend on many small decisions about priority, and a
//! wrong decision shows in no other test.

use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec, StreamId};
use fulgurite_device::{Command, Device, Operation, Tag};
use fulgurite_ftl::precondition::Precondition;
use fulgurite_ssd::{SimDrive, SsdConfig, Waits, preset};

/// The number of requests between two pauses of the host; `TIMES` is the number of pauses.
const REQUESTS: usize = 250;
const TIMES: usize = 6;
const REST: Nanos = Nanos::from_micros(20_000);
const USERS: usize = 12;

fn small(options: &str) -> SsdConfig {
    let small = SsdConfig {
        channels: 2,
        chips: 2,
        dies: 1,
        planes: 2,
        blocks: 24,
        pages: 8,
        op: Share::percent(60),
        precondition: Precondition::Fill,
        ..preset::reference_e()
    };
    small.changed_by(Spec::parse(&format!("small:{options}")).unwrap()).unwrap()
}

/// Returns a random request: half of the requests are reads, most others writes of up to four pages, mostly
/// to popular pages; a few are trims, shares or flushes.
fn request(prng: &mut Prng, drive: &SimDrive) -> Operation {
    let pages = drive.caps().pages - 8;
    let lpn = Lpn(if prng.below(4) > 0 { prng.below(pages / 8) } else { prng.below(pages) });
    let length = 1 + prng.below(4) as u32;
    match prng.below(100) {
        0..40 => Operation::read(lpn, length),
        40..95 => {
            let stream = StreamId(prng.below(u64::from(drive.caps().streams)) as u16);
            Operation::Write { lpn, pages: length, from: None, stream, durable: false }
        }
        95..97 => Operation::Trim { lpn, pages: length },
        97..99 if drive.caps().share_pages > 0 => Operation::share(lpn, Lpn((lpn.0 + 4) % pages), 1),
        _ => Operation::Flush,
    }
}

/// Returns sums over the run: the times of reads and of all other requests in nanoseconds; their waits for
/// collection, other requests, the channel and the buffer; the numbers of copied pages, erased segments,
/// merged reads, overlaps, suspensions, flash operations, and of pages with data at the end.
fn answers(options: &str) -> [u64; 13] {
    let mut drive = SimDrive::new(small(options), 7, false).unwrap();
    drive.keep_served();
    let mut prng = Prng::new(3, "answers");
    let mut completions = Vec::new();
    let (mut begun, mut took) = (Vec::new(), [0, 0]);
    let users = USERS.min(drive.caps().queue_depth as usize);
    let mut completed = 0;
    for end in (1..=TIMES).map(|time| time * REQUESTS) {
        while completed < end {
            while begun.len() < end.min(completed + users) {
                let operation = request(&mut prng, &drive);
                let is_read = matches!(operation, Operation::Read { .. });
                let tag = Tag(begun.len() as u64);
                begun.push((drive.now(), is_read));
                drive.submit(Command { tag, operation }).unwrap();
            }
            drive.wait(None, &mut completions);
            assert!(!completions.is_empty(), "{options} stalled in {:?}", drive.state());
            for done in completions.drain(..) {
                done.status.unwrap();
                let (at, is_read) = begun[done.tag.0 as usize];
                took[usize::from(!is_read)] += (done.at - at).0;
                completed += 1;
            }
        }
        let rested = drive.now() + REST;
        while drive.now() < rested {
            drive.wait(Some(rested), &mut completions);
        }
    }
    drive.drain_events();
    drive.verify(true).unwrap();
    let mut served = Vec::new();
    drive.take_served(&mut served);
    let waits = |part: fn(&Waits) -> u64| served.iter().map(|served| part(&served.waits)).sum();
    let all = drive.counters();
    [
        took[0],
        took[1],
        waits(|waits| waits.gc),
        waits(|waits| waits.die),
        waits(|waits| waits.channel),
        waits(|waits| waits.buffer),
        all.gc_pages_copied,
        all.erases,
        all.merged_pages,
        all.overlaps,
        all.suspensions,
        all.flash_operations,
        drive.ftl().map_or(0, |ftl| ftl.segments().valid_pages()),
    ]
}

/// The expected sums by options. These figures record the current behaviour, not the right one. If you change
/// a drive's priorities on purpose, update the figures and check the effect in the study `preemptive-gc`.
const ANSWERS: &[(&str, [u64; 13])] = &[
    (
        "schedule=non-preemptive,gc_unit=drive",
        [2_572_258_560, 516_881_280, 2_481_795_840, 67_236_800, 575_360, 0, 1_495, 50, 0, 0, 0, 3_862, 935],
    ),
    (
        "schedule=non-preemptive,gc_unit=channel",
        [2_981_640_000, 268_569_920, 2_860_520_000, 96_379_520, 503_680, 0, 1_390, 97, 0, 0, 0, 3_892, 935],
    ),
    (
        "schedule=non-preemptive,gc_unit=die",
        [2_400_418_880, 90_754_560, 2_280_658_560, 94_866_880, 235_200, 0, 1_189, 182, 0, 0, 0, 3_766, 935],
    ),
    (
        "schedule=non-preemptive,gc_unit=plane",
        [3_929_265_280, 164_039_040, 3_813_922_560, 91_181_120, 112_640, 0, 1_046, 347, 0, 0, 0, 5_788, 935],
    ),
    (
        "schedule=paced,gc_unit=drive",
        [101_772_480, 1_125_776_960, 12_109_120, 72_187_520, 131_840, 0, 1_124, 43, 0, 0, 0, 3_168, 935],
    ),
    (
        "schedule=paced,gc_unit=channel",
        [103_524_480, 969_184_640, 11_727_040, 74_363_520, 150_400, 0, 1_084, 85, 0, 0, 0, 3_156, 935],
    ),
    (
        "schedule=paced,gc_unit=die",
        [92_079_040, 645_879_040, 390_720, 74_236_160, 91_840, 0, 920, 159, 0, 0, 0, 2_974, 935],
    ),
    (
        "schedule=paced,gc_unit=plane",
        [107_832_960, 1_094_215_680, 510_720, 90_456_640, 35_840, 0, 766, 304, 0, 0, 0, 4_686, 935],
    ),
    (
        "schedule=semi-preemptive,gc_unit=drive",
        [101_282_240, 615_825_600, 0, 84_057_600, 115_520, 0, 963, 42, 0, 0, 0, 2_978, 935],
    ),
    (
        "schedule=semi-preemptive,gc_unit=channel",
        [96_794_880, 595_971_520, 0, 79_500_480, 110_400, 0, 921, 82, 0, 0, 0, 2_952, 935],
    ),
    (
        "schedule=semi-preemptive,gc_unit=die",
        [104_547_200, 445_600_960, 0, 87_314_240, 149_440, 0, 813, 158, 0, 0, 0, 2_850, 935],
    ),
    (
        "schedule=semi-preemptive,gc_unit=plane",
        [159_844_160, 783_139_520, 40_407_360, 102_441_280, 30_400, 0, 664, 297, 0, 0, 0, 4_482, 935],
    ),
    (
        "schedule=semi-preemptive+merge+pipeline,gc_unit=drive",
        [101_386_880, 612_348_800, 0, 84_223_680, 114_560, 0, 963, 42, 10, 0, 0, 2_972, 935],
    ),
    (
        "schedule=semi-preemptive+merge+pipeline,gc_unit=channel",
        [98_525_760, 613_329_280, 1_473_920, 79_757_440, 110_400, 0, 913, 82, 17, 0, 0, 2_938, 935],
    ),
    (
        "schedule=semi-preemptive+merge+pipeline,gc_unit=die",
        [100_667_200, 439_166_400, 0, 83_440_640, 132_800, 0, 811, 158, 12, 0, 0, 2_841, 935],
    ),
    (
        "schedule=semi-preemptive+merge+pipeline,gc_unit=plane",
        [136_569_600, 802_694_400, 20_890_880, 98_998_720, 30_720, 0, 659, 297, 23, 0, 0, 4_445, 935],
    ),
    (
        "schedule=preemptive+merge+pipeline,gc_unit=drive",
        [85_856_640, 603_126_560, 0, 68_226_080, 122_400, 0, 963, 42, 10, 0, 62, 2_971, 935],
    ),
    (
        "schedule=preemptive+merge+pipeline,gc_unit=channel",
        [83_967_360, 585_877_760, 0, 66_286_080, 98_240, 0, 917, 82, 13, 0, 60, 2_939, 935],
    ),
    (
        "schedule=preemptive+merge+pipeline,gc_unit=die",
        [82_281_120, 466_737_920, 0, 64_672_800, 115_520, 0, 836, 159, 11, 0, 49, 2_871, 935],
    ),
    (
        "schedule=preemptive+merge+pipeline,gc_unit=plane",
        [105_003_360, 836_187_360, 3_003_520, 85_070_560, 30_720, 0, 678, 299, 20, 0, 91, 4_480, 935],
    ),
    (
        "gc_unit=chip,stripe=least-loaded",
        [106_925_440, 648_002_880, 5_641_920, 83_745_920, 62_400, 0, 922, 159, 0, 0, 0, 2_989, 935],
    ),
    (
        "gc_unit=die,dies=2,stripe=round-robin,schedule=semi-preemptive",
        [101_024_960, 38_352_640, 0, 78_393_920, 570_240, 0, 370, 107, 0, 0, 0, 2_476, 1_890],
    ),
    (
        "gc_unit=die,stripe=least-loaded,schedule=preemptive",
        [85_735_520, 453_010_720, 0, 67_855_040, 79_680, 0, 809, 158, 0, 0, 68, 2_839, 935],
    ),
    (
        "write_cache=off",
        [167_015_040, 3_170_351_040, 2_508_191_680, 451_959_040, 610_880, 0, 1_082, 42, 0, 0, 0, 4_142, 935],
    ),
    (
        "write_cache=volatile",
        [82_163_520, 1_060_197_120, 946_560, 63_321_600, 175_040, 0, 1_118, 43, 0, 0, 0, 3_210, 935],
    ),
    (
        "write_cache=volatile,schedule=preemptive",
        [62_325_600, 754_635_520, 0, 43_123_200, 159_680, 0, 960, 42, 0, 0, 152, 3_025, 935],
    ),
    (
        "write_cache=off,schedule=paced,gc_unit=channel",
        [228_325_440, 2_566_983_040, 1_974_861_120, 479_130_240, 510_400, 0, 1_054, 84, 0, 0, 0, 4_223, 935],
    ),
    (
        "write_buffer=64KiB",
        [
            169_236_160,
            2_453_687_680,
            77_560_320,
            65_102_720,
            173_760,
            2_168_902_080,
            1_066,
            42,
            0,
            0,
            0,
            3_591,
            935,
        ],
    ),
    (
        "streams=3",
        [94_484_480, 1_330_164_160, 4_833_920, 71_879_360, 110_400, 0, 1_217, 45, 0, 0, 0, 3_287, 935],
    ),
    (
        "streams=3,gc_unit=die",
        [93_316_480, 722_851_520, 3_493_760, 72_425_920, 87_680, 0, 1_047, 169, 0, 0, 0, 3_164, 935],
    ),
    (
        "placement=sepbit",
        [91_680_960, 1_515_238_400, 3_622_080, 70_469_120, 110_400, 0, 1_629, 53, 0, 0, 0, 3_833, 935],
    ),
    (
        "victim=cost-benefit,gc_overlap=no",
        [101_994_240, 1_229_532_800, 11_474_880, 72_961_600, 117_440, 0, 1_202, 44, 0, 0, 0, 3_229, 935],
    ),
    (
        "gc_overlap=no,gc_unit=die,schedule=semi-preemptive",
        [104_547_200, 445_600_960, 0, 87_314_240, 149_440, 0, 813, 158, 0, 0, 0, 2_850, 935],
    ),
    (
        "gc_reserve=6,gc_hard=3,schedule=preemptive",
        [77_850_400, 941_867_840, 1_145_920, 58_809_120, 69_920, 0, 1_756, 57, 0, 0, 80, 3_920, 935],
    ),
    (
        "gc_background=8,gc_idle_us=200,schedule=preemptive",
        [90_826_240, 509_450_720, 937_600, 71_917_600, 86_080, 0, 1_424, 54, 0, 0, 75, 3_539, 935],
    ),
    (
        "gc_background=8,gc_idle_us=200,gc_unit=channel,stripe=round-robin,schedule=semi-preemptive",
        [118_775_360, 404_753_280, 17_338_240, 84_276_800, 61_440, 0, 1_459, 109, 0, 0, 0, 3_603, 935],
    ),
    (
        "write_cache=volatile,gc_overlap=yes,gc_reserve=7,schedule=semi-preemptive",
        [101_760_960, 441_858_880, 18_551_040, 65_748_160, 67_520, 0, 1_490, 54, 0, 0, 0, 3_664, 934],
    ),
    (
        "write_cache=volatile,gc_overlap=yes,gc_reserve=7,schedule=non-preemptive",
        [
            2_332_850_880,
            1_922_777_920,
            2_271_436_800,
            39_657_600,
            665_600,
            0,
            5_521,
            117,
            0,
            0,
            0,
            8_350,
            935,
        ],
    ),
    (
        "gc_overlap=yes,gc_reserve=7,gc_unit=channel,schedule=preemptive",
        [92_620_960, 484_949_760, 180_480, 74_442_880, 82_720, 0, 1_391, 105, 0, 0, 79, 3_539, 935],
    ),
    (
        "write_buffer=64KiB,gc_overlap=yes,gc_reserve=7",
        [
            259_945_920,
            3_752_757_760,
            181_082_880,
            52_471_040,
            216_000,
            3_292_909_440,
            1_884,
            56,
            0,
            0,
            0,
            4_642,
            935,
        ],
    ),
    (
        "urgent_us=500,schedule=semi-preemptive",
        [526_688_640, 500_041_280, 418_820_480, 88_983_360, 181_120, 0, 963, 42, 0, 0, 0, 3_039, 935],
    ),
    (
        "transfer_us=20,planes=1",
        [106_380_000, 3_323_420_000, 17_480_000, 72_400_000, 480_000, 0, 1_471, 104, 0, 0, 0, 5_996, 462],
    ),
    (
        "suspend_us=5,schedule=preemptive",
        [86_211_120, 619_739_560, 0, 68_766_480, 184_920, 0, 963, 42, 0, 0, 66, 2_977, 935],
    ),
    (
        "wear_leveling=static,wear_gap=2",
        [101_256_960, 1_199_819_840, 9_425_600, 74_279_680, 142_080, 0, 1_246, 45, 0, 0, 0, 3_282, 935],
    ),
    (
        "wear_leveling=dynamic",
        [101_772_480, 1_125_776_960, 12_109_120, 72_187_520, 131_840, 0, 1_124, 43, 0, 0, 0, 3_168, 935],
    ),
    (
        "bad_blocks=4%",
        [97_865_280, 1_274_714_560, 6_650_240, 73_775_040, 116_480, 0, 1_388, 48, 0, 0, 0, 3_513, 935],
    ),
    ("in_place=yes,planes=1", [250_727_360, 0, 0, 224_397_760, 69_760, 0, 0, 0, 0, 0, 0, 3_523, 0]),
    (
        "queue_depth=4",
        [125_458_880, 607_795_840, 46_738_880, 56_890_240, 106_240, 0, 1_116, 43, 0, 0, 0, 3_343, 935],
    ),
    (
        "read_latency_us=3,write_latency_us=2,read_command_us=1,write_command_us=1,read_page_us=1,write_page_us=1",
        [147_816_604, 1_094_437_983, 51_810_037, 73_747_013, 76_923, 0, 1_124, 43, 0, 0, 0, 3_198, 935],
    ),
    (
        "share_pages=4",
        [101_772_480, 1_125_776_960, 12_109_120, 72_187_520, 131_840, 0, 1_124, 43, 0, 0, 0, 3_168, 935],
    ),
];

#[test]
fn answer_times_have_not_changed() {
    let now: Vec<(&str, [u64; 13])> =
        ANSWERS.iter().map(|(options, _)| (*options, answers(options))).collect();
    assert_eq!(now, ANSWERS);
}

/// The rule: settling waits for the host's writes to be programmed, and for nothing else.
#[test]
fn a_drive_with_an_empty_buffer_is_settled() {
    let mut drive = SimDrive::new(small("gc_background=8,gc_idle_us=10000"), 7, false).unwrap();
    let mut completions = Vec::new();
    let perform = |drive: &mut SimDrive, completions: &mut Vec<_>| {
        drive.submit(Command { tag: Tag(0), operation: Operation::write(Lpn(0), 1) }).unwrap();
        while completions.is_empty() {
            drive.wait(None, completions);
        }
        completions.clear();
    };
    perform(&mut drive, &mut completions);
    drive.settle();
    // The program of the write has ended, and settling has not waited for the collection that begins 10 ms
    // later.
    let settled = drive.now();
    assert!(settled >= drive.config().program && settled < drive.config().gc_idle, "{settled:?}");
    drive.settle();
    assert_eq!(drive.now(), settled);
}
