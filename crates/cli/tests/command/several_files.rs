//! Tests several files that are one trace: lists, folders and patterns.

use crate::folder::{Folder, number};
use serde_json::Value;

const A: &str = "0,8,4096,R,10.5\n0,16,4096,R,10.7\n0,24,4096,W,12.0\n";
const B: &str = "0,8,4096,R,10.6\n0,88,4096,R,10.7\n";

fn folder() -> Folder {
    Folder::new().with("a.spc", A).with("b.spc", B).with("empty.spc", "")
}

fn figures(row: &Value, columns: [&str; 3]) -> [f64; 3] {
    columns.map(|column| number(row, column))
}

/// The rule: a list, a folder and a pattern are the same trace, merged by time. Files without a byte and files
/// that the pattern does not fit take no part.
#[test]
fn a_list_a_folder_and_a_pattern_are_one_trace() {
    let folder = folder().with("other.txt", "no trace");
    let make =
        folder.shell("mkdir day && cp a.spc b.spc empty.spc day && touch day/.hidden && mkdir day/inside");
    assert_eq!(make.code, 0);
    for name in ["a.spc,b.spc", "*.spc", "?.spc", "day", "day/*.spc", "./[ab].spc"] {
        let info = folder.run(&format!("trace info {name} --json"));
        if name.contains('[') {
            // Only stars and question marks are patterns.
            assert_eq!(info.code, 2, "{name}");
            continue;
        }
        let row =
            &serde_json::from_str::<Value>(&info.stdout).unwrap_or_else(|_| panic!("{}", info.stderr))[0];
        let columns = ["requests", "footprint_pages", "duration_ns"];
        assert_eq!(figures(row, columns), [5.0, 4.0, 1.5e9], "{name}");
    }
}

/// The rule: `--files` says how files are one trace; without it, a list makes one run for each file, as lists do.
#[test]
fn files_says_how_files_are_one_trace() {
    let folder = folder();
    let misses = |files: &str| {
        let rows = folder.rows(&format!("pool a.spc,b.spc{files} --device none --frames 4"));
        rows.iter().map(|row| number(row, "misses")).collect::<Vec<_>>()
    };
    assert_eq!(misses(""), [3.0, 2.0]);
    // Sector 8 of both files is one page, or two if each file has volumes of its own.
    assert_eq!(misses(" --files time"), [4.0]);
    assert_eq!(misses(" --files volumes"), [5.0]);
    assert_eq!(misses(" --files sequence,volumes"), [4.0, 5.0]);
    let ids: Vec<String> = ["time", "volumes", "sequence"]
        .map(|files| {
            let rows = folder.rows(&format!("pool a.spc,b.spc --files {files} --device none --frames 4"));
            rows[0]["run_id"].as_str().unwrap().to_owned()
        })
        .into();
    assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2], "{ids:?}");
    let list = folder.rows("trace info a.spc,b.spc --files volumes --format spc:volume=list");
    let names: Vec<&str> = list.iter().map(|row| row["volume"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.spc/0", "b.spc/0"]);
    let long = folder.rows("trace info a.spc,b.spc --files sequence");
    assert_eq!(number(&long[0], "duration_ns"), 1.6e9);
    let replayed = folder.rows("replay a.spc,b.spc --files time --device mem");
    assert_eq!(number(&replayed[0], "ops"), 5.0);
    let written = folder.rows("gc a.spc,b.spc --files time --logical 64KiB --physical 1MiB --segment 64KiB");
    assert_eq!(written.len(), 1);
}

/// The rule: the name of an existing file wins, even with commas and stars, and in a list the longest name that
/// exists counts.
#[test]
fn the_whole_name_of_a_file_wins() {
    let folder = folder().with("a.spc,b.spc", "0,8,512,R,1.0\n").with("x,y.spc", B);
    assert_eq!(number(&folder.rows("trace info a.spc,b.spc")[0], "requests"), 1.0);
    assert_eq!(number(&folder.rows("trace info a.spc,x,y.spc")[0], "requests"), 5.0);
}

/// The rule: a conversion of several files is the merged trace, and it never replaces one of its inputs.
#[test]
fn several_files_become_one() {
    let folder = folder();
    let converted = folder.run("trace convert a.spc,b.spc all.spc --to spc");
    assert_eq!(converted.code, 0, "{}", converted.stderr);
    let text = String::from_utf8(folder.read("all.spc")).unwrap();
    let sectors: Vec<&str> = text.lines().map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(sectors, ["8", "8", "16", "88", "24"]);
    for command in
        ["trace convert a.spc,b.spc b.spc --to spc --force", "trace convert *.spc b.spc --to spc --force"]
    {
        let refused = folder.run(command);
        assert_eq!((refused.code, folder.read("b.spc")), (2, B.into()), "{command}: {}", refused.stderr);
    }
    let replay = folder.run("replay a.spc,b.spc --files time --device mem --requests-out b.spc --force");
    assert_eq!((replay.code, folder.read("b.spc")), (2, B.into()), "{}", replay.stderr);
    let report = folder.run("pool a.spc,b.spc --files time --device none --frames 2 --report b.spc");
    assert_eq!((report.code, folder.read("b.spc")), (2, B.into()), "{}", report.stderr);
}

/// The rule: a name that stands for nothing, files of several formats and a useless `--files` are refused with what
/// would be accepted.
#[test]
fn what_is_no_trace_is_refused() {
    let folder = folder().with("p.pages", "R 5\n");
    for (command, words) in [
        ("trace info a.spc,none.spc", "there is no file none.spc of the list"),
        ("trace info *.csv", "stands for no file"),
        ("trace info a.spc,p.pages", "a.spc is spc and p.pages is page-ops"),
        ("trace info a.spc --files any", "--files: "),
        ("pool zipf --files time", "--files time does not go with zipf"),
        (
            "pool empty.spc,empty.spc --files time --frames 1 --device none",
            "no file; a trace has at least one",
        ),
    ] {
        let outcome = folder.run(command);
        assert_eq!(outcome.code, 2, "{command}");
        assert!(outcome.stderr.contains(words), "{command}: {}", outcome.stderr);
    }
}
