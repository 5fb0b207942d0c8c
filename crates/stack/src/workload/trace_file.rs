//! Reads a trace file when it is needed, and keeps its pages for each page size and numbering.

use super::altered::Altered;
use super::form::TraceForm;
use super::spool::{Spool, is_read_once, name_of_file, open_file, open_files, scratch};
use crate::StackError;
use crate::progress::step;
use fulgurite_base::option::name_of;
use fulgurite_base::{Nanos, PageId, fnv1a};
use fulgurite_files::obstacle;
use fulgurite_workload::trace::{
    ChangeCounts, Format, Join, PageChanges, PageTrace, Trace, TraceOptions, TraceReader, Unit,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

const OWN_TRACE_BYTES: &[u8] = include_bytes!("../../traces/postgres-pgbench.pages.zst");

/// A trace in a file. Clones of its workload share the records that were read.
#[derive(Debug)]
pub struct TraceFile {
    /// The files of the trace, mostly one; none for the trace that comes with Fulgurite.
    files: Vec<PathBuf>,
    /// How several files are one trace.
    join: Join,
    format: Option<Format>,
    options: TraceOptions,
    /// The copy of a file that can be read only once.
    spool: Spool,
    records: OnceLock<Kept<Arc<Trace>>>,
    /// The requests of the trace to pages, by page size and numbering.
    pages: Mutex<BTreeMap<(u32, Numbering), Arc<ListedPages>>>,
    /// The writes and trims of the trace, by page size and number of pages; `None` if they do not fit.
    changes: Mutex<BTreeMap<(u32, u32), KeptChanges>>,
}

type KeptChanges = Kept<Option<Arc<CountedChanges>>>;

/// The result of reading, and the wall-clock time that it took.
#[derive(Clone, Debug)]
struct Kept<T> {
    value: Result<T, String>,
    took: Duration,
}

impl<T: Clone> Kept<T> {
    fn read(read: impl FnOnce() -> Result<T, String>) -> Kept<T> {
        let start = Instant::now();
        Kept { value: read(), took: start.elapsed() }
    }

    fn get(&self) -> Result<(T, Duration), StackError> {
        self.value.clone().map(|value| (value, self.took)).map_err(StackError::request)
    }
}

/// The numbering of a trace's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Numbering {
    /// Pages are numbered in the order of their addresses, from zero without gaps.
    Dense,
    /// Pages are numbered by their addresses.
    InPlace,
}

/// The requests of a trace to pages.
#[derive(Debug)]
pub(super) struct ListedPages {
    pub trace: PageTrace,
    /// The differences between the requests and the file of the trace.
    pub altered: Altered,
    hash: OnceLock<u64>,
    /// The wall-clock time of reading the trace and numbering its pages.
    pub took: Duration,
}

impl ListedPages {
    /// Returns a hash of all requests with their times.
    pub(super) fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| {
            let words = self.trace.requests().iter().flat_map(|request| {
                [request.at.0, request.page, u64::from(request.pages) << 2 | request.op as u64]
            });
            words.fold(0, |hash, word| PageId(hash ^ word).mixed())
        })
    }
}

/// The writes and trims of a trace, at their addresses.
#[derive(Debug)]
pub(super) struct CountedChanges {
    pub counts: ChangeCounts,
    /// The changes in their order; `None` if they are so many that each run reads the file again.
    pub kept: Option<PageChanges>,
    /// The differences between the changes and the file of the trace.
    pub altered: Altered,
}

impl TraceFile {
    /// Creates the trace that comes with Fulgurite.
    pub(super) fn own() -> TraceFile {
        TraceFile::new(Vec::new(), TraceForm::default())
    }

    /// Creates the trace in `files`, in the given form.
    pub(super) fn at(files: Vec<PathBuf>, form: TraceForm) -> TraceFile {
        TraceFile::new(files, form)
    }

    fn new(files: Vec<PathBuf>, form: TraceForm) -> TraceFile {
        let TraceForm { format, options, join } = form;
        TraceFile {
            files,
            join: join.unwrap_or_default(),
            format,
            options,
            spool: Spool::default(),
            records: OnceLock::new(),
            pages: Mutex::default(),
            changes: Mutex::default(),
        }
    }

    /// Returns the files of the trace; none for the trace that comes with Fulgurite.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    pub(super) fn open(&self) -> Result<TraceReader, StackError> {
        let reader = match &self.files[..] {
            [] => TraceReader::new(
                "postgres-pgbench.pages.zst",
                Cursor::new(OWN_TRACE_BYTES),
                None,
                TraceOptions::default(),
            ),
            [path] if is_read_once(path) => {
                let bytes = self.spool.open(path)?;
                TraceReader::new(&name_of_file(path), bytes, self.format, self.options.clone())
                    .map(|reader| reader.with_scratch(scratch))
            }
            [path] => open_file(path, self.format, self.options.clone()),
            files => open_files(files, self.join, self.format, &self.options),
        };
        reader.map_err(|error| StackError::request(error.to_string()))
    }

    fn records(&self) -> Result<(Arc<Trace>, Duration), StackError> {
        let read = || {
            let reader = self.open().map_err(|error| error.to_string())?;
            Trace::read(reader).map(Arc::new).map_err(|error| error.to_string())
        };
        self.records.get_or_init(|| Kept::read(read)).get()
    }

    /// Whether the requests of the trace have arrival times.
    pub(super) fn is_timed(&self) -> Result<bool, StackError> {
        let (trace, _) = self.records()?;
        Ok(trace.records().last().is_some_and(|record| record.at > Nanos::ZERO))
    }

    /// Whether the positions in the trace are in bytes, for any page size, and not in pages.
    pub fn counts_bytes(&self) -> Result<bool, StackError> {
        Ok(self.records()?.0.unit() == Unit::Bytes)
    }

    /// Whether the positions in the trace are identities of objects.
    pub(super) fn has_objects(&self) -> bool {
        self.options.objects
    }

    /// Returns the number of volumes in the trace.
    pub(super) fn volumes(&self) -> Result<usize, StackError> {
        Ok(self.records()?.0.volumes().len())
    }

    /// Returns the requests of the trace to pages of `page_bytes`.
    pub(super) fn pages(
        &self,
        page_bytes: u32,
        numbering: Numbering,
    ) -> Result<Arc<ListedPages>, StackError> {
        // The mutex is held while the trace is read, so that two threads do not read it twice. Entries are
        // inserted whole, so a panic elsewhere leaves the map usable.
        let mut known = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pages) = known.get(&(page_bytes, numbering)) {
            return Ok(Arc::clone(pages));
        }
        let (records, took) = self.records()?;
        let start = Instant::now();
        let _step = step("numbering the pages of the trace", 0);
        let trace = match numbering {
            Numbering::Dense => records.page_requests(u64::from(page_bytes))?,
            Numbering::InPlace => records.pages_in_place(u64::from(page_bytes))?,
        };
        let altered = Altered::of(records.skipped(), records.clamped(), records.decided());
        let took = took + start.elapsed();
        let listed = Arc::new(ListedPages { trace, altered, hash: OnceLock::new(), took });
        known.insert((page_bytes, numbering), Arc::clone(&listed));
        Ok(listed)
    }

    /// Returns the writes and trims of single pages at their addresses, and the wall-clock time of reading
    /// them. The changes are `None` if they do not fit into `pages`. At most `keep` are kept in memory.
    pub(super) fn changes(
        &self,
        page_bytes: u32,
        pages: u32,
        keep: u64,
    ) -> Result<(Option<Arc<CountedChanges>>, Duration), StackError> {
        let mut known = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let reader = self.open().map_err(|error| error.to_string())?;
            let mut stream =
                reader.page_requests(u64::from(page_bytes)).map_err(|error| error.to_string())?;
            let read = PageChanges::read(&mut stream, pages, keep).map_err(|error| error.to_string())?;
            let altered = Altered::of(stream.skipped(), stream.clamped(), &stream.decided());
            Ok(read.map(|(counts, kept)| Arc::new(CountedChanges { counts, kept, altered })))
        };
        known.entry((page_bytes, pages)).or_insert_with(|| Kept::read(read)).get()
    }

    /// Returns a hash of the file's bytes and format options, for runs that do not read the trace beforehand.
    pub(super) fn content_hash(&self) -> Result<u64, StackError> {
        let how = fnv1a(format!("{:?} {:?}", self.format, self.options).as_bytes());
        let path = match &self.files[..] {
            [] => return Ok(how ^ hash_of(OWN_TRACE_BYTES)?),
            [path] if is_read_once(path) => return Ok(how ^ hash_of(self.spool.open(path)?)?),
            [path] => path,
            files => {
                // With volumes of their own, the names of the files are a part of the trace; in order they are
                // anyway.
                let joined = fnv1a(name_of(self.join).as_bytes());
                return files.iter().try_fold(how ^ joined, |hash, file| {
                    let hash = PageId(hash ^ self.hash_of_file(file)?).mixed();
                    Ok(hash)
                });
            }
        };
        Ok(how ^ self.hash_of_file(path)?)
    }

    /// Returns a hash of the bytes of a file.
    fn hash_of_file(&self, path: &Path) -> Result<u64, StackError> {
        let failed = |error| {
            StackError::request(format!("{} cannot be read: {}", path.display(), obstacle(path, &error)))
        };
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_or(0, |found| found.len());
        hash_of(step(format!("hashing {}", path.display()), bytes).reading(file))
    }
}

/// Returns a hash of all bytes. It takes eight bytes at a time, which is fast enough for traces of many
/// gigabytes.
fn hash_of(mut bytes: impl Read) -> Result<u64, StackError> {
    let failed = |error: std::io::Error| StackError::request(format!("the trace cannot be read: {error}"));
    let mut hash = 0;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let mut filled = 0;
        // Fill the buffer, since a short read would divide the bytes into other words and change the hash.
        while filled < buffer.len() {
            match bytes.read(&mut buffer[filled..]).map_err(failed)? {
                0 => break,
                more => filled += more,
            }
        }
        if filled == 0 {
            return Ok(hash);
        }
        for word in buffer[..filled].chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            hash = PageId(hash ^ u64::from_le_bytes(padded)).mixed().wrapping_add(word.len() as u64);
        }
    }
}
