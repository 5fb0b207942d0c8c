//! Lists the columns that each command's pages draw.

use fulgurite_stack::{Column, Command};

/// Columns that are drawn together, because they share a unit and a meaning.
pub(super) struct Together {
    pub title: &'static str,
    pub caption: &'static str,
    /// The label of the axis.
    pub measure: &'static str,
    pub columns: &'static [(Column, &'static str)],
}

/// The percentiles of all response times, of those of reads and writes, and of commits.
pub(super) const LATENCIES: [Together; 4] = [
    Together {
        title: "Latency",
        caption: "The median of response times, high percentiles, and the longest.",
        measure: "response time",
        columns: &[
            (Column::LatencyP50Ns, "p50"),
            (Column::LatencyP95Ns, "p95"),
            (Column::LatencyP99Ns, "p99"),
            (Column::LatencyP999Ns, "p99.9"),
            (Column::LatencyMaxNs, "longest"),
        ],
    },
    Together {
        title: "Latency of reads",
        caption: "The median of response times, high percentiles, and the longest.",
        measure: "response time",
        columns: &[
            (Column::ReadLatencyP50Ns, "p50"),
            (Column::ReadLatencyP95Ns, "p95"),
            (Column::ReadLatencyP99Ns, "p99"),
            (Column::ReadLatencyP999Ns, "p99.9"),
            (Column::ReadLatencyMaxNs, "longest"),
        ],
    },
    Together {
        title: "Latency of writes",
        caption: "The median of response times, high percentiles, and the longest.",
        measure: "response time",
        columns: &[
            (Column::WriteLatencyP50Ns, "p50"),
            (Column::WriteLatencyP95Ns, "p95"),
            (Column::WriteLatencyP99Ns, "p99"),
            (Column::WriteLatencyP999Ns, "p99.9"),
            (Column::WriteLatencyMaxNs, "longest"),
        ],
    },
    Together {
        title: "Latency of commits",
        caption: "The median of response times, high percentiles, and the longest.",
        measure: "response time",
        columns: &[
            (Column::CommitLatencyP50Ns, "p50"),
            (Column::CommitLatencyP95Ns, "p95"),
            (Column::CommitLatencyP99Ns, "p99"),
            (Column::CommitLatencyP999Ns, "p99.9"),
            (Column::CommitLatencyMaxNs, "longest"),
        ],
    },
];

const AMPLIFICATION: Together = Together {
    title: "Write amplification",
    caption: "Pages programmed into the flash for each page that the host wrote.",
    measure: "write amplification",
    columns: &[
        (Column::Waf, "whole run"),
        (Column::WafSteady, "last half"),
        (Column::WafClosedForm, "closed form"),
    ],
};

const MOST_IOPS: Together = Together {
    title: "Most requests per second",
    caption: "With as many users as the drive can serve at once.",
    measure: "requests per second",
    columns: &[(Column::ReadIopsMax, "reads"), (Column::WriteIopsMax, "writes")],
};

/// Returns the columns of a command that are drawn together for each run.
pub(super) fn together(command: Command) -> Vec<&'static Together> {
    let [all, others @ ..] = &LATENCIES;
    match command {
        Command::Gc => vec![&AMPLIFICATION],
        Command::Profile => vec![&MOST_IOPS],
        Command::Pool | Command::Bench => vec![all, &LATENCIES[3]],
        Command::Replay | Command::Serve => [all].into_iter().chain(&others[..2]).collect(),
    }
}

/// Returns the columns of a command that are drawn by themselves, the most important first.
pub(super) fn alone(command: Command) -> &'static [Column] {
    match command {
        Command::Pool => &[
            Column::ThroughputOpsS,
            Column::LatencyMeanNs,
            Column::HitRatio,
            Column::WriteIos,
            Column::Waf,
            Column::MissRatio,
        ],
        Command::Gc => &[Column::ValidShare, Column::GroupSegments, Column::LastSegments],
        Command::Replay | Command::Serve => {
            &[Column::LatencyMeanNs, Column::ThroughputOpsS, Column::WaitGcMeanNs, Column::Waf]
        }
        Command::Bench => &[Column::ThroughputOpsS, Column::LatencyMeanNs, Column::HitRatio, Column::Waf],
        Command::Profile => &[
            Column::Alpha,
            Column::KR,
            Column::KW,
            Column::ReadIops,
            Column::WriteIops,
            Column::ReadLatencyP99Ns,
            Column::WriteLatencyP99Ns,
        ],
    }
}

/// Returns the columns that are drawn over a number: those that the runs are judged by, and the tail.
pub(super) fn over_numbers(command: Command) -> Vec<Column> {
    let mut columns = alone(command).to_vec();
    match command {
        Command::Gc => columns.splice(0..0, [Column::WafSteady, Column::Waf]).for_each(drop),
        Command::Profile => {}
        _ => columns.insert(2, Column::LatencyP99Ns),
    }
    columns
}
