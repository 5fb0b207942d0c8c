//! Tests that a study over layers compares runs that differ in the layer and in nothing else.

use fulgurite_stack::{Column, Progress, Row, runner};
use fulgurite_study::study::{How, Study};
use std::fs;
use std::path::Path;

const STUDY: &str = r#"
title = "With and without a layer"
question = "Does a layer pay?"
command = "replay"

[grid]
workload = ["mixed-uniform:write=50%", "mixed-uniform:write=90%"]
device = "virtual"
layer = ["none", "log:segment=1MiB,op=30%"]
placement = ["none", "sep-gc"]
users = 4
ops = "5K"

[compare]
axis = "layer"
baseline = "none"
candidate = "log:segment=1MiB,op=30%"
column = "throughput_ops_s"
what = "throughput"
"#;

#[test]
fn a_study_over_layers_pairs_each_run_with_its_own_baseline() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layers");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("layers.toml");
    fs::write(&file, STUDY).unwrap();
    let study = Study::open(file.to_str().unwrap()).unwrap();
    let out = folder.join("out");
    let how = How { out: Some(&out), quick: false, seed: None, threads: runner::all_cores(), resume: false };
    let outcome = study.run(&how, &Progress::default(), |_| ()).unwrap();
    let rows = &outcome.table.rows;
    let throughput = |workload: &str, placement: &str, layered: bool| {
        let is = |row: &&Row| {
            row.text(Column::Workload) == workload
                && row.text(Column::Placement) == placement
                && row.get(Column::Layer).is_some() == layered
        };
        let mut found = rows.iter().filter(is);
        let value = found.next().unwrap().number(Column::ThroughputOpsS).unwrap();
        assert!(found.next().is_none(), "{workload} {placement} {layered}: two rows");
        value
    };
    // Computes the same comparison row by row, without the study's pairing.
    let mut changes = Vec::new();
    for workload in ["mixed-uniform:write=50%", "mixed-uniform:write=90%"] {
        for placement in ["none", "sep-gc"] {
            let ratio = throughput(workload, placement, true) / throughput(workload, placement, false);
            changes.push((ratio - 1.0, workload, placement));
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (change, workload, _) in [changes[0], changes[3]] {
        let figure = format!("{:.1} % ({workload}", 100.0 * change.abs());
        assert!(outcome.finding.contains(&figure), "{figure} is not in: {}", outcome.finding);
    }
    assert!(outcome.finding.starts_with("With log:segment=1MiB,op=30% instead of none, throughput "));
    fs::remove_dir_all(&folder).unwrap();
}
