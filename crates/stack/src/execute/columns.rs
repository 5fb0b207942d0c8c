//! Sets the columns that result rows of several commands have.

use crate::run::{ChosenWriteBack, Policies, STORES_OWN};
use crate::{Column, Command, Row, Run, StackError, memory};
use fulgurite_base::Nanos;
use fulgurite_pool::{PoolCounters, WriteBack};
use std::time::{Duration, Instant};

impl Run {
    /// Returns the columns that describe a run of any command.
    pub(crate) fn identity(&self) -> Result<Row, StackError> {
        let mut row = Row::default();
        row.set(Column::RunId, self.id()?);
        if let Some(requested) = self.requested() {
            row.set(Column::Workload, requested.workload.label.as_str());
        }
        if self.command() != Command::Gc {
            row.set(Column::Device, self.stack.device.label.as_str());
        }
        Ok(row)
    }
}

/// Sets the columns about the policies of a pool. `None` as `write_back` means that the store chooses its own
/// policy.
pub(crate) fn set_policies(row: &mut Row, policies: &Policies, write_back: Option<&ChosenWriteBack>) {
    row.set(Column::Replacement, policies.replacement.to_string());
    row.set(Column::Prefetch, policies.prefetch.name());
    let Some(ChosenWriteBack { policy, batches }) = write_back else {
        // The store derives the parameters of the policy from its memory and torn-page protection, and does
        // not report them.
        row.set(Column::WriteBack, STORES_OWN);
        return;
    };
    row.set(Column::WriteBack, policy.to_string());
    let WriteBack { n_e, buffers, ahead, .. } = *batches;
    row.set(Column::NW, batches.batch_pages());
    if !policies.prefetch.is_none() {
        row.set(Column::NE, n_e);
    }
    row.set_some(Column::Buffers, Some(buffers).filter(|buffers| *buffers > 0));
    row.set_some(Column::Ahead, Some(ahead).filter(|ahead| *ahead > 0));
}

/// Sets the columns about the counts of a pool. A pool without requests has no ratio of hits.
pub(crate) fn set_pool(row: &mut Row, counters: &PoolCounters) {
    let requests = counters.hits + counters.misses;
    row.set(Column::Hits, counters.hits);
    row.set(Column::Misses, counters.misses);
    row.set_some(Column::HitRatio, (requests > 0).then(|| counters.hits as f64 / requests as f64));
    row.set(Column::ReadIos, counters.read_ios);
    row.set(Column::WriteIos, counters.write_ios);
    row.set(Column::PagesRead, counters.pages_read);
    row.set(Column::PagesWritten, counters.pages_written);
    row.set(Column::PagesFlushed, counters.pages_flushed);
    row.set(Column::Prefetched, counters.prefetched);
    row.set(Column::PrefetchHits, counters.prefetch_hits);
    row.set(Column::PrefetchWasted, counters.prefetch_wasted);
    row.set(Column::WriteWaits, counters.write_waits);
    row.set(Column::Rescued, counters.rescued);
}

/// Returns the CPU time of this thread. `None` if the system does not report it.
#[cfg(unix)]
pub(super) fn thread_cpu() -> Option<Nanos> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Some(Nanos(u64::try_from(time.tv_sec).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(unix))]
pub(super) fn thread_cpu() -> Option<Nanos> {
    None
}

/// Sets the three columns about the cost of the simulator. Only these columns and the CPU time differ from one
/// execution to the next. `read_for` is the time that reading the trace took; the runs of a grid share this work.
pub(crate) fn set_cost(row: &mut Row, start: Instant, read_for: Duration, ops: u64) {
    let seconds = (start.elapsed() + read_for).as_secs_f64();
    row.set(Column::SimWallS, seconds);
    row.set(Column::SimOpsS, ops as f64 / seconds);
    row.set_some(Column::PeakRssBytes, memory::peak_rss());
}
