//! Tests benchmarks on the engine: their result rows, the arguments that they refuse, and their changes to a
//! file.

use crate::folder::{Folder, number};
use serde_json::Value;
use std::fs;

fn has(row: &Value, columns: &str) {
    columns.split_whitespace().for_each(|column| assert!(!row[column].is_null(), "{column}: {row}"));
}

const TPCC: &str = "bench tpcc:customers=60,items=500 --memory 1MiB --users 4 --ops 800";

#[test]
fn a_run_has_the_columns_of_the_contract_and_counts_its_measured_part_alone() {
    let folder = Folder::new();
    let rows = folder.rows(&format!("{TPCC} --warm-up 0,500 --torn-pages double-write,atomic"));
    assert_eq!(rows.len(), 4);
    for row in &rows {
        has(row, "run_id benchmark device replacement write_back prefetch torn_pages durability users seed");
        has(row, "read_latency_p50_ns read_latency_p95_ns read_latency_p99_ns read_latency_max_ns");
        has(row, "read_miss_latency_p50_ns read_miss_latency_p999_ns");
        has(row, "commit_latency_p50_ns commit_latency_p99_ns commit_latency_max_ns latency_p999_ns");
        has(row, "cpu_ns_per_op user_bytes_written space_bytes host_pages_written waf rows_verified");
        has(row, "retries deadlocks log_bytes_written flushes checkpoints hits misses elapsed_ns");
        assert_eq!(number(row, "ops"), 800.0);
        let elapsed = number(row, "ops") / number(row, "throughput_ops_s") * 1e9;
        assert!((elapsed / number(row, "elapsed_ns") - 1.0).abs() < 1e-6, "{row}");
        // The counts exclude the load and the warm-up, or they would be far larger: the data are 5 MB.
        assert!(number(row, "host_pages_written") * 4096.0 < 40.0 * number(row, "user_bytes_written"));
    }
    // The double-write area protects each page with a second write.
    assert!(number(&rows[0], "host_pages_written") > number(&rows[1], "host_pages_written"));
    assert_eq!(rows[0]["scale"], 1, "one warehouse");
    let own_size = &folder.rows("bench ycsb-c:records=4K --ops 100")[0];
    assert_eq!(own_size["scale"], Value::Null, "an option says the size: {own_size}");
    assert_eq!(folder.rows("bench ycsb-c --device mem --scale 2 --ops 50")[0]["scale"], 2);
}

#[test]
fn types_and_intervals_add_up_to_the_run() {
    let folder = Folder::new();
    let sum = |rows: &[Value], column: &str| rows.iter().map(|row| number(row, column)).sum::<f64>();
    let whole = &folder.rows(TPCC)[0];
    let types = folder.rows(&format!("{TPCC} --by-type"));
    let names: Vec<&str> = types.iter().map(|row| row["transaction"].as_str().unwrap()).collect();
    assert_eq!(names, ["new-order", "payment", "order-status", "delivery", "stock-level"]);
    assert_eq!((sum(&types, "ops"), sum(&types, "retries")), (800.0, number(whole, "retries")));
    let worst = types.iter().map(|row| number(row, "latency_max_ns")).fold(0.0, f64::max);
    assert_eq!(worst, number(whole, "latency_max_ns"));
    let stretches = folder.rows(&format!("{TPCC} --interval 10ms"));
    assert!(stretches.len() > 3, "{stretches:?}");
    assert_eq!(sum(&stretches, "ops"), 800.0);
    assert_eq!(sum(&stretches, "interval_ns"), number(whole, "elapsed_ns"));
    for column in ["retries", "rollbacks"] {
        assert_eq!(sum(&stretches, column), number(whole, column), "{column}");
    }
    let timed = &folder.rows("bench ycsb-b:records=4K --time 50ms --users 3")[0];
    assert!((50e6..60e6).contains(&number(timed, "elapsed_ns")), "{timed}");
}

/// A limit on the length of files makes writes fail as on a failing drive. The shell ignores the signal
/// SIGXFSZ, so that the system returns an error.
#[test]
#[cfg(target_os = "linux")]
fn a_failing_drive_is_named_with_the_page_and_the_reason() {
    let folder = Folder::new();
    let command = "bench ycsb-a:records=2K --users 2 --ops 2K --memory 1MiB --log-size 1MiB";
    for engine in ["psync", "uring"] {
        let file = format!("--device file:drive-{engine},engine={engine}");
        let loaded = folder.run(&format!("{command} {file}"));
        if engine == "uring" && loaded.code == 2 {
            // The command reports that this system does not support io_uring, so leave this engine out.
            continue;
        }
        assert_eq!(loaded.code, 0, "{}", loaded.stderr);
        let script = format!(
            "trap '' XFSZ; ulimit -f 1000; exec {} {command} {file} --reuse",
            env!("CARGO_BIN_EXE_fulgurite")
        );
        let failed = std::process::Command::new("sh").args(["-c", &script]).current_dir(&folder.0).output();
        let failed = failed.unwrap();
        let sentence = String::from_utf8(failed.stderr).unwrap();
        assert_eq!(failed.status.code(), Some(1), "{sentence}");
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        for words in [&format!("file:drive-{engine}"), "writing page", "File too large", "ulimit -f"] {
            assert!(sentence.contains(words), "no `{words}` in {sentence}");
        }
    }
}

/// The store trims segments while the drive collects garbage in them. A trimmed page that collection has
/// already read must free its space in the drive's buffer, or the drive would wait for ever.
#[test]
fn a_trim_during_collection_does_not_stall_the_drive() {
    let folder = Folder::new();
    let device = "p4510:planes=1,pages=4,blocks=266,op=12%,streams=9";
    let place = "out-of-place:spare=5%,placement=hints";
    let outcome = folder.run(&format!(
        "bench tpcc --device {device} --scale 1 --users 16 --ops 3000 --memory 10MiB --log-size 4MiB --place {place}"
    ));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

/// The number of pages that the store writes depends little on the layer below. The number that the drive
/// receives depends on the layer's garbage collection.
#[test]
fn a_store_runs_on_a_layer_above_its_drive() {
    let folder = Folder::new();
    let command = "bench ycsb-a:records=5K --device virtual:blocks=32 --log-size 16MiB --memory 1MiB --users 4 \
        --ops 1K";
    let bare = &folder.rows(command)[0];
    let rows = folder
        .rows(&format!("{command} --layer log:segment=256KiB --placement none,sepbit --victim greedy,fifo"));
    let written = number(bare, "host_pages_written");
    for row in &rows {
        let share = number(row, "host_pages_written") / written;
        assert!((0.8..1.25).contains(&share), "{share}: {row}");
        let (layer, drive) = (number(row, "layer_waf"), number(row, "drive_waf"));
        assert!(layer > 1.5 && drive >= 1.0, "{row}");
        assert!((number(row, "waf") / (layer * drive) - 1.0).abs() < 1e-9, "{row}");
    }
    let copied: Vec<f64> = rows.iter().map(|row| number(row, "layer_pages_copied")).collect();
    assert_eq!(copied.len(), 4);
    assert!(
        copied[1..].iter().all(|pages| *pages != copied[0]),
        "each policy copies other pages: {copied:?}"
    );
    // A drive in memory has space for the pages that the layer itself needs.
    folder.rows("bench ycsb-a:records=5K --device mem --layer log --ops 100");
}

/// With `single` a miss writes one page. The store's own write-back policy writes several pages at once.
#[test]
fn the_store_chooses_its_write_back_by_default() {
    let folder = Folder::new();
    let usual = &folder.rows(TPCC)[0];
    assert_eq!((&usual["write_back"], &usual["n_w"]), (&Value::from("store"), &Value::Null));
    let rows = folder.rows(&format!("{TPCC} --write-back store,single"));
    assert_eq!((&rows[0]["run_id"], &rows[1]["write_back"]), (&usual["run_id"], &Value::from("single")));
    let together = |row: &Value| number(row, "pages_written") / number(row, "write_ios");
    assert!(together(&rows[0]) > 4.0 && together(&rows[1]) < 1.5, "{rows:?}");
}

/// The latencies of an interval include only requests of this interval. Otherwise no maximum would ever fall,
/// and the means would not add up to the mean of the run.
#[test]
fn latencies_of_an_interval_exclude_earlier_ones() {
    let folder = Folder::new();
    let whole = &folder.rows(TPCC)[0];
    let stretches = folder.rows(&format!("{TPCC} --interval 10ms"));
    // Leave out the last interval, which may be too short for a commit.
    let (_, long) = stretches.split_last().unwrap();
    for kind in ["latency", "read_latency", "read_miss_latency", "commit_latency"] {
        let column = |figure: &str| format!("{kind}_{figure}_ns");
        long.iter().for_each(|row| {
            has(row, &["mean", "stddev", "p50", "p95", "p99", "p999", "max"].map(column).join(" "));
        });
        let maxima: Vec<f64> = stretches.iter().filter_map(|row| row[column("max")].as_f64()).collect();
        assert_eq!(maxima.iter().copied().fold(0.0, f64::max), number(whole, &column("max")));
        assert!(maxima.windows(2).any(|pair| pair[1] < pair[0]), "{kind}: {maxima:?}");
        // A percentile over more than the interval would sooner or later exceed the maximum of the interval.
        for row in long {
            let figures = ["p50", "p95", "p99", "p999", "max"].map(|figure| number(row, &column(figure)));
            assert!(figures.is_sorted() && figures[0] > 0.0, "{kind}: {figures:?}");
        }
    }
    let spent = |rows: &[Value]| -> f64 {
        let ended = rows.iter().filter(|row| number(row, "ops") > 0.0);
        ended.map(|row| number(row, "ops") * number(row, "latency_mean_ns")).sum()
    };
    let all = spent(std::slice::from_ref(whole));
    assert!((spent(&stretches) / all - 1.0).abs() < 1e-9, "{} {all}", spent(&stretches));
    let types = folder.rows(&format!("{TPCC} --interval 10ms --by-type"));
    assert_eq!(types.len(), 5 * stretches.len());
    assert!((spent(&types) / all - 1.0).abs() < 1e-9, "{} {all}", spent(&types));
    for (of_types, stretch) in types.chunks(5).zip(&stretches) {
        let ended: f64 = of_types.iter().map(|row| number(row, "ops")).sum();
        assert_eq!(ended, number(stretch, "ops"));
        assert!(of_types.iter().all(|row| row["time_ns"] == stretch["time_ns"]));
    }
}

/// A run in a grid begins with the drive as it was after the load, and not as the previous run left it.
#[test]
fn a_run_gives_the_same_rows_in_a_grid_and_alone() {
    let folder = Folder::new();
    let command = "bench ycsb-a:records=4K --memory 1MiB --ops 500 --users";
    let grid = folder.rows(&format!("{command} 1,2,8 --threads 1"));
    let alone = &folder.rows(&format!("{command} 8"))[0];
    for column in ["run_id", "elapsed_ns", "misses", "host_pages_written", "flash_pages_programmed"] {
        assert_eq!(grid[2][column], alone[column], "{column}");
    }
}

#[test]
fn stronger_durability_costs_more() {
    let folder = Folder::new();
    let command = "bench ycsb-a:records=4K,write_all=yes --ops 400 --users 1";
    let rows = folder.rows(&format!("{command} --durability flush,relaxed"));
    // A relaxed commit does not wait for a flush, only for the page that it changes.
    assert!(number(&rows[0], "commit_latency_p50_ns") > 2.0 * number(&rows[1], "commit_latency_p50_ns"));
    assert!(number(&rows[0], "log_flushes") > 4.0 * number(&rows[1], "log_flushes"), "{rows:?}");
}

#[test]
fn a_file_is_loaded_checked_and_used_again_only_when_asked() {
    let folder = Folder::new();
    let command = "bench sysbench-read-write:rows=2000 --device file:drive,engine=psync --ops 60";
    let first = &folder.rows(command)[0];
    assert!(number(first, "host_pages_written") > 0.0 && number(first, "rows_verified") >= 1_900.0);
    let used = folder.read("drive");
    for command in [command, "pool zipf --device file:drive,engine=psync --pages 1K --ops 10"] {
        let refused = folder.run(command);
        assert_eq!(refused.code, 2, "{}", refused.stdout);
        assert!(refused.stderr.contains("holds a store"), "{}", refused.stderr);
    }
    assert_eq!(folder.read("drive"), used, "a refusal changes nothing");
    let again = &folder.rows(&format!("{command} --reuse"))[0];
    assert_ne!(again["run_id"], first["run_id"]);
    let other = folder.run(&command.replace("2000", "3000").replace("--ops", "--reuse --ops"));
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("rows=2000") && other.stderr.contains("rows=3000"), "{}", other.stderr);
    for other in ["--page 8KiB", "--log-size 8MiB"] {
        let refused = folder.run(&format!("{command} --reuse {other}"));
        let own = if other.starts_with("--page") { "--page 4KiB" } else { "--log-size 64MiB" };
        assert_eq!(refused.code, 2, "{other}: {}", refused.stderr);
        assert!(refused.stderr.contains(own), "{other}: {}", refused.stderr);
    }
    folder.rows(&format!("{command} --destroy-contents"));
    fs::write(folder.0.join("letters"), "mine").unwrap();
    let foreign = folder.run(&command.replace("file:drive", "file:letters"));
    assert_eq!((foreign.code, folder.read("letters")), (2, b"mine".to_vec()));
}

#[test]
fn a_study_runs_benchmarks() {
    let study = "title = \"t\"\nquestion = \"q\"\ncommand = \"bench\"\n\n[grid]\nbenchmark = \
        [\"ycsb-a:records=2K\", \"ycsb-c:records=2K\"]\nops = 200\n";
    let folder = Folder::new().with("own.toml", study);
    let outcome = folder.run("study own.toml --out out");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let table = String::from_utf8(folder.read("out/table.csv")).unwrap();
    assert_eq!(table.lines().count(), 3);
    assert!(table.starts_with("run_id,benchmark,") && !table.contains("cpu_ns_per_op"), "{table}");
}
