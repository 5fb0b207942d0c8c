//! Records the time series of a run, its figures interval by interval.
//!
//! The device's clock never goes back, so the first event after an interval shows that the interval has
//! ended. Its histograms are then reduced to figures and reused for the next interval. So a long series takes
//! a few hundred bytes for each interval.

use crate::error::Error;
use crate::figures::{Figures, Recorded};
use fulgurite_base::Nanos;

/// The figures of consecutive intervals of a run, from its beginning on.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The length of an interval, on the device's clock.
    pub interval: Nanos,
    /// The figures of each interval. A read, a commit or a transaction belongs to the interval in which it
    /// ended.
    pub intervals: Vec<Figures>,
}

/// The most intervals of a run. It bounds the memory for their figures.
pub const INTERVALS_AT_MOST: usize = 1 << 16;

/// A time series while the run is recorded.
pub(crate) struct Recording {
    interval: Nanos,
    over: Vec<Figures>,
    /// The measurements of the current interval.
    current: Recorded,
}

impl Recording {
    pub(crate) fn new(interval: Nanos, kinds: &[&'static str]) -> Recording {
        Recording { interval: interval.max(Nanos(1)), over: Vec::new(), current: Recorded::new(kinds) }
    }

    /// Returns the measurements of the interval that contains an event at the time `at` after the beginning.
    /// Closes all earlier intervals.
    pub(crate) fn at(&mut self, at: Nanos) -> &mut Recorded {
        let index = usize::try_from(at.0 / self.interval.0).unwrap_or(usize::MAX).min(INTERVALS_AT_MOST);
        while self.over.len() < index {
            self.over.push(self.current.figures());
            self.current.clear();
        }
        &mut self.current
    }

    /// Fails if the series has too many intervals.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.over.len() < INTERVALS_AT_MOST {
            true => Ok(()),
            false => Err(Error::TooManyIntervals { most: INTERVALS_AT_MOST }),
        }
    }

    /// Returns the series, including the current interval if a transaction ended in it.
    pub(crate) fn finish(mut self) -> Series {
        if self.current.transactions() > 0 {
            self.over.push(self.current.figures());
        }
        Series { interval: self.interval, intervals: self.over }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_only_its_own_figures() {
        let mut series = Recording::new(Nanos(1_000), &["short", "long"]);
        let mut end = |at: u64, kind: usize, latency: u64| {
            let recorded = series.at(Nanos(at));
            recorded.read_latency.record(Nanos(latency / 2));
            recorded.end(kind, Nanos(latency), kind == 1);
        };
        (0..100).for_each(|number| end(number, 1, 900));
        // No transaction ends in the second interval. The events from 2,000 ns on belong to the third
        // interval.
        (0..10).for_each(|number| end(2_000 + number, 0, 20));
        let Series { interval, intervals } = series.finish();
        assert_eq!((interval, intervals.len()), (Nanos(1_000), 3));
        let of = |figures: &Figures| figures.latency.map(|latency| (latency.p50_ns, latency.max_ns));
        let found: Vec<_> = intervals.iter().map(|figures| (figures.transactions(), of(figures))).collect();
        assert_eq!(found, [(100, Some((900, 900))), (0, None), (10, Some((20, 20)))]);
        let reads = intervals[2].read_latency.unwrap();
        assert_eq!((reads.mean_ns, reads.stddev_ns, reads.max_ns), (10.0, Some(0.0), 10));
        let kinds: Vec<_> = intervals[2].kinds.iter().map(|kind| (kind.ended, kind.rollbacks)).collect();
        assert_eq!(kinds, [(10, 0), (0, 0)]);
        assert_eq!(intervals[0].kinds[1].rollbacks, 100);
    }

    #[test]
    fn a_series_with_too_many_intervals_is_refused() {
        let mut series = Recording::new(Nanos(1), &["kind"]);
        series.at(Nanos(INTERVALS_AT_MOST as u64 - 1)).end(0, Nanos(1), false);
        assert!(series.check().is_ok());
        series.at(Nanos(u64::MAX)).end(0, Nanos(1), false);
        let sentence = series.check().unwrap_err().to_string();
        assert!(sentence.contains("65536"), "{sentence}");
    }
}
