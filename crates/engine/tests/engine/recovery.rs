//! Tests recovery with less memory than the operations of the log need, so that it reads the log twice.

use crate::common::patched::Patched;
use crate::common::sample::LOG;
use crate::common::{all, mem, options, run};
use fulgurite_base::{Nanos, Prng};
use fulgurite_device::{Caps, Command, Completion, Device, Executor, MemDevice, Operation, QueueFull};
use fulgurite_engine::{Durability, Error, Options, Store};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

type Model = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

const TABLES: [&str; 2] = ["one", "two"];
const KEYS: u64 = 1_500;

fn long_log() -> Options {
    Options { log_bytes: 8 << 20, ..options() }
}

/// Commits more puts and deletes than recovery can hold at a time, and drops the store without closing it.
/// Returns the drive and the expected contents.
fn crashed() -> (MemDevice, Model) {
    let executor = Executor::new(mem());
    let model = run(&executor, |handle| async move {
        let store = Store::create(handle, long_log()).await.unwrap();
        let mut tables = Vec::new();
        for name in TABLES {
            tables.push(store.create_table(name).await.unwrap());
        }
        let (mut model, mut prng) = (Model::new(), Prng::new(5, "stretches"));
        for _ in 0..1_000 {
            let transaction = store.begin();
            for _ in 0..16 {
                let place = prng.below(2) as usize;
                let key = prng.below(KEYS).to_be_bytes().to_vec();
                if prng.below(5) == 0 {
                    transaction.delete(tables[place], &key).await.unwrap();
                    model.remove(&(place, key));
                } else {
                    let value = vec![prng.below(256) as u8; prng.below(120) as usize];
                    transaction.put(tables[place], &key, &value).await.unwrap();
                    model.insert((place, key), value);
                }
            }
            transaction.commit_with(Durability::Relaxed).await.unwrap();
        }
        let last = store.begin();
        last.put(tables[0], b"last", b"").await.unwrap();
        last.commit_with(Durability::Flush).await.unwrap();
        model.insert((0, b"last".to_vec()), Vec::new());
        model
    });
    (executor.with_device(|device| std::mem::replace(device, mem())), model)
}

#[test]
fn a_log_of_many_passes_is_redone_in_order() {
    let (device, model) = crashed();
    let executor = Executor::new(device);
    run(&executor, |handle| async move {
        let store = Store::open(handle, long_log()).await.unwrap();
        // A batch applies one operation for each key, so this many operations take several batches.
        let most_of_a_stretch = 2 * KEYS + 1;
        let recovered = store.statistics().recovered_ops;
        assert!(recovered > 2 * most_of_a_stretch, "{recovered} operations are not many stretches");
        let mut found = Model::new();
        for (place, table) in TABLES.into_iter().enumerate() {
            let records = all(&store, table).await.unwrap();
            found.extend(records.into_iter().map(|(key, value)| ((place, key), value)));
        }
        assert!(found == model, "{} records, not the {} that were committed", found.len(), model.len());
        let report = store.check().await.unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    });
}

/// A drive that returns the contents of one page at the first read, and zeros at later reads.
struct LosesLater {
    inner: MemDevice,
    lost: u64,
    reads: u32,
}

impl Device for LosesLater {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let lost = match &command.operation {
            Operation::Read { lpn, pages, into: Some(into) } => {
                let pages = lpn.0..lpn.0 + u64::from(*pages);
                pages.contains(&self.lost).then(|| into.part((self.lost - lpn.0) as usize * 4096, 4096))
            }
            _ => None,
        };
        self.inner.submit(command)?;
        if let Some(lost) = lost {
            self.reads += 1;
            if self.reads > 1 {
                // SAFETY: from submission to completion the device owns the buffer.
                unsafe { lost.bytes_mut() }.fill(0);
            }
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
    }
}

#[test]
fn a_log_that_is_shorter_in_the_second_pass_is_refused() {
    let (device, _) = crashed();
    // The page is among the last of about 330 log blocks: behind the first batch, but within the first piece
    // of the log that is read.
    let lost = LOG as u64 + 250;
    let executor = Executor::new(LosesLater { inner: device, lost, reads: 0 });
    let opened = run(&executor, |handle| async move { Store::open(handle, long_log()).await.map(drop) });
    assert_eq!(executor.with_device(|device| device.reads), 2);
    match opened {
        Err(Error::LogCorrupt { at, what }) => {
            assert_eq!(at.0, 250 * 4096);
            assert!(what.contains("and ends before"), "{what}");
        }
        other => panic!("operations are missing and nobody has noticed: {other:?}"),
    }
}

/// A drive that loses power after a number of commands, or that never completes a write of a superblock, so
/// that no checkpoint ends.
struct Failing {
    inner: Patched,
    /// The number of commands until the power is lost.
    left: u64,
    holds_superblocks: bool,
}

impl Device for Failing {
    fn caps(&self) -> &Caps {
        self.inner.caps()
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        let is_held = matches!(&command.operation, Operation::Write { lpn, .. } if lpn.0 < LOG as u64);
        if self.left == 0 || (is_held && self.holds_superblocks) {
            return Ok(());
        }
        self.left -= 1;
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
    }
}

/// Returns options without a record cache: records go to their leaves at once, so the log keeps no space for
/// copying pending records.
fn full_log() -> Options {
    Options { records: 0, ..options() }
}

/// Returns a store whose log is nearly full, with more operations than recovery can hold at a time, and the
/// expected contents.
fn crashed_with_a_full_log() -> (Rc<Vec<u8>>, Model) {
    let inner = Patched::new(&Rc::new(vec![0; 16 << 20]));
    let executor = Executor::new(Failing { inner, left: u64::MAX, holds_superblocks: false });
    let (store, table) = run(&executor, |handle| async move {
        let store = Store::create(handle, full_log()).await.unwrap();
        let table = store.create_table(TABLES[0]).await.unwrap();
        (store, table)
    });
    executor.with_device(|device| device.holds_superblocks = true);
    let (mut model, mut prng) = (Model::new(), Prng::new(6, "full log"));
    loop {
        let mut changes = Model::new();
        for _ in 0..16 {
            let key = prng.below(4 * KEYS).to_be_bytes().to_vec();
            changes.insert((0, key), vec![prng.below(256) as u8; prng.below(200) as usize]);
        }
        let transaction = store.begin();
        let (all, committed) = (changes.clone(), Rc::new(Cell::new(false)));
        let is_committed = Rc::clone(&committed);
        // The outcome is ignored: a checkpoint that waits forever keeps some tasks from ending.
        let _ = executor.block_on(async move {
            for ((_, key), value) in &all {
                transaction.put(table, key, value).await.unwrap();
            }
            transaction.commit_with(Durability::Flush).await.unwrap();
            is_committed.set(true);
        });
        if !committed.get() {
            break;
        }
        model.append(&mut changes);
    }
    let used = store.statistics().log_bytes_used;
    assert!(used > full_log().log_bytes / 5 * 4, "{used} bytes of log");
    (Rc::new(executor.with_device(|device| device.inner.contents())), model)
}

/// Opens a store on a drive that accepts `commands` commands. Returns the number of commands that were used,
/// the contents if the store could be opened, and the final contents of the drive.
fn open_once(image: &Rc<Vec<u8>>, commands: u64) -> (u64, Option<Model>, Rc<Vec<u8>>) {
    let inner = Patched::new(image);
    let executor = Executor::new(Failing { inner, left: commands, holds_superblocks: false });
    let handle = executor.handle();
    let found = executor.block_on(async move {
        let store = Store::open(handle, full_log()).await.unwrap();
        let records = all(&store, TABLES[0]).await.unwrap();
        records.into_iter().map(|(key, value)| ((0, key), value)).collect()
    });
    let left = executor.with_device(|device| device.left);
    (commands - left, found.ok(), Rc::new(executor.with_device(|device| device.inner.contents())))
}

/// The rule: changes that recovery makes durable must not hide log records that it has not read yet.
#[test]
fn a_power_cut_in_recovery_from_a_full_log_loses_nothing() {
    let (image, model) = crashed_with_a_full_log();
    let (commands, found, _) = open_once(&image, u64::MAX);
    assert!(found == Some(model.clone()));
    for cut in (0..commands).step_by(commands as usize / 24) {
        let (_, _, image) = open_once(&image, cut);
        let (_, found, _) = open_once(&image, u64::MAX);
        let found = found.unwrap();
        assert!(found == model, "cut after {cut} of {commands}: {} records of {}", found.len(), model.len());
    }
}
