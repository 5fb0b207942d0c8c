//! Decides which gaps between arrivals are inside bursts, for bursts of a given length.
//!
//! A gap is the time between two arrivals. A burst of L gaps is followed by L (1 − p) / p gaps between
//! bursts, so that the share p of all gaps is inside bursts for any distribution of L. The length of a burst
//! has a fixed and an exponential part, `mean · (1 − s + s·E)`. E is exponential with the mean one, and s is
//! the coefficient of variation: the length is constant with s = 0 and memoryless with s = 1.

use fulgurite_base::{Prng, Share};

/// The state of a source of gaps, which alternates between a run of gaps inside a burst and a run of gaps
/// between two bursts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bursts {
    mean: f64,
    spread: f64,
    /// The number of gaps between bursts for each gap inside a burst.
    between_for_each: f64,
    is_inside: bool,
    /// The number of gaps that remain of the current run.
    left: u64,
    /// The fractions of gaps inside and between bursts that rounding has cut off, to be added to a later run.
    owed: [f64; 2],
    has_begun: bool,
}

impl Bursts {
    /// Creates bursts of `mean` gaps on average that contain the share `inside` of all gaps. The error text
    /// lists the accepted values of `mean`.
    pub(crate) fn new(mean: u32, spread: Share, inside: Share) -> Result<Bursts, String> {
        if inside == Share::ZERO {
            return Err("0, or bursty above zero".to_owned());
        }
        // On average, less than one gap would follow a shorter burst, so bursts would adjoin.
        let least = inside.ppm().div_ceil((Share::ONE.ppm() - inside.ppm()).max(1));
        if mean < least {
            return Err(format!("at least {least}, or 0"));
        }
        Ok(Bursts {
            mean: f64::from(mean),
            spread: spread.as_f64(),
            between_for_each: (1.0 - inside.as_f64()) / inside.as_f64(),
            is_inside: false,
            left: 0,
            owed: [0.0; 2],
            has_begun: false,
        })
    }

    /// Returns whether the next gap is inside a burst.
    pub(crate) fn next_is_inside(&mut self, prng: &mut Prng) -> bool {
        if !self.has_begun {
            // The workload begins at a random moment between two bursts, so part of the gaps between them has
            // passed.
            self.has_begun = true;
            self.begin_between(prng.unit_f64() * self.mean);
        }
        while self.left == 0 {
            if self.is_inside {
                self.begin_between(0.0);
            } else {
                self.begin_burst(prng);
            }
        }
        self.left -= 1;
        self.is_inside
    }

    fn begin_burst(&mut self, prng: &mut Prng) {
        let exponential = -libm::log1p(-prng.unit_f64());
        let length = self.mean * (1.0 - self.spread + self.spread * exponential);
        // The fraction of a gap that is cut off is added to a later burst, so that the mean length stays
        // exact.
        self.owed[0] += length;
        self.left = self.owed[0] as u64;
        self.owed[0] -= self.left as f64;
        self.owed[1] += self.left as f64 * self.between_for_each;
        self.is_inside = true;
    }

    /// Begins the gaps between two bursts: those owed for the last burst, plus those for `more` gaps inside a
    /// burst.
    fn begin_between(&mut self, more: f64) {
        self.owed[1] += more * self.between_for_each;
        self.left = self.owed[1] as u64;
        self.owed[1] -= self.left as f64;
        self.is_inside = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws a million gaps. Returns the share of gaps inside bursts, the mean length of a burst, and the
    /// coefficient of variation of the lengths.
    fn of(mean: u32, spread: u32, inside: f64) -> (f64, f64, f64) {
        let mut bursts =
            Bursts::new(mean, Share::percent(spread), Share::from_ppm((inside * 1e6) as u32)).unwrap();
        let mut prng = Prng::new(3, "bursts");
        let gaps: Vec<bool> = (0..1_000_000).map(|_| bursts.next_is_inside(&mut prng)).collect();
        let share = gaps.iter().filter(|inside| **inside).count() as f64 / 1e6;
        let runs: Vec<f64> =
            gaps.chunk_by(|a, b| a == b).filter(|run| run[0]).map(|run| run.len() as f64).collect();
        let length = runs.iter().sum::<f64>() / runs.len() as f64;
        let variance = runs.iter().map(|run| (run - length).powi(2)).sum::<f64>() / runs.len() as f64;
        (share, length, variance.sqrt() / length)
    }

    #[test]
    fn bursts_have_their_length_spread_and_share() {
        for (mean, spread, inside) in
            [(100, 100, 0.3132), (100, 0, 0.3132), (20, 50, 0.3132), (10, 0, 0.01), (40, 100, 0.6)]
        {
            let (share, length, variation) = of(mean, spread, inside);
            let what = format!("{mean} {spread} {inside}: {share} {length} {variation}");
            assert!((share / inside - 1.0).abs() < 0.02, "{what}");
            assert!((length / f64::from(mean) - 1.0).abs() < 0.05, "{what}");
            assert!((variation - f64::from(spread) / 100.0).abs() < 0.05, "{what}");
        }
    }
}
