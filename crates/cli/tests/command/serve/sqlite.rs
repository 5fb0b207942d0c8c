//! Tests a database on a drive whose power is cut: SQLite on ext4.

use super::drive::Served;
use super::ext4::{Mounted, make};
use crate::folder::Outcome;

/// Journals, with what makes a commit durable. With a rollback journal, the commit is the removal of that file, which
/// only EXTRA syncs.
const JOURNALS: [(&str, &str); 2] = [("wal", "FULL"), ("delete", "EXTRA")];

/// Serves a drive with a file system that has an empty table of a database, and keeps it as the snapshot `empty`.
fn with_database(power: &str) -> Served {
    let served = Served::mounted(&format!("mem:page=4KiB,pages=8192 --power {power}"));
    make(&served);
    let mounted = Mounted::new(&served);
    served.done("sqlite3 m/db 'CREATE TABLE t (id INTEGER PRIMARY KEY, text)'");
    drop(mounted);
    served.told("snapshot empty");
    let row = |id| format!("INSERT INTO t VALUES ({id}, hex(randomblob(200))); SELECT {id};\n");
    let rows: String = (1..=200).map(row).collect();
    for (mode, synchronous) in JOURNALS {
        let pragmas = format!("PRAGMA journal_mode = {mode}; PRAGMA synchronous = {synchronous};");
        served.folder.write(mode, format!("{pragmas}\n{rows}"));
    }
    served
}

/// Cuts the power in the middle of insertions. Returns an error in words if a committed row is lost afterwards.
fn lives_through_a_cut(served: &Served, mode: &str, seed: u64) -> Result<(), String> {
    served.told("restore empty");
    let mounted = Mounted::new(served);
    let armed = served.cut_at(&format!("flush:{} --stay-off --seed {seed}", 20 + 13 * seed));
    // The number of a row is printed after its commit. The first failure ends the program.
    let inserted = served.shell(&format!("sqlite3 -bail m/db < {mode}"));
    armed.report();
    let committed = inserted.stdout.lines().filter(|line| line.parse::<u32>().is_ok()).count();
    assert!(inserted.code != 0 && committed > 0, "{mode}, seed {seed}: {}", inserted.stderr);
    drop(mounted);
    served.told("power-on");
    let repaired = served.shell("e2fsck -fy d/drive");
    if repaired.code > 1 {
        return Err(format!("e2fsck ends with {}", repaired.code));
    }
    let _mounted = Mounted::new(served);
    let query = format!("PRAGMA integrity_check; SELECT count(*) FROM t WHERE id <= {committed}");
    let Outcome { stdout, stderr, .. } = served.shell(&format!("sqlite3 m/db '{query}'"));
    match stdout == format!("ok\n{committed}\n") {
        true => Ok(()),
        false => Err(format!("{committed} rows were committed: {stdout}{stderr}")),
    }
}

/// The rule: committed rows survive a power cut, and the database stays whole.
#[test]
fn committed_rows_survive_a_power_cut() {
    let served = with_database("volatile");
    for (mode, seed) in JOURNALS.iter().flat_map(|(mode, _)| (1..=5).map(move |seed| (mode, seed))) {
        assert_eq!(lives_through_a_cut(&served, mode, seed), Ok(()), "{mode}, seed {seed}");
    }
}

/// The rule: on a drive that ignores flushes, committed rows are lost. So the test above can fail.
#[test]
fn a_lying_drive_loses_committed_rows() {
    let served = with_database("lying");
    // Nineteen of twenty seeds lose rows, the first of them too.
    assert!((1..=5).any(|seed| lives_through_a_cut(&served, "wal", seed).is_err()), "nothing was lost");
}
