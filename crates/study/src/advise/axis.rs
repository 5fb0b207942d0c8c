//! Defines the search space of `advise`: the settings that it tries, each with its values.
//!
//! An *axis* is one setting with its values: the *plain* value, which the advice is compared with, and the
//! others from simple to elaborate. A *setup* assigns values to some settings.

use fulgurite_stack::catalogue::KINDS;
use fulgurite_stack::settings::Absent;
use fulgurite_stack::{Column, Command, StackError};
use std::collections::BTreeMap;

/// Values of settings of the command `pool`, by the name of the setting. A setting that is absent has its
/// default.
pub(super) type Setup = BTreeMap<&'static str, String>;

/// The names of the settings that are tried, in this order. Write-back comes first, because it has the
/// largest effect and because prefetching depends on its batch size.
pub(super) const TRIED: [&str; 6] = ["write_back", "replacement", "prefetch", "placement", "victim", "page"];

/// The replacement policies that are tried only if the user names them. The first scans its whole window on
/// each miss. The next two need erase counts, which no real drive reports. The others need to know the
/// future.
pub(super) const LEFT_OUT: [&str; 6] = ["cflru-c", "cflru-e", "dl-cflru-e", "belady", "oracle", "nodap"];

/// A setting with the values to try.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The name of the setting, as in [`TRIED`].
    pub name: &'static str,
    /// The plain value of the setting; `None` means the default of the command `pool`.
    pub plain: Option<String>,
    /// The default of the setting, as the answer prints it.
    pub usual: String,
    /// The values to compare with the plain one, from simple to elaborate. If several of them gain about the
    /// same, the first of these is chosen.
    pub others: Vec<String>,
    /// Whether the user gave the values. If so, no other values are added.
    pub is_given: bool,
}

impl Axis {
    /// Creates an axis with the user's values. The first value is the plain one.
    pub(super) fn given(name: &'static str, mut values: Vec<String>) -> Axis {
        let others = values.split_off(1.min(values.len()));
        Axis { plain: values.pop(), others, is_given: true, ..Axis::nothing(name) }
    }

    /// Creates an axis whose only value is the default.
    pub(super) fn nothing(name: &'static str) -> Axis {
        Axis { name, plain: None, usual: usual(name), others: Vec::new(), is_given: false }
    }

    /// Creates an axis with all policies of one kind, without those in [`LEFT_OUT`].
    pub(super) fn of_kind(name: &'static str) -> Axis {
        let (kind, nothing) = (name.replace('_', "-"), Axis::nothing(name));
        let rows = KINDS.iter().filter(|(known, _)| *known == kind).flat_map(|(_, rows)| rows());
        let is_other = |name: &String| *name != nothing.usual && !LEFT_OUT.contains(&name.as_str());
        let others = rows.map(|row| row.row.text(Column::Name)).filter(is_other);
        Axis { others: others.collect(), ..nothing.clone() }
    }

    /// Creates an axis with the write-back policies. The policies that have a batch size get `n_w`, the batch
    /// size that suits the drive.
    pub(super) fn write_back(n_w: u32) -> Axis {
        let others = ["auto", "raw", "ace:n_w=", "ace+raw:n_w=", "background", "background:n_w="];
        let with_number = |text: &str| match text.ends_with('=') {
            true => format!("{text}{n_w}"),
            false => text.to_owned(),
        };
        let others = others.into_iter().map(with_number).collect();
        Axis { others, ..Axis::nothing("write_back") }
    }

    /// Returns the value of this setting in a setup, as the answer prints it.
    pub(super) fn in_words(&self, setup: &Setup) -> String {
        setup.get(self.name).or(self.plain.as_ref()).cloned().unwrap_or_else(|| self.usual.clone())
    }
}

/// Returns further batch sizes to try: half of the drive's batch size `n_w` (8 if `n_w` is 1), twice `n_w`,
/// and four times `n_w`.
pub(super) fn other_batches(n_w: u32) -> [u32; 3] {
    [if n_w == 1 { 8 } else { n_w / 2 }, n_w.saturating_mul(2), n_w.saturating_mul(4)]
}

/// The number of values that the batch sizes of [`other_batches`] add to the write-back axis: two policies
/// have a batch size, and there are three batch sizes.
pub(super) const OTHER_BATCHES: usize = 6;

/// The number of values of a setting that are tried on every part of the workload. If a setting has more
/// values, all of them are tried on the first part, and only this many of the best on the other parts.
pub(super) const KEPT: usize = 4;

/// Returns the default of a setting of the command `pool`, or an empty text if the setting has none.
fn usual(name: &str) -> String {
    let setting = Command::Pool.setting(name).ok();
    match setting.and_then(|setting| setting.absent(Command::Pool)) {
        Some(Absent::Value(value) | Absent::Words(value)) => value.to_owned(),
        _ => String::new(),
    }
}

/// The objective of the advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// The highest throughput.
    Throughput,
    /// The lowest 99th percentile of response times.
    P99,
}

impl Goal {
    /// Parses the name of an objective.
    pub(super) fn parse(text: &str) -> Result<Goal, StackError> {
        match text {
            "throughput" => Ok(Goal::Throughput),
            "p99" => Ok(Goal::P99),
            other => {
                Err(StackError::request(format!("--for {other}: unknown goal; accepted: throughput or p99")))
            }
        }
    }

    /// Returns the name of the objective, as on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Goal::Throughput => "throughput",
            Goal::P99 => "p99",
        }
    }

    /// Returns the other objective.
    pub(super) fn other(self) -> Goal {
        match self {
            Goal::Throughput => Goal::P99,
            Goal::P99 => Goal::Throughput,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_value_comes_first_and_is_not_among_the_others() {
        let replacement = Axis::of_kind("replacement");
        assert_eq!(replacement.in_words(&Setup::new()), "lru");
        assert_eq!(replacement.others.len(), 13, "17 but for the plain one and those left out");
        assert!(!replacement.others.contains(&"lru".to_owned()));
        let given = Axis::given("replacement", ["clock", "arc"].map(str::to_owned).to_vec());
        assert_eq!(given.in_words(&Setup::new()), "clock");
        assert_eq!(given.others, ["arc"]);
        assert_eq!(given.in_words(&Setup::from([("replacement", "arc".to_owned())])), "arc");
    }

    #[test]
    fn other_batches_differ_from_the_first() {
        for n_w in 1..100 {
            let [a, b, c] = other_batches(n_w);
            assert!(a != b && b != c && a != c && ![a, b, c].contains(&n_w) && a > 0, "{n_w}: {a} {b} {c}");
        }
    }
}
