//! Seeds that pass, and bugs that are found. The long searches are run by name:
//!
//!     cargo test --release -p fulgurite-crashsim -- --ignored planted

use fulgurite_base::Choice;
use fulgurite_crashsim::search::{Progress, Search};
use fulgurite_engine::Planted;

#[test]
fn the_first_seeds_pass() {
    let search = Search::default();
    let summary = search.seeds(0..300, &Progress::new(1));
    assert!(summary.failure.is_none(), "{:?}", summary.failure);
    assert!(summary.committed > 10_000 && summary.cuts > 1_000);
}

#[test]
#[ignore = "minutes: every planted bug in turn"]
fn planted_bugs_are_found_within_two_thousand_seeds() {
    let mut missed = Vec::new();
    for (name, bug) in Planted::NAMES {
        let search = Search { planted: Some(*bug), ..Search::default() };
        if search.seeds(0..2_000, &Progress::new(2)).failure.is_none() {
            missed.push(*name);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
