//! Exports studies to Python: the built-in ones, those in TOML files, and their reports over other tables.

use crate::errors::of_stack;
use crate::table::Table;
use crate::watched::watched;
use fulgurite_stack::StackError;
use fulgurite_stack::runner::all_cores;
use fulgurite_study::grid::Settings;
use fulgurite_study::study::{self, How, Study as Inner};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

/// A parsed study.
#[pyclass(frozen, module = "fulgurite._native")]
pub struct Study(Arc<Inner>);

/// A grid of a study, as the tuple of the name of its part, its command, and its settings with all their
/// values. The name is `None` in a study without parts.
type Grid = (Option<String>, &'static str, Settings);

/// The results of a study: the table and the finding; for each conclusion its sentence, whether it holds
/// (None if a quick run cannot tell), and the figures; and the path of the report.
type Found = (Table, String, Vec<(String, Option<bool>, String)>, PathBuf);

#[pymethods]
impl Study {
    /// Opens a built-in study or a TOML file.
    #[staticmethod]
    fn open(name: &str) -> PyResult<Study> {
        if name == "-" {
            // Refuses standard input, because it belongs to the interpreter.
            return Err(of_stack(StackError::request(
                "study - is standard input, which Python uses; accepted: a name, or a path that ends in .toml",
            )));
        }
        Inner::open(name).map(|study| Study(Arc::new(study))).map_err(of_stack)
    }

    /// Parses a study from TOML text.
    #[staticmethod]
    fn read(name: &str, source: &str) -> PyResult<Study> {
        Inner::read(name, source).map(|study| Study(Arc::new(study))).map_err(of_stack)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    #[pyo3(signature = (quick=false, seed=None))]
    fn grids(&self, quick: bool, seed: Option<&str>) -> PyResult<Vec<Grid>> {
        let how = How { out: None, quick, seed, threads: NonZeroUsize::MIN, resume: false };
        let grids = self.0.grids(&how).map_err(of_stack)?;
        let owned = |(part, command, settings): (Option<&str>, fulgurite_stack::Command, Settings)| {
            (part.map(str::to_owned), command.name(), settings)
        };
        Ok(grids.into_iter().map(owned).collect())
    }

    #[pyo3(signature = (out=None, quick=false, seed=None, threads=None, resume=false, listener=None))]
    #[allow(clippy::too_many_arguments)] // all are keyword arguments in Python
    fn run(
        &self,
        py: Python<'_>,
        out: Option<PathBuf>,
        quick: bool,
        seed: Option<String>,
        threads: Option<usize>,
        resume: bool,
        listener: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Found> {
        let threads = match threads {
            None => all_cores(),
            Some(threads) => NonZeroUsize::new(threads).ok_or_else(|| {
                of_stack(StackError::request("threads=0 runs nothing; accepted: a number from 1 on"))
            })?,
        };
        let study = Arc::clone(&self.0);
        let outcome = watched(py, listener, move |progress| {
            let how = How { out: out.as_deref(), quick, seed: seed.as_deref(), threads, resume };
            study.run(&how, progress, |_| ())
        })?;
        let verdicts = outcome.verdicts.into_iter();
        let verdicts = verdicts.map(|verdict| {
            let holds = match verdict.answer {
                fulgurite_study::report::Answer::Holds => Some(true),
                fulgurite_study::report::Answer::HoldsInDirection
                | fulgurite_study::report::Answer::Fails => Some(false),
                fulgurite_study::report::Answer::NotChecked => None,
            };
            (verdict.says, holds, verdict.figure)
        });
        Ok((Table::new(outcome.table), outcome.finding, verdicts.collect(), outcome.report))
    }

    /// Renders the study's report for `table` as HTML. `repeat` are the commands that reproduce the table.
    fn draw(&self, table: &Table, repeat: Vec<String>, quick: bool) -> PyResult<String> {
        self.0.draw(table.rows(), quick, &repeat).map_err(of_stack)
    }
}

/// Returns the names of the built-in studies with their titles.
#[pyfunction]
fn studies() -> Vec<(&'static str, String)> {
    study::names().collect()
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Study>()?;
    module.add_function(wrap_pyfunction!(studies, module)?)
}
