//! Joins pages that lie one behind the other on the drive below, so that one command serves all of them.

use fulgurite_base::Ppn;

/// Pages of a command, or of a fetch, that lie one behind the other below, in one segment.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub first: Ppn,
    pub pages: u32,
    /// The first one's number in the command.
    pub at: u32,
}

impl Run {
    pub fn page(ppn: Ppn, at: u32) -> Run {
        Run { first: ppn, pages: 1, at }
    }

    /// Adds `page` to the run at its end, or begins another with it; the one before that is returned.
    pub fn extend(run: &mut Option<Run>, page: Run, segment_pages: u32) -> Option<Run> {
        match run {
            Some(run) if run.goes_on(&page, segment_pages) => {
                run.pages += 1;
                None
            }
            _ => run.replace(page),
        }
    }

    /// Whether `page` is the next of this run, in a segment of `segment_pages`.
    fn goes_on(&self, page: &Run, segment_pages: u32) -> bool {
        page.first.0 == self.first.0 + self.pages
            && page.at == self.at + self.pages
            // A command below stays within one segment, since `in_use` counts by segment.
            && !page.first.0.is_multiple_of(segment_pages)
    }
}
