//! Workloads by name: a generator with options, the PostgreSQL trace that comes with Fulgurite, or
//! the path of a trace file.

use crate::device::DeviceDescription;
use crate::error::StudyError;
use fulgurite_base::{Nanos, Spec, SpecError, fnv1a};
use fulgurite_workload::trace::{
    self, Format, PageChanges, PageStream, PageTrace, Trace, TraceOptions, TraceReader,
};
use fulgurite_workload::{Generator, GeneratorConfig, Op, Request};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The trace that comes with Fulgurite: PostgreSQL under pgbench, recorded by `traces/record-postgres.sh`.
pub const OWN_TRACE: &str = "postgres-pgbench";
const OWN_TRACE_BYTES: &[u8] = include_bytes!("../../../traces/postgres-pgbench.pages.zst");

/// A workload as described, before the first request.
#[derive(Clone, Debug)]
pub struct WorkloadDescription {
    /// What tables call it: the spec as typed, or the trace file's name.
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Generator(GeneratorConfig),
    Trace(Arc<TraceFile>),
}

/// A trace that is read when it is needed.
#[derive(Debug)]
struct TraceFile {
    source: TraceSource,
    loaded: OnceLock<Result<Arc<Trace>, String>>,
    /// By page size and pages, its changes in place, if they fit.
    changes: Mutex<Changes>,
}

type Changes = BTreeMap<(u32, u32), Option<Arc<PageChanges>>>;

/// Where a trace comes from.
#[derive(Clone, Debug)]
enum TraceSource {
    Own,
    File { path: PathBuf, format: Option<Format>, options: TraceOptions },
}

impl TraceSource {
    fn open(&self) -> Result<TraceReader, StudyError> {
        let reader = match self {
            TraceSource::Own => TraceReader::new(
                "postgres-pgbench.pages.zst",
                Cursor::new(OWN_TRACE_BYTES),
                None,
                TraceOptions::default(),
            ),
            TraceSource::File { path, format, options } => trace::open(path, *format, options.clone()),
        };
        reader.map_err(|error| StudyError::request(error.to_string()))
    }
}

impl TraceFile {
    fn load(&self) -> Result<Arc<Trace>, StudyError> {
        let loaded = self.loaded.get_or_init(|| {
            let reader = self.source.open().map_err(|error| error.to_string())?;
            Trace::read(reader).map(Arc::new).map_err(|error| error.to_string())
        });
        loaded.clone().map_err(StudyError::request)
    }

    fn changes(&self, page_bytes: u32, pages: u32) -> Result<Option<Arc<PageChanges>>, StudyError> {
        let mut known = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(changes) = known.get(&(page_bytes, pages)) {
            return Ok(changes.clone());
        }
        let stream = self.source.open()?.page_requests(u64::from(page_bytes))?;
        let changes = PageChanges::read(stream, pages);
        let changes = changes.map_err(|error| StudyError::request(error.to_string()))?.map(Arc::new);
        known.insert((page_bytes, pages), changes.clone());
        Ok(changes)
    }
}

/// A source of one-page requests: longer ones come page by page.
pub struct Source {
    requests: Requests,
    /// What is left of a longer request.
    rest: Option<Request>,
}

/// Requests as they are, one page or more.
pub enum Requests {
    /// Without end.
    Generator(Generator),
    /// With one: those of a trace, and how many have been given.
    Trace(Arc<PageTrace>, usize),
    /// Writes and trims of single pages, and how many have been given.
    Changes(Arc<PageChanges>, usize),
    /// Those of a trace that is read on the way: the next ones, last first, and what went wrong with it.
    Stream(Box<PageStream>, Vec<Request>, Option<String>),
}

impl WorkloadDescription {
    /// The workload that `text` names; trace files are read here, in `format` where it is given.
    pub fn parse(
        text: &str,
        format: Option<(Format, TraceOptions)>,
    ) -> Result<WorkloadDescription, StudyError> {
        let named = Spec::parse(text).ok();
        if let Some(spec) = named.filter(|spec| GeneratorConfig::registry().get(spec.name()).is_ok()) {
            let config = GeneratorConfig::from_spec(spec)?;
            // TraceOptions that do not go together show at once, with a size that suits every generator.
            config.start(1 << 20, 4096, 0)?;
            return Ok(WorkloadDescription { name: text.to_owned(), kind: Kind::Generator(config) });
        }
        let path = Path::new(text);
        let source = if text == OWN_TRACE {
            TraceSource::Own
        } else if path.exists() {
            let (format, options) =
                format.map_or((None, TraceOptions::default()), |(format, options)| (Some(format), options));
            TraceSource::File { path: path.to_owned(), format, options }
        } else {
            let names: Vec<&str> = names().collect();
            let error = SpecError::unknown("workload", text.split(':').next().unwrap_or(text), &names);
            return Err(StudyError::request(format!("{error}; nor is there a trace file of that name")));
        };
        let trace = TraceFile { source, loaded: OnceLock::new(), changes: Mutex::default() };
        let name =
            path.file_name().map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(WorkloadDescription { name, kind: Kind::Trace(Arc::new(trace)) })
    }

    /// Whether every page is equally likely at every request: then closed forms apply.
    pub fn is_uniform_random(&self) -> bool {
        match &self.kind {
            Kind::Generator(config) => config.is_uniform_random(),
            Kind::Trace(_) => false,
        }
    }

    /// The workload for a drive rather than a pool.
    pub fn replay(&self) -> Result<ReplayWorkload, StudyError> {
        match &self.kind {
            Kind::Generator(config) => Ok(ReplayWorkload::Generator(config.clone())),
            Kind::Trace(trace) => Ok(ReplayWorkload::Trace(trace.load()?)),
        }
    }

    /// Whether it is a trace.
    pub fn is_trace(&self) -> bool {
        matches!(self.kind, Kind::Trace(_))
    }

    /// A trace as it is read; like [`WorkloadDescription::bind`] for a generator.
    pub fn stream(&self, page_bytes: u32) -> Result<BoundWorkload, StudyError> {
        match &self.kind {
            Kind::Generator(_) => self.bind(page_bytes),
            Kind::Trace(trace) => {
                let trace = Arc::clone(trace);
                Ok(BoundWorkload::Stream(TraceStream { trace, page_bytes }))
            }
        }
    }

    /// Binds its writes and trims to a logical space of `pages` pages: those of a trace stay where they are if they
    /// fit, else the pages that occur are numbered densely.
    pub fn bind_changes(&self, page_bytes: u32, pages: u32) -> Result<BoundWorkload, StudyError> {
        if let Kind::Trace(trace) = &self.kind
            && let Some(changes) = trace.changes(page_bytes, pages)?
        {
            return Ok(BoundWorkload::Changes(changes));
        }
        self.bind(page_bytes)
    }

    /// Binds the workload to pages of `page_bytes`.
    pub fn bind(&self, page_bytes: u32) -> Result<BoundWorkload, StudyError> {
        match &self.kind {
            Kind::Generator(config) => Ok(BoundWorkload::Generator(config.clone())),
            Kind::Trace(trace) => {
                Ok(BoundWorkload::Trace(Arc::new(trace.load()?.page_requests(u64::from(page_bytes))?)))
            }
        }
    }
}

/// A workload whose pages are those of a pool or a drive.
#[derive(Clone, Debug)]
pub enum BoundWorkload {
    /// Over any number of pages, without end.
    Generator(GeneratorConfig),
    /// Over the pages that occur in it.
    Trace(Arc<PageTrace>),
    /// The writes and trims of a trace, where they are.
    Changes(Arc<PageChanges>),
    /// A trace as it is read, without looking at it first: nobody knows its length or its pages.
    Stream(TraceStream),
}

/// A trace file and the size of its pages.
#[derive(Clone, Debug)]
pub struct TraceStream {
    trace: Arc<TraceFile>,
    page_bytes: u32,
}

impl BoundWorkload {
    /// The requests, for a run over `pages` pages of `page_bytes`.
    pub fn requests(&self, pages: u64, page_bytes: u32, seed: u64) -> Result<Requests, StudyError> {
        match self {
            BoundWorkload::Generator(config) => {
                Ok(Requests::Generator(config.start(pages, page_bytes, seed)?))
            }
            BoundWorkload::Trace(trace) => Ok(Requests::Trace(Arc::clone(trace), 0)),
            BoundWorkload::Changes(changes) => Ok(Requests::Changes(Arc::clone(changes), 0)),
            BoundWorkload::Stream(TraceStream { trace, page_bytes }) => {
                let requests = trace.source.open()?.page_requests(u64::from(*page_bytes))?;
                Ok(Requests::Stream(Box::new(requests), Vec::new(), None))
            }
        }
    }

    /// The same page by page.
    pub fn source(&self, pages: u64, page_bytes: u32, seed: u64) -> Result<Source, StudyError> {
        Ok(Source { requests: self.requests(pages, page_bytes, seed)?, rest: None })
    }

    /// What it is, for a run's identity: for a trace, a hash of its requests.
    pub fn canonical(&self) -> String {
        match self {
            BoundWorkload::Generator(config) => config.to_string(),
            // To hash what it holds would mean to read it twice.
            BoundWorkload::Stream(TraceStream { trace, .. }) => format!("trace-file:{:?}", trace.source),
            BoundWorkload::Changes(changes) => {
                format!("changes:{:016x}", changes.hash())
            }
            BoundWorkload::Trace(trace) => {
                let words = trace
                    .requests()
                    .iter()
                    .map(|request| request.page << 34 | u64::from(request.pages) << 2 | request.op as u64);
                let hash = words.fold(0, |hash: u64, word| fnv1a(&(hash ^ word).to_le_bytes()));
                format!("trace:{hash:016x}")
            }
        }
    }
}

impl Iterator for Requests {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        match self {
            Requests::Generator(generator) => generator.next(),
            Requests::Trace(trace, given) => {
                let request = trace.requests().get(*given)?;
                *given += 1;
                Some(*request)
            }
            Requests::Changes(changes, given) => {
                let request = changes.iter_from(*given).next()?;
                *given += 1;
                Some(request)
            }
            Requests::Stream(requests, ahead, failure) => {
                while ahead.is_empty() && failure.is_none() {
                    match requests.for_some(STREAM_AHEAD, |request| ahead.push(request)) {
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(error) => *failure = Some(error.to_string()),
                    }
                    ahead.reverse();
                }
                ahead.pop()
            }
        }
    }
}

/// Requests that are read from a stream at once.
const STREAM_AHEAD: usize = 2048;

impl Source {
    /// Hands some of the next one-page requests to `each`; false at the end. From a stream this is faster
    /// than one by one.
    pub fn for_some(&mut self, mut each: impl FnMut(Request)) -> bool {
        let Requests::Stream(requests, ahead, failure) = &mut self.requests else {
            return self.by_ref().take(STREAM_AHEAD).map(each).count() > 0;
        };
        assert!(ahead.is_empty() && self.rest.is_none(), "a stream is read in one way or the other");
        let outcome = requests.for_some(STREAM_AHEAD, |request| {
            (0..request.pages).for_each(|page| {
                each(Request { page: request.page + u64::from(page), pages: 1, ..request });
            });
        });
        outcome.unwrap_or_else(|error| {
            *failure = Some(error.to_string());
            false
        })
    }

    /// What ended the requests before their end, if anything did.
    pub fn failure(&self) -> Option<&str> {
        match &self.requests {
            Requests::Stream(.., failure) => failure.as_deref(),
            _ => None,
        }
    }
}

impl Source {
    /// Appends the next `count` requests; fewer at the end of a trace alone.
    pub fn append(&mut self, requests: &mut Vec<Request>, count: usize) {
        match &mut self.requests {
            // All of one page.
            Requests::Generator(generator) if !generator.is_timed() => generator.append(requests, count),
            Requests::Changes(changes, given) => {
                let before = requests.len();
                requests.extend(changes.iter_from(*given).take(count));
                *given += requests.len() - before;
            }
            _ => requests.extend(self.by_ref().take(count)),
        }
    }
}

impl Iterator for Source {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        let request = match self.rest.take() {
            Some(rest) => rest,
            None => self.requests.next()?,
        };
        if request.pages > 1 {
            self.rest = Some(Request { page: request.page + 1, pages: request.pages - 1, ..request });
        }
        Some(Request { pages: 1, ..request })
    }
}

/// A workload with its own addresses and times, for a drive rather than a pool.
#[derive(Clone, Debug)]
pub enum ReplayWorkload {
    /// Over all pages of the drive, without end.
    Generator(GeneratorConfig),
    /// As recorded.
    Trace(Arc<Trace>),
}

/// How addresses beyond the end of the drive are brought onto it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressMap {
    /// All addresses are scaled down by the same factor; those of a trace that fits stay.
    Scale,
    /// The address modulo the drive's pages.
    Wrap,
    /// The pages that occur are numbered in order, without gaps; then as for scaling.
    Compact,
}

/// Requests to the pages of a drive, each with its time.
pub enum ReplaySource {
    /// A generator's.
    Generator(Generator),
    /// A trace's.
    Trace {
        /// Its requests, to pages of its own addresses or densely numbered ones.
        requests: Arc<PageTrace>,
        /// How many were given.
        given: usize,
        /// Whether they wrap rather than being scaled.
        wraps: bool,
        /// Pages of the drive.
        pages: u64,
    },
}

impl ReplayWorkload {
    /// The requests for `device`.
    pub fn source(
        &self,
        device: &DeviceDescription,
        map: AddressMap,
        seed: u64,
    ) -> Result<ReplaySource, StudyError> {
        match self {
            ReplayWorkload::Generator(config) => {
                let generator = config.start(device.pages(), device.page_bytes(), seed)?;
                Ok(ReplaySource::Generator(generator))
            }
            ReplayWorkload::Trace(trace) => {
                let page_bytes = u64::from(device.page_bytes());
                // Volumes lie far apart.
                let is_compact = map == AddressMap::Compact || trace.volumes() > 1;
                let requests = if is_compact {
                    trace.page_requests(page_bytes)?
                } else {
                    trace.pages_in_place(page_bytes)?
                };
                let wraps = map == AddressMap::Wrap;
                Ok(ReplaySource::Trace {
                    requests: Arc::new(requests),
                    given: 0,
                    wraps,
                    pages: device.pages(),
                })
            }
        }
    }

    /// How many requests there are, if they end.
    pub fn count(&self) -> Option<u64> {
        match self {
            ReplayWorkload::Generator(_) => None,
            ReplayWorkload::Trace(trace) => Some(trace.records().len() as u64),
        }
    }

    /// Whether requests have arrival times.
    pub fn is_timed(&self) -> bool {
        match self {
            ReplayWorkload::Generator(config) => config.is_timed(),
            ReplayWorkload::Trace(trace) => {
                trace.records().last().is_some_and(|record| record.at > Nanos::ZERO)
            }
        }
    }

    /// What it is, for a run's identity.
    pub fn canonical(&self) -> String {
        match self {
            ReplayWorkload::Generator(config) => config.to_string(),
            ReplayWorkload::Trace(trace) => {
                let words = trace
                    .records()
                    .iter()
                    .flat_map(|record| [record.at.0, record.start, record.length << 2 | record.op as u64]);
                let hash = words.fold(0, |hash: u64, word| fnv1a(&(hash ^ word).to_le_bytes()));
                format!("trace:{hash:016x}")
            }
        }
    }
}

impl ReplaySource {
    /// The mean time between requests; none where they have no times.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        match self {
            ReplaySource::Generator(generator) => generator.mean_gap_ns(),
            ReplaySource::Trace { requests, .. } => {
                let requests = requests.requests();
                let (last, gaps) = (requests.last()?.at, requests.len() - 1);
                (last > Nanos::ZERO).then(|| last.0 as f64 / gaps as f64)
            }
        }
    }
}

impl Iterator for ReplaySource {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        match self {
            ReplaySource::Generator(generator) => generator.next(),
            ReplaySource::Trace { requests, given, wraps, pages } => {
                let request = requests.requests().get(*given)?;
                *given += 1;
                let (page, span) = (request.page, requests.span());
                let page = if *wraps {
                    page % *pages
                } else if span > *pages {
                    (u128::from(page) * u128::from(*pages) / u128::from(span)) as u64
                } else {
                    page
                };
                let count = u64::from(request.pages).min(*pages);
                // A request that would run over the end begins earlier.
                Some(Request { page: page.min(*pages - count), pages: count as u32, ..*request })
            }
        }
    }
}

/// Every workload's name.
fn names() -> impl Iterator<Item = &'static str> {
    GeneratorConfig::registry().names().chain([OWN_TRACE])
}

/// One line about the trace that comes with Fulgurite.
pub const OWN_TRACE_ABOUT: &str =
    "a real trace: the page I/O of PostgreSQL under pgbench, 195,795 requests (32% writes)";

/// Whether a request changes its page.
pub fn is_write(request: &Request) -> bool {
    request.op == Op::Write
}
