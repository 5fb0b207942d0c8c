//! Prefetch policies: decide which pages to read together with a missed page. Each policy has a file.
//! [`PrefetchConfig`] names a policy with its options and lists all policies, and [`Prefetch`] is the running
//! policy of a pool.
//!
//! A policy observes every miss, and the first request for every prefetched page, which would have been a
//! miss without prefetching. At a miss it names pages that will soon be requested. The pool reads as many of
//! these pages as it may evict frames for, and inserts them at the head of the eviction order.

mod policy;
mod sequential;
mod history;
mod both;

pub use policy::Prefetch;

use fulgurite_base::{NoOptions, SpecError, config_enum};
use history::HistoryConfig;
use sequential::SequentialConfig;

macro_rules! policies {
    ($($name:literal $variant:ident($config:ty, $start:path) $about:literal)*) => {
        config_enum! {
            /// The prefetch policies by name, each with its options.
            pub enum PrefetchConfig: "prefetch";
            $($name $variant($config) $about)*
        }

        impl PrefetchConfig {
            /// Starts the policy for one pool.
            pub fn start(&self) -> Result<Prefetch, SpecError> {
                match self {
                    $(PrefetchConfig::$variant(config) => $start(config),)*
                }
            }
        }
    };
}

// A new policy is a file and a line here.
policies! {
    "none" None(NoOptions, nothing) "read the missed page and nothing else"
    "sequential" Sequential(SequentialConfig, sequential::start) "after two misses in a row, the pages that follow"
    "history" History(HistoryConfig, history::start) "the pages that followed last time, chained"
    "both" Both(HistoryConfig, both::start) "sequential where a run is seen, else history"
}

fn nothing(_: &NoOptions) -> Result<Prefetch, SpecError> {
    Ok(Prefetch::default())
}

impl PrefetchConfig {
    /// Returns whether the policy never prefetches a page.
    pub fn is_none(&self) -> bool {
        matches!(self, PrefetchConfig::None(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::PageId;

    #[test]
    fn a_default_written_out_changes_no_text_and_another_value_does() {
        PrefetchConfig::registry().check_texts().unwrap();
    }

    #[test]
    fn only_the_policy_none_prefetches_nothing() {
        for entry in PrefetchConfig::registry().entries.iter() {
            let config: PrefetchConfig = entry.name.parse().unwrap();
            assert_eq!(config.is_none(), entry.name == "none");
            assert_eq!(config.is_none(), config.start().unwrap().is_none());
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_accepted_ones() {
        let sentence = |text: &str| text.parse::<PrefetchConfig>().unwrap_err().to_string();
        assert_eq!(sentence("both:n=1025"), "n=1025 of both is out of range; accepted: 1 to 1024");
        assert_eq!(
            sentence("history:table=1000"),
            "table=1000 of history is not a power of two; accepted: one from 1 to 33554432"
        );
        assert!(sentence("history:table=64M").contains("accepted: one from"));
    }

    /// Returns the pages, at most two, that the policy `name` suggests for page `then` after it has observed
    /// `pages`.
    fn suggested(name: &str, pages: &[u64], then: u64) -> Vec<u64> {
        let mut prefetch = name.parse::<PrefetchConfig>().unwrap().start().unwrap();
        pages.iter().for_each(|page| prefetch.observe(PageId(*page)));
        let mut suggested = Vec::new();
        prefetch.suggest(PageId(then), 2, &mut suggested);
        suggested.into_iter().map(|page| page.0).collect()
    }

    /// The rule: `history` trusts a successor after it was seen twice in a row, until another successor is
    /// seen.
    #[test]
    fn history_trusts_a_successor_that_was_seen_twice_in_a_row() {
        assert_eq!(suggested("history", &[7, 90], 7), []);
        assert_eq!(suggested("history", &[7, 90, 1, 7, 90], 7), [90]);
        assert_eq!(suggested("history", &[7, 90, 1, 7, 90, 2, 7, 30], 7), []);
        // A chain of successors ends at the first one that is not trusted.
        let twice = [7, 90, 30, 60, 7, 90, 30, 5];
        assert_eq!(suggested("history", &twice, 7), [90, 30]);
        assert_eq!(suggested("history", &twice, 30), []);
        // A chain has at most the requested number of pages. A page that is requested several times in a row
        // is not its own successor.
        let thrice = [7, 90, 30, 60, 7, 90, 30, 60];
        assert_eq!(suggested("history", &thrice, 7), [90, 30]);
        assert_eq!(suggested("history", &[7, 90, 1, 7, 7, 7, 90], 7), [90]);
    }

    /// The rule: `history` uses an entry only for its own page. Here most pages share a slot with others.
    #[test]
    fn history_does_not_confuse_pages_in_one_slot() {
        let name = "history:table=2";
        // Each of these pages was followed by page 0 once.
        let once: Vec<u64> = (1..40).flat_map(|page| [page, 0]).collect();
        for page in 1..40 {
            assert_eq!(suggested(name, &once, page), [], "{page} was followed by 0 once");
        }
        let confirmed = |page| [1, page, 1, page, 1];
        let next = (2..20).find(|page| suggested(name, &confirmed(*page), 1) == [*page]);
        let next = next.expect("a page whose entry is not that of page 1");
        for page in (2..40).filter(|page| *page != next) {
            assert_eq!(suggested(name, &confirmed(next), page), [], "{page} was never seen");
        }
    }

    /// The rule: `sequential` takes two consecutive pages for a run, and tracks several runs independently.
    #[test]
    fn sequential_trusts_a_run_of_two_pages() {
        assert_eq!(suggested("sequential", &[5], 5), []);
        assert_eq!(suggested("sequential", &[5, 6], 6), [7, 8]);
        assert_eq!(suggested("sequential", &[5, 90, 6, 91], 6), [7, 8]);
        assert_eq!(suggested("sequential", &[5, 7, 9], 9), []);
        assert_eq!(suggested("sequential", &[6, 5], 5), []);
    }

    /// The rule: `sequential` tracks 32 runs, and a new run replaces the one that grew least recently.
    #[test]
    fn a_new_run_replaces_the_one_that_grew_least_recently() {
        let begun = |runs: u64| (0..runs).map(|run| 100 * run);
        let last = |runs, grown: &[u64], then| {
            let pages: Vec<u64> = begun(runs).chain(grown.iter().copied()).chain([then]).collect();
            suggested("sequential", &pages, then)
        };
        assert_eq!(last(32, &[], 1), [2, 3]);
        assert_eq!(last(33, &[], 1), []);
        assert_eq!(last(33, &[], 101), [102, 103]);
        // The first of 32 runs has grown since it began, so a new run replaces the second.
        assert_eq!(last(32, &[1, 9_000], 2), [3, 4]);
        assert_eq!(last(32, &[1, 9_000], 101), []);
    }

    #[test]
    fn both_uses_history_if_there_is_no_run() {
        let suggested = |name: &str, then: u64| {
            let mut prefetch = name.parse::<PrefetchConfig>().unwrap().start().unwrap();
            // The pool misses the same scattered pages twice, and then a run.
            for page in [7, 90, 7, 90, 7, 40, 41] {
                prefetch.observe(PageId(page));
            }
            let mut pages = Vec::new();
            prefetch.suggest(PageId(then), 2, &mut pages);
            pages
        };
        assert_eq!(suggested("both", 41), [PageId(42), PageId(43)]);
        assert_eq!(suggested("both", 90), [PageId(7)]);
        assert_eq!(suggested("sequential", 90), []);
        assert_eq!(suggested("history", 41), []);
        assert_eq!(suggested("none", 41), []);
    }
}
