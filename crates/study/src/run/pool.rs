//! A workload against a buffer pool on a device, in a closed loop.
//!
//! The users share one stream of requests: whoever is free takes the next. So the requests, and
//! their order, are the same for every policy that is compared. Each user does one request after
//! another without pause; CPU cost, if any, is charged to the one core that all share.

use super::done::{Done, set_collecting};
use super::{Progress, run_id, set_cost, set_latency};
use crate::device::{DeviceDescription, DeviceUser, Observed};
use crate::error::StudyError;
use crate::table::Row;
use crate::workload::{BoundWorkload, Source, is_write};
use fulgurite_base::{Histogram, Lpn, Nanos, PageId};
use fulgurite_device::{Arena, Executor, Handle, Meter, Operation};
use fulgurite_pool::{
    BufferPool, MissCounter, PoolConfig, PoolCounters, PrefetchConfig, ReplacementConfig, WriteBack,
    WriteBackConfig, WriteGuard,
};
use fulgurite_workload::Request;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    pub replacement: ReplacementConfig,
    /// The same as typed.
    pub replacement_name: String,
    /// The write-back policy, as asked for.
    pub write_back_config: WriteBackConfig,
    /// What it means for the drive.
    pub write_back: WriteBack,
    /// The same as typed.
    pub write_back_name: String,
    /// The prefetch policy.
    pub prefetch: PrefetchConfig,
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
            self.workload.canonical(),
            self.device.canonical(),
            self.replacement,
            self.write_back_config,
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
        row.set_some("channels", self.device.simulated().map(|config| config.channels));
        set_collecting(&mut row, &self.device);
        row.set("replacement", self.replacement_name.as_str());
        row.set("write_back", self.write_back_name.as_str());
        let WriteBack { n_e, buffers, ahead, .. } = self.write_back;
        row.set("n_w", self.write_back.batch_pages());
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
        if self.pages < u64::MAX {
            row.set("pages", self.pages);
        }
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
        row.set_some("pages_checked", measured.pages_checked);
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
    failure: Option<String>,
    stamps: Option<Stamps>,
    progress: Progress,
}

impl Shared {
    /// A page is changed by a user.
    fn change<D: Observed + 'static>(&mut self, page: u64, guard: &mut WriteGuard<D>) -> Result<(), String> {
        let Some(stamps) = &mut self.stamps else { return Ok(()) };
        stamps.check(page, guard.bytes())?;
        stamps.change(page, guard.bytes_mut());
        Ok(())
    }

    /// A page is read by a user.
    fn check(&mut self, page: u64, bytes: &[u8]) -> Result<(), String> {
        self.stamps.as_mut().map_or(Ok(()), |stamps| stamps.check(page, bytes))
    }
}

#[derive(Default)]
struct Measured {
    elapsed: Nanos,
    latency: Histogram,
    /// What the pages must hold, where the device keeps contents.
    stamps: Option<Stamps>,
    /// Pages whose contents were compared with what was written last.
    pages_checked: Option<u64>,
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
        let replacement = self.replacement.start(self.frames)?;
        let mut counter = MissCounter::new(self.frames, replacement, self.write_back.clone());
        let mut slice = Vec::with_capacity(SLICE);
        let mut left = self.ops;
        let mut more = true;
        while left > 0 && more {
            slice.clear();
            let mut keep = |request: Request| slice.push((PageId(request.page), is_write(&request)));
            if left == u64::MAX {
                more = source.for_some(keep);
            } else {
                let requests = source.by_ref().take(left.min(SLICE as u64) as usize);
                left -= requests.map(&mut keep).count() as u64;
                more = !slice.is_empty();
            }
            counter.request_all(&slice);
            progress.add(slice.len() as u64);
        }
        if let Some(failure) = source.failure() {
            return Err(StudyError::request(failure));
        }
        let counters = counter.counters();
        let ops = counters.hits + counters.misses;
        check_counters(&counters, ops)?;
        let mut row = self.row(&Measured::default(), counters);
        row.set("ops", ops);
        row.set("hit_ratio", counters.hits as f64 / ops as f64);
        set_cost(&mut row, start, ops);
        Ok(row)
    }

    fn run_on<D: Observed + 'static>(&self, device: D, progress: &Progress) -> Result<Row, StudyError> {
        let start = Instant::now();
        let executor = Executor::new(device);
        let replacement = self.replacement.start(self.frames)?;
        let config = PoolConfig {
            prefetch: self.prefetch.start()?,
            ..PoolConfig::new(self.frames, self.page_bytes, replacement, self.write_back.clone())
        };
        let pool = BufferPool::new(executor.handle(), config)
            .map_err(|error| StudyError::request(error.to_string()))?;
        let mut measured = self.run_users(&executor, &pool, progress)?;
        let counters = pool.counters();
        check_counters(&counters, self.ops)?;
        let flushing = pool.clone();
        executor
            .block_on(async move { flushing.flush().await })
            .map_err(StudyError::run)?
            .map_err(StudyError::run)?;
        let counters = PoolCounters { pages_flushed: pool.counters().pages_flushed, ..counters };
        if let Some(stamps) = measured.stamps.take() {
            let checked = self.check_drive(&executor, stamps)?;
            measured.pages_checked = Some(checked);
        }
        let mut row = self.row(&measured, counters);
        let done = executor
            .with_device(|device| {
                let done = Done::by(device);
                device.settle();
                device.verify(true).map(|()| done)
            })
            .map_err(StudyError::run)?;
        let written = counters.pages_written + counters.pages_flushed;
        let expected = written * u64::from(self.page_bytes / self.device.page_bytes());
        if let Some(received) = done.host_pages_written().filter(|received| *received != expected) {
            return Err(StudyError::run(format!(
                "conservation is broken: the pool wrote {expected} drive pages, the drive received {received}"
            )));
        }
        done.set(&mut row);
        set_cost(&mut row, start, self.ops);
        Ok(row)
    }

    /// Reads every page that was written from the drive itself and compares it. Returns how many pages
    /// were compared in the whole run.
    fn check_drive<D: Observed + 'static>(
        &self,
        executor: &Executor<D>,
        stamps: Stamps,
    ) -> Result<u64, StudyError> {
        const READERS: u64 = 32;
        let stamps = Rc::new(RefCell::new(stamps));
        let failure = Rc::new(RefCell::new(None));
        let device_pages = self.page_bytes / self.device.page_bytes();
        for reader in 0..READERS {
            let (stamps, failure, handle) = (Rc::clone(&stamps), Rc::clone(&failure), executor.handle());
            let (pages, bytes) = (self.pages, self.page_bytes as usize);
            executor.spawn(async move {
                let buffer = Arena::new(bytes).buffer(0, bytes);
                for page in (reader..pages).step_by(READERS as usize) {
                    if stamps.borrow().versions[page as usize] == 0 || failure.borrow().is_some() {
                        continue;
                    }
                    let lpn = Lpn(page * u64::from(device_pages));
                    let read = Operation::Read { lpn, pages: device_pages, into: Some(buffer.clone()) };
                    let outcome = handle.submit(read).await.map_err(|error| format!("page {page}: {error}"));
                    // SAFETY: the read has ended, and the buffer is this task's own.
                    let bytes = unsafe { buffer.bytes() };
                    let checked = outcome.and_then(|()| stamps.borrow_mut().check(page, bytes));
                    if let Err(error) = checked {
                        failure.borrow_mut().get_or_insert(error);
                    }
                }
            });
        }
        executor.run().map_err(StudyError::run)?;
        if let Some(failure) = failure.take() {
            return Err(StudyError::run(format!("after the flush, on the drive itself: {failure}")));
        }
        Ok(stamps.borrow().checked)
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
            stamps: self.device.is_real().then(|| Stamps::new(self.pages)),
            progress: progress.clone(),
        }));
        let start = executor.handle().now();
        for _ in 0..self.users {
            executor.spawn(user(Rc::clone(&shared), pool.clone(), executor.handle(), self.cpu_per_request));
        }
        executor.run().map_err(StudyError::run)?;
        let mut shared = shared.borrow_mut();
        if let Some(failure) = shared.failure.take() {
            return Err(StudyError::run(failure));
        }
        shared.meter.check().map_err(StudyError::run)?;
        Ok(Measured {
            elapsed: executor.handle().now() - start,
            latency: std::mem::take(&mut shared.latency),
            stamps: shared.stamps.take(),
            pages_checked: None,
        })
    }
}

/// What this run has written, page by page, where the device keeps contents. Every write leaves a stamp;
/// every read of a page that was written finds the last one.
struct Stamps {
    run: u64,
    /// How often each page was changed.
    versions: Vec<u32>,
    checked: u64,
}

impl Stamps {
    fn new(pages: u64) -> Stamps {
        Stamps {
            run: u64::from(std::process::id()) << 32 ^ STAMPED_RUNS.fetch_add(1, Ordering::Relaxed),
            versions: vec![0; pages as usize],
            checked: 0,
        }
    }

    /// The stamp of a page: the run, the page and the version, so that no other page and no earlier
    /// content passes for it.
    fn stamp(&self, page: u64) -> [u8; 20] {
        let mut stamp = [0; 20];
        stamp[..8].copy_from_slice(&(self.run ^ 0x6675_6c67_7572_6974).to_le_bytes());
        stamp[8..16].copy_from_slice(&page.to_le_bytes());
        stamp[16..].copy_from_slice(&self.versions[page as usize].to_le_bytes());
        stamp
    }

    fn change(&mut self, page: u64, bytes: &mut [u8]) {
        self.versions[page as usize] += 1;
        let stamp = self.stamp(page);
        bytes[..stamp.len()].copy_from_slice(&stamp);
        let end = bytes.len() - stamp.len();
        bytes[end..].copy_from_slice(&stamp);
    }

    /// What is wrong with a page that was read, if anything.
    fn check(&mut self, page: u64, bytes: &[u8]) -> Result<(), String> {
        let stamp = self.stamp(page);
        let (first, last) = (&bytes[..stamp.len()], &bytes[bytes.len() - stamp.len()..]);
        let written = self.versions[page as usize] > 0;
        self.checked += u64::from(written);
        match (written, first == stamp && last == stamp) {
            (true, false) => Err(format!(
                "page {page} is not what was written last (version {}): an update was lost or misplaced",
                self.versions[page as usize]
            )),
            (false, _) if first[..8] == stamp[..8] => {
                Err(format!("page {page} was never written, and has the stamp of another page"))
            }
            _ => Ok(()),
        }
    }
}

/// Tells runs of one process apart.
static STAMPED_RUNS: AtomicU64 = AtomicU64::new(0);

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
        let outcome = if is_write(&request) {
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
