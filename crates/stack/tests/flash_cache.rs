//! Tests placement by the host with a cache on flash. The drives are small; docs/validation/placement-by-the-host.md
//! has the large ones.

use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Command, Progress};

/// Returns the steady write amplification of a cache on a drive with a spare of 17 %, of which it uses `logical`.
fn waf(placement: &str, logical: &str) -> f64 {
    let values = [
        ("workload", "cachelib-like:small_writes=60%"),
        ("placement", placement),
        ("logical", logical),
        ("physical", "234MB"),
        ("segment", "512KiB"),
        ("ops", "1M"),
    ];
    let run = settings::run(Command::Gc, &values.into(), &mut Workloads::default()).unwrap();
    let row = run.execute(&Progress::default()).unwrap().remove(0);
    row.number(Column::WafSteady).unwrap()
}

/// The rule: a full drive that mixes small objects with a log copies the log, and less so if it keeps its copies
/// apart. A drive that is told which is which copies hardly anything. Half of the space is enough spare for all of
/// them.
#[test]
fn placement_by_the_host_saves_the_copies_of_a_log() {
    let full = ["none", "sep-gc", "hints"].map(|placement| waf(placement, "200MB"));
    assert!((3.5..4.3).contains(&full[0]), "{full:?}");
    assert!((3.1..3.7).contains(&full[1]), "{full:?}");
    assert!((1.0..1.03).contains(&full[2]), "{full:?}");
    let half = ["none", "sep-gc", "hints"].map(|placement| waf(placement, "100MB"));
    assert!(half[..2].iter().all(|waf| (1.01..1.4).contains(waf)) && half[2] < 1.01, "{half:?}");
}
