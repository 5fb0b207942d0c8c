//! Runs in parallel over the cores. Rows come back in the order of the runs, so the number of
//! threads changes nothing but the time.

use crate::Row;
use crate::StackError;
use crate::{Progress, Run};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a run gives: its rows.
type Outcome = Result<Vec<Row>, StackError>;

/// As many threads as the machine has cores.
pub fn all_cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Executes every run, `threads` at a time, and reports to `progress`: the rows of each. The first
/// failure, in the order of the runs, is the result.
pub fn execute_each(
    runs: &[Run],
    threads: NonZeroUsize,
    progress: &Progress,
) -> Result<Vec<Vec<Row>>, StackError> {
    // Runs on a real drive would disturb each other, and so would anything else that computes.
    let threads = if runs.iter().any(Run::is_real) { 1 } else { threads.get() };
    let next = AtomicUsize::new(0);
    progress.expect(runs.iter().map(Run::ops).sum());
    let results: Vec<Mutex<Option<Outcome>>> = runs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(runs.len()) {
            scope.spawn(|| {
                while let Some((at, run)) = take(&next, runs) {
                    let result = guarded(run, progress);
                    let failed = result.is_err();
                    *results[at].lock().expect("no thread panics while it holds this") = Some(result);
                    if failed {
                        // After a failure no further run begins; those under way come to their end.
                        next.store(runs.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    // A run that never began has no outcome. Runs begin in order, so the failure stands before it.
    let outcomes = results.into_iter().filter_map(|cell| cell.into_inner().expect("threads have ended"));
    outcomes.collect()
}

fn take<'a>(next: &AtomicUsize, runs: &'a [Run]) -> Option<(usize, &'a Run)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, runs.get(at)?))
}

/// A broken assertion in the simulated core fails its run, with a reason, not the whole program.
fn guarded(run: &Run, progress: &Progress) -> Outcome {
    // Runs share only counters and memos, which stay usable after a panic.
    catch_unwind(AssertUnwindSafe(|| run.execute(progress))).unwrap_or_else(|panic| {
        let reason = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(StackError::run(format!("an internal check failed: {}", reason.unwrap_or_default())))
    })
}
