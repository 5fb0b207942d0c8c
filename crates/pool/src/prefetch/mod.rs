//! What to read beside a missed page. One policy per file; [`Prefetch`] is the registry.
//!
//! A policy is told of every miss and of the first use of every page that it had prefetched: that is what
//! the drive would have been asked for without it. Asked, it names pages that will be wanted soon; the pool
//! reads as many as it may evict frames for, beside the missed page, and puts them where they would leave
//! next.

mod history;
mod sequential;

use fulgurite_base::{PageId, Spec, SpecError};

/// A prefetch policy.
#[derive(Clone, Debug)]
pub struct Prefetch {
    name: &'static str,
    sequential: Option<sequential::Sequential>,
    history: Option<history::History>,
    /// The most pages for one miss.
    most: u32,
}

/// Name and one line about it.
const LIST: [(&str, &str); 4] = [
    ("none", "read the missed page and nothing else"),
    ("sequential", "after two misses in a row, the pages that follow; n=8"),
    ("history", "the pages that followed last time, chained; n=8,table=65536"),
    ("both", "sequential where a run is seen, else history; n=8,table=65536"),
];

/// Pages for one miss where nothing else is asked for.
const MOST: u32 = 8;

impl Prefetch {
    /// Every policy's name, with one line about it.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        LIST.into_iter()
    }

    /// Nothing is prefetched.
    pub const NONE: Prefetch = Prefetch { name: "none", sequential: None, history: None, most: 0 };

    /// The policy that `spec` names.
    pub fn from_spec(mut spec: Spec) -> Result<Prefetch, SpecError> {
        let names = LIST.map(|(name, _)| name);
        let at = names.iter().position(|name| *name == spec.name());
        let name =
            at.map(|at| names[at]).ok_or_else(|| SpecError::unknown("prefetch", spec.name(), &names))?;
        let (sequential, history) =
            (matches!(name, "sequential" | "both"), matches!(name, "history" | "both"));
        let most = match sequential || history {
            true => spec.take::<u32>("n")?.unwrap_or(MOST),
            false => 0,
        };
        if name != "none" && (most == 0 || most > 1024) {
            return Err(SpecError::new(format!("n={most} of {name}; accepted: 1 to 1024 pages")));
        }
        let history = match history {
            true => Some(history::History::from_spec(&mut spec)?),
            false => None,
        };
        spec.finish()?;
        Ok(Prefetch { name, sequential: sequential.then(sequential::Sequential::default), history, most })
    }

    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it ever names a page.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.most == 0
    }

    /// `page` was asked for and was not in the pool, or was there only because it had been prefetched.
    pub fn observe(&mut self, page: PageId) {
        if let Some(sequential) = &mut self.sequential {
            sequential.observe(page);
        }
        if let Some(history) = &mut self.history {
            history.observe(page);
        }
    }

    /// Pages that will be wanted soon after `page`, at most `most`, soonest first.
    pub fn suggest(&self, page: PageId, most: u32, pages: &mut Vec<PageId>) {
        let most = most.min(self.most) as usize;
        if let Some(sequential) = &self.sequential {
            sequential.suggest(page, most, pages);
        }
        if let Some(history) = self.history.as_ref().filter(|_| pages.is_empty()) {
            history.suggest(page, most, pages);
        }
    }
}

impl std::fmt::Display for Prefetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        if self.most > 0 {
            write!(f, ":n={}", self.most)?;
        }
        self.history.as_ref().map_or(Ok(()), |history| write!(f, ",table={}", history.entries()))
    }
}
