//! Copies traces that can be read only once: from standard input, a pipe (`<(zcat t.gz)`) or a device.
//!
//! A run may read its trace several times, for instance to learn the length or the hash of the trace. So such
//! a trace is copied to a temporary file without a name, which the system removes when the process ends.

use super::files::files_of;
use super::form::TraceForm;
use crate::StackError;
use crate::progress::step;
use fulgurite_files::obstacle;
use fulgurite_files::output::is_standard;
use fulgurite_workload::trace::{Format, Join, Scratch, TraceError, TraceOptions, TraceReader};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The name of standard input in messages.
pub(super) const STANDARD_INPUT: &str = "standard input";

/// A copy of a trace that can be read only once. The first reading makes it.
#[derive(Debug, Default)]
pub(super) struct Spool(OnceLock<Result<Arc<File>, String>>);

/// Reads a copied trace from its beginning.
pub(super) struct Spooled {
    file: Arc<File>,
    at: u64,
}

impl Spool {
    /// Opens the copy of the trace at `path` at its beginning. The first call makes the copy.
    pub(super) fn open(&self, path: &Path) -> Result<Spooled, StackError> {
        let kept = self.0.get_or_init(|| keep(path).map(Arc::new).map_err(|error| obstacle(path, &error)));
        match kept {
            Ok(file) => Ok(Spooled { file: Arc::clone(file), at: 0 }),
            Err(error) => Err(StackError::request(format!("{} cannot be read: {error}", name_of_file(path)))),
        }
    }
}

impl Read for Spooled {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Read at this reader's own offset, since readers that share a file share its only offset.
        let count = self.file.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

fn keep(path: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    // The length of the trace is not known, so the step has 0 parts.
    let _step = step(format!("reading {}", name_of_file(path)), 0);
    if is_standard(path) {
        io::copy(&mut io::stdin().lock(), &mut file)?;
    } else {
        io::copy(&mut File::open(path)?, &mut file)?;
    }
    Ok(file)
}

/// Whether the trace at `path` can be read only once.
pub(super) fn is_read_once(path: &Path) -> bool {
    // A folder and a missing file are not copied, because opening them gives a better error message.
    is_standard(path) || fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Returns the name of the trace at `path` in messages.
pub(super) fn name_of_file(path: &Path) -> String {
    if is_standard(path) { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

/// Opens the trace that `text` names, to read it once; `-` is standard input. A list of files is one trace.
pub fn open_trace(text: &str, form: TraceForm) -> Result<TraceReader, StackError> {
    let TraceForm { format, options, join } = form;
    let join = join.unwrap_or_default();
    let reader = match &files_of(text, Some(join))?[..] {
        [path] if is_standard(path) => {
            let step = step(format!("reading {STANDARD_INPUT}"), 0);
            TraceReader::new(STANDARD_INPUT, step.reading(io::stdin()), format, options)
                .map(|reader| reader.with_scratch(scratch))
        }
        [path] => open_file(path, format, options),
        files => open_files(files, join, format, &options),
    };
    reader.map_err(|error| StackError::request(error.to_string()))
}

/// Opens several files as one trace. Files without a byte are left out: blktrace has a file for each CPU, also
/// for one without requests.
pub(super) fn open_files(
    files: &[PathBuf],
    join: Join,
    format: Option<Format>,
    options: &TraceOptions,
) -> Result<TraceReader, TraceError> {
    let all = format!("{} and {} more files", files[0].display(), files.len() - 1);
    let short = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<Option<String>> = files.iter().map(short).collect();
    names.sort_unstable();
    names.dedup();
    // Files of the same name in several folders are told apart by their paths.
    let is_short = names.len() == files.len();
    let mut readers = Vec::new();
    for path in files {
        let wrong = |reason: String| TraceError { file: path.display().to_string(), line: None, reason };
        let found = fs::metadata(path)
            .map_err(|error| wrong(format!("cannot be opened: {}", obstacle(path, &error))))?;
        if !found.is_file() {
            return Err(wrong("is no regular file; accepted: files of a trace, or one pipe".to_owned()));
        }
        if found.len() > 0 {
            let name = short(path).filter(|_| is_short).unwrap_or_else(|| path.display().to_string());
            readers.push((name, open_file(path, format, options.clone())?));
        }
    }
    TraceReader::join(&all, readers, join)
}

/// Opens the trace file at `path`. Reading the file is a step of the progress.
pub(super) fn open_file(
    path: &Path,
    format: Option<Format>,
    options: TraceOptions,
) -> Result<TraceReader, TraceError> {
    let name = path.display().to_string();
    let cannot = |error: io::Error| TraceError {
        file: name.clone(),
        line: None,
        reason: format!("cannot be opened: {}; accepted: the path of a trace", obstacle(path, &error)),
    };
    let file = File::open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.is_dir() {
        // Refuse a folder here, because a folder can be opened but not read.
        return Err(cannot(io::Error::from(rustix::io::Errno::ISDIR)));
    }
    let bytes = if metadata.is_file() { metadata.len() } else { 0 };
    let step = step(format!("reading {name}"), bytes);
    Ok(TraceReader::new(&name, step.reading(file), format, options)?.with_scratch(scratch))
}

/// Creates a file for the requests of a trace that is sorted and does not fit in memory.
pub(super) fn scratch() -> io::Result<Box<dyn Scratch>> {
    Ok(Box::new(tempfile::tempfile()?))
}
