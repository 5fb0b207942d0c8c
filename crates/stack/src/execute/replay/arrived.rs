//! Measures the arrivals of an open loop: the rate that they offer, and whether the queue grows over the run.

use crate::{Column, Row, Value, progress};
use fulgurite_base::Nanos;

/// The parts of a run that are compared.
const PARTS: usize = 4;
/// The growth of the mean queue from each part to the next that counts as a queue that grows over the run. A
/// queue that grows at a steady pace grows by 3, 5/3 and 7/5.
const GROWTH: f64 = 1.2;
/// The share of all requests by which such a queue has grown at the last arrival, at least.
const SHARE_GROWN: f64 = 0.02;
/// The share of the offered rate that a drive serves at most if it does not sustain that rate.
const SERVED_AT_MOST: f64 = 0.99;
/// The number of requests by which such a queue has grown at the last arrival, at least.
const LEAST_GROWN: u64 = 64;

/// The arrivals of an open loop.
pub(super) struct Arrived {
    /// The expected number of requests.
    ops: u64,
    requests: u64,
    first: Nanos,
    last: Nanos,
    /// For each part of the run, the number of arrivals and the sum of the requests outstanding at them.
    parts: [(u64, u64); PARTS],
    /// The number of requests outstanding at the first arrival and at the last one.
    outstanding: (u64, u64),
}

impl Arrived {
    /// Begins to measure a run of `ops` requests.
    pub(super) fn new(ops: u64) -> Arrived {
        Arrived {
            ops,
            requests: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
            parts: [(0, 0); PARTS],
            outstanding: (0, 0),
        }
    }

    /// Records an arrival while `outstanding` earlier requests have not completed.
    pub(super) fn record(&mut self, at: Nanos, outstanding: usize) {
        let outstanding = outstanding as u64;
        if self.requests == 0 {
            (self.first, self.outstanding.0) = (at, outstanding);
        }
        let part = (self.requests * PARTS as u64 / self.ops.max(1)) as usize;
        self.outstanding.1 = outstanding;
        let (arrivals, sum) = &mut self.parts[part.min(PARTS - 1)];
        (*arrivals, *sum) = (*arrivals + 1, *sum + outstanding);
        self.requests += 1;
        self.last = at;
    }

    /// Returns the requests per second that arrived; `None` if they arrived at one moment.
    fn offered(&self) -> Option<f64> {
        let seconds = (self.last - self.first).as_secs_f64();
        (seconds > 0.0).then(|| (self.requests - 1) as f64 / seconds)
    }

    /// Whether the queue grows over the whole run, and not only in a burst.
    fn is_growing(&self) -> bool {
        let means = self.parts.map(|(arrivals, sum)| sum as f64 / arrivals.max(1) as f64);
        self.has_grown() && means.windows(2).all(|pair| pair[1] >= GROWTH * pair[0])
    }

    /// Whether the queue is longer at the last arrival than at the first. One round of several must not leave
    /// a longer queue than the round before.
    pub(super) fn has_grown(&self) -> bool {
        let least = (SHARE_GROWN * self.requests as f64).max(LEAST_GROWN as f64);
        self.outstanding.1.saturating_sub(self.outstanding.0) as f64 >= least
    }

    /// Sets the offered rate. Leaves a remark if the drive does not sustain it; `is_behind` says so of a run in
    /// rounds.
    pub(super) fn set(&self, row: &mut Row, run: &str, is_behind: bool) {
        let Some(offered) = self.offered() else { return };
        row.set(Column::OfferedOpsS, offered);
        let served = row.number(Column::ThroughputOpsS).unwrap_or(offered);
        if (is_behind || self.is_growing()) && served < SERVED_AT_MOST * offered {
            progress::remark(format!(
                "{run}: {} requests/s arrive and {} are served, so the queue grows over the whole run: response times \
                    tell the length of the run, not the drive, which sustains about the served rate (a lower --rate \
                    or --speed stays below it)",
                Value::Real(offered).readable(),
                Value::Real(served).readable()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the arrivals of 1,000 requests, one per microsecond, with these numbers of outstanding
    /// requests.
    fn arrived(outstanding: impl Fn(u64) -> u64) -> Arrived {
        let mut arrived = Arrived::new(1000);
        (0..1000).for_each(|at| arrived.record(Nanos(at * 1000), outstanding(at) as usize));
        arrived
    }

    /// The rule: a queue that grows at a steady pace is growing. A long queue of constant length, a burst at
    /// the end, and a short queue that grows are not.
    #[test]
    fn only_a_queue_that_grows_over_the_run_is_growing() {
        assert!(arrived(|at| at / 2).is_growing());
        assert!(!arrived(|_| 500).is_growing());
        assert!(!arrived(|at| if at < 900 { 5 } else { at - 800 }).is_growing());
        assert!(!arrived(|at| at / 20).is_growing());
    }

    #[test]
    fn the_offered_rate_counts_the_gaps_between_arrivals() {
        let offered = arrived(|_| 0).offered().unwrap();
        assert!((offered / 1e6 - 1.0).abs() < 1e-9, "{offered}");
        assert_eq!(Arrived::new(1).offered(), None);
    }
}
