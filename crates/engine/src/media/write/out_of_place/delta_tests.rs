//! Tests that a page always reads as its base with all its deltas, while pages are written, deltas are added
//! and garbage collection moves both.

use super::jitter_drive::JitterDrive;
use super::tests::{shared, superblock, with_place};
use super::*;
use crate::Lsn;
use crate::format::page::node::{Cell, Node, NodeMut};
use crate::wait::together;
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::Executor;
use std::collections::BTreeMap;
use std::pin::Pin;

const PAGE: usize = 4096;
const TREE: u32 = 9;

type Write<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;
/// The records of a leaf.
type Records = BTreeMap<u8, Vec<u8>>;

/// Returns the sealed page of a leaf with these records.
fn page_of(number: PageId, records: &Records, lsn: u64, salt: Salt) -> Sealed {
    let bytes = Arena::new(PAGE).buffer(0, PAGE);
    bytes::change(&bytes, |bytes| {
        let mut node = NodeMut::init(bytes, number, TREE, 0, (b"", None));
        records.iter().for_each(|(key, value)| assert!(node.put(&[*key], Cell::inline(value))));
        page::set_lsn(bytes, Lsn(lsn));
        page::seal(bytes, salt);
    });
    Sealed { numbers: vec![number], bytes }
}

/// Returns the records of a leaf that was read, which must be intact.
fn records_of(bytes: &[u8], number: PageId, salt: Salt) -> Records {
    assert!(page::is_whole(bytes, number, salt), "page {}", number.0);
    assert_eq!(page::fault(bytes), None);
    let records = Node::new(bytes).unwrap().records();
    records.map(|(key, value)| (key[0], value.bytes.to_vec())).collect()
}

async fn read_records(out: &OutOfPlace, number: PageId) -> Records {
    let into = Arena::new(PAGE).buffer(0, PAGE);
    out.read(number, &into).await.unwrap();
    bytes::look(&into, |bytes| records_of(bytes, number, out.0.salt))
}

/// Returns a delta of these records; `None` if the page gets none.
fn begin(out: &OutOfPlace, number: PageId, records: &Records, lsn: u64) -> Option<Begun> {
    let mut draft = out.draft(number)?;
    let fits = records.iter().all(|(key, value)| draft.add(&[*key], value));
    fits.then(|| out.begin_delta(draft, TREE, Lsn(lsn)))
}

/// Returns between one and `most` records with new values, about half of which compress.
fn some_records(prng: &mut Prng, most: u64) -> Records {
    let record = |prng: &mut Prng| {
        let mut value = vec![prng.below(256) as u8; 20 + prng.below(60) as usize];
        let plain = value.len() / 2;
        value[plain..].fill_with(|| prng.below(256) as u8);
        (prng.below(30) as u8, value)
    };
    (0..1 + prng.below(most)).map(|_| record(prng)).collect()
}

/// Runs eight tasks that use pages of their own: they write them as a whole, add deltas, read, and commit.
/// Some write the whole page while its delta is on its way. Returns the records of all pages.
async fn use_pages(
    out: &OutOfPlace,
    handle: &Handle,
    pages: u64,
    before: &[Records],
    seed: u64,
) -> Vec<Records> {
    const TASKS: u64 = 8;
    let task = |task: u64| async move {
        let mut prng = Prng::new(100 * seed + task, "deltas");
        let mut model = before.to_vec();
        let own: Vec<u64> = (task..pages).step_by(TASKS as usize).collect();
        for step in 1..600 {
            let index = own[prng.below(own.len() as u64) as usize] as usize;
            let number = PageId(out.0.layout.data.0 + index as u64);
            let lsn = seed * 1_000_000 + step;
            match prng.below(20) {
                0 => out.commit().await.unwrap(),
                1..4 => assert_eq!(read_records(out, number).await, model[index], "page {index}"),
                4..8 => {
                    model[index].extend(some_records(&mut prng, 10));
                    let page = page_of(number, &model[index], lsn, out.0.salt);
                    out.write(&page).await.unwrap();
                }
                kind => {
                    let records = some_records(&mut prng, 4);
                    let Some(begun) = begin(out, number, &records, lsn) else { continue };
                    model[index].extend(records);
                    assert!(begin(out, number, &model[index], lsn).is_none(), "one is on its way");
                    let begun = [begun];
                    let base = async {
                        if kind < 11 {
                            assert_eq!(read_records(out, number).await, model[index], "page {index}");
                            out.write(&page_of(number, &model[index], lsn, out.0.salt)).await.unwrap();
                            assert_eq!(read_records(out, number).await, model[index], "page {index}");
                        }
                        Ok(())
                    };
                    let both: Vec<Write<'_>> = vec![Box::pin(out.write_deltas(&begun)), Box::pin(base)];
                    together(both).await.into_iter().for_each(|done| done.unwrap());
                    assert!(out.delta_under_way(number).is_none());
                }
            }
            handle.sleep_until(handle.now() + Nanos::from_micros(prng.below(60))).await;
        }
        model
    };
    let models = together((0..TASKS).map(task).collect()).await;
    (0..pages as usize).map(|index| models[index % TASKS as usize][index].clone()).collect()
}

/// The rule: a page reads as its newest base and all later deltas, at any time, after another opening, by a
/// repair with the map, and by one without it.
#[test]
fn pages_read_back_with_their_deltas() {
    for (units, is_bad) in
        [("unit=512B", false), ("unit=512B,compress=zstd,placement=sepbit", true), ("unit=1KiB", false)]
    {
        let options = with_place(&format!("out-of-place:victim=fifo,spare=40%,deltas=4,{units}"));
        let executor = Executor::new(JitterDrive::new(1_200, 5));
        let handle: Handle = executor.handle().into();
        let superblock = superblock(PAGE as u32, 1_200, &options);
        let layout = superblock.layout().unwrap();
        if is_bad {
            executor.with_device(|device| device.be_bad_from(layout.byte(0) / 4096));
        }
        let done = executor.block_on(async move {
            let made = OutOfPlace::create(&handle, shared(&handle), &superblock, layout, &options).await;
            let mut out = made.unwrap();
            let pages = superblock.pages - superblock.data_start().0;
            let mut model: Vec<Records> = vec![Records::new(); pages as usize];
            for (index, records) in model.iter().enumerate() {
                let page =
                    page_of(PageId(superblock.data_start().0 + index as u64), records, 0, superblock.salt());
                out.write(&page).await.unwrap();
            }
            for life in 0..3 {
                model = use_pages(&out, &handle, pages, &model, life + 1).await;
                assert!(out.pages_moved() > 50, "collection has moved {} pages", out.pages_moved());
                let DeltaCounters { written, read: fetched, consolidated } = out.delta_counters();
                assert!(
                    written > 500 && fetched > 500 && consolidated > 200,
                    "{written}, {fetched}, {consolidated}"
                );
                assert!(out.0.deltas.borrow().superseded() > 5);
                out.commit().await.unwrap();
                out.close().await;
                assert_eq!(out.fault(), None);
                let stored_map = read(&handle, layout, &superblock).await.unwrap();
                let mut in_parts = 0;
                let scattered = find_scattered(&handle, &layout, &superblock).await;
                for (index, records) in model.iter().enumerate() {
                    let number = PageId(superblock.data_start().0 + index as u64);
                    assert_eq!(read_records(&out, number).await, *records);
                    // A base in several parts, because hardly a segment was free, is found by the map only.
                    let units = units_of(&stored_map.addresses, &layout, number);
                    let base = out.0.deltas.borrow().known(number).unwrap().units;
                    let is_together = units[..usize::from(base)].is_sorted_by(|one, next| one + 1 == *next);
                    in_parts += u32::from(!is_together);
                    let maps = [&stored_map.addresses, &scattered];
                    for addresses in &maps[..1 + usize::from(is_together)] {
                        let page = (number, superblock.salt());
                        let bytes = read_page(&handle, addresses, &layout, page).await.unwrap();
                        assert_eq!(records_of(&bytes, number, superblock.salt()), *records, "page {index}");
                    }
                }
                assert!(in_parts < pages as u32 / 10, "{in_parts} of {pages}");
                out = OutOfPlace::new(&handle, shared(&handle), &superblock, layout, stored_map, &options)
                    .unwrap();
                assert_eq!(
                    out.draft(PageId(superblock.data_start().0)).map(|_| ()),
                    None,
                    "nothing is known yet"
                );
            }
        });
        done.unwrap();
    }
}

/// Returns a backend of pages in units of 512 bytes with this option, on which page 0 has one record.
async fn one_page(handle: &Handle, deltas: u32) -> (OutOfPlace, PageId, Superblock) {
    let options = with_place(&format!("out-of-place:unit=512B,deltas={deltas}"));
    let superblock = superblock(PAGE as u32, 1_200, &options);
    let layout = superblock.layout().unwrap();
    let out = OutOfPlace::create(handle, shared(handle), &superblock, layout, &options).await.unwrap();
    let number = superblock.data_start();
    out.write(&page_of(number, &Records::from([(0, vec![1])]), 1, superblock.salt())).await.unwrap();
    (out, number, superblock)
}

/// The rule: a page has no more deltas than the option says, than its base leaves slots, and than surely fit
/// into the leaf. With all slots taken it is still told from an uncompressed page.
#[test]
fn deltas_are_limited_by_the_option_the_slots_and_the_leaf() {
    let count = |deltas: u32, bytes: usize| {
        let executor = Executor::new(JitterDrive::new(1_200, 5));
        let handle: Handle = executor.handle().into();
        let done = executor.block_on(async move {
            let (out, number, _) = one_page(&handle, deltas).await;
            let mut model = Records::from([(0, vec![1])]);
            let mut added = 0;
            for key in 1.. {
                let records = Records::from([(key, vec![key; bytes])]);
                let Some(begun) = begin(&out, number, &records, u64::from(key)) else { break };
                out.write_deltas(&[begun]).await.unwrap();
                model.extend(records);
                added += 1;
                assert_eq!(read_records(&out, number).await, model);
                let into = Arena::new(PAGE).buffer(0, PAGE);
                assert_eq!(out.read_run(number, 1, &into).await, [true]);
                bytes::look(&into, |bytes| assert_eq!(records_of(bytes, number, out.0.salt), model));
            }
            added
        });
        done.unwrap()
    };
    assert_eq!([count(3, 10), count(127, 10), count(127, 460), count(3, 477)], [3, 7, 7, 0]);
}

/// The rule: a delta of an older base, which a drive returns that lost a write, is not applied.
#[test]
fn a_delta_of_an_older_base_is_refused() {
    let executor = Executor::new(JitterDrive::new(1_200, 5));
    let handle: Handle = executor.handle().into();
    let done = executor.block_on(async move {
        let (out, number, superblock) = one_page(&handle, 3).await;
        let begun = begin(&out, number, &Records::from([(1, vec![1])]), 2).unwrap();
        out.write_deltas(&[begun]).await.unwrap();
        let first = out.first_unit(number);
        let old = out.0.addresses.borrow().all()[first as usize + 1];
        out.write(&page_of(number, &Records::from([(0, vec![2])]), 3, superblock.salt())).await.unwrap();
        assert_eq!(read_records(&out, number).await, Records::from([(0, vec![2])]));
        // The map names the unit of the old delta, as if the write of a new one there had been lost.
        out.0.addresses.borrow_mut().set(first + 1, old);
        let into = Arena::new(PAGE).buffer(0, PAGE);
        assert_eq!(out.read(number, &into).await, Err(IoError::Corrupt));
    });
    done.unwrap();
}
