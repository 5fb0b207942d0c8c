//! A generator over two classes of pages, hot and cold.
//!
//! A page is drawn uniformly from its class. The hot pages are the first ones. With all pages in one class,
//! this is the uniform workload. The skewed workloads are those of Papon and Athanassoulis, "ACEing the
//! Bufferpool Management Paradigm for Modern Storage Devices", ICDE 2023: mixed, write-intensive and
//! read-intensive with a 90/10 skew, and mixed uniform.

use super::draw::draw_op;
use crate::Request;
use fulgurite_base::{Prng, Share};

/// A generator over a hot class, the pages `0..hot`, and a cold class, the next `cold` pages.
#[derive(Clone, Debug)]
pub(crate) struct TwoClass {
    pub(super) write: Share,
    pub(super) hot_requests: Share,
    pub(super) hot: u64,
    /// The number of cold pages; zero only if every request is hot.
    pub(super) cold: u64,
    /// Whether requests carry the class of their page as a placement hint: 1 for hot, 0 for cold.
    pub(super) hints: bool,
    /// The number of pages in a chain. These are pages requested one after the other, beginning with a random
    /// one.
    pub(super) chain: u32,
    /// The number of pages that remain of the current chain, and the page that was requested last.
    pub(super) left: u32,
    pub(super) last: u64,
    pub(super) prng: Prng,
}

/// The distance between consecutive pages of a chain within their class. It is large enough that these pages
/// are not neighbours.
const STEP: u64 = 7_919;

impl TwoClass {
    #[inline]
    pub(super) fn request(&mut self) -> Request {
        let op = draw_op(&mut self.prng, self.write);
        if self.left > 0 {
            self.left -= 1;
            let is_hot = self.last < self.hot;
            let (first, pages) = if is_hot { (0, self.hot) } else { (self.hot, self.cold) };
            self.last = first + (self.last - first + STEP) % pages;
            return Request { stream: u16::from(self.hints && is_hot), ..Request::of_page(op, self.last) };
        }
        // Without cold pages every request is hot, so `below` is never called with zero pages.
        let is_hot = self.prng.chance(self.hot_requests);
        let (first, pages) = if is_hot { (0, self.hot) } else { (self.hot, self.cold) };
        let stream = u16::from(self.hints && is_hot);
        self.last = first + self.prng.below(pages);
        self.left = self.chain - 1;
        Request { stream, ..Request::of_page(op, self.last) }
    }
}
