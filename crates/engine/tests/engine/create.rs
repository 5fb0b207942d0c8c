//! A new store on a drive that held another one.

use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{DOUBLE_WRITE, LOG, PAGES, options};
use crate::common::{all, fill, run};
use fulgurite_device::Executor;
use fulgurite_engine::{SUPERBLOCKS, Store};
use std::rc::Rc;

/// The image of a drive with a used store. All drives begin at the same time.
fn used() -> Vec<u8> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "old", (0..1300u32).map(|number| (number.to_be_bytes().to_vec(), vec![1; 90]))).await;
        // This is within the first round of the ring, so the blocks are where the new store's will be.
        let written = store.statistics().log_bytes_written;
        assert!((40..90).contains(&(written / PAGE as u64)), "{written}");
    });
    executor.with_device(|device| device.contents())
}

/// Creates a store over the image, cuts the power, and opens it. Nothing of the old store may be in it.
fn make_over(image: Vec<u8>, what: &str) {
    let executor = Executor::new(Patched::new(&Rc::new(image.clone())));
    run(&executor, |handle| async move { drop(Store::create(handle, options()).await.unwrap()) });
    let mut after = executor.with_device(|device| device.contents());
    // The new store has cleared the blocks that it could take for its own. It must not depend on that,
    // because these writes may be lost in the drive's cache.
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

/// Without superblocks the old salt is unknown. With the same salt, the old log would continue in the new
/// store.
#[test]
fn a_new_store_ignores_the_log_of_an_old_one_without_superblocks() {
    let mut image = used();
    for place in SUPERBLOCKS {
        image[place as usize..][..PAGE].fill(0);
    }
    make_over(image, "over a store without superblocks");
}
