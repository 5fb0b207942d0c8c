//! A device that misbehaves on request. Tests use it to show that the code above a device notices faults.

use crate::{Arena, Caps, Command, Completion, Device, IoError, Operation, Park, QueueFull, Tag};
use fulgurite_base::{Lpn, Nanos};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// One way to misbehave. Counts start at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The n-th write reports a medium error and leaves the medium as it was.
    FailWrite(u64),
    /// The n-th read reports a medium error.
    FailRead(u64),
    /// The n-th completion is never delivered.
    LoseCompletion(u64),
    /// The n-th completion is delivered twice.
    RepeatCompletion(u64),
}

/// Wraps a device and plants [`Fault`]s.
pub struct FaultDevice<D> {
    inner: D,
    faults: Vec<Fault>,
    reads: u64,
    writes: u64,
    completions: u64,
    failed: FxHashSet<Tag>,
}

impl<D: Device> FaultDevice<D> {
    /// `inner`, misbehaving as `faults` say.
    pub fn new(inner: D, faults: Vec<Fault>) -> FaultDevice<D> {
        FaultDevice { inner, faults, reads: 0, writes: 0, completions: 0, failed: FxHashSet::default() }
    }

    /// The wrapped device.
    pub fn inner(&self) -> &D {
        &self.inner
    }
}

impl<D: Device> Device for FaultDevice<D> {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn erases(&self, lpn: Lpn) -> Option<u64> {
        self.inner.erases(lpn)
    }

    fn register(&mut self, arena: &Arc<Arena>) {
        self.inner.register(arena);
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let fault = match command.operation {
            Operation::Read { .. } => Fault::FailRead(self.reads),
            Operation::Write { .. } => Fault::FailWrite(self.writes),
            _ => return self.inner.submit(command),
        };
        let fails = self.faults.contains(&fault);
        let tag = command.tag;
        // A failed command takes its time like any other but touches nothing: a flush stands in.
        let operation = if fails { Operation::Flush } else { command.operation.clone() };
        // The flush may be what was refused, so the caller gets its own command back.
        self.inner.submit(Command { tag, operation }).map_err(|_| QueueFull(command))?;
        // A refused command comes again, so it is counted only once it was accepted.
        match fault {
            Fault::FailRead(_) => self.reads += 1,
            _ => self.writes += 1,
        }
        if fails {
            self.failed.insert(tag);
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let mut arrived = Vec::new();
        self.inner.wait(deadline, &mut arrived);
        for mut completion in arrived {
            if self.failed.remove(&completion.tag) {
                completion.status = Err(IoError::Media);
            }
            if !self.faults.contains(&Fault::LoseCompletion(self.completions)) {
                completions.push(completion);
            }
            if self.faults.contains(&Fault::RepeatCompletion(self.completions)) {
                completions.push(completion);
            }
            self.completions += 1;
        }
    }

    fn parker(&self) -> Option<Arc<dyn Park>> {
        self.inner.parker()
    }

    fn is_bound_to_thread(&self) -> bool {
        self.inner.is_bound_to_thread()
    }
}
