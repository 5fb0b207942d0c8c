//! The interface of a workload's options, and the parameters with which a generator is started.

use super::generator::Generator;
use fulgurite_base::{Prng, SpecError};
use std::fmt::Debug;

/// The parameters with which a generator is started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    /// The workload's name, for errors.
    pub name: &'a str,
    /// Pages, at least one.
    pub pages: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// The random seed.
    pub seed: u64,
}

impl Space<'_> {
    /// The random stream for the requests.
    pub(crate) fn prng(&self) -> Prng {
        Prng::new(self.seed, "workload")
    }

    /// Fails if there are too few pages for tables and their index pages.
    pub(super) fn check_tables(&self) -> Result<(), SpecError> {
        let Space { name, pages, .. } = self;
        match *pages < 100 {
            true => Err(SpecError::new(format!(
                "pages of {name}: {pages} is too few for tables and index pages; accepted: at least 100"
            ))),
            false => Ok(()),
        }
    }
}

/// A workload's options. They tell properties of its requests, and start a generator.
pub(crate) trait Recipe: Debug + Send + Sync {
    /// Starts the generator.
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError>;

    /// Whether any request can be a write or a trim.
    fn writes_anything(&self) -> bool;

    /// Whether writes or trims never cease, so that any number of them occurs eventually.
    fn keeps_writing(&self) -> bool {
        self.writes_anything()
    }

    /// Whether any request can be a trim.
    fn trims_anything(&self) -> bool {
        false
    }

    /// Whether any request can be a write of another page's content, for which a drive needs SHARE.
    fn shares_anything(&self) -> bool {
        false
    }

    /// The mean time between arrivals, in nanoseconds; `None` if requests have no times.
    fn mean_gap_ns(&self) -> Option<f64> {
        None
    }

    /// Whether every page is equally likely in every request, independently of all other requests. Then write
    /// amplification has a closed form.
    fn is_uniform_random(&self) -> bool {
        false
    }
}
