//! Many tests: one for each seed, several at once.

use crate::case::{Case, Violation};
use crate::test::{Check, Ended, Place, Plan, shell};
use fulgurite_base::{Nanos, SpecError, units};
use fulgurite_folder::{Folder, Rules};
use fulgurite_stack::{Progress, StackError};
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A request for tests.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The program, its checker and its folder.
    pub plan: Plan,
    /// The number of cuts.
    pub cuts: u64,
    /// The seed of the first cut. The others have the seeds that follow it.
    pub seed: u64,
    /// One of so many cuts is followed by a cut during the checker's recovery, as the seeds decide; 0 for none.
    pub recovery_cuts: u64,
    /// The number of tests at the same time.
    pub jobs: NonZeroUsize,
    /// Whether the first violation ends the tests.
    pub stop: bool,
    /// The folder for the files of violations; `None` to keep none.
    pub keep: Option<PathBuf>,
    /// Ends the tests once it is true: programs are killed, folders are unmounted, and the outcome is that of the cuts
    /// so far.
    pub end: Arc<AtomicBool>,
}

/// A request as a user typed it. `None` stands for the default.
#[derive(Clone, Debug)]
pub struct Typed<'a> {
    /// The number of cuts [default: 100].
    pub cuts: Option<&'a str>,
    /// The first seed [default: 42].
    pub seed: Option<&'a str>,
    /// One of so many cuts is followed by a cut during recovery [default: 4].
    pub recovery_cuts: Option<&'a str>,
    /// The rules of the folder, with options [default: journaled].
    pub folder: Option<&'a str>,
    /// The longest time of a program or a checker [default: 60s].
    pub time: Option<&'a str>,
    /// The checker.
    pub check: Check,
    /// The shell command that fills the folder.
    pub setup: Option<&'a str>,
    /// The folder for the files of violations.
    pub keep: Option<&'a Path>,
    /// Whether the first violation ends the tests.
    pub stop: bool,
    /// The program with its arguments.
    pub program: &'a [OsString],
}

impl Typed<'_> {
    /// Gives the typed texts their meaning. `jobs` tests run at the same time.
    pub fn asked(&self, jobs: NonZeroUsize) -> Result<Asked, StackError> {
        let named =
            |name: &'static str| move |error: SpecError| StackError::request(format!("{name}: {error}"));
        let count = |text: Option<&str>, usual| text.map_or(Ok(usual), units::parse_count);
        let cuts = count(self.cuts, 100).map_err(named("--cuts"))?;
        if cuts == 0 {
            return Err(StackError::request("--cuts is 0; accepted: a number from 1 on"));
        }
        let seed = count(self.seed, 42).map_err(named("--seed"))?;
        let recovery_cuts = count(self.recovery_cuts, 4).map_err(named("--recovery-cuts"))?;
        let time = self.time.map_or(Ok(Nanos(60_000_000_000)), units::parse_time).map_err(named("--time"))?;
        let rules = self.folder.map_or(Ok(Rules::default()), Rules::parse).map_err(named("--folder"))?;
        if let Some(keep) = self.keep.filter(|keep| keep.exists()) {
            return Err(StackError::request(format!(
                "--keep {} exists; accepted: the path of a new folder",
                keep.display()
            )));
        }
        let plan = Plan {
            program: self.program.to_vec(),
            check: self.check.clone(),
            setup: self.setup.map(str::to_owned),
            rules,
            time: Duration::from_nanos(time.0),
        };
        let keep = self.keep.map(Path::to_path_buf);
        Ok(Asked { plan, cuts, seed, recovery_cuts, jobs, stop: self.stop, keep, end: Arc::default() })
    }
}

/// The outcome of all tests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The number of cuts.
    pub cuts: u64,
    /// The number of cuts that came before the program's end.
    pub cuts_in_run: u64,
    /// The number of cuts that were followed by one during the checker's recovery.
    pub recovery_cuts: u64,
    /// The number of operations of the program without a cut: changes of the folder and syncs.
    pub operations: u64,
    /// The number of changes, or parts of writes, that the cuts could lose.
    pub unsynced: u64,
    /// The number of these that they lost.
    pub lost: u64,
    /// The time of all cuts in seconds.
    pub seconds: f64,
    /// The violations, by seed.
    pub violations: Vec<Violation>,
}

/// The sums over the cuts so far.
#[derive(Default)]
struct Sums {
    cuts: u64,
    cuts_in_run: u64,
    recovery_cuts: u64,
    unsynced: u64,
    lost: u64,
    violations: Vec<Violation>,
    error: Option<StackError>,
}

/// Runs the tests.
///
/// # Errors
///
/// Refuses a program that fails, changes nothing, or fails its check without any cut. Such a program's violations would
/// say nothing about power cuts.
pub fn crashtest(asked: &Asked, progress: &Progress) -> Result<Outcome, StackError> {
    let plan = &asked.plan;
    let no_place =
        |error: io::Error| StackError::run(format!("there is no room for temporary files: {error}"));
    let place = Place::new(0, Arc::clone(&asked.end), progress.clone()).map_err(no_place)?;
    let folder = prepared(plan, &place)?;
    let whole = place.run(&plan.program, folder.clone(), None, plan.time)?;
    if let Some(failure) = &whole.failure {
        return Err(StackError::request(format!(
            "the program fails without a power cut ({failure}); accepted: a program that ends with exit code 0"
        )));
    }
    if whole.operations == 0 {
        return Err(StackError::request(
            "the program changes nothing in its folder, so no cut can matter; accepted: a program that works in its \
                current folder",
        ));
    }
    must_pass(asked, &place, whole.folder)?;
    let start = Instant::now();
    let (next, sums) = (AtomicU64::new(0), Mutex::new(Sums::default()));
    let lock = || sums.lock().unwrap_or_else(PoisonError::into_inner);
    let work = |number: usize| -> Result<(), StackError> {
        let place = Place::new(number + 1, Arc::clone(&asked.end), progress.clone()).map_err(no_place)?;
        loop {
            let index = next.fetch_add(1, Ordering::SeqCst);
            let is_over = lock().error.is_some() || asked.stop && !lock().violations.is_empty();
            if index >= asked.cuts || is_over {
                return Ok(());
            }
            let case = Case {
                plan,
                place: &place,
                seed: asked.seed.wrapping_add(index),
                recovery_cuts: asked.recovery_cuts,
                keep: asked.keep.as_deref(),
            };
            let done = case.run(&folder, whole.operations)?;
            let mut sums = lock();
            sums.cuts += 1;
            sums.cuts_in_run += u64::from(done.is_in_run);
            sums.recovery_cuts += u64::from(done.is_recovery_cut);
            sums.unsynced += done.unsynced;
            sums.lost += done.lost;
            sums.violations.extend(done.violation);
            progress.left(asked.cuts - sums.cuts, asked.cuts);
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        let jobs = asked.jobs.get().min(usize::try_from(asked.cuts).unwrap_or(usize::MAX));
        let threads: Vec<_> = (0..jobs).map(|number| scope.spawn(move || work(number))).collect();
        for thread in threads {
            if let Ok(Err(error)) = thread.join() {
                lock().error.get_or_insert(error);
            }
        }
    });
    let Sums { cuts, cuts_in_run, recovery_cuts, unsynced, lost, mut violations, error } =
        sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    // An interrupted test has no outcome.
    if let Some(error) = error.filter(|_| !asked.end.load(Ordering::SeqCst)) {
        return Err(error);
    }
    violations.sort_unstable_by_key(|violation| violation.seed);
    let seconds = start.elapsed().as_secs_f64();
    let operations = whole.operations;
    Ok(Outcome { cuts, cuts_in_run, recovery_cuts, operations, unsynced, lost, seconds, violations })
}

/// Refuses a checker that fails in a folder of which nothing was lost.
fn must_pass(asked: &Asked, place: &Place, folder: Folder) -> Result<(), StackError> {
    let Plan { check, time, .. } = &asked.plan;
    let checked = place.check(check, folder, None, *time)?;
    if let Some(failure) = checked.failure {
        return Err(StackError::request(format!(
            "--check fails without a power cut ({failure}); accepted: a command that ends with exit code 0 if all is \
                well"
        )));
    }
    // After a cut during recovery the checker runs again.
    if asked.recovery_cuts > 0
        && checked.operations > 0
        && let Some(failure) = place.check(check, checked.folder, None, *time)?.failure
    {
        return Err(StackError::request(format!(
            "--check fails when it runs again in its folder ({failure}); accepted: a command that may run again, or \
                --recovery-cuts 0"
        )));
    }
    Ok(())
}

/// Returns the folder in which the program starts. All of it is durable.
fn prepared(plan: &Plan, place: &Place) -> Result<Folder, StackError> {
    let folder = Folder::new(plan.rules);
    let Some(setup) = &plan.setup else { return Ok(folder) };
    let Ended { mut folder, failure, .. } = place.run(&shell(setup), folder, None, plan.time)?;
    match failure {
        None => {
            folder.sync_all();
            Ok(folder)
        }
        Some(failure) => Err(StackError::request(format!(
            "--setup fails ({failure}); accepted: a command that ends with exit code 0"
        ))),
    }
}
