//! Opens a simulated drive for a server that gives it to other programs, and keeps the statistics of their
//! requests.
//!
//! The server owns the device and paces it to the wall clock. The statistics stand beside the device and are
//! given it for each look, because the server wraps the device. They record the latencies of requests, which
//! the server tells, and the waits of commands, which the device tells. A row is about all requests so far. No
//! number of a failed drive is told: the last row is asked for after [`Statistics::end`].

use crate::device::{AnyDrive, Observed};
use crate::execute::columns::set_cost;
use crate::execute::device_counts::{DeviceCounts, set_collecting, set_wear};
use crate::execute::tally::Tally;
use crate::open::Boxed;
use crate::run::Load;
use crate::{Column, Row, Run, StackError};
use fulgurite_base::Nanos;
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
        Ok(Served { device, statistics: Statistics::new(run.clone()) })
    }
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
}

impl Statistics {
    fn new(run: Run) -> Statistics {
        Statistics { run, start: Instant::now(), tally: Tally::default(), served: Vec::new(), at_end: None }
    }

    /// Records a completed request of a client for `pages` device pages. `latency` is the time from its arrival
    /// to its completion, on the drive's clock.
    pub fn request(&mut self, op: Op, pages: u32, latency: Nanos) {
        self.tally.record(op, pages, latency);
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

    /// Returns the row about the requests so far. `elapsed` is the time since the first request could arrive, on
    /// the drive's clock. Before [`Statistics::end`], the counts of the drive leave out writes in its buffer.
    pub fn row(&mut self, device: &mut AnyDrive, elapsed: Nanos) -> Result<Row, StackError> {
        self.collect_waits(device);
        let stack = &self.run.stack;
        let mut row = self.run.identity()?;
        set_collecting(&mut row, stack);
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

    /// The rule: the end of a served drive checks the drive thoroughly, and tells which invariant is broken.
    #[test]
    fn a_broken_drive_is_told_at_the_end() {
        let values = [("device", "mem")].into();
        let run = settings::run(Command::Serve, &values, &mut Workloads::default()).unwrap();
        let Served { mut device, mut statistics } = Served::open(&run).unwrap();
        assert_eq!(statistics.end(&mut device), Ok(()));
        let mut broken: AnyDrive = Box::new(Broken(MemDevice::new(64, 512, 4, Nanos::ZERO)));
        let said = statistics.end(&mut broken).unwrap_err();
        assert_eq!((said.exit_code(), said.to_string().as_str()), (1, "it is broken"));
    }
}
