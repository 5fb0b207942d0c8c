//! Tests that a row says what its figures are about: the workload or the state before it, the drive or the
//! length of the run, the whole trace or a part.

use crate::folder::{Folder, number};

/// A drive that a few thousand writes overwrite.
const SMALL: &str = "reference-e:blocks=64,pages=4";

/// The rule: a row tells how often the run wrote the drive. There is a remark if that was less than once and
/// the table shows the write amplification, and none otherwise.
#[test]
fn write_amplification_of_the_fill_is_said() {
    let folder = Folder::new();
    let note = |ops: &str, columns: &str| {
        let asked = format!("replay zipf:write=100% --users 4 --device {SMALL} --ops {ops}{columns}");
        let row = folder.rows(&asked).remove(0);
        let expected = number(&row, "host_pages_written") / 6_400.0;
        assert!((number(&row, "drive_writes") / expected - 1.0).abs() < 0.01, "{row}");
        folder.run(&asked).stderr.contains("waf and lifetime belong to what the drive held before")
    };
    assert!(note("100", ""));
    assert!(!note("20K", ""));
    let silent =
        folder.run(&format!("replay zipf --users 4 --device {SMALL} --ops 100 --columns throughput"));
    assert!(!silent.stderr.contains("waf"), "{}", silent.stderr);
}

/// The rule: with `--until-steady` the row is about the last round, which has overwritten the drive. Its write
/// amplification is that of a long run, and not that of a run that hardly changes the preconditioned drive.
#[test]
fn a_load_is_repeated_until_it_is_steady() {
    let folder = Folder::new();
    let asked = format!("replay zipf:theta=1.2,write=100% --users 4 --device {SMALL} --ops 2K");
    let first = folder.rows(&asked).remove(0);
    let steady = folder.rows(&format!("{asked} --until-steady")).remove(0);
    assert!(number(&steady, "rounds") > 1.0);
    assert!(number(&steady, "drive_writes") >= 1.0);
    assert!(
        number(&steady, "round_waf_change").abs() < 0.01 || number(&steady, "rounds") == 20.0,
        "{steady}"
    );
    let waf = |row| number(row, "waf");
    let long = folder.rows(&asked.replace("2K", "200K")).remove(0);
    let beside_long = |row| waf(row) / waf(&long) - 1.0;
    assert!(beside_long(&steady).abs() < 0.05, "{} and {}", waf(&steady), waf(&long));
    assert!(beside_long(&first).abs() > 0.2, "{} and {}", waf(&first), waf(&long));
}

/// The rule: a trace is repeated with later times, so its rate stays the same over all rounds.
#[test]
fn a_repeated_trace_keeps_its_rate() {
    let lines: String =
        (0..200).map(|at| format!("0,{},4096,w,{}\n", at * 97 % 1000 * 8, at as f64 / 1000.0)).collect();
    let folder = Folder::new().with("t.spc", &lines);
    let row = folder.rows(&format!("replay t.spc --device {SMALL} --until-steady")).remove(0);
    assert!(number(&row, "ops") > 6_000.0);
    assert!((number(&row, "offered_ops_s") / 1000.0 - 1.0).abs() < 0.01, "{row}");
}

/// The rule: a run in rounds ends early if the drive falls behind its load: after the second round with a
/// longer queue, or when a million requests are outstanding.
#[test]
fn rounds_of_an_overloaded_drive_end() {
    let folder = Folder::new();
    for (rate, rounds) in [("100K", 2.0), ("1M", 1.0)] {
        let asked = format!("replay zipf:write=100% --device {SMALL} --ops 2K --rate {rate} --until-steady");
        let row = folder.rows(&asked).remove(0);
        assert_eq!(number(&row, "rounds"), rounds, "{rate}");
        assert!(number(&row, "ops") < 1_060_000.0, "{row}");
        let said = folder.run(&asked).stderr;
        assert!(said.contains("the queue grows over the whole run"), "{said}");
    }
}

#[test]
fn a_run_without_an_end_or_without_one_row_is_not_repeated() {
    // One write in two thousand requests: a round would have more than a thousand million requests.
    let hardly = "0,0,4096,w,0.0\n".to_owned() + &"0,8,4096,r,0.0\n".repeat(1_999);
    let folder = Folder::new().with("hardly.spc", hardly);
    for (beside, why) in [
        ("zipf:write=0% --users 1 --ops 10", "writes nothing"),
        ("hardly.spc --users 1", "overwrite the drive once, and at most"),
        ("zipf --users 1 --device mem", "needs a device with garbage collection"),
        ("zipf --users 1 --interval 10ms", "does not go with --interval"),
    ] {
        let refused = folder.run(&format!("replay {beside} --until-steady"));
        assert_eq!(refused.code, 2, "{beside}");
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
}

/// The rule: a dry run of `--until-steady` says the bound of its rounds, and that its time is that of one pass.
#[test]
fn a_dry_run_says_the_bound_of_rounds() {
    let said =
        |more: &str| Folder::new().run(&format!("replay zipf --users 4 --ops 20K --dry-run{more}")).stdout;
    let bound = "for each pass over the workload; --until-steady repeats it for at most 20 rounds";
    assert!(said(" --until-steady").contains(bound), "{}", said(" --until-steady"));
    assert!(!said("").contains("rounds"));
}

/// The rule: the lifetime is that of a drive with the capacity on the label. Drive writes per day do not
/// depend on that capacity, and bytes and years are blank if it is not known.
#[test]
fn the_lifetime_is_that_of_the_label() {
    let folder = Folder::new();
    let devices = format!("{SMALL},{SMALL},nominal=1000GB,{SMALL},nominal=4000GB");
    let rows = folder.rows(&format!("replay zipf --users 4 --ops 20K --device {devices}"));
    let [none, one, four] = &rows[..] else { panic!("{rows:?}") };
    assert!(none["lifetime_bytes_written"].is_null() && none["lifetime_years_at_this_rate"].is_null());
    for column in ["lifetime_bytes_written", "lifetime_years_at_this_rate"] {
        assert!((number(four, column) / number(one, column) - 4.0).abs() < 1e-9, "{column}");
    }
    assert_eq!(none["lifetime_dwpd_5y"], four["lifetime_dwpd_5y"]);
    // Years are bytes over the rate of the writes, also if the row is about the last of several rounds.
    for rounds in ["", " --until-steady"] {
        let asked = format!("replay zipf --users 4 --ops 20K --device {SMALL},nominal=1000GB{rounds}");
        let row = folder.rows(&asked).remove(0);
        let seconds = number(&row, "lifetime_years_at_this_rate") * 365.0 * 86_400.0;
        let rate = number(&row, "lifetime_bytes_written") / seconds;
        assert!((rate / number(&row, "write_bandwidth_bytes_s") - 1.0).abs() < 0.01, "{row}");
    }
    // By the definition of drive writes per day over five years.
    let bytes = number(one, "lifetime_dwpd_5y") * 5.0 * 365.0 * 1e12;
    assert!((number(one, "lifetime_bytes_written") / bytes - 1.0).abs() < 1e-9);
}

/// The rule: an open loop tells the rate that arrived beside the rate that was served. A remark says where
/// the drive falls behind for the whole run, and is absent where it does not.
#[test]
fn overload_is_said() {
    let folder = Folder::new();
    let run = |rate: &str| {
        let asked = format!("replay zipf:write=100% --device {SMALL} --ops 20K --rate {rate}");
        (folder.rows(&asked).remove(0), folder.run(&asked).stderr)
    };
    let (row, said) = run("1M");
    assert!((number(&row, "offered_ops_s") / 1e6 - 1.0).abs() < 0.01, "{row}");
    assert!(number(&row, "throughput_ops_s") < 0.5e6, "{row}");
    assert!(said.contains("the queue grows over the whole run"), "{said}");
    let (row, said) = run("100");
    assert!((number(&row, "throughput_ops_s") / number(&row, "offered_ops_s") - 1.0).abs() < 0.01, "{row}");
    assert!(!said.contains("queue"), "{said}");
}

/// The rule: rows count what reading a trace left out and changed, and a remark tells it where it matters.
#[test]
fn what_reading_a_trace_changed_is_said() {
    let folder = Folder::new().with("back.spc", "0,0,4096,w,2.0\n0,8,4096,w,1.0\n0,16,4096,w,3.0\n");
    let said = |asked: &str| {
        let row = folder.rows(asked).remove(0);
        assert_eq!((row["times_clamped"].as_u64(), row["skipped"].as_u64()), (Some(1), Some(0)), "{asked}");
        folder.run(asked).stderr.contains("reading it sets 1 times that go back")
    };
    assert!(said("replay back.spc"));
    assert!(!said("replay back.spc --users 1"));
    assert!(!said("pool back.spc --device none --frames 2"));
    assert!(!said("gc back.spc --logical 32MB --physical 40MB --segment 64KiB"));
}

/// The rule: a run that uses the times of a trace tells in which unit it took them if the trace does not say it,
/// and so do the commands about traces.
#[test]
fn a_guessed_unit_of_times_is_said() {
    let folder = Folder::new().with("t.disksim", "0 0 0 8 1\n999999 0 8 8 0\n");
    let taken = "times in ms, since the first one above zero, 999999, is below 1,000,000";
    assert!(folder.run("replay t.disksim").stderr.contains(taken));
    assert!(!folder.run("replay t.disksim --format disksim:time_unit=ns").stderr.contains("times in"));
    for asked in ["trace info t.disksim", "trace convert t.disksim t.msr --to msr"] {
        let decided = folder.rows(asked)[0]["decided"].as_str().unwrap().to_owned();
        assert!(decided.starts_with(taken), "{asked}: {decided}");
    }
}

/// The rule: the percentiles of an interval are those of the requests that completed in it. With one interval
/// they are those of the run.
#[test]
fn intervals_have_percentiles() {
    let folder = Folder::new();
    let asked = format!("replay zipf --users 4 --device {SMALL} --ops 5K");
    let run = folder.rows(&asked).remove(0);
    let whole = folder.rows(&format!("{asked} --interval 1000s")).remove(0);
    for column in ["latency_p99_ns", "latency_p999_ns"] {
        assert_eq!(run[column], whole[column], "{column}");
    }
    let parts = folder.rows(&format!("{asked} --interval 10ms"));
    assert!(parts.len() > 2);
    let p99s = parts.iter().map(|part| number(part, "latency_p99_ns"));
    assert!(p99s.fold(0.0, f64::max) >= number(&run, "latency_p99_ns"));
}
