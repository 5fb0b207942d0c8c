//! Tests the pace: a client measures at least the latencies of the drive.

use super::drive::Served;
use crate::folder::number;
use std::time::Instant;

/// Returns the mean latency in nanoseconds that a client measures over 50 reads, one at a time.
fn measured(served: &Served) -> f64 {
    let mut client = served.client();
    let start = Instant::now();
    (0..50).for_each(|at| drop(client.read(at * 4_096, 4_096).unwrap()));
    start.elapsed().as_nanos() as f64 / 50.0
}

/// The rule: at the speed of a real drive, no answer is sent before the drive's own time of completion. The drive is
/// made slow, so that the client's own time is no explanation.
#[test]
fn a_client_measures_the_latency_of_the_drive() {
    for (speed, times) in [("1x", 1.0), ("4x", 4.0)] {
        let served = Served::new(&format!("sata:blocks=20,pages=8,channels=2 --speed {speed} --json"));
        served.told("slow 8000");
        let measured = measured(&served);
        let row = served.row();
        let drives = number(&row, "read_latency_mean_ns");
        assert!(drives > 8e6 && measured * times >= drives, "{speed}: {measured} of {drives}");
        assert_eq!(number(&row, "speed"), times);
        assert!(number(&row, "lateness_mean_ns") >= 0.0 && row["late_share"].is_f64(), "{row}");
    }
}

/// The rule: at full speed nothing waits for a clock, so nothing is late.
#[test]
fn full_speed_has_no_pace() {
    let served = Served::new("sata:blocks=20,pages=8,channels=2 --speed max --json");
    // The drive would take over an hour of its own time.
    served.told("slow 100000000");
    measured(&served);
    let row = served.row();
    assert!(number(&row, "read_latency_mean_ns") >= 1e11, "{row}");
    for column in ["speed", "late_share", "lateness_mean_ns"] {
        assert!(row.get(column).is_none(), "{column}: {row}");
    }
}
