//! Sums `r^-theta` over a run of ranks r. A short run is summed term by term, and a long one by the
//! Euler–Maclaurin formula.
//!
//! The relative error is below 1e-12; a histogram would need more than 10^24 draws to show it. The powers and
//! logarithms come from `libm` and not from the platform, so that results are the same on every machine.

/// The most terms that are added one by one; longer runs use the formula.
const DIRECT: u64 = 64;

/// Returns the sum of `r^-theta` over the `count` ranks from `low` on.
///
/// `theta` is in [0, 5], and a run of more than 64 ranks starts at rank 1024 or above. There the
/// first term left out of the formula is less than `theta⋯(theta+5) / (30240 × low^6)` < 1e-17.
pub(crate) fn power_sum(low: u64, count: u64, theta: f64) -> f64 {
    debug_assert!(count <= DIRECT || low >= 1024);
    let power = |x: f64| libm::pow(x, -theta);
    if count <= DIRECT {
        return (low..low + count).map(|rank| power(rank as f64)).sum();
    }
    let (a, b) = (low as f64, (low + count - 1) as f64);
    let slope = |x: f64| -theta * power(x) / x;
    let third = |x: f64| slope(x) * (theta + 1.0) * (theta + 2.0) / (x * x);
    integral(a, b, theta) + (power(a) + power(b)) / 2.0 + (slope(b) - slope(a)) / 12.0
        - (third(b) - third(a)) / 720.0
}

/// Returns the integral of `x^-theta` from `a` to `b`. No digits cancel if theta is close to one or `b` to
/// `a`, because the integral is computed as `a^(1−theta) × (e^t − 1) / (1 − theta)` with `t = (1 − theta) ×
/// ln(b / a)`.
fn integral(a: f64, b: f64, theta: f64) -> f64 {
    let ln_ratio = libm::log1p((b - a) / a);
    let t = (1.0 - theta) * ln_ratio;
    let growth = if t == 0.0 { 1.0 } else { libm::expm1(t) / t };
    a * libm::pow(a, -theta) * ln_ratio * growth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums r^-theta term by term, with Neumaier's compensation.
    fn naive(low: u64, count: u64, theta: f64) -> f64 {
        let (mut sum, mut lost) = (0.0, 0.0);
        for rank in low..low + count {
            let term = libm::pow(rank as f64, -theta);
            let next: f64 = sum + term;
            lost += if sum > term { sum - next + term } else { term - next + sum };
            sum = next;
        }
        sum + lost
    }

    #[test]
    fn the_formula_equals_the_sum() {
        for theta in [0.0, 0.3, 0.5, 0.99, 1.0, 1.0000001, 1.5, 3.0, 5.0] {
            for (low, count) in
                [(1, 1), (1, 31), (1024, 64), (1024, 65), (1984, 64), (4096, 200), (1 << 20, 65536)]
            {
                let (formula, sum) = (power_sum(low, count, theta), naive(low, count, theta));
                assert!((formula / sum - 1.0).abs() < 1e-12, "theta {theta}, {count} from {low}");
            }
        }
    }
}
