//! Tests that the size of a transaction is limited by its own writes alone: the put that crosses the limit is refused,
//! and what was not refused can be committed at any time.

use crate::common::{mem, options, run};
use fulgurite_base::Prng;
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, Error, Options, Store, Table};

/// Puts records with values of `bytes` bytes until one is refused. Returns how many were not, and the outcome of the
/// commit.
async fn widest(store: &Store, table: Table, prng: &mut Prng, bytes: usize) -> (usize, Result<(), Error>) {
    let transaction = store.begin();
    for count in 0.. {
        let key = prng.below(1 << 40).to_be_bytes();
        match transaction.put(table, &key, &vec![count as u8; bytes]).await {
            Ok(()) => {}
            Err(error @ Error::TransactionTooLarge { bytes: asked, most }) => {
                // The error says about how much would fit.
                assert!(most <= asked && (bytes >= 2000 || most * 10 >= asked * 9), "{error}");
                return (count, transaction.commit_with(Durability::Relaxed).await);
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn what_was_put_can_be_committed_whatever_the_store_does() {
    for large in [false, true] {
        let executor = Executor::new(mem());
        run(&executor, |handle| async move {
            let options = Options { memory_bytes: 2 << 20, log_bytes: 1 << 20, ..options() };
            let store = Store::create(handle, options).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            let mut prng = Prng::new(1, "size");
            if large {
                store.bulk_load(table, [(b"large".to_vec(), vec![1; 10_000])]).await.unwrap();
            }
            for bytes in [20, 300, 1000, 3000] {
                let mut counts = Vec::new();
                // The same again and again, so that the record cache is full of pending records.
                for _ in 0..6 {
                    let (count, committed) = widest(&store, table, &mut prng, bytes).await;
                    assert_eq!(committed, Ok(()), "{count} values of {bytes} bytes");
                    counts.push(count);
                }
                assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
                // References to large values always go to leaves.
                let least = if bytes < 2000 { 150_000 / (bytes + 60) } else { 20 };
                assert!(counts[0] >= least, "{} values of {bytes} bytes, not {least}", counts[0]);
            }
            store.checkpoint().await.unwrap();
            assert!(store.check().await.unwrap().problems.is_empty());
        });
    }
}
