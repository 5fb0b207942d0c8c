//! Tests of every trace format: a sample by the format's definition, skipped and refused lines, writing and
//! reading back, and arbitrary bytes.

use fulgurite_base::{Nanos, Spec};
use fulgurite_workload::Op;
use fulgurite_workload::trace::{
    Format, FormatRow, Line, ReaderState, Record, Shape, Trace, TraceError, TraceOptions, TraceReader,
    TraceWriter, Unit, Writer, write_oracle_general,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::sync::Arc;

fn read(spec: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    let (format, options) = Format::parse(spec).unwrap();
    read_with(format, options, bytes)
}

fn read_with(format: Format, options: TraceOptions, bytes: &[u8]) -> Result<Trace, TraceError> {
    Trace::read(TraceReader::new("file", Cursor::new(bytes.to_vec()), Some(format), options)?)
}

fn record(at: u64, op: Op, start: u64, length: u64) -> Record {
    Record::new(Nanos(at), op, start, length)
}

fn without_volumes(trace: &Trace) -> Vec<Record> {
    trace.records().iter().map(|record| Record { volume: 0, ..*record }).collect()
}

fn volumes_of(trace: &Trace) -> Vec<u32> {
    volumes_of_records(trace.records())
}

fn volumes_of_records(records: &[Record]) -> Vec<u32> {
    records.iter().map(|record| record.volume).collect()
}

fn has_volumes(format: Format) -> bool {
    format.options().iter().any(|option| option.key == "volume")
}

const R: Op = Op::Read;
const W: Op = Op::Write;
const T: Op = Op::Trim;

#[test]
fn samples_are_read_by_definition() {
    let samples: &[(&str, &str, &[Record], &[u32])] = &[
        (
            "msr",
            "128166372003061629,hm,0,Read,383496192,32768,413\n128166372013061629,hm,1,Write,512,4096,1\n",
            &[record(0, R, 383_496_192, 32_768), record(1_000_000_000, W, 512, 4_096)],
            &[1, 2],
        ),
        (
            "spc",
            "0,21741712,24576,R,0.000774\n1,8,512,w,1.5,extra\n",
            &[record(0, R, 21_741_712 * 512, 24_576), record(1_499_226_000, W, 4_096, 512)],
            &[1, 2],
        ),
        (
            "disksim",
            "0.5 0 2400 16 1\n2 0 8 1 4\n",
            &[record(0, R, 2400 * 512, 8192), record(1_500_000, W, 4096, 512)],
            &[1, 1],
        ),
        (
            "disksim:time_unit=ns",
            "0 0 8 1 1\n97900000 0 9 1 0\n",
            &[record(0, R, 4096, 512), record(97_900_000, W, 4608, 512)],
            &[1, 1],
        ),
        (
            "alibaba",
            "0,R,126703644672,4096,1577808000000626\n0,W,0,512,1577808000000726\n",
            &[record(0, R, 126_703_644_672, 4096), record(100_000, W, 0, 512)],
            &[1, 1],
        ),
        (
            "tencent",
            "1538323200,12910952,128,0,1063\n1538323200,0,1,1,1063\n1538323201,0,1,1,1063\n",
            &[record(0, R, 12_910_952 * 512, 65_536), record(0, W, 0, 512), record(1_000_000_000, W, 0, 512)],
            &[1, 1, 1],
        ),
        (
            "tencent:spread=yes",
            "1538323200,0,1,0,1\n1538323200,1,1,1,1\n1538323201,2,1,1,1\n",
            &[record(0, R, 0, 512), record(1_000, W, 512, 512), record(1_000_000_000, W, 1024, 512)],
            &[1, 1, 1],
        ),
        (
            // All three times are the last second that fits in 64 bits of nanoseconds.
            "tencent:spread=yes",
            "18446744073,0,1,0,1\n18446744073,1,1,1,1\n18446744073,2,1,1,1\n",
            &[record(0, R, 0, 512), record(1_000, W, 512, 512), record(2_000, W, 1024, 512)],
            &[1, 1, 1],
        ),
        (
            "systor",
            "Timestamp,Response,IOType,LUN,Offset,Size\n\
             1455592201.12,0.000331,W,3,1234567168,4096\n1455592201.13,,R,3,0,512\n",
            &[record(0, W, 1_234_567_168, 4096), record(10_000_000, R, 0, 512)],
            &[1, 1],
        ),
        (
            "blkparse",
            "259,0 0 1 0.000000500 1234 A R 2048 + 8 <- (259,1) 0\n259,0 0 2 0.000001000 1234 Q R 2048 + 8 \
             [x]\n259,0 0 3 0.000002000 1234 D R 2048 + 8 [x]\n\
             259,0 0 4 0.000003000 1234 Q WS 8 + 16 [x]\n259,0 0 5 0.000004000 1234 Q DS 0 + 8 [x]\n259,0 0 6 \
             0.000005000 1 Q FN [x]\n\nCPU0 (x):\n Reads Queued: 1, 4KiB\n",
            &[record(0, R, 1 << 20, 4096), record(2_000, W, 4096, 8192), record(3_000, T, 0, 4096)],
            &[1, 1, 1],
        ),
        (
            "fiu",
            "268806142 4892 syslogd 904265560 8 W 6 0 531e779d39964e20a6fb2f2ef0bd3ba4\n\
             270000000 1 (my sh) 100 16 R 6 1 0123456789abcdef0123456789abcdef\n",
            &[record(0, W, 904_265_560 * 512, 4096), record(1_193_858, R, 51_200, 8192)],
            &[1, 2],
        ),
        (
            "fio2",
            "fio version 2 iolog\n/dev/x add\n/dev/x open\n/dev/x read 61440 4096\n/dev/x wait 100\n/dev/x write \
             0 512\n/dev/x trim 512 512\n/dev/x sync\n/dev/x close\n",
            &[record(0, R, 61_440, 4096), record(100_000, W, 0, 512), record(100_000, T, 512, 512)],
            &[1, 1, 1],
        ),
        (
            "fio3",
            "fio version 3 iolog\n0 /tmp/f add\n0 /tmp/f open\n138 /tmp/f read 61440 4096\n238 /tmp/f write 0 512\n",
            &[record(0, R, 61_440, 4096), record(100_000, W, 0, 512)],
            &[1, 1],
        ),
        (
            "mqsim",
            "938513000 4 264719034 16 0\n938828000 4 8 8 1\n",
            &[record(0, W, 264_719_034 * 512, 8192), record(315_000, R, 4096, 4096)],
            &[1, 1],
        ),
        (
            "mqsim:time_unit=ps",
            "1000 0 0 1 1\n5000 0 1 1 0\n",
            &[record(0, R, 0, 512), record(4, W, 512, 512)],
            &[1, 1],
        ),
        (
            "midas",
            "0.146559796 1 0 4096\n0.2 0 3 8192\n0.2 2 0 0\n0.3 3 1 4096\n",
            &[record(0, W, 0, 4096), record(53_440_204, R, 12_288, 8192), record(153_440_204, T, 4096, 4096)],
            &[0, 0, 0],
        ),
        (
            // The file `trace` of tracefs: other events, a command with a space, and a field for the priority.
            "ftrace",
            "# tracer: nop\n#\n\
             kworker/2:1H-198     [002] .....   185.608908: block_rq_issue: 8,16 R 4096 () 98400 + 8 [kworker/2:1H]\n\
             <idle>-0       [002] d.h2.   185.609579: block_rq_complete: 8,16 R () 98400 + 8 [0]\n\
             fio-789     [000] .....  185.709908: block_rq_issue: 259,0 WS 65536 () 64 + 128 none,0,0 |32768| [fio]\n\
             my tool-9   [000] .....  185.809908: block_rq_issue: 259,0 FF 0 (1b 00) 0 + 0 [my tool]\n\
             my tool-9   [000] .....  185.909908: block_rq_issue: 259,0 DS 0 () 8 + 16 [my tool]\n",
            &[
                record(0, R, 98_400 * 512, 4096),
                record(101_000_000, W, 32_768, 65_536),
                record(301_000_000, T, 4096, 8192),
            ],
            &[1, 2, 2],
        ),
        (
            // `perf script`, whose lines have no flags.
            "ftrace",
            "     randread.pl  2522 [000]  6011.824759: block:block_rq_issue: 254,16 R 0 () 7322849 + 16 [r.pl]\n\
             swapper     0 [000]  6011.828913: block:block_rq_complete: 254,16 R () 7322849 + 16 [0]\n\
             swapper 0 [006] 6011.924759: block:block_rq_issue: 254,0 W 12288 () 113019136 + 24 [kworker/u16:3]\n",
            &[record(0, R, 7_322_849 * 512, 8192), record(100_000_000, W, 113_019_136 * 512, 12_288)],
            &[1, 2],
        ),
        (
            // LIRS and libCacheSim, then ARC. The public traces of LIRS were read too, and counted by another
            // program: multi1 has 15,858 requests for 2,606 pages, sprite 133,996 for 7,075; with a fifth of the
            // pages as frames LRU has 8,449 and 10,437 misses, and MIN 6,452 and 7,861.
            "ids",
            "42\n*\n\n7\n42\n64 3 0 5\n",
            &[record(0, R, 42, 1), record(0, R, 7, 1), record(0, R, 42, 1), record(0, R, 64, 3)],
            &[0, 0, 0, 0],
        ),
        (
            // PARDA's sample of 137,979 addresses of `ls` has 29,867 distinct ones, as `sort -u` counts them. The
            // misses of LRU at 64 sizes equal those of PARDA's own histogram.
            "ids",
            "0x7fffc923c998\n0X10\n16\n",
            &[record(0, R, 0x7fff_c923_c998, 1), record(0, R, 16, 1), record(0, R, 16, 1)],
            &[0, 0, 0],
        ),
        (
            "ycsb",
            "***************** properties *****************\n\"workload\"=\"site.ycsb.workloads.CoreWorkload\"\n\
             READ usertable user8517097267634966620 [ <all fields>]\n\
             UPDATE usertable user00017 [ field0=READ usertable user1 ]\nSCAN usertable user5 57 [ <all fields>]\n\
             INSERT other user5 [ field0=x ]\nDELETE usertable user5\n[OVERALL], RunTime(ms), 29\n",
            &[
                record(0, R, 8_517_097_267_634_966_620, 1),
                record(0, W, 17, 1),
                record(0, R, 5, 1),
                record(0, W, 5, 1),
                record(0, T, 5, 1),
            ],
            &[1, 1, 1, 2, 1],
        ),
        (
            // A time of zero between two others is clamped, and later times are unchanged.
            "msr",
            "128166372003061629,hm,0,Read,0,512,1\n0,hm,0,Read,512,512,1\n128166372003061639,hm,0,Read,0,512,1\n",
            &[record(0, R, 0, 512), record(0, R, 512, 512), record(1_000, R, 0, 512)],
            &[1, 1, 1],
        ),
        ("msr:volume=hm.1", "1,hm,0,Read,0,512,1\n2,hm,1,Write,512,512,1\n", &[record(0, W, 512, 512)], &[1]),
    ];
    for (spec, text, expected, volumes) in samples {
        let trace = read(spec, text.as_bytes()).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(without_volumes(&trace), *expected, "{spec}");
        assert_eq!(volumes_of(&trace), *volumes, "{spec}");
        // The content alone selects the format, unless the format is ambiguous.
        let told =
            TraceReader::new("x", Cursor::new(text.as_bytes().to_vec()), None, TraceOptions::default());
        let name = spec.split(':').next().unwrap();
        match told {
            Ok(reader) => assert_eq!(reader.format().name(), name),
            Err(error) => assert!(["disksim", "mqsim", "tencent", "ids"].contains(&name), "{spec}: {error}"),
        }
    }
}

/// The rule: two requests are to the same page exactly if they are to the same volume and the same place in it,
/// whatever the addresses are and whichever volume comes first.
#[test]
fn pages_of_different_volumes_are_different_pages() {
    // Sector 34359738368 is at 16 TiB, where a second volume would begin if volumes had fixed places.
    for (format, text) in [
        (
            "fiu",
            "0 1 x 34359738368 1 R 9 0 m\n1 1 x 0 1 R 9 1 m\n2 1 x 0 1 R 9 0 m\n3 1 x 34359738368 1 R 9 1 m\n",
        ),
        ("spc", "0,34359738368,512,R,0\n1,0,512,R,1\n0,0,512,R,2\n1,34359738368,512,R,3\n"),
        ("disksim", "0 0 34359738368 1 1\n1 1 0 1 1\n2 0 0 1 1\n3 1 34359738368 1 1\n"),
        ("mqsim", "0 0 34359738368 1 1\n1 1 0 1 1\n2 0 0 1 1\n3 1 34359738368 1 1\n"),
        ("tencent", "0,34359738368,1,0,7\n1,0,1,0,8\n2,0,1,0,7\n3,34359738368,1,0,8\n"),
        (
            "msr",
            "0,a,0,Read,17592186044416,512,0\n1,a,1,Read,0,512,0\n2,a,0,Read,0,512,0\n\
             3,a,1,Read,17592186044416,512,0\n",
        ),
        ("alibaba", "0,R,17592186044416,512,0\n1,R,0,512,1\n0,R,0,512,2\n1,R,17592186044416,512,3\n"),
        ("systor", "0,,R,0,17592186044416,512\n1,,R,1,0,512\n2,,R,0,0,512\n3,,R,1,17592186044416,512\n"),
        (
            "blkparse",
            "9,0 0 0 0.0 1 Q R 34359738368 + 1\n9,1 0 0 1.0 1 Q R 0 + 1\n9,0 0 0 2.0 1 Q R 0 + 1\n\
             9,1 0 0 3.0 1 Q R 34359738368 + 1\n",
        ),
        (
            "fio2",
            "fio version 2 iolog\na read 17592186044416 512\nb read 0 512\na read 0 512\nb read 17592186044416 512\n",
        ),
        (
            "fio3",
            "fio version 3 iolog\n0 a read 17592186044416 512\n1 b read 0 512\n2 a read 0 512\n\
             3 b read 17592186044416 512\n",
        ),
    ] {
        // Each place is requested twice.
        let header = text
            .lines()
            .next()
            .filter(|line| line.starts_with("fio"))
            .map_or("", |_| text.split_inclusive('\n').next().unwrap());
        let twice = format!("{text}{}", &text[header.len()..]);
        let open = |text: &str| {
            let (format, options) = Format::from_spec(Spec::parse(format).unwrap()).unwrap();
            TraceReader::new("file", Cursor::new(text.to_owned()), Some(format), options).unwrap()
        };
        let trace = Trace::read(open(&twice)).unwrap();
        assert_eq!(volumes_of(&trace), [1, 2, 1, 2, 1, 2, 1, 2], "{format}");
        let pages = |requests: &[fulgurite_workload::Request]| -> Vec<u64> {
            requests.iter().map(|request| request.page).collect()
        };
        let summary = trace.summary(4096).unwrap();
        assert_eq!((summary.footprint_pages, summary.reuse_share), (4, 0.5), "{format}");
        let dense = trace.page_requests(4096).unwrap();
        assert_eq!(pages(dense.requests()), [1, 2, 0, 3, 1, 2, 0, 3], "{format}");
        let streamed: Vec<_> = open(&twice).page_requests(4096).unwrap().map(Result::unwrap).collect();
        let flat: Vec<u64> = open(&twice).in_one_space().map(|record| record.unwrap().start / 4096).collect();
        for numbers in [pages(&streamed), pages(trace.pages_in_place(4096).unwrap().requests()), flat] {
            assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), 4, "{format}");
            assert_eq!(numbers[..4], numbers[4..], "{format}");
        }
    }
}

#[test]
fn binary_samples_are_read_by_definition() {
    let first = |op: u16, length: u32, lbn: u64, at: u64| {
        let mut bytes = Vec::new();
        bytes.extend(7u32.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(op.to_le_bytes());
        bytes.extend(0x100u16.to_le_bytes());
        bytes.extend(lbn.to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes
    };
    let second = |op: u16, length: u32, lbn: u64, at: u64| {
        let mut bytes = Vec::new();
        bytes.extend(op.to_le_bytes());
        bytes.extend(0x200u16.to_le_bytes());
        bytes.extend(7u32.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(lbn.to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes.extend(99u64.to_le_bytes());
        bytes
    };
    let expected = [record(0, R, 4096, 512), record(5_000, W, 0, 8192)];
    let one = [first(0x28, 512, 8, 10), first(0x12, 0, 0, 11), first(0x2a, 8192, 0, 15)].concat();
    let two = [second(0x28, 512, 8, 10), second(0x2a, 8192, 0, 15)].concat();
    assert_eq!(read("vscsi", &one).unwrap().records(), expected);
    assert_eq!(read("vscsi", &two).unwrap().records(), expected);
    assert_eq!(read("vscsi", &one).unwrap().skipped()[0].count, 1);
    let sentence = |bytes: &[u8]| read("vscsi", bytes).unwrap_err().to_string();
    assert_eq!(sentence(&one[..40]), "file: the last record has 8 of 32 bytes");
    assert_eq!(
        sentence(b"nonsense nonsense nonsense nonsense"),
        "file: its first record is of neither version 1 nor version 2 of vscsi"
    );
    assert_eq!(
        sentence(&first(0x28, 512, u64::MAX, 0)),
        "file: record 1: sector 18446744073709551615 is out of range"
    );

    let oracle = |time: u32, object: u64, size: u32| {
        let mut bytes = Vec::new();
        bytes.extend(time.to_le_bytes());
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
        bytes
    };
    let bytes = [oracle(5, 3, 4096), oracle(6, 0, 512)].concat();
    let expected = [record(0, R, 1536, 4096), record(1_000_000_000, R, 0, 512)];
    assert_eq!(read("oracle-general", &bytes).unwrap().records(), expected);
    let many: Vec<u8> = (0..10_000).flat_map(|object| oracle(1, object, 512)).collect();
    let trace = read("oracle-general:write_share=30%", &many).unwrap();
    let writes = trace.records().iter().filter(|record| record.op == W).count();
    assert!((2_800..3_200).contains(&writes), "{writes}");
}

/// Returns a record of blktrace: version 7 in 48 bytes, or version 8 in 64 bytes, with `data` behind it.
fn blktrace(is_big: bool, version: u32, numbers: [u64; 5], data: &[u8]) -> Vec<u8> {
    let [at, sector, length, action, device] = numbers;
    let mut bytes = Vec::new();
    let mut put = |number: u64, count: usize| {
        let all = number.to_be_bytes();
        let part = all[8 - count..].iter().copied();
        if is_big { bytes.extend(part) } else { bytes.extend(part.rev()) }
    };
    put(u64::from(0x6561_7400 | version), 4);
    put(1, 4);
    put(at, 8);
    put(sector, 8);
    put(length, 4);
    match version {
        7 => [(action, 4), (99, 4)],
        _ => [(99, 4), (action, 8)],
    }
    .into_iter()
    .for_each(|(number, count)| put(number, count));
    put(device, 4);
    put(3, 4);
    put(0, 2);
    put(data.len() as u64, 2);
    bytes.extend(vec![0; if version == 7 { 0 } else { 12 }]);
    bytes.extend(data);
    bytes
}

/// The rule: records of both versions and both byte orders are read; a request counts once, by Q or D; data behind a
/// record are passed over, whatever they contain.
#[test]
fn blktrace_is_read_by_definition() {
    const READ: u64 = 1 << 16;
    const WRITE: u64 = 2 << 16;
    let (queued, issued, sda) = (1 << 20 | 1, 1 << 22 | 7, 8 << 20);
    let md = 9 << 20 | 1;
    for (is_big, version) in [(false, 7), (true, 7), (false, 8), (true, 8)] {
        let event = |numbers, data: &[u8]| blktrace(is_big, version, numbers, data);
        let bytes = [
            // The name of a process, before the first request.
            event([5, 0, 0, 1 << 26, 0], b"postgres\0"),
            event([1_000, 8, 4096, queued | READ, sda], &[]),
            // Another action, and the same request again.
            event([1_500, 8, 4096, 12 | 1 << 20 | READ, sda], &[]),
            event([2_000, 8, 4096, issued | READ, sda], &[7; 300]),
            // Of md there are only events Q; this one belongs to a control group, whose number follows.
            event([3_000, 16, 8192, queued | 1 << 8 | WRITE, md], &[1; 8]),
            // A discard is a write too. A flush has no data. A command that is passed on has no sector.
            event([4_000, 0, 1 << 20, queued | WRITE | 1 << 29, sda], &[]),
            event([5_000, 0, 0, queued | 1 << 18, sda], &[]),
            event([6_000, 0, 512, queued | READ | 1 << 25, sda], &[]),
            // A great sector.
            event([7_000, 1 << 40, 512, queued | WRITE, sda], &[]),
        ]
        .concat();
        let trace = read("blktrace", &bytes).unwrap_or_else(|error| panic!("{is_big} {version}: {error}"));
        let expected = [
            record(0, R, 4096, 4096),
            record(2_000, W, 8192, 8192),
            record(3_000, T, 0, 1 << 20),
            record(6_000, W, 1 << 49, 512),
        ];
        assert_eq!(without_volumes(&trace), expected, "{is_big} {version}");
        assert_eq!(volumes_of(&trace), [1, 2, 1, 1]);
        assert_eq!(trace.volumes().iter().map(|name| &**name).collect::<Vec<_>>(), [b"8,0", b"9,1"]);
        let counts: Vec<u64> = trace.skipped().iter().map(|skipped| skipped.count).collect();
        assert_eq!(counts, [1, 1, 2], "{:?}", trace.skipped());
        let told = TraceReader::new("x", Cursor::new(bytes.clone()), None, TraceOptions::default()).unwrap();
        assert_eq!(told.format(), Format::BLKTRACE);
        assert_eq!(read("blktrace:volume=9:1", &bytes).unwrap().records().len(), 1);
        let cut = read("blktrace", &bytes[..bytes.len() - 1]).unwrap_err().to_string();
        assert!(cut.contains("the last record has"), "{cut}");
    }
    let zone = 1u64 << (16 + 17);
    let reset = blktrace(false, 8, [0, 0, 0, queued | WRITE | zone, sda], &[]);
    let write = blktrace(false, 8, [0, 0, 512, queued | WRITE, sda], &[]);
    let trace = read("blktrace", &[reset, write.clone()].concat()).unwrap();
    assert_eq!((trace.records().len(), trace.skipped()[0].reason), (1, "a command to a zone"));
    let cut = [write.clone(), blktrace(false, 8, [0, 0, 512, queued | WRITE, sda], &[0; 9])].concat();
    let sentence = |bytes: &[u8]| read("blktrace", bytes).unwrap_err().to_string();
    assert_eq!(sentence(&cut[..cut.len() - 4]), "file: the data behind the last record end 4 bytes early");
    assert_eq!(sentence(b"nonsense"), "file: its first bytes are not the magic number of blktrace");
    let mixed = [write, blktrace(false, 7, [0, 0, 512, queued | WRITE, sda], &[0; 16])].concat();
    assert_eq!(sentence(&mixed), "file: record 2: it is of another version than the first record");
}

/// The rule: records of every version of lcs are read by their size, with operations and tenants from version 2 on.
#[test]
fn lcs_is_read_by_definition() {
    let header = |version: u64| {
        let mut header = vec![0u8; 8192];
        header[..8].copy_from_slice(&0x1234_5678_9abc_def0u64.to_le_bytes());
        header[8..16].copy_from_slice(&version.to_le_bytes());
        header[8184..].copy_from_slice(&0x1234_5678_9abc_def0u64.to_le_bytes());
        header
    };
    let request = |version: u64, at: u32, object: u64, size: u64, op: u32, tenant: u32| {
        let mut bytes = [at.to_le_bytes().to_vec(), object.to_le_bytes().to_vec()].concat();
        bytes.extend(&size.to_le_bytes()[..if version < 3 { 4 } else { 8 }]);
        if version > 1 {
            bytes.extend((tenant << 8 | op).to_le_bytes());
        }
        if version > 2 {
            bytes.extend(77u32.to_le_bytes());
        }
        bytes.extend((-1i64).to_le_bytes());
        let features = [0, 0, 0, 0, 1, 2, 4, 8, 16][version as usize];
        bytes.extend(vec![0xff; 4 * features]);
        bytes
    };
    for version in 1..=8 {
        let requests = [(5, 3, 4096, 12, 0), (6, 0, 512, 3, 70_000), (6, 9, 512, 9, 0), (7, 1, 512, 200, 0)];
        let bytes: Vec<u8> = header(version)
            .into_iter()
            .chain(requests.iter().flat_map(|(at, object, size, op, tenant)| {
                request(version, *at, *object, *size, *op, *tenant)
            }))
            .collect();
        let trace = read("lcs", &bytes).unwrap_or_else(|error| panic!("version {version}: {error}"));
        let second = 1_000_000_000;
        let (ops, count) = if version == 1 { ([R, R, R, R], 4) } else { ([R, W, T, R], 3) };
        let places = [(0, 1536, 4096), (second, 0, 512), (second, 4608, 512), (2 * second, 512, 512)];
        let expected = ops.iter().zip(places).map(|(op, (at, start, length))| record(at, *op, start, length));
        assert_eq!(without_volumes(&trace), expected.take(count).collect::<Vec<_>>(), "version {version}");
        assert_eq!(volumes_of(&trace), if version == 1 { vec![0; 4] } else { vec![1, 2, 1] });
        let told = TraceReader::new("x", Cursor::new(bytes.clone()), None, TraceOptions::default()).unwrap();
        assert_eq!(told.format(), Format::LCS);
        let objects = read("lcs:objects=yes", &bytes).unwrap();
        assert_eq!(objects.records()[0].start, 3);
    }
    let sentence = |bytes: &[u8]| read("lcs", bytes).unwrap_err().to_string();
    assert_eq!(sentence(&header(9)), "file: version 9 of lcs is unknown; 1 to 8 are known");
    assert_eq!(sentence(&header(0)), "file: version 0 of lcs is unknown; 1 to 8 are known");
    assert_eq!(sentence(&header(1)[1..]), "file: its first 8192 bytes are not the header of lcs");
    let negative = [header(3), request(3, 0, 0, u64::MAX, 1, 0)].concat();
    assert_eq!(sentence(&negative), "file: record 1: size -1 is negative");
    let far = [header(1), request(1, 0, u64::MAX, 512, 0, 0)].concat();
    assert!(sentence(&far).contains("give lcs:objects=yes"), "{}", sentence(&far));
}

/// The rule: the option `volume` can name every volume of a trace, and a name that selects nothing is refused
/// with the names that the trace has.
#[test]
fn every_volume_can_be_named() {
    let blkparse = "9,0 0 1 0.0 1 Q R 8 + 8\n259,0 0 1 0.1 1 Q R 16 + 8\n";
    let fio2 = "fio version 2 iolog\n/d/a,b read 4096 4096\n/d/a read 8192 4096\n/d/x=1 read 0 4096\n\
        /d/c,x=1 read 512 512\n\"q\" read 1024 512\n";
    let fio3 = "fio version 3 iolog\n0 /d/a,b read 4096 4096\n1 /d/a read 8192 4096\n1 /d/x=1 read 0 4096\n";
    for (spec, text, start) in [
        ("blkparse:volume=9:0", blkparse, 4096),
        (r#"blkparse:volume="9,0""#, blkparse, 4096),
        ("blkparse:volume=259:0,long=read", blkparse, 8192),
        ("blkparse:volume=259,0,long=read", blkparse, 8192),
        ("fio2:long=read,volume=/d/a,b", fio2, 4096),
        (r#"fio2:volume="/d/a,b",long=read"#, fio2, 4096),
        ("fio2:volume=/d/a", fio2, 8192),
        ("fio2:volume=/d/x=1", fio2, 0),
        (r#"fio2:volume="/d/c,x=1""#, fio2, 512),
        (r#"fio2:volume=""q"""#, fio2, 1024),
        (r#"fio3:volume="/d/a,b""#, fio3, 4096),
        ("msr:volume=hm.1", "0,hm,0,Read,0,512,1\n0,hm,1,Read,512,512,1\n", 512),
        ("spc:volume=1", "0,0,512,R,0\n1,1,512,R,0\n", 512),
        (
            "ftrace:volume=8:1",
            "a-1 [0] . 1.0: block_rq_issue: 8,0 R 0 () 8 + 8 [a]\n\
             a-1 [0] . 1.0: block_rq_issue: 8,1 R 0 () 1 + 8 [a]\n",
            512,
        ),
    ] {
        let (format, options) = Format::parse(spec).unwrap_or_else(|error| panic!("{spec}: {error}"));
        let trace = read_with(format, options.clone(), text.as_bytes())
            .unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(trace.records().iter().map(|record| record.start).collect::<Vec<_>>(), [start], "{spec}");
        assert_eq!(trace.skipped()[0].reason, "a request to another volume", "{spec}");
        // The canonical text names the same volume.
        assert_eq!(Format::parse(&format.text(&options)), Ok((format, options)), "{spec}");
    }
    let error = read("blkparse:volume=8:0", blkparse.as_bytes()).unwrap_err().to_string();
    assert!(error.ends_with("; its volumes are 9,0 259,0"), "{error}");
    let error = read("fio2:volume=/d/b", fio2.as_bytes()).unwrap_err().to_string();
    assert!(error.ends_with(r#"; its volumes are /d/a,b /d/a /d/x=1 "/d/c,x=1" ""q"""#), "{error}");
}

/// The rule: of each device, the events of one action are read, and the reader says of which. So a file may
/// have the D events of a disk and the Q events of an md device, which has no others.
#[test]
fn each_device_of_blkparse_has_its_own_action() {
    let disk = "  8,0    0        1     0.000000000   101  D  WS 5000 + 8 [kworker]\n";
    let md = "  9,0    1        1     0.000100000   200  Q   R 1000 + 8 [fio]\n";
    let again = "  8,0    0        1     0.000000000   101  Q  WS 5000 + 8 [kworker]\n";
    let trace = read("blkparse", [disk, md, disk, again, md].concat().as_bytes()).unwrap();
    assert_eq!(volumes_of(&trace), [1, 2, 1, 2]);
    assert_eq!(trace.decided(), "D events of 8,0; Q events of 9,0");
    let skipped = (trace.skipped()[0].reason, trace.skipped()[0].count);
    assert_eq!(skipped, ("an event of a request that is counted already", 1));
    let many: String = (0..20).map(|minor| format!("8,{minor} 0 1 0.0 1 Q R 0 + 8\n")).collect();
    let decided = read("blkparse", many.as_bytes()).unwrap().decided().to_owned();
    assert!(decided.starts_with("Q events of 8,0; ") && decided.ends_with("; and 12 more"), "{decided}");
}

/// The rule: a command to a zone transfers no data, although its letters may include an R or an A.
#[test]
fn commands_to_zones_are_left_out() {
    let event = |rwbs: &str| format!("259,0 1 1 0.0 101 Q {rwbs} 0 + 524288 [blkzone]\n");
    let all: String =
        ["WS", "ZR", "ZRA", "ZO", "ZC", "ZF", "ZA", "FZR", "DE", "RA", "FWFS"].map(event).concat();
    let trace = read("blkparse", all.as_bytes()).unwrap();
    assert_eq!(trace.records().iter().map(|record| record.op).collect::<Vec<_>>(), [W, T, R, W]);
    assert_eq!((trace.skipped()[0].reason, trace.skipped()[0].count), ("a command to a zone", 7));
}

/// The rule: a file called `*.blkparse` is in the format `fiu` if its content is.
#[test]
fn the_traces_of_fiu_are_told_from_blkparse() {
    let fiu = "268806142 4892 syslogd 904265560 8 W 6 0 531e779d39964e20a6fb2f2ef0bd3ba4\n";
    let blkparse = "259,0 0 2 0.000001000 1234 Q R 2048 + 8 [x]\n";
    for (name, text, format) in [
        ("ikki.blkparse", fiu, Format::FIU),
        ("x.blkparse.gz", blkparse, Format::BLKPARSE),
        ("x.blkparse", "nonsense\n", Format::BLKPARSE),
        ("x.fiu", "nonsense\n", Format::FIU),
        ("x", fiu, Format::FIU),
    ] {
        let source = Cursor::new(text.as_bytes());
        let reader = TraceReader::new(name, source, None, TraceOptions::default()).unwrap();
        assert_eq!(reader.format(), format, "{name}");
    }
    assert_eq!(read("fiu:volume=6:0", fiu.as_bytes()).unwrap().records().len(), 1);
    let sentence = read("fiu", b"1 2 3 4\n").unwrap_err().to_string();
    assert!(sentence.contains("a line is time pid process LBA blocks R|W major minor MD5"), "{sentence}");
}

/// The rule: lines that name the columns are left out, in any spelling and as often as they occur, because files
/// with headers are put behind each other.
#[test]
fn headers_are_left_out_wherever_they_are() {
    for (format, columns, value) in [
        ("cloudphysics", "version,time,op,size,lbn", "1,5,28,512,8"),
        ("msr", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", "0,hm,0,Read,4096,512,1"),
        ("spc", "ASU,LBA,Size,Opcode,Timestamp", "0,8,512,R,0"),
        ("alibaba", "device_id,opcode,offset,length,timestamp", "0,R,4096,512,0"),
        ("tencent", "Timestamp,Offset,Size,IOType,VolumeID", "0,8,1,0,7"),
        ("systor", "Timestamp,Response,IOType,LUN,Offset,Size", "0.5,,R,0,4096,512"),
        ("disksim", "time device block blocks flags", "0 0 8 1 1"),
        ("mqsim", "time device sector sectors type", "0 0 8 1 1"),
        ("midas", "time type LBA size", "0.000000000 0 1 512"),
        ("fiu", "ts pid process lba blocks op major minor md5", "0 1 x 8 1 R 9 0 m"),
        ("fio2", "fio version 2 iolog", "f read 4096 512"),
        ("fio3", "fio version 3 iolog", "0 f read 4096 512"),
    ] {
        let is_log = format.starts_with("fio");
        let separator = if columns.contains(',') { "," } else { " " };
        let quoted =
            columns.split(separator).map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(separator);
        let spellings = [
            columns.to_owned(),
            columns.to_lowercase(),
            columns.to_uppercase(),
            quoted,
            format!("# {columns}"),
        ];
        for header in &spellings[..if is_log { 3 } else { 5 }] {
            let text = format!("{header}\n{value}\n\u{feff}{header}\r\n{value}\n{header}\n");
            let trace = read(format, text.as_bytes()).unwrap_or_else(|error| panic!("{format}: {error}"));
            assert_eq!(without_volumes(&trace), [record(0, R, 4096, 512); 2], "{format}");
            assert!(trace.skipped().is_empty(), "{format}: headers are no skipped requests");
        }
        if is_log {
            continue;
        }
        // A line with a value, or with other columns, is no header.
        for wrong in
            [columns.replacen(separator, &format!("{separator}5"), 1), format!("{columns}{separator}more")]
        {
            assert!(read(format, format!("{value}\n{wrong}\n").as_bytes()).is_err(), "{format}: {wrong}");
        }
    }
}

/// The rule: binary numbers are read in each size and order of bytes, and a part of a number is an error.
#[test]
fn binary_ids_have_a_size_and_an_order() {
    for (spec, bytes, page) in [
        ("binary-ids", &[0x98, 0xc9, 0x23, 0xc9, 0xff, 0x7f, 0, 0][..], 0x7fff_c923_c998),
        ("binary-ids:id=u64be", &[0, 0, 0x7f, 0xff, 0xc9, 0x23, 0xc9, 0x98], 0x7fff_c923_c998),
        ("binary-ids:id=u32le", &[0xfe, 1, 2, 0x83], 0x8302_01fe),
        ("binary-ids:id=u32be", &[0x83, 2, 1, 0xfe], 0x8302_01fe),
    ] {
        let trace = read(spec, &bytes.repeat(3)).unwrap();
        assert_eq!(trace.records(), [record(0, R, page, 1); 3], "{spec}");
        let cut = read(spec, &bytes.repeat(3)[1..]).unwrap_err().to_string();
        assert!(cut.contains("the last record has"), "{cut}");
    }
    let written = read("binary-ids:id=u32le,write_share=100%", &[7, 0, 0, 0]).unwrap();
    assert_eq!(written.records(), [record(0, W, 7, 1)]);
}

/// The rule: the groups of a regular expression are the columns, and lines that it does not match are left out.
#[test]
fn a_regular_expression_finds_the_columns() {
    let pattern = r"t=(?<time>\d+),? .*\b(?<op>[rw])@(?<offset>\w+)\+(?<length>\d+) on (?<volume>\S+)";
    let spec = format!("columns:regex=\"{pattern}\",unit=us,offset_unit=512B");
    let text = "start\nt=5, cpu 1: r@8+2 on a\nt=7 w@0x10+1 on b (slow)\n\nend of t=9\n";
    let (format, options) = Format::parse(&spec).unwrap();
    let reader = TraceReader::new("file", Cursor::new(text), Some(format), options).unwrap();
    let trace = Trace::read(reader).unwrap();
    assert_eq!(without_volumes(&trace), [record(0, R, 4096, 1024), record(2_000, W, 8192, 512)]);
    assert_eq!(volumes_of(&trace), [1, 2]);
    let left_out: Vec<_> = trace.skipped().iter().map(|skipped| (skipped.reason, skipped.count)).collect();
    assert_eq!(left_out, [("a line that the regular expression does not match", 2)]);
    for (spec, reason) in [
        (r#"columns:regex="(?<offset>""#, "regex=(?<offset> is wrong:"),
        (r#"columns:regex="(\d+)""#, "has no group (?<offset>…)"),
        (r#"columns:regex="(?<offset>\d+)(?<size>\d)""#, "the group size is unknown; known: time op offset"),
        (r#"columns:regex="(?<offset>\d+)",op=2"#, "op= does not go with regex="),
        (r#"columns:regex="(?<offset>\d+)",header=1"#, "sep= and header= do not go with regex="),
    ] {
        let (format, options) = Format::parse(spec).unwrap();
        let reader = TraceReader::new("file", Cursor::new("12"), Some(format), options).unwrap();
        let error = Trace::read(reader).unwrap_err().to_string();
        assert!(error.contains(reason), "{spec}: {error}");
    }
}

/// The rule: positions may be hexadecimal, as in traces of memory accesses, or any names of objects.
#[test]
fn positions_may_be_hexadecimal_or_names() {
    // The address traces of UCSD, which Caffeine's simulator reads, and those of valgrind's tool lackey.
    let trace = read("columns:op=1,offset=2,sep=space", b"l 0x1fffff50 1\ns 0x1fffff58 2\n").unwrap();
    assert_eq!(trace.records(), [record(0, R, 0x1fff_ff50, 1), record(0, W, 0x1fff_ff58, 1)]);
    let spec = r#"columns:regex="^ (?<op>[LS]) (?<offset>\w+),(?<length>\d+)",hex=yes"#;
    let (format, options) = Format::parse(spec).unwrap();
    let lackey = " L 04222cac,4\n S 0421c7cc,8\nI  04001f0b,2\n";
    let reader = TraceReader::new("file", Cursor::new(lackey), Some(format), options).unwrap();
    let error = Trace::read(reader).unwrap_err().to_string();
    // Lines come without the white space around them.
    assert!(error.contains("no columns request in this file; left out: 3 ×"), "{error}");
    let spec = spec.replace("^ ", "^");
    let trace = read(&spec, b" L 04222cac,4\n S 0421c7cc,8\nI  04001f0b,2\n").unwrap();
    assert_eq!(trace.records(), [record(0, R, 0x0422_2cac, 4), record(0, W, 0x0421_c7cc, 8)]);
    assert!(read("columns:offset=1,hex=yes", b"ab\nxyz\n").unwrap_err().to_string().contains("hexadecimal"));
    // The build cache of Gradle has keys of 128 bits; keys of key-value caches are any texts.
    let keys =
        b"00e2f3ae59b21a9bd8c9b7d1c1c4a2f0\nuser:17/photo\n00e2f3ae59b21a9bd8c9b7d1c1c4a2f1\nuser:17/photo\n";
    let trace = read("columns:offset=1,names=yes,objects=yes", keys).unwrap();
    let pages: Vec<u64> = trace.records().iter().map(|record| record.start).collect();
    assert_eq!(trace.summary(4096).unwrap().footprint_pages, 3);
    assert!(pages[1] == pages[3] && pages[0] != pages[2]);
    let error = read("columns:offset=1,names=yes", keys).unwrap_err().to_string();
    assert!(error.contains("give objects=yes as well"), "{error}");
}

/// The rule: a text of any columns is read, by the numbers or the header names of its columns, and the reader tells
/// how it understood the first requests.
#[test]
fn any_columns_are_read() {
    let expected = [record(0, R, 4096, 512), record(1_000, W, 8192, 1024), record(3_000, T, 0, 512)];
    let by_name =
        "columns:time=at,op=kind,offset=lba,length=n,volume=disk,unit=us,offset_unit=512B,length_unit=512B";
    let semicolons = "n;Kind;\"at\";disk;lba\n1;Read;5;a;8\n2;Write;6;b;16\n1;trim;8.0;a;0\n";
    for (spec, text) in [
        (by_name, semicolons.to_owned()),
        (by_name, semicolons.replace(';', ",").to_uppercase()),
        (by_name, semicolons.replace(';', "\t")),
        (by_name, format!("{semicolons}{}", &semicolons[..semicolons.find('\n').unwrap()])),
        (
            "columns:time=1,op=3,offset=5,length=6,volume=2,unit=us",
            "5 a R x 4096 512\n6 b W x 8192 1024\n8  a\tD x 0 512\n".to_owned(),
        ),
        (
            "columns:time=1,op=3,offset=5,length=6,volume=2,unit=us,sep=comma,header=2,skip=#,write=wrt",
            "1,2,3,4,5,6\n1,2,3,4,5,6\n# 9,9\n5,\"a,1\",1,x,4096,512\n6,b,WRT,x,8192,1024\n\
             8,\"a,1\",D,x,0,512\n"
                .to_owned(),
        ),
        (
            "columns:offset=2,op=1,time=3,length=4,length_unit=512B,unit=us,volume=5",
            "op|offset|t|n|v\nfalse|4096|5|1|a\ntrue|8192|6|2|b\nT|0|8|1|a\n".to_owned(),
        ),
    ] {
        let trace = read(spec, text.as_bytes()).unwrap_or_else(|error| panic!("{spec}: {error}"));
        assert_eq!(
            (without_volumes(&trace), volumes_of(&trace)),
            (expected.to_vec(), vec![1, 2, 1]),
            "{spec}"
        );
        assert!(
            trace.decided().contains(": read of 512 bytes at 4096, time 5000 ns; line "),
            "{}",
            trace.decided()
        );
        let (format, options) = Format::parse(spec).unwrap();
        assert_eq!(Format::parse(&format.text(&options)), Ok((format, options)), "{spec}");
    }
    // Only positions are needed.
    let trace = read("columns:offset=1,offset_unit=4KiB,write_share=100%", b"7\n9\n").unwrap();
    assert_eq!(trace.records(), [record(0, W, 7 * 4096, 4096), record(0, W, 9 * 4096, 4096)]);
    for (spec, text, wrong) in [
        ("columns", "1 2\n", "columns needs offset="),
        ("columns:offset=0", "1 2\n", "offset=0: columns are counted from 1"),
        ("columns:offset=3", "1 2\n", "`1 2` has 2 fields, and offset is in column 3"),
        (
            "columns:offset=lba",
            "time,block\n1,2\n",
            "offset=lba: the header has no such column; it has `time` `block`",
        ),
        ("columns:offset=1,op=2", "1 maybe\n", "operation `maybe` is unknown"),
        ("columns:offset=1,sep=ab", "1 2\n", "sep=ab is no separator"),
        ("columns:offset=1", "1\nx\n", "line 2: offset `x` is not a whole number"),
    ] {
        let error = read(spec, text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(wrong), "{spec}: {error}");
    }
}

/// The rule: a trim has any length. A read or write above 1 GiB is left out and counted, or read, or refused, as
/// the option `long` says.
#[test]
fn requests_have_any_length() {
    const GIB: u64 = 1 << 30;
    // Linux sends discards of up to 4 GiB less a sector.
    let long = 4 * GIB - 512;
    let text = |format: &str| -> Vec<u8> {
        match format {
            "cloudphysics" => format!("1,0,42,{long},8\n1,0,2a,{long},8\n1,0,28,{GIB},0\n").into_bytes(),
            "midas" => format!("0 3 1 {long}\n0 1 1 {long}\n0.000000000 0 0 {GIB}\n").into_bytes(),
            "fio2" => {
                format!("fio version 2 iolog\nf trim 4096 {long}\nf write 4096 {long}\nf read 0 {GIB}\n")
                    .into_bytes()
            }
            "fio3" => format!(
                "fio version 3 iolog\n0 f trim 4096 {long}\n0 f write 4096 {long}\n0 f read 0 {GIB}\n"
            )
            .into_bytes(),
            "blkparse" => {
                let event = |rwbs: &str, sector: u64, bytes: u64| {
                    format!("8,0 0 1 0.0 1 Q {rwbs} {sector} + {} [x]\n", bytes / 512)
                };
                [event("DS", 8, long), event("W", 8, long), event("R", 0, GIB)].concat().into_bytes()
            }
            "vscsi" => [(0x42u16, 8u64, long), (0x2a, 8, long), (0x28, 0, GIB)]
                .into_iter()
                .flat_map(|(op, lbn, length)| {
                    let head =
                        [1u32.to_le_bytes(), (length as u32).to_le_bytes(), 1u32.to_le_bytes()].concat();
                    let kind = [op.to_le_bytes(), 0x100u16.to_le_bytes()].concat();
                    [head, kind, lbn.to_le_bytes().to_vec(), 0u64.to_le_bytes().to_vec()].concat()
                })
                .collect(),
            name => panic!("{name} has no trims"),
        }
    };
    for format in Format::all().iter().filter(|format| has_trims(**format)) {
        let (name, bytes) = (format.name(), text(format.name()));
        let [trim, write, at_most] =
            [record(0, T, 4096, long), record(0, W, 4096, long), record(0, R, 0, GIB)];
        let trace = read(name, &bytes).unwrap();
        assert_eq!(without_volumes(&trace), [trim, at_most], "{name}");
        let skipped: Vec<_> = trace.skipped().iter().map(|skipped| (skipped.reason, skipped.count)).collect();
        assert_eq!(skipped, [("a read or write above 1 GiB or 2^20 pages", 1)], "{name}");
        assert_eq!(
            without_volumes(&read(&format!("{name}:long=read"), &bytes).unwrap()),
            [trim, write, at_most]
        );
        let error = read(&format!("{name}:long=refuse"), &bytes).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "a request of 4294966784 bytes is out of range; at most 1073741824 with long=refuse"
            )
        );
    }
    // All formats with reads and writes only.
    for (name, text) in [
        ("msr", "0,h,0,Read,0,2147483648,1\n0,h,0,Read,0,512,1\n"),
        ("spc", "0,0,2147483648,R,0\n0,0,512,R,0\n"),
        ("disksim", "0 0 0 4194304 1\n0 0 0 1 1\n"),
        ("alibaba", "0,R,0,2147483648,0\n0,R,0,512,0\n"),
        ("tencent", "0,0,4194304,0,0\n0,0,1,0,0\n"),
        ("systor", "0,,R,0,0,2147483648\n0,,R,0,0,512\n"),
        ("mqsim", "0 0 0 4194304 1\n0 0 0 1 1\n"),
    ] {
        let trace = read(name, text.as_bytes()).unwrap();
        assert_eq!(
            (without_volumes(&trace), trace.skipped()[0].count),
            (vec![record(0, R, 0, 512)], 1),
            "{name}"
        );
        assert_eq!(read(&format!("{name}:long=read"), text.as_bytes()).unwrap().records().len(), 2, "{name}");
        assert!(read(&format!("{name}:long=refuse"), text.as_bytes()).is_err(), "{name}");
    }
}

/// The rule: with `objects=yes`, a start is the identity of an object, of 64 bits. Its length has no effect, and
/// two starts are two objects.
#[test]
fn objects_are_identities_without_a_length() {
    let oracle = |object: u64, size: u32| {
        [&[0; 4][..], &object.to_le_bytes(), &size.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
    };
    // Identities of key-value and content traces are hashes.
    let objects = [(1_789_747_252_159_609_575, 0), (7, 2_000_000_000), (u64::MAX - 1, 5), (7, 0)];
    let bytes: Vec<u8> = objects.iter().flat_map(|(object, size)| oracle(*object, *size)).collect();
    let trace = read("oracle-general:objects=yes", &bytes).unwrap();
    let expected: Vec<Record> = objects.iter().map(|(object, _)| record(0, R, *object, 1)).collect();
    assert_eq!((trace.records(), trace.unit()), (&expected[..], Unit::Pages));
    assert_eq!(trace.page_requests(4096).unwrap().distinct_pages(), 3);
    let error = read("oracle-general", &bytes).unwrap_err().to_string();
    assert!(
        error.contains("object 1789747252159609575 is out of range") && error.contains("objects=yes"),
        "{error}"
    );
    // Starts inside one block of 512 bytes, a request of length zero, and one above 1 GiB.
    for (format, text) in [
        ("alibaba", "1,R,100,0,0\n1,R,300,2147483648,0\n1,R,100,1,0\n2,R,100,1,0\n"),
        ("msr", "0,h,1,Read,100,0,0\n0,h,1,Read,300,2147483648,0\n0,h,1,Read,100,1,0\n0,h,2,Read,100,1,0\n"),
        ("systor", "0,,R,1,100,0\n0,,R,1,300,2147483648\n0,,R,1,100,1\n0,,R,2,100,1\n"),
        ("fio2", "fio version 2 iolog\na read 100 0\na read 300 2147483648\na read 100 1\nb read 100 1\n"),
        (
            "fio3",
            "fio version 3 iolog\n0 a read 100 0\n0 a read 300 2147483648\n0 a read 100 1\n0 b read 100 1\n",
        ),
        ("spc", "1,0,0,R,0\n1,1,2147483648,R,0\n1,0,512,R,0\n2,0,512,R,0\n"),
        ("disksim", "0 1 0 0 1\n0 1 1 4194304 1\n0 1 0 1 1\n0 2 0 1 1\n"),
        ("mqsim", "0 1 0 0 1\n0 1 1 4194304 1\n0 1 0 1 1\n0 2 0 1 1\n"),
        ("tencent", "0,0,0,0,1\n0,1,4194304,0,1\n0,0,1,0,1\n0,0,1,0,2\n"),
        (
            "blkparse",
            "8,1 0 1 0.0 1 Q R 0 + 0\n8,1 0 1 0.0 1 Q R 1 + 4194304\n8,1 0 1 0.0 1 Q R 0 + 1\n\
             8,2 0 1 0.0 1 Q R 0 + 1\n",
        ),
    ] {
        let summary = read(&format!("{format}:objects=yes"), text.as_bytes()).unwrap().summary(4096).unwrap();
        assert_eq!((summary.requests, summary.footprint_pages), (4, 3), "{format}");
    }
    for (format, text) in [
        ("cloudphysics", "1,0,28,0,0\n1,0,28,2147483648,1\n1,0,28,512,0\n"),
        ("midas", "0 0 0 0\n0 0 1 2147483648\n0 0 0 512\n0.000000000 0 0 512\n"),
    ] {
        let trace = read(&format!("{format}:objects=yes"), text.as_bytes()).unwrap();
        let summary = trace.summary(4096).unwrap();
        assert_eq!((summary.requests, summary.footprint_pages), (text.lines().count() as u64, 2), "{format}");
    }
}

/// The rule: a trim of more pages than a request can have becomes several requests that cover the same pages.
#[test]
fn a_trim_of_a_whole_address_space_is_divided() {
    let length = 5u64 << 42;
    let text = format!("fio version 2 iolog\nf trim 0 {length}\n");
    let (format, options) = Format::from_spec(Spec::parse("fio2").unwrap()).unwrap();
    let reader = TraceReader::new("file", Cursor::new(text.clone()), Some(format), options).unwrap();
    let streamed: Vec<_> = reader.page_requests(4096).unwrap().map(Result::unwrap).collect();
    let listed = read("fio2", text.as_bytes()).unwrap().page_requests(4096).unwrap();
    assert_eq!((listed.distinct_pages(), listed.pages_requested()), (5 << 30, 5 << 30));
    for requests in [streamed, listed.requests().to_vec()] {
        let mut end = 0;
        for request in &requests {
            assert_eq!((request.op, request.page), (T, end));
            end += u64::from(request.pages);
        }
        assert_eq!((requests.len(), end), (2, 5 << 30));
    }
}

/// Whether the format is written record by record.
fn is_written(format: Format) -> bool {
    let only_read = [
        Format::ORACLE_GENERAL,
        Format::FIU,
        Format::COLUMNS,
        Format::BLKTRACE,
        Format::FTRACE,
        Format::IDS,
        Format::LCS,
        Format::YCSB,
        Format::BINARY_IDS,
    ];
    !only_read.contains(&format)
}

fn has_trims(format: Format) -> bool {
    is_written(format) && kept(format).2
}

#[test]
fn errors_name_the_wrong_field() {
    let cases = [
        ("msr", "1,hm,0,Raed,0,512,1", "line 1: type `Raed` is unknown; Read and Write are known"),
        (
            "msr",
            "1,hm,0",
            "line 1: `1,hm,0` has 3 fields; a line is time,host,disk,type,offset,size,response",
        ),
        (
            "msr",
            "128166372003061629,hm,0,Read,0,512,1\n18446744073709551615,hm,0,Read,512,512,1",
            "line 2: time `18446744073709551615` is out of range; at most 266516952555883266",
        ),
        ("spc", "0,1,512,R", "line 1: `0,1,512,R` has too few fields; a line is ASU,LBA,size,R|W,time"),
        ("spc", "0,1,512,R,x", "line 1: time `x` is not a decimal number, like 12.5"),
        ("spc", "0,1,512,R,1.x", "line 1: time `1.x` is not a decimal number, like 12.5"),
        ("disksim", "0 0 1 1 z", "line 1: flags `z` are not a hexadecimal number, like 1"),
        ("tencent", "1,0,1,2,1", "line 1: type `2` is unknown; 0 is a read, 1 a write"),
        ("mqsim", "1 0 0 1 7", "line 1: type `7` is unknown; 0 is a write, 1 a read"),
        ("blkparse", "hello", "line 1: `hello` does not begin with a device, like 259,0"),
        (
            "fio2",
            "/x read 0 1",
            "line 1: `/x read 0 1` is not the first line of the log, `fio version 2 iolog`",
        ),
        (
            "fio3",
            "fio version 3 iolog\n1 /x raed 0 1",
            "line 2: action `raed` is unknown; known: add open close read write trim sync datasync",
        ),
        ("midas", "0 7 0 1", "line 1: type `7` is unknown; 0 is a read, 1 a write, 3 a trim"),
        (
            "alibaba",
            "1,R,99999999999999999999,1,1",
            "line 1: offset `99999999999999999999` is out of range; at most 18446744073709551615",
        ),
    ];
    for (format, text, sentence) in cases {
        assert_eq!(
            read(format, text.as_bytes()).unwrap_err().to_string(),
            format!("file, {sentence}"),
            "{format}"
        );
    }
    let sentence = |spec: &str| Format::from_spec(Spec::parse(spec).unwrap()).unwrap_err().to_string();
    assert!(sentence("midas:volume=1").contains("unknown option"));
    assert!(sentence("mqsim:time_unit=h").contains("known: ps ns us ms s"));
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.csv");
    tar[257..262].copy_from_slice(b"ustar");
    assert!(read("tencent", &tar).unwrap_err().to_string().contains("unpack it"));
}

/// Returns the properties of a record that a format keeps: the unit of times in nanoseconds, the unit of
/// starts, and whether it keeps trims.
fn kept(format: Format) -> (u64, u64, bool) {
    match format.name() {
        "page-ops" => (u64::MAX, 1, false),
        "cloudphysics" => (1_000_000_000, 512, true),
        "vscsi" => (1_000, 512, true),
        "msr" => (100, 1, false),
        "spc" | "disksim" | "mqsim" => (1, 512, false),
        "alibaba" => (1_000, 1, false),
        "tencent" => (1_000_000_000, 512, false),
        "systor" => (1, 1, false),
        "blkparse" => (1, 512, true),
        "fio2" | "fio3" => (1_000, 1, true),
        "midas" => (1, 4096, true),
        name => panic!("add the properties that {name} keeps of a record"),
    }
}

/// The test defines a user's own format, with a page in each line and only reads.
#[test]
fn a_users_own_format_is_read_and_written() {
    static PAGES: FormatRow = FormatRow {
        name: "bare-pages",
        about: "a page a line",
        unit: Unit::Pages,
        name_parts: &[],
        is_told_by_content: false,
        options: &[],
        shape: Shape::lines(|line, _: &mut ReaderState| {
            let start = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
            let start = start.ok_or_else(|| "this is not a page".to_owned())?;
            Ok(Line::Request(record(0, R, start, 1)))
        }),
        writer: Some(Writer {
            header: "",
            record: |record, _, _, out| {
                out.extend(format!("{}\n", record.start).bytes());
                Ok(())
            },
            volumes: None,
            footer: "",
            loses: &[],
        }),
    };
    let format = Format::new(&PAGES);
    let mut writer = TraceWriter::new(Vec::new(), format, format.unit(), 4096).unwrap();
    writer.write(&record(0, R, 17, 1)).unwrap();
    let (bytes, _) = writer.finish().unwrap();
    let source = Cursor::new([bytes, b"x\n".to_vec()].concat());
    let mut reader = TraceReader::new("file", source, Some(format), TraceOptions::default()).unwrap();
    assert_eq!(reader.next(), Some(Ok(record(0, R, 17, 1))));
    assert_eq!(reader.next().unwrap().unwrap_err().to_string(), "file, line 2: this is not a page");
    assert!(!Format::all().contains(&format));
}

proptest! {
    #[test]
    fn written_records_are_read_back(
        gaps in prop::collection::vec((0u64..3_000_000_000, 0u8..3, 0u64..1 << 30, 1u64..64), 1..60),
    ) {
        for format in Format::all().iter().copied().filter(|format| is_written(*format)) {
            let (tick, unit, knows_trims) = kept(format);
            let mut at = 0;
            let mut records = Vec::new();
            for (gap, op, start, length) in &gaps {
                let below = if tick < 1_000_000_000 { gap % 1_000_000_000 / tick * tick } else { 0 };
                at += gap / 1_000_000_000 * 1_000_000_000 + below;
                let op = [R, W, T][usize::from(*op)];
                let length = if format == Format::PAGE_OPS { 1 } else { length * unit };
                records.push(record(if tick == u64::MAX { 0 } else { at }, op, start * unit, length));
            }
            let mut writer = TraceWriter::new(Vec::new(), format, format.unit(), 4096).unwrap();
            records.iter().for_each(|record| writer.write(record).unwrap());
            let trims = records.iter().filter(|record| record.op == T).count() as u64;
            let lost = if knows_trims || trims == 0 { "nothing" } else { "trims" };
            prop_assert_eq!(writer.lost(), lost, "{}", format.name());
            let (bytes, left_out) = writer.finish().unwrap();
            prop_assert_eq!(left_out, if knows_trims { 0 } else { trims });
            records.retain(|record| knows_trims || record.op != T);
            if records.is_empty() {
                continue;
            }
            let origin = records[0].at;
            records.iter_mut().for_each(|record| record.at = record.at - origin);
            let trace = read(format.name(), &bytes)
                .map_err(|error| TestCaseError::fail(format!("{}: {error}", format.name())))?;
            prop_assert_eq!(without_volumes(&trace), &records[..], "{}", format.name());
        }
    }

    /// The rule: the writer reports a loss exactly if reading the written trace back gives other records.
    #[test]
    fn losses_are_reported(
        units in (0usize..4, 0usize..3, 0usize..3),
        picks in prop::collection::vec((0u64..50, any::<bool>(), 0u64..1000, 1u64..9), 1..6),
    ) {
        let (time, start_unit, length_unit) =
            ([1, 100, 1_000, 1_000_000_000][units.0], [1, 512, 4096][units.1], [1, 512, 4096][units.2]);
        let mut at = 0;
        let mut records = Vec::new();
        for (gap, is_read, start, length) in picks {
            let op = if is_read { R } else { W };
            records.push(record(at, op, start * start_unit, length * length_unit));
            at += gap * time;
        }
        for format in Format::all().iter().copied().filter(|format| is_written(*format)) {
            let mut writer = TraceWriter::new(Vec::new(), format, format.unit(), 4096).unwrap();
            records.iter().for_each(|record| writer.write(record).unwrap());
            let lost = writer.lost();
            let (bytes, _) = writer.finish().unwrap();
            let trace = read(format.name(), &bytes)
                .map_err(|error| TestCaseError::fail(format!("{}: {error}", format.name())))?;
            prop_assert_eq!(without_volumes(&trace) == records, lost == "nothing", "{}: {}", format.name(), lost);
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        for format in Format::all().iter().copied().map(Some).chain([None]) {
            if let Ok(reader) = TraceReader::new("file", Cursor::new(bytes.clone()), format, TraceOptions::default()) {
                reader.for_each(drop);
            }
        }
    }

    /// The text consists of digits and separators, which reach more code of the parsers than arbitrary bytes.
    #[test]
    fn no_line_makes_a_reader_panic(text in "[0-9RW,. +QDaefio/\n]{0,300}") {
        for format in Format::all() {
            let options = TraceOptions::default();
            if let Ok(reader) = TraceReader::new("file", Cursor::new(text.clone()), Some(*format), options) {
                reader.for_each(drop);
            }
        }
    }
}

#[test]
fn memory_does_not_grow_with_the_unpacked_size() {
    // A gigabyte of one byte value is packed into a megabyte. Lines and names have greatest lengths, so the
    // reader refuses it before its memory grows.
    let packed = zstd::encode_all(std::io::repeat(b'7').take(1 << 30), 1).unwrap();
    let outcome = TraceReader::new("file", Cursor::new(packed), Some(Format::SPC), TraceOptions::default())
        .and_then(Trace::read);
    assert!(outcome.unwrap_err().to_string().contains("longer than 65536 bytes"));
    let name = "x".repeat(300);
    let sentence =
        read("fio3", format!("fio version 3 iolog\n0 {name} read 0 1\n").as_bytes()).unwrap_err().to_string();
    assert!(sentence.contains("more than 255 bytes"), "{sentence}");
}

#[test]
fn oracle_general_has_the_next_access() {
    let records = [record(0, R, 512, 512), record(0, W, 1024, 4096), record(2_500_000_000, R, 512, 512)];
    let mut bytes = Vec::new();
    write_oracle_general(&records, &mut bytes).unwrap();
    let next = |index: usize| i64::from_le_bytes(bytes[24 * index + 16..][..8].try_into().unwrap());
    assert_eq!([next(0), next(1), next(2)], [2, -1, -1]);
    let read = read("oracle-general", &bytes).unwrap();
    let expected = [record(0, R, 512, 512), record(0, R, 1024, 4096), record(2_000_000_000, R, 512, 512)];
    assert_eq!(read.records(), expected);
}

#[test]
fn a_request_that_ends_inside_a_page_becomes_whole_pages() {
    let lost = |start, length| {
        let mut writer = TraceWriter::new(Vec::new(), Format::PAGE_OPS, Unit::Bytes, 4096).unwrap();
        writer.write(&record(0, R, start, length)).unwrap();
        writer.lost()
    };
    assert_eq!(
        [lost(8192, 4096), lost(8192, 100), lost(100, 3996)],
        ["nothing", "parts of pages", "parts of pages"]
    );
}

/// The rule: volumes are written, with their names if the format can hold them. A format without volumes places
/// them side by side and reports that they are lost.
#[test]
fn volumes_are_written_or_reported_as_lost() {
    // The second volume is also beyond 16 TiB.
    let places = [(1, 0), (2, 0), (1, 4096), (3, 0), (2, 1 << 44), (3, 4096), (1, 0)];
    let records: Vec<Record> = (0u64..)
        .zip(places)
        .map(|(second, (volume, start))| Record { volume, ..record(second * 1_000_000_000, R, start, 4096) })
        .collect();
    let names = |of: &[&str]| -> Vec<Arc<[u8]>> { of.iter().map(|name| name.as_bytes().into()).collect() };
    for (own, other) in [
        (["hm.1", "hm.0", "a.b.7"], ["9,0", "x", "1"]),
        (["7", "0", "18446744073709551615"], ["hm.1", "0", "a b"]),
        (["9,0", "8,1", "259,0"], ["0", "8,0", "hm.1"]),
        (["/d/a,b", "/d/a", "trace"], ["a b", "trace", ""]),
    ] {
        for format in Format::all().iter().copied().filter(|format| is_written(*format)) {
            for (given, is_own) in [(names(&own), true), (names(&other), false), (Vec::new(), false)] {
                let unit = if format.unit() == Unit::Pages { Unit::Bytes } else { format.unit() };
                let mut writer = TraceWriter::new(Vec::new(), format, unit, 4096).unwrap();
                writer.add_volumes(&given);
                records.iter().for_each(|record| writer.write(record).unwrap());
                let lost = writer.lost();
                let (bytes, left_out) = writer.finish().unwrap();
                let trace = read(format.name(), &bytes).unwrap();
                assert_eq!((left_out, trace.records().len()), (0, 7), "{format:?}");
                let found = trace.summary(4096).unwrap();
                assert_eq!((found.footprint_pages, found.requests), (6, 7), "{format:?} {given:?}");
                if !has_volumes(format) {
                    assert!(lost.ends_with("volumes") && !lost.contains("names"), "{format:?}: {lost}");
                    continue;
                }
                assert_eq!(volumes_of(&trace), volumes_of_records(&records), "{format:?} {given:?}");
                let starts =
                    |records: &[Record]| records.iter().map(|record| record.start).collect::<Vec<_>>();
                assert_eq!(starts(trace.records()), starts(&records), "{format:?}");
                let is_kept = trace.volumes() == given;
                let expected = if is_kept || given.is_empty() { "nothing" } else { "names of volumes" };
                assert_eq!(lost, expected, "{format:?} {given:?} {:?}", trace.volumes());
                // Every format keeps names of its own form.
                let is_of_format = match format.name() {
                    "msr" => own[0] == "hm.1",
                    "blkparse" => own[0] == "9,0",
                    "fio2" | "fio3" => true,
                    _ => own[0] == "7",
                };
                assert!(!is_own || is_kept == is_of_format, "{format:?} {given:?}");
            }
        }
    }
    let mut bytes = Vec::new();
    write_oracle_general(&records, &mut bytes).unwrap();
    assert_eq!(read("oracle-general", &bytes).unwrap().summary(4096).unwrap().footprint_pages, 6);
}

/// The rule: each file of an I/O log is added and opened before its first request, and closed.
#[test]
fn the_files_of_a_log_are_opened() {
    let written = |format: Format| {
        let mut writer = TraceWriter::new(Vec::new(), format, Unit::Bytes, 4096).unwrap();
        writer.add_volumes(&["a".as_bytes().into(), "b".as_bytes().into()]);
        for (at, volume) in [(0, 1), (1_000, 2), (1_000, 1)] {
            writer.write(&Record { volume, ..record(at, R, 0, 512) }).unwrap();
        }
        String::from_utf8(writer.finish().unwrap().0).unwrap()
    };
    assert_eq!(
        written(Format::FIO2),
        "fio version 2 iolog\na add\na open\na read 0 512\nb add\nb open\nb wait 1\nb read 0 512\na read 0 512\n\
         a close\nb close\n"
    );
    assert_eq!(
        written(Format::FIO3),
        "fio version 3 iolog\n0 a add\n0 a open\n0 a read 0 512\n1 b add\n1 b open\n1 b read 0 512\n1 a read 0 512\n"
    );
}

/// The rule: a request that a format cannot hold is counted, and its kind is among the losses.
#[test]
fn kinds_of_requests_that_are_left_out_are_reported() {
    for format in Format::all().iter().copied().filter(|format| is_written(*format)) {
        let mut writer = TraceWriter::new(Vec::new(), format, format.unit(), 4096).unwrap();
        [R, T, W, T].iter().for_each(|op| writer.write(&record(0, *op, 0, 4096)).unwrap());
        let (lost, left_out) = (writer.lost(), writer.finish().unwrap().1);
        assert_eq!(
            (lost.contains("trims"), left_out == 2),
            (!has_trims(format), !has_trims(format)),
            "{format:?}"
        );
    }
    let mut writer = TraceWriter::new(Vec::new(), Format::VSCSI, Unit::Bytes, 4096).unwrap();
    writer.write(&record(0, T, 0, 1 << 32)).unwrap();
    assert_eq!((writer.lost(), writer.finish().unwrap().1), ("requests of 4 GiB and more".to_owned(), 1));
    let mut writer = TraceWriter::new(Vec::new(), Format::SPC, Unit::Pages, 4096).unwrap();
    writer.write(&record(0, R, 1 << 52, 1)).unwrap();
    assert_eq!((writer.lost(), writer.finish().unwrap().1), ("requests beyond 2^62 bytes".to_owned(), 1));
}

/// The rule: a page whose address in bytes does not fit is skipped, and never written at the address of
/// another page.
#[test]
fn a_page_without_a_byte_address_is_skipped() {
    for format in Format::all().iter().copied().filter(|format| format.unit() == Unit::Bytes) {
        let Ok(mut writer) = TraceWriter::new(Vec::new(), format, Unit::Pages, 4096) else { continue };
        let last = (u64::MAX >> 2) / 4096;
        for page in [1, last, last + 1, 1 << 60, u64::MAX - 1] {
            writer.write(&record(0, R, page, 1)).unwrap();
        }
        let (bytes, left_out) = writer.finish().unwrap();
        assert_eq!(left_out, 3, "{}", format.name());
        let expected = [record(0, R, 4096, 4096), record(0, R, last * 4096, 4096)];
        assert_eq!(without_volumes(&read(format.name(), &bytes).unwrap()), expected, "{}", format.name());
    }
}

#[test]
fn formats_that_cannot_be_written_are_refused() {
    let refused = TraceWriter::new(Vec::new(), Format::ORACLE_GENERAL, Unit::Bytes, 4096).map(drop);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("oracle-general cannot be written record by record; accepted: page-ops ")
    );
}

#[test]
fn reading_many_records_at_a_time_equals_reading_one_by_one() {
    let records: Vec<Record> =
        (0..20_000).map(|at| record(at * 1_000, R, at * at % 9_000 * 512, 512 * (1 + at % 40))).collect();
    let mut bytes = Vec::new();
    write_oracle_general(&records, &mut bytes).unwrap();
    // A record of length zero is skipped in both ways of reading.
    bytes[24 * 7 + 12..24 * 7 + 16].fill(0);
    for spec in [
        "oracle-general",
        "oracle-general:objects=yes",
        "oracle-general:write_share=30%",
        "oracle-general:sort=yes",
    ] {
        let (format, options) = Format::from_spec(Spec::parse(spec).unwrap()).unwrap();
        let open = |bytes: &[u8]| {
            let reader = TraceReader::new("file", Cursor::new(bytes.to_vec()), Some(format), options.clone());
            reader.unwrap().page_requests(4096).unwrap()
        };
        let one_by_one: Vec<_> = open(&bytes).collect::<Result<_, _>>().unwrap();
        for most in [1, 7, 4_096] {
            let (mut stream, mut many) = (open(&bytes), Vec::new());
            while stream.for_some(most, |request| many.push(request)).unwrap() {}
            assert_eq!(many, one_by_one, "{spec}, {most} at a time");
        }
        // Objects have no length, so none of them is left out.
        assert_eq!(one_by_one.len(), if spec.contains("objects") { 20_000 } else { 19_999 });
        if spec.contains("objects") {
            assert!(one_by_one.iter().all(|request| request.pages == 1 && request.page < 9_000));
        }
        // Both ways of reading report an error after the records before it.
        let cut = &bytes[..bytes.len() - 1];
        let error = open(cut).find_map(Result::err).unwrap().to_string();
        let mut stream = open(cut);
        let same = loop {
            if let Err(error) = stream.for_some(1_000, |_| {}) {
                break error.to_string();
            }
        };
        assert_eq!(same, error);
    }
}
