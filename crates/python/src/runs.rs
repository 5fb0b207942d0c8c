//! Identifies, estimates and executes runs that Python describes.

use crate::describe::command;
use crate::errors::{class_of, of_stack};
use crate::policies::{Maker, apply};
use crate::table::Table;
use crate::watched::watched;
use fulgurite_stack::run_list::{RunList, Source};
use fulgurite_stack::runner;
use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Command, Progress, Row, Run, StackError};
use fulgurite_study::table::Table as Rows;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// A run as described by Python: the command, the settings as text, and the policies written in Python.
pub(crate) type Asked = (String, BTreeMap<String, String>, Vec<Py<Maker>>);

/// A run to make, with its command, its settings and its policies.
struct One {
    command: Command,
    settings: BTreeMap<String, String>,
    makers: Vec<Py<Maker>>,
}

impl One {
    fn make(&self, workloads: &mut Workloads) -> Result<Run, StackError> {
        let settings = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut run = settings::run(self.command, &settings, workloads)?;
        for maker in &self.makers {
            apply(maker.get(), &mut run)?;
        }
        if !self.makers.is_empty() {
            run.check()?;
        }
        Ok(run)
    }
}

fn read(asked: Vec<Asked>) -> PyResult<Vec<One>> {
    let one = |(name, settings, makers): Asked| Ok(One { command: command(&name)?, settings, makers });
    asked.into_iter().map(one).collect()
}

/// The runs of one call from Python.
struct Batch(Vec<One>);

impl Source for Batch {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn make(&self, at: usize, workloads: &mut Workloads) -> Result<Run, StackError> {
        self.0[at].make(workloads).map_err(|error| numbered(error, at, self.0.len()))
    }
}

/// Adds the number of the run to an error, if there are several runs.
fn numbered(error: StackError, at: usize, of: usize) -> StackError {
    match error {
        StackError::Request(sentence) if of > 1 => {
            StackError::Request(format!("run {} of {of}: {sentence}", at + 1))
        }
        error => error,
    }
}

fn threads_of(asked: Option<usize>) -> Result<NonZeroUsize, StackError> {
    match asked {
        None => Ok(runner::all_cores()),
        Some(threads) => NonZeroUsize::new(threads)
            .ok_or_else(|| StackError::request("threads=0 runs nothing; accepted: a number from 1 on")),
    }
}

/// A failed run, as the tuple of its number, the name of the exception's class, and the message.
type Failure = (usize, &'static str, String);

/// The results of runs: the result rows, the number of the run for each row, and the failed runs.
type Executed = (Table, Vec<usize>, Vec<Failure>);

/// Executes the runs, `threads` of them in parallel. With `keeps_going` a failed run does not stop the others
/// and is returned as a failure.
#[pyfunction]
#[pyo3(signature = (runs, threads=None, keeps_going=false, listener=None))]
fn execute(
    py: Python<'_>,
    runs: Vec<Asked>,
    threads: Option<usize>,
    keeps_going: bool,
    listener: Option<&Bound<'_, PyAny>>,
) -> PyResult<Executed> {
    let (runs, threads) = (read(runs)?, threads_of(threads).map_err(of_stack)?);
    let makers: Vec<Py<Maker>> =
        runs.iter().flat_map(|run| run.makers.iter().map(|maker| maker.clone_ref(py))).collect();
    let outcome = watched(py, listener, move |progress| execute_all(runs, threads, keeps_going, progress));
    // Raises the exception of a policy in Python, because it says more than the failure of the run. With
    // `keeps_going` such a failure is returned like any other.
    let raised = makers.iter().find_map(|maker| maker.get().take_raised());
    let (rows, of_run, failures) = outcome.map_err(|error| match raised {
        Some(raised) if !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => raised,
        _ => error,
    })?;
    Ok((Table::new(rows), of_run, failures))
}

fn execute_all(
    runs: Vec<One>,
    threads: NonZeroUsize,
    keeps_going: bool,
    progress: &Progress,
) -> Result<(Rows, Vec<usize>, Vec<Failure>), StackError> {
    let (outcomes, batch) = match keeps_going {
        false => {
            let (mut batch, outlook) = RunList::new(Batch(runs), threads)?;
            outlook.check()?;
            batch.prepare()?;
            let rows = runner::execute_all(&batch, threads, progress, &())?;
            (rows.into_iter().map(Ok).collect(), batch)
        }
        true => {
            // Builds each run only when it is executed. A run that cannot be built then fails alone, like one
            // that fails during execution.
            let batch = RunList::unseen(Batch(runs));
            (runner::execute_whatever_fails(&batch, threads, progress), batch)
        }
    };
    let (mut rows, mut of_run, mut failures) = (Rows::default(), Vec::new(), Vec::new());
    for (at, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(mut of_this) => {
                for maker in &batch.source().0[at].makers {
                    of_this.iter_mut().for_each(|row| use_name(maker.get(), row));
                }
                of_run.extend(of_this.iter().map(|_| at));
                rows.rows.extend(of_this);
            }
            Err(error) => {
                let (makers, sentence) = (&batch.source().0[at].makers, error.to_string());
                // Names the class of the exception that a single run with this policy would have raised.
                let is_refused = makers.iter().any(|maker| maker.get().take_refused(&sentence));
                failures.push((at, if is_refused { "PolicyError" } else { class_of(&error) }, sentence));
            }
        }
    }
    Ok((rows, of_run, failures))
}

/// Replaces the text of a policy in a result row by the policy's name.
fn use_name(maker: &Maker, row: &mut Row) {
    let (text, name) = maker.text_and_name();
    for column in [Column::Replacement, Column::Placement, Column::Victim] {
        if row.get(column).is_some_and(|cell| cell.exact() == text) {
            row.set(column, name);
        }
    }
}

/// Returns the identity of a run: its id, and the canonical text of which the id is a hash. Reads the
/// workload, and characterises the drive if the settings of a policy depend on the drive.
#[pyfunction]
fn identity(py: Python<'_>, run: Asked) -> PyResult<(String, String)> {
    let one = read(vec![run])?.pop();
    watched(py, None, move |_| {
        let run = one.ok_or_else(|| StackError::run("no run"))?.make(&mut Workloads::default())?;
        Ok((run.id()?, run.canonical()?))
    })
}

/// Checks runs without executing them. Raises an exception with the command's message if a run is invalid.
#[pyfunction]
fn check(py: Python<'_>, runs: Vec<Asked>) -> PyResult<()> {
    let runs = read(runs)?;
    watched(py, None, move |_| RunList::new(Batch(runs), NonZeroUsize::MIN).map(drop))
}

/// Predicts the cost of runs with `threads` of them in parallel. Returns the cost as a row and as a sentence.
/// No run is executed.
#[pyfunction]
#[pyo3(signature = (runs, threads=None))]
fn outlook(py: Python<'_>, runs: Vec<Asked>, threads: Option<usize>) -> PyResult<(Table, String)> {
    let (runs, threads) = (read(runs)?, threads_of(threads).map_err(of_stack)?);
    let outlook = watched(py, None, move |_| Ok(RunList::new(Batch(runs), threads)?.1))?;
    Ok((Table::new(Rows { rows: vec![outlook.row()] }), outlook.sentence()))
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(execute, module)?)?;
    module.add_function(wrap_pyfunction!(identity, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(outlook, module)?)
}
