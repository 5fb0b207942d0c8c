//! Makes the result rows of `profile`.

use crate::profile::Profile;
use crate::{Column, Row, Run};
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

/// Whether a measured concurrency is within 15 % of a published one, or above a published lower bound.
fn reaches(measured: u32, published: Concurrency) -> bool {
    match published {
        Concurrency::Is(k) => f64::from(measured.abs_diff(k)) <= 0.15 * f64::from(k),
        Concurrency::MoreThan(k) => measured > k,
    }
}
