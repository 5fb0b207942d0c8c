//! A meter that checks conservation and Little's law while requests are in progress. Conservation means that
//! every submitted request completes once.
//!
//! Two sums are kept independently: the number of requests in flight integrated over time, and the latencies
//! of all requests. Once no request is in flight, the two sums must be equal. Divided by the elapsed time,
//! the first sum is the mean queue depth, and the second is the throughput times the mean latency, so this is
//! Little's law.

use fulgurite_base::Nanos;
use thiserror::Error;

/// A violation of conservation or of Little's law.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // each message names the fields
pub enum MeterError {
    /// The numbers of submitted and completed requests differ, so requests were lost or invented.
    #[error("conservation is broken: {submitted} requests were submitted, {completed} completed")]
    Conservation { submitted: u64, completed: u64 },
    /// The sum of latencies differs from the integral of the number of requests in flight by more than 1 %.
    #[error("Little's law is broken: ∫N dt = {area_ns} ns but Σ latency = {latency_ns} ns")]
    LittlesLaw { area_ns: u128, latency_ns: u128 },
}

/// Counts the requests of one queue and integrates their number over time.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    submitted: u64,
    completed: u64,
    area_ns: u128,
    latency_ns: u128,
    last: Nanos,
}

impl Meter {
    /// Counts a request that is submitted at `now`.
    #[inline]
    pub fn submit(&mut self, now: Nanos) {
        self.advance(now);
        self.submitted += 1;
    }

    /// Counts a request that completes at `now` after `latency`.
    #[inline]
    pub fn complete(&mut self, now: Nanos, latency: Nanos) {
        self.advance(now);
        // A completion that is reported late was counted as in flight from its end until now, so that time is
        // subtracted.
        self.area_ns = self.area_ns.saturating_sub(u128::from(self.last.saturating_sub(now).0));
        self.completed += 1;
        self.latency_ns += u128::from(latency.0);
    }

    #[inline]
    fn advance(&mut self, now: Nanos) {
        // After a fault, completions may exceed submissions; `check` reports that.
        let in_flight = self.submitted - self.completed.min(self.submitted);
        self.area_ns += u128::from(in_flight) * u128::from(now.saturating_sub(self.last).0);
        // The clock does not go back, although a completion may be reported after a later event.
        self.last = self.last.max(now);
    }

    /// Returns the number of submitted requests.
    pub fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Returns the number of completed requests.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Checks conservation and Little's law. Call this function when no request should be in flight.
    pub fn check(&self) -> Result<(), MeterError> {
        let Meter { submitted, completed, area_ns, latency_ns, .. } = *self;
        if submitted != completed {
            return Err(MeterError::Conservation { submitted, completed });
        }
        if area_ns.abs_diff(latency_ns) * 100 > area_ns.max(latency_ns) {
            return Err(MeterError::LittlesLaw { area_ns, latency_ns });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_requests(second_latency: u64) -> Meter {
        let mut meter = Meter::default();
        meter.submit(Nanos(0));
        meter.submit(Nanos(10));
        meter.complete(Nanos(30), Nanos(30));
        meter.complete(Nanos(50), Nanos(second_latency));
        meter
    }

    #[test]
    fn a_correct_queue_passes() {
        let meter = two_requests(40);
        assert_eq!((meter.check(), meter.submitted(), meter.completed()), (Ok(()), 2, 2));
        assert_eq!(Meter::default().check(), Ok(()), "nothing has happened");
    }

    #[test]
    fn a_late_completion_counts_once() {
        let mut meter = Meter::default();
        (0..10).for_each(|_| meter.submit(Nanos(0)));
        // All ten requests end at 1000, but most completions are reported after a later request was
        // submitted.
        for step in 1..=10 {
            meter.complete(Nanos(1_000), Nanos(1_000));
            meter.submit(Nanos(1_000 + step));
        }
        (1..=10).for_each(|step| meter.complete(Nanos(2_000), Nanos(1_000 - step)));
        assert_eq!((meter.check(), meter.area_ns), (Ok(()), meter.latency_ns));
    }

    #[test]
    fn a_completion_after_a_new_request_counts_once() {
        let mut meter = Meter::default();
        (0..4).for_each(|_| meter.submit(Nanos(0)));
        // The host sleeps, and then submits a request before it reports the four completions.
        meter.submit(Nanos(5_000));
        (0..4).for_each(|_| meter.complete(Nanos(100), Nanos(100)));
        meter.complete(Nanos(5_100), Nanos(100));
        assert_eq!((meter.check(), meter.area_ns), (Ok(()), 500));
    }

    #[test]
    fn a_wrong_latency_breaks_littles_law() {
        assert_eq!(two_requests(35).check(), Err(MeterError::LittlesLaw { area_ns: 70, latency_ns: 65 }));
    }

    #[test]
    fn a_lost_request_breaks_conservation() {
        let mut meter = two_requests(40);
        meter.submit(Nanos(60));
        assert_eq!(meter.check(), Err(MeterError::Conservation { submitted: 3, completed: 2 }));
    }

    #[test]
    fn an_invented_completion_breaks_conservation() {
        let mut meter = two_requests(40);
        meter.complete(Nanos(60), Nanos(0));
        assert_eq!(meter.check(), Err(MeterError::Conservation { submitted: 2, completed: 3 }));
    }
}
