//! Executes runs in parallel. Rows are in the order of the runs, so the number of threads changes only the
//! time.

use crate::Row;
use crate::StackError;
use crate::{Progress, Run};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The rows of a run.
type Outcome = Result<Vec<Row>, StackError>;

/// Runs by number. Each run of a large grid is built when it is its turn, so that they need not all be in
/// memory.
pub trait Runs: Sync {
    /// The number of runs.
    fn count(&self) -> usize;

    /// Run number `at`.
    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError>;

    /// The number of runs including those before and after this call, for the progress.
    fn in_all(&self) -> u64 {
        self.count() as u64
    }

    /// Requests of all runs, as far as is known.
    fn ops(&self) -> u64;

    /// Seconds that all runs are expected to take on one core; zero if it is not known.
    fn seconds(&self) -> f64 {
        0.0
    }

    /// Whether one of them uses a real drive.
    fn is_real(&self) -> bool;
}

impl Runs for [Run] {
    fn count(&self) -> usize {
        self.len()
    }

    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError> {
        Ok(Cow::Borrowed(&self[at]))
    }

    fn ops(&self) -> u64 {
        self.iter().map(Run::ops).fold(0, u64::saturating_add)
    }

    fn seconds(&self) -> f64 {
        self.iter().map(Run::expected_seconds).sum()
    }

    fn is_real(&self) -> bool {
        self.iter().any(Run::is_real)
    }
}

/// Keeps the rows of runs, so that they need not be executed again.
pub trait Journal: Sync {
    /// The rows of a run, if they are known.
    fn known(&self, _at: usize, _run: &Run) -> Result<Option<Vec<Row>>, StackError> {
        Ok(None)
    }

    /// Called when a run has ended.
    fn finished(&self, _at: usize, _run: &Run, _rows: &[Row]) -> Result<(), StackError> {
        Ok(())
    }
}

/// Keeps nothing.
impl Journal for () {}

/// As many threads as the machine has cores.
pub fn all_cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Executes all runs, `threads` at a time, and reports to `progress`. Returns the rows of each, or the first
/// error in the order of the runs. `journal` may know the rows of some.
pub fn execute_all(
    runs: &(impl Runs + ?Sized),
    threads: NonZeroUsize,
    progress: &Progress,
    journal: &impl Journal,
) -> Result<Vec<Vec<Row>>, StackError> {
    // Runs begin in order, so the error is before any run that did not begin.
    outcomes(runs, threads, progress, journal, true).into_iter().collect()
}

/// Executes all runs; an error in one stops no other.
pub fn execute_whatever_fails(
    runs: &(impl Runs + ?Sized),
    threads: NonZeroUsize,
    progress: &Progress,
) -> Vec<Result<Vec<Row>, StackError>> {
    outcomes(runs, threads, progress, &(), false)
}

/// The outcomes of the runs that began, in order. If `stops`, no run begins after an error.
fn outcomes(
    runs: &(impl Runs + ?Sized),
    threads: NonZeroUsize,
    progress: &Progress,
    journal: &impl Journal,
    stops: bool,
) -> Vec<Outcome> {
    let count = runs.count();
    // On a real drive, other runs and any computation would disturb a run.
    let threads = if runs.is_real() { 1 } else { threads.get() };
    let next = AtomicUsize::new(0);
    progress.expect(runs.ops());
    progress.expect_runs(runs.in_all());
    progress.expect_seconds(runs.seconds());
    let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let outcome = progress.watching(|| guarded(runs, at, progress, journal));
                    progress.add_run();
                    if outcome.is_err() && stops {
                        // After an error no further run begins; running ones complete.
                        next.store(count, Ordering::Relaxed);
                    }
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push((at, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcomes.sort_unstable_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn one(runs: &(impl Runs + ?Sized), at: usize, progress: &Progress, journal: &impl Journal) -> Outcome {
    let run = runs.run(at)?;
    let progress = &progress.of_run(run.expected_seconds(), run.ops());
    if let Some(rows) = journal.known(at, &run)? {
        progress.skip(run.ops());
        return Ok(rows);
    }
    let rows = run.execute(progress)?;
    progress.end();
    journal.finished(at, &run, &rows)?;
    Ok(rows)
}

/// A failed assertion in the simulated core fails its run, not the whole program.
fn guarded(runs: &(impl Runs + ?Sized), at: usize, progress: &Progress, journal: &impl Journal) -> Outcome {
    // Runs share only counters and memos, which stay usable after a panic.
    catch_unwind(AssertUnwindSafe(|| one(runs, at, progress, journal)))
        .unwrap_or_else(|panic| Err(StackError::of_panic(panic)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{self, Workloads};
    use crate::{Column, Command};
    use std::collections::BTreeMap;
    use std::time::Duration;

    /// Runs of a workload that writes, by seed. An invalid seed is refused when it is its turn.
    struct Seeds {
        of: Vec<&'static str>,
        ops: &'static str,
    }

    impl Runs for Seeds {
        fn count(&self) -> usize {
            self.of.len()
        }
        fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError> {
            let values = [("workload", "zipf"), ("device", "none"), ("ops", self.ops), ("seed", self.of[at])];
            let run = settings::run(Command::Pool, &BTreeMap::from(values), &mut Workloads::default())?;
            Ok(Cow::Owned(run))
        }
        fn ops(&self) -> u64 {
            0
        }
        fn is_real(&self) -> bool {
            false
        }
    }

    /// All of the expected time has passed when the runs have ended, and not before.
    #[test]
    fn the_expected_time_has_passed_when_all_runs_have_ended() {
        let seeds = Seeds { of: vec!["1", "2", "3"], ops: "40K" };
        let runs: Vec<Run> = (0..3).map(|at| seeds.run(at).unwrap().into_owned()).collect();
        let progress = Progress::default();
        execute_all(&runs[..], NonZeroUsize::MIN, &progress, &()).unwrap();
        let seen = progress.snapshot();
        assert!(seen.expected > 3_000_000, "a run takes a millisecond: {seen:?}");
        assert!(seen.passed.abs_diff(seen.expected) <= 3, "but for rounding: {seen:?}");
    }

    #[test]
    fn a_failed_run_can_leave_the_others_running() {
        let runs = Seeds { of: vec!["1", "none", "3", "4"], ops: "1K" };
        let [one, two] = [1, 2].map(|threads| {
            execute_whatever_fails(&runs, NonZeroUsize::new(threads).unwrap(), &Progress::default())
        });
        assert_eq!((one.len(), two.len()), (4, 4));
        for (at, (one, two)) in one.iter().zip(&two).enumerate() {
            match (one, two) {
                (Err(one), Err(two)) => assert_eq!((at, one), (1, two)),
                (Ok(one), Ok(two)) => {
                    assert_eq!(one[0].get(Column::Misses), two[0].get(Column::Misses));
                    assert_eq!(one[0].text(Column::Seed), runs.of[at]);
                }
                _ => panic!("run {at} fails with one number of threads only"),
            }
        }
        let stopped = execute_all(&runs, NonZeroUsize::MIN, &Progress::default(), &());
        assert!(stopped.unwrap_err().to_string().contains("--seed"));
    }

    /// Without the check this test would run for hours.
    #[test]
    fn runs_that_are_stopped_end() {
        let runs = Seeds { of: vec!["1", "2", "3"], ops: "100G" };
        let progress = Progress::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while progress.snapshot().done == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                progress.stop();
            });
            let stopped = execute_all(&runs, NonZeroUsize::MIN, &progress, &()).unwrap_err();
            assert_eq!(stopped, StackError::run("stopped, since its caller asked for that"));
        });
    }

    #[test]
    fn a_failed_check_is_an_error_with_its_reason() {
        let caught = catch_unwind(|| panic!("{} of 2", 3)).unwrap_err();
        assert_eq!(StackError::of_panic(caught), StackError::run("an internal check failed: 3 of 2"));
        let unwound = catch_unwind(|| StackError::request("no").unwind()).unwrap_err();
        assert_eq!(StackError::of_panic(unwound), StackError::request("no"));
    }
}
