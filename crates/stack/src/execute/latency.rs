//! The columns of latencies: the same seven figures for every kind of latency.

use crate::{Column, Row};
use fulgurite_base::Summary;

/// Mean, standard deviation, four percentiles and maximum of a kind of latency.
pub type Latencies = [Column; 7];

/// Of requests or transactions, whatever they are.
pub const ALL: Latencies = [
    Column::LatencyMeanNs,
    Column::LatencyStddevNs,
    Column::LatencyP50Ns,
    Column::LatencyP95Ns,
    Column::LatencyP99Ns,
    Column::LatencyP999Ns,
    Column::LatencyMaxNs,
];
/// Of reads.
pub const READ: Latencies = [
    Column::ReadLatencyMeanNs,
    Column::ReadLatencyStddevNs,
    Column::ReadLatencyP50Ns,
    Column::ReadLatencyP95Ns,
    Column::ReadLatencyP99Ns,
    Column::ReadLatencyP999Ns,
    Column::ReadLatencyMaxNs,
];
/// Of reads that memory could not answer at once.
pub const READ_MISS: Latencies = [
    Column::ReadMissLatencyMeanNs,
    Column::ReadMissLatencyStddevNs,
    Column::ReadMissLatencyP50Ns,
    Column::ReadMissLatencyP95Ns,
    Column::ReadMissLatencyP99Ns,
    Column::ReadMissLatencyP999Ns,
    Column::ReadMissLatencyMaxNs,
];
/// Of writes.
pub const WRITE: Latencies = [
    Column::WriteLatencyMeanNs,
    Column::WriteLatencyStddevNs,
    Column::WriteLatencyP50Ns,
    Column::WriteLatencyP95Ns,
    Column::WriteLatencyP99Ns,
    Column::WriteLatencyP999Ns,
    Column::WriteLatencyMaxNs,
];
/// Of commits.
pub const COMMIT: Latencies = [
    Column::CommitLatencyMeanNs,
    Column::CommitLatencyStddevNs,
    Column::CommitLatencyP50Ns,
    Column::CommitLatencyP95Ns,
    Column::CommitLatencyP99Ns,
    Column::CommitLatencyP999Ns,
    Column::CommitLatencyMaxNs,
];

/// Sets the columns of a kind of latency; none of them where nothing of the kind has happened.
pub fn set_latency(row: &mut Row, columns: Latencies, latency: Option<Summary>) {
    let Some(Summary { mean_ns, stddev_ns, p50_ns, p95_ns, p99_ns, p999_ns, max_ns }) = latency else {
        return;
    };
    let [mean, stddev, p50, p95, p99, p999, max] = columns;
    row.set(mean, mean_ns);
    row.set_some(stddev, stddev_ns);
    for (column, nanoseconds) in [(p50, p50_ns), (p95, p95_ns), (p99, p99_ns), (p999, p999_ns), (max, max_ns)]
    {
        row.set(column, nanoseconds);
    }
}
