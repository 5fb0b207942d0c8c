//! Tests that torn pages are restored from the double-write area, also if the power is cut again.

use crate::common::cuts::Cuts;
use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{DATA, DOUBLE_WRITE, PAGES, options};
use crate::common::{all, run};
use fulgurite_base::Prng;
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, Options, Store, TornPages};
use std::rc::Rc;

const ROWS: u32 = 1600;

fn double_write() -> Options {
    Options { torn_pages: TornPages::DoubleWrite, records: 0, ..options() }
}

/// Sets every row to a value of this byte.
async fn write_rows(store: &Store, fill: u8) {
    let table = store.create_table("rows").await.unwrap();
    for part in (0..ROWS).collect::<Vec<_>>().chunks(50) {
        let transaction = store.begin();
        for row in part {
            transaction.put(table, &row.to_be_bytes(), &[fill; 100]).await.unwrap();
        }
        transaction.commit_with(Durability::Flush).await.unwrap();
    }
}

/// Returns the contents of a drive after `commands` commands of creating a store and writing its rows twice, and the
/// number of commands that are left.
fn written(commands: u64) -> (Vec<u8>, u64) {
    let executor = Executor::new(Cuts::new(&Rc::new(vec![0; PAGES * PAGE]), commands));
    let handle = executor.handle();
    let _ = executor.block_on(async move {
        let store = Store::create(handle, double_write()).await.unwrap();
        for fill in [1, 2] {
            write_rows(&store, fill).await;
            store.checkpoint().await.unwrap();
        }
    });
    executor.with_device(|device| (device.contents(&mut Prng::new(1, "kept")).to_vec(), device.left()))
}

/// Returns the number of pages that opening a store restores, and checks that it is sound. The rows are
/// the first ones, with values that were written.
fn restored(image: &Rc<Vec<u8>>, what: &str) -> u64 {
    let what = what.to_owned();
    run(&Executor::new(Patched::new(image)), |handle| async move {
        let store =
            Store::open(handle, double_write()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty(), "{what}: {check:?}");
        let rows = all(&store, "rows").await.unwrap();
        let is_first = rows.iter().zip(0u32..).all(|((key, _), row)| *key == row.to_be_bytes());
        let is_written = rows.iter().all(|(_, value)| (1..=3).any(|fill| *value == [fill; 100]));
        assert!(is_first && is_written && rows.len() >= 500, "{what}: {} rows", rows.len());
        store.statistics().restored_pages
    })
}

/// Tears every page that has a copy in the double-write area: its second half is another page's. Returns `None` if no
/// copy is newer than the redo point, so that nothing is restored.
fn torn(image: &[u8]) -> Option<Rc<Vec<u8>>> {
    let page = |number: usize| number * PAGE..(number + 1) * PAGE;
    let copies: Vec<&[u8]> = (DOUBLE_WRITE..DATA).map(|place| &image[page(place)]).collect();
    let mut torn = image.to_vec();
    for copy in copies {
        let number = u64::from_le_bytes(copy[8..16].try_into().unwrap()) as usize;
        let home = (DATA..PAGES).contains(&number).then(|| page(number));
        // Only a page that is being written can be torn: its copy is the newest version.
        if let Some(home) = home
            && torn[home.clone()][16..PAGE] != copy[16..]
        {
            torn[home.start + PAGE / 2..home.end].copy_from_slice(&copy[PAGE / 2..]);
        }
    }
    (torn != image).then(|| Rc::new(torn))
}

/// The rule: a torn page is restored, and the copy that it comes from is not overwritten before the restored page is
/// durable.
#[test]
fn a_torn_page_survives_a_crash_during_its_restoration() {
    let (_, left) = written(u64::MAX);
    let all = u64::MAX - left;
    // In the first half leaves are split, so recovery changes more pages than it has frames before it reads records.
    let images = (all / 5..all / 2).rev().step_by(5).filter_map(|cut| torn(&written(cut).0)).take(8);
    let mut prng = Prng::new(7, "again");
    for image in images {
        assert!(restored(&image, "the torn pages") > 0);
        // The area has 128 pages, which are read one by one before anything is written. Its first half is used again
        // soon after that.
        for cut in 140..190 {
            for attempt in 0..3 {
                let executor = Executor::new(Cuts::new(&image, cut));
                let handle = executor.handle();
                let _ = executor.block_on(async move {
                    let store = Store::open(handle, double_write()).await.unwrap();
                    write_rows(&store, 3).await;
                    store.checkpoint().await.unwrap();
                });
                let after = executor.with_device(|device| device.contents(&mut prng));
                restored(&after, &format!("cut again after {cut} commands, attempt {attempt}"));
            }
        }
    }
}
