//! The requests of a run, one after the other, from a generator or a trace.
//!
//! A source hands over many requests at once, so that they share the cost of one dynamic call.

use fulgurite_workload::trace::{PageChanges, PageStream};
use fulgurite_workload::{Generator, Request};
use std::sync::Arc;

/// Requests that are taken from their source together.
const TOGETHER: usize = 256;

/// Where requests come from.
pub(super) trait RequestSource {
    /// Appends up to about `count` of the next requests; none at the end. The error says why there are no more.
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String>;

    /// Whether every request is to one page.
    fn is_paged(&self) -> bool {
        false
    }
}

/// The requests of a run.
pub struct Requests {
    source: Box<dyn RequestSource>,
    /// Taken from the source and not yet handed out, from `at` on.
    ahead: Vec<Request>,
    at: usize,
    failure: Option<String>,
}

impl Requests {
    pub(super) fn new(source: impl RequestSource + 'static) -> Requests {
        Requests { source: Box::new(source), ahead: Vec::new(), at: 0, failure: None }
    }

    /// What ended the requests before their end, if anything did.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The next request, of one page or more.
    #[inline]
    pub fn next_request(&mut self) -> Option<Request> {
        if self.at == self.ahead.len() && !self.take_more() {
            return None;
        }
        let request = self.ahead[self.at];
        self.at += 1;
        Some(request)
    }

    /// The next request to one page: longer ones come page by page.
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

    /// Passes over the next `count` requests to one page each. Returns how many there were.
    pub fn skip_pages(&mut self, count: u64) -> u64 {
        let mut skipped = 0;
        while skipped < count && self.next_page().is_some() {
            skipped += 1;
        }
        skipped
    }

    /// Appends the next `count` requests to one page each; fewer only at the end.
    pub fn append_pages(&mut self, pages: &mut Vec<Request>, count: usize) {
        let end = pages.len() + count;
        // Nothing has to be taken apart, so nothing has to be copied either.
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
        // A source that has failed is not asked again.
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

/// The writes and trims of a trace, and how many have been given.
pub(super) struct Changes(pub Arc<PageChanges>, pub usize);

impl RequestSource for Changes {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        let before = requests.len();
        requests.extend(self.0.iter_from(self.1).take(count));
        self.1 += requests.len() - before;
        Ok(())
    }

    fn is_paged(&self) -> bool {
        true
    }
}

impl RequestSource for PageStream {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        let before = requests.len();
        // A stretch of a trace may hold nothing but lines that are left out.
        while requests.len() == before {
            if !self.for_some(count, |request| requests.push(request)).map_err(|error| error.to_string())? {
                break;
            }
        }
        Ok(())
    }
}
