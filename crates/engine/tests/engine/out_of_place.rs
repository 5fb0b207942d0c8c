//! Stores whose pages lie out of place: damage is noticed, repair finds the pages, a backup has them in place.

use crate::common::patched::{PAGE, Patched};
use crate::common::{all, fill, run};
use fulgurite_device::Executor;
use fulgurite_engine::{
    CheckReport, Durability, Error, MemImage, Options, Record, Store, TornPages, repair, restore,
};
use std::rc::Rc;

const PAGES: usize = 560;
/// Where the log, the map's area and the segments begin, in pages of the drive.
const LOG: usize = 32;
const MAP: usize = LOG + 128 + 128;

fn options() -> Options {
    let place = "out-of-place:placement=sep-gc,victim=fifo".parse().unwrap();
    Options { memory_bytes: 160 << 10, log_bytes: 128 * PAGE as u64, place, ..Options::default() }
}

fn record(number: u32, version: u8) -> (Vec<u8>, Vec<u8>) {
    (number.to_be_bytes().to_vec(), vec![version; 250 + number as usize % 200])
}

const RECORDS: u32 = 800;

/// The records as they are in the end: the first third was written twelve times more.
fn expected() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..RECORDS).map(|number| record(number, if number < RECORDS / 3 { 12 } else { 0 })).collect()
}

/// A store that was written over and over, so that segments were collected; closed, or not.
fn image(close: bool) -> Rc<Vec<u8>> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, move |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        for version in 0..13 {
            let some = (0..RECORDS).filter(|number| version == 0 || *number < RECORDS / 3);
            fill(&store, "table", some.map(|number| record(number, version))).await;
            store.checkpoint().await.unwrap();
        }
        assert!(store.is_out_of_place() && store.statistics().pages_moved > 20);
        if close {
            store.close().await.unwrap();
        } else {
            let (table, transaction) = (store.table("table").await.unwrap(), store.begin());
            transaction.put(table, &record(3, 12).0, &record(3, 12).1).await.unwrap();
            transaction.commit_with(Durability::Flush).await.unwrap();
        }
    });
    Rc::new(executor.with_device(|device| device.contents()))
}

fn ask(device: Patched) -> Result<(Result<Vec<Record>, Error>, CheckReport), Error> {
    let executor = Executor::new(device);
    run(&executor, |handle| async move {
        // Who opens it need not say where pages lie.
        let store = Store::open(handle, Options { place: Options::default().place, ..options() }).await?;
        assert!(store.is_out_of_place());
        Ok((all(&store, "table").await, store.check().await?))
    })
}

fn is_right(records: &[Record]) -> bool {
    records.iter().cloned().eq(expected())
}

fn is_clear(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::LogCorrupt { .. } | Error::NotAStore)
}

/// Whether damage was noticed: the answer must be right or the error clear, and `check` must find what reading has met.
fn is_noticed(device: Patched, what: &str) -> bool {
    match ask(device) {
        Err(error) => {
            assert!(is_clear(&error), "{what}: {error:?}");
            true
        }
        Ok((Ok(records), check)) => {
            assert!(is_right(&records), "{what}: wrong data");
            !check.problems.is_empty()
        }
        Ok((Err(error), check)) => {
            assert!(is_clear(&error), "{what}: {error:?}");
            assert!(!check.problems.is_empty(), "{what}: reading fails and `check` is content");
            true
        }
    }
}

#[test]
fn damage_anywhere_is_noticed_or_harmless() {
    for close in [true, false] {
        let image = image(close);
        assert!(!is_noticed(Patched::new(&image), "no damage"));
        let used: Vec<usize> =
            (MAP..PAGES).filter(|page| image[page * PAGE..][..PAGE].iter().any(|byte| *byte != 0)).collect();
        let mut noticed = 0;
        for (at, page) in used.iter().enumerate() {
            let mut device = Patched::new(&image);
            device.put_page(*page, &[0; PAGE]);
            noticed += usize::from(is_noticed(device, &format!("page {page} zeroed")));
            let mut device = Patched::new(&image);
            let byte = page * PAGE + at * 97 % PAGE;
            device.patch(byte, &[image[byte] ^ 4]);
            is_noticed(device, &format!("byte {byte} flipped"));
            let mut device = Patched::new(&image);
            let other = used[(at * 7 + 3) % used.len()];
            device.put_page(*page, &image[other * PAGE..][..PAGE]);
            is_noticed(device, &format!("page {page} replaced by {other}"));
        }
        // Garbage in segments may be damaged by anybody.
        assert!(noticed > used.len() / 4, "{noticed} of {}", used.len());
    }
}

#[test]
fn repair_finds_pages_by_their_map_and_without_it() {
    let places = [
        ("the map", MAP..MAP + 40),
        ("a head", MAP..MAP + 1),
        ("both superblocks", 0..LOG),
        ("nothing", 0..0),
    ];
    for (what, gone) in places {
        let mut bytes = image(true).to_vec();
        bytes[gone.start * PAGE..gone.end * PAGE].fill(0);
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
        let records = run(&executor, |handle| async move {
            let in_place = Options { place: Options::default().place, ..options() };
            let report = repair(&MemImage::new(bytes), handle.clone(), in_place.clone()).await.unwrap();
            assert!(report.tables.iter().all(|table| table.lost.is_empty()), "{what}: {report:?}");
            let store = Store::open(handle, in_place).await.unwrap();
            assert!(!store.is_out_of_place());
            all(&store, "table").await.unwrap()
        });
        assert!(is_right(&records), "{what} is gone");
    }
}

#[test]
fn a_backup_has_the_pages_in_place() {
    let executor = Executor::new(Patched::new(&image(true)));
    let copy = MemImage::default();
    let target = copy.clone();
    run(&executor, |handle| async move {
        Store::open(handle, options()).await.unwrap().backup(&target).await.unwrap();
    });
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    let records = run(&executor, |handle| async move {
        restore(&copy, &handle).await.unwrap();
        let store = Store::open(handle, options()).await.unwrap();
        assert!(!store.is_out_of_place());
        assert_eq!(store.check().await.unwrap().problems, []);
        all(&store, "table").await.unwrap()
    });
    assert!(is_right(&records));
}

#[test]
fn pages_of_several_blocks_are_compressed() {
    let written = |place: &str| {
        let options =
            Options { page_bytes: 16_384, memory_bytes: 1 << 20, place: place.parse().unwrap(), ..options() };
        let options = Options { log_bytes: 96 * 16_384, ..options };
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; 4_000 * PAGE])));
        run(&executor, |handle| async move {
            let store = Store::create(handle, options).await.unwrap();
            let before = store.statistics().pages_written;
            fill(&store, "table", (0..2_000).map(|number| record(number, 7))).await;
            store.checkpoint().await.unwrap();
            let records = all(&store, "table").await.unwrap();
            assert!(records.into_iter().eq((0..2_000).map(|number| record(number, 7))));
            store.statistics().pages_written - before
        })
    };
    // Values of one byte repeated: a page of four blocks takes one. In place each is written twice.
    let (out, twice) = (written("out-of-place"), written("in-place"));
    assert!(out * 6 < twice && out > 0, "{out} pages and {twice}");
}

#[test]
fn what_contradicts_pages_out_of_place_is_refused() {
    let refusal = |pages: usize, options: Options| {
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; pages * PAGE])));
        run(&executor, |handle| async move {
            Store::create(handle, options).await.err().map(|error| error.to_string())
        })
    };
    let refused = |pages: usize, options: Options, words: &str| {
        let error = refusal(pages, options).unwrap_or_default();
        assert!(error.contains(words), "`{error}` does not say `{words}`");
    };
    assert_eq!(refusal(PAGES, options()), None);
    refused(PAGES, Options { torn_pages: TornPages::DoubleWrite, ..options() }, "accepted: auto");
    refused(300, options(), "too few for pages out of place");
    refused(200_000, options(), "the map of ");
    let oracle = Options { place: "out-of-place:placement=oracle".parse().unwrap(), ..options() };
    refused(PAGES, oracle, "must know all writes beforehand");
}
