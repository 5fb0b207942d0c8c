//! Tests the advice of `advise`. The advice is right if the best settings are known, is judged by other runs
//! than those that chose it, is repeatable, and takes a bounded number of runs.

use crate::folder::{Folder, number};
use crate::terminal::{as_written, seen};
use serde_json::Value;
use std::process::Command;

/// Options for short runs: a drive that is overwritten in place needs no preconditioning.
const QUICK: &str = "--device optane --pages 2K --ops 6K --memory 10%";

/// The settings among which an advice chooses in few runs.
const FEW: &str = "--replacement lru,arc --write-back single,ace --prefetch none";

fn of_kind<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

fn setting<'a>(rows: &'a [Value], name: &str) -> Option<&'a Value> {
    of_kind(rows, "setting").into_iter().find(|row| row["name"] == name)
}

/// A pool that writes nine of ten pages one by one, on a drive with eight concurrent writes, gains much from
/// batches, and from reads that do not wait for writes. The published gain of ACE is a third less run time.
#[test]
fn writes_that_wait_for_each_other_are_found() {
    let load = "write-intensive --device p4510:blocks=32 --pages 8K --ops 10K";
    let rows = Folder::new().rows(&format!("advise {load} --replacement lru --prefetch none"));
    let [advice, plain, auto] = ["advice", "plain", "auto"].map(|kind| of_kind(&rows, kind)[0]);
    assert_ne!(advice["write_back"], "single");
    assert_eq!((&plain["write_back"], &auto["write_back"]), (&Value::from("single"), &Value::from("auto")));
    let gain = number(advice, "throughput_change");
    assert!((0.3..0.6).contains(&gain), "{advice}");
    assert!(
        number(advice, "throughput_change_min") <= gain && gain <= number(advice, "throughput_change_max")
    );
    assert_eq!((number(advice, "held_out"), number(advice, "held_out_better")), (5.0, 5.0));
    // ACE with the drive's k_w, its number of concurrent writes, is one of the candidates. So the advice
    // cannot be worse than ACE except for noise.
    let ace = Folder::new().rows(&format!("pool {load} --write-back single,ace --seed 45"));
    let published = number(&ace[1], "throughput_ops_s") / number(&ace[0], "throughput_ops_s") - 1.0;
    assert!(gain > published - 0.01, "{gain} {published}");
    // The remark on `auto` agrees with the figures of the rows.
    let beyond = number(advice, "throughput_ops_s") / number(auto, "throughput_ops_s") > 1.01;
    let note = auto["note"].as_str().unwrap();
    assert_eq!(note.contains("the advice is better"), beyond, "{note}");
    let write_back = setting(&rows, "write_back").unwrap();
    assert_eq!(write_back["advised"], advice["write_back"]);
    let alone = number(write_back, "throughput_change");
    assert_eq!(alone, gain, "nothing else has changed");
}

/// If the workload writes nothing, no write-back policy is better than another. The advice keeps the plain
/// one and does not pick one at random.
#[test]
fn a_workload_that_only_reads_keeps_its_write_back() {
    let rows = Folder::new().rows(&format!("advise zipf:write=0% {QUICK}"));
    let advice = of_kind(&rows, "advice")[0];
    assert_eq!(advice["write_back"], "single");
    assert!(setting(&rows, "write_back").is_none() && of_kind(&rows, "auto").is_empty());
    assert!(advice["note"].as_str().unwrap().contains("the workload writes nothing"), "{advice}");
    // LRU is not the best policy for skewed reads, so the advice has another one.
    assert_ne!(advice["replacement"], "lru");
    assert!(number(advice, "throughput_change") > 0.01);
}

/// If all pages are equally likely, no replacement policy is better than another, so the advice keeps the
/// plain one.
#[test]
fn settings_without_a_gain_are_not_advised() {
    let folder = Folder::new();
    let asked =
        format!("advise mixed-uniform --write-back single --replacement lru,clock --prefetch none {QUICK}");
    let rows = folder.rows(&asked);
    let advice = of_kind(&rows, "advice")[0];
    assert_eq!((&advice["replacement"], number(advice, "throughput_change")), (&Value::from("lru"), 0.0));
    let text = folder.run(&asked).stdout;
    assert!(text.contains("keep the plain settings") && text.contains("gains more than 1.0 %"), "{text}");
    // If all pages fit into the pool, the runs cannot decide between policies, so the advice keeps the plain
    // settings too.
    let idle = folder.run("advise zipf --device optane --pages 2K --ops 20").stdout;
    assert!(idle.contains("keep the plain settings") && idle.contains("fit into memory"), "{idle}");
}

/// Checks that the printed commands give the printed figures, and that their seeds or slices took no part in
/// the choice.
fn repeats(folder: &Folder, rows: &[Value], apart: impl Fn(&Value) -> bool) {
    for kind in ["advice", "plain", "auto"] {
        let row = of_kind(rows, kind)[0];
        let command = row["repeat"].as_str().unwrap();
        // Slices in larger pages have other numbers of requests, so there is one command for each slice.
        let again = command.split("; ").flat_map(|command| {
            let outcome = folder.shell(&format!("{command} --json"));
            assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
            serde_json::from_str::<Vec<Value>>(&outcome.stdout).unwrap()
        });
        let again: Vec<Value> = again.collect();
        assert!(again.iter().all(&apart), "{command} repeats what the choice rests on");
        for column in ["throughput_ops_s", "latency_p99_ns"] {
            let mean = again.iter().map(|row| number(row, column)).sum::<f64>() / again.len() as f64;
            // Allow rounding, because the sum may add the figures in another order.
            assert!((mean / number(row, column) - 1.0).abs() < 1e-12, "{kind}: {column} of {command}");
        }
        for column in ["replacement", "write_back", "prefetch", "frames", "page_bytes"] {
            let same = again.iter().all(|again| row[column].is_null() || again[column] == row[column]);
            assert!(same, "{kind}: {column} of {command}");
        }
    }
}

#[test]
fn the_printed_commands_repeat_the_figures_of_seeds_held_out() {
    let folder = Folder::new();
    let few = "--replacement lru,arc --users 2 --seed 7";
    let rows = folder.rows(&format!("advise mixed-skewed {few} {QUICK}"));
    let advice = of_kind(&rows, "advice")[0];
    assert_ne!(advice["write_back"], "single", "there is something to repeat: {advice}");
    // Three seeds, 7 to 9, choose the settings, so the commands must use other seeds.
    repeats(&folder, &rows, |row| (10..15).contains(&row["seed"].as_u64().unwrap()));
    // The text ends with the same commands as the rows, in lines that a shell joins.
    let text = folder.run(&format!("advise mixed-skewed {few} {QUICK}")).stdout;
    let commands = text.split("Repeat it:\n").nth(1).unwrap().replace(" \\\n   ", "");
    for kind in ["advice", "plain"] {
        let command = of_kind(&rows, kind)[0]["repeat"].as_str().unwrap();
        assert!(commands.lines().any(|line| line == command), "{command}\n{commands}");
    }
}

#[test]
fn the_printed_commands_repeat_the_figures_of_slices_held_out() {
    let folder = Folder::new();
    let rows = folder.rows("advise postgres-pgbench --device optane --replacement lru --ops 3K");
    // The eight slices of the trace begin an eighth of its length apart, and every second slice chooses.
    let slice = 195_795 / 8;
    repeats(&folder, &rows, |row| {
        let skip = row["skip"].as_u64().unwrap_or(0);
        skip / slice % 2 == 1 && row["ops"] == 3_000
    });
}

#[test]
fn neither_time_nor_threads_change_a_byte() {
    let folder = Folder::new();
    let few = "--replacement lru,arc,clock";
    let one = folder.run(&format!("advise tpcc {few} {QUICK} --threads 1"));
    let two = folder.run(&format!("advise tpcc {few} {QUICK} --threads 2"));
    assert_eq!(one.code, 0, "{}", one.stderr);
    assert!(one.stdout.contains("How sure: ") && one.stderr.is_empty(), "{}", one.stderr);
    assert_eq!(one.stdout, two.stdout);
    let other = folder.run(&format!("advise tpcc {few} {QUICK} --seed 43"));
    assert_ne!(one.stdout, other.stdout, "the seed counts");
}

/// No more runs are executed than a dry run reports, and not far fewer.
#[test]
fn the_number_of_runs_is_known_in_advance() {
    let folder = Folder::new();
    for asked in
        ["mixed-skewed", "mixed-skewed --write-back single,raw --replacement lru,lfu", "zipf:write=0%"]
    {
        let said = folder.rows(&format!("advise {asked} {QUICK} --dry-run"));
        let bound = number(&said[0], "runs");
        let rows = folder.rows(&format!("advise {asked} {QUICK}"));
        let runs = number(of_kind(&rows, "advice")[0], "runs");
        assert!(runs <= bound && runs >= 0.5 * bound, "{asked}: {runs} runs, {bound} were said");
    }
    let sentence = folder.run("advise mixed-skewed --dry-run").stdout;
    assert!(sentence.starts_with("at most ") && sentence.contains(" runs, "), "{sentence}");
}

/// A trace in bytes has the same bytes and the same memory for every page size, so page sizes can be
/// compared.
#[test]
fn advice_compares_page_sizes_of_a_trace_in_bytes() {
    let line = |at: u64| {
        // Each request has sixteen kilobytes. The requests are spread over a megabyte.
        let sector = 32 * (at * 7_919 % 97);
        format!("1,{at},{},16384,{sector}\n", if at.is_multiple_of(3) { "2a" } else { "28" })
    };
    let trace: String = (0..4_000).map(line).collect();
    let folder = Folder::new().with("bytes.csv", format!("version,time,op,size,lbn\n{trace}"));
    let asked = "advise bytes.csv --format cloudphysics --device optane --memory 20% --replacement lru --prefetch \
        none";
    let rows = folder.rows(asked);
    let [advice, plain] = ["advice", "plain"].map(|kind| of_kind(&rows, kind)[0]);
    assert_eq!((&plain["page_bytes"], &advice["page_bytes"]), (&Value::from(4096), &Value::from(16_384)));
    let memory = |row: &Value| number(row, "frames") * number(row, "page_bytes");
    assert!((memory(plain) - memory(advice)).abs() < 16_384.0, "the memory is the same");
    // The requests differ between page sizes, so their response times are not compared.
    assert!(advice["latency_p99_change"].is_null() && number(advice, "throughput_change") > 1.0);
    // The eight slices of the trace begin an eighth of its length apart, and every second slice chooses.
    repeats(&folder, &rows, |row| {
        let length = if row["page_bytes"] == 4096 { 2_000 } else { 500 };
        row["skip"].as_u64().unwrap_or(0) / length % 2 == 1
    });
    let tail = folder.rows(&format!("{asked} --for p99"));
    assert!(setting(&tail, "page").is_none(), "nor can they be chosen by them");
}

#[test]
fn questions_without_an_answer_are_refused() {
    let folder = Folder::new().with("short.pages", "R 1\nW 2\n".repeat(500));
    for (asked, words) in [
        ("zipf --device none", &["none", "--replacement"][..]),
        ("zipf --device mem", &["mem", "advice compares times"]),
        ("zipf --memory 0B", &["--memory 0B", "4KiB to 400MiB"]),
        ("zipf --memory 1GiB", &["--memory 1GiB", "400MiB"]),
        ("zipf --memory 101%", &["--memory 101%", "100%"]),
        ("zipf --memory many", &["--memory many", "64MiB", "6%"]),
        ("zipf --for latency", &["--for latency", "throughput or p99"]),
        ("zipf --users 1,8", &["--users 1,8", "one value"]),
        ("zipf --page 4KiB,8KiB", &["--page 4KiB,8KiB", "generated"]),
        ("zipf --replacement lru,nosuch", &["--replacement", "nosuch"]),
        ("zipf --device optane --replacement lru,cflru-e", &["cflru-e", "optane"]),
        ("zipf --ops 0", &["--ops 0"]),
        ("zipf --seed x", &["--seed", "x"]),
        ("short.pages", &["1000 page requests", "2000"]),
        ("nosuch", &["nosuch"]),
    ] {
        let outcome = folder.run(&format!("advise {asked}"));
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{asked}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty(), "{asked}: {}", outcome.stdout);
        for word in words {
            assert!(outcome.stderr.contains(word), "{asked}: {}", outcome.stderr);
        }
    }
    assert_eq!(folder.names(), ["short.pages"]);
}

/// A drive that Fulgurite did not create is not changed, even by a dry run. A dry run does not measure the
/// drive that a run would create.
#[test]
fn a_real_drive_is_asked_before_it_is_used() {
    let folder = Folder::new().with("mine", "precious");
    let refused = folder.run("advise zipf --pages 2K --device file:mine,engine=psync");
    assert!(refused.code == 2 && refused.stderr.contains("mine"), "{}", refused.stderr);
    assert_eq!(folder.read("mine"), b"precious");
    let dry = folder.run("advise zipf --pages 2K --device file:new --dry-run");
    assert!(dry.code == 0 && dry.stdout.contains(" min"), "measuring takes a minute: {}", dry.stdout);
    assert_eq!(folder.names(), ["mine"]);
}

#[test]
fn the_text_fits_the_terminal() {
    let folder = Folder::new();
    for width in [80, 120] {
        let text = seen(&folder, &format!("advise mixed-skewed {FEW} {QUICK}"), width);
        assert!(text.starts_with("For mixed-skewed on optane with 800 KiB of memory and 1 user: "), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= usize::from(width), "{widest} of {width}\n{text}");
    }
}

/// On a terminal the headings of the advice's table are bold, unless `NO_COLOR` is set.
#[test]
fn the_heads_of_advice_are_bold() {
    let folder = Folder::new();
    let seen = |no_color: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
        command.args(format!("advise mixed-skewed {FEW} {QUICK}").split_whitespace());
        as_written(&folder, command.env("NO_COLOR", no_color), 120).stdout
    };
    let text = seen("");
    for head in ["setting", "plain", "advised", "alone", "p99"] {
        assert!(text.contains(&format!("\u{1b}[1m{head}\u{1b}[0m")), "{head}: {text}");
    }
    assert!(!seen("1").contains('\u{1b}'));
}

/// The rule: `advise` counts the records of a trace that it left out, and the times that go back, in columns
/// and in a remark. A generated workload has neither.
#[test]
fn an_advice_counts_what_it_left_out_of_a_trace() {
    let line = |at: u64| {
        let time = if at % 100 == 99 { at - 50 } else { at };
        let odd = if at % 500 == 7 { format!("1,{time},3f,512,{}\n", at * 7 % 96) } else { String::new() };
        format!("{odd}1,{time},{},512,{}\n", if at.is_multiple_of(3) { "2a" } else { "28" }, at * 7 % 96)
    };
    let lines: String = (0..3_000).map(line).collect();
    let folder = Folder::new().with("t.csv", format!("version,time,op,size,lbn\n{lines}"));
    let few = "--device optane --replacement lru,arc --write-back single --prefetch none";
    let rows = folder.rows(&format!("advise t.csv {few}"));
    for kind in ["advice", "plain"] {
        let row = of_kind(&rows, kind)[0];
        assert_eq!((number(row, "skipped"), number(row, "times_clamped")), (6.0, 30.0), "{row}");
    }
    let said = "The trace: 6 records that are no requests are left out and 30 times go back, which a pool does not \
                use.";
    assert!(of_kind(&rows, "advice")[0]["note"].as_str().unwrap().contains(said));
    let generated = folder.rows(&format!("advise zipf --pages 500 --ops 3000 {few}"));
    assert!(generated.iter().all(|row| row["skipped"].is_null()));
}
