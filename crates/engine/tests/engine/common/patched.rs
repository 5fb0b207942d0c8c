//! A drive over a shared image that keeps its own writes in memory. So a test can afford thousands of drives
//! that differ in one byte.

use fulgurite_base::Nanos;
use fulgurite_device::{Caps, Command, Completion, Device, Operation, QueueFull, Tag};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The page size of the drive in bytes.
pub(crate) const PAGE: usize = 4096;

/// A drive that reads from a shared image, with its own writes over it.
pub(crate) struct Patched {
    caps: Caps,
    base: Rc<Vec<u8>>,
    pages: BTreeMap<u64, Box<[u8]>>,
    now: Nanos,
    done: Vec<(Tag, Result<(), fulgurite_device::IoError>)>,
    /// Whether the drive was written to.
    pub written: bool,
}

impl Patched {
    /// Creates a drive with the contents of `base`.
    pub(crate) fn new(base: &Rc<Vec<u8>>) -> Patched {
        let caps =
            Caps { pages_per_command: 256, ..Caps::plain(PAGE as u32, (base.len() / PAGE) as u64, 256) };
        let (pages, done) = (BTreeMap::new(), Vec::new());
        Patched { caps, base: Rc::clone(base), pages, now: Nanos::ZERO, done, written: false }
    }

    /// Writes bytes at an address.
    pub(crate) fn patch(&mut self, at: usize, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            let mut page: Box<[u8]> = self.page((at / PAGE) as u64).into();
            page[at % PAGE] = *byte;
            self.pages.insert((at / PAGE) as u64, page);
        }
    }

    /// Replaces a page.
    pub(crate) fn put_page(&mut self, page: usize, bytes: &[u8]) {
        self.pages.insert(page as u64, bytes.into());
    }

    fn page(&self, page: u64) -> &[u8] {
        match self.pages.get(&page) {
            Some(page) => page,
            None => &self.base[page as usize * PAGE..][..PAGE],
        }
    }

    /// Returns the contents of the drive.
    pub(crate) fn contents(&self) -> Vec<u8> {
        (0..self.caps.pages).flat_map(|page| self.page(page).to_vec()).collect()
    }

    fn perform(&mut self, operation: &Operation) {
        match operation {
            Operation::Read { lpn, into: Some(buffer), .. } => {
                // SAFETY: from submission to completion the device owns the buffer.
                let bytes = unsafe { buffer.bytes_mut() };
                for (page, to) in (lpn.0..).zip(bytes.chunks_exact_mut(PAGE)) {
                    to.copy_from_slice(self.page(page));
                }
            }
            Operation::Write { lpn, from: Some(buffer), .. } => {
                self.written = true;
                // SAFETY: from submission to completion nobody changes the buffer.
                let bytes = unsafe { buffer.bytes() };
                for (page, from) in (lpn.0..).zip(bytes.chunks_exact(PAGE)) {
                    self.pages.insert(page, from.into());
                }
            }
            Operation::Trim { lpn, pages } => {
                self.written = true;
                for page in lpn.0..lpn.0 + u64::from(*pages) {
                    self.pages.insert(page, vec![0; PAGE].into());
                }
            }
            _ => {}
        }
    }
}

impl Device for Patched {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let fault = command.operation.fault(&self.caps);
        if fault.is_none() {
            self.perform(&command.operation);
        }
        self.done.push((command.tag, fault.map_or(Ok(()), Err)));
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        if self.done.is_empty() {
            self.now = self.now.max(deadline.unwrap_or(self.now));
        } else {
            self.now += Nanos(1000);
        }
        let at = self.now;
        completions.extend(self.done.drain(..).map(|(tag, status)| Completion { tag, at, status }));
    }
}
