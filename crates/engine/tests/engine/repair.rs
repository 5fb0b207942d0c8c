//! Tests that a repair saves exactly the records outside the ranges that it reports as lost.

use crate::common::patched::{PAGE, Patched};
use crate::common::sample::{self, DATA, Model, Sample, State};
use crate::common::{all, run};
use fulgurite_device::Executor;
use fulgurite_engine::{
    Durability, Error, KeyRange, LostPart, MemImage, RepairReport, Source, Store, TableRepair, repair,
};
use std::rc::Rc;

/// Repairs an image. Returns the report, and the tables of the new store.
fn saved(image: Vec<u8>) -> Result<(RepairReport, Vec<(String, Model)>), Error> {
    let image = MemImage::new(image);
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; (sample::PAGES + 200) * PAGE])));
    let source = image.clone();
    run(&executor, |handle| async move {
        let before = source.bytes();
        let report = repair(&source, handle.clone(), sample::options()).await?;
        assert!(source.bytes() == before, "the source is never written to");
        let store = Store::open(handle, sample::options()).await?;
        let check = store.check().await?;
        assert!(check.problems.is_empty(), "{:?}", check.problems);
        let mut tables = Vec::new();
        for (name, _) in store.tables().await? {
            let records = all(&store, &name).await?;
            tables.push((name, records.into_iter().collect()));
        }
        Ok((report, tables))
    })
}

fn is_lost<'a>(ranges: impl IntoIterator<Item = &'a KeyRange>, key: &[u8]) -> bool {
    let is_in = |(low, high): &KeyRange| &low[..] <= key && high.as_ref().is_none_or(|high| key < &high[..]);
    ranges.into_iter().any(is_in)
}

/// Checks that a table has all records of the expected state outside the lost ranges, and nothing else.
/// Returns the number of missing records; `None` if a check fails.
fn compare(report: &TableRepair, found: &Model, expected: &Model) -> Option<usize> {
    let right = |(key, value): (&Vec<u8>, &Vec<u8>)| expected.get(key) == Some(value);
    let saved = |key: &&Vec<u8>| found.contains_key(*key);
    // The records in a lost range that the report counts as saved must exist.
    let is_counted =
        |part: &LostPart| found.keys().filter(|key| is_lost([&part.keys], key)).count() as u64 == part.saved;
    let lost: Vec<&KeyRange> = report.lost.iter().map(|part| &part.keys).collect();
    let may_miss = |key: &&Vec<u8>| is_lost(lost.iter().copied(), key) || report.lost_large.contains(key);
    let complete = expected.keys().filter(|key| !saved(key)).all(|key| may_miss(&key));
    let counted = report.records == found.len() as u64 && report.lost.iter().all(is_counted);
    let whole = found.iter().all(right) && complete && counted;
    whole.then(|| expected.len() - found.len())
}

/// Repairs an image and compares it with the states, one of which must match. Returns the number of missing
/// records, and the report.
fn verify(image: Vec<u8>, states: &[State], what: &str) -> (usize, RepairReport) {
    let (report, tables) = saved(image).unwrap_or_else(|error| panic!("{what}: {error}"));
    let fits = |state: &State| -> Option<usize> {
        let mut missing = 0;
        for (name, expected) in state {
            let row = report.tables.iter().find(|row| row.name == *name);
            let found = tables.iter().find(|(found, _)| found == name);
            match (row, found) {
                (Some(row), Some((_, found))) => missing += compare(row, found, expected)?,
                _ if is_lost(&report.lost_names, name.as_bytes()) => missing += expected.len(),
                _ => return None,
            }
        }
        Some(missing)
    };
    let missing = states.iter().rev().find_map(fits);
    (missing.unwrap_or_else(|| panic!("{what}: wrong data: {report:?}")), report)
}

/// Repairs an image whose log is damaged. Checks that each record that commits behind the damage touched is
/// as in one of the states, and that all others are as expected. A merge of leaves behind the damage may have
/// freed a leaf whose records are in no other page yet; their range is reported.
fn verify_mixed(image: Vec<u8>, states: &[State], what: &str) -> RepairReport {
    let (report, tables) = saved(image).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (name, found) in &tables {
        let had = |key: &Vec<u8>, value: Option<&Vec<u8>>| {
            states.iter().any(|state| state[name.as_str()].get(key) == value)
        };
        assert!(found.iter().all(|(key, value)| had(key, Some(value))), "{what}: {name}: never issued");
        let keys = states.iter().flat_map(|state| state[name.as_str()].keys());
        let row = report.tables.iter().find(|row| row.name == *name);
        let lost: Vec<&KeyRange> =
            row.iter().flat_map(|row| row.lost.iter().map(|part| &part.keys)).collect();
        for key in keys.filter(|key| !found.contains_key(*key)) {
            assert!(had(key, None) || is_lost(lost.iter().copied(), key), "{what}: {name}: a record is gone");
        }
    }
    assert_eq!(tables.len(), 3);
    report
}

fn without(sample: &Sample, pages: &[usize]) -> Vec<u8> {
    let mut image = sample.image.to_vec();
    pages.iter().for_each(|page| image[page * PAGE..(page + 1) * PAGE].fill(0));
    image
}

/// Returns the pages of a kind, level and tree.
fn pages(sample: &Sample, wanted: (u8, u8, u8)) -> Vec<usize> {
    let kind = |page: usize| {
        let bytes = &sample.image[page * PAGE..];
        (bytes[4], bytes[5], bytes[32])
    };
    (DATA..sample::PAGES).filter(|page| kind(*page) == wanted).collect()
}

fn last(sample: &Sample) -> &[State] {
    std::slice::from_ref(sample.state())
}

#[test]
fn an_intact_store_is_saved_completely() {
    for sample in [sample::closed(), sample::crashed()] {
        let (missing, report) = verify(sample.image.to_vec(), last(&sample), "unharmed");
        assert!(missing == 0 && report.is_whole(), "{report:?}");
        assert_eq!(report.indexes, ["flat by first"]);
    }
}

#[test]
fn if_any_page_is_lost_the_rest_is_saved() {
    for sample in [sample::closed(), sample::crashed()] {
        let mut lost_pages = 0;
        for page in 0..sample::PAGES {
            if sample.image[page * PAGE..(page + 1) * PAGE].iter().all(|byte| *byte == 0) {
                continue;
            }
            let in_log = (sample::LOG..sample::DOUBLE_WRITE).contains(&page);
            let (image, what) = (without(&sample, &[page]), format!("page {page}"));
            if in_log {
                verify_mixed(image, &sample.states, &what);
                continue;
            }
            let (missing, report) = verify(image, last(&sample), &what);
            assert!(missing == 0 || !report.is_whole(), "{what}");
            // If the catalogue is lost, so are the names, and the tables are saved under other names.
            assert!(missing <= 60 || !report.lost_names.is_empty(), "{what}: {missing} records are lost");
            lost_pages += usize::from(missing > 0);
        }
        assert!(lost_pages > 50, "{lost_pages}");
    }
}

#[test]
fn lost_inner_nodes_roots_and_maps_lose_no_record() {
    for sample in [sample::closed(), sample::crashed()] {
        let inner =
            [pages(&sample, (2, 1, 2)), pages(&sample, (2, 2, 2)), pages(&sample, (2, 1, 1))].concat();
        assert!(inner.len() > 5, "{inner:?}");
        let maps = pages(&sample, (3, 0, 0));
        for lost in [inner.clone(), maps.clone(), [inner, maps].concat()] {
            let (missing, report) = verify(without(&sample, &lost), last(&sample), &format!("{lost:?}"));
            assert_eq!(missing, 0, "{report:?}");
        }
    }
}

#[test]
fn a_store_without_superblocks_is_saved() {
    for sample in [sample::closed(), sample::crashed()] {
        let (missing, report) = verify(without(&sample, &[0, 16]), last(&sample), "no superblock");
        assert!(missing == 0 && report.guessed && report.log.is_none(), "{report:?}");
        // Here the first allocation map is lost as well.
        let map = pages(&sample, (3, 0, 0));
        let (missing, _) = verify(without(&sample, &[0, 16, map[0]]), last(&sample), "no superblock, no map");
        assert_eq!(missing, 0);
        for one in [0, 16] {
            let (missing, report) = verify(without(&sample, &[one]), last(&sample), "one superblock");
            assert!(missing == 0 && !report.guessed, "{report:?}");
        }
    }
}

#[test]
fn tables_without_a_name_are_saved_by_their_number() {
    let sample = sample::closed();
    let catalogue = pages(&sample, (1, 0, 0));
    let (report, tables) = saved(without(&sample, &catalogue)).unwrap();
    assert!(
        !report.lost_names.is_empty() && report.tables.iter().all(|table| table.name.starts_with("(tree "))
    );
    for name in ["deep", "flat"] {
        let expected = &sample.state()[name];
        assert!(tables.iter().any(|(_, found)| found == expected), "{name}: {report:?}");
    }
}

#[test]
fn damage_in_the_log_is_reported_and_earlier_records_are_saved() {
    let sample = sample::crashed();
    let block = |page: &usize| &sample.image[page * PAGE + 4..page * PAGE + 8] == b"FLOG";
    let mut blocks: Vec<usize> = (sample::LOG..sample::DOUBLE_WRITE).filter(block).collect();
    let at = |page: &usize| {
        u64::from_le_bytes(sample.image[page * PAGE + 8..page * PAGE + 16].try_into().unwrap())
    };
    blocks.sort_by_key(at);
    // The damaged block is in the middle of the blocks of the last session.
    let middle = blocks[blocks.len() - 12];
    let report = verify_mixed(without(&sample, &[middle]), &sample.states, "log");
    assert!(report.log.is_some() && !report.is_whole(), "{report:?}");
}

#[test]
fn a_truncated_store_is_saved_as_far_as_it_goes() {
    let sample = sample::closed();
    let mut saved_before = 0;
    for pages in (DATA + 10..sample::PAGES).step_by(15) {
        let (missing, _) =
            verify(sample.image[..pages * PAGE].to_vec(), last(&sample), &format!("{pages} pages"));
        let total: usize = sample.state().values().map(|model| model.len()).sum();
        assert!(total - missing >= saved_before, "more pages, fewer records");
        saved_before = total - missing;
    }
    assert!(saved_before > 100);
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    assert_eq!(saved(vec![0; sample::PAGES * PAGE]).map(drop), Err(Error::NotAStore));
    assert_eq!(saved(vec![7; 3000]).map(drop), Err(Error::NotAStore));
    assert_eq!(MemImage::default().len(), 0);
}

/// The rule: a power cut may leave the first block of a flush without the others. The log record in it was
/// never acknowledged, and a repair saves the log that continues behind it.
#[test]
fn the_log_after_an_interrupted_flush_is_saved() {
    let commit = |image: Vec<u8>, key: &'static [u8], len: usize| {
        let executor = Executor::new(Patched::new(&Rc::new(image)));
        run(&executor, move |handle| async move {
            let store = Store::open(handle, sample::options()).await.unwrap();
            let table = store.create_table("empty").await.unwrap();
            let transaction = store.begin();
            // Small values are in the record of the transaction, and large ones in earlier records.
            for (part, number) in vec![1; len].chunks(800).zip(0u8..) {
                transaction.put(table, &[key, &[number]].concat(), part).await.unwrap();
            }
            transaction.commit_with(Durability::Flush).await.unwrap();
        });
        executor.with_device(|device| device.contents())
    };
    let Sample { image, states } = sample::crashed();
    let mut image = commit(image.to_vec(), b"cut off", 9000);
    let block = |page: usize| &image[page * PAGE..(page + 1) * PAGE];
    let blocks = (sample::LOG..sample::DOUBLE_WRITE).filter(|page| &block(*page)[4..8] == b"FLOG");
    let at = |page: &usize| u64::from_le_bytes(block(*page)[8..16].try_into().unwrap());
    let last = blocks.max_by_key(at).unwrap();
    assert_eq!([last - 2, last - 1, last].map(|page| block(page)[30]), [1, 0, 0], "a flush of three blocks");
    image[(last - 1) * PAGE..(last + 1) * PAGE].fill(0);
    let image = commit(image, b"later", 10);
    let mut expected = states.last().unwrap().clone();
    expected.get_mut("empty").unwrap().insert(b"later\0".to_vec(), vec![1; 10]);
    let (missing, report) = verify(image, &[expected], "cut off");
    assert!(missing == 0 && report.is_whole(), "{report:?}");
}

/// The rule: a crash during a bulk load may leave pieces of large values. `check` counts them and calls the store
/// sound, and a repair leaves them out. No record is affected.
#[test]
fn a_repair_drops_pieces_of_an_aborted_load() {
    let sample = sample::closed();
    let executor = Executor::new(Patched::new(&sample.image));
    let report = run(&executor, |handle| async move {
        let store = Store::open(handle, sample::options()).await.unwrap();
        let mut load = store.begin_load(store.table("empty").await.unwrap()).await.unwrap();
        for number in 0..4u8 {
            load.push(vec![number], vec![number; 5000]).await.unwrap();
        }
        let report = store.check().await.unwrap();
        // As after a crash: a load that is dropped in an open store deletes its pieces.
        store.close().await.unwrap();
        drop(load);
        report
    });
    // The log takes the pieces of one value at a time, so those of the first three are committed, five each.
    assert!(report.problems.is_empty() && report.unused_pieces == 15, "{report:?}");
    // `saved` also runs the check on the new store.
    let image = executor.with_device(|device| device.contents());
    let (missing, report) = verify(image, last(&sample), "given up");
    assert!(missing == 0 && report.is_whole(), "{report:?}");
}
