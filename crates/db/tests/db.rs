//! Tests of stores in files, as a program that embeds them uses them.

use fulgurite_base::NoOptions;
use fulgurite_db::{Access, Db, Direction, Durability, Error, OpenError, Options};
use fulgurite_engine::{OutOfPlaceConfig, PlaceConfig};
use std::fs;
use std::ops::Bound;
use std::path::PathBuf;
use tempfile::TempDir;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.store");
    (folder, path)
}

fn small() -> Options {
    Options { size_bytes: Some(4 << 20), log_bytes: Some(1 << 20), ..Options::default() }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Puts `count` records with values of `bytes` bytes, many in a transaction.
fn fill(db: &Db, from: u32, count: u32, bytes: usize) -> Result<(), Error> {
    let table = db.create_table("records")?;
    for first in (from..from + count).step_by(20) {
        db.transact(|transaction| {
            (first..(first + 20).min(from + count))
                .try_for_each(|number| transaction.put(&table, &key(number), &vec![number as u8; bytes]))
        })?;
    }
    Ok(())
}

fn rows(db: &Db) -> Vec<u32> {
    let table = db.table("records").unwrap();
    let snapshot = db.snapshot().unwrap();
    let scan = snapshot.scan(&table, ALL, Direction::Forward);
    scan.map(|row| u32::from_be_bytes(row.unwrap().0.try_into().unwrap())).collect()
}

#[test]
fn one_line_makes_a_store_and_opens_it_again() {
    let (_folder, path) = folder();
    for round in 0..2 {
        let db = Db::open(&path, Options::default()).unwrap();
        assert_eq!(db.tables().unwrap().len(), round);
        let users = db.create_table("users").unwrap();
        assert_eq!(db.get(&users, b"ada").unwrap().is_some(), round == 1);
        db.put(&users, b"ada", b"1815").unwrap();
        assert!(db.disk_bytes().unwrap() < 4 << 20, "a file of 16 GiB takes room as it fills");
        if round == 0 {
            db.close().unwrap();
            db.close().unwrap();
        }
    }
}

#[test]
fn a_path_that_holds_no_store_is_left_as_it_is() {
    let (_folder, path) = folder();
    for access in [Access::Write, Access::Read] {
        let missing = Db::open(&path, Options { access, ..Options::default() }).map(drop);
        assert!(matches!(missing, Err(OpenError::Missing(_))), "{missing:?}");
        assert!(!path.exists());
    }
    fs::write(&path, b"a letter").unwrap();
    let foreign = Db::open(&path, Options::default()).map(drop);
    assert!(matches!(foreign, Err(OpenError::NotAStore(_))), "{foreign:?}");
    assert_eq!(fs::read(&path).unwrap(), b"a letter");
}

#[test]
fn options_that_differ_from_the_file_are_refused() {
    let (_folder, path) = folder();
    drop(Db::open(&path, small()).unwrap());
    let out = PlaceConfig::OutOfPlace(OutOfPlaceConfig::default());
    let others = [
        ("page_bytes", Options { page_bytes: Some(8192), ..Options::default() }),
        ("log_bytes", Options { log_bytes: Some(2 << 20), ..Options::default() }),
        ("place", Options { place: Some(out), ..Options::default() }),
        ("size_bytes", Options { size_bytes: Some(2 << 20), ..Options::default() }),
    ];
    for (expected, options) in others {
        let refused = Db::open(&path, options).map(drop);
        assert!(matches!(&refused, Err(OpenError::Differs { name, .. }) if *name == expected), "{refused:?}");
    }
    let same = Options { place: Some(PlaceConfig::InPlace(NoOptions)), page_bytes: Some(4096), ..small() };
    drop(Db::open(&path, same).unwrap());
}

#[test]
fn a_full_store_goes_on_in_a_larger_file() {
    for is_clean in [true, false] {
        let (_folder, path) = folder();
        let db = Db::open(&path, small()).unwrap();
        let is_full = |first: &u32| match fill(&db, *first, 20, 1000) {
            Ok(()) => false,
            outcome => matches!(outcome, Err(Error::Full { .. })).then_some(true).unwrap(),
        };
        let full = (0..).step_by(20).find(is_full).unwrap();
        let before = rows(&db);
        if is_clean {
            db.close().unwrap();
        }
        drop(db);
        // Several groups of 32,704 pages are new.
        let larger = Options { size_bytes: Some(400 << 20), ..Options::default() };
        let db = Db::open(&path, larger.clone()).unwrap();
        assert_eq!(rows(&db), before);
        fill(&db, full, 20, 1000).unwrap();
        assert_eq!(db.statistics().unwrap()[0].pages, (400 << 20) / 4096 - (128 << 10) / 4096 - 256 - 128);
        assert!(db.check().unwrap()[0].problems.is_empty());
        drop(db);
        // The size stays, with and without a word about it.
        for options in [Options::default(), larger] {
            let db = Db::open(&path, options).unwrap();
            assert!(rows(&db).len() > before.len());
            assert!(db.check().unwrap()[0].problems.is_empty());
        }
        assert!(fs::metadata(&path).unwrap().len() == (400 << 20) + 4096);
    }
}

#[test]
fn readers_change_nothing_and_are_refused_a_write() {
    let (_folder, path) = folder();
    let db = Db::open(&path, small()).unwrap();
    fill(&db, 0, 100, 100).unwrap();
    drop(db);
    let bytes = fs::read(&path).unwrap();
    let read = || Db::open(&path, Options { access: Access::Read, ..Options::default() });
    let (one, other) = (read().unwrap(), read().unwrap());
    let table = other.table("records").unwrap();
    assert_eq!((rows(&one).len(), rows(&other).len()), (100, 100));
    assert_eq!(other.put(&table, b"key", b"value"), Err(Error::ReadOnly));
    assert_eq!(other.create_table("more").map(drop), Err(Error::ReadOnly));
    assert_eq!(other.bulk_load(&table, []), Err(Error::ReadOnly));
    assert_eq!(other.compact().map(drop), Err(Error::ReadOnly));
    let writer = Db::open(&path, Options::default()).map(drop);
    assert!(matches!(writer, Err(OpenError::Drive(fulgurite_uring::OpenError::InUse(_)))), "{writer:?}");
    one.close().unwrap();
    drop((one, other));
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn a_backup_and_a_copy_have_the_rows_while_others_write() {
    let (folder, path) = folder();
    let db = Db::open(&path, small()).unwrap();
    fill(&db, 0, 1000, 200).unwrap();
    let table = db.table("records").unwrap();
    db.put(&table, &key(500), &[7; 40_000]).unwrap();
    let (image, copy) = (folder.path().join("image"), folder.path().join("copy"));
    std::thread::scope(|scope| {
        scope.spawn(|| fill(&db, 1000, 1000, 200).unwrap());
        db.backup(&image).unwrap();
        let out = PlaceConfig::OutOfPlace(OutOfPlaceConfig::default());
        let other = Options {
            size_bytes: Some(64 << 20),
            page_bytes: Some(8192),
            place: Some(out),
            ..Options::default()
        };
        assert!(db.copy(&copy, other).unwrap() >= 1000);
    });
    for (path, page) in [(&image, 4096), (&copy, 8192)] {
        let found = fulgurite_db::shape(path).unwrap();
        assert_eq!((found.page_bytes, found.is_out_of_place), (page, page == 8192));
        let db = Db::open(path, Options::default()).unwrap();
        let rows = rows(&db);
        assert!(rows.len() >= 1000 && rows.iter().copied().eq(0..rows.len() as u32), "{}", rows.len());
        assert_eq!(db.get(&db.table("records").unwrap(), &key(500)).unwrap(), Some(vec![7; 40_000]));
        assert!(db.check().unwrap()[0].problems.is_empty());
    }
    assert!(matches!(db.backup(&image), Err(OpenError::Exists(_))));
    assert!(matches!(db.copy(&copy, Options::default()), Err(OpenError::Exists(_))));
    // A copy takes the sizes that a new store takes, and no others.
    let odd = folder.path().join("odd");
    let refused = db.copy(&odd, Options { size_bytes: Some((64 << 20) + 1), ..Options::default() });
    assert!(matches!(refused, Err(OpenError::Size { .. })) && !odd.exists());
}

#[test]
fn space_on_the_disk_comes_back_after_a_mass_delete() {
    let (_folder, path) = folder();
    let db = Db::open(&path, Options { size_bytes: Some(64 << 20), ..Options::default() }).unwrap();
    fill(&db, 0, 20_000, 1000).unwrap();
    db.checkpoint().unwrap();
    let full = db.disk_bytes().unwrap();
    let table = db.table("records").unwrap();
    for first in (0..20_000).step_by(1000) {
        db.transact(|transaction| {
            (first..first + 1000).try_for_each(|number| transaction.delete(&table, &key(number)))
        })
        .unwrap();
    }
    // The first checkpoint merges the leaves. Both superblocks must be behind that before pages are trimmed.
    (0..3).for_each(|_| db.checkpoint().unwrap());
    let empty = db.disk_bytes().unwrap();
    assert!(full - empty > 16 << 20, "{full} bytes, then {empty}");
    // A compaction also trims the short runs of pages.
    fill(&db, 0, 4_000, 1000).unwrap();
    db.checkpoint().unwrap();
    let before = db.disk_bytes().unwrap();
    for number in (0..4_000).filter(|number| number / 32 % 2 == 0) {
        db.put_with(&table, &key(number), b"", Durability::Relaxed).unwrap();
    }
    (0..3).for_each(|_| db.checkpoint().unwrap());
    let report = &db.compact().unwrap()[0];
    let after = db.disk_bytes().unwrap();
    assert!(before - after > 1 << 20, "{before} bytes, then {after}: {report:?}");
}
