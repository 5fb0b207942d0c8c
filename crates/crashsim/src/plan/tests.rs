//! Tests that plans are reproducible, differ between seeds, cover all features, and can be reduced.

use super::*;
use fulgurite_base::Choice;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use std::collections::BTreeSet;

#[test]
fn a_seed_always_gives_the_same_plan() {
    assert_eq!(Plan::from_seed(5), Plan::from_seed(5));
    assert_ne!(Plan::from_seed(5).generations, Plan::from_seed(6).generations);
}

#[test]
fn a_thousand_seeds_cover_every_choice() {
    let plans: Vec<Plan> = (0..1_000).map(Plan::from_seed).collect();
    let names = |of: fn(&Plan) -> &str| plans.iter().map(of).collect::<BTreeSet<&str>>();
    let without_future = ReplacementConfig::registry().names().filter(|name| *name != "belady");
    assert_eq!(names(|plan| &plan.store.replacement), without_future.collect());
    assert_eq!(names(|plan| &plan.store.write_back), WriteBackConfig::registry().names().collect());
    assert_eq!(names(|plan| &plan.store.prefetch), PrefetchConfig::registry().names().collect());
    for (name, kind) in FaultKind::NAMES {
        assert!(plans.iter().flat_map(Plan::faults).any(|fault| fault.kind == *kind), "{name}");
    }
    for (name, torn_pages) in TornPages::NAMES {
        assert!(plans.iter().any(|plan| plan.store.torn_pages == *torn_pages), "{name}");
    }
    let impatient = |plan: &&Plan| {
        plan.generations
            .iter()
            .flat_map(|generation| generation.clients.iter().flatten())
            .any(|step| step.patience.is_some())
    };
    assert!((200..350).contains(&plans.iter().filter(impatient).count()));
    let changing =
        plans.iter().filter(|plan| plan.generations.iter().any(|generation| generation.memory.is_some()));
    assert!((100..250).contains(&changing.count()));
    let pressed = |is_pressed: fn(&Plan) -> bool| plans.iter().filter(|plan| is_pressed(plan)).count();
    let steps = |plan: &Plan, is_it: fn(&Work) -> bool| {
        plan.generations
            .iter()
            .flat_map(|generation| generation.clients.iter().flatten())
            .any(|step| is_it(&step.work))
    };
    let repeats = |work: &Work| match work {
        Work::Put { keys, .. } => keys.iter().collect::<BTreeSet<_>>().len() < keys.len(),
        _ => false,
    };
    assert!(plans.iter().filter(|plan| steps(plan, repeats)).count() > 50);
    assert!(plans.iter().filter(|plan| steps(plan, |work| *work == Work::Compact)).count() > 50);
    assert!(plans.iter().filter(|plan| steps(plan, |work| *work == Work::Backup)).count() > 50);
    let is_table = |work: &Work| matches!(work, Work::MakeTable { .. });
    assert!(plans.iter().filter(|plan| steps(plan, is_table)).count() > 50);
    assert!(pressed(|plan| plan.store.log_pages < 70) > 100);
    assert!(pressed(|plan| plan.device.stalls.flush_times > 1) > 100);
    assert!(pressed(|plan| plan.device.uneven) > 50);
    for shards in [2, 3] {
        let of = plans.iter().filter(|plan| plan.store.shards == shards).count();
        assert!((90..160).contains(&of), "{of} plans have {shards} shards");
    }
    assert!(pressed(|plan| plan.store.place.contains("deltas")) > 50);
    assert!(pressed(|plan| plan.cut_in_create > Some(60)) > 50);
    assert!(pressed(|plan| plan.store.frames < 40 && plan.rounds > 0 && plan.store.place != "in-place") > 20);
    let quiet = plans.iter().filter(|plan| plan.faults().next().is_none()).count();
    assert!(quiet > 400, "only {quiet} seeds have power cuts alone");
}

#[test]
fn every_plan_has_the_protection_that_its_drive_needs() {
    for plan in (0..150).map(Plan::from_seed) {
        let torn = plan.device.atomic_bytes < plan.store.page_bytes;
        assert!(!torn || ![TornPages::None, TornPages::Atomic].contains(&plan.store.torn_pages));
        let per_page = plan.store.page_bytes / plan.device.page_bytes;
        assert!(plan.device.share_pages >= per_page || plan.store.torn_pages != TornPages::Share);
        for plan in simpler(&plan) {
            let torn = plan.device.atomic_bytes < plan.store.page_bytes;
            assert!(!torn || ![TornPages::None, TornPages::Atomic].contains(&plan.store.torn_pages));
        }
    }
}
