//! Both: sequential where a run is seen, else history.
//!
//! A run is seen at its second miss; history needs a page to come a second time. So each sees what the other
//! cannot. O(runs + n).

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
