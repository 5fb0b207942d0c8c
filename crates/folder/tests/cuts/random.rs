//! Random operations, and the outcomes of their cuts against the model.

use crate::model::Changes;
use crate::script::{BLOCK, check_ends, contents, step};
use fulgurite_base::Prng;
use fulgurite_folder::{Folder, Model, Piece, ROOT, Rules};
use std::collections::BTreeSet;

/// The most losable changes, so that all subsets can be tried.
const LOSABLE: usize = 9;

fn operation(random: &mut Prng) -> String {
    let mut path = || {
        let name = ["a", "b", "c"][random.below(3) as usize];
        match random.below(6) {
            0 => format!("a/{name}"),
            1 => format!("b/{name}"),
            2 => format!("a/b/{name}"),
            _ => name.to_owned(),
        }
    };
    let (path, other) = (path(), path());
    let (block, count, value) = (random.below(3), 1 + random.below(2), 1 + random.below(9));
    match random.below(24) {
        0..=2 => format!("create {path}"),
        3..=4 => format!("mkdir {path}"),
        5 => format!("link {path} {other}"),
        6 => format!("unlink {path}"),
        7 => format!("rmdir {path}"),
        8..=11 => format!("rename {path} {other}"),
        12 => format!("exchange {path} {other}"),
        13..=17 => format!("write {path} {block} {count} {value}"),
        18 => format!("zero {path} {block} {count}"),
        19 => format!("truncate {path} {block}"),
        20 => format!("mode {path} 6{block}0"),
        21 => "sync .".into(),
        _ => format!("sync {path}"),
    }
}

/// The number of comparisons of a test, so that it does not compare nothing.
#[derive(Default)]
struct Counts {
    outcomes: usize,
    complete: usize,
}

/// Performs random operations with cuts in between.
fn rounds(rules: Rules, seed: u64, counts: &mut Counts) {
    let mut random = Prng::new(seed, "rounds");
    let mut folder = Folder::new(rules);
    for _ in 0..4 {
        let mut changes = Changes::new(&folder);
        let mut history = Vec::new();
        for _ in 0..20 + random.below(30) {
            let operation = operation(&mut random);
            let mut next = folder.clone();
            if step(&mut next, &operation).is_err() {
                continue;
            }
            changes.add(&folder, &next, &operation);
            history.push(operation);
            folder = next;
            assert_eq!(contents(&folder), changes.contents(), "{history:?}");
            if changes.losable() > LOSABLE - 4 {
                break;
            }
        }
        compare(&folder, &changes, &history, counts);
        if random.below(3) == 0 {
            folder.sync_all();
            let before = contents(&folder);
            assert_eq!(folder.pieces(), []);
            assert_eq!(folder.power_cut(seed).lost, []);
            assert_eq!(contents(&folder), before, "{history:?}");
        } else {
            folder.power_cut(random.next_u64());
        }
    }
}

/// Compares the outcomes of cuts with those of the model: of many seeds, and of every subset of the pieces.
fn compare(folder: &Folder, changes: &Changes, history: &[String], counts: &mut Counts) {
    let allowed = changes.outcomes();
    for seed in 0..40 {
        let mut cut = folder.clone();
        let lost = cut.power_cut(seed).lost;
        let left = contents(&cut);
        assert!(allowed.contains(&left), "{history:?} left {left} without {lost:?}, not of {allowed:?}");
        check_ends(&mut cut, ROOT);
    }
    counts.outcomes += allowed.len();
    let pieces = folder.pieces();
    if pieces.len() > LOSABLE || folder.rules().cache_bytes < Rules::default().cache_bytes {
        return;
    }
    let mut found = BTreeSet::new();
    for subset in 0..1u64 << pieces.len() {
        let lost: Vec<Piece> = (0..)
            .zip(&pieces)
            .filter(|(bit, _)| subset & 1 << bit != 0)
            .map(|(_, piece)| piece.clone())
            .collect();
        let mut cut = folder.clone();
        cut.power_cut_with(&lost);
        found.insert(contents(&cut));
    }
    assert_eq!(found, allowed, "{history:?}");
    counts.complete += 1;
}

/// Runs both models, and a journal with `rename_syncs`.
fn all(cache_bytes: u64) -> Counts {
    let mut counts = Counts::default();
    for seed in 0..60 {
        for (model, rename_syncs) in
            [(Model::Journaled, false), (Model::Journaled, true), (Model::Strict, false)]
        {
            let rules = Rules { model, rename_syncs, cache_bytes, tear_bytes: BLOCK, ..Rules::default() };
            rounds(rules, seed, &mut counts);
        }
    }
    counts
}

/// The rule: cuts leave exactly what the model allows, also after other cuts: seeds nothing else, and the subsets of
/// the pieces all of it. After a sync of everything a cut loses nothing.
#[test]
fn cuts_leave_what_the_model_allows() {
    let Counts { outcomes, complete } = all(Rules::default().cache_bytes);
    assert!(outcomes > 4_000 && complete > 500, "{outcomes} {complete}");
}

/// The rule: a small cache allows nothing that a large one does not.
#[test]
fn a_small_cache_allows_nothing_more() {
    let Counts { outcomes, .. } = all(2 * BLOCK);
    assert!(outcomes > 4_000, "{outcomes}");
}
