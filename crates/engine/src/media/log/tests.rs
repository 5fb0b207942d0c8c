//! Tests the log on a drive that loses power: after each crash the log has all records that were acknowledged, and
//! maybe the next ones, and none that an earlier crash cut off.

use super::{Log, LogReader, LogStart};
use crate::bytes;
use crate::format::log_record::{Entry, Op};
use crate::format::page::Salt;
use crate::media::barrier::Barrier;
use crate::wait::Health;
use crate::{Error, Lsn, Options};
use fulgurite_base::{Lpn, Nanos, Prng};
use fulgurite_device::{
    Caps, Command, Completion, Device, Executor, Handle, MemDevice, Operation, QueueFull,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

const BLOCK: usize = 4096;

/// A drive with a volatile cache, whose commands take random times. A power cut keeps any blocks of the writes
/// that are not durable.
struct CutDrive {
    caps: Caps,
    now: Nanos,
    prng: Prng,
    /// The number of submissions and completions until the power is cut.
    left: Rc<Cell<u64>>,
    in_flight: BTreeMap<(Nanos, u64), Command>,
    submitted: u64,
    current: BTreeMap<u64, Vec<u8>>,
    durable: BTreeMap<u64, Vec<u8>>,
    /// The blocks that were written and are not durable.
    cached: Vec<(u64, Vec<u8>)>,
    /// The number of these blocks when each flush in flight was submitted.
    covered: BTreeMap<u64, usize>,
}

impl CutDrive {
    fn new(blocks: u64, mut prng: Prng) -> CutDrive {
        let mut caps = MemDevice::new(blocks, BLOCK as u32, 64, Nanos::ZERO).caps().clone();
        caps.pages_per_command = 1 + prng.below(8) as u32;
        caps.durable_writes = prng.below(2) == 0;
        CutDrive {
            caps,
            now: Nanos::ZERO,
            prng,
            left: Rc::default(),
            in_flight: BTreeMap::new(),
            submitted: 0,
            current: BTreeMap::new(),
            durable: BTreeMap::new(),
            cached: Vec::new(),
            covered: BTreeMap::new(),
        }
    }

    /// Turns the power on for `left` submissions and completions.
    fn turn_on(&mut self, left: u64) {
        // Commands in flight at the cut may have written some of their blocks.
        for command in std::mem::take(&mut self.in_flight).into_values() {
            self.cached.extend(blocks_of(&command.operation));
        }
        let share = [0, 20, 50, 80, 100][self.prng.below(5) as usize];
        for (block, bytes) in std::mem::take(&mut self.cached) {
            if self.prng.below(100) < share {
                self.durable.insert(block, bytes);
            }
        }
        self.current = self.durable.clone();
        self.covered.clear();
        self.left.set(left);
    }

    fn perform(&mut self, number: u64, operation: &Operation) {
        match operation {
            Operation::Read { lpn, into: Some(into), .. } => {
                let mut read = vec![0; into.len()];
                for (block, part) in (lpn.0..).zip(read.chunks_mut(BLOCK)) {
                    self.current.get(&block).into_iter().for_each(|bytes| part.copy_from_slice(bytes));
                }
                bytes::fill(into, &read);
            }
            Operation::Write { durable, .. } => {
                for (block, bytes) in blocks_of(operation) {
                    self.current.insert(block, bytes.clone());
                    match durable {
                        true => drop(self.durable.insert(block, bytes)),
                        false => self.cached.push((block, bytes)),
                    }
                }
            }
            Operation::Flush => {
                let covered = self.covered.remove(&number).unwrap_or(0);
                self.durable.extend(self.cached.drain(..covered));
                self.covered.values_mut().for_each(|later| *later = later.saturating_sub(covered));
            }
            _ => {}
        }
    }
}

/// Returns the blocks of a write with their bytes.
fn blocks_of(operation: &Operation) -> Vec<(u64, Vec<u8>)> {
    let Operation::Write { lpn, from: Some(from), .. } = operation else { return Vec::new() };
    bytes::look(from, |bytes| (lpn.0..).zip(bytes.chunks(BLOCK).map(<[u8]>::to_vec)).collect())
}

impl Device for CutDrive {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if self.left.get() > 0 {
            self.left.set(self.left.get() - 1);
            self.submitted += 1;
            if matches!(command.operation, Operation::Flush) {
                self.covered.insert(self.submitted, self.cached.len());
            }
            let end = self.now + Nanos::from_micros(10 + self.prng.below(200));
            self.in_flight.insert((end, self.submitted), command);
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        if self.left.get() == 0 {
            return;
        }
        let next = self.in_flight.first_key_value().map(|((end, _), _)| *end);
        match next.filter(|next| deadline.is_none_or(|deadline| *next <= deadline)) {
            None => self.now = self.now.max(deadline.unwrap_or(self.now)),
            Some(next) => {
                self.now = self.now.max(next);
                let ((_, number), Command { tag, operation }) =
                    self.in_flight.pop_first().expect("a command");
                self.perform(number, &operation);
                self.left.set(self.left.get().saturating_sub(1));
                completions.push(Completion { tag, at: self.now, status: Ok(()) });
            }
        }
    }
}

/// A record of the log: a number, and a length in bytes.
type Body = (u64, usize);

/// The log as it should be.
struct Model {
    prng: Prng,
    /// The positions in the superblock, which is durable at once.
    superblock: LogStart,
    /// The records from the redo point on, each with the LSN at which it begins.
    written: VecDeque<(Lsn, Body)>,
    /// The number of these records that are known to be durable.
    durable: usize,
    /// The records that the last crash cut off.
    lost: VecDeque<Body>,
    numbers: u64,
}

impl Model {
    /// Returns the next record to append: one that the last crash cut off, or a new one.
    fn next(&mut self) -> Body {
        if let Some(body) = self.lost.pop_front() {
            return body;
        }
        self.numbers += 1;
        let blocks = self.superblock.blocks;
        let len = match self.prng.below(4) {
            0 => self.prng.below((blocks / 8).max(1) * BLOCK as u64),
            1 => 3_000 + self.prng.below(2_000),
            _ => self.prng.below(400),
        };
        (self.numbers, len as usize)
    }
}

fn entry_of((number, len): Body) -> Entry {
    let value = Some(vec![number as u8; len].into());
    Entry::of_ops(vec![Op { tree: 9, key: number.to_be_bytes().into(), value, large: false }])
}

/// Opens the log after a crash, and checks its records.
async fn open(handle: Handle, model: &RefCell<Model>, options: &Options) -> Result<Log, Error> {
    let start = model.borrow().superblock;
    let mut reader = LogReader::new(handle.clone(), start, None, options);
    let mut found: Vec<Body> = Vec::new();
    let read = |_: Lsn, payload: &[u8]| {
        let entry = Entry::read(payload)?;
        let [op] = &entry.ops[..] else { return None };
        let number = u64::from_be_bytes(op.key[..].try_into().ok()?);
        Some((number, op.value.as_ref()?.len()))
    };
    while let Some((.., body)) = reader.next(read).await? {
        found.push(body);
    }
    let (tail, left_over) = reader.tail().await?;
    {
        let model = &mut *model.borrow_mut();
        let written: Vec<Body> = model.written.iter().map(|(_, body)| *body).collect();
        assert_eq!(found, written[..found.len().min(written.len())], "of {written:?}");
        assert!(found.len() >= model.durable, "{} of {} durable records", found.len(), model.durable);
    }
    let health = Health::default();
    let barrier = Rc::new(Barrier::new(handle.clone(), health.clone()));
    let start = LogStart { tail: tail.at, crc: tail.crc, ..start };
    let log = Log::new(handle, barrier, health, start, options);
    log.clear(&left_over).await?;
    let model = &mut *model.borrow_mut();
    let cut_off = model.written.split_off(found.len());
    model.durable = found.len();
    // Often the same records are written again, and then others: blocks of the earlier flush are valid behind
    // equal blocks.
    let again = model.prng.below(2 + cut_off.len() as u64) as usize;
    model.lost = cut_off.into_iter().map(|(_, body)| body).take(again).collect();
    Ok(log)
}

/// Moves the redo point to a record, or to the end of the log.
async fn checkpoint(log: &Log, model: &RefCell<Model>) -> Result<(), Error> {
    log.sync(log.tail()).await?;
    let model = &mut *model.borrow_mut();
    let (end, crc) = log.durable_end();
    let gone = model.prng.below(model.written.len() as u64 + 1) as usize;
    let redo = model.written.get(gone).map_or(end, |(since, _)| *since).min(end);
    model.superblock = LogStart { redo, tail: end, crc, ..model.superblock };
    model.written.drain(..gone);
    model.durable = model.durable.saturating_sub(gone);
    log.set_redo(redo);
    Ok(())
}

/// Appends records in bursts, and makes them durable in one of three ways.
async fn work(handle: Handle, log: Log, model: Rc<RefCell<Model>>) -> Result<(), Error> {
    loop {
        let burst = 1 + model.borrow_mut().prng.below(5);
        for _ in 0..burst {
            let body = model.borrow_mut().next();
            let needed = (body.1 + 3 * BLOCK) as u64;
            while log.used() + needed > log.capacity() {
                checkpoint(&log, &model).await?;
            }
            let (since, _) = log.append(&entry_of(body));
            model.borrow_mut().written.push_back((since, body));
        }
        let (lsn, way) = (log.tail(), model.borrow_mut().prng.below(3));
        let (syncing, model_of_it) = (log.clone(), Rc::clone(&model));
        handle.spawn(async move {
            let synced = match way {
                0 => syncing.sync(lsn).await,
                1 => syncing.sync_together(lsn).await,
                _ => return syncing.later(Nanos::from_micros(100)),
            };
            if synced.is_ok() {
                let model = &mut *model_of_it.borrow_mut();
                let count = model.written.iter().filter(|(since, _)| *since < lsn).count();
                model.durable = model.durable.max(count);
            }
        });
        let wait = Nanos::from_micros(model.borrow_mut().prng.below(300));
        handle.sleep_until(handle.now() + wait).await;
    }
}

fn crash_repeatedly(seed: u64) {
    let mut prng = Prng::new(seed, "log");
    let blocks = [8, 16, 40][prng.below(3) as usize];
    let options = Options { group_window: Nanos::from_micros(prng.below(100)), ..Options::default() };
    let superblock = LogStart {
        first: Lpn(0),
        block_bytes: BLOCK as u32,
        blocks,
        tail: Lsn(0),
        crc: 7,
        redo: Lsn(0),
        salt: Salt(7),
    };
    let mut drive = CutDrive::new(blocks, Prng::new(seed, "drive"));
    let (written, lost) = (VecDeque::new(), VecDeque::new());
    let model = Model { prng, superblock, written, durable: 0, lost, numbers: 0 };
    let model = Rc::new(RefCell::new(model));
    for _ in 0..20 {
        // Most power cuts happen after the opening, and many of these during the first flush.
        let (in_opening, in_work) = {
            let prng = &mut model.borrow_mut().prng;
            let most = [12, 12, 50, 200][prng.below(4) as usize];
            ((prng.below(4) == 0).then(|| 1 + prng.below(60)), 1 + prng.below(most))
        };
        drive.turn_on(in_opening.unwrap_or(10_000));
        let left = Rc::clone(&drive.left);
        let executor = Executor::new(drive);
        let handle: Handle = executor.handle().into();
        let (model, options) = (Rc::clone(&model), options.clone());
        executor.spawn(async move {
            let log = open(handle.clone(), &model, &options).await;
            let log = log.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            left.set(left.get().min(in_work));
            work(handle, log, model).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        });
        // The run ends when the power is cut.
        assert!(executor.run().is_err());
        drive =
            executor.with_device(|device| std::mem::replace(device, CutDrive::new(0, Prng::new(0, "none"))));
    }
}

/// The rule: whenever the power is cut, and whatever the drive keeps of the writes that are not durable, the log
/// has the records that were acknowledged, and after them only records that were written after them. Reading it
/// never reports a loss.
#[test]
fn a_crash_loses_no_durable_record_and_brings_none_back() {
    (0..600).for_each(crash_repeatedly);
}
