//! Tests the commands over a store in a file.

use crate::folder::{Folder, Outcome, number};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Options for a small store, which is created quickly.
const SMALL: &str = "--size 4MiB --log 512KiB";
const PAGE: usize = 4096;
/// The number of the first data page of a small store. Before it are 128 KiB, the log, and 128 pages of the
/// double-write area.
const DATA: usize = 32 + 128 + 128;

fn command(folder: &Folder, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
    command.args(arguments.split_whitespace()).current_dir(&folder.0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Executes a command with `input` on standard input. Its input and output need not be UTF-8.
fn fed(folder: &Folder, arguments: &str, input: &[u8]) -> Output {
    let mut child = command(folder, arguments).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Ignore an error, because the command may refuse the input before it has read all of it.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    })
}

fn loaded(folder: &Folder, file: &str, rows: &str) {
    let output = fed(folder, &format!("load {file} t {SMALL}"), rows.as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns CSV rows with keys `key00000`, … and values that contain the key.
fn rows(records: u32) -> String {
    (0..records).map(|key| format!("key{key:05},value{key:05}-{}\n", "x".repeat(80))).collect()
}

fn done(folder: &Folder, arguments: &str) -> String {
    let outcome = folder.run(arguments);
    assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
    outcome.stdout
}

/// Checks that a command ends with this exit code, and that its error contains these words.
fn refused(folder: &Folder, arguments: &str, code: i32, words: &[&str]) -> Outcome {
    let outcome = folder.run(arguments);
    assert_eq!(outcome.code, code, "{arguments}: {}{}", outcome.stdout, outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "{arguments}: no `{word}` in {}", outcome.stderr);
    }
    outcome
}

/// Flips a bit of a byte in the leaf that holds the record of `key00500`.
fn damage_a_leaf(folder: &Folder, file: &str) {
    let mut bytes = folder.read(file);
    let needle = b"value00500";
    let found = bytes[DATA * PAGE..].windows(needle.len()).rposition(|window| window == needle);
    bytes[DATA * PAGE + found.expect("the record is in a data page")] ^= 1;
    fs::write(folder.0.join(file), bytes).unwrap();
}

#[test]
fn values_of_any_bytes_are_returned() {
    let all: Vec<u8> = (0..=255).collect();
    let escaped: String = all.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    let mut rows: String = (0..=255).map(|byte| format!("\\x{byte:02x}k,v\\x{byte:02x}\n")).collect();
    rows += &format!("all,{escaped}\n");
    rows += "\"comma, quote \"\" and\nline\",\" a \\\\ backslash\"\n,no key\nno value,\ngr\u{fc}n,\u{3bb}\n";
    let folder = Folder::new();
    loaded(&folder, "a", &rows);
    assert_eq!(fed(&folder, "get a t all --raw", b"").stdout, all);
    assert_eq!(fed(&folder, "get a t \\x0ak --raw", b"").stdout, b"v\n");
    assert_eq!(fed(&folder, "get a t \\xffk --raw", b"").stdout, b"v\xff");
    let odd = "get a t comma,\\x20quote\\x20\"\\x20and\\x0aline";
    assert_eq!(done(&folder, odd), " a \\\\ backslash\n");
    assert_eq!(done(&folder, "get a t gr\u{fc}n"), "\u{3bb}\n");
    assert_eq!(done(&folder, "get a t no\\x20value"), "\n");
    let scanned = done(&folder, "scan a t");
    assert_eq!(scanned.lines().count(), 256 + 5, "a record a line");
    assert!(scanned.starts_with(",no key\n"), "{scanned}");
    assert!(scanned.contains("\"comma, quote \"\" and\\x0aline\", a \\\\ backslash\n"), "{scanned}");
    loaded(&folder, "b", &scanned);
    assert_eq!(done(&folder, "scan b t"), scanned);
    assert_eq!(fed(&folder, "get b t all --raw", b"").stdout, all);
    // Bytes that are not UTF-8 are accepted without escapes.
    fed(&folder, "load a t", b"raw,\xff\xfe\n");
    assert_eq!(done(&folder, "get a t raw"), "\\xff\\xfe\n");
}

#[test]
fn a_first_row_is_a_record_unless_it_is_called_a_header() {
    let folder = Folder::new();
    loaded(&folder, "a", "name,age\nanna,31\n");
    assert_eq!(done(&folder, "scan a t"), "anna,31\nname,age\n");
    let output = fed(&folder, &format!("load b t --header {SMALL}"), b"name,age,more\nanna,31\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(done(&folder, "scan b t"), "anna,31\n");
    // The header counts as a line in error messages.
    let output = fed(&folder, "load b t --header", b"name,age\nalone\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("line 2"), "{said}");
}

#[test]
fn json_is_one_array_of_records() {
    let folder = Folder::new();
    loaded(&folder, "a", "b,2\na,\"say \"\"hi\"\"\"\n");
    let rows = folder.rows("scan a t");
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["key"], &rows[0]["value"]), (&"a".into(), &"say \"hi\"".into()));
    assert_eq!(folder.rows("get a t b")[0], serde_json::json!({ "key": "b", "value": "2" }));
    assert_eq!(done(&folder, "scan a t --prefix z --json"), "[]\n");
}

#[test]
fn a_later_row_wins() {
    let folder = Folder::new();
    loaded(&folder, "a", "k,1\nk,2\n");
    assert_eq!(done(&folder, "get a t k"), "2\n");
    loaded(&folder, "a", "k,3\nl,4\n");
    assert_eq!(done(&folder, "scan a t"), "k,3\nl,4\n");
}

#[test]
fn a_scan_takes_a_range_both_ways() {
    let folder = Folder::new();
    loaded(&folder, "a", "a,1\nb,2\nba,3\nc,4\n");
    let keys = |arguments: &str| -> String {
        let scanned = done(&folder, &format!("scan a t {arguments}"));
        scanned.lines().map(|line| format!("{} ", line.split(',').next().unwrap())).collect()
    };
    assert_eq!(keys("--from b --to c"), "b ba ");
    assert_eq!(keys("--prefix b --backward"), "ba b ");
    assert_eq!(keys("--backward --limit 3"), "c ba b ");
    assert_eq!(keys("--to ba"), "a b ");
    assert_eq!(keys("--limit 0"), "");
    refused(&folder, "scan a t --prefix b --from a", 2, &["--prefix", "--from"]);
    refused(&folder, "scan a t --limit few", 2, &["--limit", "few"]);
}

#[test]
fn missing_keys_and_tables_are_named() {
    let folder = Folder::new();
    loaded(&folder, "a", "k,1\n");
    fed(&folder, "load a other", b"x,y\n");
    let missing = refused(&folder, "get a t nokey", 1, &["nokey", "table t"]);
    assert_eq!(missing.stdout, "");
    refused(&folder, "get a nowhere k", 2, &["TABLE nowhere", "other, t"]);
    refused(&folder, "scan a nowhere", 2, &["TABLE nowhere", "other, t"]);
    refused(&folder, "get a t \\x4", 2, &["KEY", "\\xNN"]);
    refused(&folder, "get a t k --memory 1KiB", 2, &["--memory", "2MiB"]);
    for command in ["get nofile t k", "scan nofile t", "stat nofile", "check nofile"] {
        refused(&folder, command, 2, &["nofile"]);
    }
    refused(&folder, "check .", 2, &["neither a file nor a block device"]);
    assert_eq!(folder.names(), ["a"], "nothing was made");
}

#[test]
fn a_bad_row_is_named_by_its_line_and_the_rows_before_it_stay() {
    for (row, words) in [
        ("x,y,z", &["line 3", "fields in the row: 3"][..]),
        ("alone", &["line 3", "fields in the row: 1"]),
        ("x,\\q", &["line 3", "\\q", "\\xNN"]),
        (&format!("{},x", "k".repeat(600)), &["line 3", "600", "512"]),
        ("x,\"open\nd,4", &["line 3", "quote"]),
    ] {
        let folder = Folder::new();
        let input = format!("a,1\n\"b\",2\n{row}\nc,3\n");
        let output = fed(&folder, &format!("load a t {SMALL}"), input.as_bytes());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{row}: {said}");
        for word in words.iter().chain(&["--from", "2 records"]) {
            assert!(said.contains(word), "{row}: no `{word}` in {said}");
        }
        assert_eq!(done(&folder, "scan a t"), "a,1\nb,2\n", "{row}");
    }
}

#[test]
fn a_wrong_load_creates_no_store() {
    let folder = Folder::new();
    refused(&folder, "load a t --from nowhere.csv", 2, &["--from", "nowhere.csv"]);
    refused(&folder, "load a t --from .", 2, &["--from", "folder"]);
    refused(&folder, "load a t --size 1MiB", 2, &["--size", "needs"]);
    refused(&folder, "load a t --size 5KB", 2, &["--size", "multiple"]);
    refused(&folder, "load a t --page 3KiB --size 3MiB", 2, &["--page", "power of two"]);
    refused(&folder, "load a t --log 4KiB --size 64MiB", 2, &["--log", "accepted"]);
    // These sizes are larger than the address space of processors.
    refused(&folder, "load a t --size 500TiB --memory 900TiB", 2, &["--memory 900TiB", "less"]);
    let nameless = command(&folder, "load a").arg("").output().unwrap();
    assert_eq!(nameless.status.code(), Some(2));
    refused(&folder, "load a fulgurite.shards", 2, &["TABLE fulgurite.shards"]);
    refused(&folder, "load no/folder/a t", 2, &["FILE", "no/folder/a"]);
    assert_eq!(folder.names(), [""; 0]);
}

/// The rule: rows for which the file system has no room are refused before a file is made.
#[test]
fn load_asks_for_room_first() {
    let folder = Folder::new();
    // A sparse file, longer than any file system is.
    let rows = std::fs::File::create(folder.0.join("rows.csv")).unwrap();
    rows.set_len(1 << 43).unwrap();
    refused(&folder, "load k.store t --from rows.csv", 2, &["k.store", "rows of 8 TiB", "file system has"]);
    assert_eq!(folder.names(), ["rows.csv"]);
}

/// The rule: a write beyond the limit on the length of a file is an error that names the file, and no signal ends the
/// command. The store keeps its records.
#[test]
fn a_limit_on_the_length_of_files_is_an_error() {
    let folder = Folder::new();
    loaded(&folder, "k.store", &rows(10));
    std::fs::write(folder.0.join("rows.csv"), rows(200_000)).unwrap();
    let limited = |arguments: &str| folder.shell(&format!("ulimit -f 64; fulgurite {arguments}"));
    let load = limited("load k.store u --from rows.csv");
    assert_eq!(load.code, 1, "{}", load.stderr);
    for word in ["k.store", "File too large", "raise the limit on the length of files (ulimit -f)"] {
        assert!(load.stderr.contains(word), "{}", load.stderr);
    }
    let new = limited("load new.store u --from rows.csv");
    assert_eq!(new.code, 2, "{}", new.stderr);
    assert!(new.stderr.contains("ulimit -f") && !folder.0.join("new.store").exists(), "{}", new.stderr);
    let trace = limited("trace generate zipf x.pages --to page-ops --ops 200K");
    assert_eq!(trace.code, 1, "{}", trace.stderr);
    assert!(trace.stderr.contains("ulimit -f"), "{}", trace.stderr);
    assert!(done(&folder, "check k.store").contains("is sound"));
}

#[test]
fn load_does_not_change_other_files() {
    let folder = Folder::new().with("letters", "mine");
    done(&folder, "pool zipf --device file:drive,engine=psync --pages 1K --ops 10");
    for file in ["letters", "drive"] {
        let before = folder.read(file);
        refused(&folder, &format!("load {file} t {SMALL}"), 2, &[file, "no store", "left as it is"]);
        refused(&folder, &format!("check {file}"), 2, &[file, "no store"]);
        refused(&folder, &format!("repair {file} out"), 2, &[file, "no store"]);
        refused(&folder, &format!("backup {file} out"), 2, &[file, "no store"]);
        assert_eq!(folder.read(file), before);
    }
    assert_eq!(folder.names(), ["drive", "letters"]);
}

#[test]
fn a_store_is_extended_copied_into_another_shape_and_made_smaller() {
    let folder = Folder::new();
    loaded(&folder, "a", &rows(3000));
    let full = folder.rows("stat a")[0].clone();
    fed(&folder, "load a t --size 64MiB", b"last,1\n");
    let larger = folder.rows("stat a")[0].clone();
    let pages = |row: &serde_json::Value| row["pages"].as_u64().unwrap();
    assert_eq!(pages(&larger) - pages(&full), (60 << 20) / 4096);
    assert_eq!(larger["records"], 3001);
    let copied = done(&folder, "backup a b --size 128MiB --log 2MiB --page 8KiB --place out-of-place");
    assert!(copied.contains("3,001 records of a in a store of 128 MiB"), "{copied}");
    let copy = folder.rows("stat b")[0].clone();
    assert_eq!((&copy["page_bytes"], &copy["log_bytes"]), (&8192.into(), &(2 << 20).into()));
    assert_eq!((&copy["place"], &copy["records"]), (&"out-of-place".into(), &3001.into()));
    refused(&folder, "load b t --size 256MiB", 2, &["--size 256MiB", "accepted: 128MiB"]);
    refused(&folder, "backup a b --size 64MiB", 2, &["OUT b exists"]);
    refused(&folder, "repair a c --size 100KiB", 2, &["--size 100KiB", "a multiple of 64KiB"]);
    assert!(done(&folder, "repair a c --size 32MiB").contains("3001 records saved"));
    let compacted = folder.rows("compact a")[0].clone();
    assert!(compacted["pages_used"].as_u64() <= larger["pages_used"].as_u64(), "{compacted} {larger}");
    assert!(compacted["disk_bytes"].as_u64().unwrap() < 8 << 20, "{compacted}");
    assert!(done(&folder, "check a").contains("3,001 records"));
}

#[test]
fn a_store_keeps_its_sizes() {
    let folder = Folder::new();
    loaded(&folder, "a", "k,1\n");
    refused(&folder, "load a t --page 8KiB", 2, &["--page 8KiB", "4KiB"]);
    refused(&folder, "load a t --size 2MiB", 2, &["--size 2MiB", "4MiB"]);
    refused(&folder, "load a t --log 1MiB", 2, &["--log 1MiB", "512KiB"]);
    done(&folder, &format!("load a t {SMALL} --page 4KiB"));
    let about = &folder.rows("stat a")[0];
    assert_eq!((&about["page_bytes"], &about["log_bytes"]), (&4096.into(), &(512 << 10).into()));
    fed(&folder, "load b t --page 16KiB --size 64MiB --log 2MiB", b"k,1\n");
    assert_eq!(folder.rows("stat b")[0]["page_bytes"], 16_384);
    assert_eq!(done(&folder, "get b t k"), "1\n");
}

#[test]
fn stat_counts_tables_and_records() {
    let folder = Folder::new();
    loaded(&folder, "a", &rows(1000));
    fed(&folder, "load a other", b"k,12\n");
    let rows = folder.rows("stat a");
    let names: Vec<_> = rows[1..].iter().map(|row| row["table"].as_str().unwrap()).collect();
    assert_eq!(names, ["other", "t"]);
    assert_eq!((&rows[1]["records"], &rows[1]["record_bytes"]), (&1.into(), &3.into()));
    assert_eq!((&rows[2]["records"], &rows[2]["record_bytes"]), (&1000.into(), &(1000 * 99).into()));
    assert_eq!((&rows[1]["levels"], &rows[1]["leaves"]), (&1.into(), &1.into()));
    assert_eq!((&rows[2]["levels"], &rows[2]["inner_pages"]), (&2.into(), &1.into()));
    // The records take 99 KB, and a slot for each record. Leaves do not repeat common prefixes of keys.
    let (leaves, fill) = (rows[2]["leaves"].as_f64().unwrap(), rows[2]["leaf_fill"].as_f64().unwrap());
    assert!((99_000.0..115_000.0).contains(&(leaves * fill * 4096.0)), "{leaves} leaves, {fill}");
    let about = &rows[0];
    assert_eq!((&about["records"], &about["tables"]), (&1001.into(), &2.into()));
    let number = |column: &str| about[column].as_u64().unwrap_or_else(|| panic!("{column}: {about}"));
    assert_eq!(number("pages_used") + number("pages_free"), number("pages"));
    assert_eq!(number("log_used_bytes"), 0, "a load closes the store: {about}");
    // The records take 99 KB, and some are in half-full pages.
    assert!((25..80).contains(&number("pages_used")), "{about}");
    let text = done(&folder, "stat a");
    assert!(text.starts_with("file") && text.contains("torn_pages") && text.contains("1,001"), "{text}");
}

#[test]
fn only_load_changes_the_file() {
    let folder = Folder::new();
    loaded(&folder, "closed", &rows(300));
    let mut child = command(&folder, &format!("load crashed t {SMALL}")).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(rows(3000).as_bytes()).unwrap();
    wait_for(&folder, "crashed");
    child.kill().unwrap();
    child.wait().unwrap();
    for file in ["closed", "crashed"] {
        let before = folder.read(file);
        done(&folder, &format!("stat {file}"));
        assert!(done(&folder, &format!("check {file}")).contains("is sound"));
        folder.run(&format!("scan {file} t"));
        folder.run(&format!("get {file} t key00001"));
        done(&folder, &format!("backup {file} {file}-copy"));
        done(&folder, &format!("repair {file} {file}-saved"));
        assert!(folder.read(file) == before, "{file}");
    }
}

/// Waits until a command has created its file.
fn wait_for(folder: &Folder, file: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while !folder.0.join(file).exists() {
        assert!(Instant::now() < end, "{file} does not appear");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_store_has_one_writer_or_many_readers() {
    let folder = Folder::new();
    loaded(&folder, "a", &rows(5000));
    // This command keeps the store open, because it waits for its input.
    let mut writer = command(&folder, &format!("load b t {SMALL}")).spawn().unwrap();
    wait_for(&folder, "b");
    for command in ["get b t k", "scan b t", "stat b", "check b", "repair b out", "backup b out", "load b t"]
    {
        refused(&folder, command, 2, &["b is in use"]);
    }
    drop(writer.stdin.take());
    assert!(writer.wait().unwrap().success());
    // This command keeps the store open, because its output is larger than a pipe and it waits for its
    // reader.
    let mut reader = command(&folder, "scan a t").spawn().unwrap();
    first_line(&mut reader);
    done(&folder, "get a t key00001");
    refused(&folder, "load a t", 2, &["a is in use"]);
    reader.kill().unwrap();
    reader.wait().unwrap();
    assert_eq!(folder.names(), ["a", "b"]);
}

/// Reads one line of a child's output and does not close the pipe.
fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_closed_pipe_ends_a_scan_quietly() {
    let folder = Folder::new();
    loaded(&folder, "a", &rows(5000));
    for form in ["", "--json"] {
        let mut scan = command(&folder, &format!("scan a t {form}")).spawn().unwrap();
        assert!(!first_line(&mut scan).is_empty());
        drop(scan.stdout.take());
        let mut said = String::new();
        scan.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!((scan.wait().unwrap().code(), said.as_str()), (Some(0), ""), "{form}");
    }
}

#[test]
fn damage_is_found_and_the_rest_is_saved() {
    let folder = Folder::new();
    let rows = rows(1000);
    loaded(&folder, "a", &rows);
    fed(&folder, "load a whole", b"k,1\n");
    assert!(done(&folder, "check a").contains("a is sound"));
    fed(&folder, "load one t --size 4MiB --log 512KiB", b"k,1\n");
    assert!(done(&folder, "check one").ends_with(" pages, 1 record in 1 table\n"));
    assert!(done(&folder, "repair a sound").contains("everything was saved"));
    assert_eq!(done(&folder, "scan sound t"), rows);
    damage_a_leaf(&folder, "a");
    let found = refused(&folder, "check a", 1, &["a is damaged", "1 problem ", "fulgurite repair a OUT"]);
    assert!(found.stdout.contains("t: page") && found.stdout.contains("lost: the keys from `key00"));
    let problem: serde_json::Value = serde_json::from_str(&folder.run("check a --json").stdout).unwrap();
    let [low, high] = ["lost_from", "lost_to"].map(|column| problem[1][column].as_str().unwrap());
    assert!(low <= "key00500" && "key00500" < high, "{problem}");
    refused(&folder, "scan a t", 1, &["damaged", "fulgurite repair"]);
    refused(&folder, "backup a copy", 1, &["damaged"]);
    let repaired = refused(&folder, "repair a out", 1, &["a part of a is lost", "out"]);
    assert!(repaired.stdout.contains(&format!("t: lost: the keys from `{low}` up to `{high}`")));
    // Exactly the reported range of keys is lost.
    let is_saved = |line: &&str| !(low..high).contains(&line.split(',').next().unwrap());
    let expected: String = rows.lines().filter(is_saved).map(|line| format!("{line}\n")).collect();
    assert!(expected.len() < rows.len());
    assert_eq!(done(&folder, "scan out t"), expected);
    assert_eq!(done(&folder, "get out whole k"), "1\n");
    assert!(done(&folder, "check out").contains("out is sound"));
    assert_eq!(folder.names(), ["a", "one", "out", "sound"]);
}

/// Rows for a damaged page are loaded into the log. `load` reports that these records wait there, `check` and
/// `repair` report that they are not lost, and `repair` saves them.
#[test]
fn rows_for_a_damaged_page_wait_and_are_not_called_lost() {
    let folder = Folder::new();
    loaded(&folder, "a", &rows(1000));
    damage_a_leaf(&folder, "a");
    let said = fed(&folder, "load a t", b"key00499,new\nkey00500,new\nkey00900,new\n");
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("2 records wait in the log"), "{said}");
    assert!(said.contains("fulgurite check a"), "{said}");
    let except = "except 2 that the log has";
    let found = refused(&folder, "check a", 1, &["1 problem "]);
    assert!(found.stdout.contains(except), "{}", found.stdout);
    let problem: serde_json::Value = serde_json::from_str(&folder.run("check a --json").stdout).unwrap();
    assert_eq!(problem[1]["lost_except"], 2);
    assert_eq!(done(&folder, "get a t key00500"), "new\n");
    let repaired = refused(&folder, "repair a out", 1, &["a part of a is lost"]);
    assert!(repaired.stdout.contains(except), "{}", repaired.stdout);
    assert_eq!(done(&folder, "get out t key00499"), "new\n");
    assert_eq!(done(&folder, "get out t key00500"), "new\n");
}

/// Reading commands do not need Fulgurite's mark behind the last page, but writing requires it. So `check`
/// looks for the mark.
#[test]
fn a_missing_mark_at_the_end_is_a_problem() {
    let folder = Folder::new();
    loaded(&folder, "a", &rows(100));
    let whole = folder.read("a");
    fs::write(folder.0.join("cut"), &whole[..whole.len() - PAGE]).unwrap();
    fs::write(folder.0.join("longer"), [&whole[..], &[7; PAGE]].concat()).unwrap();
    for file in ["cut", "longer"] {
        refused(&folder, &format!("load {file} t"), 2, &[file, "mark", "the file was cut, or"]);
        let found = refused(&folder, &format!("check {file}"), 1, &["1 problem ", "fulgurite repair"]);
        assert!(
            found.stdout.contains("(end of the file): Fulgurite's mark is not there"),
            "{}",
            found.stdout
        );
        assert_eq!(done(&folder, &format!("scan {file} t")), rows(100));
        assert!(done(&folder, &format!("repair {file} from-{file}")).contains("everything was saved"));
    }
}

#[test]
fn a_store_that_does_not_open_is_repaired() {
    let folder = Folder::new();
    let rows = rows(1000);
    loaded(&folder, "a", &rows);
    let whole = folder.read("a");
    // This part of the file is shorter than a new store needs, but has all records.
    fs::write(folder.0.join("cut"), &whole[..(DATA + 60) * PAGE]).unwrap();
    refused(&folder, "check cut", 1, &["cut is damaged", "fulgurite repair cut OUT"]);
    refused(&folder, "load cut t", 2, &["cut"]);
    done(&folder, "repair cut from-cut");
    assert_eq!(done(&folder, "scan from-cut t"), rows);
    let mut torn = whole.clone();
    [24, 65_536 + 24].into_iter().for_each(|at| torn[at] ^= 1);
    fs::write(folder.0.join("torn"), &torn).unwrap();
    refused(&folder, "check torn", 1, &["torn is damaged", "fulgurite repair torn OUT"]);
    let said = done(&folder, "repair torn from-torn");
    assert!(said.contains("both superblocks"), "{said}");
    assert_eq!(done(&folder, "scan from-torn t"), rows);
}

/// The rule: a repair that finds no table says so, and leaves no file.
#[test]
fn a_repair_without_a_table_makes_no_file() {
    let folder = Folder::new();
    loaded(&folder, "small", &rows(100));
    fed(&folder, "load usual t --size 256MiB", b"key,value\n");
    for whole in ["small", "usual"] {
        fs::rename(folder.0.join(whole), folder.0.join("cut")).unwrap();
        fs::OpenOptions::new().write(true).open(folder.0.join("cut")).unwrap().set_len(8192).unwrap();
        let sentences = ["cut has no table that can be read", "out was not made"];
        let said = refused(&folder, "repair cut out", 1, &sentences);
        assert!(!said.stderr.contains("the rest is in"), "{}", said.stderr);
        assert!(!folder.0.join("out").exists());
    }
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let folder = Folder::new();
    let rows = rows(2000);
    loaded(&folder, "a", &rows);
    assert!(folder.rows("backup a b")[0]["pages_copied"].as_u64().unwrap() > 50);
    fed(&folder, "load a t", b"key00000,changed\n");
    assert_eq!(done(&folder, "scan b t"), rows);
    assert!(done(&folder, "check b").contains("is sound"));
    fed(&folder, "load b t", b"key00001,its own\n");
    assert_eq!(done(&folder, "get b t key00001"), "its own\n");
    assert_ne!(done(&folder, "get a t key00001"), "its own\n");
    // Restore the store from its backup.
    fs::remove_file(folder.0.join("a")).unwrap();
    done(&folder, "backup b a");
    assert_eq!(done(&folder, "scan a t"), done(&folder, "scan b t"));
    assert_eq!(folder.names(), ["a", "b"]);
}

/// The map of pages out of place takes memory. The default memory is enough for the map, and too little
/// memory is not reported as damage.
#[test]
fn a_store_out_of_place_opens_with_the_usual_memory() {
    let folder = Folder::new();
    let made = fed(&folder, "load a t --place out-of-place", b"key,value\n");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert_eq!(done(&folder, "get a t key"), "value\n");
    assert!(done(&folder, "check a").contains("is sound"));
    for asked in ["check a", "stat a", "scan a t", "get a t key"] {
        let small = format!("{asked} --memory 16MiB");
        let refused = refused(&folder, &small, 2, &["--memory 16MiB is too little", "accepted: 88MiB"]);
        assert!(
            !refused.stderr.contains("damaged") && !refused.stdout.contains("damaged"),
            "{}",
            refused.stderr
        );
    }
    // The load of a benchmark has memory of its own, so `--memory` of the run does not limit it.
    let words = "bench ycsb-a:records=1000 --device p4510 --ops 100";
    done(&folder, &format!("{words} --place out-of-place --memory 48MiB"));
    // A run that cannot work is refused before any run of the grid starts.
    let grid = format!("{words} --place in-place,out-of-place --memory 4MiB");
    let refused = refused(&folder, &grid, 2, &["--memory 4MiB is too little", "p4510", "accepted: 33MiB"]);
    assert_eq!(refused.stdout, "");
}

/// The default memory of a benchmark grows with the map of pages out of place, so that the pool has the same
/// number of frames in place and out of place. (A map that would take more than half of the memory gets more
/// memory.)
#[test]
fn the_default_memory_of_a_benchmark_excludes_the_map() {
    let folder = Folder::new();
    for memory in ["", "--memory 30%"] {
        let rows = folder.rows(&format!(
            "bench ycsb-a:records=20K --device virtual:blocks=32 --log-size 16MiB --ops 100 --place \
                in-place,out-of-place:unit=4KiB {memory}"
        ));
        let [inside, outside] = rows.as_slice() else { panic!("{} rows", rows.len()) };
        let figure = |name| (number(inside, name), number(outside, name));
        let (frames, bytes) = (figure("frames"), figure("memory_bytes"));
        assert!(bytes.1 > bytes.0, "{bytes:?}");
        assert_eq!(frames.1, frames.0);
    }
}

#[test]
fn new_stores_never_replace_files() {
    let folder = Folder::new().with("out", "mine");
    loaded(&folder, "a", "k,1\n");
    for command in ["backup", "repair"] {
        refused(&folder, &format!("{command} a out"), 2, &["OUT out exists", "a new file"]);
        refused(&folder, &format!("{command} a a"), 2, &["OUT a exists"]);
        refused(&folder, &format!("{command} a no/folder"), 2, &["OUT no/folder"]);
    }
    assert_eq!(
        (folder.read("out"), folder.names()),
        (b"mine".to_vec(), vec!["a".to_owned(), "out".to_owned()])
    );
}

#[test]
fn a_full_store_is_reported_and_keeps_its_records() {
    let folder = Folder::new();
    let output = fed(&folder, "load a t --size 2MiB --log 256KiB", rows(30_000).as_bytes());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("a is full") && said.contains("--size"), "{said}");
    let scanned = done(&folder, "scan a t");
    let records = scanned.lines().count();
    assert!(
        records > 1000 && said.contains(&format!("({records} records before that were loaded)")),
        "{said}"
    );
    assert!(rows(30_000).starts_with(&scanned), "the rows in front are there");
    assert!(done(&folder, "check a").contains("is sound"));
}

/// A new store takes disk space only as it fills.
#[test]
fn a_store_of_the_usual_size_costs_little() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::new().with("rows", "k,1\n");
    done(&folder, "load a t --from rows");
    let about = fs::metadata(folder.0.join("a")).unwrap();
    assert_eq!(about.len(), (16 << 30) + 4096);
    assert!(about.blocks() * 512 < 64 << 20, "{} blocks", about.blocks());
    assert_eq!(done(&folder, "get a t k"), "1\n");
    done(&folder, "backup a b");
    assert!(fs::metadata(folder.0.join("b")).unwrap().blocks() * 512 < 64 << 20);
}
