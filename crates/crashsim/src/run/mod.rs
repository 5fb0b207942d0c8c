//! Executes a plan, generation by generation with power cuts between them, and checks all guarantees of the
//! store.
//!
//! The store is created without faults. In each generation the clients work until the power is cut. The store
//! is opened again, possibly with further power cuts, and its contents are read and judged. The next
//! generation continues from this state. [`FaultKind::allows`](crate::device::FaultKind::allows) lists the
//! consequences that each fault may have. If the medium is damaged and the store reports this, the run ends.

mod progress;
mod world;
mod beside;
mod session;
mod client;
mod verify;

use crate::device::{Allowed, CrashDevice, Fault};
use crate::history::History;
use crate::plan::{Ending, Generation, Memory, Plan, StorePlan};
use crate::recovery;
use crate::value::{Key, TableName, Value, Version};
use crate::violation::{Violation, ViolationKind};
use fulgurite_base::Prng;
use fulgurite_device::{Executor, Handle};
use fulgurite_engine::sharded::{Store, divide};
use fulgurite_engine::{Direction, Durability, Error, Options};
use progress::Tables;
use session::Session;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Bound;
use std::rc::Rc;
use world::{Stop, World};

/// The maximum number of drive events and waits in one phase of a run. A run that terminates needs a small
/// part of it.
const BUDGET: u64 = 400_000;

/// The initial amount of each account.
const AMOUNT: i64 = 1_000;

/// The outcome of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The first violation; `None` if there was none.
    pub violation: Option<Violation>,
    /// A hash of all events of the run.
    pub fingerprint: u64,
    /// The number of acknowledged transactions and snapshots.
    pub committed: u64,
    /// The number of power cuts, including those during recovery.
    pub cuts: u64,
    /// The number of drive faults that have struck.
    pub faults: u64,
    /// Whether the run ended because the store reported damage that cannot be repaired.
    pub damaged: bool,
}

/// Executes `plan`.
pub(crate) fn run(plan: &Plan) -> Report {
    let device = CrashDevice::new(plan.device.clone(), Prng::new(plan.seed, "crash drive"));
    let sum = i64::from(plan.accounts) * AMOUNT;
    let report = Report::default();
    let (store, most) = (plan.store.clone(), plan.store.clone());
    let (found, tables) = Default::default();
    let mut run = Run { plan, device, store, most, found, tables, next_txn: 1, sum, report };
    run.report.violation = run.carry_out().err();
    run.report.faults = run.device.struck().len() as u64;
    run.mix(run.device.fingerprint());
    run.report
}

/// The state of a run between generations.
struct Run<'p> {
    plan: &'p Plan,
    device: CrashDevice,
    /// The current settings of the store. `most` are the settings with the largest amount of memory so far.
    store: StorePlan,
    most: StorePlan,
    /// The records after the last restart, by key.
    found: BTreeMap<Key, Value>,
    /// The tables beside those of the history.
    tables: Tables,
    next_txn: u32,
    sum: i64,
    report: Report,
}

/// An open store with its executor and the state that its clients share.
struct Opened {
    executor: Executor<CrashDevice>,
    world: Rc<World>,
}

impl Run<'_> {
    fn mix(&mut self, word: u64) {
        self.report.fingerprint =
            (self.report.fingerprint.rotate_left(7) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn carry_out(&mut self) -> Result<(), Violation> {
        let plan = self.plan;
        let mut opened = self.make(&options(&plan.store)?)?;
        for generation in &plan.generations {
            self.work(&opened, generation)?;
            let history = self.leave(opened);
            let Some(next) = self.recover(generation, &history)? else {
                self.report.damaged = true;
                return Ok(());
            };
            opened = next;
        }
        Ok(())
    }

    fn allowed(&self) -> Allowed {
        self.device.struck().iter().fold(Allowed::default(), |allowed, kind| allowed.or(kind.allows()))
    }

    /// Runs `future` to its end. Returns `None` if the power was cut before.
    fn drive<T: 'static>(
        &self,
        executor: &Executor<CrashDevice>,
        what: &str,
        future: impl Future<Output = T> + 'static,
    ) -> Result<Option<T>, Violation> {
        let output = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&output);
        executor.spawn(async move {
            let value = future.await;
            slot.replace(Some(value));
        });
        let ran = executor.run();
        self.watch(what)?;
        let value = output.borrow_mut().take();
        match value {
            None if self.device.powered() => {
                let why = ran.err().map_or(String::new(), |error| format!(": {error}"));
                Err(Violation::new(ViolationKind::Stuck, format!("{what} does not end{why}")))
            }
            value => Ok(value),
        }
    }

    /// Checks that the store used the drive correctly, and that the run terminates.
    fn watch(&self, what: &str) -> Result<(), Violation> {
        if let Some(misuse) = self.device.misuse() {
            return Err(Violation::new(ViolationKind::Misuse, misuse));
        }
        if self.device.exhausted() {
            let text = format!("{what} does not end within {BUDGET} events");
            return Err(Violation::new(ViolationKind::Stuck, text));
        }
        Ok(())
    }

    /// Returns the handles of the shards on the drive.
    fn handles(&self, executor: &Executor<CrashDevice>) -> Result<Vec<Handle>, Violation> {
        divide(executor.handle(), self.plan.store.shards)
            .map_err(|error| Violation::new(ViolationKind::Error, error.to_string()))
    }

    fn restart(&mut self, cut_after: Option<u64>, faults: &[Fault]) -> Executor<CrashDevice> {
        self.report.cuts += 1;
        self.device.restart(cut_after, faults.to_vec(), BUDGET);
        Executor::new(self.device.clone())
    }

    /// Creates the store and fills it.
    fn make(&mut self, options: &Options) -> Result<Opened, Violation> {
        if let Some(events) = self.plan.cut_in_create {
            let executor = self.restart(Some(events), &[]);
            let is_created = Rc::new(Cell::new(false));
            let filled = fill(
                self.handles(&executor)?,
                options.clone(),
                self.device.clone(),
                self.plan.clone(),
                self.sum,
                Rc::clone(&is_created),
            );
            self.drive(&executor, "making the store", async { filled.await.is_ok() })?;
            drop(executor);
            // The power cut may leave a part of a store behind, and opening it may fail then, but must not hang.
            let executor = self.restart(None, &[]);
            let part =
                check_part(self.handles(&executor)?, options.clone(), self.plan.clone(), is_created.get());
            if let Some(Err(text)) = self.drive(&executor, "opening an incomplete store", part)? {
                return Err(Violation::new(ViolationKind::Structure, text));
            }
        }
        let executor = self.restart(None, &[]);
        let create = fill(
            self.handles(&executor)?,
            options.clone(),
            self.device.clone(),
            self.plan.clone(),
            self.sum,
            Rc::default(),
        );
        let world = match self.drive(&executor, "making the store", create)? {
            Some(Ok(world)) => world,
            Some(Err(text)) => return Err(Violation::new(ViolationKind::Error, text)),
            None => return Err(Violation::new(ViolationKind::Stuck, "the power was cut without a plan")),
        };
        self.next_txn = world.txns();
        let world = Rc::new(world);
        // The first read of the whole store gives the initial records.
        self.found = self.look(&executor, &world, "the first reading")?.unwrap_or_default();
        world.history.replace(History::new(self.versions()));
        Ok(Opened { executor, world })
    }

    fn versions(&self) -> BTreeMap<Key, Version> {
        self.found.iter().map(|(key, value)| (*key, value.version)).collect()
    }

    /// Reads the whole store. Returns `None` if the store reports damage that a fault explains.
    fn look(
        &mut self,
        executor: &Executor<CrashDevice>,
        world: &Rc<World>,
        what: &str,
    ) -> Result<Option<BTreeMap<Key, Value>>, Violation> {
        let reader = Rc::clone(world);
        // A reported read error is transient, so the read is repeated, as a client would do.
        let read = async move {
            let mut end = Err(Stop::Step);
            for _ in 0..4 {
                end = verify::read_all(&reader).await;
                if end.is_ok() || reader.violation.borrow().is_some() {
                    break;
                }
            }
            if end.is_ok() && reader.violation.borrow().is_none() {
                let checked = verify::check(&reader).await;
                end = checked.and(end);
            }
            end
        };
        let read = self.drive(executor, what, read)?;
        self.next_txn = world.txns();
        let allowed = self.allowed();
        if let Some(violation) = world.violation.borrow_mut().take() {
            // Wrong data is never allowed. A failed check of a damaged store is allowed. A wrong sum of
            // accounts is allowed too if accounts are missing because the drive has damaged the last block of
            // the log, which contained their initial load.
            let accounts = |found: &BTreeMap<Key, Value>| {
                found.keys().filter(|key| key.table == TableName::Accounts).count()
            };
            let found = read.as_ref().and_then(|read| read.as_ref().ok()).map(accounts);
            let is_load_lost = found.is_some_and(|found| found < self.plan.accounts as usize);
            return match violation.kind {
                ViolationKind::Structure if allowed.damage => Ok(None),
                ViolationKind::Sum if allowed.lost_tail && is_load_lost => Ok(None),
                _ => Err(violation),
            };
        }
        self.excuse(world, what)?;
        Ok(read.and_then(Result::ok))
    }

    /// Checks that a fault explains the error that was recorded, if there is one.
    fn excuse(&self, world: &World, what: &str) -> Result<(), Violation> {
        match world.error.borrow_mut().take() {
            Some(error) if !self.allowed().errors => {
                Err(Violation::new(ViolationKind::Error, format!("{what}: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Runs the clients of a generation.
    fn work(&mut self, opened: &Opened, generation: &Generation) -> Result<(), Violation> {
        let Opened { executor, world } = opened;
        let cut_after = match generation.ending {
            Ending::Cut(events) => Some(events),
            Ending::Close => None,
        };
        self.device.arm(cut_after, generation.faults.clone(), BUDGET);
        world.clients.set(generation.clients.len());
        for (number, steps) in generation.clients.iter().enumerate() {
            executor.spawn(client::client(Rc::clone(world), number as u32, steps.clone()));
        }
        let ran = executor.run();
        self.watch("the work")?;
        if world.clients.get() > 0 && self.device.powered() {
            let why = ran.err().map_or(String::new(), |error| format!(": {error}"));
            let text = format!("{} clients wait for ever{why}", world.clients.get());
            return Err(Violation::new(ViolationKind::Stuck, text));
        }
        if let Some(violation) = world.violation.borrow_mut().take() {
            return Err(violation);
        }
        self.excuse(world, "the work")?;
        if generation.ending == Ending::Close && self.device.powered() {
            let store = world.store.clone();
            let closed = self.drive(executor, "closing", async move { store.close().await })?;
            if let Some(Err(error)) = closed {
                world.stop(&error);
            }
            self.excuse(world, "closing")?;
        }
        Ok(())
    }

    /// Drops the open store and returns its history.
    fn leave(&mut self, opened: Opened) -> History {
        let Opened { executor, world } = opened;
        self.next_txn = world.txns();
        let history = world.history.take();
        self.tables = world.tables_beside.take();
        drop(world);
        drop(executor);
        self.mix(history.fingerprint());
        let ended = history.txns.iter().filter(|txn| txn.outcome == crate::history::Outcome::Committed);
        self.report.committed += ended.count() as u64;
        history
    }

    /// Opens the store and judges its contents. Returns `None` if it is damaged.
    fn recover(&mut self, generation: &Generation, history: &History) -> Result<Option<Opened>, Violation> {
        if let Some(Memory { frames, records }) = generation.memory {
            self.store = StorePlan { frames, records, ..self.store.clone() };
            let (frames, records) = (frames.max(self.most.frames), records.max(self.most.records));
            self.most = StorePlan { frames, records, ..self.store.clone() };
        }
        let options = options(&self.store)?;
        for events in &generation.recovery_cuts {
            let executor = self.restart(Some(*events), &[]);
            let handles = self.handles(&executor)?;
            let opening = Store::open(handles, options.clone());
            let opened = self.drive(&executor, "recovery", async { opening.await.err() })?;
            self.refused(opened.flatten().filter(|error| !self.is_short(error)))?;
        }
        let Some(Opened { executor, world }) = self.open(&generation.recovery_faults)? else {
            return Ok(None);
        };
        let Some(found) = self.look(&executor, &world, "the reading after recovery")? else {
            return Ok(None);
        };
        self.found = found;
        recovery::judge(history, &self.versions(), self.allowed())?;
        self.check_tables(&executor, &world)?;
        world.history.replace(History::new(self.versions()));
        Ok(Some(Opened { executor, world }))
    }

    /// Checks the tables beside those of the history, unless faults may have lost them.
    fn check_tables(&mut self, executor: &Executor<CrashDevice>, world: &Rc<World>) -> Result<(), Violation> {
        let (store, tables) = (world.store.clone(), self.tables.clone());
        let checked = async move { beside::check_tables(&store, &tables).await };
        let allowed = self.allowed();
        if !allowed.lost_tail && !allowed.damage {
            match self.drive(executor, "reading the tables beside", checked)? {
                Some(Ok(left)) => self.tables = left,
                Some(Err(text)) if !allowed.errors => {
                    return Err(Violation::new(ViolationKind::Structure, text));
                }
                _ => {}
            }
        }
        world.tables_beside.replace(self.tables.clone());
        Ok(())
    }

    /// Whether an error says that memory is too small. This is allowed if the store had more memory before.
    fn is_short(&self, error: &Error) -> bool {
        self.store != self.most && matches!(error, Error::Full { .. } | Error::Options(_))
    }

    /// Checks that a fault explains why a store cannot be opened.
    fn refused(&self, error: Option<Error>) -> Result<(), Violation> {
        match error {
            Some(error) if !self.allowed().errors => {
                Err(Violation::new(ViolationKind::Error, format!("opening: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Opens the store at the end of recovery. If a fault that the drive reports makes the opening fail, the
    /// opening is repeated without faults.
    fn open(&mut self, faults: &[Fault]) -> Result<Option<Opened>, Violation> {
        let mut last = None;
        for faults in [faults, &[], &[]] {
            let executor = self.restart(None, faults);
            let (device, first_txn, initial, sum) =
                (self.device.clone(), self.next_txn, self.versions(), self.sum);
            let (handles, options, plan) =
                (self.handles(&executor)?, options(&self.store)?, self.store.clone());
            let opening = async move {
                let store = Store::open(handles, options).await?;
                World::new(store, device, first_txn, initial, sum, &plan).await
            };
            match self.drive(&executor, "opening", opening)? {
                Some(Ok(world)) => return Ok(Some(Opened { executor, world: Rc::new(world) })),
                Some(Err(error)) if self.is_short(&error) => self.store = self.most.clone(),
                Some(Err(error)) => {
                    last = Some(error.to_string());
                    self.refused(Some(error))?;
                }
                None => {}
            }
        }
        if self.allowed().damage {
            return Ok(None);
        }
        let text = format!("the store cannot be opened: {}", last.unwrap_or_default());
        Err(Violation::new(ViolationKind::Lost, text))
    }
}

fn options(plan: &StorePlan) -> Result<Options, Violation> {
    world::options(plan).map_err(|text| Violation::new(ViolationKind::Error, text))
}

/// Opens a store whose creation or filling was interrupted, and checks what is there. If `is_created`, the store must
/// open.
async fn check_part(
    handles: Vec<Handle>,
    options: Options,
    plan: Plan,
    is_created: bool,
) -> Result<(), String> {
    let text = |error: Error| format!("an interrupted filling: {error}");
    let store = match Store::open(handles, options).await {
        Ok(store) => store,
        Err(error) => return if is_created { Err(text(error)) } else { Ok(()) },
    };
    let report = store.check().await.map_err(text)?;
    if let Some(problem) = report.problems.first() {
        return Err(format!("an interrupted filling leaves a problem: {problem}"));
    }
    let Ok(table) = store.table(TableName::Rows.text()).await else { return Ok(()) };
    let (snapshot, mut rows) = (store.snapshot().await, 0);
    let mut scan = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    while scan.next().await.map_err(text)?.is_some() {
        rows += 1;
    }
    // A bulk load of a shard is atomic, and no row is inserted or deleted after it.
    match plan.bulk_load && plan.store.shards == 1 && rows > 0 && rows != plan.rows {
        true => Err(format!("{rows} of {} rows are loaded", plan.rows)),
        false => Ok(()),
    }
}

/// Creates the store with its tables and initial records. Sets `is_created` once the empty store exists.
async fn fill(
    handles: Vec<Handle>,
    options: Options,
    device: CrashDevice,
    plan: Plan,
    sum: i64,
    is_created: Rc<Cell<bool>>,
) -> Result<World, String> {
    let text = |error: Error| format!("making the store: {error}");
    let store = Store::create(handles, options).await.map_err(text)?;
    is_created.set(true);
    let mut next = 1;
    let rows: Vec<Key> = (0..plan.rows).map(|number| Key::new(TableName::Rows, number * 2)).collect();
    if plan.bulk_load && !rows.is_empty() {
        let table = store.create_table(TableName::Rows.text()).await.map_err(text)?;
        let records = rows.iter().enumerate().map(|(at, key)| {
            let version = Version::new(crate::value::TxnId(1), at as u32);
            (key.bytes(), Value { version, amount: at as i64 }.encode(plan.row_bytes))
        });
        store.bulk_load(table, records).await.map_err(text)?;
        store.checkpoint().await.map_err(text)?;
        next = 2;
    }
    let world = World::new(store, device, next, BTreeMap::new(), sum, &plan.store).await.map_err(text)?;
    let money = (0..plan.accounts).map(|number| Key::new(TableName::Accounts, number));
    let registers = (0..plan.registers).map(|number| Key::new(TableName::Registers, number));
    let singly = rows.iter().copied().filter(|_| !plan.bulk_load);
    let keys: Vec<Key> = money.chain(registers).chain(singly).collect();
    let together = if plan.row_bytes > 60 { 3 } else { 6 };
    for keys in keys.chunks(together) {
        let rows = keys.iter().all(|key| key.table == TableName::Rows);
        match load(&world, keys, plan.row_bytes).await {
            Ok(()) => {}
            // A small drive may be full before the last row is inserted, which is no violation.
            Err(Stop::Step) if rows && world.error.borrow().is_none() => break,
            Err(_) => return Err(format!("filling the store: {}", world.last_error.borrow())),
        }
    }
    for round in 0..plan.rounds as usize {
        for keys in rows.chunks(together).skip(round % 3).step_by(3) {
            match load(&world, keys, plan.row_bytes).await {
                Ok(()) => {}
                Err(Stop::Step) if world.error.borrow().is_none() => break,
                Err(_) => return Err(format!("filling the store: {}", world.last_error.borrow())),
            }
        }
        world.store.checkpoint().await.map_err(text)?;
    }
    Ok(world)
}

async fn load(world: &World, keys: &[Key], row_bytes: usize) -> Result<(), Stop> {
    let mut session = Session::begin(world, 0, false).await;
    for key in keys {
        match key.table {
            TableName::Accounts => session.put(*key, AMOUNT, 40).await?,
            _ => session.put_row(*key, row_bytes).await?,
        }
    }
    session.commit(Durability::Flush).await
}
