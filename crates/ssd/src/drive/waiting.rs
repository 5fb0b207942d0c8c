//! Pages of writes that wait for their units, with striping by address.

use std::collections::VecDeque;

/// The waiting pages: the command and the logical page.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By unit; empty without striping by address.
    pub(crate) queues: Vec<VecDeque<(u32, u32)>>,
    pub(crate) pages: u32,
}

impl Waiting {
    pub(crate) fn new(units: u32) -> Waiting {
        Waiting { queues: vec![VecDeque::new(); units as usize], pages: 0 }
    }

    /// Whether the drive stripes by address.
    #[inline]
    pub(crate) fn is_by_address(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Whether no page waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// Removes the pages of commands that are not kept.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|(command, _)| is_kept(*command)));
        self.pages = self.queues.iter().map(|queue| queue.len() as u32).sum();
    }
}
