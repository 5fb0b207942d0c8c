//! Runs the crash tests of a range of seeds from the command line.
//!
//!     cargo run --release -p fulgurite-crashsim -- --seeds 0..10000
//!
//! Exit code 0: no violation was found, or every injected fault was found. Exit code 1: there is a violation,
//! whose seed and smallest history are printed, or an injected fault was not found. Exit code 2: the request
//! was invalid.

use clap::Parser;
use fulgurite_base::option::{name_of, parse_choice};
use fulgurite_base::{Choice, SpecError};
use fulgurite_crashsim::FaultKind;
use fulgurite_crashsim::search::{Failure, Progress, Search, Summary};
use fulgurite_engine::Planted;
use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The wall-clock time after which a seed is reported as endless. Usually a seed takes some milliseconds.
const LONGEST: Duration = Duration::from_secs(120);

#[derive(Parser)]
#[command(about = "Test the engine under power cuts and drive failures that follow from seeds")]
struct Arguments {
    /// The seeds: 0..1000, or one seed
    #[arg(long, value_parser = parse_seeds, default_value = "0..1000")]
    seeds: Range<u64>,
    /// Number of threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: u16,
    /// Plant this bug and run seeds until it is found
    #[arg(long, value_parser = parse_choice::<Planted>, conflicts_with = "bugs")]
    bug: Option<Planted>,
    /// Plant each bug in turn and print how many seeds it takes to find it
    #[arg(long)]
    bugs: bool,
    /// Leave out these kinds of faults
    #[arg(long, value_delimiter = ',', value_parser = parse_choice::<FaultKind>)]
    without: Vec<FaultKind>,
    /// Let no seed write pages out of place
    #[arg(long)]
    in_place: bool,
    /// Do not shrink a failing plan
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
    // A panic of the engine is a violation and is printed with its seed, so the message of the panic itself
    // is suppressed.
    std::panic::set_hook(Box::new(|_| {}));
    let search = Search {
        planted: arguments.bug,
        without: arguments.without.clone(),
        in_place: arguments.in_place,
        without_pressure: false,
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
        "{seeds} seeds in {seconds:.1} s: {committed} transactions, {cuts} power cuts, {faults} faults, \
         {damaged} seeds with damage that was reported"
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

/// Prints the violation of a seed, and the smallest history with the same violation.
fn show(search: &Search, failure: &Failure, arguments: &Arguments) {
    println!("seed {}: {}", failure.seed, failure.violation);
    if arguments.no_shrink {
        return;
    }
    let (plan, violation) = search.shrink(failure);
    println!("\nThe smallest history found with the same violation:\n\n{plan}\n{violation}");
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

/// Runs the seeds while another thread shows progress. The other thread ends the program if a seed takes too
/// long.
fn watched(search: &Search, seeds: Range<u64>) -> Summary {
    let progress = Arc::new(Progress::new(search.jobs));
    let over = Arc::new(AtomicBool::new(false));
    let watcher = watch(Arc::clone(&progress), Arc::clone(&over), seeds.end - seeds.start);
    let summary = search.seeds(seeds, &progress);
    over.store(true, Ordering::Relaxed);
    // The result is ignored: the watcher ends after its current pause and returns nothing.
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
                    println!("seed {now}: Stuck: it has not ended after {} s", LONGEST.as_secs());
                    // A task that never waits cannot be cancelled, so the whole program ends.
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
