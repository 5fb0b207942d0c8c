//! Tests that dropped tables and indexes give their pages back, that names can be changed and used again, and that a
//! crash at any time leaves a name as it was before or after the change.

use crate::common::cuts::Cuts;
use crate::common::patched::{PAGE, Patched};
use crate::common::{all, fill, mem, options, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Durability, Error, Extract, Options, Record, Store};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);
const PAGES: usize = 1024;

/// Returns options for pages in place and out of place.
fn placements() -> [Options; 2] {
    let log = Options { log_bytes: 320 * PAGE as u64, memory_bytes: 512 << 10, ..options() };
    [log.clone(), Options { place: "out-of-place:unit=1KiB".parse().unwrap(), ..log }]
}

/// Extracts the first byte of each value.
fn extract() -> Extract {
    Rc::new(|_, value, keys| keys.extend(value.first().map(|byte| vec![*byte])))
}

/// Returns a long key. Keys have long common prefixes in groups, so that inner nodes have few children, and a table
/// is freed in many parts.
fn key(number: u32) -> Vec<u8> {
    let mut key = format!("{:04}", number / 8).into_bytes();
    key.resize(300, b'a' + (number / 8 % 20) as u8);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Returns rows of several leaves under several parents; some values are large.
fn rows(count: u32) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..count).map(|number| {
        let len = if number % 100 == 7 { 6_000 } else { 150 };
        (key(number), vec![number as u8; len])
    })
}

async fn put(store: &Store, table: &str, key: &[u8], value: &[u8]) {
    let (table, transaction) = (store.table(table).await.unwrap(), store.begin());
    transaction.put(table, key, value).await.unwrap();
    transaction.commit_with(Durability::Flush).await.unwrap();
}

async fn is_sound(store: &Store) {
    let report = store.check().await.unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!((report.unused_pages, report.unused_pieces), (0, 0), "{report:?}");
}

/// The rule: when a drop returns, the pages of the table, of its indexes and of its large values are free, its pending
/// records are forgotten, and its name and those of the indexes can be used again.
#[test]
fn a_dropped_table_gives_its_pages_back() {
    for options in placements() {
        let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
        run(&executor, |handle| async move {
            let store = Store::create(handle, options).await.unwrap();
            fill(&store, "kept", rows(30)).await;
            let before = store.statistics().pages_used;
            for round in 0..4 {
                let table = store.create_table("rows").await.unwrap();
                store.create_index(table, "by first", extract()).await.unwrap();
                assert_eq!(store.indexes(table).await.unwrap()[0].0, "by first");
                fill(&store, "rows", rows(900)).await;
                if round % 2 == 0 {
                    store.checkpoint().await.unwrap();
                    // These records are pending in the record cache.
                    for number in 0..50 {
                        put(&store, "rows", &key(number * 9 + 3), b"pending").await;
                    }
                }
                assert!(store.statistics().pages_used > before + 60);
                store.drop_table("rows").await.unwrap();
                let after = store.statistics();
                // Leaves of the catalogue and of the tree of large values may stay.
                assert!(after.pages_used <= before + 2, "{} and {before}", after.pages_used);
                assert!(after.records_pending < 40, "{after:?}");
                assert_eq!(store.table("rows").await, Err(Error::NoTable("rows".to_owned())));
                assert_eq!(store.drop_table("rows").await, Err(Error::NoTable("rows".to_owned())));
                is_sound(&store).await;
            }
            assert!(all(&store, "kept").await.unwrap().into_iter().eq(rows(30)));
            store.close().await.unwrap();
        });
    }
}

/// The rule: dropping an index leaves its table, whose writers go on; and the other way round a table has no index
/// that it does not know.
#[test]
fn a_dropped_index_leaves_its_table() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        let index = store.create_index(table, "by first", extract()).await.unwrap();
        fill(&store, "rows", rows(300)).await;
        let used = store.statistics().pages_used;
        assert!(matches!(store.drop_index("rows").await, Err(Error::Options(_))));
        assert!(matches!(store.drop_table("by first").await, Err(Error::Options(_))));
        store.drop_index("by first").await.unwrap();
        assert!(store.statistics().pages_used < used);
        assert!(store.indexes(table).await.unwrap().is_empty());
        let found = store.snapshot().index_scan(index, ALL, Direction::Forward).all().await;
        assert_eq!(found, Err(Error::NoTable("by first".to_owned())));
        put(&store, "rows", b"another", b"row").await;
        let index = store.create_index(table, "by first", extract()).await.unwrap();
        assert_eq!(
            store.snapshot().index_scan(index, ALL, Direction::Forward).all().await.unwrap().len(),
            301
        );
        is_sound(&store).await;
    });
}

/// The rule: a transaction that uses a table delays its drop; one that comes later gets a clear error. A snapshot that
/// is older than the drop reads on, and its end frees the pages.
#[test]
fn users_of_a_table_see_it_whole_or_an_error() {
    run(&Executor::new(mem()), |handle| async move {
        let store = Store::create(handle.clone(), options()).await.unwrap();
        fill(&store, "rows", rows(900)).await;
        let table = store.table("rows").await.unwrap();
        let (user, dropped) = (store.begin(), Rc::new(Cell::new(false)));
        user.put(table, b"own", b"row").await.unwrap();
        let old = store.snapshot();
        let (other, is_dropped) = (store.clone(), Rc::clone(&dropped));
        handle.spawn(async move {
            other.drop_table("rows").await.unwrap();
            is_dropped.set(true);
        });
        // Waits for this long, in which the drive completes many commands.
        let wait = async || handle.sleep_until(handle.now() + Nanos::from_micros(2_000)).await;
        wait().await;
        assert!(!dropped.get(), "the drop waits for the transaction");
        let (late, found) = (store.begin(), Rc::new(Cell::new(None)));
        let is_found = Rc::clone(&found);
        handle.spawn(async move { is_found.set(Some(late.get(table, &key(5)).await)) });
        wait().await;
        user.commit().await.unwrap();
        wait().await;
        assert!(dropped.get());
        assert_eq!(found.take(), Some(Err(Error::NoTable("rows".to_owned()))));
        let gone = Error::NoTable("rows".to_owned());
        let (new, transaction) = (store.snapshot(), store.begin());
        assert_eq!(new.get(table, &key(5)).await, Err(gone.clone()));
        assert_eq!(new.scan(table, ALL, Direction::Forward).all().await, Err(gone.clone()));
        assert_eq!(transaction.put(table, b"x", b"y").await, Err(gone.clone()));
        assert_eq!(transaction.scan(table, ALL, Direction::Backward).all().await, Err(gone.clone()));
        assert_eq!(store.indexes(table).await, Err(gone.clone()));
        assert_eq!(store.begin_load(table).await.err(), Some(gone));
        fill(&store, "rows", rows(20)).await;
        is_sound(&store).await;
        let seen: Vec<Record> = old.scan(table, ALL, Direction::Forward).all().await.unwrap();
        assert!(seen.into_iter().eq(rows(900)), "the old snapshot reads on");
        assert_eq!(old.get(table, &key(107)).await.unwrap(), Some(vec![107; 6_000]));
        store.compact().await.unwrap();
        assert_eq!(old.get(table, &key(207)).await.unwrap(), Some(vec![207; 6_000]));
        let used = store.statistics().pages_used;
        drop((old, new));
        wait().await;
        assert!(store.statistics().pages_used + 50 < used, "{} and {used}", store.statistics().pages_used);
        assert!(all(&store, "rows").await.unwrap().into_iter().eq(rows(20)));
        is_sound(&store).await;
    });
}

/// The rule: a name can be given to another table; handles, snapshots, indexes and their functions go on.
#[test]
fn a_renamed_table_stays_the_same() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        let index = store.create_index(table, "by first", extract()).await.unwrap();
        fill(&store, "rows", rows(200)).await;
        store.create_table("other").await.unwrap();
        assert!(matches!(store.rename_table("rows", "other").await, Err(Error::Options(_))));
        assert!(matches!(store.rename_table("rows", "").await, Err(Error::Options(_))));
        assert_eq!(store.rename_table("none", "some").await, Err(Error::NoTable("none".to_owned())));
        let transaction = store.begin();
        transaction.put(table, b"under way", b"z").await.unwrap();
        store.rename_table("rows", "lines").await.unwrap();
        store.rename_index("by first", "by byte").await.unwrap();
        transaction.commit_with(Durability::Flush).await.unwrap();
        assert_eq!(store.table("rows").await, Err(Error::NoTable("rows".to_owned())));
        assert_eq!(store.table("lines").await, Ok(table));
        put(&store, "lines", b"later", b"z").await;
        assert_eq!(store.indexes(table).await.unwrap(), [("by byte".to_owned(), index)]);
        let found = store.snapshot().index_scan(index, ALL, Direction::Forward).all().await.unwrap();
        assert_eq!(found.len(), 202);
        is_sound(&store).await;
    });
    // The store was not closed, so the names come from the log.
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        let names: Vec<String> = store.tables().await.unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["lines", "other"]);
        let table = store.table("lines").await.unwrap();
        store.create_index(table, "by byte", extract()).await.unwrap();
        assert_eq!(all(&store, "lines").await.unwrap().len(), 202);
        is_sound(&store).await;
    });
}

/// The rule: recovery leaves no piece of a large value that a commit has put into a table before it was dropped,
/// although it does not put the value.
#[test]
fn a_crash_leaves_no_large_value_of_a_dropped_table() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "rows", rows(5)).await;
        store.checkpoint().await.unwrap();
        // The snapshot is never dropped, so the pages of the table stay until the store is opened again.
        std::mem::forget(store.snapshot());
        put(&store, "rows", b"large", &[7; 9_000]).await;
        store.drop_table("rows").await.unwrap();
    });
    run(&executor, |handle| async move {
        let store = Store::open(handle.clone(), options()).await.unwrap();
        handle.sleep_until(handle.now() + Nanos::from_micros(10_000)).await;
        is_sound(&store).await;
        // Three pages are the map, and the roots of the catalogue and of the tree of large values.
        assert_eq!(store.statistics().pages_used, 3);
    });
}

/// The rule: recovery needs no page of a dropped table, since the log says that it is free.
#[test]
fn a_lost_page_of_a_dropped_table_is_no_loss() {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    let tree = run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "kept", rows(20)).await;
        fill(&store, "rows", rows(600)).await;
        store.drop_table("rows").await.unwrap();
        // The number of the second table.
        3u32
    });
    let mut image = executor.with_device(|device| device.contents());
    let mut lost = 0;
    for page in image.chunks_exact_mut(PAGE).skip(640) {
        if (page[4] == 1 || page[4] == 2) && page[32..36] == tree.to_le_bytes() {
            page.fill(0xA5);
            lost += 1;
        }
    }
    assert!(lost > 20, "{lost} pages were written and dropped");
    run(&Executor::new(Patched::new(&Rc::new(image))), |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        assert!(all(&store, "kept").await.unwrap().into_iter().eq(rows(20)));
        is_sound(&store).await;
    });
}

/// The rule: making tables does not fill the log, even if nobody commits anything else.
#[test]
fn many_tables_do_not_fill_the_log() {
    let executor = Executor::new(mem());
    let small = || Options { log_bytes: 64 * 4096, ..options() };
    run(&executor, |handle| async move {
        let store = Store::create(handle, small()).await.unwrap();
        for number in 0..2_000 {
            store.create_table(&format!("table {number}")).await.unwrap();
        }
        assert!(store.statistics().log_bytes_used < 64 * 4096);
    });
    run(&executor, |handle| async move {
        let store = Store::open(handle, small()).await.unwrap();
        assert_eq!(store.tables().await.unwrap().len(), 2_000);
        is_sound(&store).await;
    });
}

/// The rule: tables that are made and dropped again and again fill neither the log nor the store, even if nobody
/// commits anything else.
#[test]
fn many_drops_fill_nothing() {
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let small = Options { log_bytes: 64 * 4096, ..options() };
        let store = Store::create(handle, small).await.unwrap();
        let before = store.statistics().pages_used;
        for number in 0..1500u32 {
            let name = format!("table {}", number % 7);
            store.create_table(&name).await.unwrap();
            store.drop_table(&name).await.unwrap();
        }
        assert!(store.statistics().pages_used <= before + 2);
        is_sound(&store).await;
    });
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        assert!(store.tables().await.unwrap().is_empty());
        is_sound(&store).await;
    });
}

/// The states in which a crash may leave the name of the dropped table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Whole,
    Nothing,
    New,
}

/// Drops a table, and makes another one of the same name whose rows reuse its pages.
async fn drop_and_make(store: Store, reached: Rc<Cell<Found>>) {
    let table = store.create_table("rows").await.unwrap();
    store.create_index(table, "by first", extract()).await.unwrap();
    for number in 0..10 {
        put(&store, "rows", &key(number * 9 + 3), b"pending").await;
    }
    put(&store, "rows", b"zzz", &[5; 5_000]).await;
    // The commits of another table make the parts durable in which the pages are freed.
    let (other, stop) = (store.clone(), Rc::new(Cell::new(false)));
    let is_stopped = Rc::clone(&stop);
    store.handle().spawn(async move {
        other.create_table("busy").await.unwrap();
        while !is_stopped.get() {
            put(&other, "busy", b"key", b"value").await;
        }
    });
    store.drop_table("rows").await.unwrap();
    reached.set(Found::Nothing);
    stop.set(true);
    fill(&store, "rows", rows(60)).await;
    reached.set(Found::New);
    store.rename_table("kept", "saved").await.unwrap();
    store.checkpoint().await.unwrap();
}

fn closed(options: Options) -> Rc<Vec<u8>> {
    let executor = Executor::new(Patched::new(&Rc::new(vec![0; PAGES * PAGE])));
    run(&executor, |handle| async move {
        let store = Store::create(handle, options).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        store.create_index(table, "by first", extract()).await.unwrap();
        fill(&store, "kept", rows(40)).await;
        fill(&store, "rows", rows(700)).await;
        store.close().await.unwrap();
    });
    Rc::new(executor.with_device(|device| device.contents()))
}

/// Opens the store and does `drop_and_make` on a drive that takes `commands` commands. Returns the number of commands
/// used, how far it came, and the contents of the drive.
fn cut_after(
    image: &Rc<Vec<u8>>,
    options: &Options,
    commands: u64,
    prng: &mut Prng,
) -> (u64, Found, Rc<Vec<u8>>) {
    let executor = Executor::new(Cuts::new(image, commands));
    let (handle, own, reached) = (executor.handle(), options.clone(), Rc::new(Cell::new(Found::Whole)));
    let notes = Rc::clone(&reached);
    // The outcome is ignored: without power, the task never ends.
    let _ = executor.block_on(async move {
        let store = Store::open(handle, own).await.unwrap();
        drop_and_make(store, notes).await;
    });
    executor.with_device(|device| (commands - device.left(), reached.get(), device.contents(prng)))
}

/// Checks the store on a drive. Returns what is found under the name of the dropped table.
fn look(image: &Rc<Vec<u8>>, options: &Options, what: &str) -> Found {
    let own = options.clone();
    let what = what.to_owned();
    run(&Executor::new(Patched::new(image)), |handle| async move {
        let store = Store::open(handle, own).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let check = store.check().await.unwrap();
        assert!(check.problems.is_empty() && check.unused_pages == 0, "{what}: {check:?}");
        let kept = match all(&store, "kept").await {
            Err(_) => all(&store, "saved").await.unwrap(),
            kept => kept.unwrap(),
        };
        assert!(kept.into_iter().eq(rows(40)), "{what}");
        let found = match all(&store, "rows").await {
            Ok(found) if found.len() > 600 => {
                let old: BTreeMap<_, _> = rows(700).collect();
                let is_old = |(key, value): &Record| {
                    value == b"pending" || key == b"zzz" || old.get(key) == Some(value)
                };
                assert!(found.iter().all(is_old) && found.len() >= 700, "{what}: {} rows", found.len());
                Found::Whole
            }
            Ok(found) => {
                assert!(found.iter().zip(rows(60)).all(|(found, row)| *found == row), "{what}");
                Found::New
            }
            Err(error) => {
                assert_eq!(error, Error::NoTable("rows".to_owned()), "{what}");
                Found::Nothing
            }
        };
        let compact = store.compact().await.unwrap();
        assert_eq!(compact.pieces_deleted, 0, "{what}: the drop has left pieces of large values");
        is_sound(&store).await;
        let used = store.statistics().pages_used;
        assert_eq!(used > 40, found == Found::Whole, "{what}: {used} pages, {found:?}");
        store.close().await.unwrap();
        found
    })
}

/// The rule: a crash at any time leaves a dropped table whole or gone, with what was acknowledged. Its pages are free
/// after the next compaction, and no page belongs to nothing, also if the power is cut again while the rest is freed.
#[test]
fn a_crash_leaves_a_dropped_table_whole_or_gone() {
    for options in placements() {
        let image = closed(options.clone());
        let mut prng = Prng::new(11, "cuts");
        let (commands, reached, _) = cut_after(&image, &options, u64::MAX, &mut prng);
        assert_eq!(reached, Found::New);
        let mut seen = Vec::new();
        for cut in (20..commands).step_by(commands as usize / 60) {
            let what = format!("cut after {cut} of {commands}");
            let (_, reached, left) = cut_after(&image, &options, cut, &mut prng);
            let found = look(&left, &options, &what);
            assert!(found >= reached, "{what}: {found:?}, and {reached:?} was acknowledged");
            seen.push(found);
            // Recovers on a drive that loses power again.
            let executor = Executor::new(Cuts::new(&left, cut % 61));
            let (handle, own) = (executor.handle(), options.clone());
            let _ = executor.block_on(async move {
                let store = Store::open(handle, own).await.unwrap();
                store.compact().await.unwrap();
            });
            let again = executor.with_device(|device| device.contents(&mut prng));
            assert_eq!(look(&again, &options, &format!("{what}, and again")), found);
        }
        for found in [Found::Whole, Found::Nothing, Found::New] {
            assert!(seen.contains(&found), "no cut left {found:?}");
        }
    }
}

/// The rule: the log may still have operations on a dropped table when another table is made, also after the store was
/// opened again. Recovery gives them to no other table.
#[test]
fn a_new_table_gets_no_rows_of_a_dropped_one() {
    let executor = Executor::new(mem());
    let opened = |handle| Store::open(handle, options());
    run(&executor, |handle| async move {
        let store = Store::create(handle, options()).await.unwrap();
        fill(&store, "old", rows(200)).await;
        store.drop_table("old").await.unwrap();
    });
    run(&executor, |handle| async move {
        let store = opened(handle).await.unwrap();
        fill(&store, "new", [(b"only".to_vec(), b"row".to_vec())].into_iter()).await;
    });
    run(&executor, |handle| async move {
        let store = opened(handle).await.unwrap();
        assert_eq!(all(&store, "new").await.unwrap(), [(b"only".to_vec(), b"row".to_vec())]);
        is_sound(&store).await;
    });
}

/// The rule: recovery that reads the log in several batches knows from the first on which tables are dropped or renamed
/// later in the log. The pages of a dropped table belong to others by then.
#[test]
fn recovery_in_batches_knows_the_later_names() {
    let long = || Options { log_bytes: 8 << 20, records: 0, ..options() };
    let executor = Executor::new(mem());
    run(&executor, |handle| async move {
        let store = Store::create(handle, long()).await.unwrap();
        for round in 0..9u8 {
            let rows = (0..900).map(|number| (key(number), vec![round; 200]));
            fill(&store, "dropped", rows).await;
            let rows = (0..300).map(|number| (key(number), vec![round; 200]));
            fill(&store, &format!("name {round}"), rows).await;
            if round % 3 == 1 {
                store.drop_table("dropped").await.unwrap();
                // These rows take the pages of the dropped table, and are among the last operations of the log.
                fill(&store, "later", (0..900).map(|number| (key(number), vec![round; 180]))).await;
            }
            store.rename_table(&format!("name {round}"), &format!("name {}", round + 1)).await.unwrap();
        }
        let used = store.statistics().log_bytes_used;
        assert!(used > 3 << 20, "{used} bytes of log");
    });
    run(&executor, |handle| async move {
        let store = Store::open(handle, long()).await.unwrap();
        for (name, count, value) in
            [("dropped", 900, vec![8; 200]), ("later", 900, vec![7; 180]), ("name 9", 300, vec![8; 200])]
        {
            let expected = (0..count).map(|number| (key(number), value.clone()));
            assert!(all(&store, name).await.unwrap().into_iter().eq(expected), "{name}");
        }
        assert_eq!(store.tables().await.unwrap().len(), 3);
        is_sound(&store).await;
    });
}
