//! The policy `sequential`: expects the next pages after pages that were requested in a row.
//!
//! Several runs of consecutive pages are tracked at once, each by the page that it expects next. A page that
//! a run expects extends that run. Any other page begins a new run, which replaces the one that grew least
//! recently. From the second page of a run on, the policy names the pages that follow. A miss costs O(runs).

use super::policy::{Prefetch, PrefetchPolicy};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Opt, PageId, SpecError, opt};

/// The greatest number of pages for one miss that an option accepts.
pub(super) const MOST_PAGES: u32 = 1_024;

/// The options of the policy `sequential`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequentialConfig {
    /// The most pages that are prefetched for one miss.
    pub n: u32,
}

impl Default for SequentialConfig {
    fn default() -> SequentialConfig {
        SequentialConfig { n: 8 }
    }
}

impl Declared for SequentialConfig {
    const OPTIONS: &'static [Opt<SequentialConfig>] =
        &[opt!("n", n, COUNT, 1 => MOST_PAGES, "pages for one miss at most")];
}

pub(super) fn start(config: &SequentialConfig) -> Result<Prefetch, SpecError> {
    Ok(Prefetch::new(config.n, Sequential::default()))
}

/// The number of runs that are tracked at once. It exceeds the usual number of concurrent scans.
const RUNS: usize = 32;
/// The least length of a trusted run, in pages.
const BELIEVED: u32 = 2;

#[derive(Clone, Copy, Debug)]
struct Run {
    next: PageId,
    length: u32,
    /// The time at which the run grew last, counted in observed pages.
    at: u64,
}

/// The tracked runs, and the number of observed pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Sequential {
    runs: Vec<Run>,
    now: u64,
}

impl PrefetchPolicy for Sequential {
    fn observe(&mut self, page: PageId) {
        self.now += 1;
        let next = PageId(page.0.wrapping_add(1));
        if let Some(run) = self.runs.iter_mut().find(|run| run.next == page) {
            *run = Run { next, length: run.length.saturating_add(1), at: self.now };
            return;
        }
        let fresh = Run { next, length: 1, at: self.now };
        if self.runs.len() < RUNS {
            self.runs.push(fresh);
        } else if let Some(oldest) = self.runs.iter_mut().min_by_key(|run| run.at) {
            *oldest = fresh;
        }
    }

    fn suggest(&self, page: PageId, most: usize, pages: &mut Vec<PageId>) {
        let next = PageId(page.0.wrapping_add(1));
        if self.runs.iter().any(|run| run.next == next && run.length >= BELIEVED) {
            // The pool skips pages beyond the end of the drive.
            pages.extend((0..most as u64).map(|offset| PageId(next.0.wrapping_add(offset))));
        }
    }
}
