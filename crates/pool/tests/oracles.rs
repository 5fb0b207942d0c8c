//! Compares policies that the trusted simulator does not have with simple models: a list of pages, the most
//! recently used one last.

mod models;

use fulgurite_base::PageId;
use fulgurite_pool::{MissCounter, ReplacementConfig, WriteBack};
use proptest::prelude::*;

/// A page in the pool of a model.
#[derive(Clone, Debug)]
struct Entry {
    page: u64,
    dirty: bool,
    cold: bool,
    uses: u32,
}

/// Returns the misses and the written pages of a model. `evict` removes the victim from the list. `hit` moves
/// the used entry; it gets the list and the entry's position.
fn model(
    trace: &[(u64, bool)],
    frames: usize,
    mut evict: impl FnMut(&mut Vec<Entry>) -> Entry,
    mut hit: impl FnMut(&mut Vec<Entry>, usize),
) -> [u64; 2] {
    let mut pool: Vec<Entry> = Vec::new();
    let [mut misses, mut written] = [0, 0];
    for (page, write) in trace {
        if let Some(at) = pool.iter().position(|entry| entry.page == *page) {
            pool[at].dirty |= write;
            pool[at].uses += 1;
            hit(&mut pool, at);
            continue;
        }
        misses += 1;
        if pool.len() == frames {
            written += u64::from(evict(&mut pool).dirty);
        }
        pool.push(Entry { page: *page, dirty: *write, cold: !*write, uses: 0 });
    }
    [misses, written]
}

fn to_end(pool: &mut Vec<Entry>, at: usize) {
    let entry = pool.remove(at);
    pool.push(entry);
}

/// Evicts the least recent clean page of the last `window` pages; if there is none, the dirty page with the
/// lowest rank by `choose`.
fn clean_first(window: usize, choose: impl Fn(&Entry) -> u32) -> impl FnMut(&mut Vec<Entry>) -> Entry {
    move |pool| {
        let window = window.min(pool.len());
        let clean = pool[..window].iter().position(|entry| !entry.dirty);
        let dirty = || (0..window).min_by_key(|at| choose(&pool[*at])).expect("a pool has pages");
        let at = clean.unwrap_or_else(dirty);
        pool.remove(at)
    }
}

/// Evicts the oldest cold clean page. If there is none, it checks the oldest of the other pages: a hot clean
/// page becomes cold and is evicted, a hot dirty page becomes cold and moves to the end.
fn ccf_lru(pool: &mut Vec<Entry>) -> Entry {
    // The cold clean pages of the model are exactly the cold clean list of the paper, because a used page
    // becomes hot.
    if let Some(at) = pool.iter().position(|entry| entry.cold && !entry.dirty) {
        return pool.remove(at);
    }
    loop {
        if pool[0].cold || !pool[0].dirty {
            return pool.remove(0);
        }
        pool[0].cold = true;
        to_end(pool, 0);
    }
}

fn counted(trace: &[(u64, bool)], spec: &str, frames: u32) -> [u64; 2] {
    let replacement = spec.parse::<ReplacementConfig>().unwrap().start(frames).unwrap();
    let mut counter = MissCounter::new(frames, replacement, WriteBack::SINGLE);
    let requests: Vec<(PageId, bool)> = trace.iter().map(|(page, write)| (PageId(*page), *write)).collect();
    counter.request_all(&requests);
    [counter.counters().misses, counter.counters().pages_written]
}

proptest! {
    /// The rule: on short traces over few pages and frames, which reach every branch, each policy has the
    /// counts of its model.
    #[test]
    fn any_trace_gives_the_counts_of_the_papers(
        pages in prop::collection::vec(0u64..40, 1..600),
        frames in 10u32..24,
    ) {
        let trace: Vec<(u64, bool)> = pages.iter().map(|page| (*page, false)).collect();
        for (name, model) in models::MODELS {
            let mut request = model(frames as usize);
            let expected = pages.iter().filter(|page| request(**page)).count() as u64;
            prop_assert_eq!(counted(&trace, name, frames)[0], expected, "{} in {} frames", name, frames);
        }
    }

    #[test]
    fn any_trace_gives_the_models_counts(
        trace in prop::collection::vec((0u64..24, any::<bool>()), 1..400),
        frames in 3u32..16,
    ) {
        let (all, third) = (frames as usize, (frames / 3).max(1) as usize);
        let least_recent = |_: &Entry| 0;
        prop_assert_eq!(counted(&trace, "cflru", frames), model(&trace, all, clean_first(third, least_recent), to_end));
        prop_assert_eq!(
            counted(&trace, "cflru-c", frames),
            model(&trace, all, clean_first(third, |entry| entry.uses), to_end)
        );
        // Without a drive all erase blocks are equally worn, so the victim is a clean page or, without one,
        // the least recent page.
        prop_assert_eq!(
            counted(&trace, "dl-cflru-e", frames),
            model(&trace, all, clean_first(all, least_recent), to_end)
        );
        let warm = |pool: &mut Vec<Entry>, at: usize| {
            pool[at].cold = false;
            to_end(pool, at);
        };
        prop_assert_eq!(counted(&trace, "ccf-lru", frames), model(&trace, all, ccf_lru, warm));
        // Clock sweep with the head of a queue as its hand: a page is read in with one use and has at most
        // five.
        let sweep = |pool: &mut Vec<Entry>| loop {
            if pool[0].uses == 0 {
                break pool.remove(0);
            }
            pool[0].uses -= 1;
            to_end(pool, 0);
        };
        let count = |pool: &mut Vec<Entry>, at: usize| pool[at].uses = pool[at].uses.min(5);
        prop_assert_eq!(counted(&trace, "clock:initial=0", frames), model(&trace, all, sweep, count));
    }
}
