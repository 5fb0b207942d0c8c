//! The queues of pages of writes that wait for their units, with striping by address.

use std::collections::VecDeque;

/// The waiting pages of each unit.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// For each unit, the waiting pages as pairs of command and logical page; empty without striping by
    /// address. `pages` is the number of all waiting pages.
    pub(crate) queues: Vec<VecDeque<(u32, u32)>>,
    pub(crate) pages: u32,
}

impl Waiting {
    pub(crate) fn new(units: u32) -> Waiting {
        Waiting { queues: vec![VecDeque::new(); units as usize], pages: 0 }
    }

    /// Returns whether the drive stripes by address.
    #[inline]
    pub(crate) fn is_by_address(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Returns whether no page waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// Removes the pages of commands for which `is_kept` is false.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|(command, _)| is_kept(*command)));
        self.pages = self.queues.iter().map(|queue| queue.len() as u32).sum();
    }
}
