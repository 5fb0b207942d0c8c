//! Trace files that were read, so that a grid reads each of them once.

use super::Workload;
use crate::StackError;
use fulgurite_workload::trace::{Format, TraceOptions};
use std::collections::BTreeMap;

/// The workloads of a grid by their texts.
#[derive(Default)]
pub struct Workloads {
    known: BTreeMap<String, Workload>,
    is_dry: bool,
}

impl Workloads {
    /// For estimates: no drive is measured, and usual numbers replace measurements.
    pub fn dry() -> Workloads {
        Workloads { is_dry: true, ..Workloads::default() }
    }

    /// Whether no drive may be measured.
    pub(crate) fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// The same workloads, for runs that are executed.
    pub fn wet(self) -> Workloads {
        Workloads { is_dry: false, ..self }
    }

    /// The workload that `text` names.
    pub(crate) fn get(
        &mut self,
        text: &str,
        format: Option<(Format, TraceOptions)>,
    ) -> Result<Workload, StackError> {
        // The same file in another format is another workload.
        let key = format!("{text} {format:?}");
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let workload = Workload::parse(text, format)?;
        self.known.insert(key, workload.clone());
        Ok(workload)
    }
}
