//! Tests damage on the drive: a store returns the right data or a clear error. It never panics, hangs or
//! returns wrong data.

use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{self, Answer, DATA, DOUBLE_WRITE, LOG, Sample, State, ask, is_clear};
use crate::common::{salt, seal};
use fulgurite_base::Prng;
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, Error, Store};
use std::rc::Rc;

/// Checks that an answer is right or reports clearly what could not be read, and that `check` finds every
/// damage that reading found. Any of `states` is right, because a lost end of the log may be undetectable.
/// Returns whether the damage was noticed.
fn judge(answer: Result<Answer, Error>, states: &[State], what: &str) -> bool {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            assert!(is_clear(&error), "{what}: {error:?}");
            return true;
        }
    };
    let mut failed = false;
    let fits = |state: &State| {
        answer.tables.iter().all(|(table, read)| read.as_ref().map_or(true, |read| *read == state[table]))
    };
    assert!(states.iter().any(fits), "{what}: wrong data");
    for (table, read) in &answer.tables {
        if let Err(error) = read {
            assert!(is_clear(error), "{what}: {table}: {error:?}");
            failed = true;
        }
    }
    match &answer.check {
        Err(error) => assert!(is_clear(error), "{what}: check: {error:?}"),
        Ok(report) => {
            assert!(!failed || !report.problems.is_empty(), "{what}: reading failed and `check` is content");
            let located =
                report.problems.iter().any(|problem| problem.page.is_some() && problem.lost.is_some());
            assert!(!failed || located, "{what}: no page and no keys: {:?}", report.problems);
            return !report.problems.is_empty();
        }
    }
    true
}

/// Returns the states that are right if this page is damaged: all of them for a page of the log, because a
/// damaged end of the log may look as if it was never written.
fn right(sample: &Sample, page: usize) -> &[State] {
    let in_log = (LOG..DOUBLE_WRITE).contains(&page);
    if in_log { &sample.states } else { &sample.states[sample.states.len() - 1..] }
}

fn flip(sample: &Sample, at: usize) -> bool {
    let mut device = Patched::new(&sample.image);
    device.patch(at, &[sample.image[at] ^ (1 << (at % 8))]);
    judge(ask(device), right(sample, at / PAGE), &format!("byte {} of page {}", at % PAGE, at / PAGE))
}

/// Returns the pages that are not all zeros.
fn used(sample: &Sample) -> Vec<usize> {
    let pages = sample.image.chunks(PAGE).enumerate();
    pages.filter(|(_, page)| page.iter().any(|byte| *byte != 0)).map(|(index, _)| index).collect()
}

fn kind(sample: &Sample, page: usize) -> (u8, u8, u8) {
    let bytes = &sample.image[page * PAGE..];
    // A page is described by its kind, level and tree.
    if page < DATA {
        (0, (page >= LOG).into(), (page >= DOUBLE_WRITE).into())
    } else {
        (bytes[4], bytes[5], bytes[32])
    }
}

/// Returns one page of each kind, level and tree, and one of each area.
fn kinds(sample: &Sample) -> Vec<usize> {
    let mut seen = std::collections::BTreeSet::new();
    used(sample).into_iter().filter(|page| seen.insert(kind(sample, *page))).collect()
}

#[test]
fn the_samples_have_everything() {
    let (closed, crashed) = (sample::closed(), sample::crashed());
    let kinds: Vec<_> = kinds(&closed).into_iter().map(|page| kind(&closed, page)).collect();
    for wanted in [(3, 0, 0), (1, 0, 0), (1, 0, 1), (2, 1, 2), (2, 2, 2), (1, 0, 2), (0, 1, 0)] {
        assert!(kinds.contains(&wanted), "{wanted:?} is missing: {kinds:?}");
    }
    for sample in [&closed, &crashed] {
        assert!(!judge(ask(Patched::new(&sample.image)), std::slice::from_ref(sample.state()), "unharmed"));
    }
    assert!(crashed.states.len() > 10);
}

/// Returns the bytes that the test flips: the headers of one page of each kind, every 17th byte of the rest
/// of these pages, and every 1021st byte of the drive.
fn some_bytes(sample: &Sample) -> Vec<usize> {
    let mut bytes: Vec<usize> = Vec::new();
    for page in kinds(sample) {
        bytes.extend((0..PAGE).filter(|at| *at < 130 || at % 17 == 0).map(|at| page * PAGE + at));
    }
    let everything = used(sample).into_iter().flat_map(|page| page * PAGE..(page + 1) * PAGE);
    bytes.extend(everything.step_by(1021));
    bytes
}

#[test]
fn flipped_bytes_of_a_closed_store_are_noticed_or_harmless() {
    let sample = sample::closed();
    let found = some_bytes(&sample).into_iter().filter(|at| flip(&sample, *at)).count();
    assert!(found > 1000, "{found}");
}

#[test]
fn flipped_bytes_of_a_store_in_use_are_noticed_or_harmless() {
    let sample = sample::crashed();
    let found = some_bytes(&sample).into_iter().filter(|at| flip(&sample, *at)).count();
    assert!(found > 1000, "{found}");
}

/// Flips every byte of the used pages, one at a time, and prints how many were noticed.
fn flip_all(sample: &Sample) {
    let bytes = used(sample).into_iter().flat_map(|page| page * PAGE..(page + 1) * PAGE);
    let cases = bytes.clone().count();
    let found = bytes.filter(|at| flip(sample, *at)).count();
    println!("{cases} bytes flipped, {found} noticed");
}

#[test]
#[ignore = "minutes: cargo test --release -p fulgurite-engine --test engine -- --ignored --nocapture every_byte"]
fn every_byte_of_a_closed_store_flipped_is_noticed_or_harmless() {
    flip_all(&sample::closed());
}

#[test]
#[ignore = "minutes, as the one for a closed store"]
fn every_byte_of_a_store_in_use_flipped_is_noticed_or_harmless() {
    flip_all(&sample::crashed());
}

#[test]
fn zeroed_pages_are_noticed_or_harmless() {
    for sample in [sample::closed(), sample::crashed()] {
        for page in used(&sample) {
            let mut device = Patched::new(&sample.image);
            device.put_page(page, &[0; PAGE]);
            let found = judge(ask(device), right(&sample, page), &format!("page {page} zeroed"));
            let is_node = page >= DATA && matches!(kind(&sample, page).0, 1 | 2);
            assert!(
                found || !is_node || sample.states.len() > 1,
                "page {page}: a node is gone and nobody has noticed"
            );
        }
    }
}

#[test]
fn swapped_pages_are_noticed_or_harmless() {
    for sample in [sample::closed(), sample::crashed()] {
        let pages = used(&sample);
        let mut prng = Prng::new(5, "swaps");
        let neighbours = pages.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>();
        let mut one = || pages[prng.below(pages.len() as u64) as usize];
        let others: Vec<_> = (0..300).map(|_| (one(), one())).collect();
        for (a, b) in neighbours.into_iter().chain(others) {
            let mut device = Patched::new(&sample.image);
            device.put_page(a, &sample.image[b * PAGE..][..PAGE]);
            device.put_page(b, &sample.image[a * PAGE..][..PAGE]);
            let states = if right(&sample, a).len() > 1 { right(&sample, a) } else { right(&sample, b) };
            judge(ask(device), states, &format!("pages {a} and {b} swapped"));
        }
    }
}

#[test]
fn a_truncated_drive_is_refused() {
    let sample = sample::crashed();
    for pages in 1..sample::PAGES {
        let cut = Rc::new(sample.image[..pages * PAGE].to_vec());
        match ask(Patched::new(&cut)).map(drop) {
            Err(Error::Options(what)) => assert!(what.contains("cut off"), "{what}"),
            Err(Error::NotAStore | Error::Io(_)) => assert!(pages <= 16, "{pages} pages"),
            other => panic!("{pages} pages: {other:?}"),
        }
    }
}

/// The rule: an old version of a page is noticed if its fences or its level do not match its parent, or if it
/// is a log block or a superblock. It has a correct checksum. An old leaf with the same fences is accepted,
/// because nothing else records its age.
#[test]
fn old_versions_of_pages_are_noticed_if_their_parents_differ() {
    let (old, new) = (sample::closed(), sample::closed_later());
    let fences = |image: &[u8], page: usize| {
        let page = &image[page * PAGE..(page + 1) * PAGE];
        let len = |at: usize| usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
        (page[5], page[PAGE - len(48) - len(50)..].to_vec())
    };
    let mut noticed = 0;
    for page in DATA..sample::PAGES {
        let before = &old.image[page * PAGE..][..PAGE];
        if before == &new.image[page * PAGE..][..PAGE] || before[4] == 0 {
            continue;
        }
        let mut device = Patched::new(&new.image);
        device.put_page(page, before);
        let answer = ask(device);
        // A page that was freed since is unreachable, so its contents do not matter.
        let is_node = matches!(before[4], 1 | 2) && matches!(new.image[page * PAGE + 4], 1 | 2);
        if is_node && fences(&old.image, page) != fences(&new.image, page) {
            let answer = answer.expect("the store opens");
            assert!(!answer.check.unwrap().problems.is_empty(), "page {page}");
            let failed = answer.tables.iter().filter(|(_, read)| read.is_err()).count();
            assert!(failed > 0, "page {page}: wrong data");
            noticed += 1;
        }
    }
    assert!(noticed > 0, "no page was split in between");
}

/// The rule: if two intact versions of a page are on the drive, a read that returns the version from another
/// address is noticed.
#[test]
fn misdirected_versions_of_a_page_are_noticed() {
    for sample in [sample::closed_later(), sample::closed_later_out_of_place()] {
        let page = |place: usize| &sample.image[place * PAGE..][..PAGE];
        let is_version = |one: usize, other: usize| {
            matches!(page(one)[4], 1..=3)
                && page(one)[4..16] == page(other)[4..16]
                && page(one) != page(other)
        };
        let places = DOUBLE_WRITE..sample.image.len() / PAGE;
        let pairs = places.clone().flat_map(|one| places.clone().map(move |other| (one, other)));
        let (mut versions, mut noticed) = (0, 0);
        for (one, other) in pairs.filter(|(one, other)| is_version(*one, *other)) {
            let mut device = Patched::new(&sample.image);
            device.put_page(one, page(other));
            versions += 1;
            let what = format!("a version of page {one} from page {other}");
            noticed += usize::from(judge(ask(device), right(&sample, one), &what));
        }
        assert!(versions >= 20 && noticed * 4 > versions, "{noticed} of {versions}");
    }
}

#[test]
fn unknown_versions_and_foreign_drives_are_refused() {
    let sample = sample::closed();
    let with_at = |places: &[usize], changes: &[(usize, u8)]| {
        let mut image = sample.image.to_vec();
        for at in places.iter().copied() {
            changes.iter().for_each(|(byte, value)| image[at + byte] = *value);
            image[at + 16..at + 20].fill(0);
            let crc = crc32c::crc32c(&image[at..at + 128]);
            image[at + 16..at + 20].copy_from_slice(&crc.to_le_bytes());
        }
        Patched::new(&Rc::new(image))
    };
    let with = |changes: &[(usize, u8)]| with_at(&[0, 65536], changes);
    // A superblock of another software version makes the whole store refused, even if the other superblock is
    // readable.
    for places in [&[0, 65536][..], &[0], &[65536]] {
        let refused = ask(with_at(places, &[(20, 77)])).map(drop);
        assert_eq!(refused, Err(Error::Version { found: 77, known: 8 }), "{places:?}");
    }
    // A store of an older format is read as it is if it writes in place. Out of place, pages of format 1 are
    // not bound to their addresses.
    for format in [1, 2, 3, 4, 5, 6, 7] {
        let older = ask(with(&[(20, format)])).unwrap();
        assert_eq!(older.check.unwrap().problems, []);
        assert!(older.tables.iter().all(|(_, read)| read.is_ok()));
    }
    assert_eq!(ask(with(&[(20, 1), (85, 1)])).map(drop), Err(Error::Version { found: 1, known: 8 }));
    let mut prng = Prng::new(1, "foreign");
    let foreign: Vec<u8> = (0..sample::PAGES * PAGE).map(|_| prng.below(256) as u8).collect();
    assert_eq!(ask(Patched::new(&Rc::new(foreign))).map(drop), Err(Error::NotAStore));
    assert_eq!(ask(Patched::new(&Rc::new(vec![0; sample::PAGES * PAGE]))).map(drop), Err(Error::NotAStore));
}

/// The rule: on pages with a correct checksum and invalid contents every operation ends, with or without an
/// error.
#[test]
fn invalid_pages_cause_no_panic() {
    for sample in [sample::closed(), sample::crashed()] {
        let salt = salt(&sample.image);
        let nodes: Vec<usize> = used(&sample).into_iter().filter(|page| *page >= DATA).collect();
        let mut prng = Prng::new(3, "hostile");
        for _ in 0..500 {
            let page = nodes[prng.below(nodes.len() as u64) as usize];
            let mut bytes = sample.image[page * PAGE..][..PAGE].to_vec();
            for _ in 0..=prng.below(4) {
                let at = if prng.below(2) == 0 { 4 + prng.below(140) } else { prng.below(PAGE as u64) };
                bytes[at as usize] = prng.below(256) as u8;
            }
            bytes[8..16].copy_from_slice(&(page as u64).to_le_bytes());
            seal(&mut bytes, salt);
            let mut device = Patched::new(&sample.image);
            device.put_page(page, &bytes);
            use_everything(device);
        }
    }
}

fn use_everything(device: Patched) {
    let executor = Executor::new(device);
    let ended = executor.block_on({
        let handle = executor.handle();
        async move {
            let Ok(store) = Store::open(handle, sample::options()).await else { return };
            for table in sample::TABLES {
                let _ = crate::common::all(&store, table).await;
                let Ok(table) = store.table(table).await else { continue };
                for number in 0..6u8 {
                    let transaction = store.begin();
                    let _ = transaction.put(table, &[number * 40; 90], &[number; 700]).await;
                    let _ = transaction.delete(table, &[9, number]).await;
                    let _ = transaction.commit_with(Durability::Flush).await;
                }
            }
            let _ = (store.check().await, store.compact().await, store.close().await);
        }
    });
    assert_eq!(ended, Ok(()), "everything ends");
}
