use super::{FIRST_RUN_TREE, Run, Runs, Sweep, Which};
use crate::image::Source;
use crate::scan::Direction;
use crate::tree::Tree;
use crate::{Durability, Lsn, MemImage, Options, Store, Table, repair};
use fulgurite_base::{Nanos, PageId};
use fulgurite_device::{Executor, MemDevice};
use std::cell::Cell as Flag;
use std::ops::Bound::Unbounded;

const ROWS: u32 = 4_000;
/// Of so many rows one waits in a run.
const EVERY: u32 = 10;

fn drive() -> MemDevice {
    MemDevice::new(4096, 4096, 64, Nanos::from_micros(10))
}

fn options() -> Options {
    Options { memory_bytes: 8 << 20, log_bytes: 4 << 20, runs: 20, ..Options::default() }
}

fn key(row: u32) -> [u8; 4] {
    row.to_be_bytes()
}

/// What a row has at first, and what a run has of some.
fn value(row: u32) -> Vec<u8> {
    vec![u8::from(row.is_multiple_of(EVERY)); 100]
}

/// Does something with the store on a drive. Returns the drive, as it is at once when that is done.
fn on<F: Future<Output = ()> + 'static>(
    drive: MemDevice,
    work: impl FnOnce(Store<MemDevice>, Table) -> F + 'static,
) -> MemDevice {
    with_share(20, drive, work)
}

/// The same with another share for runs.
fn with_share<F: Future<Output = ()> + 'static>(
    runs: u8,
    drive: MemDevice,
    work: impl FnOnce(Store<MemDevice>, Table) -> F + 'static,
) -> MemDevice {
    let executor = Executor::new(drive);
    let handle = executor.handle();
    let done = async move {
        let store = Store::open(handle, Options { runs, ..options() }).await.unwrap();
        let table = store.table("rows").await.unwrap();
        work(store, table).await;
    };
    executor.block_on(done).unwrap();
    executor.with_device(|device| std::mem::replace(device, self::drive()))
}

/// A store of which every tenth row has a newer value in a run than in its leaf, and not in memory.
fn with_a_run() -> MemDevice {
    let executor = Executor::new(drive());
    let handle = executor.handle();
    let made = async move {
        let store = Store::create(handle, options()).await.unwrap();
        let table = store.create_table("rows").await.unwrap();
        let rows = (0..ROWS).map(|row| (key(row).to_vec(), vec![0; 100]));
        store.bulk_load(table, rows).await.unwrap();
        let transaction = store.begin();
        for row in (0..ROWS).step_by(EVERY as usize) {
            transaction.put(table, &key(row), &value(row)).await.unwrap();
        }
        transaction.commit_with(Durability::Flush).await.unwrap();
        assert!(store.0.spill(Which::Before(Lsn(u64::MAX))).await, "records went into a run");
        let (done, pages) = (store.statistics(), store.0.pages.pages_written());
        assert_eq!((done.records_pending, done.run_counters.spilled), (0, u64::from(ROWS / EVERY)));
        store.close().await.unwrap();
        assert!(store.0.pages.pages_written() < pages + 10, "no leaf was written for them");
    };
    executor.block_on(made).unwrap();
    executor.with_device(|device| std::mem::replace(device, drive()))
}

/// The log goes on, and the redo point with it.
async fn move_redo_point(store: &Store<MemDevice>, others: Table) {
    let transaction = store.begin();
    transaction.put(others, b"key", b"value").await.unwrap();
    transaction.commit_with(Durability::Flush).await.unwrap();
    store.checkpoint().await.unwrap();
}

async fn assert_all(store: &Store<MemDevice>, table: Table) {
    let snapshot = store.snapshot();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut rows = snapshot.scan(table, (Unbounded, Unbounded), direction).all().await.unwrap();
        rows.sort_unstable();
        let expected = (0..ROWS).map(|row| (key(row).to_vec(), value(row)));
        assert!(rows.into_iter().eq(expected), "{direction:?}");
    }
    for row in 0..ROWS {
        let found = snapshot.get(table, &key(row)).await.unwrap();
        assert_eq!(found, Some(value(row)), "row {row}");
    }
}

/// The rule: a record that waits in a run is read and scanned as what is there, after the store was closed and opened, too.
#[test]
fn what_waits_in_a_run_is_found() {
    on(with_a_run(), async |store, table| {
        assert_all(&store, table).await;
        let counters = store.statistics().run_counters;
        assert!(counters.hits >= u64::from(ROWS / EVERY), "{counters:?}");
        let report = store.check().await.unwrap();
        assert_eq!((report.problems, report.records), (Vec::new(), u64::from(ROWS)));
    });
}

/// The rule: a sweep brings what runs have into the leaves. The run is given back once the redo point is behind that, not before, and the
/// numbers of runs go on: leaves know those that are gone.
#[test]
fn a_run_is_given_back_when_the_drive_has_the_leaves() {
    let swept = on(with_a_run(), async |store, table| {
        let used = store.statistics().pages_used;
        assert!(store.0.settle_runs(table.0).await.unwrap());
        let counters = store.statistics().run_counters;
        assert_eq!(counters.merged, u64::from(ROWS / EVERY));
        assert_eq!(store.0.runs.borrow().size().0, 1, "the drive does not have the leaves yet");
        let others = store.create_table("others").await.unwrap();
        for _ in 0..3 {
            move_redo_point(&store, others).await;
        }
        assert_eq!(store.0.runs.borrow().size(), (0, 0));
        assert!(store.statistics().pages_used < used);
        assert_all(&store, table).await;
    });
    on(swept, async |store, table| {
        assert_eq!((store.0.runs.borrow().size().0, store.0.runs.borrow().newest()), (0, 1));
        assert_all(&store, table).await;
        assert_eq!(store.check().await.unwrap().problems, []);
    });
}

/// The rule: a store that is opened without runs sweeps those that it finds.
#[test]
fn a_store_without_runs_gets_rid_of_them() {
    with_share(0, with_a_run(), async |store, table| {
        let others = store.create_table("others").await.unwrap();
        for _ in 0..4 {
            move_redo_point(&store, others).await;
            let handle = store.handle();
            handle.sleep_until(handle.now() + Nanos::from_micros(100_000)).await;
        }
        assert_eq!(store.statistics().runs, 0);
        assert_all(&store, table).await;
    });
}

/// The rule: a value that goes to its leaf by itself is newer than what a run has, and stays so when the run is swept.
#[test]
fn a_value_that_goes_to_its_leaf_comes_over_a_run() {
    let large = vec![7; 20_000];
    let expected = large.clone();
    let written = on(with_a_run(), async move |store, table| {
        let transaction = store.begin();
        transaction.put(table, &key(EVERY), &large).await.unwrap();
        transaction.commit_with(Durability::Flush).await.unwrap();
        assert_eq!(store.snapshot().get(table, &key(EVERY)).await.unwrap(), Some(large));
    });
    on(written, async move |store, table| {
        let found = async || store.snapshot().get(table, &key(EVERY)).await.unwrap();
        assert_eq!(found().await.as_ref(), Some(&expected), "after the log was read again");
        assert!(store.0.settle_runs(table.0).await.unwrap());
        assert_eq!(found().await.as_ref(), Some(&expected), "after the sweep");
    });
}

/// The rule: a value that goes to its leaf by itself is newer than what any of several runs has, though one page of them at a time is held.
#[test]
fn a_value_that_goes_to_its_leaf_comes_over_all_runs() {
    let large = vec![7; 20_000];
    let expected = large.clone();
    // The store was opened anew, so that no record is in memory and none seems to be asked for.
    let with_two = on(with_a_run(), async |store, table| {
        let transaction = store.begin();
        for row in (0..ROWS).step_by(EVERY as usize) {
            transaction.put(table, &key(row), &[9; 100]).await.unwrap();
        }
        transaction.commit_with(Durability::Flush).await.unwrap();
        assert!(store.0.spill(Which::Before(Lsn(u64::MAX))).await, "records went into a run");
        store.close().await.unwrap();
        assert_eq!((store.statistics().runs, store.statistics().run_counters.merged), (2, 0));
    });
    let written = on(with_two, async move |store, table| {
        let transaction = store.begin();
        transaction.put(table, &key(EVERY), &large).await.unwrap();
        transaction.commit_with(Durability::Flush).await.unwrap();
        assert_eq!(store.snapshot().get(table, &key(EVERY)).await.unwrap(), Some(large));
    });
    on(written, async move |store, table| {
        let found = async |row| store.snapshot().get(table, &key(row)).await.unwrap();
        let expected = [Some(expected), Some(vec![9; 100])];
        assert!([found(EVERY).await, found(2 * EVERY).await] == expected, "after the log was read again");
        assert!(store.0.settle_runs(table.0).await.unwrap());
        assert!([found(EVERY).await, found(2 * EVERY).await] == expected, "after the sweep");
        assert_eq!(store.check().await.unwrap().problems, []);
    });
}

/// The rule: who reads an older state finds what a newer record replaces where that is: in a run.
#[test]
fn an_older_state_is_read_beneath_memory_in_a_run() {
    on(with_a_run(), async |store, table| {
        let before = store.snapshot();
        let transaction = store.begin();
        transaction.put(table, &key(EVERY), b"newer").await.unwrap();
        transaction.commit_with(Durability::Flush).await.unwrap();
        assert_eq!(store.statistics().records_pending, 1, "its leaf was not read");
        assert_eq!(before.get(table, &key(EVERY)).await.unwrap(), Some(value(EVERY)));
        let all = before.scan(table, (Unbounded, Unbounded), Direction::Forward).all().await.unwrap();
        assert_eq!(all[EVERY as usize].1, value(EVERY));
        assert_eq!(store.snapshot().get(table, &key(EVERY)).await.unwrap().as_deref(), Some(&b"newer"[..]));
    });
}

/// The rule: a repair saves what waits in runs.
#[test]
fn a_repair_saves_what_waits_in_a_run() {
    let executor = Executor::new(with_a_run());
    let handle = executor.handle();
    let copy = async move {
        let mut bytes = vec![0; 4096 * 4096];
        handle.read(0, &mut bytes).await.unwrap();
        MemImage::new(bytes)
    };
    let image = executor.block_on(copy).unwrap();
    let executor = Executor::new(drive());
    let handle = executor.handle();
    let saving = async move {
        let report = repair(&image, handle.clone(), options()).await.unwrap();
        assert!(report.is_whole(), "{report:?}");
        let store = Store::open(handle, options()).await.unwrap();
        let table = store.table("rows").await.unwrap();
        assert_all(&store, table).await;
    };
    executor.block_on(saving).unwrap();
}

/// The rule: a tree that cannot be swept does not keep what runs have of others from their leaves.
#[test]
fn a_tree_that_cannot_be_swept_is_passed_over() {
    let run = |number, of| Run {
        number,
        of,
        tree: Tree { id: FIRST_RUN_TREE | number, root: PageId(u64::from(number)) },
        low: vec![0],
        high: vec![9],
        pages: 1,
        filter: None,
        sweep: Flag::new(Sweep::Not),
    };
    let mut runs = Runs::default();
    [(1, 8), (2, 9), (3, 10)].into_iter().for_each(|(number, of)| runs.add(run(number, of)));
    let next = |runs: &Runs, passed_over: &[u32]| runs.next_to_sweep(&passed_over.iter().copied().collect());
    assert_eq!(next(&runs, &[]), Some(8), "the oldest run comes first");
    assert_eq!(next(&runs, &[8]), Some(9));
    // What is asked for should go first.
    runs.count_hit(10);
    runs.look_at_uses();
    assert_eq!(next(&runs, &[]), Some(10));
    assert_eq!(next(&runs, &[10]), Some(8));
    assert_eq!(next(&runs, &[8, 9, 10]), None);
}
