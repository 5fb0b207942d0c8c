//! Builds everything that the gate runs: tests, benchmarks, examples and the command. All are built with one
//! profile and one set of features, so that nothing is compiled twice.

use crate::root;
use anyhow::{Context, Result, ensure};
use cargo_metadata::{Artifact, Message};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The options of every cargo command that compiles. Another set of features or packages would compile
/// everything again.
pub(crate) const COMMON: &[&str] = &["--workspace", "--profile", "gate", "--features", FEATURES];
/// The features of the workspace's crates that the gate selects.
pub(crate) const FEATURES: &str = "fulgurite-study/parquet,fulgurite-db/metrics";

/// A program that was built.
#[derive(Clone)]
pub(crate) struct Program {
    /// The file to execute.
    pub file: PathBuf,
    /// The title of the program in the output, like `tests/drive.rs of fulgurite-ssd`.
    pub title: String,
    /// The folder of the program's package, in which cargo would run the program.
    pub folder: PathBuf,
    /// Whether the program is a benchmark, which runs briefly with `--test`.
    pub is_bench: bool,
    is_test: bool,
    is_example: bool,
    /// The name of the program's cargo target.
    name: String,
}

/// The programs of one call of cargo, by its arguments. Cargo is called only once: a later call would wait
/// for cargo's lock if another build, such as that of the wheel, runs at the same time.
struct Built {
    arguments: &'static [&'static str],
    programs: Mutex<Option<Vec<Program>>>,
}

/// `--tests` includes the unit tests of libraries and binaries. `--lib` would also build a test program of the
/// Python module, which has no tests in Rust.
static TESTS: Built = Built::by(&["test", "--no-run", "--tests", "--benches"]);
/// Builds the examples too, because cargo then chooses the same features as for the tests.
static PROGRAMS: Built = Built::by(&["build", "--bins", "--examples"]);

/// Returns all tests and benchmarks of the workspace.
pub(crate) fn tests() -> Result<Vec<Program>> {
    let built = TESTS.programs(|program| program.is_test)?;
    ensure!(!built.is_empty(), "there are no tests");
    Ok(built)
}

/// Returns all examples.
pub(crate) fn examples() -> Result<Vec<Program>> {
    PROGRAMS.programs(|program| program.is_example)
}

/// Returns the file of the `fulgurite` command.
pub(crate) fn command() -> Result<PathBuf> {
    let built = PROGRAMS.programs(|program| program.name == "fulgurite")?;
    built.into_iter().next().map(|program| program.file).context("the command was not built")
}

impl Built {
    const fn by(arguments: &'static [&'static str]) -> Built {
        Built { arguments, programs: Mutex::new(None) }
    }

    /// Returns the programs that are wanted. The first call builds all programs.
    fn programs(&self, is_wanted: impl Fn(&Program) -> bool) -> Result<Vec<Program>> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        let all = match programs.take() {
            Some(all) => all,
            None => compile(self.arguments)?,
        };
        Ok(programs.insert(all).iter().filter(|program| is_wanted(program)).cloned().collect())
    }
}

fn compile(arguments: &[&str]) -> Result<Vec<Program>> {
    let mut child = Command::new("cargo")
        .args(arguments)
        .args(COMMON)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be started")?;
    let messages = BufReader::new(child.stdout.take().context("cargo has no output")?);
    let mut programs = Vec::new();
    for message in Message::parse_stream(messages) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(file) = &artifact.executable
        {
            programs.push(program(&artifact, file.clone().into())?);
        }
    }
    ensure!(child.wait()?.success(), "cargo {} failed", arguments.join(" "));
    // Sorts the programs, because cargo reports them in the order in which they are finished.
    programs.sort_by(|a, b| a.title.cmp(&b.title));
    Ok(programs)
}

fn program(artifact: &Artifact, file: PathBuf) -> Result<Program> {
    let folder = artifact.manifest_path.parent().context("a manifest has a folder")?;
    let source = artifact.target.src_path.strip_prefix(folder).unwrap_or(&artifact.target.src_path);
    Ok(Program {
        file,
        title: format!("{}/{source}", folder.file_name().unwrap_or_default()),
        folder: folder.into(),
        is_bench: artifact.target.is_bench(),
        is_test: artifact.profile.test,
        is_example: artifact.target.is_example(),
        name: artifact.target.name.clone(),
    })
}
