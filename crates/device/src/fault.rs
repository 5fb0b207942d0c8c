//! A device with injected faults. Tests use it to show that the code above a device notices faults.

use crate::{
    Arena, Caps, Command, Completion, Device, FdpLog, IoError, Operation, Park, QueueFull, Tag, Zone,
};
use fulgurite_base::{Lpn, Nanos};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// An injected fault. The numbers of writes, reads and completions start at zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The write with this number fails with a medium error and changes no page.
    FailWrite(u64),
    /// The read with this number fails with a medium error.
    FailRead(u64),
    /// The completion with this number is never delivered.
    LoseCompletion(u64),
    /// The completion with this number is delivered twice.
    RepeatCompletion(u64),
}

/// A device that wraps another device and injects [`Fault`]s.
pub struct FaultDevice<D> {
    inner: D,
    faults: Vec<Fault>,
    reads: u64,
    writes: u64,
    completions: u64,
    failed: FxHashSet<Tag>,
}

impl<D: Device> FaultDevice<D> {
    /// Wraps the device `inner` and injects `faults`.
    pub fn new(inner: D, faults: Vec<Fault>) -> FaultDevice<D> {
        FaultDevice { inner, faults, reads: 0, writes: 0, completions: 0, failed: FxHashSet::default() }
    }

    /// Returns the wrapped device.
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

    fn fdp_log(&self) -> Option<FdpLog> {
        self.inner.fdp_log()
    }

    fn zone(&self, lpn: Lpn) -> Option<Zone> {
        self.inner.zone(lpn)
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
        // A failed command takes time like any other but changes nothing, so a flush is submitted in its
        // place.
        let operation = if fails { Operation::Flush } else { command.operation.clone() };
        // The command that a full queue refuses may be that flush, so the caller's own command is returned.
        self.inner.submit(Command { tag, operation }).map_err(|_| QueueFull(command))?;
        // The caller submits a refused command again, so only accepted commands are counted.
        match fault {
            Fault::FailRead(_) => self.reads += 1,
            _ => self.writes += 1,
        }
        if fails {
            self.failed.insert(tag);
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
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
