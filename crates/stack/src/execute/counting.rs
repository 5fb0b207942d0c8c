//! Executes a run of `pool` without a drive. It counts misses and writes, and has no time.

use super::columns::set_cost;
use super::pool::{Measured, PoolRun, check_counters};
use crate::run::{Load, Requested, passes_over};
use crate::{Progress, Row, Run, StackError};
use fulgurite_base::PageId;
use fulgurite_pool::MissCounter;
use fulgurite_workload::{Op, Request};
use std::time::{Duration, Instant};

/// The number of requests that are passed to a [`MissCounter`] at once.
const SLICE: usize = 4096;

impl PoolRun<'_> {
    /// Executes the run and returns its result row.
    pub(super) fn count(&self, progress: &Progress) -> Result<Row, StackError> {
        let PoolRun { run, requested, stage } = self;
        let mut requests = run.bind()?.requests(run.seed)?;
        let skipped = requests.skip_pages(requested.skip);
        let start = Instant::now();
        let replacement = stage.policies.replacement.start(stage.frames)?;
        let mut counter = MissCounter::new(stage.frames, replacement, stage.write_back.batches.clone());
        // Both buffers are reused, so that the loop does not allocate.
        let mut taken: Vec<Request> = Vec::with_capacity(SLICE);
        let mut slice: Vec<(PageId, bool)> = Vec::with_capacity(SLICE);
        let mut left = requested.ops;
        while left > 0 {
            taken.clear();
            requests.append_pages(&mut taken, left.min(SLICE as u64) as usize);
            if taken.is_empty() {
                break;
            }
            left -= taken.len() as u64;
            slice.clear();
            slice.extend(taken.iter().map(|request| (PageId(request.page), request.op == Op::Write)));
            counter.request_all(&slice);
            progress.add(slice.len() as u64);
        }
        if let Some(failure) = requests.failure() {
            return Err(StackError::request(failure));
        }
        let counters = counter.counters();
        // Count the requests here: the length of a trace that is read during the run was not known before.
        let ops = counters.hits + counters.misses;
        if ops == 0 && requested.skip > 0 {
            return Err(passes_over(requested.skip, skipped));
        }
        check_counters(&counters, ops)?;
        // The row and the run id are those of a run that asks for exactly this number of requests.
        let known = Requested { ops, ..(*requested).clone() };
        let run = Run { load: Load::Requests(known.clone()), ..(*run).clone() };
        let measured = Measured::of(requests.altered());
        let mut row = PoolRun { run: &run, requested: &known, stage }.row(&measured, counters)?;
        set_cost(&mut row, start, Duration::ZERO, ops);
        Ok(row)
    }
}
