//! Timed requests against a drive, without a pool between: by their arrival times (open loop), or by a
//! number of users who each wait for their last request (closed loop).
//!
//! In an open loop a request's response time counts from its arrival, so a drive that falls behind shows
//! it. Addresses of a trace that reach beyond the drive are scaled down to it, or wrapped round.

use super::done::{Done, set_collecting};
use super::request_log::RequestLog;
use super::{Progress, run_id, set_cost};
use crate::device::{DeviceDescription, DeviceUser, Observed};
use crate::error::StudyError;
use crate::table::Row;
use crate::timeline;
use crate::workload::{AddressMap, ReplaySource, ReplayWorkload};
use fulgurite_base::StreamId;
use fulgurite_base::{Histogram, Lpn, Nanos};
use fulgurite_device::{Command, Completion, Meter, Operation, Tag};
use fulgurite_ssd::{Served, Waits};
use fulgurite_workload::{Op, Request};
use slab::Slab;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Instant;

/// Who decides when a request is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// The workload's times, divided by the speed.
    Times {
        /// Time passes this many times as fast.
        speed: f64,
    },
    /// So many requests a second: the workload's times stretched, or even gaps where it has none.
    Rate {
        /// Requests per second.
        requests_s: f64,
    },
    /// So many users, each with one request outstanding.
    Users(u32),
}

/// A replay, checked.
pub struct ReplayRun {
    /// What tables call the workload.
    pub workload_name: String,
    /// The requests.
    pub workload: ReplayWorkload,
    /// How the workload's addresses map to the drive's pages.
    pub addresses: AddressMap,
    /// The drive.
    pub device: DeviceDescription,
    /// When requests are made.
    pub arrivals: Arrivals,
    /// Requests.
    pub ops: u64,
    /// A row for every interval of this length instead of one for all.
    pub interval: Option<Nanos>,
    /// Where the run's timeline goes.
    pub trace_out: Option<PathBuf>,
    /// Where a line for every request goes.
    pub requests_out: Option<PathBuf>,
    /// Of all randomness.
    pub seed: u64,
}

/// The longest timeline: what a viewer can still show.
const SPANS_AT_MOST: usize = 2_000_000;

impl ReplayRun {
    /// Executes the run: one row, or one for every interval.
    pub fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StudyError> {
        self.device.with(self.seed, 1, Execution { run: self, progress })?
    }

    fn describe(&self) -> String {
        format!(
            "replay workload={} device={} addresses={:?} arrivals={:?} ops={} interval={:?} seed={}",
            self.workload.canonical(&self.workload_name),
            self.device.canonical(),
            self.addresses,
            self.arrivals,
            self.ops,
            self.interval,
            self.seed
        )
    }

    /// The columns that say what was run.
    fn identity(&self) -> Row {
        let mut row = Row::default();
        row.set("run_id", run_id(&self.describe()));
        row.set("workload", self.workload_name.as_str());
        row.set("device", self.device.name.as_str());
        set_collecting(&mut row, &self.device);
        row.set_some("schedule", self.device.schedule());
        match self.arrivals {
            Arrivals::Times { speed } => row.set("speed", speed),
            Arrivals::Rate { requests_s } => row.set("rate_requests_s", requests_s),
            Arrivals::Users(users) => row.set("users", users),
        }
        row.set("page_bytes", self.device.page_bytes());
        row.set("seed", self.seed);
        row.set("ops", self.ops);
        row
    }
}

struct Execution<'a> {
    run: &'a ReplayRun,
    progress: &'a Progress,
}

impl DeviceUser for Execution<'_> {
    type Output = Result<Vec<Row>, StudyError>;

    fn with<D: Observed + 'static>(self, mut device: D) -> Self::Output {
        let start = Instant::now();
        device.keep_served();
        if self.run.trace_out.is_some() {
            device.record_timeline(SPANS_AT_MOST);
        }
        let source = self.run.workload.source(&self.run.device, self.run.addresses, self.run.seed)?;
        let mut replay = Replay {
            // A real drive may have been made ready for a while.
            start: device.now(),
            device,
            source,
            arrivals: self.run.arrivals,
            left: self.run.ops,
            made: 0,
            tells_waits: false,
            requests: Slab::new(),
            backlog: VecDeque::new(),
            meter: Meter::default(),
            all: Class::default(),
            reads: Class::default(),
            writes: Class::default(),
            intervals: Intervals::new(self.run.interval),
            log: self.run.requests_out.as_deref().map(RequestLog::create).transpose()?,
            progress: self.progress,
        };
        replay.run()?;
        let elapsed = replay.device.now() - replay.start;
        replay.flush()?;
        let done = Done::by(&replay.device);
        replay.device.settle();
        replay.meter.check().map_err(StudyError::run)?;
        replay.device.verify(true).map_err(StudyError::run)?;
        if let Some(log) = replay.log.take() {
            log.finish()?;
        }
        if let (Some(path), Some(recorded)) = (&self.run.trace_out, replay.device.timeline()) {
            timeline::write(path, recorded)?;
        }
        if self.run.interval.is_some() {
            return Ok(replay.intervals.rows(&self.run.identity(), elapsed, replay.tells_waits));
        }
        let mut row = self.run.identity();
        replay.set_results(&mut row, elapsed);
        done.set(&mut row);
        replay.device.describe_wear(&mut row, elapsed);
        set_cost(&mut row, start, self.run.ops);
        Ok(vec![row])
    }
}

/// A request that is not over.
struct Pending {
    op: Op,
    arrived: Nanos,
    /// Later than that where time has passed of itself, on a real drive.
    submitted: Nanos,
    page: u64,
    pages: u32,
    /// Commands of it that are not over.
    commands: u32,
}

/// Requests of one kind that are over.
#[derive(Default)]
struct Class {
    latency: Histogram,
    pages: u64,
    queue_ns: u128,
    gc_ns: u128,
    die_ns: u128,
    channel_ns: u128,
    buffer_ns: u128,
    gc_max_ns: u64,
}

impl Class {
    fn record(&mut self, pages: u32, latency: Nanos, queue: Nanos, waits: &Waits) {
        self.latency.record(latency);
        self.pages += u64::from(pages);
        self.queue_ns += u128::from(queue.0);
        self.gc_ns += u128::from(waits.gc);
        self.die_ns += u128::from(waits.die);
        self.channel_ns += u128::from(waits.channel);
        self.buffer_ns += u128::from(waits.buffer);
        self.gc_max_ns = self.gc_max_ns.max(waits.gc);
    }
}

/// A replay under way.
struct Replay<'a, D> {
    device: D,
    /// When the run begins, on the device's clock.
    start: Nanos,
    source: ReplaySource,
    arrivals: Arrivals,
    left: u64,
    made: u64,
    /// The device has told what requests waited for.
    tells_waits: bool,
    requests: Slab<Pending>,
    /// Commands that the drive's queue has no room for.
    backlog: VecDeque<Command>,
    meter: Meter,
    all: Class,
    reads: Class,
    writes: Class,
    intervals: Intervals,
    log: Option<RequestLog>,
    progress: &'a Progress,
}

impl<D: Observed> Replay<'_, D> {
    fn run(&mut self) -> Result<(), StudyError> {
        if let Arrivals::Users(users) = self.arrivals {
            for _ in 0..u64::from(users).min(self.left) {
                self.make(None)?;
            }
        }
        let mut next = self.next_arrival();
        let mut completions = Vec::new();
        let mut served = Vec::new();
        while next.is_some() || !self.requests.is_empty() {
            while let Some((at, request)) = next.take_if(|(at, _)| *at <= self.device.now()) {
                self.submit(at, request);
                next = self.next_arrival();
            }
            let deadline = next.as_ref().map(|(at, _)| *at);
            self.device.wait(deadline, &mut completions);
            self.device.take_served(&mut served);
            if completions.is_empty() && deadline.is_none() {
                return Err(StudyError::run(format!(
                    "the drive stalled with {} requests",
                    self.requests.len()
                )));
            }
            self.tells_waits |= !served.is_empty();
            let mut served = served.drain(..);
            for completion in completions.drain(..) {
                if self.completed(completion, served.next())? && matches!(self.arrivals, Arrivals::Users(_)) {
                    self.make(Some(completion.at))?;
                }
            }
            while let Some(command) = self.backlog.pop_front() {
                if let Err(full) = self.device.submit(command) {
                    self.backlog.push_front(full.0);
                    break;
                }
            }
        }
        Ok(())
    }

    /// The next request of an open loop and its time.
    fn next_arrival(&mut self) -> Option<(Nanos, Request)> {
        if self.left == 0 || matches!(self.arrivals, Arrivals::Users(_)) {
            return None;
        }
        let request = self.take()?;
        let at = match self.arrivals {
            Arrivals::Times { speed } => request.at.0 as f64 / speed,
            Arrivals::Rate { requests_s } => match self.source.mean_gap_ns() {
                Some(mean) => request.at.0 as f64 * (1e9 / requests_s) / mean,
                None => (self.made - 1) as f64 * 1e9 / requests_s,
            },
            Arrivals::Users(_) => 0.0,
        };
        Some((self.start + Nanos(at as u64), request))
    }

    fn take(&mut self) -> Option<Request> {
        self.left -= 1;
        self.made += 1;
        self.progress.left(self.left);
        self.source.next()
    }

    /// Makes the next request of a closed loop.
    fn make(&mut self, at: Option<Nanos>) -> Result<(), StudyError> {
        if self.left == 0 {
            return Ok(());
        }
        let request =
            self.take().ok_or_else(|| StudyError::run("the workload ended before its last request"))?;
        self.submit(at.unwrap_or(self.start), request);
        Ok(())
    }

    /// Submits a request, in several commands where it is too long for one.
    fn submit(&mut self, arrived: Nanos, request: Request) {
        let most = self.device.caps().pages_per_command;
        let commands = if request.op == Op::Trim { 1 } else { request.pages.div_ceil(most) };
        let submitted = self.device.now();
        let Request { op, page, pages, .. } = request;
        let tag = Tag(self.requests.insert(Pending { op, arrived, submitted, page, pages, commands }) as u64);
        self.meter.submit(submitted);
        for part in 0..commands {
            let first = part * most;
            let lpn = Lpn(request.page + u64::from(first));
            let pages = if request.op == Op::Trim { request.pages } else { most.min(request.pages - first) };
            let operation = match request.op {
                Op::Read => Operation::read(lpn, pages),
                Op::Write => Operation::Write { lpn, pages, from: None, stream: StreamId(request.stream) },
                Op::Trim => Operation::Trim { lpn, pages },
            };
            let command = Command { tag, operation };
            if !self.backlog.is_empty() {
                self.backlog.push_back(command);
            } else if let Err(full) = self.device.submit(command) {
                self.backlog.push_back(full.0);
            }
        }
    }

    /// One command is over; true if its request is.
    fn completed(&mut self, completion: Completion, served: Option<Served>) -> Result<bool, StudyError> {
        completion.status.map_err(StudyError::run)?;
        let key = completion.tag.0 as usize;
        let Some(pending) = self.requests.get_mut(key) else {
            return Err(StudyError::run(format!("the drive completed tag {key}, which is not in flight")));
        };
        pending.commands -= 1;
        if pending.commands > 0 {
            return Ok(false);
        }
        let Pending { op, arrived, submitted, page, pages, .. } = self.requests.remove(key);
        let latency = completion.at - arrived;
        // What the last of its commands waited for.
        let waits = served.map_or(Waits::default(), |served| served.waits);
        let queue = served.map_or(Nanos::ZERO, |served| served.submitted.saturating_sub(arrived));
        self.meter.complete(completion.at, completion.at - submitted);
        self.all.record(pages, latency, queue, &waits);
        match op {
            Op::Read => self.reads.record(pages, latency, queue, &waits),
            Op::Write => self.writes.record(pages, latency, queue, &waits),
            Op::Trim => {}
        }
        self.intervals.record(completion.at - self.start, op, pages, latency, &waits);
        if let Some(log) = &mut self.log {
            let waits = self.tells_waits.then_some((queue, &waits));
            log.write(arrived - self.start, op, page, pages, latency, waits)?;
        }
        Ok(true)
    }

    /// Lets the drive write all that it has buffered.
    fn flush(&mut self) -> Result<(), StudyError> {
        let tag = Tag(u64::MAX);
        let refused = || StudyError::run("an idle drive refused a flush");
        self.device.submit(Command { tag, operation: Operation::Flush }).map_err(|_| refused())?;
        let mut completions = Vec::new();
        self.device.wait(None, &mut completions);
        if completions.is_empty() { Err(refused()) } else { Ok(()) }
    }

    fn set_results(&self, row: &mut Row, elapsed: Nanos) {
        row.set("elapsed_ns", elapsed.0);
        let bytes = |pages: u64| pages as f64 * f64::from(self.device.caps().page_bytes);
        if elapsed > Nanos::ZERO {
            let seconds = elapsed.as_secs_f64();
            row.set("throughput_ops_s", self.all.latency.count() as f64 / seconds);
            row.set("read_bandwidth_bytes_s", bytes(self.reads.pages) / seconds);
            row.set("write_bandwidth_bytes_s", bytes(self.writes.pages) / seconds);
        }
        row.set("reads", self.reads.latency.count());
        row.set("writes", self.writes.latency.count());
        super::set_latency(row, &self.all.latency);
        row.set_some(
            "latency_variance_ns2",
            self.all.latency.stddev_ns().map(|deviation| deviation * deviation),
        );
        for (class, columns) in [(&self.reads, READ_COLUMNS), (&self.writes, WRITE_COLUMNS)] {
            let latency = &class.latency;
            row.set_some(columns[0], latency.mean_ns());
            row.set_some(columns[1], latency.stddev_ns());
            let percents = [50.0, 95.0, 99.0, 99.9];
            for (column, percent) in columns[2..6].iter().zip(percents) {
                row.set_some(column, latency.percentile_ns(percent));
            }
            row.set_some(columns[6], latency.max_ns());
            let mean = |sum: u128| (latency.count() > 0).then(|| sum as f64 / latency.count() as f64);
            if self.tells_waits {
                row.set_some(columns[7], mean(class.gc_ns));
                row.set_some(columns[8], mean(class.die_ns));
                row.set_some(columns[9], mean(class.channel_ns));
            }
        }
        if !self.tells_waits {
            return;
        }
        let count = self.all.latency.count().max(1) as f64;
        row.set("wait_queue_mean_ns", self.all.queue_ns as f64 / count);
        row.set("wait_gc_mean_ns", self.all.gc_ns as f64 / count);
        row.set("wait_die_mean_ns", self.all.die_ns as f64 / count);
        row.set("wait_channel_mean_ns", self.all.channel_ns as f64 / count);
        row.set("wait_buffer_mean_ns", self.all.buffer_ns as f64 / count);
        row.set("wait_gc_max_ns", self.all.gc_max_ns);
    }
}

const READ_COLUMNS: [&str; 10] = [
    "read_latency_mean_ns",
    "read_latency_stddev_ns",
    "read_latency_p50_ns",
    "read_latency_p95_ns",
    "read_latency_p99_ns",
    "read_latency_p999_ns",
    "read_latency_max_ns",
    "read_wait_gc_mean_ns",
    "read_wait_die_mean_ns",
    "read_wait_channel_mean_ns",
];

const WRITE_COLUMNS: [&str; 10] = [
    "write_latency_mean_ns",
    "write_latency_stddev_ns",
    "write_latency_p50_ns",
    "write_latency_p95_ns",
    "write_latency_p99_ns",
    "write_latency_p999_ns",
    "write_latency_max_ns",
    "write_wait_gc_mean_ns",
    "write_wait_die_mean_ns",
    "write_wait_channel_mean_ns",
];

/// What happened in each interval of a run, by the ends of requests.
struct Intervals {
    length: Option<Nanos>,
    intervals: Vec<Interval>,
}

#[derive(Clone, Copy, Default)]
struct Interval {
    requests: u64,
    read_pages: u64,
    write_pages: u64,
    latency_ns: u128,
    latency_max_ns: u64,
    gc_ns: u128,
}

/// No more than this many intervals are kept; a run that is longer has its tail left out of the series.
const INTERVALS_AT_MOST: usize = 1 << 20;

impl Intervals {
    fn new(length: Option<Nanos>) -> Intervals {
        Intervals { length, intervals: Vec::new() }
    }

    fn record(&mut self, at: Nanos, op: Op, pages: u32, latency: Nanos, waits: &Waits) {
        let Some(length) = self.length else { return };
        let index = (at.0 / length.0) as usize;
        if index >= INTERVALS_AT_MOST {
            return;
        }
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, Interval::default());
        }
        let interval = &mut self.intervals[index];
        interval.requests += 1;
        match op {
            Op::Read => interval.read_pages += u64::from(pages),
            Op::Write => interval.write_pages += u64::from(pages),
            Op::Trim => {}
        }
        interval.latency_ns += u128::from(latency.0);
        interval.latency_max_ns = interval.latency_max_ns.max(latency.0);
        interval.gc_ns += u128::from(waits.gc);
    }

    fn rows(&self, identity: &Row, elapsed: Nanos, tells_waits: bool) -> Vec<Row> {
        let Some(length) = self.length else { return Vec::new() };
        let page_bytes = identity.number("page_bytes").unwrap_or(0.0);
        let rows = self.intervals.iter().enumerate().map(|(index, interval)| {
            let start = index as u64 * length.0;
            // The last one may be cut short.
            let seconds = Nanos(length.0.min(elapsed.0 - start).max(1)).as_secs_f64();
            let mut row = identity.clone();
            row.set("time_ns", start);
            row.set("interval_ns", length.0);
            row.set("requests", interval.requests);
            row.set("throughput_ops_s", interval.requests as f64 / seconds);
            let bandwidth = |pages: u64| pages as f64 * page_bytes / seconds;
            row.set("bandwidth_bytes_s", bandwidth(interval.read_pages + interval.write_pages));
            row.set("read_bandwidth_bytes_s", bandwidth(interval.read_pages));
            row.set("write_bandwidth_bytes_s", bandwidth(interval.write_pages));
            if interval.requests > 0 {
                row.set("latency_mean_ns", interval.latency_ns as f64 / interval.requests as f64);
                row.set("latency_max_ns", interval.latency_max_ns);
                if tells_waits {
                    row.set("wait_gc_mean_ns", interval.gc_ns as f64 / interval.requests as f64);
                }
            }
            row
        });
        rows.collect()
    }
}
