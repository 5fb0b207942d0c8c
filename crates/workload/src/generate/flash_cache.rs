//! Generates the page writes of a cache on flash after CacheLib (Berg et al., OSDI 2020): small objects in a
//! set-associative region, large objects in a log.
//!
//! A small object belongs to the set that the hash of its key names. A set is a page, which is written as a whole.
//! Large objects fill the log region by region, in order, around and around. So a page of the log lives for one turn of
//! the log, and a page of a set until its set is next written. A drive that mixes the two must copy the
//! pages of the log to get at those of the sets. Writes carry their part as a placement hint: 1 for sets, 2 for the
//! log (Allison et al., "Towards Efficient Flash Caches with Emerging NVMe Flexible Data Placement SSDs", EuroSys
//! 2025).
//!
//! *Assumptions.* Every set is equally likely, because keys are hashed and popular ones stay in memory. The region of
//! the log is small relative to a segment of the drive, so it has 16 pages by default. Regions that are evicted are
//! not trimmed. Reads are omitted.

use super::file_system::check_pages;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use crate::{Op, Request};
use fulgurite_base::option::{COUNT, SHARE};
use fulgurite_base::{Declared, Opt, Prng, Share, SpecError, opt};

/// The options of `cachelib-like`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashCacheConfig {
    /// The share of the pages that are sets.
    pub small: Share,
    /// The share of the page writes that go to sets.
    pub small_writes: Share,
    /// The number of pages of a region of the log.
    pub region: u32,
}

impl Default for FlashCacheConfig {
    fn default() -> FlashCacheConfig {
        FlashCacheConfig { small: Share::percent(4), small_writes: Share::percent(50), region: 16 }
    }
}

impl Declared for FlashCacheConfig {
    const OPTIONS: &'static [Opt<FlashCacheConfig>] = &[
        opt!("small", small, SHARE, Share::ZERO => Share::percent(99), "pages that are sets of small objects"),
        opt!("small_writes", small_writes, SHARE, Share::ZERO => Share::percent(99), "page writes that go to sets"),
        opt!("region", region, COUNT, 1 => 1 << 16, "pages of the log that are written together"),
    ];
}

/// The hints of writes to sets and to the log.
const SET: u16 = 1;
const LOG: u16 = 2;

/// The generator over the sets, which are the first pages, and the log behind them.
#[derive(Debug)]
struct FlashCache {
    sets: u64,
    log: u64,
    /// The weights of the next write being to a set, and being the first of a region, as shares of their sum.
    weights: [u64; 2],
    region: u64,
    /// The next page of the log, and the number of pages that remain of its region.
    next: u64,
    left: u64,
    prng: Prng,
}

impl Recipe for FlashCacheConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        check_pages(space.name, space.pages, 100)?;
        let sets = self.small.of(space.pages);
        if sets == 0 && self.small_writes > Share::ZERO {
            return Err(SpecError::new(format!(
                "small={} of {}: there is no set for small_writes={}; accepted: a larger small=, or small_writes=0%",
                self.small, space.name, self.small_writes
            )));
        }
        let to_sets = self.small_writes.of(1 << 32);
        Ok(Generator::new(FlashCache {
            sets,
            log: space.pages - sets,
            // A region is several writes of pages, so it begins less often.
            weights: [to_sets * u64::from(self.region), (1 << 32) - to_sets],
            region: u64::from(self.region),
            next: 0,
            left: 0,
            prng: space.prng(),
        }))
    }

    fn writes_anything(&self) -> bool {
        true
    }
}

impl RequestSource for FlashCache {
    fn request(&mut self) -> Request {
        let [to_sets, to_log] = self.weights;
        if self.left == 0 && self.prng.below(to_sets + to_log) < to_sets {
            let page = self.prng.below(self.sets);
            return Request { stream: SET, ..Request::of_page(Op::Write, page) };
        }
        self.left = if self.left == 0 { self.region } else { self.left } - 1;
        let page = self.sets + self.next;
        self.next = (self.next + 1) % self.log;
        Request { stream: LOG, ..Request::of_page(Op::Write, page) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(config: FlashCacheConfig, number: usize) -> Vec<Request> {
        let space = Space { name: "cachelib-like", pages: 1_000, page_bytes: 4096, seed: 7 };
        config.start(space).unwrap().take(number).collect()
    }

    /// The rule: the log is written in order, region by region, and sets evenly. Each has its share of the writes and
    /// its hint.
    #[test]
    fn the_log_turns_and_sets_are_random() {
        let config =
            FlashCacheConfig { small: Share::percent(10), small_writes: Share::percent(60), region: 8 };
        let all = requests(config, 100_000);
        let (sets, log): (Vec<&Request>, Vec<&Request>) = all.iter().partition(|request| request.page < 100);
        assert!((sets.len() as f64 - 60_000.0).abs() < 1_000.0, "{}", sets.len());
        assert!(
            sets.iter().all(|request| request.stream == SET)
                && log.iter().all(|request| request.stream == LOG)
        );
        assert!(log.iter().enumerate().all(|(at, request)| request.page == 100 + at as u64 % 900));
        let mut of_set = [0; 100];
        sets.iter().for_each(|request| of_set[request.page as usize] += 1);
        assert!(of_set.iter().all(|writes| (500..700).contains(writes)), "{of_set:?}");
        // Nothing comes between the pages of a region.
        let runs = all.chunk_by(|one, next| one.stream == next.stream).filter(|run| run[0].stream == LOG);
        assert!(runs.map(<[Request]>::len).all(|pages| pages % 8 == 0 || pages < 8));
    }

    /// The rule: either part may get no writes.
    #[test]
    fn a_part_may_be_idle() {
        let only_log =
            FlashCacheConfig { small: Share::ZERO, small_writes: Share::ZERO, ..Default::default() };
        assert!(
            requests(only_log, 3_000)
                .iter()
                .enumerate()
                .all(|(at, request)| request.page == at as u64 % 1_000)
        );
        let none = FlashCacheConfig { small: Share::ZERO, ..Default::default() };
        let space = Space { name: "cachelib-like", pages: 1_000, page_bytes: 4096, seed: 7 };
        assert!(none.start(space).unwrap_err().to_string().contains("no set"));
    }
}
