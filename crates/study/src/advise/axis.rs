//! The settings that are tried, with their values: first the plain one, then the others from simple to elaborate.

use fulgurite_stack::catalogue::KINDS;
use fulgurite_stack::settings::Absent;
use fulgurite_stack::{Column, Command, StackError};
use std::collections::BTreeMap;

/// Settings of a pool by name, those that are given.
pub type Setup = BTreeMap<&'static str, String>;

/// The settings that can be tried, in the order in which they are. What to write with decides most, and prefetching needs
/// its batches.
pub const TRIED: [&str; 6] = ["write_back", "replacement", "prefetch", "placement", "victim", "page"];

/// Policies that are tried only if they are named. The first looks through its whole window at a miss, the next two ask
/// for erase counts, which no real drive tells, and the last knows the future.
pub const LEFT_OUT: [&str; 4] = ["cflru-c", "cflru-e", "dl-cflru-e", "oracle"];

/// A setting that is tried.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: &'static str,
    /// The plain value; `None` for what stands in where the setting is not given.
    pub plain: Option<String>,
    /// What is said of that.
    pub usual: String,
    /// The other values. Of those that do about as well the first is taken.
    pub others: Vec<String>,
    /// Whether the values were given, so that no others are made up.
    pub is_given: bool,
}

impl Axis {
    /// The values that were given, the first of them as the plain one.
    pub fn given(name: &'static str, mut values: Vec<String>) -> Axis {
        let others = values.split_off(1.min(values.len()));
        Axis { plain: values.pop(), others, is_given: true, ..Axis::nothing(name) }
    }

    /// Nothing but what stands in where the setting is not given.
    pub fn nothing(name: &'static str) -> Axis {
        Axis { name, plain: None, usual: usual(name), others: Vec::new(), is_given: false }
    }

    /// All that there is of the policies of a kind.
    pub fn of_kind(name: &'static str) -> Axis {
        let (kind, nothing) = (name.replace('_', "-"), Axis::nothing(name));
        let rows = KINDS.iter().filter(|(known, _)| *known == kind).flat_map(|(_, rows)| rows());
        let is_other = |name: &String| *name != nothing.usual && !LEFT_OUT.contains(&name.as_str());
        let others = rows.map(|row| row.row.text(Column::Name)).filter(is_other);
        Axis { others: others.collect(), ..nothing.clone() }
    }

    /// Write-back policies, with `n_w` pages together where there are numbers.
    pub fn write_back(n_w: u32) -> Axis {
        let others = ["auto", "raw", "ace:n_w=", "ace+raw:n_w=", "background", "background:n_w="];
        let with_number = |text: &str| match text.ends_with('=') {
            true => format!("{text}{n_w}"),
            false => text.to_owned(),
        };
        let others = others.into_iter().map(with_number).collect();
        Axis { others, ..Axis::nothing("write_back") }
    }

    /// What stands in its place in a setup.
    pub fn in_words(&self, setup: &Setup) -> String {
        setup.get(self.name).or(self.plain.as_ref()).cloned().unwrap_or_else(|| self.usual.clone())
    }
}

/// Batches beside `n_w`: half of it, and twice and four times as much; of one page, which has no half, eight.
pub fn other_batches(n_w: u32) -> [u32; 3] {
    [if n_w == 1 { 8 } else { n_w / 2 }, n_w.saturating_mul(2), n_w.saturating_mul(4)]
}

/// How many values other batches add.
pub const OTHER_BATCHES: usize = 6;

/// If a setting has more values, all are tried on the first part, and only this many of the best on the others.
pub const KEPT: usize = 4;

/// What stands in where a setting of the pool is not given.
fn usual(name: &str) -> String {
    let setting = Command::Pool.setting(name).ok();
    match setting.and_then(|setting| setting.absent(Command::Pool)) {
        Some(Absent::Value(value) | Absent::Words(value)) => value.to_owned(),
        _ => String::new(),
    }
}

/// What is tried with this objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// As many requests a second as possible.
    Throughput,
    /// A 99th percentile of response times as low as possible.
    P99,
}

impl Goal {
    /// The goal called `text`.
    pub fn parse(text: &str) -> Result<Goal, StackError> {
        match text {
            "throughput" => Ok(Goal::Throughput),
            "p99" => Ok(Goal::P99),
            other => {
                Err(StackError::request(format!("--for {other}: unknown goal; accepted: throughput or p99")))
            }
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Goal::Throughput => "throughput",
            Goal::P99 => "p99",
        }
    }

    /// The other one.
    pub fn other(self) -> Goal {
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
    fn other_batches_are_others() {
        for n_w in 1..100 {
            let [a, b, c] = other_batches(n_w);
            assert!(a != b && b != c && a != c && ![a, b, c].contains(&n_w) && a > 0, "{n_w}: {a} {b} {c}");
        }
    }
}
