//! Measures `fulgurite pool mixed-skewed` end to end on the simulated P4510. The work includes the generator,
//! the pool, the executor, the drive with garbage collection, and the checks. Prints requests per second of
//! one core.
//!
//! `cargo bench -p fulgurite-stack --bench pool`; `--test` makes a short run.

use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Command, Progress, StackError};

fn main() -> Result<(), StackError> {
    let test = std::env::args().any(|argument| argument == "--test");
    let (ops, rounds) = if test { ("20K", 1) } else { ("4M", 3) };
    for round in 1..=rounds {
        for write_back in ["single", "ace"] {
            let values = [("workload", "mixed-skewed"), ("ops", ops), ("write_back", write_back)].into();
            let run = settings::run(Command::Pool, &values, &mut Workloads::default())?;
            for row in run.execute(&Progress::default())? {
                let rate = row.number(Column::SimOpsS).unwrap_or(f64::NAN) / 1e6;
                println!("round {round}: {:6}  {rate:.2} M requests/s", row.text(Column::WriteBack));
            }
        }
    }
    Ok(())
}
