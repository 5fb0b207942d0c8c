//! Tests of the laws that every replacement policy obeys, and of single policies against slow models.

use super::*;
use proptest::prelude::*;

const FRAMES: u32 = 12;

/// Creates a policy and applies a sequence of operations to it, as a pool would perform them.
fn used(name: &str, frames: &mut FrameTable, operations: &[(u8, u32, bool)]) -> Replacement {
    let mut policy = name.parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
    frames.set_erase_counts(Box::new(|page| page.0 * 7 % 5));
    let mut held = [false; FRAMES as usize];
    for (at, (kind, frame, write)) in operations.iter().enumerate() {
        let id = FrameId(*frame);
        match kind {
            0 if held[id.index()] => {
                policy.remove(id);
                held[id.index()] = false;
            }
            1 if held[id.index()] => {
                frames.set_dirty(id, false);
                policy.cleaned(id);
            }
            2 => {
                if let Some(victim) = policy.evict(frames) {
                    assert!(
                        std::mem::take(&mut held[victim.index()]),
                        "{name} evicts a frame that it does not hold"
                    );
                }
            }
            _ if held[id.index()] => {
                policy.access(id, *write);
                frames.set_dirty(id, frames.is_dirty(id) || *write);
            }
            _ => {
                // There are only 17 different pages, so that remembered pages are requested again.
                let page = PageId(at as u64 % 17);
                let arrival =
                    Arrival { write: *write, prefetched: at % 5 == 0 && !*write, recall: policy.miss(page) };
                frames.load(id, page);
                frames.set_dirty(id, *write);
                policy.insert(id, page, arrival);
                held[id.index()] = true;
            }
        }
    }
    policy
}

/// Returns the text of every policy, and of every option that changes a policy's mechanism.
fn all() -> impl Iterator<Item = String> {
    let options = [
        "clock:max=1,initial=0",
        "lru-wsr:passed=move",
        "cflru:window=10%",
        "cflru:window=4",
        "2q:in=2,out=5",
        "w-tinylfu:window=30%",
        "s3-fifo:promote=1",
        "s3-fifo:small=40%,promote=1",
        "s3-fifo:small=2,ghosts=3",
    ];
    ReplacementConfig::registry().names().chain(options).map(str::to_owned)
}

proptest! {
    /// The rule: evicting until no frame is left gives the frames in the order that `next` returned before.
    /// Pinned frames are in neither order, all others are in both.
    #[test]
    fn draining_by_evict_gives_the_order_that_next_gave(
        operations in prop::collection::vec((0u8..12, 0..FRAMES, any::<bool>()), 0..200),
        pinned in prop::collection::btree_set(0..FRAMES, 0..4),
    ) {
        for name in all() {
            let mut frames = FrameTable::new(FRAMES);
            let mut policy = used(&name, &mut frames, &operations);
            let mut cursor = Cursor::default();
            // The limit is one more than the number of frames, so that an endless order fails.
            let most = FRAMES as usize + 1;
            let everything: Vec<FrameId> =
                std::iter::from_fn(|| policy.next(&frames, &mut cursor)).take(most).collect();
            prop_assert!(everything.len() < most, "{} gives a frame twice", &name);
            prop_assert_eq!(policy.next(&frames, &mut cursor), None, "{} goes on after its end", &name);
            for frame in &pinned {
                prop_assert!(frames.try_latch(FrameId(*frame), false));
            }
            cursor.reset();
            let order: Vec<FrameId> = std::iter::from_fn(|| policy.next(&frames, &mut cursor)).take(most).collect();
            let mut expected: Vec<FrameId> = everything.into_iter().filter(|frame| !frames.is_pinned(*frame)).collect();
            let mut unordered = order.clone();
            unordered.sort();
            expected.sort();
            prop_assert_eq!(unordered, expected, "{} forgets or repeats a frame", &name);
            let drained: Vec<FrameId> = std::iter::from_fn(|| policy.evict(&frames)).take(most).collect();
            prop_assert_eq!(drained, order, "{} breaks the order law", &name);
        }
    }
}

/// A page in the list of the slow model of the clean-first policies.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    frame: FrameId,
    dirty: bool,
    uses: u32,
}

/// Returns the rank of a dirty page, for the choice if there is no clean page; the page with the lowest rank
/// is evicted first.
type Rank = fn(&FrameTable, Candidate) -> u64;

/// A slow model of the clean-first policies by their definition: one list, the least recently used page
/// first.
struct SlowCleanFirst {
    list: Vec<Candidate>,
    region: usize,
    window: usize,
    rank: Rank,
}

impl SlowCleanFirst {
    /// Returns the four policies over 12 frames, with windows from one frame to all of them.
    fn all() -> impl Iterator<Item = (String, SlowCleanFirst)> {
        let policies: [(&str, Rank); 4] = [
            ("cflru", |_, _| 0),
            ("cflru-c", |_, page| u64::from(page.uses)),
            ("cflru-e", |frames, page| frames.erases(page.frame)),
            ("dl-cflru-e", |frames, page| frames.erases(page.frame)),
        ];
        policies.into_iter().flat_map(|(name, rank)| {
            [1, 3, 4, 12].map(|window| {
                let region = if name == "dl-cflru-e" { FRAMES as usize } else { window };
                let list = Vec::new();
                (format!("{name}:window={window}"), SlowCleanFirst { list, region, window, rank })
            })
        })
    }

    fn position(&self, frame: FrameId) -> Option<usize> {
        self.list.iter().position(|page| page.frame == frame)
    }

    /// Returns the victim: the first clean page of the region. If there is none, the victim is the page with
    /// the lowest rank among the first `window` dirty pages of the region. If all of these are pinned, the
    /// victim is the first unpinned page of the whole list.
    fn choice(&self, frames: &FrameTable) -> Option<FrameId> {
        let free = |page: &&Candidate| !frames.is_pinned(page.frame);
        let region = &self.list[..self.region.min(self.list.len())];
        let clean = region.iter().filter(|page| !page.dirty).find(free);
        let dirty = region.iter().filter(|page| page.dirty).take(self.window).filter(free);
        let chosen = clean.or_else(|| dirty.min_by_key(|page| (self.rank)(frames, **page)));
        chosen.or_else(|| self.list.iter().find(free)).map(|page| page.frame)
    }

    /// Returns all unpinned pages in the order of their eviction.
    fn order(&mut self, frames: &FrameTable) -> Vec<FrameId> {
        let kept = self.list.clone();
        let order = std::iter::from_fn(|| {
            let frame = self.choice(frames)?;
            self.list.remove(self.position(frame).expect("it was chosen from the list"));
            Some(frame)
        });
        let order = order.collect();
        self.list = kept;
        order
    }
}

proptest! {
    /// The rule: after any sequence of operations, CFLRU and its variants choose the same victim as the slow
    /// model, and their virtual eviction order is the order in which the slow model would evict.
    #[test]
    fn clean_first_policies_choose_the_same_victims_as_a_slow_model(
        operations in prop::collection::vec((0u8..14, 0..FRAMES, any::<bool>()), 0..120),
    ) {
        for (name, mut slow) in SlowCleanFirst::all() {
            let mut frames = FrameTable::new(FRAMES);
            frames.set_erase_counts(Box::new(|page| page.0 * 7 % 5));
            let mut policy = name.parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
            for (at, (kind, frame, write)) in operations.iter().enumerate() {
                let frame = FrameId(*frame);
                match (kind, slow.position(frame)) {
                    (0, Some(place)) => {
                        policy.remove(frame);
                        slow.list.remove(place);
                    }
                    (1, Some(place)) => {
                        policy.cleaned(frame);
                        slow.list[place].dirty = false;
                    }
                    (2, _) => {
                        let expected = slow.choice(&frames);
                        prop_assert_eq!(policy.evict(&frames), expected, "{}, {:?}", &name, &slow.list);
                        slow.list.retain(|page| Some(page.frame) != expected);
                    }
                    // At most a third of the pages is pinned, so that whole regions can be pinned.
                    (3 | 4, Some(_)) if frames.is_pinned(frame) => {
                        frames.unlatch(frame);
                    }
                    (3 | 4, Some(_)) => {
                        frames.try_latch(frame, false);
                    }
                    (_, Some(place)) => {
                        policy.access(frame, *write);
                        let Candidate { dirty, uses, .. } = slow.list.remove(place);
                        slow.list.push(Candidate { frame, dirty: dirty | write, uses: uses + 1 });
                    }
                    (_, None) => {
                        let page = PageId(at as u64);
                        let prefetched = at % 4 == 0 && !write;
                        frames.load(frame, page);
                        policy.insert(frame, page, Arrival { write: *write, prefetched, ..Arrival::default() });
                        let place = if prefetched { 0 } else { slow.list.len() };
                        slow.list.insert(place, Candidate { frame, dirty: *write, uses: 0 });
                    }
                }
                let mut cursor = Cursor::default();
                let order: Vec<FrameId> =
                    std::iter::from_fn(|| policy.next(&frames, &mut cursor)).take(FRAMES as usize + 1).collect();
                prop_assert_eq!(order, slow.order(&frames), "{}, {:?}", &name, &slow.list);
            }
        }
    }
}

/// The rule: in a full pool, a prefetched page without a request is evicted before every requested page.
#[test]
fn an_unused_prefetched_page_is_evicted_next() {
    for name in all() {
        // By default, NRU clears its referenced bits after a few requests, so here the bits are kept for
        // longer.
        let name = if name == "nru" { "nru:clear=1000".to_owned() } else { name };
        let mut frames = FrameTable::new(FRAMES);
        frames.set_erase_counts(Box::new(|_| 0));
        let mut policy = name.parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
        for frame in (0..FRAMES).map(FrameId) {
            let page = PageId(frame.index() as u64);
            let recall = policy.miss(page);
            frames.load(frame, page);
            policy.insert(frame, page, Arrival { recall, ..Arrival::default() });
        }
        let frame = policy.evict(&frames).unwrap();
        frames.load(frame, PageId(77));
        policy.insert(frame, PageId(77), Arrival { prefetched: true, ..Arrival::default() });
        // All other pages are used, so that a policy with a hand does not consider any of them old.
        (0..FRAMES)
            .map(FrameId)
            .filter(|other| *other != frame)
            .for_each(|other| policy.access(other, false));
        assert_eq!(policy.next(&frames, &mut Cursor::default()), Some(frame), "{name}");
    }
}

/// The rule: the uses of a page do not count for the next page in the same frame.
#[test]
fn a_page_does_not_inherit_the_uses_of_another() {
    // W-TinyLFU is left out, because it also counts requests for evicted pages. By default, NRU clears its
    // referenced bits after a few requests, so here the bits are kept for longer.
    for name in all().filter(|name| !name.starts_with("w-tinylfu")) {
        let name = if name == "nru" { "nru:clear=1000".to_owned() } else { name };
        let order = |used: bool| {
            let mut frames = FrameTable::new(FRAMES);
            frames.set_erase_counts(Box::new(|_| 0));
            let mut policy = name.parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
            let mut insert = |policy: &mut Replacement, frame: u32, page: u64| {
                frames.load(FrameId(frame), PageId(page));
                frames.set_dirty(FrameId(frame), true);
                policy.insert(FrameId(frame), PageId(page), Arrival { write: true, ..Arrival::default() });
            };
            if used {
                insert(&mut policy, 5, 5);
                (0..4).for_each(|_| policy.access(FrameId(5), false));
                policy.remove(FrameId(5));
            }
            (0..FRAMES).for_each(|frame| insert(&mut policy, frame, 100 + u64::from(frame)));
            let mut cursor = Cursor::default();
            std::iter::from_fn(|| policy.next(&frames, &mut cursor))
                .take(FRAMES as usize + 1)
                .collect::<Vec<_>>()
        };
        assert_eq!(order(true), order(false), "{name}");
    }
}

/// The rule: prefetched pages without a request are evicted before pages with one request.
#[test]
fn an_unused_prefetched_page_is_evicted_before_pages_used_once() {
    for name in [
        "lru",
        "lfu",
        "fifo",
        "second-chance",
        "clock:initial=1",
        "sieve",
        "arc",
        "2q",
        "s3-fifo",
        "cflru",
        "lru-wsr",
        "ccf-lru",
    ] {
        let mut frames = FrameTable::new(FRAMES);
        let mut policy = name.parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
        let mut insert = |policy: &mut Replacement, frame: u32, prefetched: bool| {
            frames.load(FrameId(frame), PageId(u64::from(frame)));
            policy.insert(
                FrameId(frame),
                PageId(u64::from(frame)),
                Arrival { prefetched, ..Arrival::default() },
            );
        };
        (0..FRAMES - 2).for_each(|frame| insert(&mut policy, frame, false));
        (FRAMES - 2..FRAMES).for_each(|frame| insert(&mut policy, frame, true));
        let mut cursor = Cursor::default();
        let mut first: Vec<u32> =
            std::iter::from_fn(|| policy.next(&frames, &mut cursor)).map(|frame| frame.0).take(2).collect();
        first.sort_unstable();
        assert_eq!(first, [FRAMES - 2, FRAMES - 1], "{name}");
    }
}

/// The rule: SIEVE inserts a prefetched page at its hand. The hand has already passed older pages that were
/// used.
#[test]
fn sieve_inserts_a_prefetched_page_at_its_hand() {
    let mut frames = FrameTable::new(FRAMES);
    let mut policy = "sieve".parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
    for frame in (0..FRAMES).map(FrameId) {
        frames.load(frame, PageId(u64::from(frame.0)));
        policy.insert(frame, PageId(u64::from(frame.0)), Arrival::default());
    }
    (0..4).for_each(|frame| policy.access(FrameId(frame), false));
    // The hand has skipped the four used pages.
    assert_eq!(policy.evict(&frames), Some(FrameId(4)));
    frames.load(FrameId(4), PageId(77));
    policy.insert(FrameId(4), PageId(77), Arrival { prefetched: true, ..Arrival::default() });
    let mut cursor = Cursor::default();
    assert_eq!([(); 2].map(|()| policy.next(&frames, &mut cursor).unwrap().0), [4, 5]);
    assert_eq!([(); 2].map(|()| policy.evict(&frames).unwrap().0), [4, 5]);
}

/// The rule: CFLRU's region keeps its size when a prefetched page is inserted, so a clean page beyond the
/// region is not evicted early.
#[test]
fn the_clean_first_region_keeps_its_size() {
    let mut frames = FrameTable::new(4);
    let mut policy = "cflru:window=2".parse::<ReplacementConfig>().unwrap().start(4).unwrap();
    for (frame, write, prefetched) in
        [(0, true, false), (1, true, false), (2, false, false), (3, false, true)]
    {
        frames.load(FrameId(frame), PageId(u64::from(frame)));
        frames.set_dirty(FrameId(frame), write);
        policy.insert(
            FrameId(frame),
            PageId(u64::from(frame)),
            Arrival { write, prefetched, ..Arrival::default() },
        );
    }
    // The prefetched page is evicted first. Then the region consists of frames 0 and 1, both dirty. After the
    // eviction of frame 0, the region includes the clean frame 2.
    let order: Vec<u32> = std::iter::from_fn(|| policy.evict(&frames)).map(|frame| frame.0).collect();
    assert_eq!(order, [3, 0, 2, 1]);
}

/// The rule: inserting a prefetched page clears NRU's bits of its own frame and of no other, even if the
/// frames fill their words of 64 bits exactly.
#[test]
fn nru_clears_the_bits_of_one_frame_only() {
    let mut frames = FrameTable::new(128);
    let mut policy = "nru:clear=100000".parse::<ReplacementConfig>().unwrap().start(128).unwrap();
    for frame in (0..128).map(FrameId) {
        frames.load(frame, PageId(u64::from(frame.0)));
        policy.insert(frame, PageId(u64::from(frame.0)), Arrival::default());
    }
    policy.remove(FrameId(70));
    policy.insert(FrameId(70), PageId(200), Arrival { prefetched: true, ..Arrival::default() });
    let mut cursor = Cursor::default();
    let order: Vec<u32> =
        std::iter::from_fn(|| policy.next(&frames, &mut cursor)).map(|frame| frame.0).take(129).collect();
    let others = (0..128).filter(|frame| *frame != 70);
    assert_eq!(order, [70].into_iter().chain(others).collect::<Vec<_>>());
}

/// The rule: if every page is pinned, a policy evicts none, and its eviction order does not change.
#[test]
fn a_search_in_vain_changes_no_order() {
    for name in all() {
        let mut frames = FrameTable::new(FRAMES);
        let mut policy = used(&name, &mut frames, &[(5, 0, false)]);
        for frame in (1..FRAMES).map(FrameId) {
            frames.load(frame, PageId(u64::from(frame.0)));
            policy.insert(frame, PageId(u64::from(frame.0)), Arrival::default());
        }
        (0..FRAMES).for_each(|frame| assert!(frames.try_latch(FrameId(frame), false)));
        assert_eq!(policy.evict(&frames), None, "{name}");
        for frame in (0..FRAMES).map(FrameId) {
            frames.unlatch(frame);
        }
        // Among pages with the same uses, a policy evicts the first one inserted or the first one from the
        // start of its search.
        let mut cursor = Cursor::default();
        let next = policy.next(&frames, &mut cursor);
        assert_eq!(policy.evict(&frames), next, "{name}");
        if name.starts_with("clock") {
            assert_eq!(next, Some(FrameId(0)), "{name}: the hand is back at its start");
        }
    }
}

/// The rule: NRU evicts pages without a use since the last clearing before pages with one; in both groups, it
/// evicts clean pages before dirty ones.
#[test]
fn nru_evicts_from_the_lowest_class() {
    let mut frames = FrameTable::new(FRAMES);
    let mut policy = "nru:clear=16".parse::<ReplacementConfig>().unwrap().start(FRAMES).unwrap();
    for frame in (0..FRAMES).map(FrameId) {
        frames.load(frame, PageId(frame.index() as u64));
        frames.set_dirty(frame, frame.index() % 2 == 0);
        policy.insert(frame, frames.page(frame), Arrival::default());
    }
    // The sixteenth request clears the referenced bits. This request and the later ones, on the first five
    // frames, count as uses.
    (0..3).chain(0..5).for_each(|frame| policy.access(FrameId(frame), false));
    let mut cursor = Cursor::default();
    let class = |frame: FrameId| (frame.index() < 5, frames.is_dirty(frame));
    let order: Vec<(bool, bool)> =
        std::iter::from_fn(|| policy.next(&frames, &mut cursor)).map(class).collect();
    assert_eq!(order.len(), FRAMES as usize);
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn a_default_written_out_changes_no_text_and_another_value_does() {
    ReplacementConfig::registry().check_texts().unwrap();
    let text = |text: &str| text.parse::<ReplacementConfig>().unwrap().to_string();
    assert_eq!(text("clock"), text("clock:max=5"));
    assert_eq!(text("cflru:window=1/3"), "cflru");
    assert_eq!(text("cflru:window=1K"), "cflru:window=1000");
}

#[test]
fn a_part_of_the_frames_is_a_count_or_a_share() {
    let window = |text: &str| {
        let config = text.parse::<ReplacementConfig>().unwrap();
        let ReplacementConfig::Cflru(config) = config else { panic!("{text} is cflru") };
        config.window(1_000).map_err(|error| error.to_string())
    };
    assert_eq!(["cflru", "cflru:window=250", "cflru:window=25%"].map(window), [Ok(333), Ok(250), Ok(250)]);
    assert_eq!(
        window("cflru:window=1001").unwrap_err(),
        "window=1001 is too much for 1000 frames; accepted: a count up to 1000, or a share like 6%"
    );
}

#[test]
fn values_out_of_range_are_refused_with_the_accepted_ones() {
    let sentence = |text: &str| {
        let started = text.parse::<ReplacementConfig>().and_then(|config| config.start(100).map(drop));
        started.unwrap_err().to_string()
    };
    assert_eq!(sentence("2q:in=200%"), "in=200% of 2q is out of range; accepted: 0% to 100%");
    assert_eq!(sentence("s3-fifo:promote=0"), "promote=0 of s3-fifo is out of range; accepted: 1 to 255");
    for fits in ["clock:max=254,initial=254", "clock:max=1,initial=1"] {
        assert!(fits.parse::<ReplacementConfig>().unwrap().start(100).is_ok(), "{fits}");
    }
    // A configuration that was not parsed from a text was not checked for its range, so `start` must refuse
    // it.
    let unused = ReplacementConfig::Clock(ClockConfig { max: 0, initial: 0 });
    assert!(unused.start(100).is_err());
    assert!(sentence("clock:max=3,initial=4").contains("accepted: max from 1 to 254, initial up to max"));
    assert!(sentence("nru:clear=0").contains("accepted: at least 1 request"));
    assert!(
        sentence("2q:out=1001")
            .starts_with("2q: out=1001 is too much for 100 frames; accepted: a count up to 1000")
    );
    assert!(sentence("lru:window=1").contains("unknown option of lru"));
    assert!(sentence("lur").starts_with("unknown replacement `lur`; did you mean `lru`?"));
}

/// The rule: a user's own policy has a name and a text, and can be used like a built-in one.
#[test]
fn a_description_can_hold_a_users_own_policy() {
    #[derive(Debug)]
    struct Own;
    impl CustomReplacement for Own {
        fn name(&self) -> &str {
            "own"
        }
        fn text(&self) -> String {
            "own:depth=3".to_owned()
        }
        fn start(&self, frames: u32) -> Result<Box<dyn ReplacementPolicy>, SpecError> {
            Ok(Box::new(lru::Lru::new(&NoOptions, frames)?))
        }
    }
    let config = ReplacementConfig::Custom(std::sync::Arc::new(Own));
    assert_eq!((config.name(), config.to_string().as_str()), ("own", "own:depth=3"));
    let mut policy = config.clone().start(1).unwrap();
    policy.insert(FrameId(0), PageId(7), Arrival::default());
    assert_eq!(policy.evict(&FrameTable::new(1)), Some(FrameId(0)));
}

#[test]
fn a_policy_that_breaks_the_law_would_be_caught() {
    /// A policy that breaks the order law: it returns frames in rising order but evicts in falling order.
    struct Liar(Vec<FrameId>);
    impl ReplacementPolicy for Liar {
        fn insert(&mut self, frame: FrameId, _: PageId, _: Arrival) {
            self.0.push(frame);
        }
        fn access(&mut self, _: FrameId, _: bool) {}
        fn remove(&mut self, frame: FrameId) {
            self.0.retain(|held| *held != frame);
        }
        fn next(&self, _: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
            cursor.step += 1;
            self.0.get(cursor.step as usize - 1).copied()
        }
        fn evict(&mut self, _: &FrameTable) -> Option<FrameId> {
            self.0.pop()
        }
    }
    let frames = FrameTable::new(2);
    let mut policy = Replacement::Custom(Box::new(Liar(Vec::new())));
    policy.insert(FrameId(0), PageId(0), Arrival::default());
    policy.insert(FrameId(1), PageId(1), Arrival::default());
    assert_ne!(policy.next(&frames, &mut Cursor::default()), policy.evict(&frames));
}

/// The rule: ARC remembers as many pages as the pool holds, and one more if a miss on a remembered page
/// overtakes another miss.
#[test]
fn arc_remembers_as_many_pages_as_the_pool_holds_and_one_for_a_concurrent_miss() {
    let start = || {
        let mut frames = FrameTable::new(2);
        let mut arc = "arc".parse::<ReplacementConfig>().unwrap().start(2).unwrap();
        // Pages 1 and 3 are used again, so page 2 is evicted from T1, and page 1 from T2.
        for (page, frame, evicts, again) in
            [(1, 0, false, true), (2, 1, false, false), (3, 1, true, true), (4, 0, true, false)]
        {
            let (page, frame) = (PageId(page), FrameId(frame));
            let recall = arc.miss(page);
            assert_eq!(recall, Recall::default());
            if evicts {
                assert_eq!(arc.evict(&frames), Some(frame));
            }
            frames.load(frame, page);
            arc.insert(frame, page, Arrival { write: false, prefetched: false, recall });
            if again {
                arc.access(frame, false);
            }
        }
        (arc, frames)
    };
    let (mut arc, _) = start();
    assert_eq!([1, 2].map(|page| arc.miss(PageId(page))), [Recall(2), Recall(1)]);
    let (mut arc, frames) = start();
    assert_eq!([5, 2].map(|page| arc.miss(PageId(page))), [Recall(0), Recall(1)]);
    assert_eq!([(); 2].map(|()| arc.evict(&frames)), [Some(FrameId(1)), Some(FrameId(0))]);
    assert_eq!([1, 3, 4].map(|page| arc.miss(PageId(page))), [Recall(2), Recall(2), Recall(1)]);
}
