//! The workloads `zipf` and `fio-*`, in which the popularity of pages has a Zipf distribution.

use super::generator::Generator;
use super::recipe::{Recipe, Space};
use super::zipf::{EXPONENT, THETA_MAX, Zipf};
use fulgurite_base::option::SHARE;
use fulgurite_base::{Declared, Opt, Share, SpecError, opt};

/// The options of `zipf`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZipfConfig {
    /// The Zipf exponent of the pages' popularity, from 0 (uniform) to 5.
    pub theta: f64,
    /// The share of requests that write.
    pub write: Share,
}

impl Default for ZipfConfig {
    fn default() -> ZipfConfig {
        ZipfConfig { theta: 0.99, write: Share::percent(50) }
    }
}

impl Declared for ZipfConfig {
    const OPTIONS: &'static [Opt<ZipfConfig>] = &[
        opt!("theta", theta, EXPONENT, 0.0 => THETA_MAX, "the exponent: 0 is uniform"),
        opt!("write", write, SHARE, Share::ZERO => Share::ONE, "requests that write"),
    ];
}

impl Recipe for ZipfConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        Ok(Generator::zipf(Zipf::new(space.pages, self.theta, self.write, space.prng())))
    }

    fn writes_anything(&self) -> bool {
        self.write > Share::ZERO
    }

    fn is_uniform_random(&self) -> bool {
        self.theta == 0.0
    }
}

/// The options of a workload that only writes, with a fixed exponent. A user cannot set any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FioConfig {
    /// The Zipf exponent of the pages' popularity; 0 is uniform.
    pub theta: f64,
}

impl Declared for FioConfig {
    const OPTIONS: &'static [Opt<FioConfig>] = &[];
}

impl Recipe for FioConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        ZipfConfig { theta: self.theta, write: Share::ONE }.start(space)
    }

    fn writes_anything(&self) -> bool {
        true
    }

    fn is_uniform_random(&self) -> bool {
        self.theta == 0.0
    }
}
