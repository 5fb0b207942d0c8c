//! Manages the output folder of a study. All files are renamed to their final names together, after the last
//! of them is written. A study that fails leaves only its finished runs; see `ledger.rs`.

use super::ledger;
use fulgurite_files::obstacle;
use fulgurite_files::output::{self, Named, OutputError, OutputFile, Replaces, is_standard};
use fulgurite_files::unfinished::MadeFolders;
use fulgurite_stack::StackError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The names of the files that a study writes.
const NAMES: &[&str] = &[
    "table.csv",
    "table.jsonl",
    #[cfg(feature = "parquet")]
    "table.parquet",
    "study.toml",
    "report.html",
];

/// Describes an output file of the study. An existing file may be replaced, because [`Folder::refuse_others`]
/// has checked that a study wrote it.
fn own(path: &Path) -> Named<'_> {
    Named::new("--out", path).replacing(Replaces::Anything)
}

fn cannot_be_used(path: &Path, why: &str) -> StackError {
    StackError::request(format!(
        "--out {} cannot be used: {why}; accepted: a folder, new or of an earlier run of this study",
        path.display()
    ))
}

/// An output folder that is known to be writable.
pub(super) struct Folder {
    path: PathBuf,
    /// The files that are complete but not yet renamed.
    written: Vec<OutputFile>,
    /// The folders that were created. This field is declared after `written`, because fields are dropped in
    /// order and files must be removed before their folder.
    _made: MadeFolders,
    /// The open folder, with a file lock that keeps other studies from writing there.
    _held: fs::File,
}

impl Folder {
    /// Creates the folder, and checks that all files can be written, before the runs begin. Refuses output
    /// files that are among `inputs`.
    pub(super) fn prepare(path: &Path, inputs: &[Named<'_>]) -> Result<Folder, StackError> {
        if is_standard(path) {
            return Err(StackError::request(
                "--out - is no folder, and a study writes several files; accepted: a folder",
            ));
        }
        // From here on, an error removes the folders that were created.
        let (made, held) = MadeFolders::make(path)
            .and_then(|made| Ok((made, fs::File::open(path)?)))
            .map_err(|error| cannot_be_used(path, &obstacle(path, &error)))?;
        // Any other error means that the file system has no locks. No other study can hold one, so the study
        // goes on.
        if flock(&held, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(StackError::request(format!(
                "--out {}: another study is writing there; accepted: another folder, or this one when that has ended",
                path.display()
            )));
        }
        let folder = Folder { path: path.to_owned(), written: Vec::new(), _made: made, _held: held };
        let names = NAMES.iter().chain([&ledger::NAME]);
        let paths: Vec<PathBuf> = names.map(|name| path.join(name)).collect();
        let outputs: Vec<Named<'_>> = paths.iter().map(|path| own(path)).collect();
        output::check(inputs, &outputs).map_err(|error| match error {
            OutputError::CannotBegin { error, .. } => cannot_be_used(path, &error),
            other => other.into(),
        })?;
        folder.refuse_others()?;
        Ok(folder)
    }

    /// Refuses a folder in which one of the names belongs to a foreign file. A study leaves either all of its
    /// files or only its finished runs. Only three files are required, because earlier versions wrote fewer.
    fn refuse_others(&self) -> Result<(), StackError> {
        let has = |name: &&&str| self.path.join(name).exists();
        let is_own = self.path.join(ledger::NAME).exists()
            || ["table.csv", "study.toml", "report.html"].iter().all(|name| has(&name));
        match NAMES.iter().find(has).filter(|_| !is_own) {
            Some(name) => Err(StackError::request(format!(
                "--out {}: {name} exists without the other files of a study, so it may be another \
                 program's; accepted: a folder without it",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Writes a file, which gets its final name in `finish`.
    pub(super) fn write(&mut self, name: &str, content: impl AsRef<[u8]>) -> Result<(), StackError> {
        debug_assert!(NAMES.contains(&name), "{name} was not tried");
        let path = self.path.join(name);
        let named = own(&path);
        let mut file = OutputFile::create(named)?;
        file.write_all(content.as_ref()).map_err(|error| named.failed(error))?;
        self.written.push(file);
        Ok(())
    }

    /// Renames all files to their final names.
    pub(super) fn finish(mut self) -> Result<(), StackError> {
        for file in self.written.drain(..) {
            file.finish()?;
        }
        Ok(())
    }
}
