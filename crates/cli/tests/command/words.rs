//! Tests words that have misled users. A case has the typed command, the words that the answer must contain,
//! and those that it must not contain.

use crate::folder::Folder;

/// Returns the fault in the answer to `arguments`, which must be refused in one sentence. `None` if the
/// answer is right.
fn fault(folder: &Folder, arguments: &str, has: &[&str], lacks: &[&str]) -> Option<String> {
    let outcome = folder.run(arguments);
    let said = outcome.stderr.trim_end();
    let missing = has.iter().find(|word| !said.contains(**word)).map(|word| format!("no `{word}`"));
    let misleading = lacks.iter().find(|word| said.contains(**word)).map(|word| format!("`{word}`"));
    let form = (outcome.code != 2 || said.lines().count() != 1).then(|| format!("exit {}", outcome.code));
    let fault = missing.or(misleading).or(form)?;
    Some(format!("{arguments}: {fault} in: {said}{}", outcome.stdout))
}

/// Checks all cases, and reports their faults together.
fn refused(folder: &Folder, cases: &[(&str, &[&str], &[&str])]) {
    let faults: Vec<String> =
        cases.iter().filter_map(|(arguments, has, lacks)| fault(folder, arguments, has, lacks)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn refusals_name_the_fault() {
    refused(
        &Folder::new(),
        &[
            (
                "pool mixed-skewed:write=",
                &["`write` in `mixed-skewed:write=` has no value", "accepted: write=VALUE"],
                &["did you mean", "unknown"],
            ),
            (
                "trace",
                &["fulgurite trace needs a command", "accepted: info, convert, generate"],
                &["Describe"],
            ),
            (
                "pool zipf --columns=",
                &["--columns", "a name is missing", "list columns"],
                &["``", "did you mean"],
            ),
            ("list --dry-run", &["--dry-run", "advise and study"], &[]),
            ("gc zipf:", &["`zipf:`", "write key=value"], &["did you mean", "unknown"]),
            ("pool postgres-pgbench:a=1", &["postgres-pgbench has no options"], &["did you mean"]),
            (
                "pool zipf --device none --pages 1T --frames 60G",
                &["--frames 60000000000", "32 bits", "accepted: 1 to 4294967295"],
                &["never be used"],
            ),
            ("pool zipf --frames -5", &["--frames", "`-5`", "500, 6% or 1/3"], &["tip", "-- -5"]),
            ("pool zipf --frames -5%", &["--frames", "`-5%`", "6%"], &["tip", "-- -5"]),
            ("advise zipf --memory -6%", &["--memory", "-6%"], &["tip", "-- -6"]),
            ("diff a b --tolerance -2%", &["--tolerance", "-2%"], &["tip", "-- -2"]),
            ("pool zipf --json -5", &["--json", "-5"], &["tip"]),
            ("pool zipf --seed -1", &["--seed", "`-1`", "a whole number"], &["tip"]),
            ("pool zipf -x", &["`-x`", "--help"], &["tip", "-- -x"]),
            ("pool zipf --frmes 5", &["--frmes", "`--frames`"], &["-- --frmes"]),
            (
                "pool zipf --threads 0",
                &["--threads", "'0'", "; accepted: a whole number from 1 on"],
                &["non-zero", "--help"],
            ),
            ("pool zipf --threads x", &["--threads", "'x'", "from 1 on"], &["digit"]),
            ("pool zipf --threads -1", &["--threads", "'-1'", "from 1 on"], &["tip"]),
            ("pool zipf --device nvme", &["nvme", "file:PATH"], &[]),
            ("pool zipf --replacement 2q:in=200%", &["in=200% of 2q", "accepted: 0% to 100%"], &[]),
            ("pool zipf --write-back ace:n_w=4294967295", &["n_w=4294967295", "accepted: 1 to 65536"], &[]),
            ("profile mem", &["mem", "no request takes any time", "file:PATH"], &[]),
            ("profile none", &["none", "no request takes any time", "file:PATH"], &[", mem"]),
        ],
    );
    let folder = Folder::new().with("disk", "");
    refused(&folder, &[("pool zipf --device disk", &["did you mean `file:disk`?"], &[])]);
}

/// A file whose name ends as libCacheSim names its files is read in the format of libCacheSim.
#[test]
fn the_name_of_a_file_selects_the_format() {
    let record = |object: u64| {
        let mut bytes = vec![0; 4];
        bytes.extend(object.to_le_bytes());
        bytes.extend(512u32.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
        bytes
    };
    let bytes: Vec<u8> = (0..20).flat_map(record).collect();
    let folder = Folder::new().with("t.oracleGeneral", bytes.clone()).with("msr.oracleGeneral.bin", bytes);
    folder.rows("trace convert t.oracleGeneral t.msr.zst --to msr");
    for name in ["t.oracleGeneral", "msr.oracleGeneral.bin"] {
        let rows = folder.rows(&format!("trace info {name}"));
        assert_eq!(
            (&rows[0]["format"], &rows[0]["requests"]),
            (&"oracle-general".into(), &20.into()),
            "{name}"
        );
    }
}

/// The command reports exactly those properties of a trace that the new format cannot hold.
#[test]
fn conversion_to_oracle_general_reports_losses() {
    let lines =
        |second: &str, offset: u64| format!("0,hm,0,Read,0,512,1\n{second},hm,0,Write,{offset},512,1\n");
    for (time, offset, lost) in [
        ("10000000", 1024, "operations"),
        ("10000001", 1024, "operations; times below 1 s"),
        ("10000000", 1000, "operations; starts inside a sector"),
        ("10000001", 1000, "operations; times below 1 s; starts inside a sector"),
    ] {
        let folder = Folder::new().with("t.msr.csv", lines(time, offset));
        let rows = folder.rows("trace convert t.msr.csv t.oracleGeneral --to oracle-general");
        assert_eq!(rows[0]["loses"], lost, "{time} {offset}");
    }
}

/// The rule: `trace convert` keeps volumes where the new format has them, and names what it loses or leaves out.
#[test]
fn conversion_keeps_volumes_or_says_that_they_are_lost() {
    let folder = Folder::new()
        .with("two.spc", "0,0,4096,R,0\n1,0,4096,W,1\n")
        .with("trim.midas", "0 1 0 4096\n0 3 1 4096\n");
    for (to, loses, volumes) in [
        ("disksim", "nothing", Some(2)),
        ("msr", "names of volumes", Some(2)),
        ("midas", "volumes", None),
        ("oracle-general", "operations; volumes", None),
    ] {
        let rows = folder.rows(&format!("trace convert two.spc two.{to} --to {to}"));
        assert_eq!(rows[0]["loses"], loses, "{to}");
        let read = folder.rows(&format!("trace info two.{to}"));
        assert_eq!(
            (read[0].get("volumes").and_then(|volumes| volumes.as_u64()), &read[0]["footprint_pages"]),
            (volumes, &2.into())
        );
    }
    assert_eq!(folder.read("two.disksim"), b"0.000000 0 0 8 1\n1000.000000 1 0 8 0\n");
    let rows = folder.rows("trace convert trim.midas trim.spc --to spc");
    assert_eq!((&rows[0]["requests_left_out"], &rows[0]["loses"]), (&1.into(), &"trims".into()));
}

/// The rule: `volume=list` shows each volume by the name that `volume=` accepts.
#[test]
fn the_volumes_of_a_trace_are_listed() {
    let folder = Folder::new()
        .with("t.blkparse", "9,0 0 1 0.0 1 Q R 8 + 8\n8,0 0 1 0.5 1 Q W 16 + 8\n8,0 0 1 1.5 1 Q W 64 + 8\n")
        .with("t.midas", "0 1 0 4096\n");
    let listed = folder.run(
        "trace info t.blkparse --format blkparse:volume=list --json --columns volume,requests,writes,duration_ns",
    );
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&listed.stdout).unwrap(),
        serde_json::json!([
            {"volume": "9,0", "requests": 1, "writes": 0},
            {"volume": "8,0", "requests": 2, "writes": 2, "duration_ns": 1_000_000_000},
        ])
    );
    for name in ["8,0", "8:0"] {
        let one = folder.rows(&format!("trace info t.blkparse --format blkparse:volume={name}"));
        assert_eq!(one[0]["requests"], 2);
    }
    refused(
        &folder,
        &[
            ("replay t.blkparse --device sata --format blkparse:volume=list", &["volumes are 9,0 8,0"], &[]),
            ("trace info t.midas --format midas:volume=list", &["unknown option"], &[]),
        ],
    );
}

/// A byte order mark, which editors and spreadsheets write before a text, is no part of a trace.
#[test]
fn a_byte_order_mark_is_no_part_of_a_trace() {
    let folder = Folder::new()
        .with("t.pages", "\u{feff}R 1\nW 2\nR 3\n")
        .with("header", "\u{feff}version,time,op,size,lbn\n1,2,28,512,4\n")
        .with("wrong.pages", "\u{feff}R 1\nX 2\n");
    assert_eq!(folder.rows("trace info t.pages")[0]["requests"], 3);
    assert_eq!(folder.rows("trace info header")[0]["format"], "cloudphysics");
    refused(&folder, &[("trace info wrong.pages", &["wrong.pages, line 2", "X"], &[])]);
}

#[test]
fn a_list_has_every_name_that_is_accepted() {
    let folder = Folder::new();
    let names = |kind: &str| -> Vec<String> {
        let rows = folder.rows(&format!("list {kind}"));
        rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("write-back").contains(&"store".to_owned()), "what bench uses if none is given");
    assert!(names("devices").contains(&"file:PATH".to_owned()));
}

/// The rule: a command that follows the suggestion of a refusal is not refused, and the suggestion keeps the
/// options that were typed.
#[test]
fn a_suggested_drive_is_large_enough() {
    let folder = Folder::new();
    for (command, device) in [
        ("pool mixed-skewed --pages 2M", "sata"),
        ("pool mixed-skewed --pages 2M --layer log", "sata"),
        ("pool mixed-skewed --pages 2M --page 16KiB", "p4510"),
        ("pool mixed-skewed --pages 1M", "mem:pages=1000"),
        ("bench ycsb-c --scale 40", "p4510"),
        ("pool mixed-skewed --pages 2M", "femu:channels=2,blocks=50,chips=1"),
    ] {
        let refused = folder.run(&format!("{command} --device {device}"));
        let proposed = refused.stderr.split("a larger drive, like ").nth(1).map(str::trim);
        let proposed = proposed.unwrap_or_else(|| panic!("{command}: {}", refused.stderr));
        let kept = device
            .split([':', ','])
            .filter(|part| !part.starts_with("blocks=") && !part.starts_with("pages="));
        for part in kept {
            assert!(proposed.contains(part), "{proposed} lacks {part}");
        }
        let outcome = folder.run(&format!("{command} --device {proposed} --dry-run"));
        assert_eq!(outcome.code, 0, "{command} --device {proposed}: {}", outcome.stderr);
    }
}
