//! Tests the progress on a terminal, and the remark on a recorded timeline.

use crate::folder::Folder;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// Returns the standard error of `fulgurite` on a terminal, until the command ends or has shown `enough`.
fn shown(folder: &Folder, arguments: &str, enough: &str) -> String {
    shown_until(folder, arguments, enough, |child| child.kill().unwrap())
}

/// Returns the standard error of `fulgurite` on a terminal. When the command has shown `enough`, calls `stop`
/// to end it.
fn shown_until(folder: &Folder, arguments: &str, enough: &str, stop: impl Fn(&mut Child)) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let mut child = folder.command(arguments).stdout(Stdio::null()).stderr(terminal).spawn().unwrap();
    let mut seen = Vec::new();
    let mut master = File::from(master);
    let mut some = [0; 4096];
    let mut is_stopped = false;
    // Read until an error, which occurs when no process has the terminal open any more.
    while let Ok(count) = master.read(&mut some) {
        seen.extend_from_slice(&some[..count]);
        if !is_stopped && String::from_utf8_lossy(&seen).contains(enough) {
            stop(&mut child);
            is_stopped = true;
        }
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&seen).into_owned()
}

/// The largest number of executions until all words were shown. A thread draws the frames, and a busy machine
/// may delay it for longer than a short step takes. A word that is never drawn is missing in every execution.
const TRIES: usize = 5;

/// Executes the command until it shows the last of the words. It must show all of them.
fn shows(command: &str, words: &[&str]) {
    let mut missing = words.to_vec();
    let mut seen = String::new();
    for _ in 0..TRIES {
        let folder = Folder::new().with("t.spc", "0,0,8192,W,0.5\n".repeat(2_000_000));
        seen = shown(&folder, command, words[words.len() - 1]);
        for nonsense in ["of 0 ", " 0 B to write", "100%", "(0 s", "NaN", "inf"] {
            assert!(!seen.contains(nonsense), "{command}: `{nonsense}` in {seen}");
        }
        missing.retain(|word| !seen.contains(word));
        if missing.is_empty() {
            return;
        }
    }
    panic!("{command}: {missing:?} was never shown, at last in {seen}");
}

#[test]
fn progress_of_a_simulated_drive_is_shown() {
    shows(
        "pool zipf --device p4510:blocks=256 --ops 3M",
        &["1 run, about ", "preconditioning the drive", "% of 3,000,000 requests"],
    );
    shows(
        "pool zipf --write-back single,ace --ops 2M --threads 1",
        &["2 runs, ", "measuring writes of p4510", "1 of 2 runs"],
    );
    shows("gc zipf", &["1 run, about ", "% of 39,062,500 requests"]);
}

/// The rule: the number of rounds is not known before, so the progress of `--until-steady` shows the round and
/// the requests so far, and no share of the work.
#[test]
fn rounds_are_shown_without_a_share() {
    let small = "--device p4510:blocks=64 --users 16 --ops 50K --until-steady";
    for workloads in ["zipf:write=100%", "zipf:write=100%,mixed-skewed"] {
        let seen = shown(&Folder::new(), &format!("replay {workloads} {small}"), "round 3 of at most 20");
        assert!(seen.contains(" requests, ") && seen.contains("round 3 of at most 20"), "{seen}");
        let after = seen.split("round 1 of at most 20").nth(1).unwrap_or_default();
        assert!(!after.contains("% of ") && !after.contains("%, "), "{after}");
    }
}

/// The remaining time fits into a line of 80 columns beside the other words of a frame.
#[test]
fn a_frame_takes_one_line_of_a_terminal() {
    let seen =
        shown(&Folder::new(), "pool zipf --write-back single,ace,raw --users 1,2,3,4 --ops 9M", " left)");
    assert!(seen.contains("%, ") && seen.contains(" of 12 runs, ") && seen.contains(" left)"), "{seen}");
    assert!(!seen.contains("\x1b[1A"), "a frame has gone back a line: {seen}");
}

/// The report of an interrupt has a line of its own, without a frame of the progress bar before it.
#[test]
fn an_interrupt_clears_the_bar() {
    let interrupt = |child: &mut Child| {
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    };
    let seen = shown_until(&Folder::new(), "pool zipf --ops 9M", "% of 9,000,000 requests", interrupt);
    assert!(seen.contains("\r\x1b[2Kfulgurite: interrupted"), "{seen:?}");
}

#[test]
fn progress_of_reading_a_trace_is_shown() {
    shows("trace info t.spc", &["reading t.spc"]);
    shows("trace convert t.spc u.msr --to msr", &["reading t.spc"]);
    shows("trace generate zipf t.pages --to page-ops --ops 10M", &["% of 10,000,000 requests"]);
    shows("pool t.spc --frames 1", &["reading t.spc", "% of 4,000,000 requests"]);
}

/// The measured part of a benchmark run shows its progress.
#[test]
fn a_benchmark_shows_its_progress() {
    let seen = shown(&Folder::new(), "bench ycsb-a --ops 20K", "checking the store");
    let is_told = |frame: &str| frame.contains("running ycsb-a on p4510, ") && frame.contains("%, ");
    assert!(seen.split('\r').any(is_told), "{seen}");
}

/// In a pipe, a command that takes long first prints its estimate, and a short command prints nothing.
#[test]
fn a_long_command_prints_its_estimate_to_a_log() {
    let folder = Folder::new();
    let short = folder.run("gc zipf --logical 100MiB --physical 128MiB --ops 1K");
    assert_eq!((short.code, short.stderr.as_str()), (0, ""));
    let mut long = Command::new(env!("CARGO_BIN_EXE_fulgurite"))
        .args(["gc", "zipf", "--logical", "100GB", "--physical", "120GB"])
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(long.stderr.take().unwrap()).read_line(&mut line).unwrap();
    long.kill().unwrap();
    long.wait().unwrap();
    assert!(line.starts_with("1 run, about ") && line.contains(" of memory, about "), "{line}");
}

#[test]
fn progress_of_a_real_drive_is_shown() {
    // Do not expect words about creating the file: it takes milliseconds, so a frame may not show it.
    shows("profile file:d,size=256MiB", &["1 run, about ", "measuring reads of file:d"]);
    shows("bench ycsb-a --device file:d --ops 9K", &["loading ycsb-a into", "running ycsb-a on"]);
    shows("pool mixed-uniform --device file:d --ops 30K", &["checking every page on the drive"]);
}

#[test]
fn a_timeline_reports_its_length_and_limit() {
    let folder = Folder::new();
    let all = folder.run("replay synthetic --ops 100 --trace-out all.json");
    assert!(all.stderr.starts_with("timeline: all.json has all "), "{}", all.stderr);
    let quiet = folder.run("replay synthetic --ops 100 --quiet --trace-out quiet.json");
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
    assert_eq!(folder.names(), ["all.json", "quiet.json"]);
    let full = folder.run("replay fio-u --users 8 --ops 900K --trace-out full.json");
    assert!(full.stderr.contains("full.json has the first 2,000,000 spans, up to "), "{}", full.stderr);
    assert!(full.stderr.contains(" later ones were left out"), "{}", full.stderr);
}
