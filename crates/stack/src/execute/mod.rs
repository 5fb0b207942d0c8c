//! Executes runs and returns their result rows. Each command has a file or folder here.

pub(crate) mod columns;
pub(crate) mod device_counts;
mod gc;
mod latency;
pub(crate) mod tally;
mod bench;
mod profile;
pub(crate) mod replay;
mod stamps;
mod pool;
mod counting;
mod curve;

use crate::run::{Load, PROFILE_OPS, Requested, Rows, Suite};
use crate::{Progress, Row, Run, StackError};

impl Run {
    /// Executes the run and returns its result rows. If a check fails, the result is an error and no row.
    pub fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StackError> {
        match &self.load {
            Load::Characterisation { page_bytes, suite: Suite::Latency(latency) } => {
                profile::latency(self, *page_bytes, latency, progress)
            }
            Load::Characterisation { page_bytes, suite: Suite::Steady(patterns) } => {
                profile::steady(self, *page_bytes, patterns, progress)
            }
            Load::Characterisation { page_bytes, suite: Suite::Concurrency } => {
                let profile = crate::profile::profile(&self.stack, *page_bytes, self.seed)?;
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
            Load::Served => Err(StackError::request(
                "serve gives a drive to other programs until it is stopped, so it is no run that ends with rows; \
                    accepted: a run of another command",
            )),
        }
    }

    fn execute_requests(&self, requested: &Requested, progress: &Progress) -> Result<Vec<Row>, StackError> {
        match (&self.stack.pool, self.translation()) {
            (Some(stage), _) => {
                let run = pool::PoolRun { run: self, requested, stage };
                if let Rows::Sizes(sizes) = self.measure.rows {
                    return run.curve(sizes, progress);
                }
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
}
