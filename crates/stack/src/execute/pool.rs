//! Executes a run of `pool`: the requests of a workload against a buffer pool on a device, in a closed loop.
//!
//! The users share one stream of requests, and a user who is idle takes the next request. So the requests and
//! their order are the same for all policies that are compared. Each user submits one request after another
//! without pause. CPU time of a request is charged to the user's core.
//!
//! Users are assigned to the simulated cores in turn. All cores use one pool, as the processes of a database
//! use shared buffers, so the number of cores does not affect the policies. It affects only CPU time and the
//! order of commands to a full drive. Contention of cores for shared memory is not simulated; the CPU time of
//! a request includes it.

use super::columns::{set_cost, set_policies, set_pool};
use super::device_counts::{DeviceCounts, set_collecting};
use super::latency::{self, set_latency};
use super::stamps::Stamps;
use crate::device::Observed;
use crate::open::DeviceUser;
use crate::progress::step;
use crate::run::{Arrivals, PoolStage, Requested};
use crate::workload::{Altered, Requests};
use crate::{Column, Progress, Row, Run, StackError};
use fulgurite_base::{Histogram, Lpn, Nanos, PageId};
use fulgurite_device::{Arena, Executor, Handle, Meter, Operation};
use fulgurite_pool::{BufferPool, PoolCounters, WriteGuard};
use fulgurite_workload::Op;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A run of `pool`, with its workload and pool taken from `run`.
#[derive(Clone, Copy)]
pub(super) struct PoolRun<'a> {
    pub run: &'a Run,
    pub requested: &'a Requested,
    pub stage: &'a PoolStage,
}

impl PoolRun<'_> {
    /// Returns the number of users of the closed loop.
    fn users(&self) -> u32 {
        match self.requested.arrivals {
            Arrivals::Closed { users } => users,
            // `Run::check` refuses the open loops of these arrivals, so the value does not matter.
            Arrivals::Times { .. } | Arrivals::Rate { .. } => 1,
        }
    }

    /// Returns the columns that describe the run.
    pub(super) fn described(&self) -> Result<Row, StackError> {
        let PoolRun { run, requested, stage } = self;
        let mut row = run.identity()?;
        row.set_some(Column::Channels, run.stack.device.simulated().map(|config| config.channels));
        set_collecting(&mut row, &run.stack);
        set_policies(&mut row, &stage.policies, Some(&stage.write_back));
        row.set(Column::Frames, stage.frames);
        // The number `u64::MAX` means that the pages of the trace were not counted.
        row.set_some(Column::Pages, Some(requested.pages).filter(|pages| *pages < u64::MAX));
        row.set(Column::PageBytes, stage.page_bytes);
        row.set(Column::Users, self.users());
        row.set(Column::CpuPerRequestNs, stage.cpu_per_request.0);
        row.set_some(Column::Cores, Some(stage.cores).filter(|cores| *cores > 1));
        row.set(Column::Seed, run.seed);
        row.set_some(Column::Skip, Some(requested.skip).filter(|skip| *skip > 0));
        row.set(Column::Ops, requested.ops);
        Ok(row)
    }

    pub(super) fn row(&self, measured: &Measured, counters: PoolCounters) -> Result<Row, StackError> {
        let PoolRun { run, requested, .. } = self;
        let mut row = self.described()?;
        // Without a drive there is no clock, so the cell stays empty.
        row.set_some(Column::ElapsedNs, Some(measured.elapsed.0).filter(|_| !run.stack.device.is_none()));
        if measured.elapsed > Nanos::ZERO {
            row.set(Column::ThroughputOpsS, requested.ops as f64 / measured.elapsed.as_secs_f64());
        }
        set_pool(&mut row, &counters);
        row.set_some(Column::PagesChecked, measured.pages_checked);
        set_latency(&mut row, latency::ALL, measured.latency.summary());
        if let Some(altered) = &measured.altered {
            altered.set(&mut row, &requested.workload.label, false);
        }
        Ok(row)
    }
}

/// The state that all users of a run share.
struct Shared {
    requests: Requests,
    ops: u64,
    left: u64,
    latency: Histogram,
    meter: Meter,
    failure: Option<String>,
    stamps: Option<Stamps>,
    progress: Progress,
}

impl Shared {
    /// Puts a new stamp into a page that a user writes, after a check of the old stamp.
    fn change<D: Observed + 'static>(&mut self, page: u64, guard: &mut WriteGuard<D>) -> Result<(), String> {
        let Some(stamps) = &mut self.stamps else { return Ok(()) };
        // Check the old stamp first, or the new one would hide a lost update.
        stamps.check(page, guard.bytes())?;
        stamps.change(page, guard.bytes_mut());
        Ok(())
    }

    /// Checks the stamp of a page that a user reads.
    fn check(&mut self, page: u64, bytes: &[u8]) -> Result<(), String> {
        self.stamps.as_mut().map_or(Ok(()), |stamps| stamps.check(page, bytes))
    }
}

#[derive(Default)]
pub(super) struct Measured {
    /// The differences between the trace and its file; `None` for a generator.
    altered: Option<Altered>,
    elapsed: Nanos,
    latency: Histogram,
    /// The expected stamps of pages; `None` if the device keeps no contents.
    stamps: Option<Stamps>,
    /// The number of pages whose contents were compared with the last write; `None` if none could be.
    pages_checked: Option<u64>,
}

impl Measured {
    /// Creates the figures of a run without a drive, which takes no time.
    pub(super) fn of(altered: Option<Altered>) -> Measured {
        Measured { altered, ..Measured::default() }
    }
}

/// A run and its progress, to be executed on a device of any type.
pub(super) struct Execution<'a> {
    pub run: PoolRun<'a>,
    pub progress: &'a Progress,
}

impl DeviceUser for Execution<'_> {
    type Output = Result<Row, StackError>;

    fn with<D: Observed + 'static>(self, device: D) -> Self::Output {
        self.run.run_on(device, self.progress)
    }
}

impl PoolRun<'_> {
    /// Executes the run on `device`, and returns its result row.
    pub(super) fn run_on<D: Observed + 'static>(
        &self,
        device: D,
        progress: &Progress,
    ) -> Result<Row, StackError> {
        let PoolRun { run, requested, stage } = self;
        let start = Instant::now();
        let executor = Executor::with_cores(device, stage.cores);
        let pool = BufferPool::new(executor.handle(), stage.config()?)
            .map_err(|error| StackError::request(error.to_string()))?;
        let mut measured = self.run_users(&executor, &pool, progress)?;
        // Read the counts before the final flush, so that they include only the effects of requests.
        let counters = pool.counters();
        check_counters(&counters, requested.ops)?;
        let flushing = pool.clone();
        executor
            .block_on(async move { flushing.flush().await })
            .map_err(StackError::run)?
            .map_err(StackError::run)?;
        // The check of conservation below needs the pages written by the final flush as well.
        let counters = PoolCounters { pages_flushed: pool.counters().pages_flushed, ..counters };
        if let Some(stamps) = measured.stamps.take() {
            let checked = self.check_drive(&executor, stamps)?;
            measured.pages_checked = Some(checked);
        }
        let mut row = self.row(&measured, counters)?;
        let done = executor
            .with_device(|device| {
                device.settle();
                // Read the counters before the remaining events run, so that garbage collection after the
                // last request is not counted.
                let done = DeviceCounts::of(device);
                device.drain_events();
                device.verify(true).map(|()| done)
            })
            .map_err(StackError::run)?;
        let written = counters.pages_written + counters.pages_flushed;
        let expected = written * u64::from(stage.page_bytes / run.stack.device.page_bytes());
        // A device without counts, such as a file, cannot be checked for lost pages.
        if let Some(received) = done.host_pages_written().filter(|received| *received != expected) {
            return Err(StackError::run(format!(
                "conservation is broken: the pool wrote {expected} drive pages, the drive received {received}"
            )));
        }
        done.set(&mut row);
        set_cost(&mut row, start, Duration::ZERO, requested.ops);
        Ok(row)
    }

    /// Reads every page that the run wrote from the drive itself, and checks its stamp. Returns the number of
    /// pages whose stamps were checked in the whole run.
    fn check_drive<D: Observed + 'static>(
        &self,
        executor: &Executor<D>,
        stamps: Stamps,
    ) -> Result<u64, StackError> {
        // Read with many tasks at once, since a single reader would wait for the drive at every page.
        const READERS: u64 = 32;
        let step = Rc::new(step("checking every page on the drive", self.requested.pages));
        let stamps = Rc::new(RefCell::new(stamps));
        let failure = Rc::new(RefCell::new(None));
        let device_pages = self.stage.page_bytes / self.run.stack.device.page_bytes();
        for reader in 0..READERS {
            let (stamps, failure, handle) = (Rc::clone(&stamps), Rc::clone(&failure), executor.handle());
            let step = Rc::clone(&step);
            let (pages, bytes) = (self.requested.pages, self.stage.page_bytes as usize);
            executor.spawn(async move {
                let buffer = Arena::new(bytes).buffer(0, bytes);
                // Each reader checks every 32nd page, so no two readers check the same page.
                for page in (reader..pages).step_by(READERS as usize) {
                    step.add(1);
                    if !stamps.borrow().is_written(page) || failure.borrow().is_some() {
                        continue;
                    }
                    let lpn = Lpn(page * u64::from(device_pages));
                    let read = Operation::Read { lpn, pages: device_pages, into: Some(buffer.clone()) };
                    let outcome = handle.submit(read).await.map_err(|error| format!("page {page}: {error}"));
                    // SAFETY: the read has ended, and no other task uses this buffer.
                    let bytes = unsafe { buffer.bytes() };
                    let checked = outcome.and_then(|()| stamps.borrow_mut().check(page, bytes));
                    if let Err(error) = checked {
                        failure.borrow_mut().get_or_insert(error);
                    }
                }
            });
        }
        executor.run().map_err(StackError::run)?;
        if let Some(failure) = failure.take() {
            return Err(StackError::run(format!("after the flush, on the drive itself: {failure}")));
        }
        Ok(stamps.borrow().checked())
    }

    fn run_users<D: Observed + 'static>(
        &self,
        executor: &Executor<D>,
        pool: &BufferPool<D>,
        progress: &Progress,
    ) -> Result<Measured, StackError> {
        let mut requests = self.run.bind()?.requests(self.run.seed)?;
        requests.skip_pages(self.requested.skip);
        let shared = Rc::new(RefCell::new(Shared {
            requests,
            ops: self.requested.ops,
            left: self.requested.ops,
            latency: Histogram::default(),
            meter: Meter::default(),
            failure: None,
            // Simulated drives of pool runs keep no contents, so only the stamps on a real drive can be
            // checked.
            stamps: self.run.is_real().then(|| Stamps::new(self.requested.pages)),
            progress: progress.clone(),
        }));
        let start = executor.handle().now();
        for number in 0..self.users() {
            let cpu = self.stage.cpu_per_request;
            executor.spawn_on(number, user(Rc::clone(&shared), pool.clone(), executor.handle(), cpu));
        }
        executor.run().map_err(StackError::run)?;
        let mut shared = shared.borrow_mut();
        if let Some(failure) = shared.failure.take() {
            return Err(StackError::run(failure));
        }
        shared.meter.check().map_err(StackError::run)?;
        Ok(Measured {
            altered: shared.requests.altered(),
            elapsed: executor.handle().now() - start,
            latency: std::mem::take(&mut shared.latency),
            stamps: shared.stamps.take(),
            pages_checked: None,
        })
    }
}

/// Executes requests until none remains, or until a request of any user has failed.
async fn user<D: Observed + 'static>(
    shared: Rc<RefCell<Shared>>,
    pool: BufferPool<D>,
    handle: Handle<D>,
    cpu: Nanos,
) {
    loop {
        let start = handle.now();
        // End the borrow before the wait below, during which other users borrow the shared state.
        let request = {
            let mut shared = shared.borrow_mut();
            if shared.left == 0 || shared.failure.is_some() {
                return;
            }
            shared.left -= 1;
            shared.progress.left(shared.left, shared.ops);
            shared.meter.submit(start);
            shared.requests.next_page()
        };
        // The run never has more requests than its trace, so this never ends the task early.
        let Some(request) = request else { return };
        if cpu > Nanos::ZERO {
            handle.compute(cpu).await;
        }
        let page = PageId(request.page);
        let outcome = if request.op == Op::Write {
            // A hit is the common case, so try it first without a future.
            let guard = match pool.try_write(page) {
                Some(guard) => Ok(guard),
                None => pool.write(page).await,
            };
            guard
                .map_err(|error| error.to_string())
                .and_then(|mut guard| shared.borrow_mut().change(request.page, &mut guard))
        } else {
            let guard = match pool.try_read(page) {
                Some(guard) => Ok(guard),
                None => pool.read(page).await,
            };
            guard
                .map_err(|error| error.to_string())
                .and_then(|guard| shared.borrow_mut().check(request.page, guard.bytes()))
        };
        let end = handle.now();
        let mut shared = shared.borrow_mut();
        shared.latency.record(end - start);
        shared.meter.complete(end, end - start);
        if let Err(failure) = outcome {
            shared.failure.get_or_insert(failure);
        }
    }
}

pub(super) fn check_counters(counters: &PoolCounters, ops: u64) -> Result<(), StackError> {
    let PoolCounters { hits, misses, read_ios, pages_read, write_ios, pages_written, .. } = *counters;
    // Each read is of one page, for a miss or a prefetch. Each write is of at least one page. A prefetched
    // page that is still in the pool counts neither as a hit nor as wasted.
    let reads = misses + counters.prefetched;
    let used_up = counters.prefetch_hits + counters.prefetch_wasted;
    if hits + misses != ops
        || (pages_read, read_ios) != (reads, reads)
        || write_ios > pages_written
        || used_up > counters.prefetched
    {
        return Err(StackError::run(format!(
            "the pool's counts do not add up for {ops} requests: {counters:?}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
