//! Runs all tests and benchmarks of the workspace, and measures the wall-clock time of each test.
//!
//! The programs are started one after another as `cargo test` would start them, so their summaries (`test
//! result: ok. …`) are in the output. The test harness prints times only with a nightly toolchain. An
//! environment variable makes the harness behave like a nightly one; the compiler does not see the variable.

use crate::build::{self, Program};
use crate::{compiling, packages};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// The wall-clock times in seconds and the names of all tests that have run.
static TIMES: Mutex<Vec<(f64, String)>> = Mutex::new(Vec::new());

/// Runs all programs, even after a failure.
pub(crate) fn check() -> Result<()> {
    packages::installed()?;
    let mut failed = Vec::new();
    for program in build::tests()? {
        println!("     Running {}", program.title);
        if !run(&program)? {
            failed.push(program.title);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs the examples in the documentation of all crates.
pub(crate) fn documented() -> Result<()> {
    compiling("test", &["--doc"], &[])
}

/// Runs one program, and returns whether it passed.
fn run(program: &Program) -> Result<bool> {
    let mut command = Command::new(&program.file);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    if program.is_bench {
        command.arg("--test");
    } else {
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "1");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("a test cannot be started")?;
    let said = BufReader::new(child.stdout.take().context("a test has no output")?);
    for line in said.lines() {
        let line = line?;
        println!("{line}");
        if let Some((name, seconds)) = time(&line) {
            // The title of the program distinguishes tests with equal names in different files.
            let place = program.title.trim_end_matches(".rs");
            TIMES.lock().expect("no test panics here").push((seconds, format!("{place} {name}")));
        }
    }
    Ok(child.wait()?.success())
}

/// Returns the name and the seconds in a line of the harness, such as `test a::b ... ok <1.234s>`.
fn time(line: &str) -> Option<(&str, f64)> {
    let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let seconds = verdict.rsplit_once('<')?.1.strip_suffix("s>")?;
    Some((name, seconds.parse().ok()?))
}

/// Prints the ten slowest tests, if any have run.
pub(crate) fn print_slowest() {
    let mut times = TIMES.lock().expect("no test panics here");
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    if !times.is_empty() {
        println!("== the slowest of {} tests, in seconds", times.len());
    }
    for (seconds, name) in times.iter().take(10) {
        println!("{seconds:8.3}  {name}");
    }
}

/// Runs all examples of all crates. They are tested, because newcomers try them first.
pub(crate) fn examples() -> Result<()> {
    for program in build::examples()? {
        println!("-- {}", program.title);
        crate::run(&mut Command::new(&program.file))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::time;

    /// The rule: times are read from the harness's lines of passed and failed tests, and from no other lines.
    /// If the harness changes their format, this test fails; without it, the list of slowest tests would be
    /// empty.
    #[test]
    fn times_are_read_from_the_harness() {
        assert_eq!(time("test contract::replay ... ok <1.250s>"), Some(("contract::replay", 1.25)));
        assert_eq!(time("test slow ... FAILED <60.001s>"), Some(("slow", 60.001)));
        assert_eq!(time("test ignored ... ignored"), None);
        assert_eq!(time("test result: ok. 7 passed; 0 failed; finished in 0.55s"), None);
    }
}
