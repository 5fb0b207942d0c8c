//! What a flush that was cut off has left behind the log's end.

mod common;

use common::patched::{PAGE, Patched};
use common::sample::{DOUBLE_WRITE, LOG, PAGES, options};
use common::{all, fill, run};
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::{Durability, Record, Source, Store};
use std::rc::Rc;

/// What a power cut keeps or loses as a whole.
const SECTOR: usize = 512;

async fn contents(handle: &Handle<Patched>) -> Vec<u8> {
    let mut bytes = vec![0; PAGES * PAGE];
    Source::read(handle, 0, &mut bytes).await.unwrap();
    bytes
}

/// Opens the store after a power cut, and has the power fail again. Returns the records, and what is on the drive then.
fn open(image: Vec<u8>) -> (Vec<Record>, Vec<u8>) {
    let executor = Executor::new(Patched::new(&Rc::new(image)));
    let records = run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        all(&store, "t").await.unwrap()
    });
    (records, executor.with_device(|device| device.contents()))
}

#[test]
fn a_block_that_was_cut_off_does_not_become_whole_later() {
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

    // The power failed when the block's first sector was there, and an older round's bytes were in the others.
    let mut torn = before;
    torn[block * PAGE..][..PAGE].fill(0xaa);
    torn[block * PAGE..][..SECTOR].copy_from_slice(&after[block * PAGE..][..SECTOR]);
    let (records, mut later) = open(torn);
    assert_eq!(records, std::slice::from_ref(&first));
    // Somebody has read the store by now. Of the next flush to this place all but the first sector is there.
    let others = block * PAGE + SECTOR..(block + 1) * PAGE;
    later[others.clone()].copy_from_slice(&after[others]);
    assert_eq!(open(later).0, [first], "it came back");
}
