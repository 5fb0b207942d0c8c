//! Tests a new store on a drive that held another one.

use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{DOUBLE_WRITE, LOG, PAGES, options};
use crate::common::{all, fill, run};
use fulgurite_device::Executor;
use fulgurite_engine::{SUPERBLOCKS, Store};
use std::rc::Rc;

/// Returns the image of a drive with a used store. The clock of every drive begins at the same time.
fn used() -> Vec<u8> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "old", (0..1300u32).map(|number| (number.to_be_bytes().to_vec(), vec![1; 90]))).await;
        // The log has not wrapped around yet, so its blocks are at the addresses that the log of the new
        // store will use.
        let written = store.statistics().log_bytes_written;
        assert!((40..90).contains(&(written / PAGE as u64)), "{written}");
    });
    executor.with_device(|device| device.contents())
}

/// Creates a store over the image, cuts the power, and opens the store. It must contain nothing of the old
/// one.
fn make_over(image: Vec<u8>, what: &str) {
    let executor = Executor::new(Patched::new(&Rc::new(image.clone())));
    run(&executor, |handle| async move { drop(Store::create(handle, options()).await.unwrap()) });
    let mut after = executor.with_device(|device| device.contents());
    // The new store has cleared the old blocks that it could take for its own. It must not depend on this,
    // because these writes may be lost in the cache of the drive, so the blocks are restored.
    let block = |page: usize| page * PAGE..(page + 1) * PAGE;
    let old: Vec<usize> = (LOG..DOUBLE_WRITE).filter(|page| &image[block(*page)][4..8] == b"FLOG").collect();
    assert!(old.len() > 40, "{what}: there is an old log");
    old.iter().for_each(|page| after[block(*page)].copy_from_slice(&image[block(*page)]));
    let executor = Executor::new(Patched::new(&Rc::new(after)));
    let what = what.to_owned();
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(store.tables().await.unwrap(), [], "{what}");
        assert_eq!(store.statistics().recovered_ops, 0, "{what}");
        fill(&store, "new", [(vec![7], vec![8])].into_iter()).await;
        assert_eq!(all(&store, "new").await.unwrap(), [(vec![7], vec![8])]);
    });
}

#[test]
fn a_new_store_ignores_the_log_of_an_old_one() {
    make_over(used(), "over a whole store");
}

/// The rule: a new store ignores the log of an old one even if the superblocks are lost. Without them the old
/// salt is unknown. If the new store had the same salt, the old log would continue in it.
#[test]
fn a_new_store_ignores_the_log_of_an_old_one_without_superblocks() {
    let mut image = used();
    for place in SUPERBLOCKS {
        image[place as usize..][..PAGE].fill(0);
    }
    make_over(image, "over a store without superblocks");
}
