//! Tests that the same description of runs gives the same bytes, in every execution and with any number of
//! threads.

use crate::folder::Folder;

#[test]
fn a_study_writes_the_same_bytes_again() {
    let folder = Folder::new();
    let commands = [
        "study quickstart --quick --out a --threads 1",
        "study quickstart --quick --out b --threads 1",
        "study quickstart --quick --out c --threads 2",
    ];
    let outcomes = commands.map(|command| folder.run(command));
    for outcome in &outcomes {
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
    let said = |at: usize, out: &str| outcomes[at].stdout.replace(&format!("report: {out}/"), "");
    assert_eq!(said(0, "a"), said(1, "b"));
    assert_eq!(said(0, "a"), said(2, "c"));
    for file in ["report.html", "study.toml", "table.csv", "table.jsonl"] {
        let bytes = ["a", "b", "c"].map(|out| folder.read(&format!("{out}/{file}")));
        assert!(!bytes[0].is_empty() && bytes[0] == bytes[1] && bytes[0] == bytes[2], "{file} differs");
    }
}

#[test]
fn tables_do_not_depend_on_threads() {
    let folder = Folder::new();
    for command in [
        "pool mixed-skewed,zipf,postgres-pgbench --write-back single,ace --users 1,7 --ops 20K",
        "gc mixed-uniform --victim fifo,greedy --logical 12MiB,14MiB --physical 16MiB --segment 256KiB",
        "profile optane,virtual",
        "bench ycsb-a:records=4K,tpcc:customers=60,items=500 --users 1,7 --durability flush,relaxed --ops 500",
        "bench linkbench:ids=2K --device virtual,optane --memory 1MiB --by-type --ops 500",
        "replay fio-h --device p4510:blocks=32 --layer log:segment=1MiB --placement sepbit,midas --users 8 \
            --ops 20K",
        "replay cello-like,synthetic --schedule paced,semi-preemptive+merge+pipeline,preemptive --ops 5K",
    ] {
        let rows = |threads: u32| {
            let mut rows = folder.rows(&format!("{command} --threads {threads}"));
            for row in &mut rows {
                let row = row.as_object_mut().unwrap();
                // Leave out the cost of the execution, because only these columns may differ.
                let cost = ["cpu_ns_per_op", "sim_wall_s", "sim_ops_s", "peak_rss_bytes"];
                row.retain(|column, _| !cost.contains(&column.as_str()));
            }
            serde_json::to_string(&rows).unwrap()
        };
        // Execute the runs twice: state that the first execution left over would show as a difference.
        assert_eq!(rows(1), rows(2), "{command}");
    }
}
