//! A command that is interrupted leaves nothing unfinished, says what it leaves, and ends by the signal.

use crate::folder::Folder;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until `is_due`, as long as the child runs.
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

/// Whether the process has an unfinished file of `folder` open, with a name or without.
fn has_output(process: u32, folder: &Folder) -> bool {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.any(|target| target.starts_with(&folder.0))
}

#[test]
fn an_interrupted_output_leaves_nothing() {
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-KILL", 9)] {
        let folder = Folder::new().with("old.pages", "R 1\n");
        let mut child = folder.start("trace generate zipf old.pages --to page-ops --ops 1T");
        wait_until(&mut child, |id| has_output(id, &folder));
        send(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{name}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.contains("interrupted"), number != 9, "{name}: {said}");
        assert_eq!(folder.names(), ["old.pages"], "{name}");
        assert_eq!(folder.read("old.pages"), b"R 1\n", "{name}");
    }
}

#[test]
fn what_was_started_with_nohup_goes_on() {
    let folder = Folder::new();
    let script = "nohup fulgurite trace generate zipf new.pages --to page-ops --ops 20M > out 2>&1 & child=$!\n\
                  sleep 0.3; kill -HUP $child; wait $child";
    assert_eq!(folder.shell(script).code, 0);
    assert_eq!(folder.names(), ["new.pages", "out"]);
}
