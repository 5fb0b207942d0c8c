//! Executes runs in parallel. Result rows are in the order of the runs, so the number of threads changes only
//! the wall-clock time.

use crate::Row;
use crate::StackError;
use crate::{Progress, Run};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The result rows of one run, or its error.
type Outcome = Result<Vec<Row>, StackError>;

/// Runs by number. Each run of a large grid is built directly before its execution, so that the runs need not
/// all be in memory.
pub trait Runs: Sync {
    /// Returns the number of runs.
    fn count(&self) -> usize;

    /// Returns run number `at`.
    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError>;

    /// Returns the number of runs for the progress, including runs before and after the call that executes
    /// these.
    fn in_all(&self) -> u64 {
        self.count() as u64
    }

    /// Returns the number of requests of all runs, as far as it is known.
    fn ops(&self) -> u64;

    /// Returns the seconds that all runs are expected to take on one core; 0 if they are not known.
    fn seconds(&self) -> f64 {
        0.0
    }

    /// Whether one of the runs uses a real drive.
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

/// Keeps the result rows of runs, so that the runs need not be executed again.
pub trait Journal: Sync {
    /// Returns the rows of a run; `None` if they are not known.
    fn known(&self, _at: usize, _run: &Run) -> Result<Option<Vec<Row>>, StackError> {
        Ok(None)
    }

    /// Records the rows of a run. The runner calls this when the run has ended without error.
    fn finished(&self, _at: usize, _run: &Run, _rows: &[Row]) -> Result<(), StackError> {
        Ok(())
    }
}

/// A journal that keeps nothing.
impl Journal for () {}

/// Returns the number of cores of this machine, as a number of threads.
pub fn all_cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Executes all runs, `threads` at a time, and reports to `progress`. Returns the rows of each run, or the
/// first error in the order of the runs. A run whose rows `journal` knows is not executed.
pub fn execute_all(
    runs: &(impl Runs + ?Sized),
    threads: NonZeroUsize,
    progress: &Progress,
    journal: &impl Journal,
) -> Result<Vec<Vec<Row>>, StackError> {
    // Runs begin in order, so every run that did not begin comes after the run with the error.
    outcomes(runs, threads, progress, journal, true).into_iter().collect()
}

/// Executes all runs. An error in one run does not prevent the others.
pub fn execute_whatever_fails(
    runs: &(impl Runs + ?Sized),
    threads: NonZeroUsize,
    progress: &Progress,
) -> Vec<Result<Vec<Row>, StackError>> {
    outcomes(runs, threads, progress, &(), false)
}

/// Returns the outcomes of the runs that began, in order. If `stops`, no run begins after an error.
fn outcomes(
    runs: &(impl Runs + ?Sized),
    threads: NonZeroUsize,
    progress: &Progress,
    journal: &impl Journal,
    stops: bool,
) -> Vec<Outcome> {
    let count = runs.count();
    // Use one thread on a real drive, because other runs and any other computation would disturb a run.
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
                        // After an error, let no further run begin. Runs in progress complete.
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

/// Executes run number `at`. A failed assertion in the simulated core becomes an error of this run, and does
/// not end the whole program.
fn guarded(runs: &(impl Runs + ?Sized), at: usize, progress: &Progress, journal: &impl Journal) -> Outcome {
    // Runs share only counters and memos. These stay usable after a panic, so the closure is unwind-safe.
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

    /// Runs of a workload that writes, one per seed. An invalid seed is refused when its run is built.
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

    /// Runs end soon after they are cancelled. If they did not check for it, this test would run for hours.
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
