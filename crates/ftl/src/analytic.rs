//! Write amplification (WAF) in closed form, for uniform random writes of single pages.
//!
//! All forms take the effective over-provisioning ρ = (T − U)/U. U is the number of logical pages. T is the
//! number of physical pages that can hold valid or invalid data when a victim is picked, without the erased
//! segments held in reserve. The simulated FTL is checked against these forms.

/// Returns the WAF of FIFO victims: WAF = x / (x + W₀(−x·e^−x)) with x = 1 + ρ (Desnoyers, "Analytic models
/// of SSD write performance", 2014). It does not depend on the segment size. `rho` must be positive.
pub fn waf_fifo(rho: f64) -> f64 {
    let x = 1.0 + rho;
    x / (x + lambert_w0(-x * libm::exp(-x)))
}

/// Returns the WAF of FIFO victims under two classes of pages: the share `r` of the writes goes to the share
/// `f` of the pages, evenly within each class (Desnoyers, 2014). `space` is 1 + ρ. The WAF A solves A = 1 + Σ
/// r / (e^{r·space / (f·A)} − 1), where the sum is over both classes. `None` unless there is more space than
/// data.
pub fn waf_fifo_two_classes(space: f64, r: f64, f: f64) -> Option<f64> {
    if space <= 1.0 {
        return None;
    }
    // Returns the copies of a class for each host write. A class without writes is copied in every round.
    let copies = |r: f64, f: f64, waf: f64| {
        let x = r * space / (f * waf);
        if f <= 0.0 {
            0.0
        } else if x < 1e-9 {
            f * waf / space
        } else {
            r / libm::expm1(x)
        }
    };
    let excess = |waf: f64| 1.0 + copies(r, f, waf) + copies(1.0 - r, 1.0 - f, waf) - waf;
    let (mut low, mut high) = (1.0, 1e7);
    if excess(high) > 0.0 {
        return None;
    }
    while high / low > 1.0 + 1e-10 {
        // Halves a wide bracket on a logarithmic scale, since the bracket spans seven orders of magnitude.
        let middle = if high > 2.0 * low { libm::sqrt(low * high) } else { 0.5 * (low + high) };
        if excess(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}

/// Returns the WAF of random victims: a segment drawn from all has the average share of valid pages, U / T,
/// so WAF = T / (T − U) = (1 + ρ) / ρ. This holds for any traffic with one stream. `rho` must be positive.
pub fn waf_random(rho: f64) -> f64 {
    (1.0 + rho) / rho
}

/// Returns the WAF of greedy victims in segments of `segment_pages` pages, by the mean-field balance of the
/// occupancy classes. With N pages in a segment and the harmonic numbers H, WAF = N·c with c = [(1+ρ)/N −
/// 1/(L+1)] / [H(N) − H(L+1) − (N−L−1)/(L+1)]. L is the occupancy for which the share f = 1 − c·(N−L−1) of
/// the emptiest class is in [0, c]. `None` if no L satisfies this, because ρ is not positive, or so large
/// that collection copies nothing.
pub fn waf_greedy(rho: f64, segment_pages: u32) -> Option<f64> {
    if rho <= 0.0 {
        return None;
    }
    let n = f64::from(segment_pages);
    let mut harmonic = vec![0.0; segment_pages as usize + 1];
    for i in 1..=segment_pages as usize {
        harmonic[i] = harmonic[i - 1] + 1.0 / i as f64;
    }
    (0..segment_pages.saturating_sub(1)).find_map(|l| {
        let next = f64::from(l + 1);
        let numerator = (1.0 + rho) / n - 1.0 / next;
        let denominator = harmonic[segment_pages as usize] - harmonic[l as usize + 1] - (n - next) / next;
        let c = numerator / denominator;
        let f = 1.0 - c * (n - next);
        (c > 0.0 && (0.0..=c).contains(&f)).then_some(n * c)
    })
}

/// Returns the principal branch of Lambert's W on [−1/e, 0], by Halley's iteration.
fn lambert_w0(z: f64) -> f64 {
    // Near the branch point the series in √(2(e·z + 1)) is a better start.
    let p = (2.0 * (std::f64::consts::E * z + 1.0)).max(0.0).sqrt();
    let mut w = if z < -0.25 { -1.0 + p - p * p / 3.0 } else { z * (1.0 - z) };
    for _ in 0..64 {
        let e = libm::exp(w);
        let f = w * e - z;
        let step = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
        if !step.is_finite() || step.abs() < 1e-15 {
            break;
        }
        w -= step;
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_equal_classes_are_one() {
        for (rho, [fifo, ..]) in TABLE {
            for f in [0.0, 0.2, 0.5, 1.0] {
                let waf = waf_fifo_two_classes(1.0 + rho, f, f).unwrap();
                // The published table gives ρ to four decimals.
                assert!((waf / fifo - 1.0).abs() < 1e-3, "{rho} {f}: {waf} {fifo}");
            }
        }
        // Skew is expensive under FIFO, because the cold class is copied in every round.
        assert!(waf_fifo_two_classes(1.0737, 0.9, 0.1).unwrap() > 7.5);
        assert_eq!(waf_fifo_two_classes(1.0, 0.5, 0.5), None);
    }

    /// The published values to four decimals, one row for each ρ: the WAF of FIFO, then of greedy at 64, 128,
    /// 256 and 512 pages.
    const TABLE: [(f64, [f64; 5]); 4] = [
        (0.07, [7.8172, 7.0099, 7.3916, 7.5969, 7.7051]),
        (0.0737, [7.4551, 6.7298, 7.0650, 7.2549, 7.3533]),
        (0.15, [4.0160, 3.8005, 3.9049, 3.9596, 3.9875]),
        (0.28, [2.4814, 2.4028, 2.4412, 2.4610, 2.4711]),
    ];

    #[test]
    fn the_forms_give_the_published_table() {
        for (rho, row) in TABLE {
            // The ρ of the second row is rounded to 7.37 %, which is less precise than four decimals of WAF.
            let tolerance = if rho == 0.0737 { 3e-3 } else { 1e-4 };
            let got = std::iter::once(waf_fifo(rho))
                .chain([64, 128, 256, 512].map(|pages| waf_greedy(rho, pages).unwrap()));
            for (value, expected) in got.zip(row) {
                assert!((value - expected).abs() < tolerance * expected, "rho {rho}: {value} for {expected}");
            }
        }
    }

    #[test]
    fn without_spare_there_is_no_write_amplification() {
        assert_eq!(waf_greedy(0.0, 64), None);
        assert_eq!(waf_greedy(-0.1, 64), None);
    }

    /// The rule: W₀ is the inverse of w·e^w from −1 up to the branch point, where Halley's iteration cannot
    /// take a step.
    #[test]
    fn lambert_w_is_an_inverse() {
        let least = -1.0 / std::f64::consts::E;
        for step in 0..=1_000 {
            let z = least * f64::from(step) / 1_000.0;
            let w = lambert_w0(z);
            assert!((-1.0..=0.0).contains(&w) && (w * w.exp() - z).abs() < 1e-15, "{z}: {w}");
        }
        assert!((lambert_w0(least) + 1.0).abs() < 1e-7);
    }

    /// The rule: a class without writes costs the same as a class with almost none.
    #[test]
    fn a_class_without_writes_is_copied_in_every_round() {
        for space in [1.2, 1.5] {
            let [none, few] = [1.0, 1.0 - 1e-7].map(|r| waf_fifo_two_classes(space, r, 0.5).unwrap());
            assert!((none / few - 1.0).abs() < 1e-5, "{none} {few}");
        }
    }

    /// The rule: on 125 segments with the data of 100, a random victim has four valid pages of five.
    #[test]
    fn random_victims_have_the_average_valid_share() {
        assert!((waf_random(0.25) - 1.0 / (1.0 - 0.8)).abs() < 1e-12);
    }
}
