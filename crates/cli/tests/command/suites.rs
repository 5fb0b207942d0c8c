//! Tests of the suites of `profile`, and of `calibrate`, which fits a drive to what a suite measured.

use crate::folder::{Folder, number};
use serde_json::Value;

/// A drive of 16 dies that preconditions in no time. It programs some 78,000 pages per second.
const SMALL: &str =
    "reference-e:channels=4,blocks=48,pages=32,write_buffer=512KiB,read_latency_us=20,write_latency_us=10";

/// The rule: below saturation the load does what is offered, which is the rate without the probe's writes. At
/// saturation it does the same at any rate, and its latency is the number of its requests over their rate.
#[test]
fn a_probe_runs_beside_a_load() {
    let folder = Folder::new();
    let rows = folder.rows(&format!("profile {SMALL} --suite latency --rates 10K,50K,500K --time 1s"));
    let done: Vec<f64> = rows.iter().map(|row| number(row, "done_ops_s")).collect();
    assert!((done[0] / 5_000.0 - 1.0).abs() < 0.05, "{done:?}");
    assert!(done[1] < 40_000.0 && (done[2] / done[1] - 1.0).abs() < 0.1, "{done:?}");
    let little = 6.0 * 64.0 / done[2] * 1e9;
    assert!((number(&rows[2], "load_latency_p50_ns") / little - 1.0).abs() < 0.2, "{little}: {}", rows[2]);
    for row in &rows {
        let order = ["p50", "p90", "p99", "p999"].map(|p| number(row, &format!("read_latency_{p}_ns")));
        assert!(order.is_sorted() && order[0] >= 60_000.0, "{row}");
        assert!(number(row, "write_latency_p50_ns") >= 10_000.0, "{row}");
    }
    assert!(number(&rows[0], "write_latency_p50_ns") < 11_000.0, "the buffer takes it");
}

/// The rule: without rates, the series ends beyond what the drive sustains.
#[test]
fn a_series_of_rates_reaches_saturation() {
    let rows = Folder::new().rows(&format!("profile {SMALL} --suite latency --time 200ms"));
    let (offered, done): (Vec<f64>, Vec<f64>) =
        rows.iter().map(|row| (number(row, "offered_ops_s"), number(row, "done_ops_s"))).unzip();
    assert_eq!((offered.len(), offered[0]), (7, 10_000.0));
    assert!(done[6] < 0.85 * (offered[6] - 5_000.0), "{offered:?} {done:?}");
}

/// The rule: write amplification is that of the pattern in its steady state. It grows with the used share of
/// the space, is that of uniform writes for zones of equal heat, and is higher for hot zones, since the drive
/// mixes them. Sequential writes into one open zone have little.
#[test]
fn steady_states_depend_on_the_pattern() {
    let folder = Folder::new();
    let waf = |suite: &str, patterns: &str| -> Vec<f64> {
        let asked = format!("profile {SMALL} --suite {suite} --patterns {patterns}");
        folder.rows(&asked).iter().map(|row| number(row, "waf")).collect()
    };
    let [half, most, all] = waf("over-provisioning", "used:50%,used:80%,used:100%")[..] else { panic!() };
    assert!((1.0..1.2).contains(&half) && half < most && most < all, "{half} {most} {all}");
    let [uniform, equal, hot, read_only] =
        waf("overwrite", "uniform,zones:50/50,zones:90/10,read-only:50%")[..]
    else {
        panic!()
    };
    assert!((uniform / all - 1.0).abs() < 0.03 && (equal / uniform - 1.0).abs() < 0.05, "{uniform} {equal}");
    assert!(hot > 1.1 * uniform && read_only < uniform, "{hot} {uniform} {read_only}");
    let one_zone = waf("zones", "one-zone:2MiB")[0];
    assert!((1.0..uniform / 2.0).contains(&one_zone), "{one_zone}");
}

/// The rule: the suites run on a real file, whose write amplification nobody can tell.
#[test]
fn a_real_file_is_measured() {
    let folder = Folder::new();
    let rows = folder.rows("profile file:drive,size=8MiB --suite overwrite --patterns uniform");
    assert!(number(&rows[0], "throughput_ops_s") > 0.0 && rows[0].get("waf").is_none(), "{}", rows[0]);
    let rows = folder.rows("profile file:drive --suite latency --rates 12K --time 200ms");
    assert!(number(&rows[0], "done_ops_s") > 0.0 && number(&rows[0], "read_latency_p50_ns") > 0.0);
}

/// The rule: an option that the suite does not use is refused, with what it goes with.
#[test]
fn options_of_other_suites_are_refused() {
    let folder = Folder::new();
    for (options, sentence) in [
        ("--rates 20K", "--rates does not go with --suite concurrency; accepted: --suite latency"),
        ("--suite overwrite --time 1s", "--time does not go with --suite overwrite"),
        ("--suite latency --curve", "--curve does not go with --suite latency"),
        ("--suite latency --patterns uniform", "--patterns does not go with --suite latency"),
        ("--suite overwrite --patterns used:50%", "--patterns used:50% does not go with --suite overwrite"),
        (
            "--suite overwrite --patterns zones:9/9",
            "`zones:9/9` is not a pattern; accepted: uniform, zipf:0.8",
        ),
        ("--suite zones --patterns open-zones:1000", "accepted: at most half as many open zones"),
        ("--suite latency --rates 9999", "accepted: 10000"),
    ] {
        let refused = folder.run(&format!("profile {SMALL} {options}"));
        assert_eq!(refused.code, 2, "{options}: {}", refused.stderr);
        assert!(refused.stderr.contains(sentence), "{options}: {}", refused.stderr);
    }
}

/// The rule: a search from a drive with another program time and other latencies finds a drive that is nearer
/// to the measured one, also at the rate that was held out. The file works as a device, and options change it.
#[test]
fn a_drive_is_fitted_to_measurements() {
    let folder = Folder::new();
    let csv = folder
        .run(&format!("profile {SMALL} --suite latency --rates 10K,30K,60K,100K --time 1s --csv"))
        .stdout;
    let folder = folder.with("measured.csv", &csv);
    let start = format!("{SMALL},program_us=300").replace("latency_us=20", "latency_us=60");
    let errors = |evaluations: &str| {
        let asked = format!(
            "calibrate measured.csv -o twin.toml --start {start} --check 30K --evaluations {evaluations} \
             --free program_us,read_latency_us"
        );
        let rows = folder.rows(&asked);
        ["fitted", "predicted"].map(|part| {
            let is_median =
                |row: &&Value| row["figure"].as_str().is_some_and(|name| name.ends_with("p50_ns"));
            let of_part = rows.iter().filter(|row| row["part"] == part).filter(is_median);
            let errors: Vec<f64> = of_part.map(|row| number(row, "deviation").abs()).collect();
            errors.iter().sum::<f64>() / errors.len() as f64
        })
    };
    let (before, after) = (errors("1"), errors("40"));
    assert!(after[0] < 0.3 * before[0] && after[1] < 0.3 * before[1], "{before:?} {after:?}");
    let row = folder.rows("replay zipf --users 1 --ops 100 --device twin.toml").remove(0);
    assert_eq!(row["device"], "twin.toml");
    let id =
        |device: &str| folder.rows(&format!("replay zipf --users 1 --ops 100 --device {device}")).remove(0);
    assert_ne!(id("twin.toml:op=30%")["run_id"], row["run_id"]);
}

/// The rule: a table or a file that cannot be used is refused with what would be accepted, and a file of the
/// user's is not replaced.
#[test]
fn measurements_that_do_not_suit_are_refused() {
    let two = "device,offered_ops_s,done_ops_s\na,10000,5000\nb,10000,5000\na,20000,9000\n";
    let folder = Folder::new()
        .with("none.csv", "a,b\n1,2\n")
        .with("two.csv", two)
        .with("one.csv", "offered_ops_s,done_ops_s\n10000,5000\n")
        .with("bad.csv", "offered_ops_s,done_ops_s\n10000,many\n20000,1\n")
        .with("mine.toml", "x = 1\n");
    for (asked, sentence) in [
        ("calibrate none.csv -o t.toml", "it has no column offered_ops_s"),
        (
            "calibrate two.csv -o t.toml",
            "has several drives; accepted: --drive with a part of one name of a, b",
        ),
        ("calibrate two.csv -o t.toml --drive c", "no row is about c"),
        ("calibrate one.csv -o t.toml", "a fit needs at least two rates"),
        ("calibrate bad.csv -o t.toml", "line 2: `many` is not a number"),
        ("calibrate two.csv -o t.toml --drive a --check 30K", "--check 30000: this rate was not measured"),
        ("calibrate two.csv -o t.toml --drive a --check 10K", "--check leaves fewer than two rates"),
        ("calibrate two.csv -o t.toml --drive a --free color", "--free color is no parameter of a drive"),
        ("calibrate two.csv -o t.toml --drive a --free schedule", "no number above zero"),
        ("calibrate two.csv -o t.toml --drive a --start optane", "is no simulated flash drive"),
        ("calibrate two.csv -o mine.toml --drive a", "mine.toml"),
        ("replay zipf --device mine.toml", "device mine.toml: it names no device"),
        ("replay zipf --device absent.toml", "device absent.toml:"),
    ] {
        let refused = folder.run(asked);
        assert_eq!(refused.code, 2, "{asked}: {}", refused.stderr);
        assert!(refused.stderr.contains(sentence), "{asked}: {}", refused.stderr);
    }
    assert!(!folder.names().contains(&"t.toml".to_owned()));
}
