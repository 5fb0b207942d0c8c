//! Runs: what identifies them, what they need, and executing them.

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

/// A run as Python hands it over: the command, the settings as text, and policies that are written in Python.
pub type Asked = (String, BTreeMap<String, String>, Vec<Py<Maker>>);

/// A run that was asked for.
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

/// Runs that were asked for one by one.
struct Batch(Vec<One>);

impl Source for Batch {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn make(&self, at: usize, workloads: &mut Workloads) -> Result<Run, StackError> {
        self.0[at].make(workloads).map_err(|error| numbered(error, at, self.0.len()))
    }
}

/// Says which of several runs a refusal is about.
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

/// A run that has failed: its number, the class of the error, and its sentence.
type Failure = (usize, &'static str, String);

/// What came of runs: the rows, for each the number of its run, and the runs that failed.
type Executed = (Table, Vec<usize>, Vec<Failure>);

/// Executes the runs, `threads` at a time. Where `keeps_going`, a run that fails stops no other, and is told of.
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
    // What a policy in Python has raised says more than that the run failed. Where runs go on after a failure, the
    // failure is told of like any other.
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
            // A run that cannot even be made fails by itself, like one that fails on its way.
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
                // A run with this policy alone would have raised this.
                let is_refused = makers.iter().any(|maker| maker.get().take_refused(&sentence));
                failures.push((at, if is_refused { "PolicyError" } else { class_of(&error) }, sentence));
            }
        }
    }
    Ok((rows, of_run, failures))
}

/// Calls a policy in Python by its name, where a row has the text that its run id has.
fn use_name(maker: &Maker, row: &mut Row) {
    let (text, name) = maker.text_and_name();
    for column in [Column::Replacement, Column::Placement, Column::Victim] {
        if row.get(column).is_some_and(|cell| cell.exact() == text) {
            row.set(column, name);
        }
    }
}

/// What identifies a run: its id, and the canonical text that the id is a hash of. Reads the workload, and measures the
/// drive where a policy's numbers follow from it.
#[pyfunction]
fn identity(py: Python<'_>, run: Asked) -> PyResult<(String, String)> {
    let one = read(vec![run])?.pop();
    watched(py, None, move |_| {
        let run = one.ok_or_else(|| StackError::run("no run"))?.make(&mut Workloads::default())?;
        Ok((run.id()?, run.canonical()?))
    })
}

/// Refuses a run that cannot be, with the sentence of the command. Measures nothing.
#[pyfunction]
fn check(py: Python<'_>, runs: Vec<Asked>) -> PyResult<()> {
    let runs = read(runs)?;
    watched(py, None, move |_| RunList::new(Batch(runs), NonZeroUsize::MIN).map(drop))
}

/// What runs will need, `threads` at a time, as one row and as a sentence. Measures nothing.
#[pyfunction]
#[pyo3(signature = (runs, threads=None))]
fn outlook(py: Python<'_>, runs: Vec<Asked>, threads: Option<usize>) -> PyResult<(Table, String)> {
    let (runs, threads) = (read(runs)?, threads_of(threads).map_err(of_stack)?);
    let outlook = watched(py, None, move |_| Ok(RunList::new(Batch(runs), threads)?.1))?;
    Ok((Table::new(Rows { rows: vec![outlook.row()] }), outlook.sentence()))
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(execute, module)?)?;
    module.add_function(wrap_pyfunction!(identity, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(outlook, module)?)
}
