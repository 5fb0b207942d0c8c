//! Tests what the scripts beside the command refuse before they do anything.

use crate::folder::Folder;
use std::process::{Command, Output};

/// Runs the script that measures databases in a folder.
fn databases(folder: &Folder, arguments: &[&str]) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/real-databases");
    Command::new(script).args(arguments).current_dir(&folder.0).output().unwrap()
}

/// The rule: the script for databases tells its options, to any user.
#[test]
fn the_script_for_databases_tells_its_options() {
    let output = databases(&Folder::new(), &["--help"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for option in ["--quick", "--out DIR", "--only PART", "--speed"] {
        assert!(said.contains(option), "{option}: {said}");
    }
}

/// The rule: the script for databases leaves a file and a folder with files as they are, and says so in one sentence.
#[test]
fn the_script_for_databases_writes_into_no_folder_with_files() {
    let folder = Folder::new().with("table.csv", "kept");
    for out in [".", "table.csv"] {
        let output = databases(&folder, &["--quick", "--out", out]);
        assert!(output.status.code() == Some(1) && output.stdout.is_empty(), "{out}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let sentence = format!("scripts/real-databases: --out {out} exists and is not an empty folder");
        assert!(said.starts_with(&sentence) && said.lines().count() == 1, "{out}: {said}");
    }
    assert_eq!(folder.names(), ["table.csv"]);
    assert_eq!(folder.read("table.csv"), b"kept");
}
