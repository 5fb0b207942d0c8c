//! The names of rows and columns on the page: the words of the study, or else the part of a name that differs.

use fulgurite_stack::{Column, Unit, Value};
use std::collections::BTreeMap;

/// The words of a study.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(pub &'a BTreeMap<String, String>);

impl Words<'_> {
    /// No words: every name stands for itself.
    pub const NONE: Words<'static> = Words(&BTreeMap::new());

    /// What `exact` is called.
    pub fn name<'a>(&'a self, exact: &'a str) -> &'a str {
        self.0.get(exact).map_or(exact, String::as_str)
    }

    /// What values beside each other are called. Parts that all of the names have say nothing and are left out.
    pub fn of(&self, values: &[Value]) -> Vec<String> {
        let exact: Vec<String> = values.iter().map(Value::exact).collect();
        let parts: Vec<Vec<&str>> = exact.iter().map(|name| name.split([':', ',']).collect()).collect();
        let is_common = |part: &&str| values.len() > 1 && parts.iter().all(|parts| parts.contains(part));
        let named = |at: usize| {
            if let Some(words) = self.0.get(&exact[at]) {
                return words.clone();
            }
            let Value::Text(_) = &values[at] else { return values[at].readable() };
            let own: Vec<&str> = parts[at].iter().copied().filter(|part| !is_common(part)).collect();
            if own.is_empty() || own.len() == parts[at].len() { exact[at].clone() } else { own.join(", ") }
        };
        (0..values.len()).map(named).collect()
    }

    /// What a column is called: its name in words, without the unit, which its values have.
    pub fn column(&self, column: Column) -> String {
        if let Some(words) = self.0.get(column.name()) {
            return words.clone();
        }
        let common = match column {
            Column::ElapsedNs => "run time",
            Column::ThroughputOpsS => "throughput",
            Column::WriteIos => "write requests",
            Column::WriteWaits => "misses that wait for a write",
            Column::LatencyMeanNs => "mean response time",
            Column::LatencyMaxNs => "longest response time",
            Column::LatencyVarianceNs2 => "variance of response times",
            Column::LatencyP99Ns => "99th percentile of latency",
            Column::LatencyP999Ns => "99.9th percentile of latency",
            Column::MergedPages => "flash reads saved by merging",
            Column::Waf => "write amplification",
            Column::WafSteady => "steady write amplification",
            Column::DriveWaf => "write amplification of the drive",
            Column::ValidShareError => "error of the predicted valid share",
            Column::WafClosedForm => "its closed form",
            Column::NW => "pages written at once",
            _ => "",
        };
        if !common.is_empty() {
            return common.to_owned();
        }
        let name = column.name();
        let suffix = match column.unit() {
            Unit::Nanoseconds => "_ns",
            Unit::BytesPerSecond => "_bytes_s",
            Unit::Bytes => "_bytes",
            Unit::Name | Unit::Number => "",
        };
        name.strip_suffix(suffix).unwrap_or(name).replace('_', " ")
    }
}
