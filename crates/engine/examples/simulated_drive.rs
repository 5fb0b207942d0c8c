//! Runs the store on a simulated drive, in virtual time, so that a run and its figures are exactly
//! reproducible.

use fulgurite_base::{Nanos, Spec};
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::{Durability, Options, Statistics, Store};
use fulgurite_ssd::{SimDrive, preset};
use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

/// Commits 1,000 records from eight concurrent tasks.
async fn work(handle: Handle<SimDrive>) -> Result<Statistics, fulgurite_engine::Error> {
    let options = Options { log_bytes: 4 << 20, ..Options::default() };
    let store = Store::create(handle.clone(), options).await?;
    let table = store.create_table("records").await?;
    let outcomes = Rc::new(RefCell::new(Vec::new()));
    for task in 0..8u64 {
        let (store, outcomes) = (store.clone(), Rc::clone(&outcomes));
        handle.spawn(async move {
            for number in 0..125u64 {
                let transaction = store.begin();
                let key = (number << 8 | task).to_be_bytes();
                let put = transaction.put(table, &key, b"a value").await;
                let outcome = match put {
                    Ok(()) => transaction.commit_with(Durability::Flush).await,
                    Err(error) => Err(error),
                };
                outcomes.borrow_mut().push(outcome);
            }
        });
    }
    while outcomes.borrow().len() < 1000 {
        handle.sleep_until(handle.now() + Nanos::from_micros(50)).await;
    }
    outcomes.take().into_iter().collect::<Result<(), _>>()?;
    Ok(store.statistics())
}

/// Returns the elapsed virtual time and the statistics of the store.
fn run() -> Result<(Nanos, Statistics), Box<dyn Error>> {
    // The drive is a small P4510 that stores the contents of its pages.
    let drive = preset::configure(Spec::parse("p4510:blocks=20,precondition=none")?)?;
    let executor = Executor::new(SimDrive::new(drive, 42, true)?);
    let statistics = executor.block_on(work(executor.handle()))??;
    Ok((executor.handle().now(), statistics))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (time, statistics) = run()?;
    println!(
        "{} commits in {:.2} ms of the drive's time, {} flushes of the log",
        statistics.commits,
        time.as_secs_f64() * 1e3,
        statistics.log_flushes
    );
    assert!(statistics.log_flushes < 1000, "commits share flushes");
    assert_eq!(run()?, (time, statistics), "a run repeats exactly");
    Ok(())
}
