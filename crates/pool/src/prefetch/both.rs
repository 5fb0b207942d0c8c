//! The policy `both`: sequential prefetching if there is a run, otherwise prefetching by history.
//!
//! A run of consecutive pages is detected at its second miss, even if its pages were never read before.
//! History predicts scattered pages that were read in the same order before. So each of the two finds pages
//! that the other cannot. A miss costs O(runs + n) for n prefetched pages.

use super::history::{History, HistoryConfig};
use super::policy::{Prefetch, PrefetchPolicy};
use super::sequential::Sequential;
use fulgurite_base::{PageId, SpecError};

struct Both {
    sequential: Sequential,
    history: History,
}

pub(super) fn start(config: &HistoryConfig) -> Result<Prefetch, SpecError> {
    let both = Both { sequential: Sequential::default(), history: History::new(config.table) };
    Ok(Prefetch::new(config.n, both))
}

impl PrefetchPolicy for Both {
    fn observe(&mut self, page: PageId) {
        self.sequential.observe(page);
        self.history.observe(page);
    }

    fn suggest(&self, page: PageId, most: usize, pages: &mut Vec<PageId>) {
        self.sequential.suggest(page, most, pages);
        if pages.is_empty() {
            self.history.suggest(page, most, pages);
        }
    }
}
