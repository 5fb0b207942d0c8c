//! Crash seeds from the command line.
//!
//!     cargo run --release -p fulgurite-crashsim -- --seeds 0..10000
//!
//! Exit code 0: no violation, or every planted bug found. 1: a violation, whose seed and shortest history are printed, or a
//! planted bug not found. 2: the request was wrong.

use clap::Parser;
use fulgurite_base::option::{name_of, parse_choice};
use fulgurite_base::{Choice, SpecError};
use fulgurite_crashsim::device::FaultKind;
use fulgurite_crashsim::search::{Failure, Progress, Search, Summary};
use fulgurite_engine::Planted;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A seed that runs for longer does not end: the usual one takes some milliseconds.
const LONGEST: Duration = Duration::from_secs(120);

#[derive(Parser)]
#[command(about = "The engine under power cuts and failing drives, by seed")]
struct Arguments {
    /// The seeds: 0..1000, or one seed
    #[arg(long, value_parser = parse_seeds, default_value = "0..1000")]
    seeds: Range<u64>,
    /// Threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Plant this bug and run until it is found
    #[arg(long, value_parser = parse_choice::<Planted>, conflicts_with = "bugs")]
    bug: Option<Planted>,
    /// Plant each bug in turn and say after how many seeds it is found
    #[arg(long)]
    bugs: bool,
    /// Leave these kinds of faults out
    #[arg(long, value_delimiter = ',', value_parser = parse_choice::<FaultKind>)]
    without: Vec<FaultKind>,
    /// Have no seed write pages out of place
    #[arg(long)]
    in_place: bool,
    /// Do not shrink what fails
    #[arg(long)]
    no_shrink: bool,
    /// Print the plans of the seeds and run nothing
    #[arg(long)]
    print: bool,
}

fn parse_seeds(text: &str) -> Result<Range<u64>, SpecError> {
    let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
    let range = match text.split_once("..") {
        Some((start, end)) => number(start).zip(number(end)).map(|(start, end)| start..end),
        None => number(text).and_then(|seed| Some(seed..seed.checked_add(1)?)),
    };
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| SpecError::new(format!("`{text}` names no seeds; accepted: 0..1000, or one seed")))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A panic of the engine is a violation of its seed and is printed with it.
    std::panic::set_hook(Box::new(|_| {}));
    let search = Search {
        planted: arguments.bug,
        without: arguments.without.clone(),
        in_place: arguments.in_place,
        jobs: usize::from(arguments.jobs),
    };
    if arguments.print {
        for seed in arguments.seeds {
            println!("seed {seed}\n{}", search.plan(seed));
        }
        return ExitCode::SUCCESS;
    }
    if arguments.bugs { bugs(&search, &arguments) } else { seeds(&search, &arguments) }
}

fn seeds(search: &Search, arguments: &Arguments) -> ExitCode {
    let begin = Instant::now();
    let summary = watched(search, arguments.seeds.clone());
    let seconds = begin.elapsed().as_secs_f64();
    let Summary { seeds, committed, cuts, faults, damaged, .. } = &summary;
    println!(
        "{seeds} seeds in {seconds:.1} s: {committed} transactions, {cuts} power cuts, {faults} faults, {damaged} seeds with damage that was reported"
    );
    match (&summary.failure, search.planted) {
        (None, None) => ExitCode::SUCCESS,
        (None, Some(bug)) => {
            println!("{} was not found", name_of(bug));
            ExitCode::FAILURE
        }
        (Some(failure), planted) => {
            if let Some(bug) = planted {
                println!("{} was found after {seeds} seeds", name_of(bug));
            }
            show(search, failure, arguments);
            ExitCode::FAILURE
        }
    }
}

/// Prints what failed, and the shortest history that fails alike.
fn show(search: &Search, failure: &Failure, arguments: &Arguments) {
    println!("seed {}: {}", failure.seed, failure.violation);
    if arguments.no_shrink {
        return;
    }
    let (plan, violation) = search.shrink(failure);
    println!("\nThe shortest history found that fails alike:\n\n{plan}\n{violation}");
}

fn bugs(search: &Search, arguments: &Arguments) -> ExitCode {
    let mut all = true;
    println!("{:<32} {:>7}  seed: violation", "bug", "seeds");
    for (name, bug) in Planted::NAMES {
        let search = Search { planted: Some(*bug), ..search.clone() };
        let summary = watched(&search, arguments.seeds.clone());
        match &summary.failure {
            Some(Failure { seed, violation }) => {
                println!("{name:<32} {:>7}  {seed}: {violation}", summary.seeds)
            }
            None => {
                all = false;
                println!("{name:<32} {:>7}  not found", summary.seeds);
            }
        }
    }
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the seeds beside a thread that shows progress and ends the program where a seed does not end.
fn watched(search: &Search, seeds: Range<u64>) -> Summary {
    let progress = Arc::new(Progress::new(search.jobs));
    let over = Arc::new(AtomicBool::new(false));
    let watcher = watch(Arc::clone(&progress), Arc::clone(&over), seeds.end - seeds.start);
    let summary = search.seeds(seeds, &progress);
    over.store(true, Ordering::Relaxed);
    // It ends within one of its pauses and has nothing to say.
    let _ = watcher.join();
    summary
}

fn watch(progress: Arc<Progress>, over: Arc<AtomicBool>, total: u64) -> JoinHandle<()> {
    thread::spawn(move || {
        let terminal = std::io::stderr().is_terminal();
        let mut since = vec![(u64::MAX, Instant::now()); progress.running.len()];
        while !over.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(50));
            if terminal {
                eprint!("\r{} of {total} seeds ", progress.done.load(Ordering::Relaxed));
            }
            for (running, (seed, begin)) in progress.running.iter().zip(&mut since) {
                let now = running.load(Ordering::Relaxed);
                if now != *seed {
                    (*seed, *begin) = (now, Instant::now());
                } else if now != u64::MAX && begin.elapsed() > LONGEST {
                    println!("seed {now}: Stuck: it has run for {} s without end", LONGEST.as_secs());
                    // Nothing can end a task that never waits but the end of the program.
                    let _ = std::io::stdout().flush();
                    std::process::exit(1);
                }
            }
        }
        if terminal {
            eprint!("\r                              \r");
        }
    })
}
