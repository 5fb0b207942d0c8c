//! The interface of a prefetch policy, and the running policy of a pool.

use fulgurite_base::PageId;

/// A prefetch policy. A pool may move between threads, so a policy must be `Send`.
pub(super) trait PrefetchPolicy: Send {
    /// Records that `page` was requested and was not in the pool, or was there only because it had been
    /// prefetched.
    fn observe(&mut self, page: PageId);

    /// Appends at most `most` pages that will be requested soon after `page`, soonest first.
    fn suggest(&self, page: PageId, most: usize, pages: &mut Vec<PageId>);
}

/// The running prefetch policy of a pool. The default names no page.
#[derive(Default)]
pub struct Prefetch {
    policy: Option<Box<dyn PrefetchPolicy>>,
    /// The most pages that are prefetched for one miss; 0 if the policy names no page.
    most: u32,
}

impl Prefetch {
    /// Starts a policy; at most `most` of its pages are read for one miss.
    pub(super) fn new(most: u32, policy: impl PrefetchPolicy + 'static) -> Prefetch {
        Prefetch { policy: Some(Box::new(policy)), most }
    }

    /// Returns whether the policy never names a page.
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
