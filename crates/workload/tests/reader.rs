//! Tests of the trace reader on whole files: times, counts, packed files, every error message, and random
//! bytes.

use flate2::{Compression, write::GzEncoder};
use fulgurite_base::Nanos;
use fulgurite_workload::Op;
use fulgurite_workload::trace::{
    Format, Record, Skipped, Trace, TraceError, TraceOptions, TraceReader, open,
};
use lz4_flex::frame::{BlockSize, FrameEncoder, FrameInfo};
use proptest::prelude::*;
use std::io::{Cursor, Write};

const PAGES: &[u8] = b"# a comment\nR 17\nW 3\n\nr 17\n";
const BINARY: &str = "this is binary data; a trace is text, plain or packed with gzip, zstd, xz or lz4";

fn read(bytes: &[u8], format: Option<Format>) -> Result<Trace, TraceError> {
    Trace::read(TraceReader::new("file", Cursor::new(bytes.to_vec()), format, TraceOptions::default())?)
}

fn sentence(bytes: &[u8], format: Option<Format>) -> String {
    read(bytes, format).unwrap_err().to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(bytes).unwrap();
    writer.finish().unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let blocks = FrameInfo::new().block_size(BlockSize::Max64KB);
    let mut encoder = FrameEncoder::with_frame_info(blocks, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Returns a text that is hardly compressible, so that a packed file can be cut inside the text.
fn long_text() -> Vec<u8> {
    let line = |i: u64| format!("R {}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..20_000).map(line).collect::<String>().into_bytes()
}

/// The rule: plain lines, which are parsed many at a time, give the same records as other lines. A line is
/// plain if single spaces separate its fields, so two spaces make a line that is parsed alone.
#[test]
fn plain_lines_give_the_same_records_as_others() {
    let line = |i: u64| {
        let block = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (20 + i % 40);
        let (seconds, kind) = (i / 3 % 200, ["0", "1", "2", "3"][(i % 7 % 4) as usize]);
        // Some lines have a length of zero, some have a decreasing time, and some are blank.
        let size = match i {
            _ if i.is_multiple_of(11) => 0,
            // Longer than a usual read or write.
            _ if i.is_multiple_of(1_009) => 1 << 31,
            _ => 512 * (i % 9 + 1),
        };
        let blank = if i.is_multiple_of(101) { "\n" } else { "" };
        format!("{seconds}.{:09} {kind} {block} {size}\n{blank}", i % 1_000_000_000)
    };
    let plain: String = (0..20_000).map(line).collect();
    let (format, alone) = (Some(Format::MIDAS), plain.replace(' ', "  "));
    let (together, one_by_one) =
        (read(plain.as_bytes(), format).unwrap(), read(alone.as_bytes(), format).unwrap());
    assert_eq!(together.records(), one_by_one.records());
    assert_eq!(together.skipped(), one_by_one.skipped());
    assert_eq!(together.clamped(), one_by_one.clamped());
    assert!(together.clamped() > 10 && together.skipped().len() == 3);
    // An error is reported for the same line, whether or not the lines before it are plain.
    for wrong in [
        "1.000000000 1 4503599627370495 99999",
        "1.000000000 1 x 4096",
        "1.000000000 1 7 18446744073709551616",
    ] {
        let with = |text: &str| text.replacen("\n\n", &format!("\n{wrong}\n"), 50);
        assert_eq!(sentence(with(&plain).as_bytes(), format), sentence(with(&alone).as_bytes(), format));
    }
}

#[test]
fn times_start_at_zero_and_never_decrease() {
    let text = b"version,time,op,size,lbn\n1,9,35,0,0\n1,10,28,512,1\n1,12,2A,1024,2\n1,11,88,512,9\n\
        1,3,42,512,4\n1,13,28,0,9\n1,13,0,,\n1,14,8,512,7\n";
    let trace = read(text, Some(Format::CLOUD_PHYSICS)).unwrap();
    let record =
        |seconds: u64, op, start, length| Record::new(Nanos(seconds * 1_000_000_000), op, start, length);
    assert_eq!(
        trace.records(),
        [
            record(0, Op::Read, 512, 512),
            record(2, Op::Write, 1024, 1024),
            record(2, Op::Read, 9 * 512, 512),
            record(2, Op::Trim, 4 * 512, 512),
            record(4, Op::Read, 7 * 512, 512),
        ]
    );
    assert_eq!(trace.clamped(), 2);
    assert_eq!(
        trace.skipped(),
        [
            Skipped { reason: "a command other than read, write and unmap", count: 2 },
            Skipped { reason: "a request of length zero", count: 1 },
        ]
    );
}

/// The rule: first lines whose times are later than most of those after them are clamped, and not all others.
#[test]
fn a_late_first_line_clamps_only_itself() {
    let lines = |late: &[u64], good: u64, line: fn(u64) -> String| -> String {
        late.iter().copied().chain(1_000..1_000 + good).map(line).collect()
    };
    type LineAt = fn(u64) -> String;
    let formats: [(Format, LineAt); 4] = [
        (Format::MSR, |at| format!("{},h,0,Read,0,512,0\n", 128_166_372_003_061_629 + at * 10_000_000)),
        (Format::SPC, |at| format!("0,0,512,R,{at}\n")),
        (Format::MIDAS, |at| format!("{at}.000000000 0 0 512\n")),
        (Format::CLOUD_PHYSICS, |at| format!("1,{at},28,512,0\n")),
    ];
    for (format, line) in formats {
        for (late, good) in
            [(&[90_000][..], 1_000), (&[90_000, 80_000, 95_000], 1_000), (&[90_000], 3), (&[], 9)]
        {
            let trace = read(lines(late, good, line).as_bytes(), Some(format)).unwrap();
            let seconds: Vec<u64> =
                trace.records().iter().map(|record| record.at.0 / 1_000_000_000).collect();
            let expected: Vec<u64> = late.iter().map(|_| 0).chain(0..good).collect();
            assert_eq!((seconds, trace.clamped()), (expected, late.len() as u64), "{format:?}");
        }
        // A single early line is the odd one, and lines without any order have no late beginning.
        let early = read([line(50), line(7), line(51), line(52)].concat().as_bytes(), Some(format)).unwrap();
        assert_eq!((early.clamped(), early.records()[3].at), (1, Nanos(2_000_000_000)), "{format:?}");
        let falling: String = (0..600).rev().map(line).collect();
        assert_eq!(read(falling.as_bytes(), Some(format)).unwrap().clamped(), 599, "{format:?}");
    }
}

/// The rule: with `sort=yes`, requests come in the order of time, and no time is clamped. Requests of the same
/// time keep their order.
#[test]
fn requests_are_sorted_on_demand() {
    // Two files of a disk each, one behind the other, and a late line at the beginning.
    let line = |at: u64, disk: u64, offset: u64| format!("{at}0000000,h,{disk},Read,{offset},512,0\n");
    let parts = [
        line(5_000, 0, 9),
        (0..999).map(|at| line(10 + at, 0, 7)).collect(),
        (0..999).map(|at| line(10 + at, 1, 8)).collect(),
    ];
    let read = |sort: bool| {
        let options = TraceOptions { sort, ..TraceOptions::default() };
        let source = Cursor::new(parts.concat());
        Trace::read(TraceReader::new("t.msr", source, None, options).unwrap()).unwrap()
    };
    assert_eq!(read(false).clamped(), 1 + 998);
    let sorted = read(true);
    let places: Vec<(u64, u64)> =
        sorted.records().iter().map(|record| (record.at.0 / 1_000_000_000, record.start)).collect();
    let expected: Vec<(u64, u64)> = (0..999).flat_map(|at| [(at, 7), (at, 8)]).chain([(4_990, 9)]).collect();
    assert_eq!((places, sorted.clamped()), (expected, 0));
    let (format, options) = Format::parse("page-ops:sort=yes").unwrap();
    let source = || Cursor::new(&b"R 5\nW 3\nR 4\nnonsense\n"[..]);
    let reader = TraceReader::new("t", source(), Some(format), options.clone()).unwrap();
    assert_eq!(Trace::read(reader).unwrap_err().line, Some(4));
    let none = TraceReader::new("t", Cursor::new(b""), Some(format), options).unwrap();
    assert_eq!(Trace::read(none).unwrap_err().reason, "no page-ops request in this file");
}

/// The rule: members of every packing may follow each other in any order, with zeros between and behind them, and
/// a line may begin in one and end in the next.
#[test]
fn packed_files_have_the_same_records() {
    let expected = read(PAGES, None).unwrap();
    assert_eq!(expected.format(), Format::PAGE_OPS);
    assert_eq!(expected.records().len(), 3);
    let skippable_frame = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
    // `lz4 -l` and `xz` wrote these.
    let old_lz4 = b"\x02\x21\x4c\x18\x1d\0\0\0\xf0\x0c# a comment\nR 17\nW 3\n\nr 17\n".to_vec();
    let of_xz =
        b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F\x02\0!\x01\x16\0\0\0t/\xe5\xa3\x01\0\x1a# a comment\nR 17\nW 3\n\n\
        r 17\n\0\0\xcf%\x9a_u\xbf\xc0\x13\0\x013\x1b\xf7\x19\x88^\x1f\xb6\xf3}\x01\0\0\0\0\x04YZ";
    for packed in [old_lz4, of_xz.to_vec(), [&skippable_frame, &zstd(PAGES)[..]].concat()] {
        assert_eq!(read(&packed, None).unwrap().records(), expected.records());
    }
    let (head, tail) = PAGES.split_at(14); // inside `R 17`
    for (one, pack_head) in PACKINGS {
        assert_eq!(read(&pack_head(PAGES), None).unwrap().records(), expected.records(), "{one}");
        assert_eq!(read(&pack_head(&long_text()), None).unwrap().records().len(), 20_000, "{one}");
        for (other, pack_tail) in PACKINGS {
            for between in [&b""[..], &[0], &[0; 70_000], &skippable_frame] {
                let behind = [&[][..], &[0; 512], &skippable_frame];
                for behind in behind {
                    let packed = [&pack_head(head), between, &pack_tail(tail), behind].concat();
                    let trace = read(&packed, None).unwrap_or_else(|error| panic!("{one} {other}: {error}"));
                    assert_eq!(trace.records(), expected.records(), "{one} {other}");
                }
            }
        }
    }
}

type Pack = fn(&[u8]) -> Vec<u8>;

const PACKINGS: [(&str, Pack); 4] = [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("lz4", lz4)];

#[test]
fn packings_that_are_not_unpacked_are_refused_by_name() {
    for (name, magic) in [
        ("bzip2", &b"BZh91AY&SY\x1b\xa0"[..]),
        ("zip", b"PK\x03\x04\x14\0\0\0"),
        ("7z", b"7z\xbc\xaf\x27\x1c\0\x04"),
        ("compress (.Z)", b"\x1f\x9d\x90R\x40"),
        ("lzip", b"LZIP\x01\x0c"),
        ("rar", b"Rar!\x1a\x07"),
    ] {
        let expected =
            format!("this is {name} data, which is not unpacked; accepted: gzip, zstd, xz, lz4, or - for");
        let alone = sentence(magic, None);
        assert!(alone.starts_with(&format!("file: {expected}")), "{alone}");
        let behind = sentence(&[&gzip(b"R 1\n"), magic].concat(), None);
        assert!(behind.contains(&expected), "{behind}");
    }
}

#[test]
fn a_truncated_file_is_reported_after_its_whole_lines() {
    for (packing, pack) in PACKINGS {
        let whole = pack(&long_text());
        for cut in [whole.len() / 2, whole.len() - 1] {
            let mut reader =
                TraceReader::new("file", Cursor::new(whole[..cut].to_vec()), None, TraceOptions::default())
                    .unwrap();
            let good = reader.by_ref().take_while(Result::is_ok).count();
            assert!(cut < whole.len() - 1 || good > 0);
            assert!(reader.next().is_none(), "the error is the last item");
            let error = read(&whole[..cut], None).unwrap_err();
            assert_eq!(error.line, Some(good as u64 + 1));
            assert_eq!(error.reason, format!("the {packing} data breaks off here; the file is not complete"));
        }
        let head = sentence(&whole[..6], None);
        assert_eq!(
            head,
            format!("file, line 1: the {packing} data breaks off here; the file is not complete")
        );
    }
}

#[test]
fn damage_and_trailing_garbage_are_reported() {
    for (packing, pack) in PACKINGS {
        let mut whole = pack(&long_text());
        let garbage = sentence(&[&whole[..], b"garbage garbage"].concat(), None);
        assert_eq!(
            garbage,
            format!(
                "file, line 20001: the {packing} data cannot be unpacked from here on: other data follows its end"
            )
        );
        let middle = whole.len() / 2;
        whole[middle..middle + 64].fill(0x55);
        let damage = read(&whole, Some(Format::PAGE_OPS)).unwrap_err();
        assert!(damage.line.is_some(), "{damage}");
    }
}

/// The rule: an xz file that asks for much more memory than `xz -9` is refused.
#[test]
fn the_memory_of_a_decoder_is_bounded() {
    let mut options = lzma_rust2::XzOptions::with_preset(1);
    options.lzma_options.dict_size = 1 << 30;
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    writer.write_all(PAGES).unwrap();
    let refused = sentence(&writer.finish().unwrap(), None);
    assert!(refused.contains("the xz data cannot be unpacked from here on: "), "{refused}");
}

#[test]
fn errors_in_lines_name_the_line() {
    let pages = Some(Format::PAGE_OPS);
    let cloudphysics = Some(Format::CLOUD_PHYSICS);
    for (text, format, expected) in [
        ("R 1\n\nX 2\n", pages, "file, line 3: operation `X` is unknown; R and W are known"),
        (
            "R\r\n",
            pages,
            "file, line 1: `R` is not an operation and a page; a line is `R page` or `W page`, like `R 17`",
        ),
        (
            "R 18446744073709551615",
            pages,
            "file, line 1: its end, 18446744073709551615 + 1 pages, is out of range; at most 18446744073709551615",
        ),
        (
            "1,2,28,512,3\n1,2\n",
            None,
            "file, line 2: `1,2` has 2 fields; a line has five: version,time,op,size,lbn",
        ),
        (
            "1,2,2a,1024,36028797018963967",
            cloudphysics,
            "file, line 1: its end, 18446744073709551104 + 1024 bytes, is out of range; at most 18446744073709551615",
        ),
    ] {
        assert_eq!(sentence(text.as_bytes(), format), expected);
    }
    let long = format!("R 1\n# {}\n", "x".repeat(65_536));
    assert_eq!(
        sentence(long.as_bytes(), None),
        "file, line 2: longer than 65536 bytes, the most that a line may have"
    );
}

#[test]
fn files_that_are_not_traces_are_refused() {
    assert_eq!(sentence(b"", None), "file: the file is empty; a trace has at least one request");
    assert_eq!(sentence(b"", Some(Format::PAGE_OPS)), "file: no page-ops request in this file");
    assert_eq!(
        sentence(b"1,2,12,0,0\n1,2,28,0,7\n1,2,0,0,0\n", Some(Format::CLOUD_PHYSICS)),
        "file: no cloudphysics request in this file; left out: \
            2 × a command other than read, write and unmap, 1 × a request of length zero"
    );
    assert_eq!(
        sentence(b"some prose\n", None),
        "file: neither its name nor its first lines tell its format; give one of: page-ops cloudphysics vscsi \
         msr spc disksim alibaba tencent systor blkparse fiu fio2 fio3 mqsim oracle-general midas columns \
         blktrace ftrace ids lcs ycsb binary-ids"
    );
    assert_eq!(sentence(b"\x7fELF\x02\x01\x01\0", None), format!("file: {BINARY}"));
    assert_eq!(sentence(b"\x7fELF\x02\x01\x01\0", Some(Format::PAGE_OPS)), format!("file, line 1: {BINARY}"));
    assert_eq!(sentence(&gzip(b"\0\x01\x02"), None), format!("file: {BINARY}"));
}

#[test]
fn a_file_that_cannot_be_opened_is_reported() {
    let sentence = |path: &str| {
        open(path, None, TraceOptions::default()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(sentence("/no/such.pages").starts_with("/no/such.pages: cannot be opened: "));
    let directory = sentence(env!("CARGO_MANIFEST_DIR"));
    assert!(
        directory.contains("cannot be read: ") || directory.contains("cannot be opened: "),
        "{directory}"
    );
}

proptest! {
    #[test]
    fn noise_never_panics(
        magic in prop::sample::select(vec![
            &b""[..], b"\x1f\x8b", b"\x1f\x8b\x08\0\0\0\0\0\0\0", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0",
            b"\x04\x22\x4d\x18", b"\x50\x2a\x4d\x18", b"R 1\n", b"1,2,28,512,3\n",
        ]),
        noise in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let bytes = [magic, &noise].concat();
        let _ = read(&bytes, None);
        for format in Format::all() {
            let _ = read(&bytes, Some(*format));
            let _ = read(&gzip(&bytes), Some(*format));
        }
    }

    #[test]
    fn noise_in_lines_never_panics(text in "([RWrw#,0-9a-f .-]{0,12}\r?\n?){0,20}") {
        let _ = read(text.as_bytes(), None);
        for format in Format::all() {
            if let Ok(trace) = read(text.as_bytes(), Some(*format)) {
                let pages = trace.page_requests(4096).unwrap();
                let footprint = trace.summary(4096).unwrap().footprint_pages;
                prop_assert_eq!(pages.distinct_pages(), footprint);
                prop_assert!(pages.requests().iter().all(|r| r.page + u64::from(r.pages) <= footprint));
            }
        }
    }
}

/// The rule: a trace in UTF-16, plain or packed, and one with quotes around its fields, are the same trace.
#[test]
fn text_of_spreadsheets_is_read() {
    let text =
        "128166372003061629,hm,0,Read,383496192,32768,413\r\n128166372013061629,hm,1,Write,512,4096,1\r\n";
    let quoted = text.replace(',', "\",\"").replace("\r\n", "\"\r\n\"");
    let quoted = format!("\"{}", quoted.trim_end_matches('"'));
    let utf16: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let packed = gzip(&utf16);
    let read = |bytes: &[u8]| -> Vec<Record> {
        let bytes = Cursor::new(bytes.to_vec());
        let reader = TraceReader::new("x.csv", bytes, None, TraceOptions::default()).unwrap();
        assert_eq!(reader.format(), Format::MSR);
        reader.map(Result::unwrap).collect()
    };
    let expected = read(text.as_bytes());
    assert_eq!(expected.len(), 2);
    for other in [quoted.as_bytes(), &utf16, &packed] {
        assert_eq!(read(other), expected);
    }
}
