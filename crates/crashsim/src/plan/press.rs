//! Puts pressure on the mechanisms that ordinary plans hardly reach: a log as short as possible, commits of several
//! blocks, transactions that write a key repeatedly, drives whose commands stall, and drives so full that garbage
//! collection moves pages while they are written. Each kind of pressure uses its own random stream.

use super::generate::{ROWS, any_size, drive_pages, durability_of, map_memory, once_in, one_of};
use super::{Ending, Plan, Step, Work};
use crate::device::{CrashConfig, Stalls};
use crate::value::{Key, TableName};
use fulgurite_base::{Nanos, Prng};
use fulgurite_engine::Durability;

/// The largest number of writes of a transaction that is made larger.
const MOST_KEYS: u64 = 5;

/// The number of times that clients perform their steps if the log is to be filled.
const REPEATED: usize = 3;

impl Plan {
    /// Generates the plan of a seed. Half of the seeds write pages out of place. Half of the seeds are under
    /// pressure of one kind or several.
    pub fn from_seed(seed: u64) -> Plan {
        let mut plan = Plan::without_pressure(seed);
        if once_in(&mut Prng::new(seed, "crash pressure"), 2) {
            press(seed, &mut plan);
            plan.store.map_bytes = map_memory(&plan);
        }
        work_beside(&mut Prng::new(seed, "crash beside"), &mut plan);
        divide(&mut Prng::new(seed, "crash shards"), &mut plan);
        plan
    }
}

/// Adds pressure to the plan of a seed.
fn press(seed: u64, plan: &mut Plan) {
    repeat_keys(&mut Prng::new(seed, "crash repeated keys"), plan);
    shorten_log(&mut Prng::new(seed, "crash short log"), plan);
    stall(&mut Prng::new(seed, "crash stalls"), plan);
    outrun_checkpoints(&mut Prng::new(seed, "crash outrun checkpoints"), plan);
    fill_up(&mut Prng::new(seed, "crash full segments"), plan);
    compact(&mut Prng::new(seed, "crash compact"), plan);
    cut_filling(&mut Prng::new(seed, "crash filling"), plan);
    cut_recovery(&mut Prng::new(seed, "crash recovery"), plan);
}

/// Lets clients make tables and drop them, or make backups, each in an eighth of the seeds.
fn work_beside(prng: &mut Prng, plan: &mut Plan) {
    let (tables, backups) = (once_in(prng, 8), once_in(prng, 8));
    if !tables && !backups {
        return;
    }
    let longest = 2 * u64::from(plan.store.page_bytes);
    for steps in plan.generations.iter_mut().flat_map(|generation| &mut generation.clients) {
        if once_in(prng, 2) {
            continue;
        }
        let work = if tables && (!backups || once_in(prng, 2)) {
            let (rows, len) = (any_size(prng, 40) as u32, any_size(prng, longest) as usize);
            Work::MakeTable { rows, len, drops: !once_in(prng, 3) }
        } else {
            Work::Backup
        };
        let wait = Nanos::from_micros(prng.below(300));
        let patience = once_in(prng, 8).then(|| Nanos::from_micros(prng.below(2_000)));
        let at = prng.below(steps.len() as u64 + 1) as usize;
        steps.insert(at, Step { wait, work, durability: Durability::Flush, rolls_back: false, patience });
    }
}

/// Divides the store into two or three shards, in a quarter of the seeds. There is no work that only one store does,
/// and no fault that may end a log early: the decision about a transaction may be lost with the end of one log, and not
/// with that of another.
fn divide(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    plan.store.shards = 2 + prng.below(2) as u32;
    let unit = u64::from(plan.device.atomic_bytes / plan.device.page_bytes).max(1);
    plan.device.pages = plan.device.pages.next_multiple_of(unit) * u64::from(plan.store.shards);
    for generation in &mut plan.generations {
        generation.faults.retain(|fault| !fault.kind.allows().lost_tail);
        generation.recovery_faults.retain(|fault| !fault.kind.allows().lost_tail);
    }
    for step in steps(plan) {
        match &mut step.work {
            Work::Compact | Work::Backup => step.work = Work::Checkpoint,
            Work::MakeTable { drops, .. } => *drops = false,
            _ => {}
        }
    }
}

/// Makes the log about as short as a store accepts.
fn shorten(prng: &mut Prng, plan: &mut Plan) {
    let shorter = plan.store.log_pages.saturating_sub(64 + prng.below(6) as u32);
    plan.device.pages -= u64::from(shorter * (plan.store.page_bytes / plan.device.page_bytes));
    plan.store.log_pages -= shorter;
}

fn steps(plan: &mut Plan) -> impl Iterator<Item = &mut Step> {
    plan.generations.iter_mut().flat_map(|generation| &mut generation.clients).flatten()
}

/// Lets transactions write some of their keys again, in a quarter of the seeds.
fn repeat_keys(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    for step in steps(plan) {
        if let Work::Put { keys, .. } | Work::Update { keys, .. } = &mut step.work {
            for _ in 0..prng.below(3) {
                keys.push(one_of(prng, keys));
            }
        }
    }
}

/// Makes the log as short as a store accepts, the pool small and transactions larger, in a quarter of the seeds.
/// Commits then wait for log space, checkpoints follow each other, a flush of several commits takes more than a window
/// of the log, and recovery needs several batches for the operations in the log.
fn shorten_log(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    shorten(prng, plan);
    plan.store.frames = 32 + prng.below(16) as u32;
    let page = u64::from(plan.store.page_bytes);
    let (is_hasty, in_place) = (once_in(prng, 2), plan.store.place == "in-place");
    for step in steps(plan) {
        let is_replaced = match step.work {
            Work::Sum { .. } | Work::GetMany { .. } => once_in(prng, 2),
            Work::Checkpoint => in_place,
            _ => false,
        };
        if is_replaced {
            step.work = Work::Put { keys: Vec::new(), len: 0 };
        }
        if let Work::Put { keys, len } | Work::Update { keys, len, .. } = &mut step.work
            && (keys.is_empty() || once_in(prng, 2))
        {
            let count = 1 + prng.below(MOST_KEYS);
            keys.extend((0..count).map(|_| Key::new(TableName::Rows, prng.below(ROWS) as u32)));
            *len = (page / 8 + prng.below(page / 4)) as usize;
        }
        if is_hasty {
            step.wait = Nanos::ZERO;
        }
        step.durability = durability_of(prng, 20);
    }
}

/// Lets some commands of the drive, or all flushes, take very long, and lets a power cut keep more in one part of the
/// drive than in the other, each in a quarter of the seeds.
fn stall(prng: &mut Prng, plan: &mut Plan) {
    let mut stalls = Stalls::FEW;
    if once_in(prng, 4) {
        (stalls.one_in, stalls.times) = one_of(prng, &[(16, 10), (64, 100), (8, 30)]);
    }
    if once_in(prng, 4) {
        stalls.flush_times = 50;
    }
    plan.device = CrashConfig { stalls, uneven: once_in(prng, 4), ..plan.device.clone() };
}

/// Lets many small commits follow each other on a short log while every flush takes long, in an eighth of the seeds.
/// The drive writes the log durably without a flush, so a checkpoint takes longer than filling the log.
fn outrun_checkpoints(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 8) {
        return;
    }
    shorten(prng, plan);
    plan.device.durable_writes = true;
    plan.device.protected = false;
    plan.device.stalls.flush_times = 50;
    for generation in &mut plan.generations {
        for steps in &mut generation.clients {
            *steps = std::iter::repeat_n(steps.clone(), REPEATED).flatten().collect();
        }
        if let Ending::Cut(events) = &mut generation.ending {
            *events *= 2;
        }
    }
    for step in steps(plan) {
        step.wait = Nanos::ZERO;
        step.durability = Durability::Flush;
        if let Work::Put { len, .. } | Work::Update { len, .. } = &mut step.work {
            *len = 100;
        }
    }
}

/// Fills most of the segments of a store with pages out of place, in a quarter of the seeds. Updates then hit the pages
/// that garbage collection is moving. In place, the pool alone is too small, so that several batches of pages are
/// written at the same time.
fn fill_up(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    // Deltas need records beside pages, and short rows.
    if plan.store.place.contains("deltas") {
        return fill_segments(prng, plan);
    }
    let row_bytes = plan.store.page_bytes as usize / 4 - 100;
    (plan.rows, plan.row_bytes, plan.bulk_load) = (150, row_bytes, false);
    plan.rounds = 2 + any_size(prng, 10) as u32;
    // The pool has no room for all rows, so that it writes pages at any time to evict them.
    (plan.store.frames, plan.store.records) = (32 + prng.below(8) as u32, 0);
    if plan.store.place != "in-place" {
        fill_segments(prng, plan);
    }
    for step in steps(plan) {
        if let Work::Put { keys, len } | Work::Update { keys, len, .. } = &mut step.work {
            let from = prng.below(ROWS);
            let row = |at: u64| Key::new(TableName::Rows, ((from + 5 * at) % ROWS) as u32);
            (*keys, *len) = ((0..4).map(row).collect(), row_bytes);
        }
    }
    for generation in &mut plan.generations {
        if let Ending::Cut(events) = &mut generation.ending {
            *events += 200;
        }
    }
}

/// Leaves few segments free, and often lets garbage collection choose segments with valid pages.
fn fill_segments(prng: &mut Prng, plan: &mut Plan) {
    let streams = if plan.store.place.contains("sepbit") { 6 } else { 2 };
    let others = if plan.store.place.contains("deltas") { 310 } else { 20 };
    plan.device.pages = drive_pages(plan, others + any_size(prng, 40), streams);
    let victim = one_of(prng, &["fifo", "fifo", "random", "greedy"]);
    let place = plan.store.place.split(',').map(|option| match option.strip_prefix("victim=") {
        Some(_) => format!("victim={victim}"),
        None => option.to_owned(),
    });
    plan.store.place = place.collect::<Vec<String>>().join(",");
}

/// Lets a client compact the store instead of making a checkpoint, now and then, in a quarter of the seeds.
fn compact(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    for step in steps(plan) {
        let is_chosen = match step.work {
            Work::Checkpoint => once_in(prng, 3),
            Work::Sum { .. } => once_in(prng, 8),
            _ => false,
        };
        if is_chosen {
            step.work = Work::Compact;
        }
    }
}

/// Cuts the power while the store is filled, often during a bulk load, in a quarter of the seeds.
fn cut_filling(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    plan.cut_in_create = Some(20 + prng.below(180));
    if plan.rounds == 0 {
        plan.bulk_load = !once_in(prng, 3);
        plan.rows = plan.rows.max(40);
    }
}

/// Cuts the power late in several recoveries, when pages are written again, in a quarter of the seeds.
fn cut_recovery(prng: &mut Prng, plan: &mut Plan) {
    if !once_in(prng, 4) {
        return;
    }
    for generation in &mut plan.generations {
        generation.recovery_cuts = (0..prng.below(4)).map(|_| 250 + prng.below(300)).collect();
    }
}
