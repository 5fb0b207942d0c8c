//! One test: the program runs in a folder, the power is cut, and the checker looks at what is left.

use crate::mount::{Mount, mount};
use crate::power::Power;
use crate::program::{Files, Program, last_lines};
use fulgurite_base::Prng;
use fulgurite_folder::{Folder, Piece, Rules};
use fulgurite_stack::{Progress, StackError};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use tempfile::TempDir;

/// The function of a checker; see [`Check::Function`].
pub type CheckFunction = dyn Fn(&Path, &[u8]) -> Option<String> + Send + Sync;

/// A checker.
#[derive(Clone)]
pub enum Check {
    /// A shell command. It runs in the folder after the cut, with the program's output as its input, and fails with any
    /// exit code but 0.
    Command(String),
    /// A function of this process that gets the folder and the program's output. It fails by returning why. No power is
    /// cut while it runs, and nothing limits its time.
    Function(Arc<CheckFunction>),
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Command(command) => f.debug_tuple("Command").field(command).finish(),
            Check::Function(_) => f.write_str("Function"),
        }
    }
}

/// A program with its checker and its folder.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program with its arguments. It runs in the folder.
    pub program: Vec<OsString>,
    /// The checker.
    pub check: Check,
    /// The shell command that fills the folder before the program runs, without cuts.
    pub setup: Option<String>,
    /// The rules of the folder.
    pub rules: Rules,
    /// The longest time that a program or a checker may take.
    pub time: Duration,
}

/// The place where tests run: a folder to mount on, and files for outputs.
pub(crate) struct Place {
    folder: TempDir,
    mark: String,
    /// Whether the tests shall end.
    end: Arc<AtomicBool>,
    /// The progress of the tests, which may be stopped too.
    progress: Progress,
}

/// A mounted folder. It is unmounted when its session is dropped.
struct Mounted {
    at: PathBuf,
    power: Arc<Power>,
    /// Learns of the power cut.
    cut: Receiver<()>,
    session: Mount,
}

/// The folder and the output of a program when it ended or the power was cut.
pub(crate) struct Ended {
    /// The folder with everything that was written.
    pub folder: Folder,
    /// The number of operations.
    pub operations: u64,
    /// The operation of the cut in words; `None` if the program ended before.
    pub cut: Option<String>,
    /// The reason why the program failed by itself; `None` if it did not. A checker's failure is its verdict.
    pub failure: Option<String>,
}

impl Place {
    /// Makes a place. The number tells the places of a run apart. Programs and checkers there are killed once `end` is
    /// true or the progress is stopped.
    pub(crate) fn new(number: usize, end: Arc<AtomicBool>, progress: Progress) -> io::Result<Place> {
        let folder = tempfile::Builder::new().prefix("fulgurite-crashtest-").tempdir()?;
        for name in ["on", "after"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let mark = format!("{}-{number}", std::process::id());
        Ok(Place { folder, mark, end, progress })
    }

    fn is_ending(&self) -> bool {
        self.end.load(Ordering::SeqCst) || self.progress.is_stopped()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Mounts `folder` under a name of the place. Its power is cut at the operation `cut_at`.
    fn mounted(&self, name: &str, folder: Folder, cut_at: Option<u64>) -> Result<Mounted, StackError> {
        let (notify, cut) = sync_channel(1);
        let power = Arc::new(Power::new(folder, cut_at, notify));
        let at = self.path(name);
        let session = mount(Arc::clone(&power), &at).map_err(|error| cannot_mount(&at, &error))?;
        Ok(Mounted { at, power, cut, session })
    }

    /// Runs the program in `folder` until it ends or the power is cut at its operation `cut_at`.
    pub(crate) fn run(
        &self,
        words: &[impl AsRef<OsStr>],
        folder: Folder,
        cut_at: Option<u64>,
        time: Duration,
    ) -> Result<Ended, StackError> {
        let (output, errors) = (self.path("output"), self.path("errors"));
        self.execute(
            words,
            ("on", folder, cut_at),
            &Files { input: None, output: &output, errors: &errors },
            time,
        )
    }

    /// Runs the checker in `folder` as [`Place::run`] does a program. Its failure is the verdict.
    pub(crate) fn check(
        &self,
        check: &Check,
        folder: Folder,
        cut_at: Option<u64>,
        time: Duration,
    ) -> Result<Ended, StackError> {
        let (input, output) = (self.path("output"), self.path("checked"));
        match check {
            Check::Command(command) => {
                let files = Files { input: Some(&input), output: &output, errors: &output };
                self.execute(&shell(command), ("after", folder, cut_at), &files, time)
            }
            Check::Function(function) => {
                let Mounted { at, power, session, .. } = self.mounted("after", folder, None)?;
                let failure = function(&at, &fs::read(input).map_err(failed)?);
                drop(session);
                if self.is_ending() {
                    return Err(interrupted());
                }
                // It cannot be killed, so no power is cut while it runs, as if it did nothing.
                Ok(Ended { folder: power.state().folder.clone(), operations: 0, cut: None, failure })
            }
        }
    }

    /// Mounts a folder under a name of the place, and runs a program in it until it ends or the power is cut.
    fn execute(
        &self,
        words: &[impl AsRef<OsStr>],
        (name, folder, cut_at): (&str, Folder, Option<u64>),
        files: &Files<'_>,
        time: Duration,
    ) -> Result<Ended, StackError> {
        let Mounted { at, power, cut, session } = self.mounted(name, folder, cut_at)?;
        let mut program = Program::start(words, &at, files, &self.mark).map_err(|error| {
            let name = words.first().map(|word| word.as_ref().display().to_string()).unwrap_or_default();
            StackError::request(format!(
                "{name} cannot be started: {error}; accepted: a program and its arguments"
            ))
        })?;
        let status =
            program.wait(time, |look| cut.recv_timeout(look).is_ok() || self.is_ending()).map_err(failed)?;
        let is_cut = power.state().cut.is_some();
        // Processes that the program leaves behind would go on in the folder, so they end here in any case.
        power.cut("the end of the program");
        program.kill();
        power.release();
        program.reap().map_err(failed)?;
        drop(session);
        if self.is_ending() {
            return Err(interrupted());
        }
        let state = power.state();
        let failure = match status {
            Some(status) if !status.success() && !is_cut => {
                Some(format!("{status}: {}", last_lines(files.errors)))
            }
            None if !is_cut => Some(format!("it had not ended after {} s", time.as_secs_f64())),
            _ => None,
        };
        Ok(Ended {
            folder: state.folder.clone(),
            operations: state.operations,
            cut: if is_cut { state.cut.clone() } else { None },
            failure,
        })
    }

    /// Copies the files that a violation concerns to `folder`, which must be new.
    pub(crate) fn keep(&self, left: Folder, folder: &Path) -> Result<(), StackError> {
        let Mounted { at, session, .. } = self.mounted("after", left, None)?;
        let kept = copy(&at, &folder.join("folder"))
            .and_then(|()| fs::copy(self.path("output"), folder.join("output")).map(drop));
        drop(session);
        kept.map_err(|error| StackError::run(format!("{} cannot be written: {error}", folder.display())))
    }
}

/// Copies a folder. Symbolic links become links to the same target.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn interrupted() -> StackError {
    StackError::run("interrupted")
}

fn failed(error: io::Error) -> StackError {
    StackError::run(format!("waiting for the program failed: {error}"))
}

fn cannot_mount(at: &Path, error: &io::Error) -> StackError {
    StackError::run(format!(
        "a folder cannot be mounted on {}: {error}; crashtest needs /dev/fuse and, without root, fusermount3 (Debian's \
            package fuse3)",
        at.display()
    ))
}

/// Returns the words that run a shell command.
pub(crate) fn shell(command: &str) -> [&str; 3] {
    ["sh", "-c", command]
}

/// The choices of one seed.
pub(crate) struct Choice {
    /// The operation at which the power is cut.
    pub cut_at: u64,
    /// The seed of what is lost.
    pub loss: u64,
}

/// Returns the choices of a seed for a program with so many operations.
pub(crate) fn choose(seed: u64, operations: u64) -> Choice {
    let mut random = Prng::new(seed, "crashtest");
    Choice { cut_at: 1 + random.below(operations), loss: random.next_u64() }
}

/// Returns the choices of a seed for the recovery by a checker with so many operations: a second cut for one of
/// `one_of` seeds, and `None` for the others.
pub(crate) fn choose_again(seed: u64, one_of: u64, operations: u64) -> Option<Choice> {
    let mut random = Prng::new(seed, "recovery");
    let is_cut = operations > 0 && one_of > 0 && random.below(one_of) == 0;
    is_cut.then(|| Choice { cut_at: 1 + random.below(operations), loss: random.next_u64() })
}

/// Finds a smallest list of lost pieces with which the checker still fails: leaving out any one of them lets it pass.
/// `fails` runs the checker, at most `tries` times.
pub(crate) fn shrink(
    lost: &[Piece],
    tries: u32,
    mut fails: impl FnMut(&[Piece]) -> Result<bool, StackError>,
) -> Result<Vec<Piece>, StackError> {
    let mut left = lost.to_vec();
    let mut tries = tries;
    let mut parts = 2;
    while !left.is_empty() && tries > 0 {
        let length = left.len().div_ceil(parts).max(1);
        let mut is_shrunk = false;
        let mut at = 0;
        while at < left.len() && tries > 0 {
            let rest: Vec<Piece> = left
                .iter()
                .enumerate()
                .filter(|(index, _)| !(at..at + length).contains(index))
                .map(|(_, piece)| piece.clone())
                .collect();
            tries -= 1;
            if fails(&rest)? {
                (left, is_shrunk) = (rest, true);
            } else {
                at += length;
            }
        }
        if length == 1 && !is_shrunk {
            break;
        }
        parts = if is_shrunk { 2.max(parts / 2) } else { parts * 2 };
    }
    Ok(left)
}
