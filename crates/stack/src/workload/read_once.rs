//! Keeps the workloads of a grid, so that the grid reads each trace file only once.

use super::Workload;
use super::form::TraceForm;
use crate::StackError;
use std::collections::BTreeMap;

/// The workloads of a grid, by the texts that name them.
#[derive(Default)]
pub struct Workloads {
    known: BTreeMap<String, Workload>,
    is_dry: bool,
}

impl Workloads {
    /// Creates a collection for estimates: no drive is measured, and assumed numbers replace measurements.
    pub fn dry() -> Workloads {
        Workloads { is_dry: true, ..Workloads::default() }
    }

    /// Whether no drive may be measured.
    pub(crate) fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// Returns the same workloads for runs that are executed.
    pub fn wet(self) -> Workloads {
        Workloads { is_dry: false, ..self }
    }

    /// Returns the workload that `text` names. Parses it on the first call.
    pub(crate) fn get(&mut self, text: &str, form: Option<TraceForm>) -> Result<Workload, StackError> {
        // The key contains the form, because the same file in another form is another workload.
        let key = format!("{text} {form:?}");
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let workload = Workload::parse(text, form)?;
        self.known.insert(key, workload.clone());
        Ok(workload)
    }
}
