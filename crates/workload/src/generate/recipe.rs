//! The interface of a workload's description, and the space that a generator is started over.

use super::generator::Generator;
use fulgurite_base::{Prng, SpecError};
use std::fmt::Debug;

/// What a generator is started over.
#[derive(Clone, Copy, Debug)]
pub struct Space<'a> {
    /// The workload's name, for errors.
    pub name: &'a str,
    /// Pages, at least one.
    pub pages: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// The seed of all randomness.
    pub seed: u64,
}

impl Space<'_> {
    /// The stream that the requests are drawn from.
    pub fn prng(&self) -> Prng {
        Prng::new(self.seed, "workload")
    }

    /// Fails where there is no room for tables and their index pages.
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

/// A workload as described. It tells the properties of its requests and starts a generator of them.
pub trait Recipe: Debug + Send + Sync {
    /// The generator over a space.
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError>;

    /// Whether any request can ever be a write or a trim.
    fn writes_anything(&self) -> bool;

    /// Whether writes or trims go on for ever, so that any number of them comes in time.
    fn keeps_writing(&self) -> bool {
        self.writes_anything()
    }

    /// Whether any request can ever be a trim.
    fn trims_anything(&self) -> bool {
        false
    }

    /// Whether any request can ever be a write of what another page holds, for which a drive must be able to share.
    fn shares_anything(&self) -> bool {
        false
    }

    /// The mean time between arrivals, in nanoseconds; none where requests have no times.
    fn mean_gap_ns(&self) -> Option<f64> {
        None
    }

    /// Whether every page is equally likely in every request, independently of all others: the case in which write
    /// amplification has a closed form.
    fn is_uniform_random(&self) -> bool {
        false
    }
}
