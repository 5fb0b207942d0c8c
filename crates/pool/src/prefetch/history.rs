//! The policy `history`: expects that a page is followed by the same page as before.
//!
//! A table maps a page to its successor, the page that was requested after it. A successor is trusted after
//! it was seen twice in a row, and it is replaced when another page follows. Successors are chained to
//! predict several pages. The table is direct-mapped, so its memory is bounded: a page overwrites the entry
//! of another page in the same slot. A miss costs O(n) for n prefetched pages.

use super::policy::{Prefetch, PrefetchPolicy};
use super::sequential::{MOST_PAGES, SequentialConfig};
use fulgurite_base::option::COUNT;
use fulgurite_base::{Declared, Form, Opt, PageId, SpecError, opt, units};

/// The greatest number of entries that the option `table` accepts. A table of this size takes a gibibyte.
const MOST_ENTRIES: u32 = 1 << 25;

/// The form of a count that is a power of two.
const POWER_OF_TWO: Form<u32> = Form {
    written: "2^N",
    parse: |text| {
        let count = units::parse_count(text)?;
        u32::try_from(count).ok().filter(|count| count.is_power_of_two()).ok_or_else(|| {
            SpecError::new(format!("{count} is not a power of two; accepted: one from 1 to {MOST_ENTRIES}"))
        })
    },
    show: u32::to_string,
};

/// The options of the policies `history` and `both`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryConfig {
    /// The most pages that are prefetched for one miss.
    pub n: u32,
    /// The number of entries of the table of successors, a power of two.
    pub table: u32,
}

impl Default for HistoryConfig {
    fn default() -> HistoryConfig {
        HistoryConfig { n: SequentialConfig::default().n, table: 1 << 16 }
    }
}

impl Declared for HistoryConfig {
    const OPTIONS: &'static [Opt<HistoryConfig>] = &[
        opt!("n", n, COUNT, 1 => MOST_PAGES, "pages for one miss at most"),
        opt!("table", table, POWER_OF_TWO, 1 => MOST_ENTRIES, "pages whose successor is remembered"),
    ];
}

pub(super) fn start(config: &HistoryConfig) -> Result<Prefetch, SpecError> {
    Ok(Prefetch::new(config.n, History::new(config.table)))
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: PageId,
    successor: PageId,
    believed: bool,
}

/// A page number that no drive has; it marks an empty entry.
const NO_PAGE: PageId = PageId(u64::MAX);

/// The table of successors, and the page that was observed last.
#[derive(Clone, Debug)]
pub(super) struct History {
    entries: Vec<Entry>,
    last: PageId,
}

impl History {
    pub(crate) fn new(entries: u32) -> History {
        let empty = Entry { page: NO_PAGE, successor: NO_PAGE, believed: false };
        // The slot of a page is its hash under a mask, so the number of slots must be a power of two.
        History { entries: vec![empty; entries.next_power_of_two() as usize], last: NO_PAGE }
    }

    fn place(&self, page: PageId) -> usize {
        (page.mixed() >> 32) as usize & (self.entries.len() - 1)
    }
}

impl PrefetchPolicy for History {
    fn observe(&mut self, page: PageId) {
        let before = std::mem::replace(&mut self.last, page);
        if before == NO_PAGE || before == page {
            return;
        }
        let place = self.place(before);
        let entry = &mut self.entries[place];
        // The successor is trusted only if the entry is of the same page; it may be of another page in the
        // same slot.
        let again = entry.page == before && entry.successor == page;
        *entry = Entry { page: before, successor: page, believed: again };
    }

    fn suggest(&self, page: PageId, most: usize, pages: &mut Vec<PageId>) {
        let mut at = page;
        while pages.len() < most {
            let entry = &self.entries[self.place(at)];
            // A chain of successors may be a cycle, so a page that was already named ends it.
            if entry.page != at
                || !entry.believed
                || entry.successor == page
                || pages.contains(&entry.successor)
            {
                return;
            }
            at = entry.successor;
            pages.push(at);
        }
    }
}
