//! Runs the checks and chores of the project. `cargo xtask ci` runs the gate, which is every check that a
//! change must pass. It installs nothing, unless it is told to with `--install`.

mod beside;
mod book;
mod browser;
mod build;
mod columns;
mod floors;
mod layers;
mod licences;
mod live;
mod lock;
mod packages;
mod picture;
mod python;
mod suite;

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// The messages of failed steps, which are repeated at the end. At the time of a failure the message may be
/// lost among the output of parallel steps.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// One check of the gate.
struct Step {
    name: &'static str,
    task: fn() -> Result<()>,
    /// Whether the following steps run in parallel with this one.
    is_beside: bool,
}

const fn step(name: &'static str, task: fn() -> Result<()>) -> Step {
    Step { name, task, is_beside: false }
}

/// The checks that a change must pass, the cheap ones first. Clippy and rustdoc use the build's profile and
/// features, so that build scripts and macros are compiled only once.
const STEPS: &[Step] = &[
    step("format", || cargo(&["fmt", "--all", "--check"]).and_then(|()| columns::check())),
    step("layers", layers::check),
    step("licences", licences::check),
    step("lock file", lock::check),
    step("clippy", || compiling("clippy", &["--all-targets"], &["--", "-D", "warnings"])),
    step("rustdoc", || compiling("doc", &["--no-deps"], &[])),
    step("build", || build::tests().and_then(|_| build::command()).map(|_| ())),
    step("book", book::check),
    // Runs these steps in parallel, because each has phases that use a single core.
    Step { name: "python", task: python::check, is_beside: true },
    Step {
        name: "report in a browser",
        task: || browser::check().and_then(|()| live::check()),
        is_beside: true,
    },
    Step { name: "doc tests", task: suite::documented, is_beside: true },
    step("tests", suite::check),
    step("examples", suite::examples),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (asked, installs) = match arguments.split_last() {
        Some((&"--install", asked)) => (asked, true),
        _ => (&arguments[..], false),
    };
    let steps: Vec<&Step> = match asked {
        ["ci"] => STEPS.iter().collect(),
        ["layers", folder] => return exit(report("layers", floors::check_crate(folder), Instant::now())),
        ["picture"] => return exit(report("picture", book::draw(), Instant::now())),
        ["reference"] => return exit(report("reference", book::write_reference(), Instant::now())),
        [asked] => STEPS.iter().filter(|step| step.name == *asked).collect(),
        _ => Vec::new(),
    };
    if steps.is_empty() {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        let asked = arguments.join(" ");
        eprintln!(
            "xtask: unknown task `{asked}`; accepted: ci, picture, reference, layers CRATE_FOLDER, or \
             one of the steps: {}; \
             optionally followed by --install",
            names.join(", ")
        );
        return ExitCode::from(2);
    }
    let start = Instant::now();
    // Looks for missing tools now, so that they are reported before the build and not after it.
    let is_ready = report(if installs { "install" } else { "tools" }, tools(&steps, installs), start);
    let passed = is_ready && pass(&steps);
    suite::print_slowest();
    for failed in FAILED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        println!("== {failed}");
    }
    println!("== {}: {:.1} s", if passed { "passed" } else { "FAILED" }, start.elapsed().as_secs_f64());
    exit(passed)
}

/// Looks for the tools that `steps` need, or installs them.
fn tools(steps: &[&Step], installs: bool) -> Result<()> {
    let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
    let wants_python = names.contains(&"python");
    match installs {
        true => packages::install(&names),
        false => packages::check(&names)?,
    }
    match (wants_python, installs) {
        (false, _) => Ok(()),
        (true, true) => python::install(),
        (true, false) => python::find().map(|_| ()),
    }
}

fn exit(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `steps` up to the first failure. Returns whether all of them passed.
fn pass(steps: &[&Step]) -> bool {
    thread::scope(|scope| {
        let mut beside = Vec::new();
        let in_order = steps.iter().all(|step| {
            if step.is_beside {
                beside.push(scope.spawn(|| perform(step)));
                return true;
            }
            perform(step)
        });
        // Waits for all parallel steps, even after a failure.
        let outcomes: Vec<bool> = beside.into_iter().map(|step| step.join().unwrap_or(false)).collect();
        in_order && !outcomes.contains(&false)
    })
}

fn perform(step: &Step) -> bool {
    println!("== {}", step.name);
    let start = Instant::now();
    report(step.name, (step.task)(), start)
}

fn report(name: &str, outcome: Result<()>, start: Instant) -> bool {
    match &outcome {
        Ok(()) => println!("== {name}: passed in {:.1} s", start.elapsed().as_secs_f64()),
        Err(error) => {
            let failed = format!("{name} failed: {error:#}");
            eprintln!("xtask: {failed}");
            FAILED.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
        }
    }
    outcome.is_ok()
}

/// Runs a cargo command that compiles or checks, with the options of the build.
fn compiling(command: &str, before: &[&str], after: &[&str]) -> Result<()> {
    cargo(&[&[command], build::COMMON, before, after].concat())
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

/// Returns the root folder of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
