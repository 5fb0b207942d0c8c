//! Tests that a compaction frees pages while transactions run, and loses nothing.

use crate::common::{all, fill, mem, options, patched::PAGE, patched::Patched, run, salt, seal};
use fulgurite_base::Nanos;
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, MemImage, Options, Sink, Store, TreeShape};
use std::cell::Cell;
use std::rc::Rc;

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Fills a store in descending order, so that every split leaves a leaf that stays half full.
async fn sparse(store: &Store) {
    let numbers = (0..8000).filter(|number| number % 5 >= 3).rev();
    fill(store, "t", numbers.map(|number| (key(number), vec![number as u8; 150]))).await;
}

/// Returns the shape of the only table.
async fn only_shape(store: &Store) -> TreeShape {
    let mut shapes = store.shapes().await.unwrap();
    assert_eq!((shapes.len(), &shapes[0].name[..], shapes[0].index_of), (1, "t", None));
    shapes.remove(0)
}

#[test]
fn compaction_frees_pages_and_keeps_records() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        sparse(&store).await;
        let before = all(&store, "t").await.unwrap();
        store.checkpoint().await.unwrap();
        let sparse = only_shape(&store).await;
        assert!(sparse.leaf_fill() < 0.6, "{sparse:?}");
        let report = store.compact().await.unwrap();
        assert!(report.merged > 50 && report.trimmed > 1000, "{report:?}");
        assert!(report.pages_after * 100 < report.pages_before * 70, "{report:?}");
        assert_eq!(report.pages_after, store.statistics().pages_used);
        assert!(all(&store, "t").await.unwrap() == before);
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty() && check.unused_pages == 0, "{check:?}");
        let dense = only_shape(&store).await;
        assert!(dense.leaf_fill() > sparse.leaf_fill() + 0.2 && dense.leaf_fill() < 0.95, "{dense:?}");
        assert_eq!((sparse.entries, dense.entries, dense.levels), (3200, 3200, 2), "{sparse:?} {dense:?}");
        // The check counts two more pages, the roots of the catalogue and of the tree of large values.
        assert_eq!(dense.inner_pages + dense.leaves + 2, check.pages);
        let again = store.compact().await.unwrap();
        assert_eq!((again.merged, again.given_back), (0, 0));
    });
    // No trimmed page is needed, whether the store was closed or not.
    let records = run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        assert!(store.check().await.unwrap().problems.is_empty());
        all(&store, "t").await.unwrap().len()
    });
    assert_eq!(records, 3200);
}

#[test]
fn transactions_go_on_during_a_compaction() {
    let executor = Executor::new(mem());
    let counted = run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        sparse(&store).await;
        let (done, committed) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0u32)));
        let (other, stop, count) = (store.clone(), Rc::clone(&done), Rc::clone(&committed));
        handle.spawn(async move {
            let table = other.table("t").await.unwrap();
            let mut number = 0;
            while !stop.get() {
                let transaction = other.begin();
                transaction.put(table, &key(10_000 + number), &[7; 100]).await.unwrap();
                transaction.delete(table, &key(number * 3 % 8000)).await.unwrap();
                transaction.commit_with(Durability::Flush).await.unwrap();
                number += 1;
                count.set(number);
            }
        });
        let report = store.compact().await.unwrap();
        let during = committed.get();
        done.set(true);
        assert!(report.merged > 50 && during > 20, "{report:?}, {during} commits");
        during
    });
    let executor = Executor::new(executor.with_device(|device| std::mem::replace(device, mem())));
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty(), "{check:?}");
        let table = store.table("t").await.unwrap();
        for number in 0..counted {
            assert!(store.snapshot().get(table, &key(10_000 + number)).await.unwrap().is_some());
        }
    });
}

/// The rule: a crash at any moment of a compaction leaves an undamaged store. The contents of the drive at
/// many moments stand for the crashes.
#[test]
fn a_crash_during_a_compaction_leaves_a_sound_store() {
    let executor = Executor::new(mem());
    let (images, expected) = run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        sparse(&store).await;
        store.checkpoint().await.unwrap();
        let done = Rc::new(Cell::new(false));
        let (other, stop) = (store.clone(), Rc::clone(&done));
        handle.spawn(async move {
            other.compact().await.unwrap();
            stop.set(true);
        });
        let mut images = Vec::new();
        while !done.get() {
            handle.sleep_until(handle.now() + Nanos::from_micros(700)).await;
            // Copies the contents of the drive at this moment.
            let mut bytes = vec![0; 4096 * 4096];
            fulgurite_engine::Source::read(&handle, 0, &mut bytes).await.unwrap();
            images.push(bytes);
            assert!(images.len() < 60, "the pause is too short");
        }
        (images, all(&store, "t").await.unwrap())
    });
    assert!(images.len() > 4, "{}", images.len());
    for image in &images {
        let executor = Executor::new(Patched::new(&Rc::new(image.clone())));
        let records = run(&executor, |handle| async move {
            let store = Store::open(handle, options()).await.unwrap();
            let check = store.check().await.unwrap();
            assert!(check.problems.is_empty(), "{check:?}");
            all(&store, "t").await.unwrap()
        });
        assert!(records == expected);
    }
}

#[test]
fn unreachable_pages_are_freed() {
    let executor = Executor::new(mem());
    let image = MemImage::default();
    let target = image.clone();
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        fill(&store, "t", (0..500).map(|n| (key(n), vec![n as u8; 150]))).await;
        store.close().await.unwrap();
        let mut bytes = vec![0; 4096 * 4096];
        fulgurite_engine::Source::read(&handle, 0, &mut bytes).await.unwrap();
        target.write(0, &bytes).await.unwrap();
    });
    let mut bytes = image.bytes();
    // The first page whose kind is map is the first allocation map.
    let map = (0..bytes.len() / PAGE).find(|page| bytes[page * PAGE + 4] == 3 && *page > 32).unwrap() * PAGE;
    let salt = salt(&bytes);
    // Marks pages 800 to 839 of the group as used.
    bytes[map + 64 + 100..map + 64 + 105].fill(255);
    seal(&mut bytes[map..map + PAGE], salt);
    let executor = Executor::new(Patched::new(&Rc::new(bytes)));
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        assert_eq!(store.check().await.unwrap().unused_pages, 40);
        let report = store.compact().await.unwrap();
        assert_eq!(report.given_back, 40, "{report:?}");
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty() && check.unused_pages == 0, "{check:?}");
        assert_eq!(all(&store, "t").await.unwrap().len(), 500);
    });
}

/// The rule: compaction and checkpoints that merge records do not wait for each other. Merging a record may
/// split a leaf, which needs the turn to change the structure. The task that has this turn may wait for a
/// checkpoint, so it must not wait for one that merges.
#[test]
fn a_compaction_and_checkpoints_that_merge_records_do_not_wait_for_each_other() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        fill(&store, "t", (0..2000).map(|n| (key(n * 1000), vec![1; 150]))).await;
        let done = Rc::new(Cell::new(0));
        for writer in 0..8u32 {
            let (store, done) = (store.clone(), Rc::clone(&done));
            handle.spawn(async move {
                let table = store.table("t").await.unwrap();
                for number in 0..400u32 {
                    let transaction = store.begin();
                    // The keys are all over the table, so that records are pending for leaves that are full.
                    let at = (number * 8 + writer).wrapping_mul(2_654_435_761) % 2_000_000;
                    transaction.put(table, &key(at), &[2; 200]).await.unwrap();
                    transaction.commit_with(Durability::Flush).await.unwrap();
                    if number % 16 == writer {
                        store.checkpoint().await.unwrap();
                    }
                }
                done.set(done.get() + 1);
            });
        }
        while done.get() < 8 {
            store.compact().await.unwrap();
        }
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty() && check.records > 4500, "{check:?}");
        assert!(store.statistics().records.merged > 1000, "{:?}", store.statistics());
    });
}

#[test]
fn a_compaction_that_merges_more_than_the_log_holds_does_not_stop_the_store() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        // The merges write whole leaves to the log, which has room for 64 of them.
        let options = fulgurite_engine::Options { log_bytes: 256 << 10, ..options() };
        let store = Store::create(handle, options).await.unwrap();
        sparse(&store).await;
        store.checkpoint().await.unwrap();
        let report = store.compact().await.unwrap();
        assert!(report.merged > 20, "{report:?}");
        let log_bytes = store.statistics().log_bytes_written;
        assert!(log_bytes > 512 << 10, "{log_bytes} bytes of log");
        assert_eq!(all(&store, "t").await.unwrap().len(), 3200);
    });
}

/// The rule: a compaction trims no page that a bulk load has written before it makes the page part of its table.
#[test]
fn a_compaction_leaves_the_pages_of_a_load_alone() {
    for place in ["in-place", "out-of-place:unit=1KiB"] {
        run(&Executor::new(mem()), |handle| async move {
            let options = Options { place: place.parse().unwrap(), ..options() };
            let store = Store::create(handle.clone(), options).await.unwrap();
            let table = store.create_table("loaded").await.unwrap();
            let (other, has_ended) = (store.clone(), Rc::new(Cell::new(false)));
            let end = Rc::clone(&has_ended);
            let rows = || (0..12_000u32).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; 200]));
            handle.spawn(async move {
                other.bulk_load(table, rows()).await.unwrap();
                end.set(true);
            });
            let mut compactions = 0;
            while !has_ended.get() {
                store.compact().await.unwrap();
                compactions += 1;
            }
            assert!(compactions > 1, "{compactions}");
            assert!(all(&store, "loaded").await.unwrap().into_iter().eq(rows()));
            assert_eq!(store.check().await.unwrap().problems, []);
        });
    }
}
