//! Sets the columns of latencies. Each kind of latency has the same seven figures.

use crate::{Column, Row};
use fulgurite_base::Summary;

/// The columns for mean, standard deviation, four percentiles and maximum of one kind of latency.
pub(super) type Latencies = [Column; 7];

/// Latencies of requests or transactions of all kinds.
pub(super) const ALL: Latencies = [
    Column::LatencyMeanNs,
    Column::LatencyStddevNs,
    Column::LatencyP50Ns,
    Column::LatencyP95Ns,
    Column::LatencyP99Ns,
    Column::LatencyP999Ns,
    Column::LatencyMaxNs,
];
/// Latencies of reads.
pub(super) const READ: Latencies = [
    Column::ReadLatencyMeanNs,
    Column::ReadLatencyStddevNs,
    Column::ReadLatencyP50Ns,
    Column::ReadLatencyP95Ns,
    Column::ReadLatencyP99Ns,
    Column::ReadLatencyP999Ns,
    Column::ReadLatencyMaxNs,
];
/// Latencies of reads that memory could not serve at once.
pub(super) const READ_MISS: Latencies = [
    Column::ReadMissLatencyMeanNs,
    Column::ReadMissLatencyStddevNs,
    Column::ReadMissLatencyP50Ns,
    Column::ReadMissLatencyP95Ns,
    Column::ReadMissLatencyP99Ns,
    Column::ReadMissLatencyP999Ns,
    Column::ReadMissLatencyMaxNs,
];
/// Latencies of writes.
pub(super) const WRITE: Latencies = [
    Column::WriteLatencyMeanNs,
    Column::WriteLatencyStddevNs,
    Column::WriteLatencyP50Ns,
    Column::WriteLatencyP95Ns,
    Column::WriteLatencyP99Ns,
    Column::WriteLatencyP999Ns,
    Column::WriteLatencyMaxNs,
];
/// Latencies of commits.
pub(super) const COMMIT: Latencies = [
    Column::CommitLatencyMeanNs,
    Column::CommitLatencyStddevNs,
    Column::CommitLatencyP50Ns,
    Column::CommitLatencyP95Ns,
    Column::CommitLatencyP99Ns,
    Column::CommitLatencyP999Ns,
    Column::CommitLatencyMaxNs,
];

/// Sets the columns of one kind of latency; `None` as `latency` means that there was none of this kind.
pub(super) fn set_latency(row: &mut Row, columns: Latencies, latency: Option<Summary>) {
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
