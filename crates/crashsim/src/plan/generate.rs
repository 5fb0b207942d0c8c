//! Generates the plan of a seed. Each part of the plan uses its own random stream, so a change of one part
//! leaves the others as they are.

use super::{Ending, Generation, Memory, Plan, Step, StorePlan, Work};
use crate::device::{CrashConfig, Fault, FaultKind, Stalls};
use crate::value::{Key, TableName};
use fulgurite_base::{Choice, Nanos, Prng};
use fulgurite_engine::{Durability, TornPages};
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};

/// Returns one of `choices` at random.
pub(super) fn one_of<T: Copy>(prng: &mut Prng, choices: &[T]) -> T {
    choices[prng.below(choices.len() as u64) as usize]
}

/// Returns true with probability 1/`n`.
pub(super) fn once_in(prng: &mut Prng, n: u64) -> bool {
    prng.below(n) == 0
}

/// Returns a random number up to `most`. All orders of magnitude are equally likely.
pub(super) fn any_size(prng: &mut Prng, most: u64) -> u64 {
    let bits = 64 - most.leading_zeros();
    let bound = 1 << (1 + prng.below(u64::from(bits)));
    1 + prng.below(most.min(bound))
}

impl Plan {
    /// Generates the plan of a seed without pressure. Half of the seeds write pages out of place.
    pub fn without_pressure(seed: u64) -> Plan {
        let mut plan = Plan::patient(seed);
        let mut prng = Prng::new(seed, "crash place");
        if once_in(&mut prng, 2) {
            move_out(&mut prng, &mut plan);
            pack(seed, &mut plan);
            make_deltas(seed, &mut plan);
        }
        lose_patience(seed, &mut plan);
        change_memory(seed, &mut plan);
        plan.store.map_bytes = map_memory(&plan);
        plan
    }

    /// Generates the plan of a seed, with pages in place.
    pub fn in_place(seed: u64) -> Plan {
        let mut plan = Plan::patient(seed);
        lose_patience(seed, &mut plan);
        change_memory(seed, &mut plan);
        plan
    }

    fn patient(seed: u64) -> Plan {
        let mut prng = Prng::new(seed, "crash plan");
        let store = store(&mut prng);
        let (device, mut store) = device(&mut prng, store);
        store.records = records(&mut Prng::new(seed, "crash records"));
        let device = CrashConfig {
            share_pages: share_pages(seed, &device, &store),
            durable_writes: once_in(&mut Prng::new(seed, "crash durable writes"), 2),
            ..device
        };
        let mut plan = Plan {
            seed,
            device,
            store,
            accounts: 2 + prng.below(12) as u32,
            registers: 1 + prng.below(12) as u32,
            rows: one_of(&mut prng, &[0, 10, 40, 150]),
            row_bytes: 60,
            rounds: 0,
            bulk_load: once_in(&mut prng, 3),
            cut_in_create: once_in(&mut prng, 8).then(|| any_size(&mut prng, 60)),
            generations: Vec::new(),
        };
        let mut prng = Prng::new(seed, "crash generations");
        let kinds = fault_kinds(&mut prng);
        // A lost or misdirected write leaves an old but valid page. Only reading pages back detects this, so
        // the store then verifies its writes.
        let silent = [FaultKind::LostWrite, FaultKind::MisdirectedWrite];
        plan.store.verify_writes = silent.iter().any(|kind| kinds.contains(kind)) || once_in(&mut prng, 8);
        let relaxed = one_of(&mut prng, &[0, 0, 20, 60]);
        for _ in 0..1 + prng.below(4) {
            let generation = generation(&mut prng, &plan, &kinds, relaxed);
            plan.generations.push(generation);
        }
        plan
    }
}

fn store(prng: &mut Prng) -> StorePlan {
    let name = |prng: &mut Prng, names: &[&str]| names[prng.below(names.len() as u64) as usize].to_owned();
    // A store does not know its requests beforehand.
    let replacement: Vec<&str> =
        ReplacementConfig::registry().names().filter(|name| *name != "belady").collect();
    let write_back: Vec<&str> = WriteBackConfig::registry().names().collect();
    let prefetch: Vec<&str> = PrefetchConfig::registry().names().collect();
    StorePlan {
        shards: 1,
        page_bytes: one_of(prng, &[4096, 4096, 8192, 16384]),
        frames: frames(prng),
        log_pages: 80 + any_size(prng, 320) as u32,
        torn_pages: TornPages::Auto,
        replacement: name(prng, &replacement),
        write_back: name(prng, &write_back),
        prefetch: name(prng, &prefetch),
        group_window: Nanos::from_micros(one_of(prng, &[0, 20, 100, 1_000])),
        relaxed_window: Nanos::from_micros(one_of(prng, &[100, 1_000, 10_000])),
        verify_writes: false,
        records: 0,
        place: "in-place".to_owned(),
        map_bytes: 0,
        planted: None,
    }
}

/// Chooses the drive, and a protection against torn pages that the drive supports. The protection `none` is
/// chosen only if the drive tears no writes.
fn device(prng: &mut Prng, store: StorePlan) -> (CrashConfig, StorePlan) {
    let page_bytes = one_of(prng, &[512, 4096, 4096, store.page_bytes]);
    let per_page = u64::from(store.page_bytes / page_bytes);
    // Some drives have little space besides the log.
    let data_pages = if once_in(prng, 8) { 30 + prng.below(100) } else { 200 + prng.below(500) };
    let device = CrashConfig {
        page_bytes,
        // The drive has space for the log, for the double-write area and the other structures before the data
        // pages, and for the data pages.
        pages: (u64::from(store.log_pages) + 200 + data_pages) * per_page,
        queue_depth: one_of(prng, &[1, 4, 32, 256]),
        pages_per_command: (per_page as u32).max(8) * one_of(prng, &[1, 2, 16]),
        share_pages: if once_in(prng, 2) { u32::MAX } else { 0 },
        atomic_bytes: one_of(prng, &[0, 0, 4096, 16384]),
        protected: once_in(prng, 2),
        durable_writes: false,
        stalls: Stalls::FEW,
        uneven: false,
    };
    let mut offered = vec![TornPages::Auto, TornPages::DoubleWrite];
    if device.share_pages > 0 {
        offered.push(TornPages::Share);
    }
    if device.atomic_bytes >= store.page_bytes {
        offered.extend([TornPages::Atomic, TornPages::None]);
    }
    let torn_pages = one_of(prng, &offered);
    (device, StorePlan { torn_pages, ..store })
}

/// Chooses the limit of pages per SHARE command, for a drive that supports SHARE. It is the limit of the
/// published command, or a smaller one, so that a batch needs several commands. A command must not end inside
/// a page of the store. On some drives a command shares less than a page, if the store can do without SHARE.
fn share_pages(seed: u64, device: &CrashConfig, store: &StorePlan) -> u32 {
    if device.share_pages == 0 {
        return 0;
    }
    let per_page = store.page_bytes / device.page_bytes;
    let least = if store.torn_pages == TornPages::Share { per_page } else { per_page / 2 };
    let prng = &mut Prng::new(seed, "crash shares");
    one_of(prng, &[250.max(per_page), per_page + 1, per_page + per_page / 2, 2 * per_page + 1, least])
}

/// Lets the store write its pages out of place, on a drive so small that pages are garbage-collected. Rows
/// are longer and are updated repeatedly, so that there are hot and cold pages. Checkpoints force pages to be
/// written.
fn move_out(prng: &mut Prng, plan: &mut Plan) {
    let (placement, streams) = one_of(prng, &[("none", 1), ("none", 1), ("sep-gc", 2), ("sepbit", 6)]);
    plan.store.torn_pages = TornPages::Auto;
    let victim = one_of(prng, &["greedy", "fifo", "cost-benefit", "random"]);
    let unit = plan.device.page_bytes.max(4096);
    plan.store.place = format!("out-of-place:placement={placement},victim={victim},unit={unit}B");
    plan.row_bytes = one_of(prng, &[60, 400, 1_000]);
    if plan.row_bytes > 60 {
        plan.bulk_load = false;
        plan.rounds = any_size(prng, 20) as u32 - 1;
    }
    let every = one_of(prng, &[1, 2, 5, 20]);
    for steps in plan.generations.iter_mut().flat_map(|generation| &mut generation.clients) {
        let (wait, durability) = (Nanos::ZERO, Durability::Group);
        let checkpoint = Step { wait, work: Work::Checkpoint, durability, rolls_back: false, patience: None };
        let parts = steps.chunks(every);
        *steps = parts.flat_map(|part| part.iter().cloned().chain([checkpoint.clone()])).collect();
    }
    plan.device.pages = drive_pages(plan, 70 + any_size(prng, 100), streams);
}

/// Returns the number of device pages of a drive for pages out of place. The drive has space for the log and the
/// structures before the data pages, for the rows and `others` more pages, for the page map, and for the segments
/// that are partly empty.
pub(super) fn drive_pages(plan: &Plan, others: u64, streams: u32) -> u64 {
    let (store, device) = (&plan.store, &plan.device);
    let unit = device.page_bytes.max(4096);
    let segment = 4 * unit.max(store.page_bytes);
    let rows = ROWS * plan.row_bytes as u64 / u64::from(store.page_bytes);
    let pages = u64::from(store.log_pages) + 200 + others + rows;
    let beside = u64::from(40 * unit + (8 + streams) * segment);
    (pages * u64::from(store.page_bytes) + beside) / u64::from(device.page_bytes)
}

/// Lets several pages share a block of the drive, in half of the seeds.
fn pack(seed: u64, plan: &mut Plan) {
    let mut prng = Prng::new(seed, "crash units");
    if once_in(&mut prng, 2) {
        let block = format!("unit={}B", plan.device.page_bytes.max(4096));
        let unit = format!("unit={}B", one_of(&mut prng, &[512, 1024, 2048]));
        plan.store.place = plan.store.place.replace(&block, &unit);
        plan.store.place += one_of(&mut prng, &["", ",compress=none", ",compress=zstd", ",compress=zstd"]);
    }
}

/// Lets leaves that are not in memory get deltas, in half of the seeds whose pages are packed. There are more rows
/// than memory for their leaves, and updates are spread over them.
fn make_deltas(seed: u64, plan: &mut Plan) {
    let mut prng = Prng::new(seed, "crash deltas");
    let place = &plan.store.place;
    if !is_packed(place) || place.contains("compress=none") || !once_in(&mut prng, 2) {
        return;
    }
    plan.store.place += &format!(",deltas={}", one_of(&mut prng, &[1, 2, 3, 7]));
    (plan.store.frames, plan.store.records) = (32 + prng.below(8) as u32, 30);
    (plan.rows, plan.row_bytes, plan.bulk_load) = (SPREAD_ROWS, one_of(&mut prng, &[60, 150]), true);
    plan.rounds = prng.below(3) as u32;
    for generation in &mut plan.generations {
        for step in generation.clients.iter_mut().flatten() {
            match &mut step.work {
                Work::Put { keys, .. } | Work::Update { keys, .. } => {
                    for key in keys.iter_mut().filter(|key| key.table == TableName::Rows) {
                        key.number = key.number * 2 * SPREAD_ROWS / ROWS as u32;
                    }
                }
                // A leaf gets deltas once it was read, and has left memory again.
                Work::Sum { .. } | Work::IndexScan { .. } => step.work = scan_all(),
                _ => {}
            }
        }
        let Some(steps) = generation.clients.iter_mut().find(|steps| !steps.is_empty()) else { continue };
        steps.insert(0, Step { work: scan_all(), ..steps[0].clone() });
        if let Ending::Cut(events) = &mut generation.ending {
            *events += 400;
        }
    }
    plan.device.pages = drive_pages(plan, 330 + any_size(&mut prng, 200), 6);
}

fn scan_all() -> Work {
    let [first, last] = [0, 2 * SPREAD_ROWS].map(|number| Key::new(TableName::Rows, number));
    Work::Scan { first, last, backward: false, limit: usize::MAX, snapshot: true }
}

/// The number of rows, of which every second key exists, if updates are spread over many leaves.
const SPREAD_ROWS: u32 = 2_400;

/// Whether several units share a block of the drive.
fn is_packed(place: &str) -> bool {
    ["unit=512B", "unit=1024B", "unit=2048B"].iter().any(|unit| place.contains(unit))
}

/// Returns the memory for the page map of a plan, in bytes. If deltas are made, this is hardly more than the map takes,
/// so that the pool gets no more memory than its frames.
pub(super) fn map_memory(plan: &Plan) -> u64 {
    let bytes = plan.device.pages * u64::from(plan.device.page_bytes);
    match () {
        _ if plan.store.place == "in-place" => 0,
        _ if plan.store.place.contains("deltas") => {
            18 * bytes / if plan.store.place.contains("unit=512B") { 512 } else { 1024 }
        }
        _ if is_packed(&plan.store.place) => 1 << 20,
        _ => 256 << 10,
    }
}

/// Lets clients cancel some of their operations, in a quarter of the seeds. The store must stay consistent.
fn lose_patience(seed: u64, plan: &mut Plan) {
    let mut prng = Prng::new(seed, "crash patience");
    if !once_in(&mut prng, 4) {
        return;
    }
    for step in plan.generations.iter_mut().flat_map(|generation| &mut generation.clients).flatten() {
        step.patience = once_in(&mut prng, 4).then(|| Nanos::from_micros(any_size(&mut prng, 1_000)));
    }
}

/// Lets the store be opened with varying amounts of memory, in a quarter of the seeds: recovery uses another
/// method if memory is small.
fn change_memory(seed: u64, plan: &mut Plan) {
    let mut prng = Prng::new(seed, "crash memory");
    if !once_in(&mut prng, 4) {
        return;
    }
    for generation in &mut plan.generations {
        generation.memory =
            once_in(&mut prng, 2).then(|| Memory { frames: frames(&mut prng), records: records(&mut prng) });
    }
}

/// Returns a random number of frames. A write-back policy that keeps clean frames in reserve takes some of
/// them.
fn frames(prng: &mut Prng) -> u32 {
    32 + any_size(prng, 168) as u32
}

fn records(prng: &mut Prng) -> u8 {
    one_of(prng, &[0, 30, 50, 80])
}

/// Chooses the kinds of drive faults. Half of the seeds have only power cuts, a quarter have faults that the
/// drive reports, and the others have any faults.
fn fault_kinds(prng: &mut Prng) -> Vec<FaultKind> {
    let all = FaultKind::NAMES.iter().map(|(_, kind)| *kind);
    let reported = |kind: &FaultKind| !kind.allows().damage;
    match prng.below(4) {
        0 | 1 => Vec::new(),
        2 => all.filter(reported).collect(),
        _ => all.collect(),
    }
}

fn faults(prng: &mut Prng, kinds: &[FaultKind], most: u64) -> Vec<Fault> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let count = prng.below(3);
    (0..count).map(|_| Fault { kind: one_of(prng, kinds), nth: any_size(prng, most) - 1 }).collect()
}

fn generation(prng: &mut Prng, plan: &Plan, kinds: &[FaultKind], relaxed: u64) -> Generation {
    let clients = one_of(prng, &[1, 2, 4, 8, 16]);
    let steps = 6 + prng.below(90);
    // Some clients never pause. Others pause so long that commit windows expire.
    let rest = one_of(prng, &[0, 200, 3_000]);
    let mut generation = Generation {
        clients: vec![Vec::new(); clients],
        faults: faults(prng, kinds, 300),
        ending: if once_in(prng, 10) { Ending::Close } else { Ending::Cut(any_size(prng, 2_000)) },
        recovery_cuts: (0..prng.below(3)).map(|_| any_size(prng, 300)).collect(),
        recovery_faults: if once_in(prng, 3) { faults(prng, kinds, 100) } else { Vec::new() },
        memory: None,
    };
    for _ in 0..steps {
        let client = prng.below(clients as u64) as usize;
        let durability = durability_of(prng, relaxed);
        let wait = Nanos::from_micros(if rest == 0 { 0 } else { prng.below(rest) });
        let work = work(prng, plan);
        let rolls_back = once_in(prng, 25);
        generation.clients[client].push(Step { wait, work, durability, rolls_back, patience: None });
    }
    generation
}

/// Returns a durability, which is `relaxed` in so many of a hundred cases.
pub(super) fn durability_of(prng: &mut Prng, relaxed: u64) -> Durability {
    match prng.below(100) {
        roll if roll < relaxed => Durability::Relaxed,
        roll if roll < 70 => Durability::Group,
        _ => Durability::Flush,
    }
}

/// The size of the key space in which rows are inserted and deleted.
pub(super) const ROWS: u64 = 300;

fn work(prng: &mut Prng, plan: &Plan) -> Work {
    let snapshot = once_in(prng, 2);
    match prng.below(100) {
        0..22 => transfer(prng, plan),
        22..40 => {
            let keys = keys(prng, plan);
            Work::Update { keys, len: len(prng, plan), for_update: once_in(prng, 2) }
        }
        40..50 => Work::Put { keys: keys(prng, plan), len: len(prng, plan) },
        50..58 => {
            let first = prng.below(ROWS);
            Work::Delete { first: first as u32, last: (first + any_size(prng, 40)) as u32 }
        }
        58..66 => {
            let first = prng.below(ROWS) as u32;
            let span = any_size(prng, 12) as u32;
            let put = first + prng.below(u64::from(span) + 1) as u32;
            Work::ScanAndPut { first, last: first + span, put, len: len(prng, plan) }
        }
        66..76 => scan(prng, snapshot),
        76..86 => Work::Sum { snapshot: !once_in(prng, 3) },
        86..92 => {
            let table = one_of(prng, &[TableName::Registers, TableName::Rows]);
            let keys = (0..1 + prng.below(6)).map(|_| Key::new(table, prng.below(40) as u32)).collect();
            Work::GetMany { keys, snapshot }
        }
        92..97 => Work::IndexScan { group: prng.below(u64::from(super::GROUPS)) as u8, snapshot },
        _ => Work::Checkpoint,
    }
}

fn transfer(prng: &mut Prng, plan: &Plan) -> Work {
    let accounts = u64::from(plan.accounts);
    let from = prng.below(accounts);
    let to = (from + 1 + prng.below(accounts - 1)) % accounts;
    let amount = prng.below(100) as i64;
    Work::Transfer { from: from as u32, to: to as u32, amount, for_update: once_in(prng, 2) }
}

fn scan(prng: &mut Prng, snapshot: bool) -> Work {
    let table = one_of(prng, &[TableName::Rows, TableName::Rows, TableName::Registers, TableName::Markers]);
    let (from, span) = match table {
        TableName::Markers => (prng.next_u64() as u32, u32::MAX / 4),
        _ => (prng.below(ROWS) as u32, any_size(prng, ROWS) as u32),
    };
    let [first, last] = [from, from.saturating_add(span)].map(|number| Key::new(table, number));
    let limit = if once_in(prng, 2) { usize::MAX } else { any_size(prng, 20) as usize };
    Work::Scan { first, last, backward: once_in(prng, 2), limit, snapshot }
}

/// Returns one to four different keys, of registers and of rows.
fn keys(prng: &mut Prng, plan: &Plan) -> Vec<Key> {
    let mut keys = Vec::new();
    for _ in 0..any_size(prng, 4) {
        let key = if once_in(prng, 3) {
            Key::new(TableName::Registers, prng.below(u64::from(plan.registers)) as u32)
        } else {
            Key::new(TableName::Rows, prng.below(ROWS) as u32)
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Returns a length for a value: usually small, sometimes most of a page, rarely more than a page.
fn len(prng: &mut Prng, plan: &Plan) -> usize {
    let page = u64::from(plan.store.page_bytes);
    let len = match prng.below(20) {
        0 => page + prng.below(2 * page),
        1..4 => page / 8 + prng.below(page / 2),
        4..8 => 200 + prng.below(600),
        _ => 28 + prng.below(80),
    };
    len as usize
}
