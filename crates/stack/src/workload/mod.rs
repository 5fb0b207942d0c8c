//! Parses workloads from text. A workload is a generator with options, the PostgreSQL trace that comes with
//! Fulgurite, or the path of a trace file.
//!
//! A [`View`] is the meaning of a workload's addresses: pages of a pool, of a logical space that is only
//! written, or of a drive. A [`Workload`] with a view becomes a `Bound` workload. A bound workload gives the
//! `Requests` of a run.

mod altered;
mod requests;
mod form;
mod files;
mod spool;
mod trace_file;
mod read_once;
mod bound;

pub(crate) use altered::Altered;
pub use bound::View;
pub(crate) use bound::{AddressMap, Bound};
pub use files::files_of;
pub use form::TraceForm;
pub use read_once::Workloads;
pub(crate) use requests::Requests;
pub use spool::open_trace;
pub(crate) use trace_file::TraceFile;

use crate::StackError;
use fulgurite_base::{Spec, SpecError};
use fulgurite_files::output::is_standard;
use fulgurite_workload::GeneratorConfig;
use std::path::Path;
use std::sync::Arc;

/// The name of the trace that comes with Fulgurite: PostgreSQL under pgbench, recorded by
/// `traces/record-postgres.sh`.
pub(crate) const OWN_TRACE: &str = "postgres-pgbench";

/// The description of this trace in lists.
pub(crate) const OWN_TRACE_ABOUT: &str =
    "a real trace: the page I/O of PostgreSQL under pgbench, 195,795 requests (32% writes)";

/// A workload: a generator or a trace, with a label.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The label of the workload in tables: a generator as the user typed it, or the name of the trace file.
    pub label: String,
    /// The source of the workload's requests.
    pub origin: Origin,
}

/// A source of requests.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A generator of endless requests.
    Generator(GeneratorConfig),
    /// A trace of recorded requests.
    Trace(Arc<TraceFile>),
}

/// Whether the user probably meant the path of a file. No workload has these characters in its name.
fn is_like_a_path(name: &str) -> bool {
    name.contains(['.', '/'])
}

impl Workload {
    /// Parses the workload that `text` names; `-` is a trace from standard input. A trace is read when it is
    /// bound. It is read in `form`, or in the detected format if that is `None`.
    pub fn parse(text: &str, form: Option<TraceForm>) -> Result<Workload, StackError> {
        let path = Path::new(text);
        let name = text.split(':').next().unwrap_or(text);
        let form = form.unwrap_or_default();
        let files = files_of(text, form.join)?;
        let is_file = is_standard(path) || files.iter().all(|file| file.exists());
        if GeneratorConfig::registry().get(name).is_ok() {
            match Spec::parse(text) {
                Ok(spec) => {
                    let config = GeneratorConfig::from_spec(spec)?;
                    return Ok(Workload { label: text.to_owned(), origin: Origin::Generator(config) });
                }
                // If there is such a file, take `text` as a path: the path of a trace need not be a valid
                // name with options.
                Err(error) if !is_file => return Err(error.into()),
                Err(_) => {}
            }
        }
        let trace = if text == OWN_TRACE {
            TraceFile::own()
        } else if is_file {
            TraceFile::at(files, form)
        } else if name == OWN_TRACE {
            return Err(StackError::request(format!(
                "{OWN_TRACE} has no options; accepted: {OWN_TRACE} alone"
            )));
        } else if is_like_a_path(name) {
            return Err(StackError::request(format!(
                "there is no file {text} and no workload of that name; accepted: the path of a trace, or a workload \
                    (`fulgurite list workloads` shows all)"
            )));
        } else {
            let names: Vec<&str> = GeneratorConfig::registry().names().chain([OWN_TRACE]).collect();
            let error = SpecError::unknown("workload", name, &names);
            return Err(StackError::request(format!("{error}; there is no trace file of that name either")));
        };
        let label =
            path.file_name().map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Workload { label, origin: Origin::Trace(Arc::new(trace)) })
    }

    /// Whether the workload is a trace from a file, so that the user may give its format.
    pub fn is_file(&self) -> bool {
        self.trace().is_some() && self.label != OWN_TRACE
    }

    /// Returns the trace; `None` for a generator.
    pub fn trace(&self) -> Option<&Arc<TraceFile>> {
        match &self.origin {
            Origin::Generator(_) => None,
            Origin::Trace(trace) => Some(trace),
        }
    }

    /// Returns the configuration of the generator; `None` for a trace.
    pub fn generator(&self) -> Option<&GeneratorConfig> {
        match &self.origin {
            Origin::Generator(config) => Some(config),
            Origin::Trace(_) => None,
        }
    }

    /// Whether all pages are equally likely at each request, so that closed forms apply.
    pub fn is_uniform_random(&self) -> bool {
        self.generator().is_some_and(GeneratorConfig::is_uniform_random)
    }

    /// Whether the requests have arrival times.
    pub fn is_timed(&self) -> Result<bool, StackError> {
        match &self.origin {
            Origin::Generator(config) => Ok(config.is_timed()),
            Origin::Trace(trace) => trace.is_timed(),
        }
    }
}
