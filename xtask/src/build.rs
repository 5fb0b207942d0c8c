//! One build for all that the gate runs: tests, benchmarks, examples and the command, in one profile and with one set
//! of features, so that nothing is compiled twice.

use crate::root;
use anyhow::{Context, Result, ensure};
use cargo_metadata::{Artifact, Message};
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What every call of cargo that compiles has in common. Another set of features or packages would compile anew.
pub const COMMON: &[&str] = &["--workspace", "--profile", "gate", "--features", "fulgurite-study/parquet"];

/// A program that was built.
pub struct Program {
    /// The file to run.
    pub file: PathBuf,
    /// What it is, for people: `tests/drive.rs of fulgurite-ssd`.
    pub title: String,
    /// The package's folder, where cargo would run it.
    pub folder: PathBuf,
    /// A benchmark, which runs briefly when told `--test`.
    pub is_bench: bool,
}

/// Every test and every benchmark of the workspace.
pub fn tests() -> Result<Vec<Program>> {
    let built = compile(&["test", "--no-run", "--lib", "--bins", "--tests", "--benches"], |artifact| {
        artifact.profile.test
    })?;
    ensure!(!built.is_empty(), "there are no tests");
    Ok(built)
}

/// Every example.
pub fn examples() -> Result<Vec<Program>> {
    compile(&["build", "--bins", "--examples"], |artifact| artifact.target.is_example())
}

/// The `fulgurite` command.
pub fn command() -> Result<PathBuf> {
    // The examples too: with them cargo chooses the features that the tests had.
    let built = compile(&["build", "--bins", "--examples"], |artifact| artifact.target.name == "fulgurite")?;
    built.into_iter().next().map(|program| program.file).context("the command was not built")
}

fn compile(arguments: &[&str], is_wanted: impl Fn(&Artifact) -> bool) -> Result<Vec<Program>> {
    let mut child = Command::new("cargo")
        .args(arguments)
        .args(COMMON)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo cannot be started")?;
    let messages = BufReader::new(child.stdout.take().context("cargo says nothing")?);
    let mut programs = Vec::new();
    for message in Message::parse_stream(messages) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(file) = &artifact.executable
            && is_wanted(&artifact)
        {
            programs.push(program(&artifact, file.clone().into())?);
        }
    }
    ensure!(child.wait()?.success(), "cargo {} failed", arguments.join(" "));
    // Cargo reports programs in the order in which they are ready.
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
    })
}
