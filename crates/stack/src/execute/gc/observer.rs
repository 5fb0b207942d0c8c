//! Looks at a counting run at chosen page writes.

use fulgurite_ftl::{CountingSink, Ftl};

/// What has been counted up to a point of the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub host: u64,
    pub flash: CountingSink,
}

impl Counts {
    /// What came after `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
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

    pub fn waf(&self) -> f64 {
        self.flash.programs as f64 / self.host as f64
    }
}

/// Looks at a run at page writes of its own choice.
pub(super) trait Observer {
    /// The page write after which it wants to look next.
    fn next(&self) -> Option<u64>;

    /// Looks: that page write has just happened.
    fn look(&mut self, ftl: &Ftl, now: Counts);
}
