//! A new store on a drive that had another one.

use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{DOUBLE_WRITE, LOG, PAGES, options};
use crate::common::{all, fill, run};
use fulgurite_device::Executor;
use fulgurite_engine::{SUPERBLOCKS, Store};
use std::rc::Rc;

/// A drive that has had a store with a log. All drives begin at the same time.
fn used() -> Vec<u8> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "old", (0..1300u32).map(|number| (number.to_be_bytes().to_vec(), vec![1; 90]))).await;
        // Within the first round of the ring, so that the blocks lie where the new store's will.
        let written = store.statistics().log_bytes_written;
        assert!((40..90).contains(&(written / PAGE as u64)), "{written}");
    });
    executor.with_device(|device| device.contents())
}

/// Makes a store over what is on the drive, has the power fail, and opens it. Nothing of the old one may be there.
fn make_over(image: Vec<u8>, what: &str) {
    let executor = Executor::new(Patched::new(&Rc::new(image.clone())));
    run(&executor, |handle| async move { drop(Store::create(handle, options()).await.unwrap()) });
    let mut after = executor.with_device(|device| device.contents());
    // The new store has emptied the places of what it could take for its own. It must not depend on that: a drive may still
    // have these writes in its cache.
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
fn a_new_store_takes_nothing_from_the_log_of_an_old_one() {
    make_over(used(), "over a whole store");
}

/// Then nothing says which salt the old one had. With the same one, its log would go on in the new store.
#[test]
fn a_new_store_takes_nothing_from_the_log_of_an_old_one_without_superblocks() {
    let mut image = used();
    for place in SUPERBLOCKS {
        image[place as usize..][..PAGE].fill(0);
    }
    make_over(image, "over a store without superblocks");
}
