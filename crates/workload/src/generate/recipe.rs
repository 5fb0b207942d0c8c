//! The interface of a workload's options, and the parameters with which a generator is started.

use super::generator::Generator;
use fulgurite_base::{Prng, SpecError};
use std::fmt::Debug;

/// The parameters with which a generator is started, which are its address space and its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space<'a> {
    /// The workload's name, for error messages.
    pub name: &'a str,
    /// The number of pages, at least one.
    pub pages: u64,
    /// The size of a page, in bytes.
    pub page_bytes: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Space<'_> {
    /// Returns the random stream for the requests.
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

/// The options of a workload. They state properties of its requests, and start its generator.
pub(crate) trait Recipe: Debug + Send + Sync {
    /// Starts the generator over this space.
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

    /// Whether any request can be a write of another page's content, which only a drive with SHARE can store
    /// without writing.
    fn shares_anything(&self) -> bool {
        false
    }

    /// The mean time between arrivals, in nanoseconds; `None` if requests have no times.
    fn mean_gap_ns(&self) -> Option<f64> {
        None
    }

    /// Whether every page is equally likely in every request, independently of all other requests. In this
    /// case write amplification has a closed form.
    fn is_uniform_random(&self) -> bool {
        false
    }
}
