//! Tests the remains of an interrupted flush behind the end of the log.

use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{DOUBLE_WRITE, LOG, PAGES, options};
use crate::common::{all, fill, run};
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::{Durability, Error, Options, Record, Source, Statistics, Store};
use std::ops::Range;
use std::rc::Rc;

/// The unit that a power cut keeps or loses as a whole.
const SECTOR: usize = 512;

async fn contents(handle: &Handle) -> Vec<u8> {
    let mut bytes = vec![0; PAGES * PAGE];
    Source::read(handle, 0, &mut bytes).await.unwrap();
    bytes
}

/// Opens the store after a power cut, and cuts the power again. Returns the records, and the contents of the
/// drive.
fn open(image: Vec<u8>) -> (Vec<Record>, Vec<u8>) {
    let executor = Executor::new(Patched::new(&Rc::new(image)));
    let records = run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        all(&store, "t").await.unwrap()
    });
    (records, executor.with_device(|device| device.contents()))
}

#[test]
fn a_torn_block_is_not_completed_by_a_later_flush() {
    let first = (vec![1], vec![1; 50]);
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    let record = first.clone();
    let (before, after) = run(&executor, |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        fill(&store, "t", [record].into_iter()).await;
        let before = contents(&handle).await;
        let table = store.table("t").await.unwrap();
        let transaction = store.begin();
        transaction.put(table, &[2], &[2; 50]).await.unwrap();
        transaction.commit_with(Durability::Flush).await.unwrap();
        (before, contents(&handle).await)
    });
    let page = |image: &[u8], page: usize| image[page * PAGE..][..PAGE].to_vec();
    let changed: Vec<usize> =
        (LOG..DOUBLE_WRITE).filter(|number| page(&before, *number) != page(&after, *number)).collect();
    let [block] = changed[..] else { panic!("the commit has one block: {changed:?}") };
    assert_eq!(open(after.clone()).0, [first.clone(), (vec![2], vec![2; 50])], "whole, it is read");

    // A power cut has left the first sector of the block, and bytes from an earlier use of the block in the
    // other sectors.
    let mut torn = before;
    torn[block * PAGE..][..PAGE].fill(0xaa);
    torn[block * PAGE..][..SECTOR].copy_from_slice(&after[block * PAGE..][..SECTOR]);
    let (records, mut later) = open(torn);
    assert_eq!(records, std::slice::from_ref(&first));
    // The store was opened and read in between. The next flush to this block writes all but the first sector.
    let others = block * PAGE + SECTOR..(block + 1) * PAGE;
    later[others.clone()].copy_from_slice(&after[others]);
    assert_eq!(open(later).0, [first], "it came back");
}

/// Commits more log than a window, the most that a flush writes before making it durable, but less than
/// starts a checkpoint. So the first flush is longer than a window. Returns the statistics of the store
/// before and after.
async fn one_long_flush(store: &Store) -> (Statistics, Statistics) {
    let table = store.create_table("t").await.unwrap();
    let before = store.statistics();
    for number in 0_u64..900 {
        let transaction = store.begin();
        transaction.put(table, &number.to_be_bytes(), &[7; 1_000]).await.unwrap();
        let durability = if number < 899 { Durability::Relaxed } else { Durability::Flush };
        transaction.commit_with(durability).await.unwrap();
    }
    (before, store.statistics())
}

fn with_memory() -> Options {
    Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, ..Options::default() }
}

#[test]
fn a_long_flush_is_durable_window_by_window() {
    let executor = Executor::new(crate::common::mem());
    let (before, after) = run(&executor, |handle| async move {
        let store = Store::create(handle, with_memory()).await.unwrap();
        one_long_flush(&store).await
    });
    // The window is a quarter of the log.
    let bytes = after.log_bytes_written - before.log_bytes_written;
    let flushes = after.flushes - before.flushes;
    assert!(flushes > after.log_flushes - before.log_flushes, "no flush of {bytes} bytes is long");
    assert!(bytes <= flushes * (1 << 20), "{bytes} bytes, {flushes} flushes");
    assert_eq!(after.checkpoints, before.checkpoints);
}

#[test]
fn a_log_that_has_lost_more_than_a_window_is_refused() {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; 2_048 * PAGE])));
    run(&executor, |handle| async move {
        let store = Store::create(handle, with_memory()).await.unwrap();
        one_long_flush(&store).await;
    });
    let image = executor.with_device(|device| device.contents());
    let blocks: Vec<&[u8]> =
        image[LOG * PAGE..].chunks(PAGE).take_while(|block| &block[4..8] == b"FLOG").collect();
    let blocks = blocks.len();
    assert!(blocks > 320, "the log has {blocks} blocks");
    let open_without = |lost: Range<usize>| {
        let mut image = image.clone();
        image[(LOG + lost.start) * PAGE..(LOG + lost.end) * PAGE].fill(0);
        let executor = Executor::new(Patched::new(&Rc::new(image)));
        let opened =
            run(&executor, |handle| async move { Store::open(handle, with_memory()).await.map(drop) });
        opened.map_err(|error| matches!(error, Error::LogCorrupt { .. }))
    };
    assert_eq!(open_without(0..0), Ok(()));
    assert_eq!(
        open_without(blocks - 300..blocks - 1),
        Err(true),
        "one block is left, more than a window behind"
    );
    assert_eq!(open_without(blocks - 280..blocks - 279), Err(true), "more than a window is left");
    assert_eq!(open_without(blocks - 20..blocks - 10), Ok(()), "a flush may have been cut off there");
}
