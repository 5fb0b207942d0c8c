//! A drive that fails on request.

use fulgurite_base::Nanos;
use fulgurite_device::{Caps, Command, Completion, Device, IoError, MemDevice, Operation, QueueFull, Tag};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A drive that fails commands of one kind while it is told to.
pub(crate) struct Refuses {
    inner: MemDevice,
    refuses: Rc<Cell<bool>>,
    kind: fn(&Operation) -> bool,
    refused: BTreeSet<Tag>,
}

impl Refuses {
    /// Returns the drive, and the flag that makes it fail while it is set.
    pub(crate) fn new(inner: MemDevice, kind: fn(&Operation) -> bool) -> (Refuses, Rc<Cell<bool>>) {
        let refuses = Rc::new(Cell::new(false));
        (Refuses { inner, refuses: Rc::clone(&refuses), kind, refused: BTreeSet::new() }, refuses)
    }
}

impl Device for Refuses {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.refuses.get() && (self.kind)(&command.operation) {
            self.refused.insert(command.tag);
        }
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        let from = completions.len();
        self.inner.wait(deadline, completions);
        for completion in &mut completions[from..] {
            if self.refused.remove(&completion.tag) {
                completion.status = Err(IoError::Media);
            }
        }
    }
}
