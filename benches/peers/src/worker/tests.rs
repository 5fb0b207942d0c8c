//! An engine in memory, sound and broken in several ways: only the sound one has a result.

use super::*;
use crate::engine::{Session, Visit};
use crate::rows::Record;
use crate::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// What an engine in memory does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Nothing,
    LosesABatch,
    ReturnsANeighbour,
    TearsAValue,
    ForgetsARow,
    ScansPastARow,
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
            state: Mutex::new(State::Running),
        }
    }

    /// True now and then, once the fault has something to spoil.
    fn strikes(&self, fault: Fault) -> bool {
        self.fault == fault && self.calls.fetch_add(1, Ordering::Relaxed) % 50 == 49
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

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        if !self.0.strikes(Fault::LosesABatch) {
            let mut rows = self.0.rows.lock().unwrap();
            rows.extend(batch.iter().map(|record| (record.key, record.value.to_vec())));
        }
        Ok(())
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        let skipped = if self.0.strikes(Fault::ScansPastARow) { 3 } else { usize::MAX };
        let rows = self.0.rows.lock().unwrap();
        let range = rows.range(*from..).enumerate().filter(|&(at, _)| at != skipped).take(count);
        let mut found = 0;
        for (_, (key, value)) in range {
            each(key, value)?;
            found += 1;
        }
        Ok(found)
    }
}

fn attempt(fault: Fault, workload: Workload) -> Result<u64> {
    let measure = Measure {
        workload,
        durability: Durability::Relaxed,
        batch: 8,
        theta: 0.99,
        warmup_s: 0.05,
        seconds: 0.3,
        run: 9,
        aged: false,
    };
    let task = Task {
        engine: "memory".to_owned(),
        folder: std::env::current_dir()?,
        rows: 3000,
        threads: 2,
        cache_bytes: 0,
        memory_bytes: 64 << 20,
        direct: false,
        seed: 1,
        load: None,
        measure: None,
    };
    let rows = Rows::new(task.rows);
    let engine = Memory::new(fault);
    load(&engine, rows, Order::Random)?;
    let (outcome, ledgers) = run(&engine, rows, &task, &measure)?;
    *engine.state.lock().unwrap() = State::Ended;
    verify(&engine, rows, &ledgers)?;
    Ok(outcome.ops)
}

#[test]
fn an_engine_that_keeps_everything_passes() {
    for workload in Workload::ALL {
        assert!(attempt(Fault::Nothing, workload).unwrap() > 100);
    }
}

#[test]
fn a_broken_engine_has_no_result() {
    for (fault, workload) in [
        (Fault::LosesABatch, Workload::A),
        (Fault::ReturnsANeighbour, Workload::C),
        (Fault::TearsAValue, Workload::C),
        (Fault::ForgetsARow, Workload::Write),
        (Fault::ScansPastARow, Workload::Scan),
        (Fault::UndoesAtTheEnd, Workload::Write),
    ] {
        assert!(attempt(fault, workload).is_err(), "{workload:?}");
    }
}
