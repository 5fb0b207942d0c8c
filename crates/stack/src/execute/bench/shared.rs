//! Defines the types and errors that the modules of a benchmark run share.

use super::watched::{Seen, Watcher};
use crate::execute::columns::thread_cpu;
use crate::run::{Benchmarked, EngineStage};
use crate::{Run, StackError, memory};
use fulgurite_base::Nanos;
use fulgurite_bench::{Error, Outcome, Verified};
use fulgurite_engine::sharded::Store;
use fulgurite_engine::{Statistics, TornPages};

/// A run of a benchmark on a storage engine, with its load and its engine taken from `run`.
#[derive(Clone, Copy)]
pub(crate) struct BenchRun<'a> {
    pub run: &'a Run,
    pub asked: &'a Benchmarked,
    pub stage: &'a EngineStage,
}

/// The counts of the device and the store at one point of the run.
pub(super) struct Counted {
    pub seen: Seen,
    pub statistics: Statistics,
    /// The number of transactions that were committed in several shards.
    pub commits_across: u64,
    /// CPU time of this thread so far. `None` if the system does not report it.
    pub cpu: Option<Nanos>,
}

/// The result of the measured part of a run, before it becomes rows.
pub(super) struct Measured {
    pub outcome: Outcome,
    pub before: Counted,
    pub after: Counted,
    pub torn_pages: TornPages,
    pub verified: Verified,
}

impl Counted {
    pub(super) fn now(store: &Store, watcher: &Watcher) -> Counted {
        let commits_across = store.commits_across();
        Counted { seen: watcher.look(), statistics: store.statistics(), commits_across, cpu: thread_cpu() }
    }
}

/// Returns the error of a benchmark on `device`. It is an error of the settings if other settings could work,
/// otherwise a failed run.
pub(super) fn failed(device: &str, error: Error) -> StackError {
    match error {
        Error::TooManyIntervals { .. } => StackError::request(format!("--interval is too short: {error}")),
        Error::Spec(_) | Error::NoTime { .. } | Error::Engine(fulgurite_engine::Error::Options(_)) => {
            StackError::request(error.to_string())
        }
        Error::Engine(fulgurite_engine::Error::MapMemory { needed, given }) => {
            memory::too_little_for_map(&format!("on {device}"), given, needed)
        }
        Error::Engine(fulgurite_engine::Error::Full { .. }) => {
            StackError::run(format!("{error}, or use a larger drive, fewer --ops or a smaller --scale"))
        }
        Error::Engine(fulgurite_engine::Error::Io(_) | fulgurite_engine::Error::Fatal(_)) => {
            StackError::run(format!("{device}: {error}"))
        }
        error => StackError::run(error),
    }
}
