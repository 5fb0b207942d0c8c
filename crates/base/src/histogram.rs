//! Histograms of latencies: count, sum, mean, variance and maximum are exact; percentiles have three
//! significant digits.

use crate::Nanos;

/// A histogram of durations in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: hdrhistogram::Histogram<u64>,
    sum: u128,
    sum_of_squares: u128,
    max: u64,
}

/// A summary of a distribution of durations, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The exact mean, in nanoseconds.
    pub mean_ns: f64,
    /// The exact population standard deviation, in nanoseconds; `None` if the sums in it overflow.
    pub stddev_ns: Option<f64>,
    /// The median, in nanoseconds. The percentiles are those of [`Histogram::percentile_ns`].
    pub p50_ns: u64,
    /// The 95th percentile, in nanoseconds.
    pub p95_ns: u64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// The 99.9th percentile, in nanoseconds.
    pub p999_ns: u64,
    /// The exact maximum, in nanoseconds.
    pub max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            buckets: hdrhistogram::Histogram::new(3).expect("three digits are in range"),
            sum: 0,
            sum_of_squares: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Adds one duration to the histogram.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        self.buckets.record(duration.0).expect("an auto-resizing histogram takes any u64");
        self.sum += u128::from(duration.0);
        self.sum_of_squares += u128::from(duration.0) * u128::from(duration.0);
        self.max = self.max.max(duration.0);
    }

    /// Removes all durations and keeps the memory of the buckets.
    pub fn clear(&mut self) {
        // Resetting touches every bucket, so it is skipped for an empty histogram.
        if self.count() > 0 {
            self.buckets.reset();
        }
        (self.sum, self.sum_of_squares, self.max) = (0, 0, 0);
    }

    /// Returns the summary of the durations; `None` if there are none.
    pub fn summary(&self) -> Option<Summary> {
        Some(Summary {
            mean_ns: self.mean_ns()?,
            stddev_ns: self.stddev_ns(),
            p50_ns: self.percentile_ns(50.0)?,
            p95_ns: self.percentile_ns(95.0)?,
            p99_ns: self.percentile_ns(99.0)?,
            p999_ns: self.percentile_ns(99.9)?,
            max_ns: self.max_ns()?,
        })
    }

    /// Returns the number of recorded durations.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Returns the exact sum of the durations, in nanoseconds.
    pub fn sum_ns(&self) -> u128 {
        self.sum
    }

    /// Returns the exact mean, in nanoseconds; `None` if there are no durations.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum as f64 / self.count() as f64)
    }

    /// Returns the exact population standard deviation, in nanoseconds; `None` if there are no durations or
    /// the sums overflow.
    pub fn stddev_ns(&self) -> Option<f64> {
        let n = u128::from(self.count());
        // Computes n² times the variance as n·Σx² − (Σx)², exactly in integers. Only the quotient and its
        // root are floating-point numbers.
        let spread = n.checked_mul(self.sum_of_squares)?.checked_sub(self.sum.checked_mul(self.sum)?)?;
        (n > 0).then(|| (spread as f64).sqrt() / n as f64)
    }

    /// Returns the smallest recorded duration that at least `percent` of all durations do not exceed, in
    /// nanoseconds and to three significant digits; `None` if there are no durations.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        // The upper end of a bucket may lie above the maximum, so the result is bounded by the maximum.
        (self.count() > 0).then(|| self.buckets.value_at_quantile(percent / 100.0).min(self.max))
    }

    /// Returns for each of these bounds, which ascend, how many durations do not exceed it, to three significant
    /// digits.
    pub fn counts_up_to(&self, bounds: &[Nanos]) -> Vec<u64> {
        let (mut from, mut counted) = (0, 0);
        let up_to = |bound: &Nanos| {
            let end = self.buckets.highest_equivalent(bound.0);
            if from <= end {
                counted += self.buckets.count_between(from, end);
                from = end + 1;
            }
            counted
        };
        bounds.iter().map(up_to).collect()
    }

    /// Returns the exact maximum, in nanoseconds; `None` if there are no durations.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_histogram_is_as_new() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.summary(), None);
        histogram.record(Nanos(9_000_000));
        histogram.clear();
        assert_eq!((histogram.summary(), histogram.sum_ns()), (None, 0));
        for value in [10, 20, 30] {
            histogram.record(Nanos(value));
        }
        let summary = histogram.summary().unwrap();
        assert_eq!((summary.mean_ns, summary.p50_ns, summary.p99_ns, summary.max_ns), (20.0, 20, 30, 30));
        // The deviations from the mean are 10, 0 and 10.
        assert!((summary.stddev_ns.unwrap().powi(2) - 200.0 / 3.0).abs() < 1e-9);
    }

    /// The rule: a duration counts from the bound on that it does not exceed, once, whatever lies between the bounds.
    #[test]
    fn durations_are_counted_up_to_bounds() {
        let mut histogram = Histogram::default();
        let bounds = [1, 1_000, 1_000_000, 1_000_001, 2_000_000_000].map(Nanos);
        assert_eq!(histogram.counts_up_to(&bounds), [0; 5]);
        for value in [1, 999, 1_000, 1_010, 999_000, 1_000_000, 1_010_000, 5_000_000_000] {
            histogram.record(Nanos(value));
        }
        assert_eq!(histogram.counts_up_to(&bounds), [1, 3, 6, 6, 7]);
    }

    #[test]
    fn moments_are_exact() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.mean_ns(), None);
        for value in [1u64, 2, 3, 4, 1_000_000] {
            histogram.record(Nanos(value));
        }
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.mean_ns(), Some(200_002.0));
        assert_eq!(histogram.max_ns(), Some(1_000_000));
        assert_eq!(histogram.percentile_ns(60.0), Some(3));
        // The population variance of the five values, computed by hand, is 159,999,200,002.
        assert!((histogram.stddev_ns().unwrap().powi(2) - 159_999_200_002.0).abs() < 1.0);
    }
}
