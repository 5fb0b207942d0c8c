//! Tests runs of `pool` on a drive with injected faults.

use super::PoolRun;
use crate::device::Observed;
use crate::settings::{self, Workloads};
use crate::{Column, Command, Progress, Row, StackError};
use fulgurite_base::Nanos;
use fulgurite_device::{Caps, Completion, Device, Fault, FaultDevice, MemDevice, QueueFull};
use fulgurite_ssd::DriveCounters;

/// Executes a run of 2,000 requests on `device`.
fn run_on(device: impl Observed + 'static) -> Result<Row, StackError> {
    let settings = [
        ("workload", "mixed-skewed"),
        ("device", "mem:page=4KiB"),
        ("pages", "400"),
        ("ops", "2000"),
        ("write_back", "ace:n_w=4"),
    ];
    let run = settings::run(Command::Pool, &settings.into(), &mut Workloads::default()).unwrap();
    let (requested, stage) = (run.requested().unwrap(), run.stack.pool.as_ref().unwrap());
    PoolRun { run: &run, requested, stage }.run_on(device, &Progress::default())
}

fn mem() -> MemDevice {
    MemDevice::new(1_000, 4096, 64, Nanos::from_micros(10))
}

#[test]
fn a_sound_drive_gives_a_row() {
    assert_eq!(run_on(mem()).unwrap().number(Column::Ops), Some(2_000.0));
    assert!(run_on(FaultDevice::new(mem(), Vec::new())).is_ok());
}

#[test]
fn a_drive_that_fails_or_stalls_fails_the_run() {
    for (fault, words) in [
        (Fault::FailRead(70), "could not be read"),
        (Fault::FailWrite(30), "write-back failed"),
        (Fault::LoseCompletion(90), "stalled"),
        (Fault::RepeatCompletion(90), "completed"),
    ] {
        let error = run_on(FaultDevice::new(mem(), vec![fault])).unwrap_err();
        assert_eq!(error.exit_code(), 1, "{fault:?}: {error}");
        assert!(error.to_string().contains(words), "{fault:?}: {error}");
    }
}

impl<D: Observed> Observed for FaultDevice<D> {
    fn observe(&self) -> Option<DriveCounters> {
        self.inner().observe()
    }

    fn verify(&self, deep: bool) -> Result<(), String> {
        self.inner().verify(deep)
    }
}

/// A device that reports zero counts, as if it had lost every page.
struct Miscounting(MemDevice);

impl Device for Miscounting {
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

impl Observed for Miscounting {
    fn observe(&self) -> Option<DriveCounters> {
        Some(DriveCounters::default())
    }
}

#[test]
fn a_drive_that_loses_pages_fails_the_run() {
    let error = run_on(Miscounting(mem())).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("conservation is broken"), "{error}");
}
