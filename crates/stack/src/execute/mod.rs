//! Executing a run into rows. Each shape of a run has a file or folder here.

mod bench;
mod counting;
mod done;
mod gc;
mod latency;
mod pool;
pub(crate) mod profile;
pub(crate) mod replay;
mod stamps;

use crate::device::Observed;
use crate::run::{ChosenWriteBack, Load, PROFILE_OPS, Policies, Requested, Rows, STORES_OWN};
use crate::{Column, Command, Progress, Row, Run, StackError, memory};
use fulgurite_pool::WriteBack;
use std::time::{Duration, Instant};

impl Run {
    /// Executes the run. A run that breaks a check gives an error, never a row.
    pub fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StackError> {
        match &self.load {
            Load::Characterisation { page_bytes } => {
                let profile = profile::profile(&self.stack, *page_bytes, self.seed)?;
                progress.add(PROFILE_OPS);
                Ok(match self.measure.rows {
                    Rows::Curve => profile::curve(self, &profile),
                    _ => vec![profile::row(self, &profile)],
                })
            }
            Load::Benchmark(asked) => match &self.stack.engine {
                Some(stage) => bench::BenchRun { run: self, asked, stage }.execute(progress),
                None => Err(StackError::run("a benchmark without an engine")),
            },
            Load::Requests(requested) => self.execute_requests(requested, progress),
        }
    }

    fn execute_requests(&self, requested: &Requested, progress: &Progress) -> Result<Vec<Row>, StackError> {
        match (&self.stack.pool, self.translation()) {
            (Some(stage), _) => {
                let run = pool::PoolRun { run: self, requested, stage };
                if self.stack.device.is_none() {
                    return Ok(vec![run.count(progress)?]);
                }
                let request_pages = self.stack.device_pages_per(stage.page_bytes)?;
                let execution = pool::Execution { run, progress };
                Ok(vec![self.stack.with_device(self.seed, request_pages, execution)??])
            }
            (None, Some(translation)) => gc::GcRun { run: self, requested, translation }.execute(progress),
            (None, None) => {
                self.stack.with_device(self.seed, 1, replay::Execution { run: self, requested, progress })?
            }
        }
    }

    /// Executes a run with a pool on `device`, in place of its own.
    pub fn execute_on(&self, device: impl Observed + 'static) -> Result<Row, StackError> {
        let (Some(requested), Some(stage)) = (self.requested(), &self.stack.pool) else {
            return Err(StackError::request("only a pool run can be given another device"));
        };
        pool::PoolRun { run: self, requested, stage }.run_on(device, &Progress::default())
    }

    /// The columns that say what was run, and that every shape has.
    fn identity(&self) -> Result<Row, StackError> {
        let mut row = Row::default();
        row.set(Column::RunId, self.id()?);
        if let Some(requested) = self.requested() {
            row.set(Column::Workload, requested.workload.label.as_str());
        }
        if self.command() != Command::Gc {
            row.set(Column::Device, self.stack.device.label.as_str());
        }
        Ok(row)
    }
}

/// Sets the columns that say which policies a pool has.
fn set_policies(row: &mut Row, policies: &Policies, write_back: Option<&ChosenWriteBack>) {
    row.set(Column::Replacement, policies.replacement.to_string());
    row.set(Column::Prefetch, policies.prefetch.name());
    let Some(ChosenWriteBack { policy, batches }) = write_back else {
        // The store derives the numbers from its memory and its protection, and keeps them to itself.
        row.set(Column::WriteBack, STORES_OWN);
        return;
    };
    row.set(Column::WriteBack, policy.to_string());
    let WriteBack { n_e, buffers, ahead, .. } = *batches;
    row.set(Column::NW, batches.batch_pages());
    if !policies.prefetch.is_none() {
        row.set(Column::NE, n_e);
    }
    row.set_some(Column::Buffers, Some(buffers).filter(|buffers| *buffers > 0));
    row.set_some(Column::Ahead, Some(ahead).filter(|ahead| *ahead > 0));
}

/// Sets the three columns about the simulator's own cost. They are the only ones that differ from one execution to
/// the next. `read_for` is what it took to read the trace, which runs of one grid share.
fn set_cost(row: &mut Row, start: Instant, read_for: Duration, ops: u64) {
    let seconds = (start.elapsed() + read_for).as_secs_f64();
    row.set(Column::SimWallS, seconds);
    row.set(Column::SimOpsS, ops as f64 / seconds);
    row.set_some(Column::PeakRssBytes, memory::peak_rss());
}
