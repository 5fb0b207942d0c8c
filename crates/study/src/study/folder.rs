//! The folder into which a study writes. All files get their names together, after the last of them is written. A study
//! that fails leaves only its finished runs; see `ledger.rs`.

use super::ledger;
use fulgurite_stack::output::{self, MadeFolders, Named, OutputError, OutputFile, Replaces, is_standard};
use fulgurite_stack::{StackError, obstacle};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The files of a study.
const NAMES: &[&str] = &[
    "table.csv",
    "table.jsonl",
    #[cfg(feature = "parquet")]
    "table.parquet",
    "study.toml",
    "report.html",
];

/// A file of a study, which may be replaced: [`Folder::refuse_others`] knows whose the files are.
fn own(path: &Path) -> Named<'_> {
    Named::new("--out", path).replacing(Replaces::Anything)
}

fn cannot_be_used(path: &Path, why: &str) -> StackError {
    StackError::request(format!(
        "--out {} cannot be used: {why}; accepted: a folder, new or of an earlier run of this study",
        path.display()
    ))
}

/// An output folder that can be written to.
pub(super) struct Folder {
    path: PathBuf,
    /// Files that are written and not in their places yet.
    written: Vec<OutputFile>,
    /// Comes after the files, which must be gone before their folder.
    _made: MadeFolders,
    /// The folder, locked while it is open: no other study writes there.
    _held: fs::File,
}

impl Folder {
    /// Makes the folder and tries its files, before hours of runs go to waste. None of them may be one of `inputs`.
    pub fn prepare(path: &Path, inputs: &[Named<'_>]) -> Result<Folder, StackError> {
        if is_standard(path) {
            return Err(StackError::request(
                "--out - is no folder, and a study writes several files; accepted: a folder",
            ));
        }
        // From here on a refusal removes what was made.
        let (made, held) = MadeFolders::make(path)
            .and_then(|made| Ok((made, fs::File::open(path)?)))
            .map_err(|error| cannot_be_used(path, &obstacle(path, &error)))?;
        // A file system without locks refuses otherwise, and nobody is there then who could be waited for.
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

    /// Refuses a folder in which one of the names is somebody else's file. A study leaves all of its files, or none but
    /// its finished runs; so does one of an earlier version, which had fewer.
    fn refuse_others(&self) -> Result<(), StackError> {
        let has = |name: &&&str| self.path.join(name).exists();
        let is_own = self.path.join(ledger::NAME).exists()
            || ["table.csv", "study.toml", "report.html"].iter().all(|name| has(&name));
        match NAMES.iter().find(has).filter(|_| !is_own) {
            Some(name) => Err(StackError::request(format!(
                "--out {}: {name} exists and is not from a study, whose other files are missing; accepted: a folder without it",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Writes a file, which appears with the others.
    pub fn write(&mut self, name: &str, content: impl AsRef<[u8]>) -> Result<(), StackError> {
        debug_assert!(NAMES.contains(&name), "{name} was not tried");
        let path = self.path.join(name);
        let named = own(&path);
        let mut file = OutputFile::create(named)?;
        file.write_all(content.as_ref()).map_err(|error| named.failed(error))?;
        self.written.push(file);
        Ok(())
    }

    /// Puts every file into its place.
    pub fn finish(mut self) -> Result<(), StackError> {
        for file in self.written.drain(..) {
            file.finish()?;
        }
        Ok(())
    }
}
