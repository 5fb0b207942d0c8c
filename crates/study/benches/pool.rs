//! `fulgurite pool mixed-skewed` end to end on the simulated P4510: generator, pool, executor, drive
//! with garbage collection, checks. Prints requests per second of one core.
//!
//! `cargo bench -p fulgurite-study --bench pool`; `--test` makes a short run.

use fulgurite_study::error::StudyError;
use fulgurite_study::grid::{self, Settings};
use fulgurite_study::run::Progress;

fn main() -> Result<(), StudyError> {
    let test = std::env::args().any(|argument| argument == "--test");
    let (ops, rounds) = if test { ("20K", 1) } else { ("4M", 3) };
    let settings: Settings = [("workload", "mixed-skewed"), ("ops", ops), ("write_back", "single,ace")]
        .into_iter()
        .map(|(name, value)| Ok((name.to_owned(), grid::values(value)?)))
        .collect::<Result<_, StudyError>>()?;
    for round in 1..=rounds {
        for run in grid::expand(grid::Command::Pool, &settings)? {
            for row in run.execute(&Progress::default())? {
                let rate = row.number("sim_ops_s").unwrap_or(f64::NAN) / 1e6;
                println!("round {round}: {:6}  {rate:.2} M requests/s", row.text("write_back"));
            }
        }
    }
    Ok(())
}
