//! What the parts of a benchmark run share: the run, its counts and its errors.

use super::watched::{Seen, Watched, Watcher};
use crate::run::{Benchmarked, EngineStage};
use crate::{Run, StackError, memory};
use fulgurite_base::Nanos;
use fulgurite_bench::{Error, Outcome, Verified};
use fulgurite_engine::{Statistics, Store, TornPages};

/// A run of a benchmark.
#[derive(Clone, Copy)]
pub struct BenchRun<'a> {
    pub run: &'a Run,
    pub asked: &'a Benchmarked,
    pub stage: &'a EngineStage,
}

/// Counts at one moment.
pub struct Noted {
    pub seen: Seen,
    pub statistics: Statistics,
    /// CPU time that this thread has used, where the system tells.
    pub cpu: Option<Nanos>,
}

/// What a run has given.
pub struct Measured {
    pub outcome: Outcome,
    pub before: Noted,
    pub after: Noted,
    pub torn_pages: TornPages,
    pub verified: Verified,
}

impl Noted {
    pub fn now(store: &Store<Watched>, watcher: &Watcher) -> Noted {
        Noted { seen: watcher.look(), statistics: store.statistics(), cpu: thread_cpu() }
    }
}

/// CPU time that this thread has used.
#[cfg(unix)]
fn thread_cpu() -> Option<Nanos> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Nanos(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
fn thread_cpu() -> Option<Nanos> {
    None
}

/// An error of a benchmark on `device`: a wrong request where other settings would do, else a failed run.
pub fn failed(device: &str, error: Error) -> StackError {
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
