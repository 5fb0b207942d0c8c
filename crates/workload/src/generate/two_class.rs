//! Two classes of pages, hot and cold. A page is drawn uniformly from its class. With all pages in one class,
//! this is the uniform workload. The hot pages are the first ones. These are the synthetic workloads of Papon
//! and Athanassoulis, "ACEing the Bufferpool Management Paradigm for Modern Storage Devices", ICDE 2023:
//! mixed, write-intensive and read-intensive with a 90/10 skew, and mixed uniform.

use super::draw::draw_op;
use crate::Request;
use fulgurite_base::{Prng, Share};

/// A generator over a hot class, the pages `0..hot`, and a cold class, the `cold` pages behind it.
#[derive(Clone, Debug)]
pub(crate) struct TwoClass {
    pub(super) write: Share,
    pub(super) hot_requests: Share,
    pub(super) hot: u64,
    /// Zero only if every request is hot.
    pub(super) cold: u64,
    /// Requests carry their class as a placement hint: 1 for hot, 0 for cold.
    pub(super) hints: bool,
    /// Pages that are requested in a row, beginning with a random one.
    pub(super) chain: u32,
    /// The remaining pages of the current chain, and the page before them.
    pub(super) left: u32,
    pub(super) last: u64,
    pub(super) prng: Prng,
}

/// The distance between consecutive pages of a chain within their class, large enough that they are not
/// neighbours.
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
        // Without cold pages every request is hot, so `below` never gets zero.
        let is_hot = self.prng.chance(self.hot_requests);
        let (first, pages) = if is_hot { (0, self.hot) } else { (self.hot, self.cold) };
        let stream = u16::from(self.hints && is_hot);
        self.last = first + self.prng.below(pages);
        self.left = self.chain - 1;
        Request { stream, ..Request::of_page(op, self.last) }
    }
}
