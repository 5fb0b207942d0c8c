//! A drive that loses power after a number of commands. A power cut keeps some of the pages that were written since the
//! last flush, and loses the others.

use super::patched::{PAGE, Patched};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Caps, Command, Completion, Device, Operation, QueueFull};
use std::rc::Rc;

/// A drive that takes commands until the power is cut, and completes none later.
pub(crate) struct Cuts {
    inner: Patched,
    /// The contents that no power cut changes.
    durable: Patched,
    /// The pages that were written since the last flush, in order.
    unflushed: Vec<(usize, Vec<u8>)>,
    /// The number of commands until the power is cut.
    left: u64,
}

impl Cuts {
    /// Creates a drive with the contents of `base` that takes `commands` commands.
    pub(crate) fn new(base: &Rc<Vec<u8>>, commands: u64) -> Cuts {
        Cuts { inner: Patched::new(base), durable: Patched::new(base), unflushed: Vec::new(), left: commands }
    }

    /// Returns the number of commands that the drive would still take.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the contents of the drive after the power cut.
    pub(crate) fn contents(&mut self, prng: &mut Prng) -> Rc<Vec<u8>> {
        for (page, bytes) in std::mem::take(&mut self.unflushed) {
            if prng.below(2) == 0 {
                self.durable.put_page(page, &bytes);
            }
        }
        Rc::new(self.durable.contents())
    }

    fn note(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { lpn, from: Some(buffer), .. } => {
                // SAFETY: from submission to completion nobody changes the buffer.
                let bytes = unsafe { buffer.bytes() };
                let pages = (lpn.0 as usize..).zip(bytes.chunks_exact(PAGE));
                self.unflushed.extend(pages.map(|(page, bytes)| (page, bytes.to_vec())));
            }
            Operation::Trim { lpn, pages } => {
                let trimmed = lpn.0 as usize..(lpn.0 + u64::from(*pages)) as usize;
                self.unflushed.extend(trimmed.map(|page| (page, vec![0; PAGE])));
            }
            Operation::Flush => {
                for (page, bytes) in std::mem::take(&mut self.unflushed) {
                    self.durable.put_page(page, &bytes);
                }
            }
            _ => {}
        }
    }
}

impl Device for Cuts {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        if command.operation.fault(self.inner.caps()).is_none() {
            self.note(&command.operation);
        }
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
    }
}
