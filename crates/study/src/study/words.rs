//! Chooses the labels of rows and columns in the report. A label is the study's own, or the piece of a name
//! that differs from the other names.

use crate::people::humane;
use fulgurite_stack::{Column, Unit, Value};
use std::collections::BTreeMap;

/// The labels of a study, by the name that they replace.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(pub &'a BTreeMap<String, String>);

impl Words<'_> {
    /// The empty set of labels, with which each name is its own label.
    pub(super) const NONE: Words<'static> = Words(&BTreeMap::new());

    /// Returns the label of a name.
    pub(super) fn name<'a>(&'a self, exact: &'a str) -> &'a str {
        self.0.get(exact).map_or(exact, String::as_str)
    }

    /// Returns the label of a value of `column`, which is given as text.
    pub(super) fn named(&self, column: Column, exact: &str) -> String {
        match (self.0.get(exact), exact.parse::<f64>()) {
            (None, Ok(number)) => self.counted(column, &Value::Real(number)),
            _ => self.name(exact).to_owned(),
        }
    }

    /// Returns a number with the quantity that it counts or measures: `8 users`, `run time 16.0 s`, `scale
    /// 4`.
    pub(super) fn counted(&self, column: Column, value: &Value) -> String {
        let Some(number) = value.as_f64() else { return self.name(&value.exact()).to_owned() };
        if column == Column::Degree {
            return if number == 1.0 {
                "one read at a time".to_owned()
            } else {
                format!("{number} reads at once")
            };
        }
        let what = self.column(column);
        let text = match number.fract() == 0.0 && number >= 0.0 {
            true => humane(column, &Value::Integer(number as u64)),
            false => humane(column, value),
        };
        match what.strip_suffix('s') {
            Some(one) if number == 1.0 => format!("1 {one}"),
            Some(_) => format!("{text} {what}"),
            None => format!("{what} {text}"),
        }
    }

    /// Returns the labels of several values of `column`. The label of a number includes its quantity.
    pub(super) fn of_column(&self, column: Column, values: &[Value]) -> Vec<String> {
        let has_words = |value: &Value| self.0.contains_key(&value.exact());
        let name = |(name, value): (String, &Value)| match value {
            Value::Integer(_) | Value::Real(_) if !has_words(value) => self.counted(column, value),
            _ => name,
        };
        self.of(values).into_iter().zip(values).map(name).collect()
    }

    /// Returns the labels of several values. Pieces that all names have in common are left out.
    pub(super) fn of(&self, values: &[Value]) -> Vec<String> {
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

    /// Returns the label of a column: its name in words without the unit, because its values show the unit.
    pub(super) fn column(&self, column: Column) -> String {
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
            Column::CpuPerRequestNs => "CPU time of a request",
            Column::PageBytes => "pages of",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: the label of a number includes the name of its quantity, in the singular for 1. The labels
    /// of the study take precedence.
    #[test]
    fn a_number_has_the_name_of_its_quantity() {
        let names = BTreeMap::from([("4096".to_owned(), "small pages".to_owned())]);
        let words = Words(&names);
        for (column, exact, said) in [
            (Column::Users, "1", "1 user"),
            (Column::Users, "64", "64 users"),
            (Column::Frames, "102400", "102,400 frames"),
            (Column::Scale, "4", "scale 4"),
            (Column::TimeNs, "16000000000", "time 16.0 s"),
            (Column::PageBytes, "8192", "pages of 8 KiB"),
            (Column::PageBytes, "4096", "small pages"),
            (Column::Degree, "1", "one read at a time"),
            (Column::Degree, "256", "256 reads at once"),
            (Column::Workload, "zipf", "zipf"),
        ] {
            assert_eq!(words.named(column, exact), said);
        }
        let users = [1u32, 8].map(Value::from);
        assert_eq!(words.of_column(Column::Users, &users), ["1 user", "8 users"]);
        let workloads = ["zipf:theta=0.9", "zipf:theta=0.5"].map(Value::from);
        assert_eq!(words.of_column(Column::Workload, &workloads), ["theta=0.9", "theta=0.5"]);
    }
}
