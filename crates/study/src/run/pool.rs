//! A workload against a buffer pool on a device, in a closed loop.
//!
//! The users share one stream of requests: whoever is free takes the next. So the requests, and
//! their order, are the same for every policy that is compared. Each user does one request after
//! another without pause; CPU cost, if any, is charged to the one core that all share.

use super::{Progress, run_id, set_cost, set_latency};
use crate::device::{DeviceDescription, DeviceUser, Observed};
use crate::error::StudyError;
use crate::table::Row;
use crate::workload::{BoundWorkload, Source, is_write};
use fulgurite_base::{Histogram, Nanos, PageId, Spec};
use fulgurite_device::{Executor, Handle, Meter};
use fulgurite_pool::{
    BufferPool, MissCounter, PoolConfig, PoolCounters, PoolError, Prefetch, Replacement, WriteBack,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

/// A pool run, checked.
pub struct PoolRun {
    /// What tables call the workload.
    pub workload_name: String,
    /// The requests.
    pub workload: BoundWorkload,
    /// The drive.
    pub device: DeviceDescription,
    /// The replacement policy.
    pub replacement: Spec,
    /// The same as typed.
    pub replacement_name: String,
    /// The write-back policy.
    pub write_back: WriteBack,
    /// The same as typed.
    pub write_back_name: String,
    /// The prefetch policy.
    pub prefetch: Prefetch,
    /// Frames in the pool.
    pub frames: u32,
    /// Pages that the workload ranges over.
    pub pages: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Requests.
    pub ops: u64,
    /// Users in the closed loop.
    pub users: u32,
    /// CPU time of a request.
    pub cpu_per_request: Nanos,
    /// Of all randomness.
    pub seed: u64,
}

impl PoolRun {
    /// Executes the run.
    pub fn execute(&self, progress: &Progress) -> Result<Row, StudyError> {
        if self.device.is_none() {
            return self.count(progress);
        }
        let request_pages = self.page_bytes / self.device.page_bytes();
        self.device.with(self.seed, request_pages, Execution { run: self, progress })?
    }

    /// Executes the run on `device`, in place of its own.
    pub fn execute_on(&self, device: impl Observed + 'static) -> Result<Row, StudyError> {
        Execution { run: self, progress: &Progress::default() }.with(device)
    }

    fn describe(&self) -> String {
        format!(
            "pool workload={} device={} replacement={} write_back={} prefetch={} frames={} pages={} page={} ops={} users={} cpu={} seed={}",
            self.workload.canonical(&self.workload_name),
            self.device.canonical(),
            self.replacement_name,
            self.write_back,
            self.prefetch,
            self.frames,
            self.pages,
            self.page_bytes,
            self.ops,
            self.users,
            self.cpu_per_request.0,
            self.seed
        )
    }

    fn row(&self, measured: &Measured, counters: PoolCounters) -> Row {
        let mut row = Row::default();
        row.set("run_id", run_id(&self.describe()));
        row.set("workload", self.workload_name.as_str());
        row.set("device", self.device.name.as_str());
        row.set("replacement", self.replacement_name.as_str());
        row.set("write_back", self.write_back_name.as_str());
        let WriteBack { n_w, n_e, buffers, ahead, .. } = self.write_back;
        row.set("n_w", n_w);
        if !self.prefetch.is_none() {
            row.set("n_e", n_e);
        }
        if buffers > 0 {
            row.set("buffers", buffers);
        }
        if ahead > 0 {
            row.set("ahead", ahead);
        }
        row.set("prefetch", self.prefetch.name());
        row.set("frames", self.frames);
        row.set("pages", self.pages);
        row.set("page_bytes", self.page_bytes);
        row.set("users", self.users);
        row.set("cpu_per_request_ns", self.cpu_per_request.0);
        row.set("seed", self.seed);
        row.set("ops", self.ops);
        row.set("elapsed_ns", measured.elapsed.0);
        if measured.elapsed > Nanos::ZERO {
            row.set("throughput_ops_s", self.ops as f64 / measured.elapsed.as_secs_f64());
        }
        row.set("hits", counters.hits);
        row.set("misses", counters.misses);
        row.set("hit_ratio", counters.hits as f64 / self.ops as f64);
        row.set("read_ios", counters.read_ios);
        row.set("write_ios", counters.write_ios);
        row.set("pages_read", counters.pages_read);
        row.set("pages_written", counters.pages_written);
        row.set("pages_flushed", counters.pages_flushed);
        row.set("prefetched", counters.prefetched);
        row.set("prefetch_hits", counters.prefetch_hits);
        row.set("prefetch_wasted", counters.prefetch_wasted);
        row.set("write_waits", counters.write_waits);
        row.set("rescued", counters.rescued);
        set_latency(&mut row, &measured.latency);
        row
    }
}

/// What the users of one run share.
struct Shared {
    source: Source,
    left: u64,
    latency: Histogram,
    meter: Meter,
    failure: Option<PoolError>,
    progress: Progress,
}

#[derive(Default)]
struct Measured {
    elapsed: Nanos,
    latency: Histogram,
}

/// A run under way.
struct Execution<'a> {
    run: &'a PoolRun,
    progress: &'a Progress,
}

impl DeviceUser for Execution<'_> {
    type Output = Result<Row, StudyError>;

    fn with<D: Observed + 'static>(self, device: D) -> Self::Output {
        self.run.run_on(device, self.progress)
    }
}

/// Requests that are handed to a [`MissCounter`] at once.
const SLICE: usize = 4096;

impl PoolRun {
    /// Counts misses and writes without a drive, and so without time.
    fn count(&self, progress: &Progress) -> Result<Row, StudyError> {
        let mut source = self.workload.source(self.pages, self.page_bytes, self.seed)?;
        let start = Instant::now();
        let replacement = Replacement::from_spec(self.replacement.clone(), self.frames)?;
        let mut counter = MissCounter::new(self.frames, replacement, self.write_back);
        let mut slice = Vec::with_capacity(SLICE);
        let mut left = self.ops;
        while left > 0 {
            slice.clear();
            let requests = source.by_ref().take(left.min(SLICE as u64) as usize);
            slice.extend(requests.map(|request| (PageId(request.page), is_write(&request))));
            counter.request_all(&slice);
            left -= slice.len() as u64;
            progress.add(slice.len() as u64);
        }
        let counters = counter.counters();
        check_counters(&counters, self.ops)?;
        let mut row = self.row(&Measured::default(), counters);
        set_cost(&mut row, start, self.ops);
        Ok(row)
    }

    fn run_on<D: Observed + 'static>(&self, device: D, progress: &Progress) -> Result<Row, StudyError> {
        let start = Instant::now();
        let executor = Executor::new(device);
        let replacement = Replacement::from_spec(self.replacement.clone(), self.frames)?;
        let config = PoolConfig {
            prefetch: self.prefetch.clone(),
            ..PoolConfig::new(self.frames, self.page_bytes, replacement, self.write_back)
        };
        let pool = BufferPool::new(executor.handle(), config)
            .map_err(|error| StudyError::request(error.to_string()))?;
        let measured = self.run_users(&executor, &pool, progress)?;
        let counters = pool.counters();
        check_counters(&counters, self.ops)?;
        let flushing = pool.clone();
        executor
            .block_on(async move { flushing.flush().await })
            .map_err(StudyError::run)?
            .map_err(StudyError::run)?;
        let counters = PoolCounters { pages_flushed: pool.counters().pages_flushed, ..counters };
        let mut row = self.row(&measured, counters);
        let drive = executor
            .with_device(|device| device.verify(true).map(|()| device.observe()))
            .map_err(StudyError::run)?;
        if let Some(drive) = drive {
            let written = counters.pages_written + counters.pages_flushed;
            let expected = written * u64::from(self.page_bytes / self.device.page_bytes());
            if drive.host_pages_written != expected {
                return Err(StudyError::run(format!(
                    "conservation is broken: the pool wrote {expected} drive pages, the drive received {}",
                    drive.host_pages_written
                )));
            }
            row.set("host_pages_written", drive.host_pages_written);
            row.set("flash_pages_read", drive.flash_pages_read);
            row.set("flash_pages_programmed", drive.flash_pages_programmed);
            row.set("gc_pages_copied", drive.gc_pages_copied);
            row.set("erases", drive.erases);
            if drive.host_pages_written > 0 {
                row.set(
                    "waf",
                    (drive.host_pages_written + drive.gc_pages_copied) as f64
                        / drive.host_pages_written as f64,
                );
            }
        }
        set_cost(&mut row, start, self.ops);
        Ok(row)
    }

    fn run_users<D: Observed + 'static>(
        &self,
        executor: &Executor<D>,
        pool: &BufferPool<D>,
        progress: &Progress,
    ) -> Result<Measured, StudyError> {
        let shared = Rc::new(RefCell::new(Shared {
            source: self.workload.source(self.pages, self.page_bytes, self.seed)?,
            left: self.ops,
            latency: Histogram::default(),
            meter: Meter::default(),
            failure: None,
            progress: progress.clone(),
        }));
        for _ in 0..self.users {
            executor.spawn(user(Rc::clone(&shared), pool.clone(), executor.handle(), self.cpu_per_request));
        }
        executor.run().map_err(StudyError::run)?;
        let mut shared = shared.borrow_mut();
        if let Some(failure) = shared.failure {
            return Err(StudyError::run(failure));
        }
        shared.meter.check().map_err(StudyError::run)?;
        Ok(Measured { elapsed: executor.handle().now(), latency: std::mem::take(&mut shared.latency) })
    }
}

/// Takes requests until there are none left, or one has failed.
async fn user<D: Observed + 'static>(
    shared: Rc<RefCell<Shared>>,
    pool: BufferPool<D>,
    handle: Handle<D>,
    cpu: Nanos,
) {
    loop {
        let start = handle.now();
        let request = {
            let mut shared = shared.borrow_mut();
            if shared.left == 0 || shared.failure.is_some() {
                return;
            }
            shared.left -= 1;
            shared.progress.left(shared.left);
            shared.meter.submit(start);
            shared.source.next()
        };
        // The number of requests never exceeds a trace's.
        let Some(request) = request else { return };
        if cpu > Nanos::ZERO {
            handle.compute(cpu).await;
        }
        let page = PageId(request.page);
        let hit =
            if is_write(&request) { pool.try_write(page).is_some() } else { pool.try_read(page).is_some() };
        let outcome = match (hit, is_write(&request)) {
            (true, _) => Ok(()),
            (false, true) => pool.write(page).await.map(drop),
            (false, false) => pool.read(page).await.map(drop),
        };
        let end = handle.now();
        let mut shared = shared.borrow_mut();
        shared.latency.record(end - start);
        shared.meter.complete(end, end - start);
        shared.failure = shared.failure.or(outcome.err());
    }
}

fn check_counters(counters: &PoolCounters, ops: u64) -> Result<(), StudyError> {
    let PoolCounters { hits, misses, read_ios, pages_read, write_ios, pages_written, .. } = *counters;
    let reads = misses + counters.prefetched;
    let used_up = counters.prefetch_hits + counters.prefetch_wasted;
    if hits + misses != ops
        || (pages_read, read_ios) != (reads, reads)
        || write_ios > pages_written
        || used_up > counters.prefetched
    {
        return Err(StudyError::run(format!(
            "the pool's counts do not add up for {ops} requests: {counters:?}"
        )));
    }
    Ok(())
}
