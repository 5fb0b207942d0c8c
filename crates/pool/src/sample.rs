//! A sample of requests for miss-ratio curves of any replacement policy.
//!
//! The sample has all requests for some of the pages, which a hash of the page and the seed selects (SHARDS:
//! Waldspurger, Park, Garthwaite and Ahmad, FAST 2015). A pool of n frames is simulated by one of n ÷ d frames
//! that serves the sample of one page in d (Waldspurger, Saemundsson, Ahmad and Park, Cached data analysis with
//! scaled-down simulations, USENIX ATC 2017). The misses of the sample, times d, estimate all misses. They are
//! divided by the number of all requests and not by that of the sample, so a page that is requested often and
//! always hits changes nothing, whether it is in the sample or not.
//!
//! The *parts* of a sample are disjoint samples of an eighth of its pages each. They differ only by chance, so
//! the spread of their estimates gives the error of the whole sample.

use crate::page_numbers::PageNumbers;
use crate::{MissCounter, NextUses, ReplacementConfig, WriteBack};
use fulgurite_base::{PageId, SpecError};
use std::sync::Arc;

/// The number of requests that are served at once.
const SLICE: usize = 4096;

/// A sample without a given divisor is thinned beyond these numbers of pages and requests. It keeps so many
/// requests for each of `ALL_REQUESTS` requests of the trace, and `PAGES_AT_LEAST` pages, if the second number of
/// requests allows that.
const PAGES_AT_MOST: usize = 1 << 14;
const PAGES_AT_LEAST: usize = 1 << 11;
const REQUESTS: usize = 3 << 18;
const ALL_REQUESTS: u64 = 24;
const REQUESTS_AT_MOST: usize = 1 << 24;

/// The requests for a sample of the pages, in memory.
pub struct Sample {
    seed: u64,
    divisor: u32,
    /// Whether the divisor grows so that the sample stays small.
    is_fitted: bool,
    pages: PageNumbers,
    /// For each request, twice the number of its page, plus one for a write.
    requests: Vec<u32>,
    all_requests: u64,
}

impl Sample {
    /// The number of parts of a sample.
    pub const PARTS: u32 = 8;

    /// Creates an empty sample of one page in `divisor`. Without a divisor it has all pages of a short
    /// sequence of requests, and fewer of a longer one.
    pub fn new(divisor: Option<u32>, seed: u64) -> Sample {
        Sample {
            // Seeds are often small numbers, so they are spread over all bits.
            seed: PageId(!seed).mixed(),
            divisor: divisor.unwrap_or(1).max(1),
            is_fitted: divisor.is_none(),
            pages: PageNumbers::new(),
            requests: Vec::new(),
            all_requests: 0,
        }
    }

    /// Adds those of the next requests that belong to the sample.
    pub fn add(&mut self, requests: &[(PageId, bool)]) {
        for (page, write) in requests {
            if page.is_sampled(self.seed, self.divisor) {
                let (number, _) = self.pages.number(*page);
                self.requests.push(number << 1 | u32::from(*write));
            }
        }
        self.all_requests += requests.len() as u64;
        while self.is_fitted && self.is_too_large() {
            self.thin();
        }
    }

    fn is_too_large(&self) -> bool {
        let (pages, requests) = (self.pages.len(), self.requests.len());
        let usual = REQUESTS.max((self.all_requests / ALL_REQUESTS) as usize);
        pages > PAGES_AT_MOST
            || requests > REQUESTS_AT_MOST
            || requests > usual && pages >= 2 * PAGES_AT_LEAST
    }

    /// Drops the requests for half of the pages.
    #[cold]
    fn thin(&mut self) {
        self.divisor *= 2;
        let mut pages = PageNumbers::new();
        // `None` for a page that leaves the sample.
        let numbers: Vec<Option<u32>> = (self.pages.pages().iter())
            .map(|page| page.is_sampled(self.seed, self.divisor).then(|| pages.number(*page).0))
            .collect();
        let kept = |request: &mut u32| {
            let number = numbers[(*request >> 1) as usize];
            *request = number.unwrap_or_default() << 1 | *request & 1;
            number.is_some()
        };
        self.requests.retain_mut(kept);
        self.pages = pages;
    }

    /// The sample has one page in this number.
    pub fn divisor(&self) -> u32 {
        self.divisor
    }

    /// The number of all requests, in the sample or not.
    pub fn all_requests(&self) -> u64 {
        self.all_requests
    }

    /// The bytes of memory that are in use. They may double with the next request.
    pub fn bytes(&self) -> u64 {
        4 * self.requests.capacity() as u64 + self.pages.bytes()
    }

    /// The number of distinct pages in the sample.
    pub fn distinct_pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns all requests of the sample. `foresees` tells whether their next uses are needed.
    pub fn whole(&self, foresees: bool) -> SampleRequests {
        SampleRequests::new(self.requests.clone(), foresees)
    }

    /// Returns the requests of each part.
    pub fn parts(&self, foresees: bool) -> Vec<SampleRequests> {
        // The hash that selects the pages of the sample has few distinct values among them, so it is hashed
        // again.
        let hash = |page: &PageId| PageId(PageId(page.mixed() ^ self.seed).mixed()).mixed();
        let part_of: Vec<u32> = (self.pages.pages().iter())
            .map(|page| ((u128::from(hash(page)) * u128::from(Sample::PARTS)) >> 64) as u32)
            .collect();
        let part = |part: u32| {
            let is_in = |request: &&u32| part_of[(**request >> 1) as usize] == part;
            SampleRequests::new(self.requests.iter().filter(is_in).copied().collect(), foresees)
        };
        (0..Sample::PARTS).map(part).collect()
    }
}

/// Requests of a sample, to be served by pools of several sizes.
pub struct SampleRequests {
    requests: Vec<u32>,
    future: Option<Arc<NextUses>>,
}

fn unpacked(requests: &[u32]) -> impl Iterator<Item = (PageId, bool)> {
    requests.iter().map(|request| (PageId(u64::from(request >> 1)), request & 1 == 1))
}

impl SampleRequests {
    fn new(requests: Vec<u32>, foresees: bool) -> SampleRequests {
        let future = foresees.then(|| {
            let mut future = NextUses::default();
            future.add(unpacked(&requests).map(|(page, _)| page));
            Arc::new(future)
        });
        SampleRequests { requests, future }
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are no requests.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns the misses of a pool of `frames` frames.
    ///
    /// Fails if the policy does not suit this number of frames.
    pub fn misses(&self, replacement: &ReplacementConfig, frames: u32) -> Result<u64, SpecError> {
        let mut replacement = replacement.start(frames)?;
        if let Some(future) = &self.future {
            replacement.foresee(future);
        }
        let mut counter = MissCounter::new(frames, replacement, WriteBack::SINGLE);
        let mut slice = Vec::with_capacity(SLICE);
        for some in self.requests.chunks(SLICE) {
            slice.clear();
            slice.extend(unpacked(some));
            counter.request_all(&slice);
        }
        Ok(counter.counters().misses)
    }
}
