//! Tests output files: no output destroys a file, and a failed write is always reported.

use crate::folder::Folder;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::process::{Command, Output, Stdio};

const TRACE: &str = "0,0,8192,W,0.5\n0,64,4096,R,0.75\n0,8,512,w,1.0\n";

/// Executes a bash script in which `fulgurite` is the command under test.
fn shell(folder: &Folder, script: &str) -> Output {
    let script = script.replace("fulgurite", env!("CARGO_BIN_EXE_fulgurite"));
    Command::new("bash").args(["-c", &script]).current_dir(&folder.0).output().unwrap()
}

/// Checks that the command fails with exit code 2 and one sentence with all of the words, and that every file
/// stays unchanged.
fn refused(folder: &Folder, arguments: &str, words: &[&str]) {
    let before = folder.names();
    let outcome = folder.run(arguments);
    assert_eq!(outcome.code, 2, "{arguments}: {}{}", outcome.stdout, outcome.stderr);
    assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "{arguments}: {}", outcome.stderr);
    for word in words.iter().chain(&["accepted"]) {
        assert!(outcome.stderr.contains(word), "{arguments}: no `{word}` in: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("os error"), "{arguments}: {}", outcome.stderr);
    assert_eq!(folder.names(), before, "{arguments} left something behind");
}

/// The error for a path that cannot be written names the argument, the component of the path that causes the
/// error, and the accepted values.
#[test]
fn an_output_error_names_the_cause() {
    let folder = Folder::new().with("t.spc", TRACE).with("rows.csv", "k,v\n").with("file", "x\n");
    assert_eq!(folder.run("load a.store t --from rows.csv --size 4MiB --log 512KiB").code, 0);
    symlink("loop", folder.0.join("loop")).unwrap();
    fs::create_dir(folder.0.join("folder")).unwrap();
    fs::create_dir_all(folder.0.join("taken/table.csv")).unwrap();
    let writers = [
        ("pool zipf --pages 10 --ops 10 --device none --report PATH", "--report"),
        ("replay t.spc --requests-out PATH", "--requests-out"),
        ("replay t.spc --trace-out PATH", "--trace-out"),
        ("trace convert t.spc PATH --to msr", "OUT"),
        ("trace generate zipf PATH --to midas --ops 10", "OUT"),
        ("backup a.store PATH", "OUT"),
        ("repair a.store PATH", "OUT"),
        ("load PATH t --from rows.csv --size 4MiB --log 512KiB", "FILE"),
        ("pool zipf --pages 10 --device file:PATH,size=1MiB", "device file:"),
        ("study quickstart --quick --out PATH", "--out"),
    ];
    let long = "y".repeat(300);
    let paths = [
        ("file/x", "file is no folder"),
        ("none/x", "there is no "),
        ("loop/x", "its links lead in a circle"),
        (long.as_str(), "its name is too long"),
    ];
    for (writer, argument) in writers {
        for (path, words) in paths {
            // Leave this case out, because a study creates its missing folders.
            if (argument, path) != ("--out", "none/x") {
                refused(&folder, &writer.replace("PATH", path), &[argument, path, words]);
            }
        }
    }
    // These paths have a file in place of a folder, or a folder in place of a file.
    for path in ["file", "file/", "a.store", "/dev/null"] {
        let accepted = "accepted: a folder, new or of an earlier run of this study";
        refused(
            &folder,
            &format!("study quickstart --quick --out {path}"),
            &["--out", path, "it is no folder", accepted],
        );
    }
    refused(&folder, "study quickstart --quick --out taken", &["--out taken", "table.csv", "folder"]);
    for (writer, argument) in &writers[..9] {
        for path in ["folder", "folder/"] {
            refused(&folder, &writer.replace("PATH", path), &[argument, path]);
        }
    }
}

#[test]
fn an_output_is_never_a_drive_or_a_store() {
    let folder = Folder::new().with("t.spc", TRACE).with("rows.csv", "key,value\n");
    assert_eq!(folder.run("load a.store t --from rows.csv --size 4MiB --log 512KiB").code, 0);
    assert_eq!(folder.run("replay synthetic --ops 10 --device file:drive,size=64KiB").code, 0);
    symlink("a.store", folder.0.join("link")).unwrap();
    let before = ["a.store", "drive"].map(|name| fs::read(folder.0.join(name)).unwrap());
    for name in ["a.store", "drive", "link"] {
        for argument in ["--requests-out", "--trace-out", "--report"] {
            refused(&folder, &format!("replay t.spc {argument} {name}"), &[argument, name, "would be lost"]);
        }
        refused(&folder, &format!("trace convert t.spc {name} --to msr"), &["OUT", name, "would be lost"]);
        refused(
            &folder,
            &format!("trace generate zipf {name} --to midas --ops 10"),
            &["OUT", name, "would be lost"],
        );
    }
    let after = ["a.store", "drive"].map(|name| fs::read(folder.0.join(name)).unwrap());
    assert!(before == after);
}

#[test]
fn an_output_is_never_an_input() {
    let folder = Folder::new().with("t.spc", TRACE);
    symlink("t.spc", folder.0.join("link.spc")).unwrap();
    fs::hard_link(folder.0.join("t.spc"), folder.0.join("hard.spc")).unwrap();
    let there = folder.0.display().to_string();
    for same in ["t.spc", "./t.spc", "link.spc", "hard.spc", &format!("{there}/t.spc")] {
        for argument in ["--requests-out", "--trace-out", "--report"] {
            refused(&folder, &format!("replay t.spc {argument} {same}"), &[argument, same, "workload"]);
        }
        for command in ["pool t.spc", "gc t.spc", "advise t.spc --replacement lru"] {
            refused(&folder, &format!("{command} --report {same}"), &["--report", same, "workload"]);
        }
        refused(&folder, &format!("trace convert t.spc {same} --to msr"), &["OUT", same, "FILE"]);
    }
    fs::write(folder.0.join("disk"), vec![7; 4096]).unwrap();
    refused(
        &folder,
        "replay synthetic --device file:disk --requests-out disk",
        &["--requests-out", "device"],
    );
    let drives =
        ["profile file:disk", "bench ycsb-a --device file:disk", "pool zipf --device file:new,size=1MiB"];
    for (command, name) in drives.into_iter().zip(["disk", "disk", "new"]) {
        refused(&folder, &format!("{command} --report {name}"), &["--report", name, "device"]);
    }
    for other in ["--requests-out", "--trace-out"] {
        refused(&folder, &format!("replay t.spc {other} x.html --report ./x.html"), &["--report", other]);
    }
    assert_eq!(folder.read("t.spc"), TRACE.as_bytes());
    assert_eq!(folder.read("disk"), [7; 4096]);
}

/// A file with contents is replaced only with `--force`, or by another output of the same kind.
#[test]
fn an_output_replaces_only_earlier_outputs() {
    let folder = Folder::new().with("t.spc", TRACE).with("notes", "precious\n").with("empty", "");
    symlink("notes", folder.0.join("link")).unwrap();
    let writers = [
        "replay t.spc --requests-out",
        "replay t.spc --trace-out",
        "trace convert t.spc --to msr",
        "trace generate zipf --to midas --ops 10",
    ];
    for writer in writers {
        for name in ["notes", "link"] {
            refused(&folder, &format!("{writer} {name}"), &[name, "exists", "--force"]);
        }
        assert_eq!(folder.read("notes"), b"precious\n");
        fs::write(folder.0.join("empty"), "").unwrap();
        for arguments in [format!("{writer} empty"), format!("{writer} notes --force")] {
            let outcome = folder.run(&arguments);
            assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
        }
        assert_ne!(folder.read("notes"), b"precious\n", "{writer} --force");
        // Write the same output again. A trace is not replaced without `--force`, because nothing shows who
        // wrote it.
        match writer.starts_with("replay") {
            true => assert_eq!(folder.run(&format!("{writer} notes")).code, 0, "{writer}"),
            false => refused(&folder, &format!("{writer} notes"), &["exists", "--force"]),
        }
        fs::write(folder.0.join("notes"), "precious\n").unwrap();
    }
    // One kind of output does not replace another kind, and even `--force` does not replace a store.
    assert_eq!(folder.run("replay t.spc --requests-out requests --trace-out spans").code, 0);
    refused(&folder, "replay t.spc --trace-out requests", &["--trace-out", "exists", "no earlier output"]);
    refused(&folder, "replay t.spc --requests-out spans", &["--requests-out", "exists", "no earlier output"]);
    refused(&folder, "replay t.spc --requests-out t.spc --force", &["same file"]);
    let load = shell(&folder, "echo k,v | fulgurite load a.store t --size 4MiB --log 512KiB");
    assert!(load.status.success());
    refused(&folder, "replay t.spc --requests-out a.store --force", &["would be lost"]);
    refused(&folder, "trace convert t.spc a.store --to msr --force", &["would be lost"]);
}

#[test]
fn two_outputs_are_two_files() {
    let folder = Folder::new();
    symlink("a", folder.0.join("link")).unwrap();
    for other in ["a", "./a", "link"] {
        let arguments = format!("replay synthetic --ops 10 --trace-out a --requests-out {other}");
        refused(&folder, &arguments, &["--trace-out", "--requests-out", "same file"]);
    }
}

/// A name that ends like that of a compressed file is refused, because the file would not be compressed.
#[test]
fn a_plain_output_with_a_compressed_name_is_refused() {
    let folder = Folder::new();
    for argument in ["--requests-out", "--trace-out"] {
        for end in ["gz", "zst"] {
            let arguments = format!("replay synthetic --ops 10 {argument} log.{end}");
            refused(&folder, &arguments, &[argument, &format!("log.{end}"), &format!("without .{end}")]);
        }
    }
    assert!(folder.names().is_empty());
}

#[test]
fn a_study_keeps_the_files_that_it_reads() {
    let study = |workload: &str| {
        format!("title = 'T'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\nworkload = '{workload}'\nops = 2\n")
    };
    let folder = Folder::new().with("study.toml", study("zipf")).with("other.toml", study("table.csv"));
    fs::write(folder.0.join("table.csv"), "R 1\nW 2\n").unwrap();
    refused(&folder, "study study.toml --out .", &["--out", "study.toml"]);
    refused(&folder, "study other.toml --out .", &["--out", "table.csv", "workload"]);
    assert_eq!(folder.read("study.toml"), study("zipf").as_bytes());
    assert_eq!(folder.read("table.csv"), b"R 1\nW 2\n");
}

#[test]
fn special_files_are_written_directly() {
    let folder = Folder::new();
    let output = shell(
        &folder,
        "mkfifo pipe; cat pipe > read & fulgurite replay synthetic --ops 10 --requests-out pipe; wait",
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(fs::metadata(folder.0.join("pipe")).unwrap().file_type().is_fifo(), "the FIFO was replaced");
    let lines = |name: &str| String::from_utf8(folder.read(name)).unwrap().lines().count();
    assert_eq!(lines("read"), 11);
    // Standard output is a file here. It receives the lines of the request log and then the table.
    let output =
        shell(&folder, "fulgurite replay synthetic --ops 10 --csv --requests-out /dev/stdout > both");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(lines("both"), 11 + 2);
    let output = shell(&folder, "fulgurite replay synthetic --ops 10 --requests-out /dev/fd/3 3> third");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(lines("third"), 11);
    assert_eq!(folder.names(), ["both", "pipe", "read", "third"]);
    refused(&folder, "replay synthetic --requests-out .", &["--requests-out", "folder"]);
}

#[test]
fn a_full_disk_is_a_failure() {
    let folder = Folder::new();
    for command in [
        "list",
        "list --json",
        "--help",
        "pool --help",
        "--version",
        "gc fio-h --logical 64MiB --physical 80MiB --segment 256KiB --ops 1K",
    ] {
        let output = shell(&folder, &format!("fulgurite {command} > /dev/full"));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("standard output cannot be written: the disk is full"), "{command}: {said}");
        assert_eq!(said.lines().count(), 1, "{command}: {said}");
    }
    let output = shell(&folder, "fulgurite replay synthetic --ops 1000 --requests-out /dev/full");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--requests-out /dev/full cannot be written"), "{said}");
    assert_eq!(output.stdout, b"", "a run whose output is lost prints no row");
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let folder = Folder::new().with("old.csv", "old");
    // A limit on the size of files makes writes of the log fail as on a full disk.
    let script =
        "trap '' XFSZ; ulimit -f 8; fulgurite replay synthetic --ops 5000 --requests-out old.csv --force";
    let output = shell(&folder, script);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("--requests-out old.csv cannot be written"), "{said}");
    assert_eq!(folder.read("old.csv"), b"old");
    assert_eq!(folder.names(), ["old.csv"], "something unfinished was left behind");
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let folder = Folder::new().with("old.csv", "old").with("target", "old");
    fs::set_permissions(folder.0.join("old.csv"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("target", folder.0.join("link")).unwrap();
    let mode = |name: &str| fs::symlink_metadata(folder.0.join(name)).unwrap().permissions().mode() & 0o777;
    for name in ["old.csv", "new.csv", "link"] {
        let output = shell(
            &folder,
            &format!("umask 022; fulgurite replay synthetic --ops 10 --requests-out {name} --force"),
        );
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!((mode("old.csv"), mode("new.csv")), (0o640, 0o644));
    assert!(fs::symlink_metadata(folder.0.join("link")).unwrap().is_symlink(), "the link was replaced");
    assert!(folder.read("target").starts_with(b"arrived_ns,"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    for command in ["list", "list --csv", "--help"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fulgurite"))
            .args(command.split_whitespace())
            .current_dir(&folder.0)
            .stdout(closed_pipe())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{command}");
    }
}

/// Returns the writing end of a pipe that has no reader.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop::<std::io::PipeReader>(reader);
    Stdio::from(File::from(std::os::fd::OwnedFd::from(writer)))
}
