//! Measures the storage engines that a user might choose instead of Fulgurite. See README.md.

mod engine;
mod holes;
mod inserts;
mod ledger;
mod limit;
mod meter;
mod parent;
mod rows;
mod setting;
mod shuffle;
mod table;
mod worker;
mod workload;
mod crash;

use anyhow::{Context, Result};
use setting::{Args, Task};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let result = match words.next() {
        Some(word) if word == "worker" => work(words.next().as_deref().map(Path::new)).map(|()| true),
        Some(word) if word == "crash" => crash::run(words).map(|()| true),
        _ => measure(),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The parent process. Returns false if a run failed.
fn measure() -> Result<bool> {
    let args = Args::read()?;
    let memory = parent::memory(&args)?;
    let mut json = match &args.json {
        Some(path) => {
            Some(std::fs::File::create(path).with_context(|| format!("making {}", path.display()))?)
        }
        None => None,
    };
    let mut runs = Vec::new();
    let mut unwritten = None;
    let failures = parent::run_all(&args, &memory, &mut |run| {
        if let Some(file) = &mut json
            && let Err(error) = serde_json::to_writer(&mut *file, &run)
                .map_err(Into::into)
                .and_then(|()| file.write_all(b"\n"))
        {
            unwritten = Some(error);
        }
        runs.push(run);
    })?;
    print!("{}", table::render(&args, &memory, &runs));
    for failure in &failures {
        eprintln!("peers: FAILED {failure}");
    }
    unwritten.map_or(Ok(failures.is_empty()), |error| Err(error).context("writing the JSON file"))
}

/// The worker process. It reads a task from standard input and writes the outcome to standard output.
fn work(group: Option<&Path>) -> Result<()> {
    if let Some(procs) = group {
        limit::join(procs)?;
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let task: Task = serde_json::from_str(&text)?;
    let outcome = worker::work(&task).with_context(|| task.engine.clone())?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

/// An empty folder for a test. It is beside the test program, on a file system that supports direct I/O.
#[cfg(test)]
fn scratch(name: &str) -> std::path::PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.with_file_name(format!("peers-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
