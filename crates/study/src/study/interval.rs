//! Computes the mean of repeated measurements with its confidence interval.

/// A mean with its 95 % confidence interval from Student's t distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// The mean of the repeated measurements.
    pub mean: f64,
    /// The lower and the upper bound of the interval.
    pub low: f64,
    pub high: f64,
}

/// The 97.5 % quantiles of Student's t distribution, for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The quantile that is used for more degrees of freedom. It is slightly too large.
const T_BEYOND: f64 = 2.042;

impl Interval {
    /// Returns the arithmetic mean of the values with its interval, or `None` for fewer than two values.
    pub(super) fn of(values: &[f64]) -> Option<Interval> {
        let freedom = values.len().checked_sub(2)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let half = T.get(freedom).unwrap_or(&T_BEYOND) * error;
        Some(Interval { mean, low: mean - half, high: mean + half })
    }

    /// Returns the geometric mean with its interval, which suits ratios. Returns `None` for fewer than two
    /// values, or if a value is not positive.
    pub(super) fn of_ratios(values: &[f64]) -> Option<Interval> {
        if values.iter().any(|value| *value <= 0.0) {
            return None;
        }
        let logarithms: Vec<f64> = values.iter().map(|value| libm::log(*value)).collect();
        let Interval { mean, low, high } = Interval::of(&logarithms)?;
        Some(Interval { mean: libm::exp(mean), low: libm::exp(low), high: libm::exp(high) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(interval: Interval, expected: [f64; 3]) {
        let Interval { mean, low, high } = interval;
        for (is, expected) in std::iter::zip([mean, low, high], expected) {
            assert!((is - expected).abs() < 1e-3, "{interval:?} for {expected}");
        }
    }

    #[test]
    fn the_interval_is_student_s() {
        // The mean is 3, and half of the interval is the t quantile 2.776 times the standard deviation
        // sqrt(2.5), divided by sqrt(5).
        close(Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), [3.0, 1.0370, 4.9630]);
        close(Interval::of(&[1.0, 3.0]).unwrap(), [2.0, 2.0 - 12.706, 2.0 + 12.706]);
        // The geometric mean of 2, 1/2 and 1 is 1, and its interval has equal factors on both sides.
        let ratios = Interval::of_ratios(&[2.0, 0.5, 1.0]).unwrap();
        close(Interval { low: ratios.low * ratios.high, ..ratios }, [1.0, 1.0, ratios.high]);
        close(Interval::of_ratios(&[1.5; 40]).unwrap(), [1.5, 1.5, 1.5]);
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!((Interval::of(&[1.0]), Interval::of_ratios(&[1.0, 0.0])), (None, None));
    }
}
