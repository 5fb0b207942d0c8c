//! Tests that reads return the last version of each page while garbage collection moves pages, and that
//! commits of the map are atomic.

use super::jitter_drive::JitterDrive;
use super::*;
use crate::format::layout::FORMAT;
use crate::format::page::{self, Kind};
use crate::format::sizing::fit;
use crate::wait::together;
use crate::{Lsn, Options};
use fulgurite_base::{Lpn, Nanos, Prng};
use fulgurite_device::Executor;
use std::pin::Pin;

pub(super) fn superblock(page_bytes: u32, drive_blocks: u64, options: &Options) -> Superblock {
    let superblock = Superblock {
        format: FORMAT,
        generation: 2,
        page_bytes,
        block_bytes: 4096,
        pages: 0,
        log_pages: 64,
        double_write_pages: 128,
        redo: Lsn(0),
        log_end: Lsn(0),
        log_crc: 0,
        clean: true,
        next_large: 1,
        identity: 77,
        out_of_place: None,
    };
    fit(superblock, drive_blocks * 4096, 0, options).expect("the drive is large enough")
}

/// On a drive of 16,384 blocks, the default segment has 64 blocks. Six segments never hold pages permanently.
/// They fit into the spare share if segments have 256 blocks, but not if segments have 4,096. The size of
/// units makes no difference.
#[test]
fn segments_match_the_erase_unit_if_there_is_space() {
    for (unit, block_units) in [("4KiB", 1), ("1KiB", 4), ("512B", 8)] {
        let options = with_place(&format!("out-of-place:unit={unit}"));
        let plain = superblock(4096, 16_384, &options);
        for (erased, segment) in [(0, 64), (1, 64), (64, 64), (200, 256), (256, 256), (4_096, 64)] {
            let plain = Superblock { out_of_place: None, ..plain.clone() };
            let superblock = fit(plain, 16_384 * 4096, erased * 4096, &options).unwrap();
            let shape = superblock.out_of_place.unwrap();
            assert_eq!(shape.segment_units, segment * block_units, "{erased} blocks erased at once");
            let layout = superblock.layout().unwrap();
            assert_eq!(
                layout.first % u64::from(shape.segment_units),
                0,
                "segments begin at their own multiples"
            );
            assert!(layout.end() <= 16_384 * 4096);
        }
    }
}

pub(super) fn with_place(place: &str) -> Options {
    Options { place: place.parse().expect("a valid place"), ..Options::default() }
}

/// The default unit has 1 KiB if the map then takes at most 32 MiB. Otherwise it is larger, but at most a
/// block.
#[test]
fn units_are_larger_on_larger_drives() {
    for (gib, page_bytes, unit) in
        [(1, 4096, 1024), (2, 4096, 1024), (4, 4096, 2048), (6, 16_384, 4096), (100, 16_384, 4096)]
    {
        let superblock = superblock(page_bytes, gib << 18, &Options::default());
        assert_eq!(superblock.out_of_place.unwrap().unit_bytes, unit, "{gib} GiB");
    }
}

#[test]
fn invalid_units_are_refused() {
    let fits = |unit: &str, page_bytes| {
        let plain = superblock(page_bytes, 16_384, &Options::default());
        let plain = Superblock { out_of_place: None, ..plain };
        fit(plain, 16_384 * 4096, 0, &with_place(&format!("out-of-place:unit={unit}"))).is_ok()
    };
    assert!(["512B", "1KiB", "4KiB"].iter().all(|unit| fits(unit, 4096) && fits(unit, 16_384)));
    // These units are not a power of two, or larger than a block.
    assert!(["1000B", "3KiB", "8KiB"].iter().all(|unit| !fits(unit, 4096) && !fits(unit, 16_384)));
}

pub(super) fn shared(handle: &Handle) -> (Health, Rc<Barrier>) {
    let health = Health::default();
    (health.clone(), Rc::new(Barrier::new(handle.clone(), health)))
}

/// Creates a page whose contents are derived from its version. Versions 0, 3, … compress well, versions 2, 5,
/// … compress to half their size, and the others not at all.
fn page_of(number: PageId, version: u64, page_bytes: usize, salt: Salt) -> Sealed {
    let bytes = Arena::new(page_bytes).buffer(0, page_bytes);
    bytes::change(&bytes, |bytes| {
        page::init(bytes, Kind::Leaf, 0, number, 9);
        let mut prng = Prng::new(version, "page");
        let random = [100, page_bytes - 100, page_bytes / 2][version as usize % 3];
        bytes[100..100 + random].fill_with(|| prng.below(256) as u8);
        page::set_lsn(bytes, Lsn(version));
        page::seal(bytes, salt);
    });
    Sealed { numbers: vec![number], bytes }
}

/// Reads a page and returns its version; 0 if the page was never written.
async fn version_of(out: &OutOfPlace, number: PageId, superblock: &Superblock) -> u64 {
    let len = superblock.page_bytes as usize;
    let into = Arena::new(len).buffer(0, len);
    if out.read(number, &into).await.is_err() {
        return 0;
    }
    bytes::look(&into, |bytes| {
        assert!(page::is_whole(bytes, number, superblock.salt()), "page {} is not whole", number.0);
        page::lsn(bytes).0
    })
}

/// Reads several pages together, and checks that all pages read are intact. Returns the version of the first
/// one, or `None` if it could not be read.
async fn version_in_run(
    out: &OutOfPlace,
    first: PageId,
    pages: usize,
    superblock: &Superblock,
) -> Option<u64> {
    let size = superblock.page_bytes as usize;
    let into = Arena::new(pages * size).buffer(0, pages * size);
    let came = out.read_run(first, pages, &into).await;
    for index in (0..pages).filter(|index| came[*index]) {
        let number = PageId(first.0 + index as u64);
        bytes::look(&into.part(index * size, size), |bytes| {
            assert!(page::is_whole(bytes, number, superblock.salt()), "page {} is not whole", number.0);
        });
    }
    came[0].then(|| bytes::look(&into.part(0, size), page::lsn).0)
}

/// Runs eight tasks that write pages of their own, read or trim some of them, and commit. Returns the
/// versions of all pages.
async fn use_pages(
    out: &OutOfPlace,
    handle: &Handle,
    superblock: &Superblock,
    seed: u64,
    before: &[u64],
) -> Vec<u64> {
    const TASKS: u64 = 8;
    let pages = superblock.pages - superblock.data_start().0;
    let task = |task: u64| async move {
        let mut prng = Prng::new(seed * 100 + task, "out of place");
        let mut versions = before.to_vec();
        let own: Vec<u64> = (task..pages).step_by(TASKS as usize).collect();
        for step in 0..1_500 {
            let index = own[prng.below(own.len() as u64) as usize];
            let number = PageId(superblock.data_start().0 + index);
            match prng.below(20) {
                0 => {
                    out.trim(&[number]);
                    versions[index as usize] = 0;
                }
                1 => out.commit().await.unwrap(),
                2..4 => assert_eq!(version_of(out, number, superblock).await, versions[index as usize]),
                4 => {
                    let run = 1 + prng.below(12.min(pages - index)) as usize;
                    if let Some(version) = version_in_run(out, number, run, superblock).await {
                        assert_eq!(version, versions[index as usize], "page {} of {run}", number.0);
                    }
                }
                _ => {
                    let version = 1 + seed * 1_000_000 + step * TASKS + task;
                    let page = page_of(number, version, superblock.page_bytes as usize, superblock.salt());
                    out.write(&page).await.unwrap();
                    versions[index as usize] = version;
                }
            }
            let wait = Nanos::from_micros(prng.below(60));
            handle.sleep_until(handle.now() + wait).await;
        }
        versions
    };
    let versions = together((0..TASKS).map(task).collect()).await;
    (0..pages as usize).map(|index| versions[index % TASKS as usize][index]).collect()
}

async fn assert_versions(out: &OutOfPlace, superblock: &Superblock, versions: &[u64]) {
    for (index, version) in versions.iter().enumerate() {
        let number = PageId(superblock.data_start().0 + index as u64);
        assert_eq!(version_of(out, number, superblock).await, *version, "page {}", number.0);
    }
}

#[test]
fn pages_read_back_during_collection() {
    for is_bad in [false, true] {
        use_and_open_again("unit=4KiB", is_bad);
    }
}

#[test]
fn compressed_pages_read_back_during_collection() {
    use_and_open_again("unit=1KiB", false);
    use_and_open_again("unit=512B,compress=zstd,placement=sepbit", true);
}

/// Uses a store and opens it again. If `is_bad` is true, some addresses of the drive cannot be written, so
/// that pages and copies are written at other addresses.
fn use_and_open_again(units: &str, is_bad: bool) {
    let options = with_place(&format!("out-of-place:victim=fifo,spare=40%,{units}"));
    for (page_bytes, drive_units) in [(4096, 1_200), (16_384, 4_200)] {
        let executor = Executor::new(JitterDrive::new(drive_units, u64::from(page_bytes)));
        let handle: Handle = executor.handle().into();
        let superblock = superblock(page_bytes, drive_units, &options);
        let layout = superblock.layout().unwrap();
        if is_bad {
            executor.with_device(|device| device.be_bad_from(layout.byte(0) / 4096));
        }
        let options = options.clone();
        let done = executor.block_on(async move {
            let made = OutOfPlace::create(&handle, shared(&handle), &superblock, layout, &options).await;
            let mut out = made.unwrap();
            let mut versions = vec![0; (superblock.pages - superblock.data_start().0) as usize];
            for life in 0..3 {
                versions = use_pages(&out, &handle, &superblock, life, &versions).await;
                assert!(out.pages_moved() > 50, "collection has moved {} pages", out.pages_moved());
                assert_versions(&out, &superblock, &versions).await;
                out.commit().await.unwrap();
                out.close().await;
                // The next opening finds the durable map.
                let stored_map = read(&handle, layout, &superblock).await.unwrap();
                out = OutOfPlace::new(&handle, shared(&handle), &superblock, layout, stored_map, &options)
                    .unwrap();
                assert_eq!(out.fault(), None);
                assert_versions(&out, &superblock, &versions).await;
            }
        });
        done.unwrap();
    }
}

/// The log and the map are in the drive's first stream, because they are overwritten sooner than pages. No
/// page is in the first stream if the drive has another one. If the drive has fewer streams than the
/// placement policy, the last streams of the policy share one.
#[test]
fn pages_share_no_stream_with_the_log() {
    for (out, of_drive, first, last) in [
        ("out-of-place:spare=40%", 1, 0, 0),
        ("out-of-place:spare=40%", 4, 1, 1),
        // The sixth class is for pages that are far older than others, which do not occur here.
        ("out-of-place:placement=sepbit,spare=40%", 9, 1, 5),
        ("out-of-place:placement=sepbit,spare=40%", 3, 1, 2),
    ] {
        let options = Options { place: out.parse().unwrap(), ..Options::default() };
        let executor = Executor::new(JitterDrive::new(2_400, 1).with_streams(of_drive));
        let handle: Handle = executor.handle().into();
        let superblock = superblock(4096, 2_400, &options);
        let layout = superblock.layout().unwrap();
        let done = executor.block_on(async move {
            let made = OutOfPlace::create(&handle, shared(&handle), &superblock, layout, &options).await;
            let out = made.unwrap();
            let none = vec![0; (superblock.pages - superblock.data_start().0) as usize];
            use_pages(&out, &handle, &superblock, 0, &none).await;
            out.close().await;
        });
        done.unwrap();
        executor.with_device(|device| {
            let segments = Lpn(layout.byte(0) / 4096);
            let of_pages = device.streams(|lpn| lpn >= segments);
            assert!(of_pages.into_iter().eq(first..=last), "{out}, {of_drive} streams");
            assert!(device.streams(|lpn| lpn < segments).into_iter().eq([0]), "{out}, {of_drive} streams");
        });
    }
}

/// Checks that every page in the map on the drive is intact.
async fn assert_durable(handle: &Handle, superblock: &Superblock) {
    let layout = superblock.layout().unwrap();
    let stored_map = read(handle, layout, superblock).await.unwrap();
    for number in (superblock.data_start().0..superblock.pages).map(PageId) {
        if !units_of(&stored_map.addresses, &layout, number).is_empty() {
            let bytes = read_page(handle, &stored_map.addresses, &layout, (number, superblock.salt())).await;
            let is_whole = bytes.is_some_and(|bytes| page::is_whole(&bytes, number, superblock.salt()));
            assert!(is_whole, "page {} is lost if the power goes now", number.0);
        }
    }
}

#[test]
fn a_write_during_a_move_stays_the_newer_version() {
    let options = Options::default();
    for seed in 0..60 {
        let executor = Executor::new(JitterDrive::new(4_200, seed));
        let handle: Handle = executor.handle().into();
        let superblock = superblock(4096, 4_200, &options);
        let layout = superblock.layout().unwrap();
        let options = options.clone();
        let done = executor.block_on(async move {
            let out =
                OutOfPlace::create(&handle, shared(&handle), &superblock, layout, &options).await.unwrap();
            let number = |index: u64| PageId(superblock.data_start().0 + index);
            let write = async |index: u64, version: u64| {
                out.write(&page_of(number(index), version, 4096, superblock.salt())).await.unwrap();
            };
            for index in 0..100 {
                write(index, 1).await;
            }
            out.commit().await.unwrap();
            let victim = out.0.ftl.borrow_mut().pick(fulgurite_ftl::UnitId(0)).expect("a segment is full");
            let page = |unit: u32| u64::from(unit / layout.page_units);
            let mut valid: Vec<u64> = out.next_of(victim).iter().map(|(unit, _)| page(*unit)).collect();
            valid.dedup();
            assert!(valid.len() > 10);
            let collects = async {
                while out.move_slice(victim).await.unwrap() {}
                out.give_back(victim).await.unwrap();
                assert_durable(&handle, &superblock).await;
            };
            let writes = async {
                let later = |at: u64| handle.now() + Nanos::from_micros((seed * 7 + at * 13) % 600);
                let all = valid.iter().map(|index| async {
                    handle.sleep_until(later(*index)).await;
                    write(*index, 2).await;
                });
                together(all.collect()).await;
            };
            let both: Vec<std::pin::Pin<Box<dyn Future<Output = ()>>>> =
                vec![Box::pin(collects), Box::pin(writes)];
            together(both).await;
            for index in 0..100 {
                let version = if valid.contains(&index) { 2 } else { 1 };
                assert_eq!(
                    version_of(&out, number(index), &superblock).await,
                    version,
                    "page {index}, seed {seed}"
                );
            }
            assert_eq!(out.fault(), None);
        });
        done.unwrap();
    }
}

/// The rule: if writes of a page overlap, reads find the version that was sent last, whichever write ends last, and
/// also if a write is repeated at another address because the drive failed. A page that is trimmed during its write
/// has no address afterwards.
#[test]
fn a_write_that_ends_late_brings_no_older_version_back() {
    let options = with_place("out-of-place:unit=4KiB,spare=40%");
    let executor = Executor::new(JitterDrive::new(1_200, 3));
    let handle: Handle = executor.handle().into();
    let superblock = superblock(4096, 1_200, &options);
    let layout = superblock.layout().unwrap();
    executor.with_device(|device| device.be_bad_from(layout.byte(0) / 4096));
    let done = executor.block_on(async move {
        let out = OutOfPlace::create(&handle, shared(&handle), &superblock, layout, &options).await.unwrap();
        for round in 0..3_000 {
            let number = PageId(superblock.data_start().0 + round % 50);
            let page = |version| page_of(number, version, 4096, superblock.salt());
            let (first, last) = (page(3 * round + 1), page(3 * round + 2));
            together(vec![out.write(&first), out.write(&last)]).await.into_iter().for_each(Result::unwrap);
            assert_eq!(version_of(&out, number, &superblock).await, 3 * round + 2);
            let trimmed = page(3 * round + 3);
            let both: Vec<Pin<Box<dyn Future<Output = ()>>>> = vec![
                Box::pin(async { out.write(&trimmed).await.unwrap() }),
                Box::pin(async { out.trim(&[number]) }),
            ];
            together(both).await;
            // The page is there if the write waited for garbage collection and was sent after the trim.
            assert_eq!(out.fault(), None, "round {round}");
        }
        out.close().await;
    });
    done.unwrap();
}

/// Creates a map with two commits, the first one of one block, the second one of three. Returns the map
/// before the second.
async fn two_commits(handle: &Handle, superblock: &Superblock, options: &Options) -> (OutOfPlace, Vec<u32>) {
    let layout = superblock.layout().unwrap();
    let out = OutOfPlace::create(handle, shared(handle), superblock, layout, options).await.unwrap();
    let write = async |from: u64, count: u64| {
        for index in from..from + count {
            let number = PageId(superblock.data_start().0 + index);
            out.write(&page_of(number, index + 1, 4096, superblock.salt())).await.unwrap();
        }
        out.commit().await.unwrap();
    };
    write(0, 10).await;
    let before = out.0.addresses.borrow().all().to_vec();
    write(0, 1_200).await;
    (out, before)
}

#[test]
fn commits_of_the_map_are_atomic() {
    let options = with_place("out-of-place:unit=4KiB");
    let executor = Executor::new(JitterDrive::new(4_000, 1));
    let handle: Handle = executor.handle().into();
    let superblock = superblock(4096, 4_000, &options);
    let layout = superblock.layout().unwrap();
    let done = executor.block_on(async move {
        let (out, before) = two_commits(&handle, &superblock, &options).await;
        let after = out.0.addresses.borrow().all().to_vec();
        assert_eq!(read(&handle, layout, &superblock).await.unwrap().addresses, after);
        // The first journal contains the snapshot's own commit, the first commit, and the three blocks of the
        // second.
        let half = layout.map + layout.half();
        for block in [1, 2, 3, 4] {
            let at = (half + 1 + layout.snapshot + block) * 4096;
            let mut bytes = vec![0; 4096];
            Source::read(&handle, at, &mut bytes).await.unwrap();
            crate::media::image::Sink::write(&handle, at, &[0; 4096]).await.unwrap();
            let found = read(&handle, layout, &superblock).await;
            if block == 1 {
                let lost = Error::corrupt(
                    superblock.data_start(),
                    "the map of pages: a commit of its journal is damaged",
                );
                // A commit follows that is not the one after the last complete commit. No crash causes that.
                assert_eq!(found, Err(lost));
                let shape = Segmentation { commit: 2, ..layout.shape };
                let known = superblock_with(&superblock, shape);
                assert!(
                    read(&handle, known.layout().unwrap(), &known).await.is_err(),
                    "the superblock knows of it"
                );
            } else {
                let found = found.unwrap();
                assert!(found.addresses == before, "block {block}");
                let next = (found.number + 1, found.next_block);
                assert_eq!(next, (3, layout.journal), "nothing is written among what was cut off");
            }
            crate::media::image::Sink::write(&handle, at, &bytes).await.unwrap();
        }
    });
    done.unwrap();
}

fn superblock_with(superblock: &Superblock, shape: Segmentation) -> Superblock {
    Superblock { out_of_place: Some(shape), ..superblock.clone() }
}

#[test]
fn damage_to_the_map_is_refused_or_harmless() {
    let options = with_place("out-of-place:unit=4KiB");
    let executor = Executor::new(JitterDrive::new(4_000, 1));
    let handle: Handle = executor.handle().into();
    let superblock = superblock(4096, 4_000, &options);
    let done = executor.block_on(async move {
        let (out, _) = two_commits(&handle, &superblock, &options).await;
        let after = out.0.addresses.borrow().all().to_vec();
        let known = superblock_with(&superblock, out.shape());
        let layout = known.layout().unwrap();
        let (mut refused, mut harmless) = (0, 0);
        for block in layout.map..layout.map + 2 * layout.half() {
            let mut bytes = vec![0; 4096];
            Source::read(&handle, block * 4096, &mut bytes).await.unwrap();
            let mut damaged = bytes.clone();
            damaged[50] ^= 1;
            crate::media::image::Sink::write(&handle, block * 4096, &damaged).await.unwrap();
            match read(&handle, layout, &known).await {
                Ok(stored_map) if stored_map.addresses == after => harmless += 1,
                Ok(_) => panic!("block {block}: another map"),
                Err(Error::Corrupt { .. }) => refused += 1,
                Err(error) => panic!("block {block}: {error}"),
            }
            crate::media::image::Sink::write(&handle, block * 4096, &bytes).await.unwrap();
        }
        // Every block of the snapshot and the commits is needed, but only one of the two heads.
        assert_eq!(refused, layout.snapshot + 5);
        assert_eq!(harmless, 2 * layout.half() - refused);
    });
    done.unwrap();
}

#[test]
fn contiguous_pages_are_read_with_one_command() {
    let options = Options::default();
    for page_bytes in [4096, 16_384] {
        let executor = Executor::new(JitterDrive::new(4_200, 1));
        let handle: Handle = executor.handle().into();
        let superblock = superblock(page_bytes, 4_200, &options);
        let layout = superblock.layout().unwrap();
        let options = options.clone();
        let done = executor.block_on(async move {
            let made = OutOfPlace::create(&handle, shared(&handle), &superblock, layout, &options).await;
            let out = made.unwrap();
            let number = |index: u64| PageId(superblock.data_start().0 + index);
            // The four pages fit into one segment. These versions do not compress.
            let version = |index: u64| 3 * index + 1;
            for index in 0..4 {
                let page = page_of(number(index), version(index), page_bytes as usize, superblock.salt());
                out.write(&page).await.unwrap();
            }
            let (before, _) = handle.conservation();
            for index in 0..4 {
                let read = version_in_run(&out, number(index), 4 - index as usize, &superblock).await;
                assert_eq!(read, Some(version(index)));
            }
            assert_eq!(handle.conservation().0 - before, 4, "each run is one command");
            // A page that was never written cannot be read, and does not affect the others.
            assert_eq!(version_in_run(&out, number(3), 2, &superblock).await, Some(version(3)));
            assert_eq!(version_in_run(&out, number(4), 2, &superblock).await, None);
        });
        done.unwrap();
    }
}
