//! Defines the form in which a trace is read.

use fulgurite_workload::trace::{Format, Join, TraceOptions};

/// The form of a trace.
#[derive(Clone, Debug, Default)]
pub struct TraceForm {
    /// The format; `None` if the name and the content of the file tell it.
    pub format: Option<Format>,
    /// The options of the reader.
    pub options: TraceOptions,
    /// How several files are one trace; `None` if that was not given.
    pub join: Option<Join>,
}
