//! Executes a run of `replay`, which submits timed requests to a drive without a pool. In an open loop,
//! requests arrive at given times. In a closed loop, each of a number of users waits for the last request
//! before the next one.
//!
//! In an open loop the response time counts from the arrival of a request, so it shows a drive that falls
//! behind. Addresses beyond the end of the drive are mapped to the drive; see [`AddressMap`].

mod arrived;
mod intervals;
pub(crate) mod request_log;
mod rounds;
mod slices;

use super::columns::set_cost;
use super::device_counts::{DeviceCounts, set_collecting, set_wear};
use super::tally::Tally;
use crate::device::Observed;
use crate::open::DeviceUser;
use crate::run::{Arrivals, Requested, Rows};
use crate::workload::{AddressMap, Bound, Requests};
use crate::{Column, Progress, Row, Run, StackError, Unit, progress, timeline};
use arrived::Arrived;
use fulgurite_base::{Lpn, Nanos, StreamId};
use fulgurite_device::{Command, Completion, Meter, Operation, Tag};
use fulgurite_ssd::{Served, Waits};
use fulgurite_workload::{Op, Request};
use intervals::Intervals;
use request_log::RequestLog;
pub(crate) use rounds::ROUNDS_AT_MOST;
use rounds::{Next, Rounds};
use slab::Slab;
use slices::Slices;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The latest arrival of a request in nanoseconds, about 30 years after the start.
const LATEST_ARRIVAL_NS: f64 = 1e18;

/// The largest number of spans in a timeline, so that a viewer can show the timeline.
const SPANS_AT_MOST: usize = 2_000_000;

/// A run and its progress, to be executed on a device of any type.
pub(super) struct Execution<'a> {
    pub run: &'a Run,
    pub requested: &'a Requested,
    pub progress: &'a Progress,
}

/// Describes how the addresses of a trace are mapped that spans more pages than the device has.
fn too_wide(run: &Run, requested: &Requested, span: u64, pages: u64) -> String {
    let device = &run.stack.device;
    let size = |pages: u64| Unit::Bytes.humane((pages * u64::from(device.page_bytes())) as f64);
    let done = match requested.addresses {
        AddressMap::Wrap => "wrapped round",
        AddressMap::Scale | AddressMap::Compact => "scaled down to",
    };
    format!(
        "{} spans {} and {} has {}: its addresses are {done} the drive, so several of its pages may become one \
            (--addresses, or a larger drive, changes that)",
        requested.workload.label,
        size(span),
        device.label,
        size(pages),
    )
}

impl Execution<'_> {
    /// Returns the columns that describe the run.
    fn identity(&self) -> Result<Row, StackError> {
        let stack = &self.run.stack;
        let mut row = self.run.identity()?;
        set_collecting(&mut row, stack);
        row.set_some(Column::Schedule, stack.collect().map(|collect| collect.schedule.to_string()));
        match self.requested.arrivals {
            Arrivals::Times { speed } => row.set(Column::Speed, speed),
            Arrivals::Rate { requests_s } => row.set(Column::RateRequestsS, requests_s),
            Arrivals::Closed { users } => row.set(Column::Users, users),
        }
        row.set(Column::PageBytes, stack.device.page_bytes());
        row.set(Column::Seed, self.run.seed);
        row.set(Column::Ops, self.requested.ops);
        Ok(row)
    }
}

impl Execution<'_> {
    /// Returns the name of the run in remarks.
    fn name(&self) -> String {
        let speed = match self.requested.arrivals {
            Arrivals::Times { speed } if speed != 1.0 => format!(" at {speed}x"),
            Arrivals::Rate { requests_s } => format!(" at {requests_s}/s"),
            _ => String::new(),
        };
        format!("{} on {}{speed}", self.requested.workload.label, self.run.stack.device.label)
    }

    /// Leaves remarks on a trace whose addresses or times do not suit the drive.
    fn remark_on(&self, bound: &Bound) {
        let Execution { run, requested, .. } = self;
        if let Some((span, pages)) = bound.too_wide() {
            progress::remark(too_wide(run, requested, span, pages));
        }
        if !matches!(requested.arrivals, Arrivals::Closed { .. }) && bound.is_timed_in_seconds() {
            progress::remark(format!(
                "all times of {} are whole seconds, so the requests of a second arrive at once and wait for each \
                    other: response times say more of that than of the drive (--users N makes a closed loop)",
                requested.workload.label
            ));
        }
    }
}

impl DeviceUser for Execution<'_> {
    type Output = Result<Vec<Row>, StackError>;

    fn with<D: Observed + 'static>(self, mut device: D) -> Self::Output {
        let Execution { run, requested, progress } = &self;
        let measure = &run.measure;
        let start = Instant::now();
        device.keep_served();
        if measure.timeline.is_some() {
            device.record_timeline(SPANS_AT_MOST);
        }
        let bound = run.bind()?;
        self.remark_on(&bound);
        let mut replay = Replay {
            // Read the clock here, since preparing a real drive has taken time.
            start: device.now(),
            device,
            source: match measure.until_steady {
                true => bound.repeated(run.seed, requested.ops)?,
                false => bound.requests(run.seed)?,
            },
            mean_gap_ns: bound.mean_gap_ns(run.seed)?,
            arrivals: requested.arrivals,
            left: requested.ops,
            made: 0,
            arrived: Arrived::new(requested.ops),
            rounds: None,
            slices: None,
            requests: Slab::new(),
            backlog: VecDeque::new(),
            meter: Meter::default(),
            tally: Tally::default(),
            intervals: Intervals::new(match measure.rows {
                Rows::TimeIntervals(length) => Some(length),
                _ => None,
            }),
            log: measure.requests.as_deref().map(RequestLog::create).transpose()?,
            progress,
        };
        if measure.until_steady {
            let counts = DeviceCounts::of(&replay.device);
            replay.rounds = Some(Rounds::new(requested.ops, replay.start, counts));
            replay.slices = Some(Slices::new(requested.ops));
        }
        replay.run()?;
        // Read the time before the flush, because the run ends with its last request.
        let began = replay.rounds.as_ref().map_or(replay.start, |rounds| rounds.began);
        let elapsed = replay.device.now() - began;
        replay.flush()?;
        replay.device.settle();
        // Read the counts here, so that garbage collection after the last request is not counted.
        let done = DeviceCounts::of(&replay.device);
        let done = match &replay.rounds {
            Some(rounds) => rounds.counts(),
            None => done,
        };
        replay.device.drain_events();
        replay.meter.check().map_err(StackError::run)?;
        replay.device.verify(true).map_err(StackError::run)?;
        // The request log gets its final name only after every check has passed.
        if let Some(log) = replay.log.take() {
            log.finish()?;
        }
        if let (Some(path), Some(recorded)) = (&measure.timeline, replay.device.timeline()) {
            timeline::write(path, recorded)?;
        }
        let mut row = self.identity()?;
        if matches!(measure.rows, Rows::TimeIntervals(_)) {
            return Ok(replay.intervals.rows(&row, elapsed, replay.tally.tells_waits));
        }
        replay.tally.set(&mut row, elapsed, run.stack.device.page_bytes());
        if !matches!(requested.arrivals, Arrivals::Closed { .. }) {
            let is_behind = replay.rounds.as_ref().is_some_and(|rounds| rounds.is_behind);
            replay.arrived.set(&mut row, &self.name(), is_behind);
        }
        if let Some(altered) = replay.source.altered() {
            let is_timed = matches!(requested.arrivals, Arrivals::Times { .. });
            altered.set(&mut row, &requested.workload.label, is_timed);
        }
        if let Some(rounds) = &replay.rounds {
            row.set(Column::Ops, replay.tally.requests());
            rounds.set(&mut row, &self.name());
        }
        if let Some(slices) = &replay.slices {
            slices.set(&mut row);
        }
        done.set(&mut row);
        set_wear(&mut row, &replay.device, &done, elapsed);
        set_cost(&mut row, start, Duration::ZERO, requested.ops);
        Ok(vec![row])
    }
}

/// A request whose commands have not all completed.
struct Pending {
    op: Op,
    arrived: Nanos,
    /// The time of submission. On a real drive it is later than the arrival.
    submitted: Nanos,
    page: u64,
    pages: u32,
    /// The slice of the workload that the request is in, with `--until-steady`.
    slice: usize,
    /// The number of commands of the request that have not completed.
    commands: u32,
}

/// The state of a replay while it runs.
struct Replay<'a, D> {
    device: D,
    /// The beginning of the run, on the device's clock.
    start: Nanos,
    source: Requests,
    /// The mean time between requests in nanoseconds; `None` if the requests have no times.
    mean_gap_ns: Option<f64>,
    arrivals: Arrivals,
    left: u64,
    made: u64,
    arrived: Arrived,
    /// The rounds of the run, with `--until-steady`.
    rounds: Option<Rounds>,
    slices: Option<Slices>,
    requests: Slab<Pending>,
    /// Commands that wait because the drive's queue is full.
    backlog: VecDeque<Command>,
    meter: Meter,
    tally: Tally,
    intervals: Intervals,
    log: Option<RequestLog>,
    progress: &'a Progress,
}

impl<D: Observed> Replay<'_, D> {
    fn run(&mut self) -> Result<(), StackError> {
        if let Arrivals::Closed { users } = self.arrivals {
            for _ in 0..u64::from(users).min(self.left) {
                self.make(None)?;
            }
        }
        let mut next = self.next_arrival()?;
        let mut completions = Vec::new();
        let mut served = Vec::new();
        while next.is_some() || !self.requests.is_empty() {
            // Submit all requests that are due before the loop waits for the device, because that wait may
            // end late.
            while let Some((at, request)) = next.take_if(|(at, _)| *at <= self.device.now()) {
                self.submit(at, request);
                next = self.next_arrival()?;
            }
            let deadline = next.as_ref().map(|(at, _)| *at);
            self.device.wait(deadline, &mut completions);
            self.device.take_served(&mut served);
            // A wait with a deadline may end without completions, because the next arrival is due. A wait
            // without a deadline must not.
            if completions.is_empty() && deadline.is_none() {
                return Err(StackError::run(format!(
                    "the drive stalled with {} requests",
                    self.requests.len()
                )));
            }
            self.tally.tells_waits |= !served.is_empty();
            // The drive reports the waits in the order of completion, so `served` and `completions` match
            // item by item.
            let mut served = served.drain(..);
            for completion in completions.drain(..) {
                if self.completed(completion, served.next())?
                    && matches!(self.arrivals, Arrivals::Closed { .. })
                {
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

    /// Returns the next request of an open loop, with its arrival. `None` if no request remains, or in a
    /// closed loop.
    fn next_arrival(&mut self) -> Result<Option<(Nanos, Request)>, StackError> {
        if matches!(self.arrivals, Arrivals::Closed { .. }) || !self.has_more()? {
            return Ok(None);
        }
        let Some(request) = self.take() else { return Ok(None) };
        let at = match self.arrivals {
            Arrivals::Times { speed } => request.at.0 as f64 / speed,
            Arrivals::Rate { requests_s } => match self.mean_gap_ns {
                Some(mean) => request.at.0 as f64 * (1e9 / requests_s) / mean,
                // `take` has counted this request in `made` already. Subtract one, so that the first request
                // is due at zero.
                None => (self.made - 1) as f64 * 1e9 / requests_s,
            },
            // The function has returned above in a closed loop, so this value is not used.
            Arrivals::Closed { .. } => 0.0,
        };
        // Refuse later arrivals, because the clock would overflow and the request would never be submitted.
        if at > LATEST_ARRIVAL_NS {
            return Err(StackError::request(
                "--speed or --rate puts an arrival more than 30 years after the start; accepted: a faster one",
            ));
        }
        Ok(Some((self.start + Nanos(at as u64), request)))
    }

    /// Returns whether another request follows. Begins another pass or round if the run has rounds.
    fn has_more(&mut self) -> Result<bool, StackError> {
        if self.left > 0 {
            return Ok(true);
        }
        let Some(rounds) = &mut self.rounds else { return Ok(false) };
        let counts = DeviceCounts::of(&self.device);
        let next = rounds.end_pass(&counts, self.tally.p99_ns())?;
        if next == Next::End || rounds.give_up(next, self.arrived.has_grown(), self.requests.len()) {
            return Ok(false);
        }
        self.left = rounds.ops;
        if next == Next::Round {
            (rounds.before, rounds.began) = (counts, self.device.now());
            // The next round has about as many requests as this one.
            self.arrived = Arrived::new(self.tally.requests());
            self.tally.restart();
            self.slices.iter_mut().for_each(Slices::restart);
        }
        Ok(true)
    }

    fn take(&mut self) -> Option<Request> {
        self.left -= 1;
        self.made += 1;
        self.progress.left(self.left, self.left + self.made);
        self.source.next_request()
    }

    /// Submits the next request of a closed loop at the time `at`, or at the start of the run.
    fn make(&mut self, at: Option<Nanos>) -> Result<(), StackError> {
        if !self.has_more()? {
            return Ok(());
        }
        let request =
            self.take().ok_or_else(|| StackError::run("the workload ended before its last request"))?;
        self.submit(at.unwrap_or(self.start), request);
        Ok(())
    }

    /// Submits a request, in several commands if the request is too long for one.
    fn submit(&mut self, arrived: Nanos, request: Request) {
        let caps = self.device.caps();
        let most = if request.copy_of.is_some() { caps.share_pages.max(1) } else { caps.pages_per_command };
        let commands = if request.op == Op::Trim { 1 } else { request.pages.div_ceil(most) };
        let submitted = self.device.now();
        self.arrived.record(arrived, self.requests.len());
        let Request { op, page, pages, .. } = request;
        // `take` has counted this request already.
        let slice = self.slices.as_ref().map_or(0, |slices| slices.of(self.made - 1));
        let pending = Pending { op, arrived, submitted, page, pages, slice, commands };
        let tag = Tag(self.requests.insert(pending) as u64);
        self.meter.submit(submitted);
        for part in 0..commands {
            let first = part * most;
            let lpn = Lpn(request.page + u64::from(first));
            let pages = if request.op == Op::Trim { request.pages } else { most.min(request.pages - first) };
            let operation = match (request.op, request.copy_of) {
                (Op::Read, _) => Operation::read(lpn, pages),
                (Op::Write, Some(source)) => {
                    Operation::share(lpn, Lpn(source.number() + u64::from(first)), pages)
                }
                (Op::Write, None) => Operation::Write {
                    lpn,
                    pages,
                    from: None,
                    stream: StreamId(request.stream),
                    durable: false,
                },
                (Op::Trim, _) => Operation::Trim { lpn, pages },
            };
            let command = Command { tag, operation };
            // Append to a backlog that is not empty, because a command must not overtake those that wait.
            if !self.backlog.is_empty() {
                self.backlog.push_back(command);
            } else if let Err(full) = self.device.submit(command) {
                self.backlog.push_back(full.0);
            }
        }
    }

    /// Handles the completion of a command. Returns whether the request of the command is now complete.
    fn completed(&mut self, completion: Completion, served: Option<Served>) -> Result<bool, StackError> {
        completion.status.map_err(StackError::run)?;
        let key = completion.tag.0 as usize;
        let Some(pending) = self.requests.get_mut(key) else {
            return Err(StackError::run(format!("the drive completed tag {key}, which is not in flight")));
        };
        pending.commands -= 1;
        if pending.commands > 0 {
            return Ok(false);
        }
        let Pending { op, arrived, submitted, page, pages, slice, .. } = self.requests.remove(key);
        let latency = completion.at - arrived;
        // Use the waits of the last command of the request.
        let waits = served.map_or(Waits::default(), |served| served.waits);
        let queue = served.map_or(Nanos::ZERO, |served| served.submitted.saturating_sub(arrived));
        // The meter checks the time that requests spend inside the drive, so it counts from submission and
        // not from arrival.
        self.meter.complete(completion.at, completion.at - submitted);
        self.tally.record(op, pages, latency);
        self.tally.record_queue(queue);
        if let Some(served) = served {
            self.tally.record_waits(served.kind, &waits);
        }
        if let Some(slices) = &mut self.slices {
            slices.record(slice, op, latency);
        }
        self.intervals.record(completion.at - self.start, op, pages, latency, &waits)?;
        if let Some(log) = &mut self.log {
            let waits = self.tally.tells_waits.then_some((queue, &waits));
            log.write(arrived - self.start, op, page, pages, latency, waits)?;
        }
        Ok(true)
    }

    /// Makes completed writes durable.
    fn flush(&mut self) -> Result<(), StackError> {
        // No request has this tag, since the slab never uses this key.
        let tag = Tag(u64::MAX);
        let refused = || StackError::run("an idle drive refused a flush");
        self.device.submit(Command { tag, operation: Operation::Flush }).map_err(|_| refused())?;
        let mut completions = Vec::new();
        self.device.wait(None, &mut completions);
        let flushed = completions.pop().ok_or_else(refused)?;
        flushed.status.map_err(StackError::run)
    }
}
