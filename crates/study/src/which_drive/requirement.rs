//! Defines the requirements that a drive must meet, and judges the figures of a run by them.

use crate::advise::listed;
use crate::people::humane;
use fulgurite_base::SpecError;
use fulgurite_ssd::preset::Bounds;
use fulgurite_stack::{Column, Row, StackError, Value};

/// The certainty with which a drive meets a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meets {
    /// The drive misses it, even if it is as much better than its twin as any measured rate was.
    No,
    /// The twin misses it, and the measured drive was better than its twin by more than that.
    Unlikely,
    /// The twin meets it; the measured drive may not, or the twin was never compared with one.
    Likely,
    /// The twin meets it in every slice of the workload, also if the drive is as much worse than its twin as
    /// any measured rate was.
    Yes,
}

impl Meets {
    /// Returns the word for tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Meets::No => "no",
            Meets::Unlikely => "unlikely",
            Meets::Likely => "likely",
            Meets::Yes => "yes",
        }
    }
}

/// A figure that can be required.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    of: Of,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// A response time, at most: of these requests, and the column of the worst slice of the workload.
    Time { column: Column, worst_slice: Option<Column>, of: Requests, percentile: Percentile },
    /// Write amplification, at most.
    Waf,
    /// Years of life, at least.
    Years,
    /// A multiple of the workload's own rate, at least.
    Headroom,
}

/// The requests of a response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Requests {
    All,
    Reads,
    Writes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Percentile {
    P50,
    P99,
    P999,
}

use Percentile::{P50, P99, P999};
use Requests::{All, Reads, Writes};

const fn time(name: &'static str, column: Column, of: Requests, percentile: Percentile) -> Figure {
    let worst_slice = match (of, percentile) {
        (All, P99) => Some(Column::LatencyP99SliceMaxNs),
        (Reads, P99) => Some(Column::ReadLatencyP99SliceMaxNs),
        (Writes, P99) => Some(Column::WriteLatencyP99SliceMaxNs),
        _ => None,
    };
    Figure { name, of: Of::Time { column, worst_slice, of, percentile } }
}

const FIGURES: [Figure; 12] = [
    time("p50", Column::LatencyP50Ns, All, P50),
    time("p99", Column::LatencyP99Ns, All, P99),
    time("p999", Column::LatencyP999Ns, All, P999),
    time("read_p50", Column::ReadLatencyP50Ns, Reads, P50),
    time("read_p99", Column::ReadLatencyP99Ns, Reads, P99),
    time("read_p999", Column::ReadLatencyP999Ns, Reads, P999),
    time("write_p50", Column::WriteLatencyP50Ns, Writes, P50),
    time("write_p99", Column::WriteLatencyP99Ns, Writes, P99),
    time("write_p999", Column::WriteLatencyP999Ns, Writes, P999),
    Figure { name: "waf", of: Of::Waf },
    Figure { name: "years", of: Of::Years },
    Figure { name: "headroom", of: Of::Headroom },
];

/// A requirement: a figure with its bound.
#[derive(Clone, Debug)]
pub(super) struct Requirement {
    figure: &'static Figure,
    bound: f64,
}

/// Parses requirements like `p99=2ms,years=5`.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, StackError> {
    let mut requirements: Vec<Requirement> = Vec::new();
    for item in text.split(',') {
        let requirement = one(item.trim())?;
        if requirements.iter().any(|known| known.figure.name == requirement.figure.name) {
            return Err(StackError::request(format!(
                "--require {text}: {} stands twice; accepted: each figure once",
                requirement.figure.name
            )));
        }
        requirements.push(requirement);
    }
    Ok(requirements)
}

fn one(item: &str) -> Result<Requirement, StackError> {
    let names = || FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>();
    let Some((name, bound)) = item.split_once('=') else {
        return Err(StackError::request(format!(
            "--require {item}: no bound; accepted: a list of FIGURE=BOUND like p99=2ms,years=5, with {}",
            names().join(", ")
        )));
    };
    let figure = FIGURES
        .iter()
        .find(|figure| figure.name == name)
        .ok_or_else(|| SpecError::unknown("requirement", name, &names()))?;
    let (bound, accepted) = match figure.of {
        Of::Time { .. } => (nanoseconds(bound), "a time above zero, like 500us, 2ms or 1s"),
        _ => (bound.trim_end_matches('x').parse().ok(), "a number above zero, like 5"),
    };
    let bound = bound.filter(|bound: &f64| bound.is_finite() && *bound > 0.0);
    let refused = || StackError::request(format!("--require {item}: accepted: {accepted}"));
    Ok(Requirement { figure, bound: bound.ok_or_else(refused)? })
}

/// Parses a length of time.
fn nanoseconds(text: &str) -> Option<f64> {
    let units = [("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    units.iter().find_map(|(unit, scale)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * scale))
}

impl Requirement {
    /// Whether the requirement is about the headroom, which is what the others leave.
    pub(super) fn is_of_headroom(&self) -> bool {
        self.figure.of == Of::Headroom
    }

    /// Whether the requirement is about wear, which a workload without writes does not cause.
    pub(super) fn is_of_wear(&self) -> bool {
        matches!(self.figure.of, Of::Waf | Of::Years)
    }

    /// Whether the requirement is about years, which need the capacity on a drive's label.
    pub(super) fn is_of_years(&self) -> bool {
        self.figure.of == Of::Years
    }

    /// Returns the requirement as the user typed it, in humane units.
    pub(super) fn text(&self) -> String {
        match self.figure.of {
            Of::Time { column, .. } => {
                format!("{} at most {}", self.in_words(), humane(column, &Value::Real(self.bound)))
            }
            Of::Waf => format!("waf at most {}", self.bound),
            Of::Years if self.bound == 1.0 => "at least a year".to_owned(),
            Of::Years => format!("at least {} years", self.bound),
            Of::Headroom => format!("headroom of at least {} times", self.bound),
        }
    }

    /// Returns the name of the figure, as people read it.
    pub(super) fn in_words(&self) -> String {
        let name = self.figure.name.replace("p999", "p99.9");
        match name.split_once('_') {
            Some((of, percentile)) => format!("{percentile} of {of}s"),
            None => name,
        }
    }

    /// Returns the column of a response time; `None` for other figures.
    pub(super) fn column(&self) -> Option<Column> {
        match self.figure.of {
            Of::Time { column, .. } => Some(column),
            _ => None,
        }
    }

    /// Returns the figure of a run that is required; `None` if the run has none.
    pub(super) fn value(&self, row: &Row) -> Option<f64> {
        match self.figure.of {
            Of::Time { column, .. } => row.number(column),
            Of::Waf => row.number(Column::Waf),
            Of::Years => years(row),
            Of::Headroom => row.number(Column::Headroom),
        }
    }

    /// Whether a run meets the requirement, as it was simulated. A figure that the run does not have is that of
    /// requests which it does not make.
    pub(super) fn holds(&self, row: &Row) -> bool {
        self.value(row).is_none_or(|value| match self.figure.of {
            Of::Time { .. } | Of::Waf => value <= self.bound,
            Of::Years | Of::Headroom => value >= self.bound,
        })
    }

    /// Returns how surely a drive meets the requirement, if `row` has the figures of its twin and the measured
    /// drive is within `bounds` of the twin.
    pub(super) fn judge(&self, row: &Row, bounds: Option<&Bounds>) -> Meets {
        let Of::Time { worst_slice, of, percentile, .. } = self.figure.of else {
            return if self.holds(row) { Meets::Yes } else { Meets::No };
        };
        let Some(value) = self.value(row) else { return Meets::Yes };
        let bounds = bounds.and_then(|bounds| of.bounds(percentile, bounds, row));
        let worst = worst_slice.and_then(|column| row.number(column)).map_or(value, |worst| worst.max(value));
        match (value <= self.bound, bounds) {
            (true, Some([_, most])) if worst * most <= self.bound => Meets::Yes,
            (true, _) => Meets::Likely,
            (false, Some([least, _])) if value * least <= self.bound => Meets::Unlikely,
            (false, _) => Meets::No,
        }
    }
}

impl Requests {
    /// Returns the bounds of these requests; `None` if nobody has measured them.
    fn bounds(self, percentile: Percentile, bounds: &Bounds, row: &Row) -> Option<[f64; 2]> {
        let has = |column: Column| row.number(column).is_some_and(|count| count > 0.0);
        let (reads, writes) = match percentile {
            P50 => (bounds.read_p50, bounds.write_p50),
            P99 => (bounds.read_p99, bounds.write_p99),
            P999 => return None,
        };
        Some(match self {
            Reads => reads,
            Writes => writes,
            All if !has(Column::Writes) => reads,
            All if !has(Column::Reads) => writes,
            // A percentile of all requests may be that of a read or of a write.
            All => [reads[0].min(writes[0]), reads[1].max(writes[1])],
        })
    }
}

/// Returns the years that a drive lasts at the rate of a run: until its flash is worn out or the maker's rating
/// is used up, whichever comes first.
pub(super) fn years(row: &Row) -> Option<f64> {
    let rated = row.number(Column::RatedYearsAtThisRate).unwrap_or(f64::INFINITY);
    row.number(Column::LifetimeYearsAtThisRate).map(|years| years.min(rated))
}

/// Returns all requirements in one text.
pub(super) fn in_words(requirements: &[Requirement]) -> String {
    listed(&requirements.iter().map(Requirement::text).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figures: &[(Column, f64)]) -> Row {
        let mut row = Row::default();
        figures.iter().for_each(|(column, value)| row.set(*column, *value));
        row
    }

    const BOUNDS: Bounds = Bounds::new([[0.9, 1.1], [0.5, 2.0], [1.0, 1.0], [1.0, 10.0]]);

    /// The certainty follows from the bounds of the drive's own measurements, and from the worst slice.
    #[test]
    fn a_requirement_is_met_surely_only_within_the_bounds_of_the_twin() {
        let [read] = parse("read_p99=1ms").unwrap().try_into().unwrap();
        let judged = |us: f64, slice: f64, bounds: Option<&Bounds>| {
            let figures =
                [(Column::ReadLatencyP99Ns, us * 1e3), (Column::ReadLatencyP99SliceMaxNs, slice * 1e3)];
            read.judge(&row(&figures), bounds)
        };
        assert_eq!(judged(400.0, 500.0, Some(&BOUNDS)), Meets::Yes);
        assert_eq!(judged(400.0, 501.0, Some(&BOUNDS)), Meets::Likely, "twice the worst slice is too much");
        assert_eq!(judged(400.0, 500.0, None), Meets::Likely, "the twin was never compared");
        assert_eq!(judged(1_000.0, 1_000.0, Some(&BOUNDS)), Meets::Likely);
        assert_eq!(judged(1_999.0, 1_999.0, Some(&BOUNDS)), Meets::Unlikely, "half of it would do");
        assert_eq!(judged(2_001.0, 2_001.0, Some(&BOUNDS)), Meets::No);
        assert_eq!(judged(1_001.0, 1_001.0, None), Meets::No);
    }

    /// A percentile of all requests is bounded by the worse of reads and writes, if the workload has both.
    #[test]
    fn all_requests_have_the_bounds_of_those_that_there_are() {
        let [all] = parse("p99=1ms").unwrap().try_into().unwrap();
        let judged = |reads: f64, writes: f64| {
            let counts = [(Column::Reads, reads), (Column::Writes, writes), (Column::LatencyP99Ns, 300e3)];
            all.judge(&row(&counts), Some(&BOUNDS))
        };
        assert_eq!(
            (judged(5.0, 0.0), judged(5.0, 5.0), judged(0.0, 5.0)),
            (Meets::Yes, Meets::Likely, Meets::Likely)
        );
    }

    /// A drive lasts until its flash or its maker's rating ends, whichever comes first.
    #[test]
    fn years_are_those_of_the_shorter_life() {
        let [five] = parse("years=5").unwrap().try_into().unwrap();
        let flash = (Column::LifetimeYearsAtThisRate, 9.0);
        assert!(five.holds(&row(&[flash])));
        assert!(!five.holds(&row(&[flash, (Column::RatedYearsAtThisRate, 4.9)])));
    }

    #[test]
    fn a_requirement_that_cannot_be_read_is_refused_with_what_would_be() {
        for (text, said) in [
            ("p99", "a list of FIGURE=BOUND"),
            ("p98=2ms", "did you mean `p99`?"),
            ("p99=2", "a time above zero"),
            ("p99=0ms", "a time above zero"),
            ("years=-1", "a number above zero"),
            ("years=inf", "a number above zero"),
            ("p99=2ms,p99=3ms", "each figure once"),
        ] {
            let refused = parse(text).unwrap_err();
            assert_eq!(refused.exit_code(), 2);
            assert!(refused.to_string().contains(said), "{text}: {refused}");
        }
    }
}
