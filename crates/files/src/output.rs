//! Writes output files that the user asks for.
//!
//! An output file is either complete or absent: it is written without a name (see `unfinished.rs`) and gets
//! its name when it is complete. So a run that fails or is interrupted leaves the old file, or none. A
//! replaced file keeps its permissions. A symbolic link stays, and its target is replaced.
//!
//! Renaming a file over something other than a regular file would destroy it. So the code writes directly to
//! a character device (`/dev/null`), a FIFO, and the name of an open file (`/dev/stdout`, `/dev/fd/3`). It
//! refuses folders, block devices, and files that hold a drive or a store. `-` is standard output.
//!
//! Before a run starts, [`check`] refuses an output that is also an input or another output of the run, and
//! an output that would replace a file that Fulgurite did not write; see [`Replaces`].

use crate::unfinished::Unfinished;
use crate::{holds_store, obstacle};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The reason why an output cannot be written, in a sentence that names its argument.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The same run reads the file as an input.
    #[error("{output} is the same file as {input}, which is read; accepted: another file")]
    IsInput {
        /// The output in words: its argument and its path.
        output: String,
        /// The input in words: its argument and its path.
        input: String,
    },
    /// Two outputs of one run are the same file.
    #[error("{output} is the same file as {other}, which is written too; accepted: a file for each")]
    IsOutputTwice {
        /// The argument and path of one output.
        output: String,
        /// The argument and path of the other output.
        other: String,
    },
    /// The file holds a drive or a store, whose data would be lost.
    #[error("{output} holds a drive or a store, which would be lost; accepted: another file")]
    IsDrive {
        /// The output in words: its argument and its path.
        output: String,
    },
    /// The file exists, and the user has not allowed replacing it.
    #[error("{output} exists{but}; accepted: another file, or --force to replace it")]
    Exists {
        /// The output in words: its argument and its path.
        output: String,
        /// The reason why the file is not an earlier output of this kind; empty if no reason is known.
        but: &'static str,
    },
    /// The path is a folder or a block device.
    #[error("{output} is a {found}; accepted: a file")]
    IsNoFile {
        /// The output in words: its argument and its path.
        output: String,
        /// The kind of file that is at the path: a folder or a block device.
        found: &'static str,
    },
    /// The file cannot be created.
    #[error(
        "{output} cannot be written: {error}; accepted: a file that can be written, in a folder that exists"
    )]
    CannotBegin {
        /// The output in words: its argument and its path.
        output: String,
        /// The reason why the file cannot be created.
        error: String,
    },
    /// Writing failed after it began, for example because the disk is full.
    #[error("{output} cannot be written: {error}")]
    Failed {
        /// The output in words: its argument and its path.
        output: String,
        /// The reason why the write failed.
        error: String,
    },
}

impl OutputError {
    /// Whether other arguments could succeed without a change to the system, such as more disk space.
    pub fn is_request(&self) -> bool {
        !matches!(self, OutputError::Failed { .. })
    }
}

/// A file, with the argument that names it, such as `--requests-out` or `OUT`.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The argument that names the file.
    pub argument: &'a str,
    /// The path of the file, as the user typed it.
    pub path: &'a Path,
    replaces: Replaces,
}

/// The files that an output may replace. An empty file holds nothing and may always be replaced. A drive or a
/// store may never be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// No file may be replaced. Traces are of this kind, because nothing shows who wrote a trace.
    Nothing,
    /// Files that begin with these bytes may be replaced. Only Fulgurite's own files of this kind begin with
    /// them.
    Beginning(&'static str),
    /// Any file may be replaced, because the user or the caller has allowed it.
    Anything,
}

impl Replaces {
    /// Returns `Anything` if the user gave `--force`, otherwise `self`.
    pub fn or_forced(self, force: bool) -> Replaces {
        if force { Replaces::Anything } else { self }
    }
}

impl<'a> Named<'a> {
    /// Creates the name of the file at `path`, which `argument` names. As an output it replaces no file.
    pub fn new(argument: &'a str, path: &'a Path) -> Named<'a> {
        Named { argument, path, replaces: Replaces::Nothing }
    }

    /// Returns the same file as an output that may replace the files that `replaces` allows.
    pub fn replacing(self, replaces: Replaces) -> Named<'a> {
        Named { replaces, ..self }
    }

    /// Refuses to replace the existing file at `path`, unless `replaces` allows it. The path is that of the
    /// output after all symbolic links.
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

    /// Returns the error for a failed write to this file.
    pub fn failed(&self, error: io::Error) -> OutputError {
        OutputError::Failed { output: self.text(), error: obstacle(self.path, &error) }
    }
}

/// The path that stands for standard input or standard output.
pub const STANDARD: &str = "-";

/// Whether `path` stands for standard input or standard output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new(STANDARD)
}

/// Returns the outcome of a command whose write to standard output failed. A closed pipe (`fulgurite list |
/// head -1`) is no error, since its reader wants no more output. A full disk is an error.
pub fn standard_failed(error: &io::Error) -> Result<(), OutputError> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(OutputError::Failed {
            output: "standard output".to_owned(),
            error: obstacle(Path::new(STANDARD), error),
        }),
    }
}

/// Checks all outputs before anything is executed. Every output must be possible to write, must be neither an
/// input nor another output, and must replace only files that it may replace. An input that is no file, such
/// as a generator's name, is the same file as no output.
pub fn check(inputs: &[Named<'_>], outputs: &[Named<'_>]) -> Result<(), OutputError> {
    // Compare only regular files. A terminal or a pipe may be read and written at once, since it holds no
    // data to lose.
    let of_file = |path: &Path| {
        // Look at standard input too, since it may be a file.
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
        // Check the replaced file last, because the other two errors say more.
        if let Some((path, existing)) = replaced {
            output.may_replace(&path, &existing)?;
        }
        written.push((*output, identity));
    }
    Ok(())
}

/// Whether the file at `path` can be read and begins with `own`.
fn begins_with(path: &Path, own: &str) -> bool {
    let mut first = vec![0; own.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == own.as_bytes()
}

/// Lets `write` fill a file. The file gets its name only if `write` succeeds.
pub fn write_whole<T, E: From<OutputError>>(
    named: Named<'_>,
    write: impl FnOnce(&mut OutputFile) -> Result<T, E>,
) -> Result<T, E> {
    let mut file = OutputFile::create(named)?;
    let value = write(&mut file)?;
    file.finish()?;
    Ok(value)
}

/// A file that is being written. [`OutputFile::finish`] gives the file its name. If this value is dropped
/// before, no file remains.
pub struct OutputFile {
    argument: String,
    path: PathBuf,
    sink: BufWriter<Sink>,
}

enum Sink {
    /// A regular file, which replaces `path` when it is complete.
    Whole { unfinished: Unfinished, path: PathBuf },
    /// A stream that is written directly.
    Stream(File),
}

impl OutputFile {
    /// Creates the file without its name.
    pub fn create(named: Named<'_>) -> Result<OutputFile, OutputError> {
        let sink = Destination::of(&named)?.open().map_err(|error| named.cannot_begin(error))?;
        let Named { argument, path, .. } = named;
        Ok(OutputFile { argument: argument.to_owned(), path: path.to_owned(), sink: BufWriter::new(sink) })
    }

    /// Returns the argument and the path of the file.
    pub fn named(&self) -> Named<'_> {
        Named::new(&self.argument, &self.path)
    }

    /// Completes the file and gives it its name.
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
        // A pipe or a terminal needs neither a sync nor a name.
        let Sink::Whole { unfinished, path } = self else { return Ok(()) };
        // Sync the file before the renaming, because a power cut after it could otherwise leave an empty file
        // instead of the old one.
        unfinished.file().sync_all()?;
        unfinished.replace(&path)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Whole { unfinished, .. } => unfinished.file_mut().write(bytes),
            // Ignore a closed pipe, because its reader wants no more output (`--requests-out /dev/stdout |
            // head`).
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

/// The kind of file to which an output's path leads.
enum Destination {
    /// A regular file, or a name that is free. The fields are the path without symbolic links, and the
    /// metadata of the existing file.
    Regular(PathBuf, Option<Metadata>),
    /// The standard output or standard error of this process.
    Standard(File),
    /// A character device, a FIFO, or an open file that only its descriptor names.
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
                // Refuse a block device, because a table would overwrite the first bytes of a disk.
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

    /// Tries to create the file, without a change to any file. Returns the identity that no other file of the
    /// run may have; `None` for a terminal or `/dev/null`, which many outputs may share.
    fn tried(self, named: &Named<'_>) -> Result<Option<Identity>, OutputError> {
        Ok(match self {
            Destination::Regular(path, existing) => {
                let identity = Identity::new(path.clone(), existing.as_ref());
                // The unfinished file is dropped at once, so no file remains.
                Destination::Regular(path, existing).open().map_err(|error| named.cannot_begin(error))?;
                Some(identity)
            }
            // Do not open a stream here: opening a FIFO would wait for its reader, and closing it would end
            // the reader.
            Destination::Standard(file) => {
                let found = file.metadata().map_err(|error| named.cannot_begin(error))?;
                // Refuse a second output called `-` even on a terminal, because the two outputs would mix.
                let takes_any = found.file_type().is_char_device() && !is_standard(named.path);
                // Use a path that differs from that of standard input, which is called `-` too.
                (!takes_any).then(|| Identity::new(PathBuf::from("/dev/stdout"), Some(&found)))
            }
            Destination::Special(path) => {
                let found = fs::metadata(&path).map_err(|error| named.cannot_begin(error))?;
                // A terminal and `/dev/null` take any number of outputs, so they get no identity.
                let takes_any = found.file_type().is_char_device();
                (!takes_any).then(|| Identity::new(path, Some(&found)))
            }
        })
    }

    fn open(self) -> io::Result<Sink> {
        match self {
            Destination::Standard(file) => Ok(Sink::Stream(file)),
            // Append, because the process that opened this file before may have written to it.
            Destination::Special(path) => Ok(Sink::Stream(OpenOptions::new().append(true).open(path)?)),
            Destination::Regular(path, existing) => {
                let unfinished = Unfinished::begin(path.parent().unwrap_or(Path::new("/")))?;
                if let Some(existing) = existing {
                    // Try to open the existing file for writing, because a write-protected file must not be
                    // replaced.
                    OpenOptions::new().write(true).open(&path)?;
                    // Ignore a refusal, because only root can change the owner. For other users the new file
                    // belongs to them.
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

/// Returns standard output or standard error if `found` is the file behind it: `/dev/stdout`, or a file to
/// which the shell redirects it. The returned descriptor appends to the file; a new descriptor would
/// overwrite it.
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

/// Returns the path to which `path` leads through symbolic links, whether or not a file exists there. `None`
/// if the path leads through `/proc`, whose links are open files and not names.
fn follow_links(path: &Path) -> io::Result<Option<PathBuf>> {
    /// The limit of Linux on the number of links in a path.
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
            // The links end here, because `place` is not a link, or no file exists there.
            Err(_) => return Ok(Some(place)),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// The identity of a file, which tells whether two paths name the same file.
struct Identity {
    /// The path without symbolic links, which identifies a file that does not exist yet.
    path: PathBuf,
    /// Device and inode, which identify a file with several hard links; `None` for a file that does not exist
    /// yet.
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
