//! The served drive: the disk with its pace, its statistics and its power.

use crate::live::{Live, Moment};
use crate::pace::Pace;
use fulgurite_base::Nanos;
use fulgurite_base::option::name_of;
use fulgurite_disk::{Completed, Cut, CutPoint, Disk, Faults, Kind, Request, Snapshot};
use fulgurite_stack::device::AnyDrive;
use fulgurite_stack::serve::Statistics;
use fulgurite_stack::{Column, Row, StackError};
use fulgurite_workload::Op;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The effect of a power cut, as it is told to a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CutReport {
    /// The seed that determined what was lost.
    pub seed: u64,
    /// The name of the pattern by which the writes were chosen.
    pub pattern: &'static str,
    /// The number of pages with writes that were not durable.
    pub pages_unflushed: u64,
    /// The number of these pages that have lost a write.
    pub pages_lost: u64,
    /// The number of these pages that have a part of a write.
    pub pages_torn: u64,
    /// The number of requests that will never be answered.
    pub requests_dropped: u64,
}

impl std::fmt::Display for CutReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CutReport { pages_lost, pages_unflushed, pages_torn, requests_dropped, .. } = self;
        write!(
            f,
            "lost {pages_lost} of {pages_unflushed} unflushed pages, tore {pages_torn}, dropped {requests_dropped} \
                requests"
        )
    }
}

/// Returns the faults by the commands of ctl that cause them.
fn names(faults: &Faults) -> Vec<&'static str> {
    let Faults { reads, writes, delay, is_full, lost_writes, misdirected_writes } = faults;
    let named = [
        ("fail-reads", !reads.is_empty()),
        ("fail-writes", !writes.is_empty()),
        ("slow", *delay > Nanos::ZERO),
        ("fill", *is_full),
        ("lose-writes", *lost_writes > 0),
        ("misdirect-writes", *misdirected_writes > 0),
    ];
    named.into_iter().filter(|(_, is_active)| *is_active).map(|(name, _)| name).collect()
}

/// The served drive. Each request has a token of type `T`, which names the program that waits for the answer.
pub(crate) struct Drive<T> {
    pub disk: Disk<AnyDrive, T>,
    pub snapshots: BTreeMap<String, Snapshot>,
    statistics: Statistics,
    pace: Pace,
    began: Nanos,
    is_on: bool,
    cuts: u64,
    seed: u64,
    /// The seed of the cut that is due at a point.
    armed: Option<u64>,
    /// The drive at the last look; `None` while nobody looks.
    looked: Option<Moment>,
}

impl<T> Drive<T> {
    /// Switches a drive on. Power cuts without a seed of their own take `seed` and the numbers that follow it.
    pub(crate) fn new(disk: Disk<AnyDrive, T>, statistics: Statistics, pace: Pace, seed: u64) -> Drive<T> {
        Drive {
            began: disk.now(),
            disk,
            snapshots: BTreeMap::new(),
            statistics,
            pace,
            is_on: true,
            cuts: 0,
            seed,
            armed: None,
            looked: None,
        }
    }

    /// Whether the drive has power.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Advances the drive's clock to the present, and appends the requests that have completed. The caller sends their
    /// answers at once and then calls [`Drive::sent`].
    pub(crate) fn advance(&mut self, completed: &mut Vec<Completed<T>>) -> Result<(), StackError> {
        match self.pace.now() {
            Some(now) => self.disk.advance(now, completed),
            None if !self.disk.finish(completed) => return Err(StackError::run("the drive stalled")),
            None => {}
        }
        self.contents_are_right()?;
        if completed.is_empty() {
            return Ok(());
        }
        for done in completed.iter() {
            let op = match done.kind {
                Kind::Read => Op::Read,
                Kind::Write => Op::Write,
                Kind::Trim => Op::Trim,
                Kind::Flush => continue,
            };
            self.statistics.request(op, done.pages, done.latency());
        }
        self.statistics.collect_waits(self.disk.device_mut());
        Ok(())
    }

    /// Fails once the file of the contents has failed. No answer may be sent from then on.
    pub(crate) fn contents_are_right(&self) -> Result<(), StackError> {
        match self.disk.failure() {
            None => Ok(()),
            Some(error) => Err(StackError::run(format!(
                "--contents: the file failed, so the drive's contents are wrong from now on: {error}"
            ))),
        }
    }

    /// Records that these answers were sent now.
    pub(crate) fn sent(&mut self, answers: &[(Nanos, Nanos)]) {
        self.pace.sent(answers.iter().copied());
    }

    /// Returns the time until the drive's next event; `None` if there is none. An idle drive at full speed has none:
    /// its clock stands until the next request, also while it collects.
    pub(crate) fn until_next(&self) -> Option<Duration> {
        if self.pace.now().is_none() && self.disk.in_flight() == 0 {
            return None;
        }
        self.disk.next_event().map(|at| self.pace.until(at))
    }

    /// Submits a request. A drive without power gives the token back.
    pub(crate) fn submit(&mut self, request: Request<'_>, token: T) -> Result<(), T> {
        if !self.is_on {
            return Err(token);
        }
        self.disk.submit(request, token);
        Ok(())
    }

    /// Requests a power cut at a point of the run.
    pub(crate) fn cut_at(&mut self, point: CutPoint, seed: Option<u64>) {
        self.armed = Some(self.seed_of(seed));
        self.disk.cut_at(point);
    }

    /// Returns the seed of the cut that is due now; `None` if none is due.
    pub(crate) fn due_cut(&mut self) -> Option<u64> {
        if self.disk.is_cut_due() { self.armed.take() } else { None }
    }

    /// Cuts the power. Returns what was lost, and the tokens of requests that will never be answered.
    pub(crate) fn cut(&mut self, seed: Option<u64>) -> (CutReport, Vec<T>) {
        let seed = self.seed_of(seed);
        let Cut { pattern, loss, dropped, .. } = self.disk.power_cut(seed);
        self.statistics.lose_power(self.disk.device_mut());
        self.is_on = false;
        self.cuts += 1;
        let report = CutReport {
            seed,
            pattern: pattern.map_or("", name_of),
            pages_unflushed: loss.pages_unflushed,
            pages_lost: loss.pages_lost,
            pages_torn: loss.pages_torn,
            requests_dropped: dropped.len() as u64,
        };
        (report, dropped)
    }

    fn seed_of(&mut self, seed: Option<u64>) -> u64 {
        seed.unwrap_or_else(|| {
            self.seed += 1;
            self.seed - 1
        })
    }

    /// Switches the drive on again.
    pub(crate) fn power_on(&mut self) {
        if !self.is_on {
            self.is_on = true;
            self.pace.restart(self.disk.now());
        }
    }

    /// Returns the state of the drive now, and at the look before.
    pub(crate) fn look(&mut self) -> Live {
        let now = Moment {
            time: self.disk.now() - self.began,
            look: self.statistics.look(self.disk.device()),
            in_flight: self.disk.in_flight() as u64,
            pages_unflushed: self.disk.pages_unflushed(),
            is_on: self.is_on,
            power_cuts: self.cuts,
            faults: names(self.disk.faults_mut()),
            lateness: self.pace.lateness(),
        };
        let before = self.looked.replace(now.clone());
        Live { now, before }
    }

    /// Ends what is recorded for the next look.
    pub(crate) fn look_away(&mut self) {
        self.looked = None;
        self.statistics.look_away();
    }

    /// Returns the row of the drive so far.
    pub(crate) fn row(&mut self) -> Result<Row, StackError> {
        self.row_at(self.disk.now())
    }

    /// Returns the row of the drive's time until `end`.
    fn row_at(&mut self, end: Nanos) -> Result<Row, StackError> {
        let elapsed = end - self.began;
        let mut row = self.statistics.row(self.disk.device_mut(), elapsed)?;
        self.pace.set(&mut row);
        row.set(Column::PowerCuts, self.cuts);
        Ok(row)
    }

    /// Completes everything, checks the drive, and returns its row.
    pub(crate) fn end(&mut self) -> Result<Row, StackError> {
        let mut completed = Vec::new();
        if !self.disk.finish(&mut completed) {
            return Err(StackError::run("the drive stalled"));
        }
        let elapsed = self.disk.now();
        self.statistics.end(self.disk.device_mut())?;
        if let Some(remark) = self.pace.remark() {
            fulgurite_stack::progress::remark(remark);
        }
        self.row_at(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::Speed;
    use fulgurite_disk::{Cache, PowerModel};
    use fulgurite_stack::Command;
    use fulgurite_stack::serve::Served;
    use fulgurite_stack::settings::{self, Workloads};

    /// The rule: an idle drive at full speed waits for requests alone, though work of its own is left. By the wall
    /// clock that work goes on.
    #[test]
    fn an_idle_drive_at_full_speed_has_no_next_event() {
        for (speed, is_awake) in [(Speed::Max, false), (Speed::Times(1.0), true)] {
            let values = [("device", "sata:blocks=20,pages=8,channels=2")].into();
            let run = settings::run(Command::Serve, &values, &mut Workloads::default()).unwrap();
            let Served { device, statistics } = Served::open(&run).unwrap();
            let disk = Disk::new(device, PowerModel::of(Cache::Protected));
            let pace = Pace::new(speed, disk.now());
            let mut drive = Drive::new(disk, statistics, pace, 0);
            let data = vec![7; 1 << 20];
            assert!(drive.submit(Request::Write { offset: 0, data: &data, durable: false }, ()).is_ok());
            assert!(drive.until_next().is_some());
            // Acknowledged from the buffer, the write is programmed later.
            assert!(drive.disk.finish(&mut Vec::new()) && drive.disk.next_event().is_some());
            assert_eq!(drive.until_next().is_some(), is_awake);
        }
    }
}
