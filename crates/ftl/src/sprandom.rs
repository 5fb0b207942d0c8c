//! SPRandom: an order of writes that leaves a drive near the steady state of uniform random writes after one
//! pass over its flash.
//!
//! The method is fio's (`sprandom=1`; pull request 1954, sprandom.c). Under FIFO victims and uniform random
//! writes, the valid share of a segment falls exponentially with its age, from 1 down to v = 1 − 1 / WAF at the
//! victim (Desnoyers, "Analytic models of SSD write performance", 2012). So the flash is divided into regions of
//! equal size in the order of writes, and region i of n gets the valid share v^(1 − i / (n − 1)). Every request is
//! written once in random order. A request of region i is drawn with the probability 1 − v^(1 − i / (n − 1)), and
//! is written again at the start of the next region, which invalidates its first place.
//!
//! This assumes a drive that is empty at first, writes in the order of the requests, and collects nothing during
//! the pass. The spare space must be known. Two things differ from fio. Every request is written, while fio stops
//! after 1 + spare passes over the requests. The expected WAF is given, while fio takes 0.5 / spare + 0.7.

use fulgurite_base::Prng;
use std::collections::VecDeque;

/// The number of regions; fio's default for `spr_num_regions`.
const REGIONS: u32 = 100;

/// The requests of SPRandom, in their order.
#[derive(Clone, Debug)]
pub struct SpRandom {
    /// The share of each region's requests that stay valid.
    valid: Vec<f64>,
    region: usize,
    /// The number of writes in a region, and those left in this one.
    region_writes: u64,
    left: u64,
    /// The requests that were drawn in the last region, which are written first in this one.
    again: VecDeque<u32>,
    drawn: VecDeque<u32>,
    /// All requests. Those before `fresh` are written.
    requests: Vec<u32>,
    fresh: usize,
    prng: Prng,
}

impl SpRandom {
    /// Returns the order of `requests` requests for a drive with the effective over-provisioning `spare` (ρ), and
    /// with the write amplification `waf` in the steady state. Both are ratios; `spare` is positive and `waf` more
    /// than 1.
    pub fn new(requests: u32, spare: f64, waf: f64, seed: u64) -> SpRandom {
        let oldest = (1.0 - 1.0 / waf).max(f64::MIN_POSITIVE);
        let age = |region: u32| f64::from(REGIONS - 1 - region) / f64::from(REGIONS - 1);
        let region_writes = (f64::from(requests) * (1.0 + spare) / f64::from(REGIONS)) as u64;
        SpRandom {
            valid: (0..REGIONS).map(|region| libm::pow(oldest, age(region))).collect(),
            region: 0,
            region_writes: region_writes.max(1),
            left: region_writes.max(1),
            again: VecDeque::new(),
            drawn: VecDeque::new(),
            requests: (0..requests).collect(),
            fresh: 0,
            prng: Prng::new(seed, "sprandom"),
        }
    }

    /// Returns a request that is not written yet; `None` if all are.
    fn next_fresh(&mut self) -> Option<u32> {
        let left = self.requests.len() - self.fresh;
        if left == 0 {
            return None;
        }
        self.requests.swap(self.fresh, self.fresh + self.prng.below(left as u64) as usize);
        self.fresh += 1;
        Some(self.requests[self.fresh - 1])
    }
}

impl Iterator for SpRandom {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.left == 0 {
            // Behind the last region nothing is drawn, since all of it stays valid. So the pass ends.
            self.region = (self.region + 1).min(self.valid.len() - 1);
            self.left = self.region_writes;
            std::mem::swap(&mut self.again, &mut self.drawn);
        }
        self.left -= 1;
        let request = match self.again.pop_front() {
            Some(request) => request,
            None => self.next_fresh()?,
        };
        if self.prng.unit_f64() >= self.valid[self.region] {
            self.drawn.push_back(request);
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: u32 = 200_000;
    const SPARE: f64 = 0.15;

    /// Returns the writes on a drive of this spare space, and its WAF under FIFO victims.
    fn writes(requests: u32) -> (Vec<u32>, f64) {
        let waf = crate::analytic::waf_fifo(SPARE);
        (SpRandom::new(requests, SPARE, waf, 7).collect(), waf)
    }

    /// The rule: every request is written. The pass writes the flash once, within five standard deviations of the
    /// draws.
    #[test]
    fn the_pass_writes_the_flash_once() {
        let (writes, _) = writes(REQUESTS);
        let mut times = vec![0u32; REQUESTS as usize];
        writes.iter().for_each(|request| times[*request as usize] += 1);
        assert!(times.iter().all(|times| *times > 0));
        let flash = f64::from(REQUESTS) * (1.0 + SPARE);
        // A write is drawn with a probability of a quarter at most.
        let deviation = (flash * 0.25 * 0.75).sqrt();
        assert!((writes.len() as f64 - flash).abs() < 5.0 * deviation, "{} of {flash}", writes.len());
    }

    /// The rule: the valid share of a region falls exponentially with its age, from 1 to that of a victim, and its
    /// invalid places lie anywhere in the region.
    #[test]
    fn the_valid_share_falls_exponentially() {
        let (writes, waf) = writes(REQUESTS);
        let mut last = vec![0; REQUESTS as usize];
        writes.iter().enumerate().for_each(|(at, request)| last[*request as usize] = at);
        let is_valid = |at: usize| last[writes[at] as usize] == at;
        let region = (f64::from(REQUESTS) * (1.0 + SPARE) / 100.0) as usize;
        for at in 0..100 {
            let expected = (1.0 - 1.0 / waf).powf((99 - at) as f64 / 99.0);
            for half in [0, 1] {
                let start = at * region + half * region / 2;
                let places = start..(start + region / 2).min(writes.len());
                let count = places.len() as f64;
                let share = places.filter(|at| is_valid(*at)).count() as f64 / count;
                let bound = 5.0 * (expected * (1.0 - expected) / count).sqrt() + 1e-9;
                assert!((share - expected).abs() <= bound, "region {at}: {share} for {expected}");
            }
        }
    }

    /// The rule: a first write is in random order, so that neighbours are far apart.
    #[test]
    fn first_writes_are_in_random_order() {
        let (writes, _) = writes(REQUESTS);
        let neighbours = writes.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
        // One is expected, whatever the number of requests.
        assert!(neighbours < 10, "{neighbours}");
    }

    /// The rule: a pass ends however small the drive and however large its spare space.
    #[test]
    fn every_pass_ends() {
        for requests in [0, 1, 3, 99, 1_000] {
            for spare in [1e-6, 0.07, 1.0, 1_000.0] {
                let waf = crate::analytic::waf_fifo(spare);
                let mut seen: Vec<u32> = SpRandom::new(requests, spare, waf, 7).collect();
                assert!(
                    seen.len() as f64 <= f64::from(requests) * (2.0 + spare) + 100.0,
                    "{requests} {spare}"
                );
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len() as u32, requests);
            }
        }
    }
}
