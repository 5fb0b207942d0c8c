//! Binds a workload to pages: the addresses become pages of a pool, of a logical space, or of a drive.

use super::altered::Altered;
use super::requests::RequestSource;
use super::trace_file::{CountedChanges, ListedPages, Numbering};
use super::{Origin, Requests, TraceFile, Workload};
use crate::StackError;
use fulgurite_base::{Choice, Nanos};
use fulgurite_workload::trace::PageStream;
use fulgurite_workload::{Generator, GeneratorConfig, Op, Request};
use std::sync::Arc;
use std::time::Duration;

/// The meaning of a workload's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The addresses are pages of a pool. The pages that a trace accesses are numbered without gaps. A
    /// generator accesses the given number of pages.
    Pool {
        /// The size of a page in bytes.
        page_bytes: u32,
        /// The number of pages of a generator.
        pages: u64,
    },
    /// The addresses are pages of a pool, for a trace that is read during the run. The length of the trace
    /// and its number of pages are unknown.
    Stream {
        /// The size of a page in bytes.
        page_bytes: u32,
    },
    /// The addresses are pages of a logical space that is only written and trimmed. A trace that fits into
    /// the space keeps its addresses. Otherwise the pages that the trace accesses are numbered without gaps.
    Changes {
        /// The size of a page in bytes.
        page_bytes: u32,
        /// The number of pages of the logical space.
        pages: u32,
    },
    /// The addresses are pages of a drive.
    Drive {
        /// The size of a page in bytes.
        page_bytes: u32,
        /// The number of pages of the drive.
        pages: u64,
        /// The mapping of addresses beyond the end of the drive.
        map: AddressMap,
    },
}

/// The mapping of a trace's addresses to a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMap {
    /// Multiplies all addresses of a trace that does not fit by the same factor.
    Scale,
    /// Takes the address modulo the number of the drive's pages.
    Wrap,
    /// Numbers the pages that occur in the order of their addresses, without gaps. If they still do not fit,
    /// scales them as `Scale` does.
    Compact,
}

impl Choice for AddressMap {
    const NAMES: &'static [(&'static str, AddressMap)] =
        &[("scale", AddressMap::Scale), ("wrap", AddressMap::Wrap), ("compact", AddressMap::Compact)];
}

/// A workload whose addresses are pages.
#[derive(Clone, Debug)]
pub struct Bound {
    source: BoundSource,
    /// The wall-clock time that reading the trace took.
    pub read_for: Duration,
}

#[derive(Clone, Debug)]
enum BoundSource {
    Generator { config: GeneratorConfig, pages: u64, page_bytes: u32 },
    Listed { pages: Arc<ListedPages>, fit: Fit },
    Changes { trace: Arc<TraceFile>, page_bytes: u32, changes: Arc<CountedChanges> },
    Stream { trace: Arc<TraceFile>, page_bytes: u32 },
}

/// The mapping of a trace's pages to a drive.
#[derive(Clone, Copy, Debug)]
enum Fit {
    AsTheyAre,
    Scaled { pages: u64 },
    Wrapped { pages: u64 },
}

impl Workload {
    /// Maps the addresses of this workload to pages.
    pub fn bind(&self, view: View) -> Result<Bound, StackError> {
        match &self.origin {
            Origin::Generator(config) => {
                let (pages, page_bytes) = match view {
                    View::Pool { page_bytes, pages } | View::Drive { page_bytes, pages, .. } => {
                        (pages, page_bytes)
                    }
                    View::Changes { page_bytes, pages } => (u64::from(pages), page_bytes),
                    View::Stream { page_bytes } => (u64::MAX, page_bytes),
                };
                let source = BoundSource::Generator { config: config.clone(), pages, page_bytes };
                Ok(Bound { source, read_for: Duration::ZERO })
            }
            Origin::Trace(trace) => bind_trace(trace, view),
        }
    }
}

fn bind_trace(trace: &Arc<TraceFile>, view: View) -> Result<Bound, StackError> {
    match view {
        View::Pool { page_bytes, .. } => listed(trace, page_bytes, Numbering::Dense, Fit::AsTheyAre),
        View::Stream { page_bytes } => Ok(Bound {
            source: BoundSource::Stream { trace: Arc::clone(trace), page_bytes },
            read_for: Duration::ZERO,
        }),
        View::Changes { page_bytes, pages } => bind_changes(trace, page_bytes, pages, KEPT_AT_MOST),
        View::Drive { page_bytes, pages, map } => {
            // The addresses of different volumes are far apart, so scaling alone would map most volumes to
            // few pages. Objects have identities and no addresses.
            let is_dense = map == AddressMap::Compact || trace.has_objects() || trace.volumes()? > 1;
            let numbering = if is_dense { Numbering::Dense } else { Numbering::InPlace };
            let fit = if map == AddressMap::Wrap { Fit::Wrapped { pages } } else { Fit::Scaled { pages } };
            listed(trace, page_bytes, numbering, fit)
        }
    }
}

/// The most changes of a trace that are kept in memory, in 256 MiB of writes. Each run reads a longer trace from its
/// file.
const KEPT_AT_MOST: u64 = 1 << 26;

/// Binds a trace to a space that is only written and trimmed. `keep` is the most changes to keep in memory.
fn bind_changes(trace: &Arc<TraceFile>, page_bytes: u32, pages: u32, keep: u64) -> Result<Bound, StackError> {
    match trace.changes(page_bytes, pages, keep)? {
        (Some(changes), read_for) => {
            let source = BoundSource::Changes { trace: Arc::clone(trace), page_bytes, changes };
            Ok(Bound { source, read_for })
        }
        (None, tried_for) => {
            let bound = listed(trace, page_bytes, Numbering::Dense, Fit::AsTheyAre)?;
            Ok(Bound { read_for: bound.read_for + tried_for, ..bound })
        }
    }
}

fn listed(trace: &TraceFile, page_bytes: u32, numbering: Numbering, fit: Fit) -> Result<Bound, StackError> {
    let pages = trace.pages(page_bytes, numbering)?;
    Ok(Bound { read_for: pages.took, source: BoundSource::Listed { pages, fit } })
}

impl Bound {
    /// Returns the requests of a run with this seed. Fails if a generator cannot work with this number of
    /// pages.
    pub fn requests(&self, seed: u64) -> Result<Requests, StackError> {
        match &self.source {
            BoundSource::Generator { .. } => Ok(Requests::new(self.generator(seed)?.expect("it is one"))),
            BoundSource::Listed { pages, fit } => {
                Ok(Requests::new(Listed { pages: Arc::clone(pages), fit: *fit, given: 0 }))
            }
            BoundSource::Changes { trace, page_bytes, changes } => {
                let changes = Arc::clone(changes);
                if changes.kept.is_some() {
                    return Ok(Requests::new(Changes { changes, given: 0 }));
                }
                let stream = trace.open()?.page_requests(u64::from(*page_bytes))?;
                Ok(Requests::new(Reread { stream, changes }))
            }
            BoundSource::Stream { trace, page_bytes } => {
                Ok(Requests::new(trace.open()?.page_requests(u64::from(*page_bytes))?))
            }
        }
    }

    /// Returns endless requests for a run with this seed. A trace begins again after its first `ops` requests,
    /// with later times.
    pub fn repeated(&self, seed: u64, ops: u64) -> Result<Requests, StackError> {
        let BoundSource::Listed { pages, fit } = &self.source else { return self.requests(seed) };
        let requests = pages.trace.requests();
        let pass = &requests[..requests.len().min(ops as usize)];
        let last = pass.last().map_or(0, |last| last.at.0);
        // The first request of a pass follows the last one of the pass before after a mean gap.
        let period = Nanos(last + last / (pass.len() as u64 - 1).max(1));
        Ok(Requests::new(Repeated {
            pass: Listed { pages: Arc::clone(pages), fit: *fit, given: 0 },
            ops: pass.len(),
            period,
            shift: Nanos::ZERO,
        }))
    }

    /// Starts the generator of the workload; `None` for a trace.
    fn generator(&self, seed: u64) -> Result<Option<Generator>, StackError> {
        match &self.source {
            BoundSource::Generator { config, pages, page_bytes } => {
                Ok(Some(config.start(*pages, *page_bytes, seed)?))
            }
            _ => Ok(None),
        }
    }

    /// Returns the workload for the identity of a run. For a trace this is a hash of its requests.
    pub fn canonical(&self) -> Result<String, StackError> {
        Ok(match &self.source {
            BoundSource::Generator { config, .. } => config.to_string(),
            BoundSource::Listed { pages, .. } => format!("trace:{:016x}", pages.hash()),
            BoundSource::Changes { changes, .. } => format!("changes:{:016x}", changes.counts.hash()),
            // The requests are unknown before they are read, so hash the file instead.
            BoundSource::Stream { trace, .. } => format!("file:{:016x}", trace.content_hash()?),
        })
    }

    /// Returns the number of pages that a trace spans and the number of pages of the device. `None` if the
    /// trace does not span more pages than the device has.
    pub(crate) fn too_wide(&self) -> Option<(u64, u64)> {
        let BoundSource::Listed { pages: listed, fit: Fit::Scaled { pages } | Fit::Wrapped { pages } } =
            &self.source
        else {
            return None;
        };
        let span = listed.trace.span();
        (span > *pages).then_some((span, *pages))
    }

    /// Whether all times of a trace are whole seconds, and some requests have the same time.
    pub(crate) fn is_timed_in_seconds(&self) -> bool {
        let BoundSource::Listed { pages, .. } = &self.source else { return false };
        let requests = pages.trace.requests();
        requests.iter().all(|request| request.at.0.is_multiple_of(1_000_000_000))
            && requests.last().is_some_and(|last| last.at > Nanos::ZERO)
            && requests.windows(2).any(|pair| pair[0].at == pair[1].at)
    }

    /// Returns the number of requests; `None` if it is infinite or not known.
    pub(crate) fn request_count(&self) -> Option<u64> {
        match &self.source {
            BoundSource::Generator { .. } | BoundSource::Stream { .. } => None,
            BoundSource::Listed { pages, .. } => Some(pages.trace.requests().len() as u64),
            BoundSource::Changes { changes, .. } => Some(changes.counts.changes),
        }
    }

    /// Returns the number of requests to single pages; `None` if it is infinite or not known.
    pub(crate) fn page_count(&self) -> Option<u64> {
        match &self.source {
            BoundSource::Listed { pages, .. } => Some(pages.trace.pages_requested()),
            _ => self.request_count(),
        }
    }

    /// Returns the number of pages of each request, in order; `None` if the requests are endless or not
    /// known.
    pub fn request_pages(&self) -> Option<impl Iterator<Item = u32> + '_> {
        let BoundSource::Listed { pages, .. } = &self.source else { return None };
        Some(pages.trace.requests().iter().map(|request| request.pages))
    }

    /// Returns the number of writes and trims of single pages; `None` if it is infinite or not known.
    pub(crate) fn change_count(&self) -> Option<u64> {
        match &self.source {
            BoundSource::Listed { pages, .. } => Some(pages.trace.pages_changed()),
            _ => self.request_count(),
        }
    }

    /// Returns the number of writes among the first `ops` writes, shares and trims.
    pub(crate) fn writes_within(&self, ops: u64, seed: u64) -> Result<u64, StackError> {
        match &self.source {
            BoundSource::Generator { config, .. }
                if !config.trims_anything() && !config.shares_anything() =>
            {
                Ok(ops)
            }
            // Use the count of writes that reading the trace has made, if all of its changes are asked for.
            BoundSource::Changes { changes, .. } if ops == changes.counts.changes => {
                Ok(changes.counts.writes())
            }
            _ => {
                let changes = self.changes(seed)?.take(ops as usize);
                Ok(changes.filter(|request| request.op == Op::Write && request.copy_of.is_none()).count()
                    as u64)
            }
        }
    }

    /// Returns the writes and trims of single pages.
    pub fn changes(&self, seed: u64) -> Result<impl Iterator<Item = Request> + use<>, StackError> {
        let mut requests = self.requests(seed)?;
        Ok(std::iter::from_fn(move || requests.next_page()).filter(|request| request.op != Op::Read))
    }

    /// Returns the number of different pages; `None` if it is not known.
    pub fn distinct_pages(&self) -> Option<u64> {
        match &self.source {
            BoundSource::Listed { pages, .. } => Some(pages.trace.distinct_pages()),
            _ => None,
        }
    }

    /// Returns the number of pages of the smallest logical space for a trace; `None` if it is not known.
    pub(crate) fn least_space(&self) -> Option<u64> {
        match &self.source {
            BoundSource::Changes { changes, .. } => Some(changes.counts.end),
            _ => self.distinct_pages(),
        }
    }

    /// Returns the arrival of request number `ops` in nanoseconds; for a generator, the mean arrival. `None`
    /// if requests have no times, or if the times are not known.
    pub(crate) fn last_arrival_ns(&self, ops: u64, seed: u64) -> Result<Option<f64>, StackError> {
        let Some(mean) = self.mean_gap_ns(seed)? else { return Ok(None) };
        let before = ops.saturating_sub(1);
        Ok(Some(match &self.source {
            BoundSource::Listed { pages, .. } => {
                let listed = pages.trace.requests();
                listed[(before as usize).min(listed.len() - 1)].at.0 as f64
            }
            _ => before as f64 * mean,
        }))
    }

    /// Returns the mean time between requests in nanoseconds; `None` if the requests have no times.
    pub fn mean_gap_ns(&self, seed: u64) -> Result<Option<f64>, StackError> {
        if let Some(generator) = self.generator(seed)? {
            return Ok(generator.mean_gap_ns());
        }
        let BoundSource::Listed { pages, .. } = &self.source else { return Ok(None) };
        let requests = pages.trace.requests();
        let last = requests.last().map_or(Nanos::ZERO, |request| request.at);
        Ok((last > Nanos::ZERO).then(|| last.0 as f64 / (requests.len() - 1) as f64))
    }
}

/// A source of the requests of a trace mapped to a drive, with the number of requests given so far.
struct Listed {
    pages: Arc<ListedPages>,
    fit: Fit,
    given: usize,
}

impl RequestSource for Listed {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        let (listed, span) = (self.pages.trace.requests(), self.pages.trace.span());
        let end = listed.len().min(self.given + count);
        requests.extend(listed[self.given..end].iter().map(|request| self.fit.onto(request, span)));
        self.given = end;
        Ok(())
    }

    fn altered(&self) -> Option<Altered> {
        Some(self.pages.altered.clone())
    }
}

/// A source of the writes and trims of a trace that are kept in memory, with the number of those given so far.
struct Changes {
    changes: Arc<CountedChanges>,
    given: usize,
}

impl RequestSource for Changes {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        let before = requests.len();
        if let Some(kept) = &self.changes.kept {
            requests.extend(kept.iter_from(self.given).take(count));
        }
        self.given += requests.len() - before;
        Ok(())
    }

    fn altered(&self) -> Option<Altered> {
        Some(self.changes.altered.clone())
    }

    fn is_paged(&self) -> bool {
        true
    }
}

/// A source of the requests of a trace, read again from its file. The reads among them can have any address.
struct Reread {
    stream: PageStream,
    /// The changes that the first reading counted.
    changes: Arc<CountedChanges>,
}

impl RequestSource for Reread {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        let before = requests.len();
        self.stream.append(requests, count)?;
        let end = self.changes.counts.end;
        let is_new =
            |request: &Request| request.op != Op::Read && request.page + u64::from(request.pages) > end;
        let Some(at) = requests[before..].iter().position(is_new) else { return Ok(()) };
        // The space may have no such page.
        requests.truncate(before + at);
        Err("the trace was changed while it was read".to_owned())
    }

    fn altered(&self) -> Option<Altered> {
        Some(self.changes.altered.clone())
    }
}

/// A source that repeats the first `ops` requests of a trace without end. Each pass is later by `period`.
struct Repeated {
    pass: Listed,
    ops: usize,
    period: Nanos,
    shift: Nanos,
}

impl RequestSource for Repeated {
    fn append(&mut self, requests: &mut Vec<Request>, count: usize) -> Result<(), String> {
        if self.pass.given == self.ops {
            self.pass.given = 0;
            self.shift += self.period;
        }
        let before = requests.len();
        self.pass.append(requests, count.min(self.ops - self.pass.given))?;
        for request in &mut requests[before..] {
            request.at += self.shift;
        }
        Ok(())
    }

    fn altered(&self) -> Option<Altered> {
        self.pass.altered()
    }
}

impl Fit {
    /// Maps a request to the drive. `span` is the end of the trace's last page.
    fn onto(self, request: &Request, span: u64) -> Request {
        let (page, pages) = match self {
            Fit::AsTheyAre => return *request,
            Fit::Wrapped { pages } => (request.page % pages, pages),
            Fit::Scaled { pages } if span > pages => {
                // Multiply in 128 bits, since the product of two 64-bit numbers can overflow 64 bits.
                ((u128::from(request.page) * u128::from(pages) / u128::from(span)) as u64, pages)
            }
            Fit::Scaled { pages } => (request.page, pages),
        };
        let count = u64::from(request.pages).min(pages);
        // A request that would cross the end of the drive begins earlier, so that it keeps its length.
        Request { page: page.min(pages - count), pages: count as u32, ..*request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::form::TraceForm;
    use fulgurite_workload::trace::Format;
    use std::fs;
    use std::path::Path;

    /// Returns the changes of the trace in a file, of which at most `keep` are kept in memory.
    fn changes(file: &Path, keep: u64) -> Bound {
        let form = TraceForm { format: Some(Format::MIDAS), ..TraceForm::default() };
        bind_changes(&Arc::new(TraceFile::at(vec![file.to_owned()], form)), 4096, 8, keep).unwrap()
    }

    fn file_of(text: &str) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, text).unwrap();
        file.into_temp_path()
    }

    const TEXT: &str = "0 1 5 8192\n0 0 90 4096\n0 2 0 0\n0 3 6 8192\n0 1 2 4096\n";

    /// The rule: a run does not depend on whether the changes of its trace are kept or read again.
    #[test]
    fn changes_that_are_read_again_equal_those_that_are_kept() {
        let file = file_of(TEXT);
        let (kept, again) = (changes(&file, 5), changes(&file, 4));
        let all = |bound: &Bound| -> Vec<(Op, u64)> {
            bound.changes(1).unwrap().map(|request| (request.op, request.page)).collect()
        };
        let expected = [(Op::Write, 5), (Op::Write, 6), (Op::Trim, 6), (Op::Trim, 7), (Op::Write, 2)];
        assert_eq!((all(&kept), all(&again)), (expected.to_vec(), expected.to_vec()));
        assert_eq!(kept.canonical().unwrap(), again.canonical().unwrap());
        let altered = |bound: &Bound| bound.requests(1).unwrap().altered();
        assert!(altered(&kept).is_some_and(|altered| altered != Altered::default()));
        assert_eq!(altered(&kept), altered(&again));
        for ops in [3, 5] {
            assert_eq!(kept.writes_within(ops, 1).unwrap(), again.writes_within(ops, 1).unwrap());
        }
    }

    /// The rule: a page that the first reading did not see ends the requests with an error, and is not handed out.
    #[test]
    fn a_trace_that_changes_between_two_readings_is_refused() {
        let file = file_of(TEXT);
        let bound = changes(&file, 4);
        fs::write(&file, TEXT.replace("0 1 2 4096", "0 1 8 4096")).unwrap();
        let mut requests = bound.requests(1).unwrap();
        let pages: Vec<u64> =
            std::iter::from_fn(|| requests.next_page()).map(|request| request.page).collect();
        assert_eq!(pages, [5, 6, 90, 6, 7]);
        assert_eq!(requests.failure(), Some("the trace was changed while it was read"));
    }
}
