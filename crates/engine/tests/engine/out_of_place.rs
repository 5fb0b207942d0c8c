//! Tests stores that write out of place: damage is noticed, a repair finds the pages, and a backup has them
//! in place.

use crate::common::patched::{PAGE, Patched};
use crate::common::{all, fill, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{
    CheckReport, Durability, Error, MemImage, Options, Record, Store, TornPages, repair, restore,
};
use std::rc::Rc;

const PAGES: usize = 560;
/// The first pages of the log, and of the area of the page map, in pages of the drive.
const LOG: usize = 32;
const MAP: usize = LOG + 128 + 128;

/// The two kinds of allocation units: a unit is a block, and several units share a block.
const UNITS: [&str; 2] = ["unit=4KiB", "unit=1KiB,compress=zstd"];

fn options(units: &str) -> Options {
    let own = if units.contains("placement") { "" } else { "placement=sep-gc,victim=fifo," };
    let place = format!("out-of-place:{own}{units}").parse().unwrap();
    Options { memory_bytes: 192 << 10, log_bytes: 128 * PAGE as u64, place, ..Options::default() }
}

/// Returns a record. The first quarter of its value compresses well.
fn record(number: u32, version: u8) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![version; 250 + number as usize % 200];
    let mut prng = Prng::new(u64::from(number) << 8 | u64::from(version), "value");
    let compressible = value.len() / 4;
    value[compressible..].fill_with(|| prng.below(256) as u8);
    (number.to_be_bytes().to_vec(), value)
}

const RECORDS: u32 = 800;

/// Returns the final records: the first third of them was written twelve more times.
fn expected() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..RECORDS).map(|number| record(number, if number < RECORDS / 3 { 12 } else { 0 })).collect()
}

/// Returns the image of a store that was overwritten so often that segments were collected. If `close`, it
/// was closed.
fn image(units: &'static str, close: bool) -> Rc<Vec<u8>> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, move |handle| async move {
        let store = Store::create(handle, options(units)).await.unwrap();
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
        // The options need not say that the store writes out of place.
        let store = Store::open(handle, in_place()).await?;
        assert!(store.is_out_of_place());
        Ok((all(&store, "table").await, store.check().await?))
    })
}

fn in_place() -> Options {
    Options { place: Options::default().place, ..options(UNITS[0]) }
}

fn is_right(records: &[Record]) -> bool {
    records.iter().cloned().eq(expected())
}

fn is_clear(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::LogCorrupt { .. } | Error::NotAStore)
}

/// Returns whether damage was noticed. Checks that the answer is right or the error clear, and that `check`
/// finds every damage that reading found.
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
    for (units, close) in UNITS.into_iter().flat_map(|units| [(units, true), (units, false)]) {
        let image = image(units, close);
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
        // Damage to invalid pages in segments is harmless, so not all damage is noticed.
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
    for (units, (what, gone)) in
        UNITS.into_iter().flat_map(|units| places.clone().map(|place| (units, place)))
    {
        let mut bytes = image(units, true).to_vec();
        bytes[gone.start * PAGE..gone.end * PAGE].fill(0);
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
        let records = run(&executor, |handle| async move {
            let report = repair(&MemImage::new(bytes), handle.clone(), in_place()).await.unwrap();
            assert!(report.tables.iter().all(|table| table.lost.is_empty()), "{what}: {report:?}");
            let store = Store::open(handle, in_place()).await.unwrap();
            assert!(!store.is_out_of_place());
            all(&store, "table").await.unwrap()
        });
        assert!(is_right(&records), "{what} is gone, {units}");
    }
}

#[test]
fn a_backup_has_the_pages_in_place() {
    for units in UNITS {
        let executor = Executor::new(Patched::new(&image(units, true)));
        let copy = MemImage::default();
        let target = copy.clone();
        run(&executor, |handle| async move {
            Store::open(handle, options(units)).await.unwrap().backup(&target).await.unwrap();
        });
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
        let records = run(&executor, |handle| async move {
            restore(&copy, handle.clone()).await.unwrap();
            let store = Store::open(handle, options(units)).await.unwrap();
            assert!(!store.is_out_of_place());
            assert_eq!(store.check().await.unwrap().problems, []);
            all(&store, "table").await.unwrap()
        });
        assert!(is_right(&records), "{units}");
    }
}

/// The rule: a store of format 3, in which units are blocks, can be opened. Its superblocks contain no unit
/// size.
#[test]
fn a_store_of_format_3_is_opened() {
    let mut bytes = image("unit=4KiB", true).to_vec();
    for place in [0, 65_536] {
        let superblock = &mut bytes[place..place + 128];
        assert_eq!((superblock[20], superblock[86]), (8, 12), "the format, and 2 to the power of 12 bytes");
        (superblock[20], superblock[86]) = (3, 0);
        superblock[16..20].fill(0);
        let crc = crc32c::crc32c(superblock);
        superblock[16..20].copy_from_slice(&crc.to_le_bytes());
    }
    let (records, check) = ask(Patched::new(&Rc::new(bytes))).unwrap();
    assert!(is_right(&records.unwrap()));
    assert_eq!(check.problems, []);
}

/// The rule: the compression may change from one opening to the next, because each page stores its own.
#[test]
fn a_store_is_opened_with_another_compression() {
    for compress in ["none", "lz4", "zstd"] {
        let executor = Executor::new(Patched::new(&image("unit=1KiB,compress=zstd", false)));
        let records = run(&executor, |handle| async move {
            let units = format!("unit=1KiB,compress={compress}");
            let store = Store::open(handle, options(&units)).await.unwrap();
            fill(&store, "table", (0..RECORDS / 6).map(|number| record(number, 12))).await;
            store.checkpoint().await.unwrap();
            all(&store, "table").await.unwrap()
        });
        assert!(is_right(&records), "{compress}");
    }
}

#[test]
fn pages_are_compressed_and_packed() {
    let written = |page_bytes: u32, place: &str| {
        let place = place.parse().unwrap();
        let options = Options {
            page_bytes,
            memory_bytes: 1 << 20,
            place,
            log_bytes: 384 * PAGE as u64,
            ..Options::default()
        };
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; 4_000 * PAGE])));
        run(&executor, |handle| async move {
            let store = Store::create(handle, options).await.unwrap();
            let before = store.statistics().pages_written;
            // The values consist of one repeated byte, so LZ4 compresses them to almost nothing.
            let records = || {
                (0..2_000u32)
                    .map(|number| (number.to_be_bytes().to_vec(), vec![7; 250 + number as usize % 200]))
            };
            fill(&store, "table", records()).await;
            store.checkpoint().await.unwrap();
            assert!(all(&store, "table").await.unwrap().into_iter().eq(records()));
            store.statistics().pages_written - before
        })
    };
    for (page_bytes, unit, times) in
        [(16_384, "4KiB", 6), (4_096, "1KiB", 6), (4_096, "512B", 10), (4_096, "4KiB", 1)]
    {
        // A store that writes in place writes each page twice.
        let (out, twice) =
            (written(page_bytes, &format!("out-of-place:unit={unit}")), written(page_bytes, "in-place"));
        assert!(
            out > 0 && out * times < twice,
            "pages of {page_bytes} in units of {unit}: {out} and {twice}"
        );
        assert!(out * 2 * (times + 4) > twice, "a page takes one unit at least: {out} and {twice}");
    }
}

#[test]
fn options_that_contradict_pages_out_of_place_are_refused() {
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
    let own = || options(UNITS[0]);
    assert_eq!(refusal(PAGES, own()), None);
    refused(PAGES, Options { torn_pages: TornPages::DoubleWrite, ..own() }, "accepted: auto");
    refused(300, own(), "too few for pages out of place");
    refused(200_000, own(), "the map of ");
    refused(PAGES, options("placement=oracle"), "must know all writes beforehand");
    refused(PAGES, options("unit=3KiB"), "units of 3072 bytes");
    refused(PAGES, options("unit=8KiB"), "accepted: a power of two from 512 to 4096");
}

/// The rule: a bulk load is durable when it returns, including the map entries of its pages. Nothing is
/// closed or written after it.
#[test]
fn a_bulk_load_is_durable_with_its_map_entries() {
    let executor = Executor::new(MemDevice::new(8192, 4096, 64, Nanos::from_micros(10)));
    let row = |number: u32| (number.to_be_bytes().to_vec(), vec![7; 100]);
    let options = || Options {
        place: "out-of-place".parse().unwrap(),
        memory_bytes: 4 << 20,
        log_bytes: 4 << 20,
        ..Options::default()
    };
    run(&executor, move |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        store.bulk_load(table, (0..5_000).map(row)).await.unwrap();
    });
    let drive =
        executor.with_device(|device| std::mem::replace(device, MemDevice::new(64, 4096, 64, Nanos::ZERO)));
    let found = run(&Executor::new(drive), move |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        all(&store, "rows").await
    });
    assert!(found.unwrap().into_iter().eq((0..5_000).map(row)));
}
