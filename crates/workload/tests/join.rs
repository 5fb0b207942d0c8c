//! Several files as one trace.

use fulgurite_base::Nanos;
use fulgurite_workload::trace::{Format, Join, Record, TraceError, TraceOptions, TraceReader};
use proptest::prelude::*;
use std::io::Cursor;

fn reader(name: &str, text: &str) -> (String, TraceReader) {
    let text = Cursor::new(text.to_owned());
    (name.to_owned(), TraceReader::new(name, text, None, TraceOptions::default()).unwrap())
}

/// Joins files of these names and texts, and returns their records and the names of their volumes.
fn joined(join: Join, files: &[(&str, &str)]) -> Result<(Vec<Record>, Vec<String>), TraceError> {
    let readers = files.iter().map(|(name, text)| reader(name, text)).collect();
    let mut whole = TraceReader::join("all", readers, join)?;
    let records = whole.by_ref().collect::<Result<Vec<Record>, TraceError>>()?;
    let name = |name: &std::sync::Arc<[u8]>| String::from_utf8_lossy(name).into_owned();
    Ok((records, whole.volumes().iter().map(name).collect()))
}

/// Returns the time in milliseconds, the volume and the start in sectors of each record.
fn brief(records: &[Record]) -> Vec<(u64, u32, u64)> {
    records.iter().map(|record| (record.at.0 / 1_000_000, record.volume, record.start / 512)).collect()
}

/// Files of the format SPC: the unit, the sector, the size, the operation and the seconds.
const A: &str = "0,8,512,R,10.5\n0,16,512,R,10.7\n1,24,512,W,12.0\n";
const B: &str = "0,80,512,R,10.6\n0,88,512,R,10.7\n";

/// The rule: files are merged by their own clocks, whichever is given first. Requests of one time are in the order
/// of the files, and equal names of volumes are one volume.
#[test]
fn files_are_merged_by_time() {
    let (records, volumes) = joined(Join::Time, &[("b.spc", B), ("a.spc", A)]).unwrap();
    let expected = [(0, 1, 8), (100, 1, 80), (200, 1, 88), (200, 1, 16), (1500, 2, 24)];
    assert_eq!(brief(&records), expected);
    assert_eq!(volumes, ["0", "1"]);
}

/// The rule: with volumes of their own, no two files share a volume, and its name tells the file.
#[test]
fn files_have_volumes_of_their_own() {
    let (records, volumes) = joined(Join::Volumes, &[("a.spc", A), ("b.spc", B)]).unwrap();
    let expected = [(0, 1, 8), (100, 2, 80), (200, 1, 16), (200, 2, 88), (1500, 3, 24)];
    assert_eq!(brief(&records), expected);
    assert_eq!(volumes, ["a.spc/0", "b.spc/0", "a.spc/1"]);
    // Also in a format without volumes.
    let pages = [("a.pages", "R 5\nW 6\n"), ("b.pages", "R 5\n")];
    let (records, volumes) = joined(Join::Volumes, &pages).unwrap();
    let starts: Vec<(u32, u64)> = records.iter().map(|record| (record.volume, record.start)).collect();
    assert_eq!(starts, [(1, 5), (1, 6), (2, 5)]);
    assert_eq!(volumes, ["a.pages", "b.pages"]);
    let (records, volumes) = joined(Join::Time, &pages).unwrap();
    assert!(records.iter().all(|record| record.volume == 0) && volumes.is_empty());
}

/// The rule: in a sequence each file begins when the one before it has ended, whatever its clock says.
#[test]
fn files_follow_each_other() {
    let (records, _) = joined(Join::Sequence, &[("a.spc", A), ("b.spc", B)]).unwrap();
    let expected = [(0, 1, 8), (200, 1, 16), (1500, 2, 24), (1500, 1, 80), (1600, 1, 88)];
    assert_eq!(brief(&records), expected);
}

/// The rule: the clock of MSR, ticks of 100 ns since 1601, does not overflow, and is the same in all files.
#[test]
fn hourly_files_of_msr_keep_their_distance() {
    let first = "128166372003061629,hm,1,Read,512,512,1\n";
    let second = "128166408003061629,hm,1,Write,1024,512,1\n128166408003071629,hm,0,Write,0,512,1\n";
    let (records, volumes) = joined(Join::Time, &[("2.csv", second), ("1.csv", first)]).unwrap();
    let hour = 3_600_000;
    assert_eq!(brief(&records), [(0, 1, 1), (hour, 1, 2), (hour + 1, 2, 0)]);
    assert_eq!(volumes, ["hm.1", "hm.0"]);
}

/// The rule: skipped lines and times that go back are those of all files; a file without a request is none if
/// another has one; and an error names its file and line.
#[test]
fn the_counts_are_those_of_all_files() {
    let skipping =
        |name: &str| (name.to_owned(), reader(name, "0,8,0,R,1.0\n0,8,512,R,2.0\n0,8,512,R,1.0\n").1);
    let readers = vec![skipping("a.spc"), skipping("b.spc"), reader("c.spc", "0,8,0,R,1.0\n")];
    let mut whole = TraceReader::join("all", readers, Join::Time).unwrap();
    assert_eq!(whole.by_ref().map(Result::unwrap).count(), 4);
    assert_eq!((whole.skipped().len(), whole.skipped()[0].count, whole.clamped()), (1, 3, 2));

    let nothing = vec![reader("a.spc", "0,8,0,R,1.0\n"), reader("b.spc", "0,8,0,R,1.0\n")];
    let error = TraceReader::join("all", nothing, Join::Time).unwrap().next().unwrap().unwrap_err();
    assert!(error.to_string().starts_with("all: no spc request in this file; left out: 2 ×"), "{error}");

    let error = joined(Join::Time, &[("a.spc", A), ("b.spc", "0,8,512,R,1.0\n0,8,512,X,2.0\n")]).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("b.spc", Some(2)), "{error}");

    let error = joined(Join::Time, &[("a.spc", A), ("b.pages", "R 5\n")]).unwrap_err();
    assert!(error.to_string().contains("a.spc is spc and b.pages is page-ops"), "{error}");
    assert!(TraceReader::join("all", Vec::new(), Join::Time).is_err());
}

proptest! {
    /// The rule: merging gives the records of a stable sort of all files by time.
    #[test]
    fn merged_files_equal_a_stable_sort(
        files in prop::collection::vec(prop::collection::vec(0u64..2_000, 1..400), 1..5)
    ) {
        let mut expected: Vec<(u64, u64)> = Vec::new();
        let mut readers = Vec::new();
        for (number, gaps) in files.iter().enumerate() {
            let (mut at, mut text) = (number as u64 * 100, String::new());
            for (line, gap) in gaps.iter().enumerate() {
                at += gap / 1_000 * gap;
                let sector = number * 1_000 + line;
                text += &format!("0,{sector},512,R,{}.{:06}\n", at / 1_000_000, at % 1_000_000);
                expected.push((at, sector as u64));
            }
            let source = Cursor::new(text);
            let name = format!("{number}.spc");
            let reader = TraceReader::new(&name, source, Some(Format::SPC), TraceOptions::default()).unwrap();
            readers.push((name, reader));
        }
        expected.sort_by_key(|(at, _)| *at);
        let first = expected[0].0;
        let whole = TraceReader::join("all", readers, Join::Time).unwrap();
        let found: Vec<(u64, u64)> = whole
            .map(Result::unwrap)
            .map(|record| (record.at.0 / 1_000 + first, record.start / 512))
            .collect();
        prop_assert_eq!(found, expected);
    }
}

/// The rule: the page requests of joined files are those of their records.
#[test]
fn joined_files_give_page_requests() {
    let readers = vec![reader("a.spc", A), reader("b.spc", B)];
    let mut stream = TraceReader::join("all", readers, Join::Volumes).unwrap().page_requests(512).unwrap();
    let mut pages = Vec::new();
    while stream.for_some(2, |request| pages.push((request.page, request.at))).unwrap() {}
    assert_eq!(pages.len(), 5);
    assert_eq!((pages[0].1, pages[4].1), (Nanos::ZERO, Nanos(1_500_000_000)));
    assert!(pages[1].0.abs_diff(pages[0].0) > 1 << 20, "volumes lie apart: {pages:?}");
}
