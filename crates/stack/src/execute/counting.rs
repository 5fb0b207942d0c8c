//! Executes a run of `pool` without a drive. It counts misses and writes, and has no time.

use super::columns::set_cost;
use super::pool::{Measured, PoolRun, check_counters};
use crate::progress::step;
use crate::run::{Load, Requested, passes_over};
use crate::workload::Altered;
use crate::{Progress, Row, Run, StackError};
use fulgurite_base::PageId;
use fulgurite_pool::{MissCounter, NextUses};
use fulgurite_workload::{Op, Request};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of requests that are passed to a [`MissCounter`] at once.
const SLICE: usize = 4096;

impl PoolRun<'_> {
    /// Executes the run and returns its result row.
    pub(super) fn count(&self, progress: &Progress) -> Result<Row, StackError> {
        let PoolRun { stage, .. } = self;
        let start = Instant::now();
        let mut replacement = stage.policies.replacement.start(stage.frames)?;
        if replacement.needs_future() {
            replacement.foresee(&self.future()?);
        }
        let mut counter = MissCounter::new(stage.frames, replacement, stage.write_back.batches.clone());
        let served = self.serve(progress, |slice| {
            counter.request_all(slice);
            Ok(())
        })?;
        let counters = counter.counters();
        check_counters(&counters, served.ops)?;
        let measured = Measured::of(served.altered.clone());
        let mut row = self.known(&served, |known| known.row(&measured, counters))?;
        set_cost(&mut row, start, Duration::ZERO, served.ops);
        Ok(row)
    }

    /// Returns the next use of the page of each request. The run serves exactly these requests again.
    pub(super) fn future(&self) -> Result<Arc<NextUses>, StackError> {
        let _step = step("looking ahead", 0);
        let mut future = NextUses::default();
        self.serve(&Progress::default(), |slice| {
            future.add(slice.iter().map(|(page, _)| *page));
            Ok(())
        })?;
        Ok(Arc::new(future))
    }

    /// Passes all requests of the run to `each`, in slices.
    pub(super) fn serve(
        &self,
        progress: &Progress,
        mut each: impl FnMut(&[(PageId, bool)]) -> Result<(), StackError>,
    ) -> Result<Served, StackError> {
        let PoolRun { run, requested, .. } = self;
        let mut requests = run.bind()?.requests(run.seed)?;
        let skipped = requests.skip_pages(requested.skip);
        // Both buffers are reused, so that the loop does not allocate.
        let mut taken: Vec<Request> = Vec::with_capacity(SLICE);
        let mut slice: Vec<(PageId, bool)> = Vec::with_capacity(SLICE);
        let mut ops = 0;
        while ops < requested.ops {
            taken.clear();
            requests.append_pages(&mut taken, (requested.ops - ops).min(SLICE as u64) as usize);
            if taken.is_empty() {
                break;
            }
            ops += taken.len() as u64;
            slice.clear();
            slice.extend(taken.iter().map(|request| (PageId(request.page), request.op == Op::Write)));
            each(&slice)?;
            progress.add(slice.len() as u64);
        }
        if let Some(failure) = requests.failure() {
            return Err(StackError::request(failure));
        }
        if ops == 0 && requested.skip > 0 {
            return Err(passes_over(requested.skip, skipped));
        }
        Ok(Served { ops, altered: requests.altered() })
    }

    /// Calls `rows` with the same run for a known number of requests. The length of a trace that is read during
    /// the run was not known before, and the rows and the run id are those of a run that asks for this number.
    pub(super) fn known<T>(&self, served: &Served, rows: impl FnOnce(&PoolRun<'_>) -> T) -> T {
        let known = Requested { ops: served.ops, ..(*self.requested).clone() };
        let run = Run { load: Load::Requests(known.clone()), ..(*self.run).clone() };
        rows(&PoolRun { run: &run, requested: &known, stage: self.stage })
    }
}

/// The requests that were served.
pub(super) struct Served {
    /// Their number.
    pub ops: u64,
    /// The differences between the trace and its file; `None` for a generator.
    pub altered: Option<Altered>,
}
