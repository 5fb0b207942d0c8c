//! Opens a simulated drive for a server that gives it to other programs, and keeps the statistics of their
//! requests.
//!
//! The server owns the device and paces it to the wall clock. The statistics stand beside the device and are
//! given it for each look, because the server wraps the device. They record the latencies of requests, which
//! the server tells, and the waits of commands, which the device tells. A row is about all requests so far. No
//! number of a failed drive is told: the last row is asked for after [`Statistics::end`].
//!
//! A look tells the state of the drive at one moment. Latencies between two looks are recorded only while somebody
//! looks: from [`Statistics::look`] until [`Statistics::look_away`].

use crate::device::{AnyDrive, Observed};
use crate::execute::columns::{set_cost, set_policies, set_pool};
use crate::execute::device_counts::{DeviceCounts, set_collecting, set_wear};
use crate::execute::tally::{Class, Tally};
use crate::open::Boxed;
use crate::run::{Load, PoolStage};
use crate::{Column, Row, Run, StackError};
use fulgurite_base::{Histogram, Nanos, Summary};
use fulgurite_pool::PooledDevice;
use fulgurite_ssd::DriveState;
use fulgurite_workload::Op;
use std::time::{Duration, Instant};

/// A drive that a server gives to other programs, and the statistics of their requests.
pub struct Served {
    /// The device in the state in which measurements start. A simulated drive without a layer records the waits
    /// of its commands. Page contents are not kept; see [`Caps::contents`](fulgurite_device::Caps::contents).
    pub device: AnyDrive,
    /// The statistics, without any request.
    pub statistics: Statistics,
}

impl Served {
    /// Opens the device of a run of `serve`.
    ///
    /// # Errors
    ///
    /// Refuses a run of another command, and a run that [`Run::check`] refuses.
    pub fn open(run: &Run) -> Result<Served, StackError> {
        if !matches!(run.load, Load::Served) {
            return Err(StackError::run("only a run of serve has a drive for other programs"));
        }
        run.check()?;
        let mut device = run.stack.with_device(run.seed, 1, Boxed)?;
        device.keep_served();
        if let Some(stage) = &run.stack.pool {
            device = stage.before(device)?;
        }
        Ok(Served { device, statistics: Statistics::new(run.clone()) })
    }
}

impl PoolStage {
    /// Puts the pool before a drive.
    fn before(&self, drive: AnyDrive) -> Result<AnyDrive, StackError> {
        let device = PooledDevice::new(drive, self.config()?)
            .map_err(|error| StackError::request(error.to_string()))?;
        Ok(Box::new(device))
    }
}

/// The state of a served drive at one moment, with its counts since the start.
#[derive(Clone, Debug)]
pub struct Look {
    /// The completed reads.
    pub reads: Requests,
    /// The completed writes.
    pub writes: Requests,
    /// The state of the simulated drive; `None` if there is none.
    pub drive: Option<DriveState>,
    /// The counts of flash operations; `None` if the drive does not count them.
    pub flash: Option<FlashCounts>,
    /// The number of pages that clients wrote; `None` if nobody counts.
    pub host_pages_written: Option<u64>,
    /// The number of pages that were written for clients and for all collection; `None` if nobody counts.
    pub pages_programmed: Option<u64>,
    /// The pool before the drive; `None` if there is none.
    pub pool: Option<PoolLook>,
    /// The size of a page in bytes.
    pub page_bytes: u32,
}

/// The state of a pool before a served drive.
#[derive(Clone, Copy, Debug)]
pub struct PoolLook {
    /// The number of frames.
    pub frames: u32,
    /// The number of dirty pages.
    pub dirty_pages: u64,
    /// The number of requests for a page that was in the pool.
    pub hits: u64,
    /// The number of requests for a page that was not in the pool.
    pub misses: u64,
}

/// The completed requests of one kind.
#[derive(Clone, Debug)]
pub struct Requests {
    /// Their number.
    pub count: u64,
    /// The number of their pages.
    pub pages: u64,
    /// The sum of their latencies in nanoseconds.
    pub latency_sum_ns: u128,
    /// For each of [`Requests::BOUNDS`], the number of requests whose latency does not exceed it.
    pub counts_up_to: Vec<u64>,
    /// The latencies since the last look; `None` without requests, and in the first look.
    pub recent: Option<Summary>,
}

impl Requests {
    /// The bounds of classes of latencies, from 10 µs to 10 s.
    pub const BOUNDS: [Nanos; 19] = {
        let (mut bounds, mut at, mut decade) = ([Nanos(0); 19], 0, 10_000);
        while at < 19 {
            bounds[at] = Nanos(decade * [1, 2, 5][at % 3]);
            at += 1;
            if at % 3 == 0 {
                decade *= 10;
            }
        }
        bounds
    };

    fn new(class: &Class, recent: Option<Summary>) -> Requests {
        Requests {
            count: class.latency.count(),
            pages: class.pages,
            latency_sum_ns: class.latency.sum_ns(),
            counts_up_to: class.latency.counts_up_to(&Requests::BOUNDS),
            recent,
        }
    }
}

/// The counts of flash operations since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashCounts {
    /// The number of pages read.
    pub pages_read: u64,
    /// The number of pages that collection copied.
    pub pages_copied: u64,
    /// The number of segments erased.
    pub erases: u64,
}

/// The latencies since the last look.
#[derive(Default)]
struct Recent {
    reads: Histogram,
    writes: Histogram,
}

/// The statistics of a served drive.
pub struct Statistics {
    run: Run,
    start: Instant,
    tally: Tally,
    /// The records of waits between the device and the tally; empty between calls.
    served: Vec<fulgurite_ssd::Served>,
    /// The counts of the device at the end of the last request; `None` before [`Statistics::end`].
    at_end: Option<DeviceCounts>,
    /// The latencies since the last look; `None` while nobody looks.
    recent: Option<Box<Recent>>,
}

impl Statistics {
    fn new(run: Run) -> Statistics {
        Statistics {
            run,
            start: Instant::now(),
            tally: Tally::default(),
            served: Vec::new(),
            at_end: None,
            recent: None,
        }
    }

    /// Records a completed request of a client for `pages` device pages. `latency` is the time from its arrival
    /// to its completion, on the drive's clock.
    pub fn request(&mut self, op: Op, pages: u32, latency: Nanos) {
        self.tally.record(op, pages, latency);
        if let Some(recent) = &mut self.recent {
            match op {
                Op::Read => recent.reads.record(latency),
                Op::Write => recent.writes.record(latency),
                Op::Trim => {}
            }
        }
    }

    /// Returns the state of `device` now, and records latencies until the next look.
    pub fn look(&mut self, device: &AnyDrive) -> Look {
        let counts = DeviceCounts::of(device);
        let recent = self.recent.get_or_insert_default();
        let look = Look {
            reads: Requests::new(&self.tally.reads, recent.reads.summary()),
            writes: Requests::new(&self.tally.writes, recent.writes.summary()),
            drive: device.look(),
            flash: counts.of_drive().map(|drive| FlashCounts {
                pages_read: drive.flash_pages_read,
                pages_copied: drive.gc_pages_copied,
                erases: drive.erases,
            }),
            host_pages_written: counts.host_pages_written(),
            pages_programmed: counts.pages_programmed(),
            pool: device.observe_pool().zip(self.run.stack.pool.as_ref()).map(|(counters, stage)| PoolLook {
                frames: stage.frames,
                dirty_pages: device.dirty_pages(),
                hits: counters.hits,
                misses: counters.misses,
            }),
            page_bytes: device.caps().page_bytes,
        };
        recent.reads.clear();
        recent.writes.clear();
        look
    }

    /// Records no more latencies for a next look.
    pub fn look_away(&mut self) {
        self.recent = None;
    }

    /// Collects the waits of the commands that `device` has completed since the last call. The device keeps a
    /// record for each command until then, so a server calls this function about as often as it waits.
    pub fn collect_waits(&mut self, device: &mut AnyDrive) {
        device.take_served(&mut self.served);
        self.tally.tells_waits |= !self.served.is_empty();
        for served in self.served.drain(..) {
            self.tally.record_waits(served.kind, &served.waits);
        }
    }

    /// Empties the pool before `device`, which has lost power. The device has no commands in flight.
    pub fn lose_power(&mut self, device: &mut AnyDrive) {
        device.lose_power();
        self.collect_waits(device);
    }

    /// Returns the row about the requests so far. `elapsed` is the time since the first request could arrive, on
    /// the drive's clock. Before [`Statistics::end`], the counts of the drive leave out writes in its buffer.
    pub fn row(&mut self, device: &mut AnyDrive, elapsed: Nanos) -> Result<Row, StackError> {
        self.collect_waits(device);
        let stack = &self.run.stack;
        let mut row = self.run.identity()?;
        set_collecting(&mut row, stack);
        if let (Some(stage), Some(counters)) = (&stack.pool, &device.observe_pool()) {
            set_policies(&mut row, &stage.policies, Some(&stage.write_back));
            row.set(Column::Frames, stage.frames);
            set_pool(&mut row, counters);
        }
        row.set_some(Column::Schedule, stack.collect().map(|collect| collect.schedule.to_string()));
        row.set(Column::PageBytes, stack.device.page_bytes());
        row.set(Column::Seed, self.run.seed);
        row.set(Column::Ops, self.tally.requests());
        self.tally.set(&mut row, elapsed, stack.device.page_bytes());
        let counts = self.at_end.clone().unwrap_or_else(|| DeviceCounts::of(device));
        counts.set(&mut row);
        set_wear(&mut row, device, &counts, elapsed);
        set_cost(&mut row, self.start, Duration::ZERO, self.tally.requests());
        Ok(row)
    }

    /// Ends the work of a device without commands in flight, and checks its invariants. Later rows have the
    /// counts with all writes, and without the garbage collection after the last of them.
    ///
    /// # Errors
    ///
    /// Returns the invariant that the device has broken. The row of such a device tells nothing.
    pub fn end(&mut self, device: &mut AnyDrive) -> Result<(), StackError> {
        device.settle();
        self.at_end = Some(DeviceCounts::of(device));
        device.drain_events();
        device.verify(true).map_err(StackError::run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::settings::{self, Workloads};
    use fulgurite_device::{Caps, Completion, Device, MemDevice, QueueFull};

    /// A drive that has broken an invariant.
    struct Broken(MemDevice);

    impl Device for Broken {
        fn caps(&self) -> &Caps {
            self.0.caps()
        }

        fn now(&self) -> Nanos {
            self.0.now()
        }

        fn submit(&mut self, command: fulgurite_device::Command) -> Result<(), QueueFull> {
            self.0.submit(command)
        }

        fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
            self.0.wait(deadline, completions);
        }
    }

    impl Observed for Broken {
        fn verify(&self, deep: bool) -> Result<(), String> {
            if deep { Err("it is broken".to_owned()) } else { Ok(()) }
        }
    }

    /// Returns the drive `mem` with its statistics.
    fn mem() -> Served {
        let values = [("device", "mem")].into();
        Served::open(&settings::run(Command::Serve, &values, &mut Workloads::default()).unwrap()).unwrap()
    }

    /// The rule: a look has all requests, and the latencies of those since the look before it. They are recorded only
    /// between two looks. A drive without flash tells nothing of flash.
    #[test]
    fn a_look_has_the_latencies_since_the_last_one() {
        let Served { device, mut statistics } = mem();
        let recent =
            |look: &Look| [&look.reads, &look.writes].map(|of| of.recent.map(|recent| recent.max_ns));
        statistics.request(Op::Read, 1, Nanos(15_000));
        let first = statistics.look(&device);
        assert_eq!((first.reads.count, first.writes.count, recent(&first)), (1, 0, [None; 2]));
        statistics.request(Op::Read, 2, Nanos(30_000));
        statistics.request(Op::Write, 3, Nanos(70_000));
        statistics.request(Op::Trim, 4, Nanos(90_000));
        let second = statistics.look(&device);
        assert_eq!((second.reads.count, second.reads.pages, second.writes.pages), (2, 3, 3));
        assert_eq!((recent(&second), second.reads.latency_sum_ns), ([Some(30_000), Some(70_000)], 45_000));
        assert_eq!(second.reads.counts_up_to[..4], [0, 1, 2, 2]);
        assert_eq!(recent(&statistics.look(&device)), [None; 2]);
        statistics.look_away();
        statistics.request(Op::Read, 1, Nanos(15_000));
        assert_eq!(recent(&statistics.look(&device)), [None; 2]);
        assert!(second.drive.is_none() && second.flash.is_none() && second.host_pages_written.is_none());
        assert_eq!((Requests::BOUNDS[0], Requests::BOUNDS[18]), (Nanos(10_000), Nanos(10_000_000_000)));
    }

    /// The rule: the end of a served drive checks the drive thoroughly, and tells which invariant is broken.
    #[test]
    fn a_broken_drive_is_told_at_the_end() {
        let Served { mut device, mut statistics } = mem();
        assert_eq!(statistics.end(&mut device), Ok(()));
        let mut broken: AnyDrive = Box::new(Broken(MemDevice::new(64, 512, 4, Nanos::ZERO)));
        let said = statistics.end(&mut broken).unwrap_err();
        assert_eq!((said.exit_code(), said.to_string().as_str()), (1, "it is broken"));
    }
}
