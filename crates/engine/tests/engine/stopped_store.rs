//! Tests a store that stops during a check.

use crate::common::refuses::Refuses;
use crate::common::{fill, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, MemDevice, Operation};
use fulgurite_engine::{Durability, Error, Options, Store, TornPages};
use fulgurite_pool::WriteBack;

/// The rule: a page that cannot be read because another one cannot be written is not reported as damaged. The
/// test tries every page.
#[test]
fn a_check_of_a_stopped_store_reports_no_damage() {
    let mut stopped = 0;
    for frames in 16..80 {
        let memory_bytes = frames * (4096 + 64) * 4 / 3 + 64;
        let options = Options {
            memory_bytes,
            records: 0,
            relaxed_window: Nanos(u64::MAX / 4),
            write_back: Some(WriteBack::ace(1)),
            ..Options::default()
        };
        let inner = MemDevice::new(65_536, 4096, 64, Nanos::from_micros(10));
        let (drive, refuses) = Refuses::new(inner, |operation| matches!(operation, Operation::Write { .. }));
        let executor = Executor::new(drive);
        let given = options.clone();
        run(&executor, move |handle| async move {
            let store = Store::create(handle, given).await.unwrap();
            fill(&store, "t", (0..1_500u32).map(|number| (number.to_be_bytes().to_vec(), vec![0; 100])))
                .await;
            store.close().await.unwrap();
        });
        let outcome = run(&executor, move |handle| async move {
            let store = Store::open(handle, options).await.unwrap();
            let table = store.table("t").await.unwrap();
            // The leaf is written when another page needs its frame. By the WAL rule the log must be written
            // before, which fails.
            let transaction = store.begin();
            transaction.put(table, &0u32.to_be_bytes(), &[1; 100]).await.unwrap();
            transaction.commit_with(Durability::Relaxed).await.unwrap();
            refuses.set(true);
            store.check().await
        });
        match outcome {
            Ok(report) => assert!(report.problems.is_empty(), "{frames} frames: {:?}", report.problems),
            Err(error) => {
                assert!(matches!(error, Error::Fatal(_)), "{frames} frames: {error}");
                stopped += 1;
            }
        }
    }
    assert!((1..64).contains(&stopped), "{stopped} of 64 stopped");
}

/// Whether an operation writes a page in place.
fn is_page_write(operation: &Operation) -> bool {
    // The superblocks, the log and the double-write area are in front of the pages.
    let front = 32 + LOG_BYTES / 4096 + 256;
    matches!(operation, Operation::Write { lpn, .. } if lpn.0 >= front)
}

const LOG_BYTES: u64 = 2 << 20;

/// The rule: a call that fails because a page cannot be written says why the store has stopped, also an opening.
#[test]
fn the_first_error_says_why_the_store_has_stopped() {
    let options = || Options {
        memory_bytes: 1 << 20,
        log_bytes: LOG_BYTES,
        records: 0,
        torn_pages: TornPages::DoubleWrite,
        ..Options::default()
    };
    let inner = MemDevice::new(16_384, 4096, 64, Nanos::from_micros(10));
    let (drive, refuses) = Refuses::new(inner, is_page_write);
    let executor = Executor::new(drive);
    let says_why = |outcome: Result<(), Error>| match outcome {
        Err(Error::Fatal(why)) => {
            assert_eq!(why, "a page could not be written in place: the medium reported an error");
        }
        outcome => panic!("{outcome:?}"),
    };
    let refuse = refuses.clone();
    let outcomes = run(&executor, move |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "t", (0..3_000u32).map(|number| (number.to_be_bytes().to_vec(), vec![0; 400]))).await;
        refuse.set(true);
        [store.checkpoint().await, store.close().await]
    });
    outcomes.into_iter().for_each(says_why);
    // Recovery changes more pages than the memory holds.
    says_why(run(&executor, move |handle| async move { Store::open(handle, options()).await.map(drop) }));
    refuses.set(false);
    run(&executor, move |handle| async move { Store::open(handle, options()).await.unwrap() });
}
