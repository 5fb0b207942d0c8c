//! The [`Generator`] of a workload, an endless iterator of requests, and the interface of its source.

use super::two_class::TwoClass;
use super::zipf::Zipf;
use crate::Request;
use std::fmt::Debug;

/// An endless source of requests, one type for each kind of workload.
pub trait RequestSource: Debug + Send {
    /// Returns the next request.
    fn request(&mut self) -> Request;
}

/// The generator of a workload, an endless iterator of requests.
#[derive(Debug)]
pub struct Generator {
    source: Source,
    mean_gap_ns: Option<f64>,
}

/// The source of a generator. Counting runs draw hundreds of millions of requests from the first two kinds,
/// so these have variants of their own, whose calls are inlined.
#[derive(Debug)]
enum Source {
    TwoClass(TwoClass),
    Zipf(Zipf),
    Other(Box<dyn RequestSource>),
}

impl Generator {
    /// Creates a generator of the requests of `source`, without arrival times.
    pub fn new(source: impl RequestSource + 'static) -> Generator {
        Generator { source: Source::Other(Box::new(source)), mean_gap_ns: None }
    }

    pub(super) fn two_class(source: TwoClass) -> Generator {
        Generator { source: Source::TwoClass(source), mean_gap_ns: None }
    }

    pub(super) fn zipf(source: Zipf) -> Generator {
        Generator { source: Source::Zipf(source), mean_gap_ns: None }
    }

    /// Returns the same generator with this mean time between arrivals, in nanoseconds.
    pub(super) fn with_mean_gap_ns(self, mean_gap_ns: Option<f64>) -> Generator {
        Generator { mean_gap_ns, ..self }
    }

    /// Returns the next request.
    #[inline]
    pub fn request(&mut self) -> Request {
        match &mut self.source {
            Source::TwoClass(source) => source.request(),
            Source::Zipf(source) => source.request(),
            Source::Other(source) => source.request(),
        }
    }

    /// Appends the next `count` requests to `requests`.
    pub fn append(&mut self, requests: &mut Vec<Request>, count: usize) {
        // The kind of source is matched once for the whole batch, not for each request.
        match &mut self.source {
            Source::TwoClass(source) => requests.extend((0..count).map(|_| source.request())),
            Source::Zipf(source) => requests.extend((0..count).map(|_| source.request())),
            Source::Other(source) => requests.extend((0..count).map(|_| source.request())),
        }
    }

    /// The mean time between arrivals, in nanoseconds; `None` if requests have no times.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        self.mean_gap_ns
    }

    /// Whether requests have arrival times. Without them, all requests arrive at time zero.
    pub fn is_timed(&self) -> bool {
        self.mean_gap_ns.is_some()
    }
}

impl Iterator for Generator {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        Some(self.request())
    }
}
