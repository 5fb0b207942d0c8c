//! Tests that opening extends a store on a drive that has become larger.

use crate::common::patched::Patched;
use crate::common::{all, fill, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Executor, MemDevice};
use fulgurite_engine::{Error, MemImage, Options, OutOfPlaceConfig, PlaceConfig, Source, Store, restore};
use std::cell::Cell;
use std::rc::Rc;

/// The pages of the drive that the store is made on. The records take most of them, so more records need new ones.
const SMALLER: u64 = 900;
/// The pages of the larger drive: a group of 32,256 pages and the beginning of a second one.
const LARGER: u64 = 33_000;

fn records() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..2000u32).map(|number| (number.to_be_bytes().to_vec(), vec![number as u8; 300]))
}

/// Returns the image of a store on a small drive, closed or as a crash leaves it.
fn image(pages: u64, options: Options, is_closed: bool) -> MemImage {
    run(&drive(pages), move |handle| async move {
        let store = Store::create(handle.clone(), options).await.unwrap();
        fill(&store, "t", records()).await;
        if is_closed {
            store.close().await.unwrap();
        }
        let mut bytes = vec![0; pages as usize * 4096];
        Source::read(&handle, 0, &mut bytes).await.unwrap();
        MemImage::new(bytes)
    })
}

fn drive(pages: u64) -> Executor<MemDevice> {
    Executor::new(MemDevice::new(pages, 4096, 64, Nanos::from_micros(10)))
}

#[test]
fn a_store_takes_the_new_room_when_it_is_asked_to() {
    for is_closed in [true, false] {
        let image = image(SMALLER, options(), is_closed);
        run(&drive(LARGER), |handle| async move {
            restore(&image, handle.clone()).await.unwrap();
            let mut sizes = Vec::new();
            for grow in [false, true, false] {
                let store = Store::open(handle.clone(), Options { grow, ..options() }).await.unwrap();
                sizes.push(store.statistics().pages);
                assert!(all(&store, "t").await.unwrap().into_iter().eq(records()));
                let check = store.check().await.unwrap();
                assert!(check.problems.is_empty() && check.unused_pages == 0, "{check:?}");
                store.close().await.unwrap();
            }
            let beside = SMALLER - sizes[0];
            assert_eq!(sizes[1..], [LARGER - beside; 2], "it keeps what it has taken");
        });
    }
}

#[test]
fn a_crash_while_a_store_is_extended_loses_nothing() {
    let executor = drive(LARGER);
    let image = image(SMALLER, options(), false);
    let images = run(&executor, |handle| async move {
        restore(&image, handle.clone()).await.unwrap();
        let done = Rc::new(Cell::new(false));
        let (end, drive) = (Rc::clone(&done), handle.clone());
        handle.spawn(async move {
            let store = Store::open(drive, Options { grow: true, ..options() }).await.unwrap();
            end.set(true);
            drop(store);
        });
        let mut images = Vec::new();
        while !done.get() {
            handle.sleep_until(handle.now() + Nanos::from_micros(25)).await;
            if images.len() < 8 || done.get() {
                let mut bytes = vec![0; LARGER as usize * 4096];
                Source::read(&handle, 0, &mut bytes).await.unwrap();
                images.push(Rc::new(bytes));
            }
        }
        images
    });
    let mut sizes = Vec::new();
    for image in &images {
        // Either copy of the superblock alone leads to a sound store, since a crash may tear the other one.
        for torn in [None, Some(0), Some(65_536)] {
            let mut drive = Patched::new(image);
            torn.into_iter().for_each(|at| drive.patch(at + 20, &[255]));
            let size = run(&Executor::new(drive), |handle| async move {
                let store = Store::open(handle, options()).await.unwrap();
                assert!(all(&store, "t").await.unwrap().into_iter().eq(records()));
                let check = store.check().await.unwrap();
                assert!(check.problems.is_empty(), "{check:?}");
                store.statistics().pages
            });
            sizes.push(size);
        }
    }
    // Once the store is open, it may use the new room, so both copies name it.
    assert_eq!(sizes[sizes.len() - 3..].iter().min(), sizes.iter().max());
    sizes.sort_unstable();
    sizes.dedup();
    assert_eq!(sizes.len(), 2, "the crashes are before and after the extension: {sizes:?}");
}

#[test]
fn a_store_out_of_place_is_not_extended() {
    let place = PlaceConfig::OutOfPlace(OutOfPlaceConfig::default());
    let out = Options { place, memory_bytes: 2 << 20, ..options() };
    let image = image(2 * SMALLER, out.clone(), true);
    run(&drive(LARGER), |handle| async move {
        restore(&image, handle.clone()).await.unwrap();
        let refused = Store::open(handle.clone(), Options { grow: true, ..out.clone() }).await.map(drop);
        assert!(
            matches!(&refused, Err(Error::Options(what)) if what.contains("cannot be extended")),
            "{refused:?}"
        );
        let store = Store::open(handle, out).await.unwrap();
        assert!(all(&store, "t").await.unwrap().into_iter().eq(records()));
    });
}
