//! Tests with an engine in memory, correct and with several faults: only the correct one gives a result.

use super::*;
use crate::engine::{Session, Visit, VisitFound};
use crate::rows::Record;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

const LOADED: u64 = 3000;

/// A fault of the engine in memory.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Nothing,
    LosesABatch,
    ReturnsANeighbour,
    TearsAValue,
    ForgetsARow,
    ScansPastARow,
    /// Scans do not return inserted rows.
    ScansTheLoad,
    /// A call for many keys leaves out one answer.
    SkipsInABatch,
    /// A call for many keys returns one key's value for the next key.
    SwapsInABatch,
    UndoesAtTheEnd,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    Ended,
}

struct Memory {
    rows: Mutex<BTreeMap<Key, Vec<u8>>>,
    loaded: Mutex<BTreeMap<Key, Vec<u8>>>,
    fault: Fault,
    calls: AtomicU64,
    /// The number of reads, and of reads of rows that were inserted in the run.
    reads: [AtomicU64; 2],
    state: Mutex<State>,
}

struct Thread<'a>(&'a Memory);

impl Memory {
    fn new(fault: Fault) -> Memory {
        Memory {
            rows: Mutex::default(),
            loaded: Mutex::default(),
            fault,
            calls: AtomicU64::new(0),
            reads: Default::default(),
            state: Mutex::new(State::Running),
        }
    }

    /// True from time to time, once the fault can have an effect.
    fn strikes(&self, fault: Fault) -> bool {
        self.fault == fault && self.calls.fetch_add(1, Ordering::Relaxed) % 5 == 4
    }
}

impl Engine for Memory {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, _order: Order) -> Result<()> {
        let loaded: BTreeMap<Key, Vec<u8>> = rows.map(|record| (record.key, record.value.to_vec())).collect();
        *self.loaded.lock().unwrap() = loaded.clone();
        *self.rows.lock().unwrap() = loaded;
        Ok(())
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(Thread(self)))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let is_new = Rows::new(LOADED).row(key)? >= LOADED;
        self.0.reads[usize::from(is_new)].fetch_add(1, Ordering::Relaxed);
        let rows = match (self.0.fault, *self.0.state.lock().unwrap()) {
            (Fault::UndoesAtTheEnd, State::Ended) => self.0.loaded.lock().unwrap(),
            _ => self.0.rows.lock().unwrap(),
        };
        let mut found = rows.get(key);
        if self.0.strikes(Fault::ReturnsANeighbour) {
            found = rows.range(*key..).nth(1).map(|(_, value)| value);
        }
        if self.0.strikes(Fault::ForgetsARow) {
            found = None;
        }
        let Some(found) = found else { return Ok(false) };
        value.clone_from(found);
        if self.0.strikes(Fault::TearsAValue) {
            value[60..].fill(0);
        }
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], each: VisitFound<'_>) -> Result<()> {
        let skips = self.0.strikes(Fault::SkipsInABatch);
        let swaps = self.0.strikes(Fault::SwapsInABatch);
        let mut value = Vec::new();
        for number in (0..keys.len()).filter(|&number| !(skips && number == 57)) {
            let key = &keys[if swaps && number == 57 { 58 } else { number }];
            let found = self.get(key, &mut value)?;
            each(number, found.then_some(&value[..]))?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        if !self.0.strikes(Fault::LosesABatch) {
            let mut rows = self.0.rows.lock().unwrap();
            rows.extend(batch.iter().map(|record| (record.key, record.value.to_vec())));
        }
        Ok(())
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let skipped = if self.0.strikes(Fault::ScansPastARow) { 3 } else { usize::MAX };
        let rows = match self.0.fault {
            Fault::ScansTheLoad => self.0.loaded.lock().unwrap(),
            _ => self.0.rows.lock().unwrap(),
        };
        let range = rows.range(*from..).enumerate().filter(|&(at, _)| at != skipped).take(count);
        let mut found = 0;
        for (_, (key, value)) in range {
            each(key, value)?;
            found += 1;
        }
        Ok(found)
    }
}

fn measure(workload: Workload) -> Measure {
    Measure {
        workload,
        durability: Durability::Relaxed,
        batch: 4,
        theta: 0.99,
        warmup_s: if workload == Workload::Load { 0.0 } else { 0.05 },
        seconds: 0.3,
        run: 9,
        aged: false,
    }
}

fn task(engine: &str, folder: PathBuf) -> Task {
    Task {
        engine: engine.to_owned(),
        folder,
        rows: LOADED,
        threads: 2,
        cache_bytes: 4 << 20,
        memory_bytes: 64 << 20,
        direct: false,
        seed: 1,
        load: None,
        measure: None,
    }
}

fn attempt(fault: Fault, workload: Workload) -> Result<Outcome> {
    let task = task("memory", std::env::current_dir()?);
    let rows = Rows::new(task.rows);
    let engine = Memory::new(fault);
    if workload != Workload::Load {
        load(&engine, rows, Order::Random)?;
    }
    let (outcome, written) = run(&engine, rows, &task, &measure(workload))?;
    *engine.state.lock().unwrap() = State::Ended;
    verify(&engine, rows, &written)?;
    if workload == Workload::Load {
        verify_whole(&engine, rows, &written)?;
    }
    Ok(outcome)
}

#[test]
fn an_engine_that_keeps_everything_passes() {
    for workload in Workload::ALL {
        let outcome = attempt(Fault::Nothing, workload).unwrap();
        assert!(outcome.ops > 100);
        match workload {
            // All rows are inserted before the time is over.
            Workload::Load => assert_eq!((outcome.ops, outcome.rows), (3000, 3000)),
            Workload::D | Workload::E => assert!(outcome.rows > 3000),
            _ => assert_eq!(outcome.rows, 3000),
        }
    }
}

#[test]
fn a_broken_engine_has_no_result() {
    for (fault, workload) in [
        (Fault::LosesABatch, Workload::Load),
        (Fault::LosesABatch, Workload::A),
        (Fault::LosesABatch, Workload::D),
        (Fault::LosesABatch, Workload::E),
        (Fault::LosesABatch, Workload::F),
        (Fault::LosesABatch, Workload::Update),
        (Fault::ReturnsANeighbour, Workload::C),
        (Fault::TearsAValue, Workload::C),
        (Fault::ForgetsARow, Workload::Write),
        (Fault::ForgetsARow, Workload::Batch),
        (Fault::SkipsInABatch, Workload::Batch),
        (Fault::SwapsInABatch, Workload::Batch),
        (Fault::ScansPastARow, Workload::Scan),
        (Fault::ScansPastARow, Workload::E),
        (Fault::ScansTheLoad, Workload::E),
        (Fault::UndoesAtTheEnd, Workload::Load),
        (Fault::UndoesAtTheEnd, Workload::D),
        (Fault::UndoesAtTheEnd, Workload::Write),
    ] {
        assert!(attempt(fault, workload).is_err(), "{fault:?} {workload:?}");
    }
}

/// With at least 100 new rows among 3,000, the Zipf distribution directs more than half of all reads to them.
#[test]
fn the_latest_rows_are_read_most() {
    let task = task("memory", std::env::current_dir().unwrap());
    let rows = Rows::new(task.rows);
    let engine = Memory::new(Fault::Nothing);
    load(&engine, rows, Order::Sorted).unwrap();
    run(&engine, rows, &task, &measure(Workload::D)).unwrap();
    let [old, new] = engine.reads.each_ref().map(|count| count.load(Ordering::Relaxed));
    assert!(new > old, "{new} of new rows, {old} of old ones");
}

/// Inserted rows are looked up after the run, whether or not they are in the ledger's sample.
#[test]
fn an_inserted_row_that_is_gone_at_the_end_is_noticed() {
    let task = task("memory", std::env::current_dir().unwrap());
    let rows = Rows::new(task.rows);
    let engine = Memory::new(Fault::Nothing);
    load(&engine, rows, Order::Sorted).unwrap();
    let (_, written) = run(&engine, rows, &task, &measure(Workload::D)).unwrap();
    verify(&engine, rows, &written).unwrap();
    engine.rows.lock().unwrap().remove(&rows.key(written.inserted.end - 1)).unwrap();
    assert!(verify(&engine, rows, &written).is_err());
}

/// A load is scanned completely: a single missing or additional row is detected.
#[test]
fn a_load_that_lost_one_row_is_noticed() {
    let task = task("memory", std::env::current_dir().unwrap());
    let rows = Rows::new(task.rows);
    let engine = Memory::new(Fault::Nothing);
    let (_, written) = run(&engine, rows, &task, &measure(Workload::Load)).unwrap();
    verify_whole(&engine, rows, &written).unwrap();
    let key = rows.key(1234);
    let value = engine.rows.lock().unwrap().remove(&key).unwrap();
    assert!(verify_whole(&engine, rows, &written).is_err());
    // A row that was never inserted is detected too.
    let mut all = engine.rows.lock().unwrap();
    all.insert(key, value);
    let extra = rows.record(3001, Version::LOADED);
    all.insert(extra.key, extra.value.to_vec());
    drop(all);
    assert!(verify_whole(&engine, rows, &written).is_err());
}

/// All workloads in a real engine, with all checks, and after reopening the store.
fn every_workload_runs_in(name: &str) {
    for workload in Workload::ALL {
        let folder = crate::scratch(name);
        let mut task = task(name, folder.clone());
        task.load = (workload != Workload::Load).then_some(Order::Sorted);
        task.measure = Some(measure(workload));
        let outcome = work(&task).with_context(|| format!("{workload:?}")).unwrap().unwrap();
        assert!(outcome.ops > 0 && outcome.space_bytes > 0 && outcome.reopened, "{workload:?}");
        assert_eq!(outcome.user_bytes > 0, workload.writes(), "{workload:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn every_workload_runs_in_our_store() {
    every_workload_runs_in("fulgurite");
}

#[cfg(feature = "lmdb")]
#[test]
fn every_workload_runs_in_lmdb() {
    every_workload_runs_in("lmdb");
}

#[cfg(feature = "redb")]
#[test]
fn every_workload_runs_in_redb() {
    every_workload_runs_in("redb");
}

#[cfg(feature = "rocksdb")]
#[test]
fn every_workload_runs_in_rocksdb() {
    every_workload_runs_in("rocksdb");
}
