//! One build for everything that the gate runs: tests, benchmarks, examples and the command. It uses one
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
pub(crate) const COMMON: &[&str] =
    &["--workspace", "--profile", "gate", "--features", "fulgurite-study/parquet"];

/// A program that was built.
#[derive(Clone)]
pub(crate) struct Program {
    /// The file to run.
    pub file: PathBuf,
    /// Its title: `tests/drive.rs of fulgurite-ssd`.
    pub title: String,
    /// The folder of its package, in which cargo would run it.
    pub folder: PathBuf,
    /// Whether it is a benchmark, which runs briefly with `--test`.
    pub is_bench: bool,
    is_test: bool,
    is_example: bool,
    /// The name of its target.
    name: String,
}

/// The programs of one call of cargo. Cargo is called once, because a later call would wait for the lock of a
/// build that runs beside it, such as that of the wheel.
struct Built {
    arguments: &'static [&'static str],
    programs: Mutex<Option<Vec<Program>>>,
}

static TESTS: Built = Built::by(&["test", "--no-run", "--lib", "--bins", "--tests", "--benches"]);
/// With the examples cargo chooses the features that the tests had.
static PROGRAMS: Built = Built::by(&["build", "--bins", "--examples"]);

/// All tests and benchmarks of the workspace.
pub(crate) fn tests() -> Result<Vec<Program>> {
    let built = TESTS.programs(|program| program.is_test)?;
    ensure!(!built.is_empty(), "there are no tests");
    Ok(built)
}

/// All examples.
pub(crate) fn examples() -> Result<Vec<Program>> {
    PROGRAMS.programs(|program| program.is_example)
}

/// The `fulgurite` command.
pub(crate) fn command() -> Result<PathBuf> {
    let built = PROGRAMS.programs(|program| program.name == "fulgurite")?;
    built.into_iter().next().map(|program| program.file).context("the command was not built")
}

impl Built {
    const fn by(arguments: &'static [&'static str]) -> Built {
        Built { arguments, programs: Mutex::new(None) }
    }

    /// The wanted programs; builds all of them at the first call.
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
    // Cargo reports the programs in the order in which they are finished.
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
