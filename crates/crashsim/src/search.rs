//! Searches seeds for violations. Each seed runs twice, because equal runs must have equal results. The plan
//! of the first failing seed is reduced.

use crate::device::FaultKind;
use crate::plan::{self, Plan};
use crate::run::{self, Report};
use crate::shrink;
use crate::violation::{Violation, ViolationKind};
use fulgurite_engine::Planted;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The maximum number of runs for reducing a plan.
const ATTEMPTS: u32 = 4_000;

/// The options of a search.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// The fault that is injected into the engine; `None` if there is none.
    pub planted: Option<Planted>,
    /// The kinds of drive faults to leave out.
    pub without: Vec<FaultKind>,
    /// Whether all seeds write pages in place.
    pub in_place: bool,
    /// Whether no seed is under pressure, as when the seeds were run that have failed once.
    pub without_pressure: bool,
    /// The number of threads.
    pub jobs: usize,
}

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The number of the seed.
    pub seed: u64,
    /// The violation that the seed found.
    pub violation: Violation,
}

/// The totals over the seeds of a search.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The number of acknowledged transactions and snapshots.
    pub committed: u64,
    /// The number of power cuts.
    pub cuts: u64,
    /// The number of drive faults that have struck.
    pub faults: u64,
    /// The number of seeds that ended with damage that the store reported.
    pub damaged: u64,
    /// The failure of the lowest failing seed; `None` if no seed failed.
    pub failure: Option<Failure>,
}

/// The progress of the threads of a search, for display.
pub struct Progress {
    /// The number of finished seeds.
    pub done: AtomicU64,
    /// The current seed of each thread; `u64::MAX` if it has none.
    pub running: Vec<AtomicU64>,
}

impl Progress {
    /// Creates the progress of `jobs` threads at the start of a search.
    pub fn new(jobs: usize) -> Progress {
        Progress { done: AtomicU64::new(0), running: (0..jobs).map(|_| AtomicU64::new(u64::MAX)).collect() }
    }
}

impl Search {
    /// Generates the plan of a seed with the options of this search.
    pub fn plan(&self, seed: u64) -> Plan {
        let plan = match (self.in_place, self.without_pressure) {
            (true, _) => Plan::in_place(seed),
            (false, true) => Plan::without_pressure(seed),
            (false, false) => Plan::from_seed(seed),
        };
        let mut plan = plan.without(&self.without);
        plan.store.planted = self.planted;
        plan
    }

    /// Runs `seeds` until one fails.
    pub fn seeds(&self, seeds: Range<u64>, progress: &Progress) -> Summary {
        let next = AtomicU64::new(seeds.start);
        let stop = AtomicBool::new(false);
        let summary = Mutex::new(Summary::default());
        std::thread::scope(|scope| {
            for running in &progress.running {
                let (next, stop, summary, seeds) = (&next, &stop, &summary, &seeds);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= seeds.end {
                            break;
                        }
                        running.store(seed, Ordering::Relaxed);
                        let report = twice(&self.plan(seed));
                        running.store(u64::MAX, Ordering::Relaxed);
                        progress.done.fetch_add(1, Ordering::Relaxed);
                        if report.violation.is_some() {
                            stop.store(true, Ordering::Relaxed);
                        }
                        summary.lock().unwrap_or_else(PoisonError::into_inner).add(seed, report);
                    }
                });
            }
        });
        summary.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reduces the plan of a failing seed as far as possible. Returns the plan and its violation.
    pub fn shrink(&self, failure: &Failure) -> (Plan, Violation) {
        let kind = failure.violation.kind;
        let violation_of = |plan: &Plan| {
            let report = if kind == ViolationKind::NotDeterministic { twice(plan) } else { caught(plan) };
            report.violation.filter(|violation| violation.is_like(&failure.violation))
        };
        let fails = |plan: &Plan| violation_of(plan).is_some();
        let smallest = shrink::shrink(self.plan(failure.seed), plan::simpler, fails, ATTEMPTS);
        let violation = violation_of(&smallest).unwrap_or_else(|| failure.violation.clone());
        (smallest, violation)
    }
}

impl Summary {
    fn add(&mut self, seed: u64, report: Report) {
        self.seeds += 1;
        self.committed += report.committed;
        self.cuts += report.cuts;
        self.faults += report.faults;
        self.damaged += u64::from(report.damaged);
        if let Some(violation) = report.violation
            && self.failure.as_ref().is_none_or(|failure| seed < failure.seed)
        {
            self.failure = Some(Failure { seed, violation });
        }
    }
}

/// Runs a plan. A panic is a violation.
pub fn caught(plan: &Plan) -> Report {
    catch_unwind(AssertUnwindSafe(|| run::run(plan))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        Report { violation: Some(Violation::new(ViolationKind::Panic, text)), ..Report::default() }
    })
}

/// Runs a plan twice. A difference between the runs is a violation.
pub fn twice(plan: &Plan) -> Report {
    let first = caught(plan);
    if first.violation.is_some() {
        return first;
    }
    let second = caught(plan);
    if first == second {
        return first;
    }
    let text = format!("two runs differ: {first:?} and {second:?}");
    Report { violation: Some(Violation::new(ViolationKind::NotDeterministic, text)), ..first }
}
