//! The samples of DOGI: pages whose lifetimes are observed.

use super::network::FEATURES;
use std::collections::{BTreeMap, VecDeque};

/// One host page in so many that is not hot is a sample.
pub(super) const SAMPLED: u32 = 10;

/// A sampled page at the time of its host write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    pub features: [f32; FEATURES],
    lpn: u32,
    at: u64,
    /// The time at which the page was overwritten or trimmed.
    died: Option<u64>,
}

impl Sample {
    /// Returns the lifetime of the page; of a page that lives, its age.
    pub(super) fn life(&self, now: u64) -> u64 {
        self.died.unwrap_or(now) - self.at
    }
}

/// The samples of two periods.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// The most samples of a period.
    at_most: usize,
    /// The samples, the oldest first. The first `aged` are those of the last period.
    all: VecDeque<Sample>,
    aged: usize,
    /// The number of samples that were taken out, and for each living page the number of its sample.
    taken: u64,
    living: BTreeMap<u32, u64>,
    /// The pages until the next sample.
    left: u32,
}

impl Samples {
    pub(super) fn new(at_most: usize) -> Samples {
        Samples { at_most, all: VecDeque::new(), aged: 0, taken: 0, living: BTreeMap::new(), left: SAMPLED }
    }

    /// Offers a page that was written at `at`. Returns whether it has become a sample.
    pub(super) fn offer(&mut self, lpn: u32, features: [f32; FEATURES], at: u64) -> bool {
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = SAMPLED;
        let has_room = self.all.len() - self.aged < self.at_most;
        if has_room {
            self.living.insert(lpn, self.taken + self.all.len() as u64);
            self.all.push_back(Sample { features, lpn, at, died: None });
        }
        has_room
    }

    /// Records that a page has died, if it is a sample.
    pub(super) fn died(&mut self, lpn: u32, at: u64) {
        if let Some(number) = self.living.remove(&lpn) {
            self.all[(number - self.taken) as usize].died = Some(at);
        }
    }

    /// Ends a period, and takes out the samples of the one before it.
    pub(super) fn end_period(&mut self) -> Vec<Sample> {
        let aged: Vec<Sample> = self.all.drain(..self.aged).collect();
        for sample in aged.iter().filter(|sample| sample.died.is_none()) {
            self.living.remove(&sample.lpn);
        }
        self.taken += aged.len() as u64;
        self.aged = self.all.len();
        aged
    }

    /// Returns the memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.capacity() * size_of::<Sample>() + self.living.len() * size_of::<(u32, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: every tenth page is a sample, until the period has enough. Samples are taken out at the end of the
    /// next period. Their lifetime ends with the next write, or else with that period.
    #[test]
    fn samples_wait_for_a_period() {
        let mut samples = Samples::new(3);
        let offer = |samples: &mut Samples, from: u32| -> Vec<u32> {
            (from..from + 50).filter(|lpn| samples.offer(*lpn, [0.0; FEATURES], u64::from(*lpn))).collect()
        };
        assert_eq!(offer(&mut samples, 0), [9, 19, 29]);
        samples.died(19, 100);
        samples.died(8, 100);
        assert_eq!(samples.end_period(), []);
        assert_eq!(offer(&mut samples, 200), [209, 219, 229], "a new period");
        samples.died(29, 500);
        samples.died(219, 600);
        let lives =
            |samples: Vec<Sample>| -> Vec<u64> { samples.iter().map(|sample| sample.life(1_000)).collect() };
        assert_eq!(lives(samples.end_period()), [991, 81, 471]);
        samples.died(9, 1_000);
        samples.died(229, 900);
        assert_eq!(lives(samples.end_period()), [791, 381, 671]);
        assert!(samples.all.is_empty() && samples.living.is_empty() && samples.end_period().is_empty());
    }
}
