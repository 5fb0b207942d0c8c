//! Tells how pages are requested again: for each request, the request before it for the same page.
//!
//! The memory is bounded. All pages are followed while there are few; beyond a number of pages a sample of them is, as
//! in SHARDS (Waldspurger et al., FAST 2015), which shrinks by half whenever it is too large. A distance within the
//! sample, times the divisor of the sample, estimates the distance.

use crate::StackDistances;
use fulgurite_base::PageId;

/// The last requests for the pages so far, or for a sample of them. The caller knows a request by a `T`.
pub struct Reuse<T> {
    distances: StackDistances,
    /// The last request for each page, by the page's number in `distances`.
    last: Vec<T>,
    divisor: u32,
    /// The most pages that are followed.
    most: usize,
}

/// A request for a page that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed<T> {
    /// The number of requests that this one stands for.
    pub weight: u32,
    /// The request before it for the same page; `None` if this is the first one.
    pub before: Option<Before<T>>,
}

/// The request for a page before a request for the same page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Before<T> {
    /// That request.
    pub request: T,
    /// The number of other pages that were requested since, estimated if a sample is followed.
    pub distance: u64,
}

/// Any number: the sample is the same each time.
const SEED: u64 = 0x7265_7573_6520_6f66;

impl<T: Copy> Reuse<T> {
    /// Creates the state before the first request. At most `most` pages are followed, each with up to 88 bytes and a
    /// `T`.
    pub fn new(most: usize) -> Reuse<T> {
        Reuse { distances: StackDistances::default(), last: Vec::new(), divisor: 1, most }
    }

    /// Adds a request for a page. Returns `None` if the page is not followed.
    #[inline]
    pub fn add(&mut self, page: PageId, request: T) -> Option<Followed<T>> {
        if self.divisor > 1 && !page.is_sampled(SEED, self.divisor) {
            return None;
        }
        let (number, distance) = self.distances.place(page);
        let weight = self.divisor;
        let before = match distance {
            Some(distance) => Some(Before {
                request: std::mem::replace(&mut self.last[number as usize], request),
                distance: distance as u64 * u64::from(weight),
            }),
            None => {
                self.last.push(request);
                if self.last.len() > self.most {
                    self.thin();
                }
                None
            }
        };
        Some(Followed { weight, before })
    }

    /// One in this many pages is followed.
    pub fn divisor(&self) -> u32 {
        self.divisor
    }

    /// Halves the sample until it fits.
    #[cold]
    fn thin(&mut self) {
        while self.last.len() > self.most {
            self.divisor *= 2;
            let mut distances = StackDistances::default();
            let mut last = Vec::new();
            for (page, number) in self.distances.by_recency() {
                if page.is_sampled(SEED, self.divisor) {
                    distances.place(page);
                    last.push(self.last[number as usize]);
                }
            }
            (self.distances, self.last) = (distances, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Prng;
    use std::collections::BTreeMap;

    /// The rule: while all pages are followed, a request tells the one before it for the same page and the number of
    /// other pages since, by their definitions.
    #[test]
    fn a_request_tells_the_one_before() {
        let mut prng = Prng::new(7, "reuse");
        let mut reuse = Reuse::new(1_000);
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for at in 0..3_000 {
            let most = prng.below(300) + 1;
            let page = prng.below(most);
            let before = last.get(&page).map(|before| Before {
                request: *before,
                distance: last.values().filter(|other| *other > before).count() as u64,
            });
            assert_eq!(reuse.add(PageId(page), at), Some(Followed { weight: 1, before }));
            last.insert(page, at);
        }
        assert_eq!(reuse.divisor(), 1);
    }

    /// The rule: beyond the most pages a sample is followed, whose weights add up to the requests and whose distances
    /// are near the exact ones. Here pages are requested in turn, so that each distance is the number of others.
    #[test]
    fn a_sample_estimates_weights_and_distances() {
        const PAGES: u64 = 20_000;
        let mut reuse = Reuse::new(2_000);
        let (mut requests, mut repeated, mut distances) = (0, 0_u64, 0);
        for at in 0..5 * PAGES {
            let Some(followed) = reuse.add(PageId(at % PAGES), at) else { continue };
            requests += u64::from(followed.weight);
            assert!(
                reuse.last.len() <= 2_000 && reuse.distances.distinct_pages() as usize == reuse.last.len()
            );
            // From the second turn on, the sample has its size.
            if let Some(before) = followed.before.filter(|_| at >= 2 * PAGES) {
                assert_eq!(before.request, at - PAGES);
                repeated += 1;
                distances += before.distance;
            }
        }
        assert_eq!(reuse.divisor(), 16);
        // 1,250 pages are sampled on average, so that the standard deviation is 2.7 %.
        assert!(requests.abs_diff(5 * PAGES) < PAGES / 2, "{requests}");
        assert!((distances / repeated).abs_diff(PAGES) < PAGES / 9, "{}", distances / repeated);
    }
}
