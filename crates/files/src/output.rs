//! Files that the user asks for. Everything that writes a file goes through here.
//!
//! A file appears whole or not at all: it is written without its name (see `unfinished.rs`) and gets it when it is
//! complete, so that a run that fails or is interrupted leaves the old file, or none, and nothing unfinished. An
//! existing file keeps its permissions, and a symbolic link keeps its place: its target is replaced.
//!
//! What is not a regular file cannot be renamed over without being lost. So a character device (`/dev/null`), a FIFO
//! and a name of an open file (`/dev/stdout`, `/dev/fd/3`) are written to as they are. Folders, block devices,
//! and files that hold a drive or a store are refused. `-` is standard output. [`check`] refuses, before anything runs, an output that is an input or another output of the same run,
//! and one that would take the place of a file which Fulgurite did not make; see [`Replaces`].

use crate::unfinished::Unfinished;
use crate::{holds_store, obstacle};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an output cannot be written, in a sentence that names its argument.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The file is read by the same run.
    #[error("{output} is the same file as {input}, which is read; accepted: another file")]
    IsInput {
        /// The output.
        output: String,
        /// The input.
        input: String,
    },
    /// Two outputs of one run are one file.
    #[error("{output} is the same file as {other}, which is written too; accepted: a file for each")]
    IsOutputTwice {
        /// The output.
        output: String,
        /// The output before it.
        other: String,
    },
    /// The file is a drive, or a store, and would be lost.
    #[error("{output} holds a drive or a store, which would be lost; accepted: another file")]
    IsDrive {
        /// The output.
        output: String,
    },
    /// A file is there, and nobody said that it may be replaced.
    #[error("{output} exists{but}; accepted: another file, or --force to replace it")]
    Exists {
        /// The output.
        output: String,
        /// Why it is not taken for an earlier output.
        but: &'static str,
    },
    /// The path names something that no table or trace belongs into.
    #[error("{output} is a {found}; accepted: a file")]
    IsNoFile {
        /// The output.
        output: String,
        /// What it is.
        found: &'static str,
    },
    /// The file cannot be begun.
    #[error(
        "{output} cannot be written: {error}; accepted: a file that can be written, in a folder that exists"
    )]
    CannotBegin {
        /// The output.
        output: String,
        /// Why, in words.
        error: String,
    },
    /// Writing failed on the way: the disk is full, for one.
    #[error("{output} cannot be written: {error}")]
    Failed {
        /// The output.
        output: String,
        /// Why, in words.
        error: String,
    },
}

impl OutputError {
    /// Whether another request would do, rather than a mended disk.
    pub fn is_request(&self) -> bool {
        !matches!(self, OutputError::Failed { .. })
    }
}

/// A file and the argument that names it: `--requests-out`, `OUT`.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The argument.
    pub argument: &'a str,
    /// The path, as typed.
    pub path: &'a Path,
    replaces: Replaces,
}

/// Which files an output may replace. Empty files always may be replaced, since they hold nothing; drives and stores never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// No file: those of this kind look alike, whoever made them. A trace is one.
    Nothing,
    /// Those that begin with these bytes, as only Fulgurite's own files of this kind do.
    Beginning(&'static str),
    /// Any file: the user said so, or the caller knows whose it is.
    Anything,
}

impl Replaces {
    /// Anything, if the user said so.
    pub fn or_forced(self, force: bool) -> Replaces {
        if force { Replaces::Anything } else { self }
    }
}

impl<'a> Named<'a> {
    /// The file at `path`, which `argument` names. As an output it replaces nothing.
    pub fn new(argument: &'a str, path: &'a Path) -> Named<'a> {
        Named { argument, path, replaces: Replaces::Nothing }
    }

    /// The same output, which may replace such files.
    pub fn replacing(self, replaces: Replaces) -> Named<'a> {
        Named { replaces, ..self }
    }

    /// Refuses to replace the file at `path`, of which the output's path is a name, unless that may be.
    fn may_replace(&self, path: &Path, existing: &Metadata) -> Result<(), OutputError> {
        let but = match self.replaces {
            _ if existing.len() == 0 => return Ok(()),
            Replaces::Anything => return Ok(()),
            Replaces::Beginning(own) if begins_with(path, own) => return Ok(()),
            Replaces::Beginning(_) => " and is no earlier output of this kind",
            Replaces::Nothing => "",
        };
        Err(OutputError::Exists { output: self.text(), but })
    }

    fn text(&self) -> String {
        format!("{} {}", self.argument, self.path.display())
    }

    fn cannot_begin(&self, error: io::Error) -> OutputError {
        OutputError::CannotBegin { output: self.text(), error: obstacle(self.path, &error) }
    }

    /// What to report when writing this file failed on the way.
    pub fn failed(&self, error: io::Error) -> OutputError {
        OutputError::Failed { output: self.text(), error: obstacle(self.path, &error) }
    }
}

/// The path of standard input or output.
pub const STANDARD: &str = "-";

/// Whether `path` is standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

/// What a failure to write to standard output means. A closed pipe (`fulgurite list | head -1`) is none: its reader has seen enough. A full
/// disk is one.
pub fn standard_failed(error: &io::Error) -> Result<(), OutputError> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(OutputError::Failed {
            output: "standard output".to_owned(),
            error: obstacle(Path::new(STANDARD), error),
        }),
    }
}

/// Checks, before anything runs, that every output can be written, is neither an input nor another output, and replaces
/// only what it may.
/// Inputs that are no files (a generator's name) match nothing.
pub fn check(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<(), OutputError> {
    // A terminal or a pipe is no file that could be lost: it may be read and written.
    let of_file = |path: &Path| {
        // What is read from standard input may be a file too.
        let path = if is_standard(path) { Path::new("/dev/stdin") } else { path };
        fs::metadata(path).ok().filter(Metadata::is_file)
    };
    let read: Vec<(Named<'_>, Identity)> = inputs
        .iter()
        .filter_map(|input| Some((*input, Identity::new(input.path.to_owned(), Some(&of_file(input.path)?)))))
        .collect();
    let mut written: Vec<(Named<'_>, Identity)> = Vec::new();
    for output in outputs {
        let destination = Destination::of(output)?;
        let replaced = match &destination {
            Destination::Regular(path, Some(existing)) => Some((path.clone(), existing.clone())),
            _ => None,
        };
        let Some(identity) = destination.tried(output)? else { continue };
        if let Some((input, _)) = read.iter().find(|(_, input)| input.is_same(&identity)) {
            return Err(OutputError::IsInput { output: output.text(), input: input.text() });
        }
        if let Some((other, _)) = written.iter().find(|(_, other)| other.is_same(&identity)) {
            return Err(OutputError::IsOutputTwice { output: output.text(), other: other.text() });
        }
        // Last: that it is an input says more.
        if let Some((path, existing)) = replaced {
            output.may_replace(&path, &existing)?;
        }
        written.push((*output, identity));
    }
    Ok(())
}

/// Whether the file at `path` can be read and begins so.
fn begins_with(path: &Path, own: &str) -> bool {
    let mut first = vec![0; own.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == own.as_bytes()
}

/// Lets `write` fill a file, which appears if `write` succeeds.
pub fn write_whole<T, E: From<OutputError>>(
    named: Named<'_>,
    write: impl FnOnce(&mut OutputFile) -> Result<T, E>,
) -> Result<T, E> {
    let mut file = OutputFile::create(named)?;
    let value = write(&mut file)?;
    file.finish()?;
    Ok(value)
}

/// A file under way. It takes its place in [`OutputFile::finish`]; dropped before, it leaves nothing.
pub struct OutputFile {
    argument: String,
    path: PathBuf,
    sink: BufWriter<Sink>,
}

enum Sink {
    /// Takes the place of `path` when it is complete.
    Whole { unfinished: Unfinished, path: PathBuf },
    /// Is written to as it is.
    Stream(File),
}

impl OutputFile {
    /// Begins the file.
    pub fn create(named: Named<'_>) -> Result<OutputFile, OutputError> {
        let sink = Destination::of(&named)?.open().map_err(|error| named.cannot_begin(error))?;
        let Named { argument, path, .. } = named;
        Ok(OutputFile { argument: argument.to_owned(), path: path.to_owned(), sink: BufWriter::new(sink) })
    }

    /// The argument and path that it was created for.
    pub fn named(&self) -> Named<'_> {
        Named::new(&self.argument, &self.path)
    }

    /// Puts the file into its place.
    pub fn finish(self) -> Result<(), OutputError> {
        let OutputFile { argument, path, sink } = self;
        let put = sink.into_inner().map_err(io::IntoInnerError::into_error).and_then(Sink::put);
        put.map_err(|error| Named::new(&argument, &path).failed(error))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sink.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

impl Sink {
    fn put(self) -> io::Result<()> {
        // A pipe or a terminal has nothing to wait for, and nothing to rename.
        let Sink::Whole { unfinished, path } = self else { return Ok(()) };
        // Without this a power cut after the renaming could leave an empty file where the old one was.
        unfinished.file().sync_all()?;
        unfinished.replace(&path)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Whole { unfinished, .. } => unfinished.file_mut().write(bytes),
            // A reader that closes its pipe has seen enough (`--requests-out /dev/stdout | head`).
            Sink::Stream(file) => match file.write(bytes) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
                written => written,
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Whole { unfinished, .. } => unfinished.file_mut().flush(),
            Sink::Stream(file) => file.flush(),
        }
    }
}

/// What an output's path leads to.
enum Destination {
    /// A regular file or a free name: the path without links, and the file that is there.
    Regular(PathBuf, Option<Metadata>),
    /// This process's standard output or error.
    Standard(File),
    /// A character device, a FIFO, or an open file of which only the descriptor has a name.
    Special(PathBuf),
}

impl Destination {
    fn of(named: &Named<'_>) -> Result<Destination, OutputError> {
        let no_file = |found| OutputError::IsNoFile { output: named.text(), found };
        let error = |error| named.cannot_begin(error);
        if is_standard(named.path) {
            let own = io::stdout().as_fd().try_clone_to_owned().map_err(error)?;
            return Ok(Destination::Standard(File::from(own)));
        }
        let existing = match fs::metadata(named.path) {
            Ok(existing) => Some(existing),
            Err(missing) if missing.kind() == ErrorKind::NotFound => None,
            Err(other) => return Err(error(other)),
        };
        if existing.as_ref().map_or_else(|| ends_in_slash(named.path), Metadata::is_dir) {
            return Err(no_file("folder"));
        }
        if let Some(found) = &existing {
            if found.file_type().is_block_device() {
                // A table would overwrite the first bytes of a disk.
                return Err(no_file("block device"));
            }
            if let Some(standard) = same_as_standard(found).map_err(error)? {
                return Ok(Destination::Standard(standard));
            }
            if !found.is_file() {
                return Ok(Destination::Special(named.path.to_owned()));
            }
            if fulgurite_uring::is_drive(named.path) || holds_store(named.path) {
                return Err(OutputError::IsDrive { output: named.text() });
            }
        }
        let followed = follow_links(named.path).map_err(error)?;
        Ok(followed.map_or_else(
            || Destination::Special(named.path.to_owned()),
            |path| Destination::Regular(path, existing),
        ))
    }

    /// Tries to begin the file without changing anything; the identity of a file that nothing else of the run
    /// must be.
    fn tried(self, named: &Named<'_>) -> Result<Option<Identity>, OutputError> {
        Ok(match self {
            Destination::Regular(path, existing) => {
                let identity = Identity::new(path.clone(), existing.as_ref());
                // The unfinished file is dropped at once, which removes it.
                Destination::Regular(path, existing).open().map_err(|error| named.cannot_begin(error))?;
                Some(identity)
            }
            // Opening a FIFO here would wait for its reader, and closing it would end that reader.
            Destination::Standard(file) => {
                let found = file.metadata().map_err(|error| named.cannot_begin(error))?;
                // One of two outputs called `-` would be lost in the other, also on a terminal.
                let takes_any = found.file_type().is_char_device() && !is_standard(named.path);
                // Standard input is called `-` too, and is another file.
                (!takes_any).then(|| Identity::new(PathBuf::from("/dev/stdout"), Some(&found)))
            }
            Destination::Special(path) => {
                let found = fs::metadata(&path).map_err(|error| named.cannot_begin(error))?;
                // `/dev/null` and a terminal take any number of outputs.
                let takes_any = found.file_type().is_char_device();
                (!takes_any).then(|| Identity::new(path, Some(&found)))
            }
        })
    }

    fn open(self) -> io::Result<Sink> {
        match self {
            Destination::Standard(file) => Ok(Sink::Stream(file)),
            // What is there already stays: the process that opened the file for us put it there.
            Destination::Special(path) => Ok(Sink::Stream(OpenOptions::new().append(true).open(path)?)),
            Destination::Regular(path, existing) => {
                let unfinished = Unfinished::begin(path.parent().unwrap_or(Path::new("/")))?;
                if let Some(existing) = existing {
                    // A file that is protected from writing is protected from being replaced too.
                    OpenOptions::new().write(true).open(&path)?;
                    // Only root can give a file away; for others the new file is theirs.
                    let _ = fchown(unfinished.file(), Some(existing.uid()), Some(existing.gid()));
                    unfinished.file().set_permissions(existing.permissions())?;
                }
                Ok(Sink::Whole { unfinished, path })
            }
        }
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Standard output or error, if `found` is the file behind it: `/dev/stdout`, or the file that a shell sends it to.
/// Its own descriptor appends to what is there; another descriptor would overwrite it.
fn same_as_standard(found: &Metadata) -> io::Result<Option<File>> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let standard: [BorrowedFd<'_>; 2] = [stdout.as_fd(), stderr.as_fd()];
    for descriptor in standard {
        let file = File::from(descriptor.try_clone_to_owned()?);
        let open = file.metadata()?;
        if (open.dev(), open.ino()) == (found.dev(), found.ino()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// The path that `path` leads to, through links, whether or not there is a file; none where it leads through `/proc`,
/// whose links are open files and not names.
fn follow_links(path: &Path) -> io::Result<Option<PathBuf>> {
    /// As many as Linux follows.
    const LINKS_AT_MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_AT_MOST {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
        if folder.starts_with("/proc") {
            return Ok(None);
        }
        let place = folder.join(name);
        match fs::read_link(&place) {
            Ok(target) => path = folder.join(target),
            // It is no link, or there is nothing yet.
            Err(_) => return Ok(Some(place)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// What makes two names one file.
struct Identity {
    /// Without links: for files that are not there yet.
    path: PathBuf,
    /// Device and inode: for hard links.
    inode: Option<(u64, u64)>,
}

impl Identity {
    fn new(path: PathBuf, found: Option<&Metadata>) -> Identity {
        Identity { path, inode: found.map(|found| (found.dev(), found.ino())) }
    }

    fn is_same(&self, other: &Identity) -> bool {
        self.path == other.path || (self.inode.is_some() && self.inode == other.inode)
    }
}
