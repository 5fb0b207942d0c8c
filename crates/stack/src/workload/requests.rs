//! Defines the sequence of a run's requests, from a generator or a trace.
//!
//! A source of requests appends many requests per call, to reduce the cost of dynamic calls.

use super::altered::Altered;
use fulgurite_workload::trace::PageStream;
use fulgurite_workload::{Generator, Request};

/// The number of requests that are taken from a source at once.
const TOGETHER: usize = 256;

/// A source of requests.
pub(super) trait RequestSource {
    /// Appends at most about `count` requests, and none at the end. An error is the reason why no more
    /// requests follow.
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String>;

    /// Returns what reading a trace left out or changed so far; `None` for a generator.
    fn altered(&self) -> Option<Altered> {
        None
    }

    /// Whether every request of the source is to one page.
    fn is_paged(&self) -> bool {
        false
    }
}

/// The requests of a run.
pub struct Requests {
    source: Box<dyn RequestSource>,
    /// Requests that were taken from the source. Those from index `at` on are not yet handed out.
    ahead: Vec<Request>,
    at: usize,
    failure: Option<String>,
}

impl Requests {
    pub(super) fn new(source: impl RequestSource + 'static) -> Requests {
        Requests { source: Box::new(source), ahead: Vec::new(), at: 0, failure: None }
    }

    /// Returns the error that ended the requests early; `None` if there was none.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns what reading a trace left out or changed so far; `None` for a generator.
    pub(crate) fn altered(&self) -> Option<Altered> {
        self.source.altered()
    }

    /// Returns the next request, of one page or more.
    #[inline]
    pub fn next_request(&mut self) -> Option<Request> {
        if self.at == self.ahead.len() && !self.take_more() {
            return None;
        }
        let request = self.ahead[self.at];
        self.at += 1;
        Some(request)
    }

    /// Returns the next request to a single page. Longer requests are divided into pages.
    #[inline]
    pub fn next_page(&mut self) -> Option<Request> {
        if self.at == self.ahead.len() && !self.take_more() {
            return None;
        }
        let request = &mut self.ahead[self.at];
        let page = Request { pages: 1, ..*request };
        if request.pages > 1 {
            (request.page, request.pages) = (request.page + 1, request.pages - 1);
        } else {
            self.at += 1;
        }
        Some(page)
    }

    /// Skips the next `count` requests to single pages. Returns the number of requests skipped.
    pub(crate) fn skip_pages(&mut self, count: u64) -> u64 {
        let mut skipped = 0;
        while skipped < count && self.next_page().is_some() {
            skipped += 1;
        }
        skipped
    }

    /// Appends the next `count` requests to single pages; fewer only at the end.
    pub(crate) fn append_pages(&mut self, pages: &mut Vec<Request>, count: usize) {
        let end = pages.len() + count;
        // A source whose requests are all to single pages appends them directly, without a copy.
        while self.source.is_paged() && self.at == self.ahead.len() && pages.len() < end {
            let before = pages.len();
            self.failure = self.source.append(pages, end - before).err();
            if pages.len() == before {
                return;
            }
        }
        while pages.len() < end
            && let Some(page) = self.next_page()
        {
            pages.push(page);
        }
    }

    fn take_more(&mut self) -> bool {
        self.ahead.clear();
        self.at = 0;
        // Do not call the source again after an error.
        if self.failure.is_none() {
            self.failure = self.source.append(&mut self.ahead, TOGETHER).err();
        }
        !self.ahead.is_empty()
    }
}

impl RequestSource for Generator {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        Generator::append(self, requests, count);
        Ok(())
    }

    fn is_paged(&self) -> bool {
        !self.is_timed()
    }
}

impl RequestSource for PageStream {
    fn altered(&self) -> Option<Altered> {
        Some(Altered::of(self.skipped(), self.clamped(), &self.decided()))
    }

    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        let before = requests.len();
        // Repeat until a request is appended, because a piece of the trace may consist of lines that are
        // skipped.
        while requests.len() == before {
            if !self.for_some(count, |request| requests.push(request)).map_err(|error| error.to_string())? {
                break;
            }
        }
        Ok(())
    }
}
