//! Tests hostile input and damaged files. No command may panic, run without end, print an error number of the
//! system or leave a file.

use crate::folder::Folder;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// The time limit of a refusal. It is longer than any refusal takes on a busy machine, and shorter than a run
/// that was not refused.
const AT_MOST: Duration = Duration::from_secs(30);

/// A case: the typed command, the exit code, and words of the one sentence that refuses the command.
type Case = (&'static str, i32, &'static [&'static str]);

const TYPED: &[Case] = &[
    // These arguments exceed the memory or the drive of the machine.
    ("pool zipf --device none --pages 4G --frames 50%", 2, &["--frames 2000000000", "memory", "accepted"]),
    ("gc zipf --logical 4TB", 2, &["--logical", "--physical", "less logical than physical"]),
    ("pool zipf --device file:x,size=1000000TiB", 2, &["has room for", "accepted"]),
    ("pool zipf --users 4294967296", 2, &["--users", "accepted: 1 to 100000"]),
    ("replay synthetic --interval 1us", 2, &["--interval", "too short"]),
    ("bench ycsb-a --log-size 1TiB", 2, &["log", "a larger drive, like p4510:blocks="]),
    ("advise zipf --memory 1TiB", 2, &["--memory 1TiB", "accepted: 4KiB to"]),
    // These numbers are invalid, too large, or zero.
    ("pool zipf --ops 18446744073709551616", 2, &["--ops", "too large", "18446744073709551615"]),
    ("pool zipf --ops 1e6", 2, &["--ops", "`1e6`", "like 250K or 2M"]),
    ("pool zipf --ops 1,000", 2, &["--ops", "`1,000`", "comma", "accepted: 1000"]),
    ("gc zipf --logical 1,024MiB", 2, &["--logical", "`1,024MiB`", "comma", "accepted: 1024MiB"]),
    ("replay synthetic --device file:d,size=1KiB", 2, &["device file:d", "no room for a page", "accepted"]),
    (
        "load new.store t --from rows.csv --size 8MiB",
        2,
        &["--size: 8 MiB", "a log of 64 MiB needs 65 MiB", "accepted"],
    ),
    ("gc zipf --segment 1TiB", 2, &["--segment 1 TiB", "--physical 8 GiB", "accepted"]),
    ("bench ycsb-a --memory 1KiB", 2, &["--memory 1KiB", "accepted: from 87 KiB"]),
    // The errors of a store show sizes with units.
    ("load new.store t --log 1KiB", 2, &["--log", "a log of 1 KiB", "accepted: from 256 KiB"]),
    ("pool zipf --frames 0%", 2, &["--frames 0%", "at least one"]),
    ("pool zipf --frames 1/0", 2, &["--frames", "`1/0`", "1/3"]),
    ("advise zipf --memory 0%", 2, &["--memory 0%", "accepted"]),
    ("pool zipf:theta=nan", 2, &["theta of zipf", "from 0 to 5"]),
    ("pool mixed-skewed:write=NaN%", 2, &["write of mixed-skewed", "like 6%"]),
    ("replay synthetic --speed infx", 2, &["--speed", "2x or 0.5x"]),
    ("replay synthetic --rate 0", 2, &["--rate", "accepted: 1 to"]),
    ("pool zipf --device p4510:program_us=-1", 2, &["program_us of p4510", "like 40 or 5.95"]),
    ("trace generate zipf x --to page-ops --ops 0", 2, &["--ops 0", "accepted: from 1 on"]),
    ("trace generate zipf x --to page-ops --logical 99999999TiB", 2, &["--logical", "too large"]),
    // These lists and options are incomplete.
    ("pool zipf --replacement lru,,arc", 2, &["--replacement", "`lru,,arc`", "empty item"]),
    ("pool zipf --device p4510:channels=1,channels=2", 2, &["`channels`", "twice"]),
    ("pool zipf --device p4510:=", 2, &["p4510:=", "key=value"]),
    // These traces are damaged or no traces.
    ("pool random.bin", 2, &["random.bin", "binary data"]),
    ("trace info utf16.pages", 2, &["utf16.pages, line 1", "operation `X` is unknown"]),
    ("pool max.pages --frames 1", 2, &["max.pages, line 1", "out of range"]),
    ("trace info long.pages", 2, &["long.pages, line 1", "longer than 65536 bytes"]),
    ("replay nan.spc", 2, &["nan.spc, line 1", "time `nan`", "like 12.5"]),
    ("trace info loop", 2, &["loop", "cannot be opened"]),
    // These arguments name a store, its records and its tables.
    ("get s.store t nobody", 1, &["the key `nobody` is not in table t"]),
    ("get s.store nope 1", 2, &["TABLE nope is not in s.store", "accepted: t"]),
    ("get s.store t\u{7}b 1", 2, &["TABLE t\\x07b is not in s.store"]),
    ("get s.store t 1\\xZZ", 2, &["KEY 1\\xZZ", "not an escape", "\\xNN for a byte"]),
    ("get s.store t 1 --memory 1KiB", 2, &["--memory 1KiB", "accepted: 2MiB or more"]),
    ("get s.store t 1 --dry-run", 2, &["--dry-run", "leave it out"]),
    ("get taken t 1", 2, &["FILE taken", "neither a file nor a block device"]),
    ("get loop t 1", 2, &["FILE loop", "a link that leads nowhere"]),
    ("get - t 1", 2, &["FILE -", "./- for one of this name"]),
    ("get cut.store t 1", 1, &["cut.store", "was cut off", "fulgurite repair saves the rest"]),
    ("scan s.store t --limit -1", 2, &["--limit", "`-1` is not a count"]),
    ("scan s.store t --limit 99999999999999999999", 2, &["--limit", "too large"]),
    ("scan s.store t --from \\x", 2, &["--from", "not an escape"]),
    ("scan s.store t --prefix 1 --from 1", 2, &["--prefix", "exclude each other", "--from"]),
    ("stat rows.csv", 2, &["rows.csv holds no store", "accepted"]),
    ("stat s.store --memory 10%", 2, &["--memory", "`10%` is not a size"]),
    ("check s.store --columns nope", 2, &["--columns", "unknown column `nope`"]),
    ("backup cut.store new.store", 1, &["cut.store", "was cut off"]),
    ("backup s.store s.store", 2, &["OUT s.store exists", "accepted: a new file"]),
    ("backup s.store no/new.store", 2, &["OUT no/new.store", "there is no folder no"]),
    ("repair s.store taken", 2, &["OUT taken exists"]),
    ("repair rows.csv new.store", 2, &["rows.csv holds no store"]),
    ("load s.store t --from three.csv", 2, &["three.csv, line 1", "fields in the row: 3"]),
    ("load s.store t --from quote.csv", 2, &["quote.csv, line 1", "a quote is opened and not closed"]),
    ("load s.store t --from long-key.csv", 2, &["long-key.csv, line 1", "too long", "up to 512"]),
    (
        "load s.store t --from long-row.csv",
        2,
        &["long-row.csv, line 1", "longer than the log takes", "accepted: a shorter row", "--log"],
    ),
    ("load s.store t --from taken", 2, &["--from taken", "it is a folder"]),
    ("load s.store t --from rows.csv --size 1MiB", 2, &["--size 1MiB differs", "accepted: 8MiB"]),
    ("load s.store t --from rows.csv --page 8KiB", 2, &["--page 8KiB differs", "accepted: 4KiB"]),
    ("load new.store t --from rows.csv --page 1GiB", 2, &["--page 1GiB", "from 4KiB to 64KiB"]),
    ("load new.store t --from rows.csv --place nowhere", 2, &["--place", "`nowhere`", "out-of-place"]),
    ("load no/new.store t --from rows.csv", 2, &["FILE no/new.store", "there is no folder no"]),
    ("load rows.csv t --from rows.csv", 2, &["FILE rows.csv holds no store", "left as it is"]),
    ("load link t --from rows.csv", 2, &["FILE link does not exist"]),
    // These commands would overwrite a store.
    ("pool zipf --device file:s.store", 2, &["s.store holds a store", "--destroy-contents"]),
    ("trace generate zipf s.store --to page-ops", 2, &["OUT s.store holds a drive or a store"]),
    ("study quickstart --out s.store", 2, &["--out s.store", "it is no folder"]),
    ("pool s.store", 2, &["s.store", "binary data"]),
    ("study s.store", 2, &["unknown study `s.store`", "ends in .toml"]),
    // These files are of the wrong kind.
    ("profile file:/dev/null", 2, &["/dev/null", "neither a file nor a block device"]),
    ("pool zipf --device file:random.bin", 2, &["random.bin", "--destroy-contents"]),
    (
        "pool zipf --columns type",
        2,
        &["--columns", "unknown column `type`", "`fulgurite list columns` shows all"],
    ),
    ("stat no-such.db", 2, &["FILE no-such.db does not exist", "accepted"]),
    ("check random.bin", 2, &["random.bin", "holds no store", "accepted"]),
    ("load new.store t --from random.bin", 2, &["--from random.bin, line 1", "key,value"]),
    (
        "load new.store t --from one-field.csv --size 8MiB --log 512KiB",
        2,
        &["--from one-field.csv, line 1", "two, key,value (nothing was loaded)"],
    ),
    ("diff random.bin random.bin", 2, &["A random.bin", "accepted: the folder of a study"]),
    ("study quickstart --quick --out taken", 2, &["--out taken", "table.csv", "accepted"]),
    ("study quickstart --out /dev/null", 2, &["--out /dev/null", "accepted: a folder"]),
    ("trace convert t.spc /dev/full --to msr", 1, &["OUT /dev/full", "cannot be written"]),
];

fn folder() -> Folder {
    let noise: Vec<u8> = (0..4096u32).flat_map(|at| at.wrapping_mul(0x9E37_79B9).to_be_bytes()).collect();
    let folder = Folder::new()
        .with("random.bin", noise)
        .with("utf16.pages", b"\xff\xfeX\0 \x001\0\n\0")
        .with("max.pages", "R 18446744073709551615\n")
        .with("long.pages", "x".repeat(100_000))
        .with("rows.csv", "1,v\n")
        .with("one-field.csv", "1\n")
        .with("three.csv", "a,b,c\n")
        .with("quote.csv", "a,\"b\n")
        .with("long-key.csv", "k".repeat(2_000) + ",v\n")
        .with("long-row.csv", "k,".to_owned() + &"v".repeat(9_000_000) + "\n")
        .with("nan.spc", "0,0,8192,W,nan\n")
        .with("t.spc", "0,0,8192,W,0.5\n0,64,4096,R,0.75\n");
    symlink("loop", folder.0.join("loop")).unwrap();
    symlink("nowhere", folder.0.join("link")).unwrap();
    let made = folder.run("load s.store t --from rows.csv --size 8MiB --log 512KiB");
    assert_eq!(made.code, 0, "{}", made.stderr);
    std::fs::write(folder.0.join("cut.store"), &folder.read("s.store")[..3_000_000]).unwrap();
    std::fs::create_dir(folder.0.join("taken")).unwrap();
    std::fs::write(folder.0.join("taken/table.csv"), "precious").unwrap();
    folder
}

/// Returns the fault in the answer to a case; `None` if the answer is right.
fn fault(folder: &Folder, (typed, code, words): Case) -> Option<String> {
    let (began, before) = (Instant::now(), folder.names());
    let outcome = folder.run(typed);
    let said = outcome.stderr.trim_end();
    let faults = [
        (outcome.code != code).then(|| format!("exit {}", outcome.code)),
        (said.lines().count() != 1).then(|| "no single line".to_owned()),
        said.contains("os error").then(|| "a number of the system".to_owned()),
        (!outcome.stdout.is_empty()).then(|| format!("printed {}", outcome.stdout)),
        words.iter().find(|word| !said.contains(**word)).map(|word| format!("no `{word}`")),
        (began.elapsed() > AT_MOST).then(|| format!("{:?}", began.elapsed())),
        (folder.names() != before).then(|| format!("left {:?}", folder.names())),
    ];
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    (!faults.is_empty()).then(|| format!("{typed}: {} in: {said}", faults.join(", ")))
}

/// Every hostile input is refused in one sentence, within the time limit, without a change to files.
#[test]
fn hostile_inputs_are_refused_in_a_sentence() {
    let folder = folder();
    let faults: Vec<String> = TYPED.iter().filter_map(|case| fault(&folder, *case)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(folder.read("taken/table.csv"), b"precious");
}
