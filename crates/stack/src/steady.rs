//! Measures the steady throughput and write amplification of a drive under a pattern of writes.
//!
//! A simulated drive is filled and then overwritten with the pattern in its translation layer, without time,
//! until write amplification is steady. A real drive is filled and overwritten in time, until the throughput of
//! a pass changes little. Then four users with 128 requests under way each write the pattern, as in the SSD-iq
//! study (Haas, Lee, Bonnet and Leis, PVLDB 18(11), 2025); for zones, 64 requests of 512 KiB in all.

use crate::device::Observed;
use crate::memo::Memo;
use crate::open::DeviceUser;
use crate::pattern::Pattern;
use crate::progress::{remark, step};
use crate::{Stack, StackError, Unit};
use fulgurite_base::{Lpn, Prng, StreamId, units};
use fulgurite_device::{Command, Completion, Meter, Operation, QueueFull, Tag};
use fulgurite_ftl::CountingSink;
use fulgurite_ftl::precondition::until_steady;
use fulgurite_workload::Generator;
use std::collections::VecDeque;

/// The requests under way in all: of single pages, and of sequential writes into zones.
const UNDER_WAY: usize = 4 * 128;
const ZONES_UNDER_WAY: usize = 64;

/// The bytes of a sequential write into a zone.
const ZONE_REQUEST: u64 = 512 << 10;

/// The bytes of an open zone on a drive of the nominal capacity.
const ZONE: u64 = 8 << 30;

/// The share of the written space that passes as warm-up, and that is measured.
const WARM_UP: f64 = 0.05;
const MEASURED: f64 = 1.0;

/// The least warm-up and the least measured part, in contents of the write buffer. The buffer must be full at
/// both ends of the measured part, because it takes writes faster than the flash.
const BUFFERS_WARM_UP: u64 = 4;
const BUFFERS_MEASURED: u64 = 32;

/// The pages that a simulated drive is measured for, at most. A real drive is measured for a pass.
const MEASURED_AT_MOST: u64 = 1 << 19;

/// The most passes over a real drive, and the change of throughput at which it counts as steady.
const PASSES_AT_MOST: u32 = 8;
const STEADY: f64 = 0.02;

/// The steady state of a drive under a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    /// Requests per second.
    pub throughput_ops_s: f64,
    /// Programs over host writes; `None` if the drive does not count them.
    pub waf: Option<f64>,
}

/// Measures the steady state of the stack's drive under `pattern`, with requests of `page_bytes`.
pub(crate) fn measure(
    stack: &Stack,
    page_bytes: u32,
    pattern: &Pattern,
    seed: u64,
) -> Result<Steady, StackError> {
    let request_pages = stack.device_pages_per(page_bytes)?;
    let make = || Requests::new(stack, pattern, request_pages, page_bytes, seed);
    let mut before = make()?;
    let (used, written) = pattern.used_and_written(stack.pages() / u64::from(request_pages));
    let is_written = |config: &fulgurite_ssd::SsdConfig| !config.in_place;
    let is_prepared = stack.layer.is_none() && stack.device.simulated().is_some_and(is_written);
    let load = Overwrite {
        requests: make()?,
        fill: if is_prepared { 0 } else { used * u64::from(request_pages) },
        written: written * u64::from(request_pages),
        buffer: stack
            .device
            .simulated()
            .map_or(0, |config| config.write_buffer / u64::from(config.page_bytes)),
        is_real: stack.device.is_real(),
        label: stack.device.label.clone(),
    };
    let write = |ftl: &mut fulgurite_ftl::Ftl| {
        let mut sink = CountingSink::default();
        (0..(used * u64::from(request_pages)) as u32)
            .for_each(|lpn| ftl.write(lpn, 1, StreamId(0), &mut sink));
        let pages = before.pages();
        let window = (written * u64::from(request_pages) / 2 / u64::from(pages)).max(1);
        until_steady(ftl, window as u32, pages, |ftl| {
            loop {
                match before.next() {
                    Operation::Trim { lpn, pages } => {
                        (lpn.0..lpn.0 + u64::from(pages)).for_each(|lpn| ftl.trim(lpn as u32));
                    }
                    operation => {
                        if let Operation::Write { lpn, pages, .. } = operation {
                            ftl.write(lpn.0 as u32, pages, StreamId(0), &mut sink);
                        }
                        return;
                    }
                }
            }
        });
    };
    stack.with_written_device(seed, &format!("{pattern} of {page_bytes}B"), write, load)?
}

/// Brings a real drive to the steady state of uniform writes, once for each drive. A simulated drive is in the
/// state of its `precondition`.
pub(crate) fn condition(stack: &Stack, page_bytes: u32, seed: u64) -> Result<(), StackError> {
    static CONDITIONED: Memo<Result<(), StackError>> = Memo::new();
    if !stack.device.is_real() {
        return Ok(());
    }
    let key = format!("{} {page_bytes}", stack.canonical_storage());
    CONDITIONED.get(key, || measure(stack, page_bytes, &Pattern::Uniform, seed).map(drop))
}

/// The requests of a pattern.
enum Requests {
    Pages { generator: Generator, request_pages: u32 },
    Zones(Zones),
}

impl Requests {
    fn new(
        stack: &Stack,
        pattern: &Pattern,
        request_pages: u32,
        page_bytes: u32,
        seed: u64,
    ) -> Result<Requests, StackError> {
        let pages = stack.pages();
        let (_, written) = pattern.used_and_written(pages / u64::from(request_pages));
        match pattern.generator(written, page_bytes, seed) {
            Some(generator) => Ok(Requests::Pages { generator: generator?, request_pages }),
            None => Zones::new(stack, pattern, seed).map(Requests::Zones),
        }
    }

    /// Returns the pages of a write.
    fn pages(&self) -> u32 {
        match self {
            Requests::Pages { request_pages, .. } => *request_pages,
            Requests::Zones(zones) => zones.request_pages,
        }
    }

    fn next(&mut self) -> Operation {
        match self {
            Requests::Pages { generator, request_pages } => {
                let first = generator.request().page * u64::from(*request_pages);
                Operation::write(Lpn(first), *request_pages)
            }
            Requests::Zones(zones) => zones.next(),
        }
    }

    fn under_way(&self) -> usize {
        match self {
            Requests::Pages { .. } => UNDER_WAY,
            Requests::Zones(_) => ZONES_UNDER_WAY,
        }
    }
}

/// Zones that are written sequentially, in turn.
struct Zones {
    request_pages: u32,
    zone_pages: u64,
    /// The number of zones of the drive.
    count: u64,
    /// Each open zone, and the pages of it that are written.
    open: Vec<(u64, u64)>,
    turn: usize,
    prng: Prng,
}

impl Zones {
    fn new(stack: &Stack, pattern: &Pattern, seed: u64) -> Result<Zones, StackError> {
        let (pages, page_bytes) = (stack.pages(), u64::from(stack.device.page_bytes()));
        let (open, bytes) = match pattern {
            Pattern::OneZone(bytes) => (1, *bytes),
            Pattern::OpenZones(open) => (*open, ZONE),
            _ => (1, ZONE),
        };
        // A drive that is smaller than its label has zones that are smaller by the same ratio.
        let nominal = stack.device.simulated().map_or(0, |config| config.nominal);
        let scale = if nominal == 0 { 1.0 } else { (pages * page_bytes) as f64 / nominal as f64 };
        let per_page = ZONE_REQUEST.max(page_bytes) / page_bytes;
        let request_pages = per_page.min(u64::from(stack.caps().pages_per_command)).max(1);
        let zone_pages =
            ((bytes as f64 * scale / page_bytes as f64) as u64 / request_pages).max(1) * request_pages;
        let count = pages / zone_pages;
        if count < 2 * u64::from(open) {
            return Err(StackError::request(format!(
                "--patterns {pattern}: {} has {count} zones of {}; accepted: at most half as many open zones, or a \
                    larger drive",
                stack.device.label,
                units::format_size(zone_pages * page_bytes)
            )));
        }
        let erased = u64::from(stack.caps().erase_pages);
        if zone_pages < erased {
            remark(format!(
                "{pattern}: a zone of {} is smaller than the {} that {} erases together, so its waf is that of the \
                 scale; give the drive shorter blocks, like pages=12",
                units::format_size(zone_pages * page_bytes),
                units::format_size(erased * page_bytes),
                stack.device.label
            ));
        }
        // A zone counts as full at first, so each is opened when its turn comes.
        let open = (0..u64::from(open)).map(|zone| (zone, zone_pages)).collect();
        Ok(Zones {
            request_pages: request_pages as u32,
            zone_pages,
            count,
            open,
            turn: 0,
            prng: Prng::new(seed, "zones"),
        })
    }

    fn next(&mut self) -> Operation {
        let at = self.turn;
        if self.open[at].1 == self.zone_pages {
            let zone = loop {
                let zone = self.prng.below(self.count);
                if self.open.iter().all(|(open, _)| *open != zone) {
                    break zone;
                }
            };
            self.open[at] = (zone, 0);
            return Operation::Trim { lpn: Lpn(zone * self.zone_pages), pages: self.zone_pages as u32 };
        }
        self.turn = (at + 1) % self.open.len();
        let (zone, written) = &mut self.open[at];
        let first = *zone * self.zone_pages + *written;
        *written += u64::from(self.request_pages);
        Operation::write(Lpn(first), self.request_pages)
    }
}

/// A closed loop of writes.
struct Overwrite {
    requests: Requests,
    /// The pages, from the first on, to fill in order beforehand; 0 if they are filled.
    fill: u64,
    /// The number of pages that the pattern overwrites.
    written: u64,
    /// The pages of the drive's write buffer, if it is known.
    buffer: u64,
    is_real: bool,
    label: String,
}

impl DeviceUser for Overwrite {
    type Output = Result<Steady, StackError>;

    fn with<D: Observed + 'static>(mut self, mut device: D) -> Self::Output {
        let page_bytes = u64::from(device.caps().page_bytes);
        let bytes = |pages: u64| Unit::Bytes.humane((pages * page_bytes) as f64);
        let _step = step(
            match self.fill {
                0 => format!("overwriting {}", self.label),
                fill => format!(
                    "overwriting {}: {} to fill it, then at most {}",
                    self.label,
                    bytes(fill),
                    bytes(u64::from(PASSES_AT_MOST) * self.written)
                ),
            },
            0,
        );
        let mut queue = Queue::default();
        let chunk = (ZONE_REQUEST / page_bytes).clamp(1, u64::from(device.caps().pages_per_command));
        let mut filled = 0;
        queue.drive(&mut device, ZONES_UNDER_WAY, || {
            let pages = chunk.min(self.fill - filled) as u32;
            filled += u64::from(pages);
            (pages > 0).then(|| Operation::write(Lpn(filled - u64::from(pages)), pages))
        })?;
        let measured = match self.is_real {
            true => self.written,
            false => ((self.written as f64 * MEASURED) as u64)
                .min(MEASURED_AT_MOST)
                .max(BUFFERS_MEASURED * self.buffer),
        };
        let warm_up = match self.is_real {
            true => 0,
            false => ((self.written as f64 * WARM_UP) as u64).max(BUFFERS_WARM_UP * self.buffer),
        };
        self.pass(&mut device, &mut queue, warm_up)?;
        let mut steady = self.pass(&mut device, &mut queue, measured)?;
        // A drive that could not be prepared without time is overwritten until its throughput is steady.
        if self.fill > 0 {
            for _ in 1..PASSES_AT_MOST {
                let before = steady.throughput_ops_s;
                steady = self.pass(&mut device, &mut queue, measured)?;
                if (steady.throughput_ops_s / before - 1.0).abs() < STEADY {
                    break;
                }
            }
        }
        queue.meter.check().map_err(StackError::run)?;
        device.drain_events();
        device.verify(false).map_err(StackError::run)?;
        Ok(steady)
    }
}

impl Overwrite {
    /// Writes `pages` pages of the pattern.
    fn pass<D: Observed>(
        &mut self,
        device: &mut D,
        queue: &mut Queue,
        pages: u64,
    ) -> Result<Steady, StackError> {
        let (start, before) = (device.now(), device.observe());
        let each = u64::from(self.requests.pages());
        let (requests, mut sent) = (pages.div_ceil(each), 0);
        let under_way = self.requests.under_way();
        queue.drive(device, under_way, || {
            (sent < requests).then(|| {
                let operation = self.requests.next();
                sent += u64::from(matches!(operation, Operation::Write { .. }));
                operation
            })
        })?;
        let seconds = (device.now() - start).as_secs_f64();
        let waf = before.zip(device.observe()).map(|(before, now)| now.since(&before));
        let waf = waf
            .filter(|counters| counters.host_pages_written > 0)
            .map(|counters| counters.flash_pages_programmed as f64 / counters.host_pages_written as f64);
        Ok(Steady { throughput_ops_s: requests as f64 / seconds, waf })
    }
}

/// The requests under way, and those that the drive has no room for.
#[derive(Default)]
struct Queue {
    meter: Meter,
    waiting: VecDeque<Command>,
    /// The time at which each request was sent, by its tag, and the tags that are free.
    sent: Vec<fulgurite_base::Nanos>,
    free: Vec<u64>,
}

impl Queue {
    /// Keeps `most` requests of `next` under way until it returns `None` and all have ended.
    fn drive<D: Observed>(
        &mut self,
        device: &mut D,
        most: usize,
        mut next: impl FnMut() -> Option<Operation>,
    ) -> Result<(), StackError> {
        let (mut under_way, mut is_over) = (0, false);
        let mut completions: Vec<Completion> = Vec::new();
        loop {
            while !is_over && under_way < most {
                let Some(operation) = next() else {
                    is_over = true;
                    break;
                };
                let now = device.now();
                let tag = self.free.pop().unwrap_or_else(|| {
                    self.sent.push(now);
                    self.sent.len() as u64 - 1
                });
                self.sent[tag as usize] = now;
                self.meter.submit(now);
                self.waiting.push_back(Command { tag: Tag(tag), operation });
                under_way += 1;
            }
            while let Some(command) = self.waiting.pop_front() {
                if let Err(QueueFull(command)) = device.submit(command) {
                    self.waiting.push_front(command);
                    break;
                }
            }
            if under_way == 0 {
                return Ok(());
            }
            device.wait(None, &mut completions);
            if completions.is_empty() {
                return Err(StackError::run("the drive stalled"));
            }
            for completion in completions.drain(..) {
                completion.status.map_err(StackError::run)?;
                self.meter.complete(completion.at, completion.at - self.sent[completion.tag.0 as usize]);
                self.free.push(completion.tag.0);
                under_way -= 1;
            }
        }
    }
}
