//! Builds a list of runs from their settings. All runs of a short list are built before the first one is
//! executed. Each run of a long list is built directly before its execution, so that the runs need not all be
//! in memory.

use crate::progress;
use crate::runner::Runs;
use crate::settings::Workloads;
use crate::{Outlook, Run, StackError};
use std::borrow::Cow;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

/// The number of runs of the longest list whose runs are all built, checked and kept before the first is
/// executed. If a list is longer, this many runs, evenly spread, are built and checked beforehand; the others
/// are checked directly before their execution.
const KEPT_AT_MOST: usize = 10_000;

/// The settings of a list of runs.
pub trait Source: Sync {
    /// Returns the number of runs.
    fn count(&self) -> usize;

    /// Builds run number `at`. `workloads` is shared by the whole list, so that a trace is read only once.
    fn make(&self, at: usize, workloads: &mut Workloads) -> Result<Run, StackError>;

    /// Returns the numbers of further runs to build beforehand, if not all runs are built.
    fn tried_too(&self) -> Vec<usize> {
        Vec::new()
    }
}

/// A list of runs that are built from `source`.
pub struct RunList<S> {
    source: S,
    kept: Vec<Run>,
    /// The number of requests of all runs, their expected seconds, and whether one of them uses a real drive.
    ops: u64,
    seconds: f64,
    is_real: bool,
    workloads: Mutex<Workloads>,
}

impl<S: Source> RunList<S> {
    /// Creates the list of the runs of `source`, and estimates their needs with `threads` runs at once.
    /// Checks as many runs as a list of this length allows. Nothing is executed or measured.
    ///
    /// # Errors
    ///
    /// Returns the error of the first run whose settings are wrong, among the runs that are checked.
    pub fn new(source: S, threads: NonZeroUsize) -> Result<(RunList<S>, Outlook), StackError> {
        let workloads = Mutex::new(Workloads::dry());
        let mut list = RunList { source, kept: Vec::new(), ops: 0, seconds: 0.0, is_real: false, workloads };
        let outlook = list.look_through(threads)?;
        list.workloads =
            Mutex::new(list.workloads.into_inner().unwrap_or_else(PoisonError::into_inner).wet());
        Ok((list, outlook))
    }

    /// Creates the list without checks. The settings of a run are checked directly before its execution.
    pub fn unseen(source: S) -> RunList<S> {
        RunList {
            source,
            kept: Vec::new(),
            ops: 0,
            seconds: 0.0,
            is_real: false,
            workloads: Mutex::default(),
        }
    }

    /// Builds and checks the runs of a short list. From here on drives are measured if policies need it.
    ///
    /// # Errors
    ///
    /// Returns the error of the first run whose settings are wrong.
    pub fn prepare(&mut self) -> Result<(), StackError> {
        let count = self.source.count();
        if count <= KEPT_AT_MOST {
            let step = progress::step("making ready", parts(count));
            for at in 0..count {
                let run = self.make(at)?;
                self.kept.push(run);
                step.add(1);
            }
        }
        Ok(())
    }

    /// Returns the settings of the runs.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Builds up to [`KEPT_AT_MOST`] runs, and adds up their needs.
    fn look_through(&mut self, threads: NonZeroUsize) -> Result<Outlook, StackError> {
        let mut outlook = Outlook::new(threads);
        let count = self.source.count();
        let sampled = count.min(KEPT_AT_MOST);
        let weight = count as f64 / sampled as f64;
        let step = progress::step("looking at the runs", parts(sampled));
        let mut ops = 0.0;
        for number in 0..sampled {
            // Multiply in 128 bits, since the product of two counts may overflow either type of count.
            let at = (number as u128 * count as u128 / sampled as u128) as usize;
            let run = self.make(at)?;
            self.is_real |= run.is_real();
            ops += run.ops() as f64 * weight;
            self.seconds += outlook.add(&run, weight).middle() * weight;
            step.add(1);
        }
        if sampled < count {
            for at in self.source.tried_too() {
                self.is_real |= self.make(at)?.is_real();
            }
        }
        // The cast saturates. So many requests would never complete anyway.
        self.ops = ops as u64;
        if outlook.has_rounds {
            // Leaves the share of completed work unknown. A share of a single pass would stand at its end.
            (self.ops, self.seconds) = (0, 0.0);
        }
        outlook.runs = count as u64;
        Ok(outlook)
    }

    fn make(&self, at: usize) -> Result<Run, StackError> {
        let mut workloads = self.workloads.lock().unwrap_or_else(PoisonError::into_inner);
        self.source.make(at, &mut workloads)
    }
}

/// Returns the number of parts of a step over `runs` runs. A single run has no progress to show, so its step
/// has 0 parts.
fn parts(runs: usize) -> u64 {
    if runs == 1 { 0 } else { runs as u64 }
}

impl<S: Source> Runs for RunList<S> {
    fn count(&self) -> usize {
        self.source.count()
    }

    fn run(&self, at: usize) -> Result<Cow<'_, Run>, StackError> {
        match self.kept.get(at) {
            Some(run) => Ok(Cow::Borrowed(run)),
            None => self.make(at).map(Cow::Owned),
        }
    }

    fn ops(&self) -> u64 {
        self.ops
    }

    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn is_real(&self) -> bool {
        self.is_real
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, settings};
    use std::collections::BTreeMap;

    /// Runs of a pool that differ only in their seed, which counts from 1.
    struct Seeds(usize);

    impl Source for Seeds {
        fn count(&self) -> usize {
            self.0
        }

        fn make(&self, at: usize, workloads: &mut Workloads) -> Result<Run, StackError> {
            let seed = (at + 1).to_string();
            let given =
                [("workload", "zipf"), ("device", "none"), ("ops", "10"), ("users", "1"), ("seed", &seed)];
            settings::run(Command::Pool, &BTreeMap::from(given), workloads)
        }
    }

    #[test]
    fn a_short_list_is_kept_and_a_long_one_is_made_run_by_run() {
        for (count, kept) in [(7, 7), (20_000, 0)] {
            let (mut list, outlook) = RunList::new(Seeds(count), NonZeroUsize::MIN).unwrap();
            list.prepare().unwrap();
            assert_eq!((list.count(), outlook.runs, list.kept.len()), (count, count as u64, kept));
            assert_eq!(list.ops(), 10 * count as u64, "a sample stands for all");
            assert_eq!(list.run(count - 1).unwrap().seed, count as u64);
        }
    }
}
