//! Defines observers of a `gc` run, which inspect the run at chosen page writes.

use fulgurite_ftl::{CountingSink, Ftl};

/// The counts from the beginning of a run up to one point of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub host: u64,
    pub flash: CountingSink,
}

impl Counts {
    /// Returns the counts since `earlier`.
    pub(super) fn since(&self, earlier: &Counts) -> Counts {
        let (now, then) = (&self.flash, &earlier.flash);
        Counts {
            host: self.host - earlier.host,
            flash: CountingSink {
                reads: now.reads - then.reads,
                programs: now.programs - then.programs,
                erases: now.erases - then.erases,
            },
        }
    }

    pub(super) fn waf(&self) -> f64 {
        self.flash.programs as f64 / self.host as f64
    }
}

/// Inspects a run after page writes of its choice.
pub(super) trait Observer {
    /// Returns the number of the next page write after which the observer inspects the run; `None` if there
    /// is none.
    fn next(&self) -> Option<u64>;

    /// Inspects the run directly after the page write that [`Observer::next`] has named.
    fn look(&mut self, ftl: &Ftl, now: Counts);
}
