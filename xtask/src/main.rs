//! Project chores: `cargo xtask ci` runs every check that a change must pass, and installs what the
//! checks need.

mod browser;
mod layers;
mod licences;

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

type Task = fn() -> Result<()>;

/// What a change must pass, in order; cheap checks first.
const STEPS: &[(&str, Task)] = &[
    ("format", || cargo(&["fmt", "--all", "--check"])),
    ("clippy", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("layers", layers::check),
    ("licences", licences::check),
    ("tests", || cargo(&["test", "--workspace", "--no-fail-fast"])),
    ("parquet", || {
        cargo(&["test", "--package", "fulgurite-study", "--features", "parquet", "--test", "parquet"])
    }),
    ("benches", || cargo(&["bench", "--workspace", "--benches", "--", "--test"])),
    ("examples", examples),
    ("rustdoc", || cargo(&["doc", "--workspace", "--no-deps"])),
    ("report in a browser", browser::check),
];

fn main() -> ExitCode {
    let asked = std::env::args().nth(1).unwrap_or_default();
    let steps: Vec<_> = STEPS.iter().filter(|(name, _)| asked == "ci" || asked == *name).collect();
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
        eprintln!("xtask: unknown task `{asked}`; accepted: ci, or one of its steps: {}", names.join(", "));
        return ExitCode::from(2);
    }
    for (name, task) in steps {
        println!("== {name}");
        let start = Instant::now();
        if let Err(error) = task() {
            eprintln!("xtask: {name} failed: {error:#}");
            return ExitCode::FAILURE;
        }
        println!("== {name}: passed in {:.1} s", start.elapsed().as_secs_f64());
    }
    ExitCode::SUCCESS
}

/// Runs every example of every crate: they are the first thing that a newcomer tries.
fn examples() -> Result<()> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    for package in metadata.workspace_packages() {
        for target in package.targets.iter().filter(|target| target.is_example()) {
            println!("-- {} of {}", target.name, package.name);
            cargo(&["run", "--quiet", "--package", &package.name, "--example", &target.name])?;
        }
    }
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new("cargo").args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

fn run(command: &mut Command) -> Result<()> {
    let status =
        command.current_dir(root()).status().with_context(|| format!("{command:?} cannot be started"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}

/// The workspace's root.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
