//! Tests the output on a terminal: tables that fit its width, in units for people, with findings above them.

use crate::folder::{Folder, Outcome};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

/// Returns the standard output of `fulgurite` on a terminal of `width` characters.
pub(crate) fn seen(folder: &Folder, arguments: &str, width: u16) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
    let Outcome { code, stdout, stderr } =
        on_terminal(folder, command.args(arguments.split_whitespace()), width);
    assert!(code < 2 && !stdout.is_empty(), "{arguments}: {stderr}");
    stdout
}

/// Executes `command` in `folder` with standard output on a terminal of `width` characters. Removes the codes
/// for bold and coloured text from the output.
pub(crate) fn on_terminal(folder: &Folder, command: &mut Command, width: u16) -> Outcome {
    let outcome = as_written(folder, command, width);
    Outcome { stdout: without_styles(&outcome.stdout), ..outcome }
}

/// Executes `command` as `on_terminal` does, and keeps the codes for bold and coloured text.
pub(crate) fn as_written(folder: &Folder, command: &mut Command, width: u16) -> Outcome {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    tcsetwinsize(&master, Winsize { ws_row: 40, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let mut child = command.current_dir(&folder.0).stdout(terminal).stderr(Stdio::piped()).spawn().unwrap();
    // Close our copy of the terminal, because reading from the terminal would never end while a copy is open.
    command.stdout(Stdio::null());
    let mut bytes = Vec::new();
    let mut master = File::from(master);
    let mut some = [0; 4096];
    // Read until an error, which occurs when no process has the terminal open any more.
    while let Ok(count @ 1..) = master.read(&mut some) {
        bytes.extend_from_slice(&some[..count]);
    }
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    let stdout = String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    Outcome { code, stdout, stderr }
}

/// Removes the codes for bold and coloured text, which have no width on a terminal.
fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

const TRACE: &str = "0,0,8192,W,0.5\n0,64,4096,R,0.75\n0,8,512,w,1.0\n";
const GC: &str = "gc fio-h --logical 12MiB --physical 16MiB --segment 64KiB --victim cost-benefit --ops 20K";

/// A study of 40 runs, which gives more rows than a terminal shows.
const STUDY: &str = "title = \"Does the seed matter?\"\nquestion = \"q\"\ncommand = \"pool\"\n[grid]\nworkload = \
    \"zipf\"\ndevice = \"mem\"\nops = 100\npages = 100\n";

fn folder() -> Folder {
    let seeds: Vec<String> = (1..=40).map(|seed| seed.to_string()).collect();
    let folder = Folder::new()
        .with("t.spc", TRACE)
        .with("rows.csv", "alice,1\nbob,2\n")
        .with("own.toml", format!("{STUDY}seed = [{}]\n", seeds.join(", ")));
    folder.run("load s.store users --from rows.csv --size 64MiB --log 1MiB");
    for seed in [1, 2] {
        let rows = folder.run(&format!("pool zipf,mixed-skewed --ops 1K --seed {seed} --csv")).stdout;
        // Write seed 7 into both results, because rows with different seeds would not be compared.
        std::fs::write(
            folder.0.join(format!("{seed}.csv")),
            rows.replace(&format!(",{seed},1000,"), ",7,1000,"),
        )
        .unwrap();
    }
    folder
}

/// The codes for bold headings have no width, so a table that fits the terminal is not divided.
#[test]
fn lines_about_a_store_are_not_cut() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
    command.args(["stat", "s.store"]).env("TERM", "xterm").env_remove("NO_COLOR");
    let written = as_written(&folder(), &mut command, 80).stdout;
    assert!(written.contains("\u{1b}["), "heads are bold: {written}");
    let heads = "table  levels  inner_pages  leaves  leaf_fill  records  record_bytes\n";
    assert!(without_styles(&written).contains(heads), "{written}");
}

#[test]
fn every_table_fits_the_terminal() {
    let folder = folder();
    let types = "bench tpcc:customers=60,items=500 --ops 300";
    let commands = [
        "study quickstart --quick".to_owned(),
        "study own.toml".to_owned(),
        "list".to_owned(),
        "list devices".to_owned(),
        "list device-parameters".to_owned(),
        "list columns".to_owned(),
        "list replacement".to_owned(),
        "list write-back".to_owned(),
        "list placement".to_owned(),
        "list formats".to_owned(),
        "list workloads".to_owned(),
        "list benchmarks".to_owned(),
        "list studies".to_owned(),
        "profile optane,sata".to_owned(),
        "profile reference-e".to_owned(),
        "pool zipf".to_owned(),
        "pool zipf,mixed-skewed:write=50%,hot_requests=80% --device p4510:channels=4,program_us=400,sata \
            --write-back single,ace:n_w=4,n_e=2 --prefetch none,sequential --users 1,2 --ops 1K"
            .to_owned(),
        GC.to_owned(),
        format!("{GC} --placement none,sepbit,midas"),
        format!("{GC} --placement midas --groups"),
        format!("{GC} --placement midas --explain"),
        format!("{GC} --placement sepbit --interval 7K"),
        "replay synthetic --ops 500 --schedule paced,preemptive".to_owned(),
        "replay synthetic --ops 500 --interval 500ms".to_owned(),
        "replay fio-h --device p4510:blocks=32 --users 4 --ops 1K --layer log:segment=1MiB --placement none,sepbit"
            .to_owned(),
        format!("{types} --durability flush,relaxed"),
        format!("{types} --by-type --interval 50ms"),
        "pool zipf --dry-run".to_owned(),
        "trace info t.spc".to_owned(),
        "trace convert t.spc u.msr --to msr".to_owned(),
        "trace generate zipf t.pages --to page-ops --ops 50".to_owned(),
        "stat s.store".to_owned(),
        "check s.store".to_owned(),
        "backup s.store copy.store".to_owned(),
        "repair s.store saved.store".to_owned(),
        "load s.store users --from rows.csv".to_owned(),
        "diff 1.csv 2.csv".to_owned(),
        "--help".to_owned(),
        "pool --help".to_owned(),
        "advise --help".to_owned(),
        "study --help".to_owned(),
    ];
    let mut wide = Vec::new();
    for command in commands {
        // Use one width for most commands, because running every command twice would take long.
        let widths =
            if command.starts_with("list") || command.contains("--help") { &[120, 80][..] } else { &[120] };
        for width in widths.iter().copied() {
            let seen = seen(&folder, &command, width);
            let widest = seen.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            if widest > usize::from(width) {
                wide.push(format!("{command}: {widest} columns of {width}\n{seen}"));
            }
            for name in ["copy.store", "saved.store"] {
                let _ = std::fs::remove_file(folder.0.join(name));
            }
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

#[test]
fn findings_precede_the_table() {
    let folder = Folder::new();
    let seen = seen(&folder, "pool mixed-skewed --write-back single,ace --ops 100K --users 1", 120);
    let lines: Vec<&str> = seen.lines().collect();
    let found =
        "ace has the highest throughput: 18.8 K/s, 20.1 % more than single, which has the lowest (15.7 K/s).";
    assert_eq!(lines[0], found, "{seen}");
    assert!(lines[2].starts_with("write_back  throughput  latency_p99  elapsed"), "{seen}");
    let ace: Vec<&str> = lines[4].split_whitespace().collect();
    assert_eq!((ace[0], ace[2]), ("ace", "K/s*"), "the best is marked: {seen}");
    // The row lists only `users`, which was typed. The replacement policy and the frames have their defaults.
    assert_eq!(lines[6], "The same in all runs: workload mixed-skewed, device p4510, users 1.", "{seen}");
    assert!(!seen.contains("lru") && !seen.contains("_ns"), "{seen}");
}

#[test]
fn a_large_study_prints_findings_and_the_path() {
    let folder = folder();
    let seen = seen(&folder, "study own.toml", 120);
    assert!(seen.starts_with("Does the seed matter?\n"), "{seen}");
    assert!(seen.contains("table:  results/own/table.csv, 40 rows\n"), "{seen}");
    assert!(seen.ends_with("report: results/own/report.html\n"), "{seen}");
    assert!(seen.lines().count() < 10, "{seen}");
    // A pipe receives every row of the table.
    assert!(folder.run("study own.toml").stdout.lines().count() > 40);
}

/// `--columns` and `--wide` mean the same for every kind of output.
#[test]
fn only_the_requested_columns_are_printed() {
    let folder = Folder::new();
    let command = "pool zipf --ops 1K --columns hit_ratio,throughput";
    assert!(folder.run(command).stdout.starts_with("hit_ratio  throughput_ops_s\n"));
    let csv = folder.run(&format!("{command} --csv")).stdout;
    assert_eq!(csv.lines().next(), Some("throughput_ops_s,hit_ratio"), "the order of every table");
    let row = &folder.rows(command)[0];
    assert_eq!(row.as_object().unwrap().len(), 2, "{row}");
    assert!(seen(&folder, command, 120).contains("\nhit_ratio  throughput\n"));
    assert!(seen(&folder, "pool zipf --ops 1K --wide", 80).contains("  flash_pages_programmed  "));
    assert!(folder.run("pool zipf --ops 1K --wide").stdout.contains("  flash_pages_programmed  "));
    let absent = folder.run("pool zipf --ops 1K --columns hit_ratio,erases,k_w --csv");
    assert_eq!((absent.code, absent.stderr.as_str()), (0, "no row has the column k_w\n"));
    for (arguments, words) in [
        ("bench ycsb-a --columns hit_rato", "did you mean `hit_ratio`"),
        ("pool zipf --columns hits --wide", "--wide"),
    ] {
        let refused = folder.run(arguments);
        assert_eq!(refused.code, 2, "{arguments}");
        assert!(refused.stderr.contains(words), "{arguments}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{arguments}: {}", refused.stderr);
    }
}

/// A terminal shows the best value of each column in green, unless `NO_COLOR` is set or the terminal has no
/// colours. A pipe never receives colours.
#[test]
fn the_best_value_is_green_on_a_colour_terminal() {
    let folder = Folder::new();
    let typed = "pool mixed-skewed --write-back single,ace --ops 20K";
    let seen = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
        let command = command.args(typed.split_whitespace()).env("TERM", "xterm").env_remove("NO_COLOR");
        as_written(&folder, command.env(name, value), 120).stdout
    };
    let green = |text: &str| text.split("\u{1b}[1;32m").skip(1).all(|cell| cell.contains("*\u{1b}[0m"));
    let coloured = seen("NO_COLOR", "");
    assert!(coloured.contains("\u{1b}[1;32m") && green(&coloured), "{coloured}");
    for plain in [seen("NO_COLOR", "1"), seen("TERM", "dumb"), folder.run(typed).stdout] {
        assert!(!plain.is_empty() && !plain.contains('\u{1b}'), "{plain}");
    }
    assert_eq!(without_styles(&coloured), seen("NO_COLOR", "1"));
}
