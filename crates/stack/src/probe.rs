//! Measures the latency of a probe beside a load of random writes, as the SSD-iq study (Haas, Lee, Bonnet and
//! Leis, PVLDB 18(11), 2025) does on real drives.
//!
//! One probe sends 10,000 requests per second with exponential gaps, half reads and half writes. Six load
//! users share the rest of the offered writes: 99 % writes, exponential gaps, at most 64 requests of a user
//! under way. A load user that is behind sends the next request as soon as one ends, so its rate is kept on
//! average. All requests are uniform over the whole drive. A latency runs from the moment at which a request
//! is handed to the drive's queue until its completion.

use crate::StackError;
use crate::device::Observed;
use crate::open::DeviceUser;
use fulgurite_base::{Histogram, Lpn, Nanos, Prng, Share};
use fulgurite_device::{Command, Completion, Meter, Operation, QueueFull, Tag};
use slab::Slab;
use std::collections::VecDeque;

/// The requests per second of the probe.
pub(crate) const PROBE_OPS_S: f64 = 10_000.0;
/// The writes per second of the probe beside the load of the suite `latency`, which the load makes room for.
pub const PROBE_WRITES_S: f64 = PROBE_OPS_S / 2.0;

/// The number of load users, and the most requests that each has under way.
const LOAD_USERS: usize = 6;
const UNDER_WAY: u32 = 64;

/// The share of writes in the load.
const LOAD_WRITES: Share = Share::percent(99);

/// The part of the measured time that passes before the measurement.
const WARM_UP: f64 = 0.25;

/// The result for one rate.
#[derive(Clone, Debug)]
pub(crate) struct Probed {
    /// The offered rate: the load and the probe's writes.
    pub offered_ops_s: f64,
    /// The requests of the load that ended per second.
    pub done_ops_s: f64,
    /// The latencies of the probe's reads.
    pub reads: Histogram,
    /// The latencies of the probe's writes.
    pub writes: Histogram,
    /// The latencies of the load, reads and writes.
    pub load: Histogram,
    /// Programs over host writes in the measured part; `None` if the drive does not count them.
    pub waf: Option<f64>,
}

/// The probe beside a load at one rate.
pub(crate) struct ProbeAndLoad {
    /// The offered rate in requests per second; infinite for a load that always has all of its requests under
    /// way.
    pub offered_ops_s: f64,
    /// The number of device pages in a request.
    pub request_pages: u32,
    /// The length of the measured part.
    pub time: Nanos,
    pub seed: u64,
}

/// A sender of requests with exponential gaps.
struct Source {
    /// The mean gap in nanoseconds; 0 for a source that always has the next request ready.
    gap_ns: f64,
    writes: Share,
    /// The time of the next request. It may lie in the past if the source is at its limit.
    next: f64,
    under_way: u32,
    most: u32,
}

impl Source {
    fn is_ready(&self) -> bool {
        self.under_way < self.most
    }
}

/// A request that the drive has, or that waits for room in the drive's queue.
struct Sent {
    source: usize,
    is_write: bool,
    at: Nanos,
}

impl DeviceUser for ProbeAndLoad {
    type Output = Result<Probed, StackError>;

    fn with<D: Observed + 'static>(self, mut device: D) -> Self::Output {
        let places = device.caps().pages / u64::from(self.request_pages);
        let mut prng = Prng::new(self.seed, "probe and load");
        let gap = |prng: &mut Prng, mean: f64| -libm::log1p(-prng.unit_f64()) * mean;
        let start = device.now();
        let load_gap = LOAD_USERS as f64 * 1e9 / (self.offered_ops_s - PROBE_WRITES_S);
        let probe = (1e9 / PROBE_OPS_S, Share::percent(50), u32::MAX);
        let mut sources: Vec<Source> = std::iter::once(probe)
            .chain(std::iter::repeat_n((load_gap, LOAD_WRITES, UNDER_WAY), LOAD_USERS))
            .map(|(gap_ns, writes, most)| {
                let next = start.0 as f64 + gap(&mut prng, gap_ns);
                Source { gap_ns, writes, next, under_way: 0, most }
            })
            .collect();
        let warm = Nanos(start.0 + (self.time.0 as f64 * WARM_UP) as u64);
        let end = Nanos(warm.0 + self.time.0);
        let mut sent: Slab<Sent> = Slab::new();
        let mut queues = Queues::new(sources.len());
        let mut meter = Meter::default();
        let (mut reads, mut writes, mut load) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        let (mut done, mut before) = (0u64, None);
        let mut completions: Vec<Completion> = Vec::new();
        loop {
            let now = device.now();
            if before.is_none() && now >= warm {
                before = Some((now, device.observe()));
            }
            let next = (0..sources.len())
                .filter(|source| sources[*source].is_ready())
                .min_by(|a, b| sources[*a].next.total_cmp(&sources[*b].next));
            if let Some(source) = next.filter(|source| sources[*source].next <= now.0 as f64 && now < end) {
                let of = &mut sources[source];
                of.next += gap(&mut prng, of.gap_ns);
                of.under_way += 1;
                let is_write = prng.chance(of.writes);
                let lpn = Lpn(prng.below(places) * u64::from(self.request_pages));
                let tag = Tag(sent.insert(Sent { source, is_write, at: now }) as u64);
                let operation = match is_write {
                    true => Operation::write(lpn, self.request_pages),
                    false => Operation::read(lpn, self.request_pages),
                };
                queues.push(source, Command { tag, operation });
                meter.submit(now);
                queues.submit(&mut device);
                continue;
            }
            if now >= end && sent.is_empty() {
                break;
            }
            let deadline = match next {
                Some(source) if now < end => Some(Nanos((sources[source].next.ceil() as u64).max(now.0 + 1))),
                _ if now < end => Some(end),
                _ => None,
            };
            device.wait(deadline, &mut completions);
            if completions.is_empty() && deadline.is_none() {
                return Err(StackError::run("the drive stalled"));
            }
            for completion in completions.drain(..) {
                completion.status.map_err(StackError::run)?;
                let Sent { source, is_write, at } = sent.remove(completion.tag.0 as usize);
                sources[source].under_way -= 1;
                let latency = completion.at - at;
                meter.complete(completion.at, latency);
                if completion.at < warm || completion.at >= end {
                    continue;
                }
                match (source, is_write) {
                    (0, false) => reads.record(latency),
                    (0, true) => writes.record(latency),
                    _ => {
                        load.record(latency);
                        done += 1;
                    }
                }
            }
            queues.submit(&mut device);
        }
        meter.check().map_err(StackError::run)?;
        let (since, before) = before.unwrap_or((warm, None));
        device.settle();
        let waf = before.zip(device.observe()).map(|(before, now)| now.since(&before)).and_then(|counters| {
            (counters.host_pages_written > 0)
                .then(|| counters.flash_pages_programmed as f64 / counters.host_pages_written as f64)
        });
        device.drain_events();
        device.verify(false).map_err(StackError::run)?;
        let seconds = (end - since).as_secs_f64();
        Ok(Probed {
            offered_ops_s: self.offered_ops_s,
            done_ops_s: done as f64 / seconds,
            reads,
            writes,
            load,
            waf,
        })
    }
}

/// The queues of the host, one of each source. A drive with room takes commands from them in turn, one each, as
/// the round-robin arbitration of NVMe does.
struct Queues {
    of_source: Vec<VecDeque<Command>>,
    turn: usize,
    waiting: usize,
}

impl Queues {
    fn new(sources: usize) -> Queues {
        Queues { of_source: (0..sources).map(|_| VecDeque::new()).collect(), turn: 0, waiting: 0 }
    }

    fn push(&mut self, source: usize, command: Command) {
        self.of_source[source].push_back(command);
        self.waiting += 1;
    }

    /// Submits commands until the drive takes no more, or none waits.
    fn submit<D: Observed>(&mut self, device: &mut D) {
        while self.waiting > 0 {
            let queue = &mut self.of_source[self.turn];
            if let Some(command) = queue.pop_front() {
                if let Err(QueueFull(command)) = device.submit(command) {
                    return queue.push_front(command);
                }
                self.waiting -= 1;
            }
            self.turn = (self.turn + 1) % self.of_source.len();
        }
    }
}
