//! Observers of a counting run.

use fulgurite_ftl::{CountingSink, Ftl};

/// Counts up to a point of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub host: u64,
    pub flash: CountingSink,
}

impl Counts {
    /// The counts since `earlier`.
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

/// Looks at a run at page writes of its choice.
pub(super) trait Observer {
    /// The next page write after which it looks.
    fn next(&self) -> Option<u64>;

    /// Looks at the run directly after that page write.
    fn look(&mut self, ftl: &Ftl, now: Counts);
}
