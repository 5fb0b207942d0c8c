//! Drives for several threads that lose power together, after a number of writes and flushes of any of them. A power
//! cut keeps some of the pages that were written since the last flush of their drive, and loses the others.

use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Caps, Command, Completion, Device, Operation, QueueFull};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const PAGE: usize = 4096;
const PAGES: u64 = 4096;
/// The time that a command takes, in nanoseconds.
pub(crate) const LATENCY: u64 = 10_000;

type Page = Arc<[u8]>;

/// The power of several drives: the number of writes and flushes until it is cut.
#[derive(Clone)]
pub(crate) struct Power(Arc<AtomicU64>);

impl Power {
    pub(crate) fn new(commands: u64) -> Power {
        Power(Arc::new(AtomicU64::new(commands)))
    }

    /// Returns the number of writes and flushes until the power is cut.
    pub(crate) fn left(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, commands: u64) {
        self.0.store(commands, Relaxed);
    }

    /// Whether there is power for a command.
    fn take(&self, counts: bool) -> bool {
        let left = self.left();
        self.set(left - u64::from(counts && left > 0 && left < u64::MAX));
        left > 0
    }
}

/// The contents of a drive.
#[derive(Clone, Default)]
struct Contents {
    /// The contents that no power cut changes.
    durable: HashMap<u64, Page>,
    /// The pages that were written since the last flush, in order.
    unflushed: Vec<(u64, Page)>,
}

/// The contents of a drive that has lost power. Clones are copies.
pub(crate) struct Medium(Arc<Mutex<Contents>>);

impl Clone for Medium {
    fn clone(&self) -> Medium {
        Medium(Arc::new(Mutex::new(self.0.lock().unwrap().clone())))
    }
}

impl Medium {
    pub(crate) fn empty() -> Medium {
        Medium(Arc::default())
    }

    /// Returns a drive with these contents.
    pub(crate) fn drive(&self, power: &Power) -> Drive {
        let caps = Caps { pages_per_command: 1024, atomic_bytes: 4096, ..Caps::plain(4096, PAGES, 64) };
        let now = Nanos::ZERO;
        let contents = Arc::clone(&self.0);
        Drive { caps, now, power: power.clone(), contents, ended: Vec::new(), hook: Box::new(|_| LATENCY) }
    }

    /// Returns what a drive without power would read, from its beginning to its last page.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let contents = self.0.lock().unwrap();
        (0..PAGES).flat_map(|at| contents.page(at).map_or(vec![0; PAGE], |page| page.to_vec())).collect()
    }

    /// Cuts the power: each page that was written since the last flush is kept with this probability in percent.
    pub(crate) fn cut(&self, kept_percent: u64, prng: &mut Prng) {
        let contents = &mut *self.0.lock().unwrap();
        for (page, bytes) in std::mem::take(&mut contents.unflushed) {
            if prng.below(100) < kept_percent {
                contents.durable.insert(page, bytes);
            }
        }
    }
}

/// A drive of 16 MiB. Without power it completes no command.
pub(crate) struct Drive {
    caps: Caps,
    now: Nanos,
    power: Power,
    contents: Arc<Mutex<Contents>>,
    ended: Vec<Completion>,
    /// A function that is called before each command, and returns how long it takes in nanoseconds.
    hook: Hook,
}

type Hook = Box<dyn FnMut(&Operation) -> u64 + Send>;

impl Drive {
    pub(crate) fn with_hook(self, hook: impl FnMut(&Operation) -> u64 + Send + 'static) -> Drive {
        Drive { hook: Box::new(hook), ..self }
    }
}

impl Contents {
    fn page(&self, at: u64) -> Option<&Page> {
        let newest = self.unflushed.iter().rev().find(|(page, _)| *page == at);
        newest.map(|(_, bytes)| bytes).or_else(|| self.durable.get(&at))
    }

    fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::Read { lpn, into: Some(buffer), .. } => {
                // SAFETY: the buffer belongs to the drive until completion.
                let bytes = unsafe { buffer.bytes_mut() };
                for (at, page) in (lpn.0..).zip(bytes.chunks_exact_mut(PAGE)) {
                    match self.page(at) {
                        Some(stored) => page.copy_from_slice(stored),
                        None => page.fill(0),
                    }
                }
            }
            Operation::Write { lpn, from: Some(buffer), .. } => {
                // SAFETY: from submission to completion nobody changes the buffer.
                let bytes = unsafe { buffer.bytes() };
                let pages = (lpn.0..).zip(bytes.chunks_exact(PAGE));
                self.unflushed.extend(pages.map(|(at, page)| (at, page.into())));
            }
            Operation::Trim { lpn, pages } => {
                let trimmed = lpn.0..lpn.0 + u64::from(*pages);
                self.unflushed.extend(trimmed.map(|at| (at, vec![0; PAGE].into())));
            }
            Operation::Flush => self.durable.extend(std::mem::take(&mut self.unflushed)),
            _ => {}
        }
    }
}

impl Device for Drive {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let counts = !matches!(command.operation, Operation::Read { .. });
        if !self.power.take(counts) {
            return Ok(());
        }
        let fault = command.operation.fault(&self.caps);
        if fault.is_none() {
            self.contents.lock().unwrap().perform(&command.operation);
        }
        let at = Nanos(self.now.0 + (self.hook)(&command.operation));
        self.ended.push(Completion { tag: command.tag, at, status: fault.map_or(Ok(()), Err) });
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        if self.power.left() == 0 {
            self.ended.clear();
        }
        // The clock does not go back if the deadline has already passed.
        let deadline = deadline.map(|deadline| deadline.max(self.now));
        let next = self.ended.iter().map(|ended| ended.at).min();
        let Some(until) = next.into_iter().chain(deadline).min() else { return };
        self.now = until;
        completions.extend(self.ended.extract_if(.., |ended| ended.at <= until));
    }
}
