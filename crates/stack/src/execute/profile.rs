//! Makes the result rows of `profile`.

use crate::pattern::Pattern;
use crate::probe::{PROBE_WRITES_S, ProbeAndLoad, Probed};
use crate::profile::Profile;
use crate::run::{LatencySuite, PROFILE_OPS};
use crate::steady;
use crate::{Column, Progress, Row, Run, StackError};
use fulgurite_ssd::preset::Concurrency;
use std::collections::BTreeMap;

/// Returns the result row of `fulgurite profile`: the measured figures and the published figures of the
/// device.
pub(super) fn row(run: &Run, profile: &Profile) -> Row {
    let (mut row, device) = (Row::default(), &run.stack.device);
    row.set(Column::Device, device.label.as_str());
    row.set(Column::PageBytes, profile.page_bytes);
    row.set(Column::Seed, run.seed);
    row.set(Column::Alpha, profile.alpha());
    row.set(Column::KR, profile.reads.k);
    row.set(Column::KW, profile.writes.k);
    row.set(Column::KR90, profile.reads.k_90);
    row.set(Column::KW90, profile.writes.k_90);
    row.set(Column::ReadIopsMax, profile.reads.iops_max);
    row.set(Column::WriteIopsMax, profile.writes.iops_max);
    // The published figures are for drives without a layer, so a run with a layer is not compared with them.
    if let Some(target) = device.target(profile.page_bytes).filter(|_| run.stack.layer.is_none()) {
        row.set(Column::AlphaTarget, target.alpha);
        for (column, k) in [(Column::KRTarget, target.k_r), (Column::KWTarget, target.k_w)] {
            match k {
                Concurrency::Is(k) => row.set(column, k),
                Concurrency::MoreThan(k) => row.set(column, format!(">{k}")),
            }
        }
        let hits = (profile.alpha() / target.alpha - 1.0).abs() <= 0.05
            && reaches(profile.reads.k, target.k_r)
            && reaches(profile.writes.k, target.k_w);
        row.set(Column::Verdict, if hits { "ok" } else { "miss" });
        if let Some(preset) = device.unchanged_preset().filter(|_| !hits) {
            row.set(Column::Note, format!("{} misses: {}", preset.name, preset.misses));
        }
    }
    row
}

/// Returns the result rows of `fulgurite profile --curve`: throughput by number of users. The searches for
/// k_r and k_w measure different numbers of users, so a row may lack the throughput of reads or of writes.
pub(super) fn curve(run: &Run, profile: &Profile) -> Vec<Row> {
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    for (column, plateau) in [(Column::ReadIops, &profile.reads), (Column::WriteIops, &profile.writes)] {
        for (users, iops) in &plateau.curve {
            let row = rows.entry(*users).or_default();
            row.set(Column::Device, run.stack.device.label.as_str());
            row.set(Column::PageBytes, profile.page_bytes);
            row.set(Column::Users, *users);
            row.set(Column::Seed, run.seed);
            row.set(column, *iops);
        }
    }
    rows.into_values().collect()
}

/// Returns the result rows of `fulgurite profile --suite latency`, one for each rate.
pub(super) fn latency(
    run: &Run,
    page_bytes: u32,
    suite: &LatencySuite,
    progress: &Progress,
) -> Result<Vec<Row>, StackError> {
    let request_pages = run.stack.device_pages_per(page_bytes)?;
    steady::condition(&run.stack, page_bytes, run.seed)?;
    let at = |offered_ops_s| {
        let load = ProbeAndLoad { offered_ops_s, request_pages, time: suite.time, seed: run.seed };
        run.stack.with_device(run.seed, request_pages, load)?
    };
    let rates = match suite.rate {
        Some(rate) => vec![rate as f64],
        // Without a rate, the load first finds what the drive sustains.
        None => {
            let most = at(f64::INFINITY)?.done_ops_s + PROBE_WRITES_S;
            let rounded = |share: f64| (most * share / 1_000.0).round() * 1_000.0;
            SHARES.iter().map(|share| rounded(*share).max(LEAST_OPS_S)).collect()
        }
    };
    let mut rows = Vec::new();
    for rate in rates {
        rows.push(latency_row(run, page_bytes, &at(rate)?));
        progress.add(PROFILE_OPS / SHARES.len() as u64);
    }
    Ok(rows)
}

/// Returns the result rows of `fulgurite profile --suite overwrite` and the like, one for each pattern.
pub(super) fn steady(
    run: &Run,
    page_bytes: u32,
    patterns: &[Pattern],
    progress: &Progress,
) -> Result<Vec<Row>, StackError> {
    let mut rows = Vec::new();
    for pattern in patterns {
        let steady = steady::measure(&run.stack, page_bytes, pattern, run.seed)?;
        let mut row = Row::default();
        row.set(Column::Device, run.stack.device.label.as_str());
        row.set(Column::Pattern, pattern.to_string());
        row.set(Column::PageBytes, page_bytes);
        row.set(Column::Seed, run.seed);
        row.set(Column::ThroughputOpsS, steady.throughput_ops_s);
        row.set_some(Column::Waf, steady.waf);
        rows.push(row);
        progress.add(PROFILE_OPS / patterns.len() as u64);
    }
    Ok(rows)
}

/// The rates of a series, as shares of the most that the drive sustains.
const SHARES: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.5];

/// The lowest rate of the suite, which has as much load as the probe has writes.
const LEAST_OPS_S: f64 = 10_000.0;

fn latency_row(run: &Run, page_bytes: u32, probed: &Probed) -> Row {
    let mut row = Row::default();
    row.set(Column::Device, run.stack.device.label.as_str());
    row.set(Column::PageBytes, page_bytes);
    row.set(Column::Seed, run.seed);
    row.set(Column::RateRequestsS, probed.offered_ops_s);
    row.set(Column::OfferedOpsS, probed.offered_ops_s);
    row.set(Column::DoneOpsS, probed.done_ops_s);
    row.set_some(Column::Waf, probed.waf);
    for (histogram, figures) in [
        (
            &probed.reads,
            &[
                (Column::ReadLatencyP50Ns, 50.0),
                (Column::ReadLatencyP90Ns, 90.0),
                (Column::ReadLatencyP99Ns, 99.0),
                (Column::ReadLatencyP999Ns, 99.9),
            ][..],
        ),
        (
            &probed.writes,
            &[
                (Column::WriteLatencyP50Ns, 50.0),
                (Column::WriteLatencyP90Ns, 90.0),
                (Column::WriteLatencyP99Ns, 99.0),
                (Column::WriteLatencyP999Ns, 99.9),
            ],
        ),
        (&probed.load, &[(Column::LoadLatencyP50Ns, 50.0), (Column::LoadLatencyP99Ns, 99.0)]),
    ] {
        for (column, percent) in figures {
            row.set_some(*column, histogram.percentile_ns(*percent));
        }
    }
    row
}

/// Whether a measured concurrency is within 15 % of a published one, or above a published lower bound.
fn reaches(measured: u32, published: Concurrency) -> bool {
    match published {
        Concurrency::Is(k) => f64::from(measured.abs_diff(k)) <= 0.15 * f64::from(k),
        Concurrency::MoreThan(k) => measured > k,
    }
}
