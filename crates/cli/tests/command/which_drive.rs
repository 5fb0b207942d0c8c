//! Tests `advise --require`. Its figures are those of the runs that it names, the headroom ends where a
//! requirement breaks, and the recommended drive is the one that meets the requirements best.

use crate::folder::{Folder, number};
use serde_json::Value;
use std::sync::LazyLock;

/// Two drives that are small enough for a test, and a load that both sustain.
const DRIVES: &str = "--device sata:blocks=20,pages=64,nominal=100GB,p4510:blocks=16,pages=32";
const LOAD: &str = "financial-like --ops 5K";

/// The rows of a comparison that several tests look at.
static COMPARED: LazyLock<Vec<Value>> =
    LazyLock::new(|| Folder::new().rows(&format!("advise {LOAD} {DRIVES} --require p99=400us,years=5")));

fn of_kind<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

/// Each row has the figures of the `replay` that it names, and the sustained rate is that of a closed loop.
#[test]
fn the_figures_are_those_of_the_runs_that_are_named() {
    let folder = Folder::new();
    let rows = &*COMPARED;
    assert_eq!(of_kind(rows, "drive").len(), 2);
    let changed: Vec<&str> =
        of_kind(rows, "changed").iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(changed, ["20 % unused", "the rest trimmed"].repeat(2));
    let note = of_kind(rows, "drive")[0]["note"].as_str().unwrap();
    assert!(note.contains("placement is left out: "), "these drives have too few segments: {note}");
    for row in rows {
        let command = row["repeat"].as_str().unwrap();
        let again = folder.shell(&format!("{command} --json"));
        assert_eq!(again.code, 0, "{command}: {}", again.stderr);
        let again: Vec<Value> = serde_json::from_str(&again.stdout).unwrap();
        for column in
            ["latency_p99_ns", "latency_p99_slice_max_ns", "waf", "lifetime_years_at_this_rate", "rounds"]
        {
            assert_eq!(again[0][column], row[column], "{column} of {command}");
        }
    }
    let drive = of_kind(rows, "drive")[0];
    let device = drive["device"].as_str().unwrap();
    let closed = folder.rows(&format!("replay {LOAD} --device {device} --users 512 --until-steady"));
    assert_eq!(number(drive, "sustained_ops_s"), number(&closed[0], "throughput_ops_s"));
}

/// The headroom is a rate that was tried and at which all requirements hold, and at most a tenth above it is one
/// at which they do not, or the rate that the drive sustains.
#[test]
fn the_headroom_ends_where_a_requirement_breaks() {
    let rows = &*COMPARED;
    for drive in of_kind(rows, "drive") {
        let own = number(drive, "offered_ops_s");
        let of_drive = |row: &&Value| row["device"] == drive["device"] && row["kind"] != "changed";
        let holds = |row: &Value| {
            number(row, "latency_p99_ns") <= 400_000.0
                && number(row, "lifetime_years_at_this_rate") >= 5.0
                && number(row, "throughput_ops_s") >= 0.98 * number(row, "offered_ops_s")
        };
        let tried: Vec<(f64, bool)> =
            rows.iter().filter(of_drive).map(|row| (number(row, "times"), holds(row))).collect();
        let headroom = number(drive, "headroom");
        assert!(tried.contains(&(headroom, true)), "{headroom} {tried:?}");
        let breaks = tried.iter().filter(|(_, holds)| !holds).map(|(times, _)| *times);
        let breaks = breaks.fold(number(drive, "sustained_ops_s") / own, f64::min);
        assert!(headroom < breaks && breaks <= 1.1 * headroom, "{headroom} {tried:?}");
        // The limit is what the row above the headroom misses.
        let above = rows.iter().filter(of_drive).find(|row| number(row, "times") == breaks);
        match (drive["headroom_limit"].as_str().unwrap(), above) {
            ("p99", Some(row)) => assert!(number(row, "latency_p99_ns") > 400_000.0, "{row}"),
            ("years", Some(row)) => assert!(number(row, "lifetime_years_at_this_rate") < 5.0, "{row}"),
            ("rate", _) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A drive that meets the requirements is recommended before one that does not, in whatever order they are
/// given, and the sentence says what the other misses.
#[test]
fn the_drive_that_meets_the_requirements_is_recommended() {
    let folder = Folder::new();
    let (fast, slow) = ("sata:blocks=20,pages=64", "sata:blocks=20,pages=64,read_us=1000");
    let rows = folder.rows(&format!("advise {LOAD} --device {fast},{slow} --require read_p50=1ms"));
    let drives = of_kind(&rows, "drive");
    let told: Vec<[&str; 2]> =
        drives.iter().map(|row| ["device", "meets"].map(|column| row[column].as_str().unwrap())).collect();
    // Nobody has compared this preset's response times with a drive's, so it is not sure.
    assert_eq!(told, [[fast, "likely"], [slow, "no"]]);
    assert_eq!(number(drives[1], "headroom"), 0.0, "no rate makes the flash faster");
    let text = folder.run(&format!("advise {LOAD} --device {slow},{fast} --require read_p50=1ms")).stdout;
    let text = text.replace('\n', " ");
    assert!(text.contains("sata:blocks=20,pages=64 is the most likely to do: p50 of reads"), "{text}");
    assert!(text.contains(&format!("Not {slow} (p50 of reads 1.")), "{text}");
    let none = folder.run(&format!("advise {LOAD} --device {slow} --require read_p50=1ms")).stdout;
    assert!(none.replace('\n', " ").contains("none of these drives will do"), "{none}");
}

/// A twin whose file states bounds is sure of a requirement only within them.
#[test]
fn a_calibrated_drive_is_judged_by_its_own_bounds() {
    let folder = Folder::new();
    let meets = |most: &str| {
        let bounds = format!(
            "read_p50 = [1.0, {most}]\nread_p99 = [1.0, 1.0]\nwrite_p50 = [1.0, 1.0]\nwrite_p99 = [1.0, 1.0]"
        );
        folder.write("my.toml", format!("device = \"p4510:blocks=16,pages=32\"\n[bounds]\n{bounds}\n"));
        let rows = folder.rows(&format!("advise {LOAD} --device my.toml --require read_p50=200us"));
        let drive = of_kind(&rows, "drive")[0].clone();
        (drive["meets"].as_str().unwrap().to_owned(), number(&drive, "read_latency_p50_ns"))
    };
    let (meets_it, median) = meets("1.0");
    assert_eq!(meets_it, "yes");
    assert_eq!(meets(&format!("{:.1}", 200e3 / median + 0.1)).0, "likely");
}

/// A trace that spans more than the simulated drive makes it larger; one that spans more than the label says is
/// refused.
#[test]
fn a_drive_grows_to_the_trace_up_to_its_label() {
    let folder = Folder::new();
    let lines: Vec<String> = (0..400)
        .map(|at| format!("{},h,0,Write,{},4096,0", 128_166_372_000_000_000u64 + at * 10_000, at * (1 << 20)))
        .collect();
    folder.write("wide.csv", lines.join("\n") + "\n");
    let asked = "advise wide.csv --format msr --require p99=9ms --device sata:blocks=20,pages=64,nominal";
    let rows = folder.rows(&format!("{asked}=1GiB"));
    let device = of_kind(&rows, "drive")[0]["device"].as_str().unwrap();
    let replay = folder.run(&format!("replay wide.csv --format msr --device {device}"));
    assert!(
        device.contains("pages=") && !replay.stderr.contains("scaled down"),
        "{device}: {}",
        replay.stderr
    );
    let refused = folder.run(&format!("{asked}=256MiB"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("accepted: a larger drive"), "{}", refused.stderr);
}

/// Without writes no drive is worn, so the drives are compared without rounds, and only by response times.
#[test]
fn drives_are_compared_for_a_workload_that_only_reads() {
    let folder = Folder::new();
    let asked = format!("advise zipf:write=0% --rate 1K --ops 5K {DRIVES} --require read_p99=1ms");
    let rows = folder.rows(&asked);
    assert!(of_kind(&rows, "changed").is_empty() && rows.iter().all(|row| row["rounds"].is_null()));
    assert!(of_kind(&rows, "drive").iter().all(|row| number(row, "headroom") > 1.0), "{rows:?}");
}

/// The p99 of a whole run lies below that of its worst slice, and a burst shows in one slice alone.
#[test]
fn a_burst_is_told_by_the_worst_slice() {
    let folder = Folder::new();
    // Of 8,000 writes, the 50 in the middle arrive at once; 0.6 % of all requests, and 5 % of their slice.
    let at = |request: u64| request.min(4_000) + request.saturating_sub(4_050);
    let lines: Vec<String> = (0..8_000u64)
        .map(|request| {
            format!("{},h,0,Write,{},4096,0", 128_166_372_000_000_000 + at(request) * 10_000, request * 4_096)
        })
        .collect();
    folder.write("burst.csv", lines.join("\n") + "\n");
    let row = &folder.rows("replay burst.csv --format msr --device sata:blocks=20 --until-steady")[0];
    let [whole, worst] = ["latency_p99_ns", "latency_p99_slice_max_ns"].map(|column| number(row, column));
    assert!(worst > 2.0 * whole, "{whole} {worst}");
}

/// Neither the number of threads nor the order of the drives changes a figure.
#[test]
fn threads_change_nothing() {
    let folder = Folder::new();
    let asked = format!(
        "advise {LOAD} {DRIVES} --require p99=1ms --csv --columns kind,device,times,latency_p99_ns,waf,meets,headroom"
    );
    let [one, two] = ["1", "2"].map(|threads| folder.run(&format!("{asked} --threads {threads}")).stdout);
    assert!(one.lines().count() > 8, "{one}");
    assert_eq!(one, two);
}
