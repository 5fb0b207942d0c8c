//! Tells what reading a trace left out of it or changed: lines that are no requests, and times that were set
//! to that of the request before.

use crate::{Column, Row, Value, progress};
use fulgurite_workload::trace::Skipped;

/// The differences between a trace file and the requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Altered {
    /// The number of lines or records that are no requests, and the reasons.
    left_out: u64,
    why: String,
    /// The number of times that went back and were set to that of the request before.
    clamped: u64,
    /// The decisions of the reader about things that the trace does not say.
    decided: String,
}

impl Altered {
    /// Creates the differences from the counts of a reader.
    pub(super) fn of(skipped: &[Skipped], clamped: u64, decided: &str) -> Altered {
        let (left_out, why) = (Skipped::total(skipped), Skipped::reasons(skipped));
        Altered { left_out, why, clamped, decided: decided.to_owned() }
    }

    /// Sets the columns about the differences, and leaves a remark if there are any. `is_timed` says whether
    /// the run uses the times of the trace, whose name is `label`.
    pub(crate) fn set(&self, row: &mut Row, label: &str, is_timed: bool) {
        row.set(Column::Skipped, self.left_out);
        row.set(Column::TimesClamped, self.clamped);
        let mut said = Vec::new();
        if self.left_out > 0 {
            said.push(format!("leaves out {}", self.why));
        }
        if self.clamped > 0 && is_timed {
            said.push(format!(
                "sets {} times that go back to that of the request before, so requests arrive in bunches and wait \
                    for each other (--sort puts them in order)",
                Value::Integer(self.clamped).readable()
            ));
        }
        if !self.decided.is_empty() && is_timed {
            said.push(format!("takes {}", self.decided));
        }
        if !said.is_empty() {
            progress::remark(format!("{label}: reading it {}", said.join(", and ")));
        }
    }
}
