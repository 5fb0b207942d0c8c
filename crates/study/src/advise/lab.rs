//! Executes the runs of an advice, each setup once on each part of the workload, and compares their results.

use super::axis::{Goal, Setup};
use super::question::{self, Question};
use fulgurite_stack::runner::{self, Runs};
use fulgurite_stack::settings::Workloads;
use fulgurite_stack::{Column, Progress, Row, Run, StackError};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Range;

/// The result of one run, with its throughput and latency for comparisons.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// The throughput in requests per second, counted as requests for pages of the plain size.
    pub throughput: f64,
    /// The 99th percentile of response times, in nanoseconds.
    pub p99: f64,
    /// The result row of the run.
    pub row: Row,
}

/// The results of one setup, one for each of several parts.
pub(super) type Series = Vec<Figures>;

/// Executes the runs of setups and keeps their results, so that no run is executed twice.
pub(super) struct Lab<'a> {
    question: &'a Question,
    workloads: Workloads,
    threads: NonZeroUsize,
    progress: &'a Progress,
    known: BTreeMap<(Setup, usize), Figures>,
    /// The number of executed runs, without the characterisation of the drive.
    pub executed: u64,
}

impl<'a> Lab<'a> {
    /// Creates a lab without results. `workloads` contains the trace, which has already been read.
    pub(super) fn new(
        question: &'a Question,
        workloads: Workloads,
        threads: NonZeroUsize,
        progress: &'a Progress,
    ) -> Lab<'a> {
        Lab { question, workloads: workloads.wet(), threads, progress, known: BTreeMap::new(), executed: 0 }
    }

    /// Returns the question to answer.
    pub(super) fn question(&self) -> &'a Question {
        self.question
    }

    /// Characterises the drive and returns the result row of the characterisation.
    pub(super) fn profile(&mut self) -> Result<Row, StackError> {
        let run = self.question.profile();
        run.check()?;
        let rows = self.execute(vec![run])?;
        // Restarts the progress without the characterisation. It has many more requests than the other runs
        // and takes much less time, so it would distort the estimate of the remaining time.
        self.progress.restart();
        rows.into_iter().next().ok_or_else(|| StackError::run("the drive was not measured"))
    }

    /// Builds the run of a setup on the first part without executing it. The built run tells which policies
    /// the value `auto` stands for on this drive. Returns `None` for an invalid setup.
    pub(super) fn made(&mut self, setup: &Setup) -> Result<Option<Run>, StackError> {
        match self.question.values(setup, 0) {
            Some((values, _)) => possible(question::run(&values, &mut self.workloads)),
            None => Ok(None),
        }
    }

    /// Returns the results of each setup on these parts, and executes the runs that are missing. An invalid
    /// setup gets `None`.
    pub(super) fn figures(
        &mut self,
        setups: &[Setup],
        parts: Range<usize>,
    ) -> Result<Vec<Option<Series>>, StackError> {
        let (mut places, mut runs) = (Vec::new(), Vec::new());
        let mut impossible = vec![false; setups.len()];
        // Executes all setups on one part before the next part. A gradual change of a real drive then affects
        // all setups equally.
        for part in parts.clone() {
            for (at, setup) in setups.iter().enumerate() {
                let place = (setup.clone(), part);
                if impossible[at] || self.known.contains_key(&place) || places.contains(&place) {
                    continue;
                }
                let made = match self.question.values(setup, part) {
                    Some((values, _)) => possible(question::run(&values, &mut self.workloads))?,
                    None => None,
                };
                match made {
                    Some(run) => {
                        places.push(place);
                        runs.push(run);
                    }
                    None => impossible[at] = true,
                }
            }
        }
        self.executed += runs.len() as u64;
        let rows = self.execute(runs)?;
        for (place, row) in places.into_iter().zip(rows) {
            let figures = self.read(&place, row)?;
            self.known.insert(place, figures);
        }
        let series = |setup: &Setup| -> Option<Series> {
            parts.clone().map(|part| self.known.get(&(setup.clone(), part)).cloned()).collect()
        };
        Ok(setups.iter().map(series).collect())
    }

    /// Returns the results of one setup that is known to be valid.
    pub(super) fn of(&mut self, setup: &Setup, parts: Range<usize>) -> Result<Series, StackError> {
        let series = self.figures(std::slice::from_ref(setup), parts)?.pop().flatten();
        series.ok_or_else(|| StackError::run("the figures of a setup that was run before are missing"))
    }

    /// Returns the largest relative difference between two executions of the plain setup; 0 on a simulated
    /// drive.
    pub(super) fn noise(&mut self) -> Result<f64, StackError> {
        if !self.question.is_real {
            return Ok(0.0);
        }
        let parts = self.question.evidence.choosing();
        let first = self.of(&Setup::new(), parts.clone())?;
        self.known.clear();
        let again = self.of(&Setup::new(), parts)?;
        let change = Change::between(&first, &again);
        let gain = change.gain(self.question.goal);
        Ok(gain.least.abs().max(gain.most.abs()))
    }

    fn execute(&self, runs: Vec<Run>) -> Result<Vec<Row>, StackError> {
        let [own, in_all] = [runs.iter().map(Run::ops).sum::<u64>(), self.question.runs()];
        let each = self.question.evidence.part(self.question.page_bytes, 0).map_or(0, |part| part.ops);
        let stage = Stage { ops: own.max(each.saturating_mul(in_all)), in_all, runs };
        let rows = runner::execute_all(&stage, self.threads, self.progress, &())?;
        Ok(rows.into_iter().flatten().collect())
    }

    fn read(&self, (setup, part): &(Setup, usize), row: Row) -> Result<Figures, StackError> {
        let evidence = &self.question.evidence;
        let ops = |page_bytes: u32| evidence.part(page_bytes, *part).map_or(1.0, |part| part.ops as f64);
        let number = |column: Column| {
            row.number(column)
                .ok_or_else(|| StackError::run(format!("a run took no time: it has no {column}")))
        };
        let same_work = ops(self.question.page_bytes) / ops(self.question.page_of(setup));
        Ok(Figures {
            throughput: number(Column::ThroughputOpsS)? * same_work,
            p99: number(Column::LatencyP99Ns)?,
            row,
        })
    }
}

/// Turns the error of a refused run into `None`. Returns other errors unchanged.
fn possible(run: Result<Run, StackError>) -> Result<Option<Run>, StackError> {
    match run {
        Ok(run) => Ok(Some(run)),
        Err(StackError::Request(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The runs that are executed in one step of an answer. Progress is shown relative to all runs of the answer.
pub(crate) struct Stage {
    pub(crate) runs: Vec<Run>,
    /// The number of runs of the answer.
    pub(crate) in_all: u64,
    /// The number of requests of all runs of the answer, as far as it is known.
    pub(crate) ops: u64,
}

impl Runs for Stage {
    fn count(&self) -> usize {
        self.runs.len()
    }

    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError> {
        Ok(Cow::Borrowed(&self.runs[at]))
    }

    fn in_all(&self) -> u64 {
        self.in_all
    }

    fn ops(&self) -> u64 {
        self.ops
    }

    fn is_real(&self) -> bool {
        self.runs.iter().any(Run::is_real)
    }
}

/// The mean and the range of a relative change over several parts: 0.1 is a rise by 10 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    /// The mean of the changes.
    pub mean: f64,
    /// The smallest of the changes.
    pub least: f64,
    /// The largest of the changes.
    pub most: f64,
}

impl Spread {
    fn of(changes: impl Iterator<Item = f64> + Clone) -> Spread {
        let count = changes.clone().count().max(1) as f64;
        Spread {
            mean: changes.clone().sum::<f64>() / count,
            least: changes.clone().fold(f64::INFINITY, f64::min),
            most: changes.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    fn reversed(self) -> Spread {
        Spread { mean: -self.mean, least: -self.most, most: -self.least }
    }
}

/// The relative changes from one setup to another over the same parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Change {
    /// The change of the throughput.
    pub throughput: Spread,
    /// The change of the 99th percentile of response times. `None` if the page sizes differ, because the
    /// requests of the two setups then differ in size.
    pub p99: Option<Spread>,
}

impl Change {
    /// Returns the change from the results `old` to the results `new`, which are those of the same parts.
    pub(super) fn between(old: &[Figures], new: &[Figures]) -> Change {
        let pairs = || old.iter().zip(new);
        let is_alike =
            pairs().all(|(old, new)| old.row.get(Column::PageBytes) == new.row.get(Column::PageBytes));
        Change {
            throughput: Spread::of(pairs().map(|(old, new)| new.throughput / old.throughput - 1.0)),
            p99: is_alike.then(|| Spread::of(pairs().map(|(old, new)| new.p99 / old.p99 - 1.0))),
        }
    }

    /// Returns the improvement for this objective: a rise of the throughput, or a fall of the 99th
    /// percentile. It is 0 if the percentiles cannot be compared.
    pub(super) fn gain(&self, goal: Goal) -> Spread {
        match goal {
            Goal::Throughput => self.throughput,
            Goal::P99 => self.p99.map(Spread::reversed).unwrap_or_default(),
        }
    }

    /// Whether the objective improves on every part, and its mean improvement is at least `noise`.
    pub(super) fn is_gain(&self, goal: Goal, noise: f64) -> bool {
        let gain = self.gain(goal);
        gain.least > 0.0 && gain.mean >= noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(figures: &[(f64, f64)]) -> Series {
        figures
            .iter()
            .map(|(throughput, p99)| Figures { throughput: *throughput, p99: *p99, row: Row::default() })
            .collect()
    }

    #[test]
    fn a_gain_is_on_every_part_and_above_the_noise() {
        let plain = series(&[(100.0, 50.0), (200.0, 50.0)]);
        let change = |new: &[(f64, f64)]| Change::between(&plain, &series(new));
        let better = change(&[(110.0, 50.0), (240.0, 100.0)]);
        assert!((better.throughput.mean - 0.15).abs() < 1e-12, "each part counts alike: {better:?}");
        assert!((better.gain(Goal::P99).least + 1.0).abs() < 1e-12, "a percentile that doubles is no gain");
        assert!(better.is_gain(Goal::Throughput, 0.15 - 1e-9));
        assert!(!better.is_gain(Goal::Throughput, 0.16), "less than the noise");
        assert!(
            !change(&[(150.0, 50.0), (199.0, 50.0)]).is_gain(Goal::Throughput, 0.01),
            "worse on one part"
        );
        assert!(change(&[(1.0, 40.0), (1.0, 49.0)]).is_gain(Goal::P99, 0.1));
    }
}
