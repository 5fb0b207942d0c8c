//! Tests stores that merge records as deltas: the records are there by every way to read them, after a crash,
//! and in copies, and damage to a delta is noticed.

use crate::common::patched::{PAGE, Patched};
use crate::common::{all, run};
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, Error, MemImage, Options, Record, Store, repair, restore};
use std::rc::Rc;

const PAGES: usize = 2_400;
/// The first page of the area of the page map.
const MAP: usize = 32 + 128 + 128;
const ROWS: u32 = 8_000;

fn options(deltas: u32) -> Options {
    let place = format!("out-of-place:unit=512B,deltas={deltas}").parse().unwrap();
    Options { memory_bytes: 640 << 10, log_bytes: 128 * PAGE as u64, place, ..Options::default() }
}

/// Returns a row. Half of its value compresses.
fn row(number: u32, version: u32) -> Record {
    let mut value = vec![version as u8; 100];
    value[50..]
        .iter_mut()
        .zip(0u32..)
        .for_each(|(byte, at)| *byte = (number * 31 + version * 7 + at * at) as u8);
    (number.to_be_bytes().to_vec(), value)
}

/// The newest version of each row after [`update`] with `versions` versions.
fn rows(versions: u32) -> impl Iterator<Item = Record> {
    (0..ROWS).map(move |number| {
        let newest = (1..=versions).rev().find(|version| is_updated(number, *version));
        row(number, newest.unwrap_or(0))
    })
}

fn is_updated(number: u32, version: u32) -> bool {
    (number + 3 * version).is_multiple_of(17)
}

async fn update(store: &Store, version: u32) {
    let table = store.table("rows").await.unwrap();
    let numbers: Vec<u32> = (0..ROWS).filter(|number| is_updated(*number, version)).collect();
    for numbers in numbers.chunks(16) {
        let transaction = store.begin();
        for number in numbers {
            let (key, value) = row(*number, version);
            transaction.put(table, &key, &value).await.unwrap();
        }
        transaction.commit_with(Durability::Flush).await.unwrap();
    }
}

async fn load(store: &Store) {
    let table = store.create_table("rows").await.unwrap();
    store.bulk_load(table, rows(0)).await.unwrap();
    store.checkpoint().await.unwrap();
}

/// Returns the image of a store with deltas. `versions` updates were merged, and one more was not. If `close`,
/// the store was closed, which merges it too.
fn image(deltas: u32, versions: u32, close: bool) -> Rc<Vec<u8>> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, move |handle| async move {
        let store = Store::create(handle, options(deltas)).await.unwrap();
        load(&store).await;
        for version in 1..=versions {
            update(&store, version).await;
            store.checkpoint().await.unwrap();
        }
        let statistics = store.statistics();
        let expected = if deltas == 0 { 0..1 } else { 50..1_000_000 };
        assert!(expected.contains(&statistics.deltas_written), "{} deltas", statistics.deltas_written);
        update(&store, versions + 1).await;
        if close {
            store.close().await.unwrap();
        }
    });
    Rc::new(executor.with_device(|device| device.contents()))
}

fn opened<T>(image: &Rc<Vec<u8>>, deltas: u32, ask: impl AsyncFn(&Store) -> T + 'static) -> Result<T, Error>
where
    T: 'static,
{
    let executor = Executor::new(Patched::new(image));
    run(&executor, move |handle| async move {
        let store = Store::open(handle, options(deltas)).await?;
        Ok(ask(&store).await)
    })
}

/// The rule: merged records are there while the store is in use, after a crash, and after a clean closing, also
/// if the store makes no more deltas. Reading needs no more than the deltas' pages.
#[test]
fn records_in_deltas_are_there_after_every_opening() {
    for versions in [1, 2, 5] {
        for close in [false, true] {
            let image = image(3, versions, close);
            for deltas in [0, 1, 3] {
                let records = opened(&image, deltas, async |store: &Store| {
                    assert_eq!(store.check().await.unwrap().problems, []);
                    let records = all(store, "rows").await.unwrap();
                    assert!(store.statistics().deltas_read > 0);
                    records
                });
                assert!(records.unwrap().into_iter().eq(rows(versions + 1)), "{versions}, {close}, {deltas}");
            }
        }
    }
}

/// The rule: a delta is written without reading its leaf, and a page with as many deltas as the option says is
/// written as a whole by the next merge.
#[test]
fn a_merge_reads_no_leaf_until_the_leaf_is_consolidated() {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, move |handle| async move {
        let store = Store::create(handle, options(2)).await.unwrap();
        load(&store).await;
        for version in 1..=6 {
            let before = store.statistics();
            update(&store, version).await;
            store.checkpoint().await.unwrap();
            let after = store.statistics();
            let [deltas, reads, consolidated] = [
                after.deltas_written - before.deltas_written,
                after.pool.pages_read - before.pool.pages_read,
                after.pages_consolidated - before.pages_consolidated,
            ];
            match version % 3 {
                0 => assert!(
                    deltas < reads && consolidated > 30,
                    "{version}: {deltas}, {reads}, {consolidated}"
                ),
                _ => {
                    assert!(deltas > 30 && reads < deltas / 2, "{version}: {deltas}, {reads}, {consolidated}")
                }
            }
        }
        assert!(all(&store, "rows").await.unwrap().into_iter().eq(rows(6)));
        assert_eq!(store.check().await.unwrap().problems, []);
    });
}

/// The rule: a reader of an older state finds the values that records in deltas replace.
#[test]
fn a_snapshot_reads_what_deltas_replace() {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, move |handle| async move {
        let options = Options { memory_bytes: 1 << 20, ..options(3) };
        let store = Store::create(handle, options).await.unwrap();
        load(&store).await;
        update(&store, 1).await;
        store.checkpoint().await.unwrap();
        let (snapshot, before) = (store.snapshot(), store.statistics().deltas_written);
        assert!(before > 50, "{before} deltas");
        update(&store, 2).await;
        store.checkpoint().await.unwrap();
        assert_eq!(store.statistics().deltas_written, before, "every old value is still needed");
        let table = store.table("rows").await.unwrap();
        for (key, value) in rows(1) {
            assert_eq!(snapshot.get(table, &key).await.unwrap(), Some(value));
        }
        assert!(all(&store, "rows").await.unwrap().into_iter().eq(rows(2)));
    });
}

/// The rule: a deleted row is gone, and the leaves of deleted rows are merged with others.
#[test]
fn deletions_are_merged_into_leaves() {
    let found = opened(&image(3, 2, true), 3, async |store: &Store| {
        let (table, used) = (store.table("rows").await.unwrap(), store.statistics().pages_used);
        for numbers in (0..ROWS).collect::<Vec<u32>>().chunks(16) {
            let transaction = store.begin();
            for number in numbers.iter().filter(|number| !number.is_multiple_of(40)) {
                transaction.delete(table, &number.to_be_bytes()).await.unwrap();
            }
            transaction.commit().await.unwrap();
        }
        store.checkpoint().await.unwrap();
        assert!(store.statistics().pages_used < used / 2);
        assert_eq!(store.check().await.unwrap().problems, []);
        all(store, "rows").await.unwrap()
    });
    let left = rows(3).filter(|(key, _)| u32::from_be_bytes(key[..].try_into().unwrap()).is_multiple_of(40));
    assert!(found.unwrap().into_iter().eq(left));
}

/// The rule: damage to any page is noticed, or harmless. No damage brings back an older value.
#[test]
fn damage_is_noticed_or_harmless() {
    let image = image(3, 2, true);
    let used: Vec<usize> =
        (MAP..PAGES).filter(|page| image[page * PAGE..][..PAGE].iter().any(|byte| *byte != 0)).collect();
    let mut noticed = 0;
    for (at, page) in used.iter().copied().enumerate() {
        let mut device = Patched::new(&image);
        let byte = page * PAGE + at * 97 % PAGE;
        match at % 2 {
            0 => device.patch(byte, &[image[byte] ^ 4]),
            _ => device.put_page(page, &image[used[(at * 7 + 3) % used.len()] * PAGE..][..PAGE]),
        }
        let executor = Executor::new(device);
        let found = run(&executor, |handle| async move {
            let store = Store::open(handle, options(3)).await?;
            let check = store.check().await?;
            let records = all(&store, "rows").await;
            assert!(records.is_ok() || !check.problems.is_empty(), "page {page}");
            records.map(|records| (records, check.problems.len()))
        });
        match found {
            Ok((records, problems)) => {
                assert!(records.into_iter().eq(rows(3)), "page {page}: wrong data");
                noticed += usize::from(problems > 0);
            }
            Err(Error::Corrupt { .. }) => noticed += 1,
            Err(error) => panic!("page {page}: {error}"),
        }
    }
    assert!(noticed > used.len() / 4, "{noticed} of {}", used.len());
}

/// The rule: a repair finds the deltas with the map and without it, and a backup contains their records.
#[test]
fn repairs_and_backups_contain_the_records_of_deltas() {
    for gone in [0..0, MAP..MAP + 40] {
        let mut bytes = image(3, 2, true).to_vec();
        bytes[gone.start * PAGE..gone.end * PAGE].fill(0);
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
        let records = run(&executor, |handle| async move {
            let report = repair(&MemImage::new(bytes), handle.clone(), options(0)).await.unwrap();
            assert!(report.tables.iter().all(|table| table.lost.is_empty()), "{report:?}");
            all(&Store::open(handle, options(0)).await.unwrap(), "rows").await.unwrap()
        });
        assert!(records.into_iter().eq(rows(3)), "without the pages {gone:?}");
    }
    let copy = MemImage::default();
    let target = copy.clone();
    let backup = async move |store: &Store| store.backup(&target).await.map(|_| ());
    opened(&image(3, 2, false), 3, backup).unwrap().unwrap();
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    let records = run(&executor, |handle| async move {
        restore(&copy, handle.clone()).await.unwrap();
        all(&Store::open(handle, options(0)).await.unwrap(), "rows").await.unwrap()
    });
    assert!(records.into_iter().eq(rows(3)));
}

#[test]
fn pages_without_free_units_get_no_deltas() {
    for place in ["unit=512B,compress=none", "unit=4KiB"] {
        let place = format!("out-of-place:deltas=1,{place}").parse().unwrap();
        let options = Options { place, ..options(0) };
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
        let refused = run(&executor, |handle| async move { Store::create(handle, options).await.err() });
        let text = refused.unwrap().to_string();
        assert!(text.contains("deltas=1") && text.contains("accepted: 0, or"), "{text}");
    }
}
