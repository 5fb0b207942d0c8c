//! History: what followed a page last time will follow it again.
//!
//! A table from a page to the one that was asked for after it. A successor must be seen twice running
//! before it is believed, and is replaced when another one is. Successors are chained for more pages. The
//! table is direct-mapped, so its memory is bounded: a page that falls on another's entry takes it over.
//! O(n).

use fulgurite_base::{PageId, Spec, SpecError};

#[derive(Clone, Copy, Debug)]
struct Entry {
    page: PageId,
    successor: PageId,
    believed: bool,
}

/// No page that a drive could have.
const NOBODY: PageId = PageId(u64::MAX);

/// The table of successors.
#[derive(Clone, Debug)]
pub(super) struct History {
    entries: Vec<Entry>,
    last: PageId,
}

impl History {
    pub fn from_spec(spec: &mut Spec) -> Result<History, SpecError> {
        let entries = spec.take::<u32>("table")?.unwrap_or(1 << 16);
        if !entries.is_power_of_two() {
            return Err(SpecError::new(format!(
                "table={entries} of {}; accepted: a power of two",
                spec.name()
            )));
        }
        let empty = Entry { page: NOBODY, successor: NOBODY, believed: false };
        Ok(History { entries: vec![empty; entries as usize], last: NOBODY })
    }

    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    fn place(&self, page: PageId) -> usize {
        (page.mixed() >> 32) as usize & (self.entries.len() - 1)
    }

    pub fn observe(&mut self, page: PageId) {
        let before = std::mem::replace(&mut self.last, page);
        if before == NOBODY || before == page {
            return;
        }
        let place = self.place(before);
        let entry = &mut self.entries[place];
        let again = entry.page == before && entry.successor == page;
        *entry = Entry { page: before, successor: page, believed: again };
    }

    pub fn suggest(&self, page: PageId, most: usize, pages: &mut Vec<PageId>) {
        let mut at = page;
        while pages.len() < most {
            let entry = &self.entries[self.place(at)];
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
