//! Joins consecutive physical pages, so that one command to the drive below serves all of them.

use fulgurite_base::Ppn;

/// Consecutive physical pages of one command, all in one segment.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first: Ppn,
    pub(crate) pages: u32,
    /// The index of the first page in the command.
    pub(crate) at: u32,
}

impl Run {
    pub(crate) fn page(ppn: Ppn, at: u32) -> Run {
        Run { first: ppn, pages: 1, at }
    }

    /// Appends `page` to the run, or begins a new run with it and returns the previous one.
    pub(crate) fn extend(run: &mut Option<Run>, page: Run, segment_pages: u32) -> Option<Run> {
        match run {
            Some(run) if run.goes_on(&page, segment_pages) => {
                run.pages += 1;
                None
            }
            _ => run.replace(page),
        }
    }

    /// Returns whether `page` continues this run, in a segment of `segment_pages`.
    fn goes_on(&self, page: &Run, segment_pages: u32) -> bool {
        page.first.0 == self.first.0 + self.pages
            && page.at == self.at + self.pages
            // Keeps a run within one segment, since `in_use` counts commands by segment.
            && !page.first.0.is_multiple_of(segment_pages)
    }
}
