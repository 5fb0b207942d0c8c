//! Simplifies a plan in small steps, so that a failing plan can be reduced.

use super::{Ending, Generation, Plan, Step};
use crate::device::{CrashConfig, Stalls};
use fulgurite_base::Nanos;
use fulgurite_engine::{Durability, TornPages};

/// Returns simpler plans, the simplest first. Each differs from `plan` in one respect.
pub(crate) fn simpler(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut add = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        if changed != *plan {
            plans.push(changed);
        }
    };
    for at in 0..plan.generations.len() {
        if plan.generations.len() > 1 {
            add(&|plan| drop(plan.generations.remove(at)));
        }
    }
    for at in 0..plan.generations.len() {
        for change in generation_changes(&plan.generations[at]) {
            add(&|plan| change(&mut plan.generations[at]));
        }
    }
    for change in settings() {
        add(&*change);
    }
    plans
}

type PlanChange = Box<dyn Fn(&mut Plan)>;

type GenerationChange = Box<dyn Fn(&mut Generation)>;

/// Returns the changes that remove clients, steps, faults and power cuts from a generation.
fn generation_changes(generation: &Generation) -> Vec<GenerationChange> {
    let mut changes: Vec<GenerationChange> = Vec::new();
    for client in 0..generation.clients.len() {
        changes.push(Box::new(move |generation| drop(generation.clients.remove(client))));
    }
    changes.push(Box::new(|generation| generation.faults.clear()));
    changes.push(Box::new(|generation| generation.recovery_faults.clear()));
    changes.push(Box::new(|generation| generation.recovery_cuts.clear()));
    changes.push(Box::new(|generation| generation.memory = None));
    for (client, steps) in generation.clients.iter().enumerate() {
        // Half of the steps are removed first, then a quarter and so on, and finally single steps.
        let mut length = steps.len().div_ceil(2);
        while length > 0 {
            for start in (0..steps.len()).step_by(length) {
                changes.push(Box::new(move |generation| {
                    let steps = &mut generation.clients[client];
                    let end = (start + length).min(steps.len());
                    steps.drain(start..end);
                }));
            }
            length = if length == 1 { 0 } else { length.div_ceil(2) };
        }
    }
    for at in 0..generation.faults.len() {
        changes.push(Box::new(move |generation| {
            generation.faults.remove(at);
        }));
    }
    for at in 0..generation.recovery_faults.len() {
        changes.push(Box::new(move |generation| {
            generation.recovery_faults.remove(at);
        }));
    }
    for at in 0..generation.recovery_cuts.len() {
        changes.push(Box::new(move |generation| {
            generation.recovery_cuts.remove(at);
        }));
    }
    if let Ending::Cut(events) = generation.ending {
        changes.push(Box::new(move |generation| generation.ending = Ending::Cut(events.div_ceil(2))));
        changes.push(Box::new(|generation| generation.ending = Ending::Close));
    }
    changes.push(step_change(|step| step.wait = Nanos::ZERO));
    changes.push(step_change(|step| step.rolls_back = false));
    changes.push(step_change(|step| step.patience = None));
    changes.push(step_change(|step| step.durability = Durability::Flush));
    changes
}

/// Applies one change to every step.
fn step_change(change: fn(&mut Step)) -> GenerationChange {
    Box::new(move |generation| generation.clients.iter_mut().flatten().for_each(change))
}

/// Returns the changes that simplify the options of the store and the drive. A drive with more features than
/// needed is still valid.
fn settings() -> Vec<PlanChange> {
    vec![
        Box::new(|plan| plan.cut_in_create = None),
        Box::new(|plan| plan.rows = 0),
        Box::new(|plan| plan.registers = 1),
        Box::new(|plan| plan.accounts = 2),
        Box::new(|plan| plan.bulk_load = false),
        Box::new(|plan| {
            plan.device.pages /= u64::from(plan.store.shards);
            plan.store.shards = 1;
        }),
        Box::new(|plan| plan.store.replacement = "lru".to_owned()),
        Box::new(|plan| plan.store.write_back = "single".to_owned()),
        Box::new(|plan| plan.store.prefetch = "none".to_owned()),
        Box::new(|plan| plan.store.frames = 200),
        Box::new(|plan| plan.store.group_window = Nanos::ZERO),
        Box::new(|plan| (plan.store.place, plan.store.map_bytes) = ("in-place".to_owned(), 0)),
        Box::new(|plan| {
            // Pages out of place need no protection against torn pages, and the store accepts none for them.
            if plan.store.place == "in-place" {
                plan.store.torn_pages = TornPages::DoubleWrite;
            }
            plan.device = CrashConfig { share_pages: 0, atomic_bytes: 0, ..plan.device.clone() };
        }),
        Box::new(|plan| plan.row_bytes = 60),
        Box::new(|plan| plan.rounds = 0),
        Box::new(|plan| plan.device.protected = true),
        Box::new(|plan| plan.device.durable_writes = false),
        Box::new(|plan| plan.device.stalls = Stalls::FEW),
        Box::new(|plan| plan.device.uneven = false),
        Box::new(|plan| plan.device.queue_depth = 1),
        Box::new(|plan| plan.device.pages_per_command = plan.device.pages_per_command.max(128)),
    ]
}
