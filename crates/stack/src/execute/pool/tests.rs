//! Tests runs on simulated cores against closed forms.

use crate::settings::{self, Workloads};
use crate::{Column, Command, Progress, Row};

/// Returns the result row of a run of uniform reads with 10 µs of CPU time each.
fn row(device: &str, ops: &str, users: &str, cores: &str) -> Row {
    let values = [
        ("workload", "mixed-uniform:write=0%"),
        ("device", device),
        ("frames", "10%"),
        ("pages", "20K"),
        ("cpu_per_request", "10"),
        ("ops", ops),
        ("users", users),
        ("cores", cores),
    ];
    let run = settings::run(Command::Pool, &values.into(), &mut Workloads::default()).unwrap();
    run.execute(&Progress::default()).unwrap().remove(0)
}

fn number(row: &Row, column: Column) -> f64 {
    row.number(column).unwrap()
}

/// If the drive takes no time, each core with at least one user is always busy.
#[test]
fn requests_that_cost_cpu_alone_are_served_by_as_many_cores_as_have_users() {
    for (users, cores, busy) in [(16, 1, 1), (16, 2, 2), (16, 16, 16), (16, 32, 16), (5, 4, 4), (1, 4, 1)] {
        let row = row("mem:page=4KiB", "1600", &users.to_string(), &cores.to_string());
        let more = number(&row, Column::ElapsedNs) - 1_600.0 / f64::from(busy) * 10_000.0;
        // The user of the last request may wait for another user on its core, which adds at most the CPU time
        // of one request.
        assert!((0.0..=10_000.0).contains(&more), "{users} users on {cores} cores: {more} ns more");
    }
}

/// Throughput is bound by the cores or by the drive. The drive's serial stage takes 2.1 µs per read, so the
/// drive serves a read every 2.1 µs at most. A core takes 10 µs per request.
#[test]
fn throughput_rises_with_the_cores_until_the_drive_binds() {
    const STAGE_S: f64 = 2.1e-6;
    let mut bound_by_drive = 0;
    for cores in [1, 4, 16] {
        let row = row("p4510", "20K", "256", &cores.to_string());
        let misses = number(&row, Column::Misses) / number(&row, Column::Ops);
        let [by_cpu, by_drive] = [f64::from(cores) / 10e-6, 1.0 / (misses * STAGE_S)];
        bound_by_drive += u32::from(by_drive < by_cpu);
        let measured = number(&row, Column::ThroughputOpsS) / by_cpu.min(by_drive);
        assert!((0.98..=1.0).contains(&measured), "{cores} cores reach {measured} of the lower limit");
    }
    assert_eq!(bound_by_drive, 1, "16 cores must ask for more than the drive can do, 1 and 4 for less");
}
