//! Tests interrupts: an interrupted command leaves no unfinished file, reports what remains, and is
//! terminated by the signal.

use crate::folder::Folder;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until `is_due` is true of the child's process id. Fails if the child ends before.
fn wait_until(child: &mut Child, is_due: impl Fn(u32) -> bool) {
    let start = Instant::now();
    while !is_due(child.id()) {
        assert!(child.try_wait().unwrap().is_none(), "the command ended before it was interrupted");
        assert!(start.elapsed() < Duration::from_secs(60), "the command did not come so far");
        sleep(Duration::from_millis(10));
    }
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Whether the process has `path` or a file below it open. The file may have no name.
fn has_open(process: u32, path: &Path) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.any(|target| target.starts_with(path))
}

#[test]
fn an_interrupted_output_leaves_nothing() {
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-KILL", 9)] {
        let folder = Folder::new().with("old.pages", "R 1\n");
        let mut child = folder.start("trace generate zipf old.pages --to page-ops --ops 1T --force");
        wait_until(&mut child, |id| has_open(id, &folder.0));
        send(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{name}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("interrupted"), number != 9, "{name}: {said}");
        assert_eq!(folder.names(), ["old.pages"], "{name}");
        assert_eq!(folder.read("old.pages"), b"R 1\n", "{name}");
    }
}

/// A study that is interrupted before its first run has ended removes the empty folders that it created, and
/// no other folders.
#[test]
fn a_study_interrupted_before_its_first_run_leaves_no_folder() {
    let grid = "workload = 'zipf'\ndevice = 'p4510'\nops = 1000000000\n";
    let study = format!("title = 'T'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\n{grid}");
    let folder = Folder::new().with("s.toml", study);
    std::fs::create_dir(folder.0.join("mine")).unwrap();
    // A file of another program, if any, appears while the study runs.
    for (out, others, left) in [
        ("mine", None, &["mine", "s.toml"][..]),
        ("new/deep", None, &["mine", "s.toml"]),
        ("new/deep", Some("new/other"), &["mine", "new", "s.toml"]),
    ] {
        let path = folder.0.join(out);
        let mut child = folder.start(&format!("study s.toml --out {out}"));
        wait_until(&mut child, |id| has_open(id, &path));
        if let Some(name) = others {
            std::fs::write(folder.0.join(name), "").unwrap();
        }
        send(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(2), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.ends_with("fulgurite: interrupted; no run of the study is finished\n"), "{said}");
        assert_eq!(
            (folder.names(), path.exists()),
            (left.iter().map(|name| (*name).into()).collect(), out == "mine")
        );
    }
}

/// A command may fail because the handling of an interrupt has removed its unfinished files. Such a command
/// reports only the interrupt. Here a full pipe delays the report of the interrupt, until the run has ended
/// and its folder is gone.
#[test]
fn a_failure_caused_by_an_interrupt_is_not_reported() {
    let study = "title = 'T'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\nworkload = 'zipf'\nops = '1M'\n";
    let folder = Folder::new().with("s.toml", study);
    let path = folder.0.join("out");
    let (mut reader, writer) = std::io::pipe().unwrap();
    // Fill the pipe: 64 KiB is its capacity.
    (&writer).write_all(&[b'.'; 1 << 16]).unwrap();
    let mut command = folder.command("study s.toml --out out --threads 1");
    let mut child = command.stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    drop(command);
    wait_until(&mut child, |id| has_open(id, &path));
    send(&child, "-INT");
    wait_until(&mut child, |_| !path.exists());
    // Wait for several pauses in a row, because a running thread may pause briefly.
    let rests = |id| {
        sleep(Duration::from_millis(10));
        !is_at_work(id)
    };
    wait_until(&mut child, |id| (0..10).all(|_| rests(id)));
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(said.trim_start_matches('.'), "fulgurite: interrupted; no run of the study is finished\n");
}

/// Whether a thread of the process is running.
fn is_at_work(process: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return false };
    let state = |path: std::path::PathBuf| std::fs::read_to_string(path.join("stat")).unwrap_or_default();
    threads.filter_map(|thread| Some(thread.ok()?.path())).any(|path| state(path).contains(") R "))
}

#[test]
fn a_command_under_nohup_ignores_hangups() {
    let folder = Folder::new();
    let script = "nohup fulgurite trace generate zipf new.pages --to page-ops --ops 20M > out 2>&1 & child=$!\n\
                  sleep 0.3; kill -HUP $child; wait $child";
    assert_eq!(folder.shell(script).code, 0);
    assert_eq!(folder.names(), ["new.pages", "out"]);
}

/// Returns the mark at the end of the drive in the file `d`; `None` if there is no such file.
fn mark(folder: &Folder) -> Option<String> {
    let file = File::open(folder.0.join("d")).ok()?;
    let mut text = [0; 24];
    file.read_exact_at(&mut text, file.metadata().ok()?.len().checked_sub(4096)?).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_drive_whose_creation_was_interrupted_is_reused() {
    let folder = Folder::new();
    let mut child = folder.start("bench tpcc --scale 4 --device file:d --ops 10");
    wait_until(&mut child, |_| mark(&folder).is_some_and(|mark| mark == "fulgurite drive, making\n"));
    send(&child, "-KILL");
    child.wait().unwrap();
    let outcome = folder.run("pool zipf --device file:d,size=4MiB --pages 100 --ops 10");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

/// An interrupted run reports that its drive keeps what was written. A run on a simulated drive leaves
/// nothing.
#[test]
fn an_interrupted_run_reports_its_remaining_drive() {
    let folder = Folder::new();
    let interrupted = |run: &str, is_due: &dyn Fn() -> bool| {
        let mut child = folder.start(run);
        wait_until(&mut child, |_| is_due());
        send(&child, "-INT");
        String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap()
    };
    let is_made = || mark(&folder).is_some_and(|mark| !mark.contains("making"));
    for command in ["pool", "advise"] {
        let on_file = format!("{command} zipf --device file:d,size=4MiB --pages 100 --ops 1G --quiet");
        let said = interrupted(&on_file, &is_made);
        assert_eq!(said.trim_end(), "fulgurite: interrupted; what was written stays in d");
        assert_eq!(folder.names(), ["d"]);
        std::fs::remove_file(folder.0.join("d")).unwrap();
    }
    let began = Instant::now();
    let simulated = "pool zipf --pages 100 --ops 1G --quiet";
    let said = interrupted(simulated, &|| began.elapsed().as_millis() > 300);
    assert_eq!(said.trim_end(), "fulgurite: interrupted");
}

#[test]
fn a_store_whose_load_was_interrupted_is_loaded_again() {
    let folder = Folder::new();
    let mut child = folder.start("bench ycsb-a --device file:d --ops 10");
    wait_until(&mut child, |_| mark(&folder).is_some_and(|mark| mark == "fulgurite drive, loading"));
    send(&child, "-KILL");
    child.wait().unwrap();
    let small = "bench ycsb-a:records=500 --ops 10 --device file:d";
    let outcome = folder.run(small);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let again = folder.run(small);
    assert_eq!(again.code, 2, "a load that has ended leaves a store that is not overwritten");
    assert!(again.stderr.contains("holds a store"), "{}", again.stderr);
}

#[test]
fn a_drive_larger_than_the_disk_is_refused() {
    let folder = Folder::new();
    for command in ["pool zipf --ops 10", "bench ycsb-a --ops 10", "profile"] {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        let device = "file:d,size=1000000000GiB";
        let at = if name == "profile" { device.to_owned() } else { format!("{rest} --device {device}") };
        let outcome = folder.run(&format!("{name} {at}"));
        assert_eq!(outcome.code, 2, "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("has room for"), "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("accepted"), "{command}: {}", outcome.stderr);
        assert!(folder.names().is_empty(), "{command}");
    }
}

/// An interrupted load reports a number of durable records, and the store has these records.
#[test]
fn an_interrupted_load_reports_the_durable_records() {
    let folder = Folder::new();
    let mut child = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_fulgurite")])
        .args("load s t --size 4MiB --log 512KiB".split(' '))
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Write the CSV rows slowly: the load makes the rows durable once a second.
    let mut rows = child.stdin.take().unwrap();
    for row in 0..250 {
        writeln!(rows, "{row},value").unwrap();
        sleep(Duration::from_millis(10));
    }
    send(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    drop(rows);
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let kept = said.split("the first ").nth(1).and_then(|rest| rest.split(' ').next());
    let kept: usize = kept.and_then(|kept| kept.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    let found = folder.run("scan s t").stdout.lines().count();
    assert!(kept >= 50 && found >= kept, "{said} {found}");
}

/// The rule: a load fails if another process removes, replaces or cuts the file of the store meanwhile.
#[test]
fn a_load_into_a_file_that_changes_meanwhile_fails() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("removed", |file| std::fs::remove_file(file).unwrap()),
        ("replaced", |file| {
            std::fs::remove_file(file).unwrap();
            std::fs::write(file, "another").unwrap();
        }),
        ("cut", |file| std::fs::File::options().write(true).open(file).unwrap().set_len(1 << 20).unwrap()),
    ];
    for (word, change) in changes {
        let folder = Folder::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_fulgurite"))
            .args("load s t --size 4MiB --log 512KiB".split(' '))
            .current_dir(&folder.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut rows = child.stdin.take().unwrap();
        writeln!(rows, "1,value").unwrap();
        let file = folder.0.join("s");
        while !file.exists() {
            sleep(Duration::from_millis(10));
        }
        change(&file);
        writeln!(rows, "2,value").unwrap();
        drop(rows);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1) && said.contains(&format!("s was {word} by")),
            "{word}: {said}"
        );
    }
}
