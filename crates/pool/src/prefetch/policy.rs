//! The interface of a prefetch policy, and a policy at work in a pool.

use fulgurite_base::PageId;

/// A prefetch policy. A pool may move between threads, so a policy must be able to.
pub(super) trait PrefetchPolicy: Send {
    /// `page` was asked for and was not in the pool, or was there only because it had been prefetched.
    fn observe(&mut self, page: PageId);

    /// Appends pages that will be wanted soon after `page`, at most `most`, soonest first.
    fn suggest(&self, page: PageId, most: usize, pages: &mut Vec<PageId>);
}

/// A prefetch policy at work; by default, one that names no page.
#[derive(Default)]
pub struct Prefetch {
    policy: Option<Box<dyn PrefetchPolicy>>,
    /// The most pages for one miss.
    most: u32,
}

impl Prefetch {
    /// A policy; at most `most` of its pages are read for one miss.
    pub(super) fn new(most: u32, policy: impl PrefetchPolicy + 'static) -> Prefetch {
        Prefetch { policy: Some(Box::new(policy)), most }
    }

    /// Whether it never names a page.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.most == 0
    }

    pub(crate) fn observe(&mut self, page: PageId) {
        if let Some(policy) = &mut self.policy {
            policy.observe(page);
        }
    }

    pub(crate) fn suggest(&self, page: PageId, most: u32, pages: &mut Vec<PageId>) {
        if let Some(policy) = &self.policy {
            policy.suggest(page, most.min(self.most) as usize, pages);
        }
    }
}
