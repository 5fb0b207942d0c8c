//! Decides what to write when a frame is needed, and who waits for it. Each policy has a file. [`WriteBackConfig`]
//! describes what was asked for and lists all policies. [`WriteBack`] has the numbers that follow for a drive.
//!
//! There is one mechanism. A miss in a full pool asks the replacement policy for the victim frame. If that
//! is dirty, the first `n_w` dirty frames of the eviction order are written together. Without write
//! buffers the miss waits for the batch, evicts the victim frame and reads; with them the victim frame is
//! evicted at once, its page stays findable while its write is under way, and a spare frame takes the
//! read. A cleaner, where there is one, writes dirty frames before a miss meets them. With a lock, no other
//! miss evicts while one waits for its write. The policies are points in this space.

pub mod ace;
pub mod ace_raw;
mod auto;
pub mod background;
pub mod raw;
pub mod single;

use crate::{Cursor, FrameTable, Replacement, ReplacementPolicy};
use ace::AceConfig;
use ace_raw::AceRawConfig;
use background::BackgroundConfig;
use fulgurite_base::{Form, FrameId, NoOptions, SpecError, config_enum, units};
use raw::RawConfig;
use rustc_hash::FxHashSet;
use single::SingleConfig;
use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

/// What the pool shall do for a miss in a full pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Dirty frames to write together, in eviction order.
    pub write: Vec<FrameId>,
    /// The frame to evict; `None` where every frame is in use.
    pub evict: Option<FrameId>,
    /// How many more frames may be evicted for pages to prefetch.
    pub prefetch: u32,
}

/// A replacement policy's eviction order, read lazily.
pub struct Order<'a> {
    replacement: &'a Replacement,
    frames: &'a FrameTable,
    cursor: &'a mut Cursor,
}

impl<'a> Order<'a> {
    /// The order as it is now. `cursor` is reset first.
    pub fn new(replacement: &'a Replacement, frames: &'a FrameTable, cursor: &'a mut Cursor) -> Order<'a> {
        cursor.reset();
        Order { replacement, frames, cursor }
    }
}

impl Iterator for Order<'_> {
    type Item = FrameId;

    #[inline]
    fn next(&mut self) -> Option<FrameId> {
        self.replacement.next(self.frames, self.cursor)
    }
}

/// Pages written together at most: an NVMe queue holds no more commands.
const MOST_TOGETHER: u32 = 1 << 16;

/// A number that is given, or follows from something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Number {
    /// It follows from something else; the option says from what.
    #[default]
    Follows,
    /// It is given.
    Is(u32),
}

/// A number that follows from something else cannot be compared with one that is given.
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Is(own), Number::Is(other)) => Some(own.cmp(other)),
            _ => (self == other).then_some(Ordering::Equal),
        }
    }
}

impl Number {
    fn or_else(self, follows: impl FnOnce() -> Result<u32, SpecError>) -> Result<u32, SpecError> {
        match self {
            Number::Is(number) => Ok(number),
            Number::Follows => follows(),
        }
    }
}

/// A form for numbers that follow from `$word` where they are not given.
macro_rules! follows {
    ($form:ident, $word:literal) => {
        const $form: Form<Number> = Form {
            written: concat!("N|", $word),
            parse: |text| match text {
                $word => Ok(Number::Follows),
                _ => {
                    let number = u32::try_from(units::parse_count(text)?).unwrap_or(u32::MAX);
                    Ok(Number::Is(number))
                }
            },
            show: |number| match number {
                Number::Follows => $word.to_owned(),
                Number::Is(number) => number.to_string(),
            },
        };
    };
}

follows!(K_W, "k_w");
follows!(TWICE_K_W, "2k_w");
follows!(N_W, "n_w");
follows!(TWICE_N_W, "2n_w");

/// Throughput over requests in flight: pairs of a number in flight, in rising order, and requests per second.
pub type Curve = Vec<(u32, f64)>;

/// What a policy may ask about the drive that it is for. Answers may take long: each is asked for only where the
/// policy was not told the number that follows from it.
pub trait MeasuredDrive {
    /// The drive's write concurrency.
    fn k_w(&mut self) -> Result<u32, SpecError>;

    /// Its curves of reads and of writes of one page.
    fn curves(&mut self) -> Result<[Curve; 2], SpecError>;
}

/// A drive of which the write concurrency alone is known.
impl<F: FnMut() -> Result<u32, SpecError>> MeasuredDrive for F {
    fn k_w(&mut self) -> Result<u32, SpecError> {
        self()
    }

    fn curves(&mut self) -> Result<[Curve; 2], SpecError> {
        Err(SpecError::new(
            "the write-back policy auto needs the drive's curves; accepted: one like ace:n_w=8",
        ))
    }
}

/// A user's own write-back policy, as a part of a description: it names the policy and says what it means for
/// a drive.
pub trait CustomWriteBack: Debug + Send + Sync {
    /// The name.
    fn name(&self) -> &str;

    /// The canonical text: the name and the options that matter.
    fn text(&self) -> String {
        self.name().to_owned()
    }

    /// The policy for a drive: a point in the mechanism's space, or one with [`WriteBack::planner`].
    fn resolve(&self, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError>;
}

/// A user's own planner of batches. It looks at the eviction order and the frames and keeps nothing from one plan
/// to the next.
pub trait BatchPlanner: Debug + Send + Sync {
    /// Decides for a miss, given the frame to evict and those that follow in eviction order: puts the dirty frames to
    /// write into `plan.write`, and into `plan.prefetch` how many more may be evicted. If the frame to evict is dirty
    /// it is written in any case, first of all. If it is clean it leaves at once, and the miss waits for no write.
    fn plan(
        &self,
        victim: FrameId,
        rest: &mut dyn Iterator<Item = FrameId>,
        frames: &FrameTable,
        plan: &mut Plan,
    );

    /// The cleaner's next batch, in `plan.write`; `order` has the first [`WriteBack::ahead`] frames alone. Left empty,
    /// the cleaner sleeps.
    fn plan_cleaning(
        &self,
        _order: &mut dyn Iterator<Item = FrameId>,
        _frames: &FrameTable,
        _plan: &mut Plan,
    ) {
    }
}

macro_rules! policies {
    ($($name:literal $variant:ident($config:ty, $resolve:path) $about:literal)*) => {
        config_enum! {
            /// The write-back policies by name, each with its options: what was asked for.
            pub enum WriteBackConfig: "write-back", custom CustomWriteBack;
            $($name $variant($config) $about)*
        }

        impl WriteBackConfig {
            /// What the policy means for `drive`, which is asked for the numbers that were not given. Where its write
            /// concurrency is enough, a closure that returns it will do.
            pub fn resolve(&self, mut drive: impl MeasuredDrive) -> Result<WriteBack, SpecError> {
                match self {
                    $(WriteBackConfig::$variant(config) => $resolve(config, &mut drive),)*
                    WriteBackConfig::Custom(custom) => custom.resolve(&mut drive),
                }
            }
        }
    };
}

// A new policy is a file and a line here.
policies! {
    "single" Single(SingleConfig, single::resolve) "write the one dirty victim frame, wait, evict it"
    "background" Background(BackgroundConfig, background::resolve) "a cleaner writes ahead of the evictions; a miss that meets a dirty frame does as in single"
    "ace" Ace(AceConfig, ace::resolve) "write n_w dirty frames together in eviction order, wait, evict one"
    "raw" Raw(RawConfig, raw::resolve) "read at once, write the dirty victim frame behind it"
    "ace+raw" AceRaw(AceRawConfig, ace_raw::resolve) "ace whose batches no read waits for"
    "auto" Auto(NoOptions, auto::resolve) "ace+raw, or raw, with n_w, n_e and buffers from the drive's measured curves"
}

/// A write-back policy for a drive: a point in the mechanism's space.
#[derive(Clone, Debug)]
pub struct WriteBack {
    /// Whether ACE's rules apply: a miss looks for `n_w` dirty frames along the eviction order, and pages are prefetched
    /// only beside a batch, into the frames that the miss has dropped.
    pub batches: bool,
    /// Dirty frames that a miss writes together.
    pub n_w: u32,
    /// Frames that a miss drops together where pages are prefetched.
    pub n_e: u32,
    /// Spare frames at most for pages whose write is under way; with none, a miss waits for its write.
    pub buffers: u32,
    /// Spare frames that are kept whatever happens. Up to `buffers`, others are taken from the pool as writes under way
    /// need them, and given back when they no longer do.
    pub buffers_least: u32,
    /// Pages whose write is under way at most when a miss begins one; all misses share this. A batch is as large as that
    /// leaves, and a miss to which nothing is left waits.
    pub under_way: u32,
    /// Frames at the head of the eviction order that the cleaner keeps clean; none without a cleaner.
    pub ahead: u32,
    /// Frames that the cleaner writes together.
    pub cleaner_n_w: u32,
    /// Whether a miss that waits for its write keeps all other misses from evicting until that has ended.
    pub lock: bool,
    /// What plans the batches in place of `n_w`, `n_e` and `cleaner_n_w`.
    pub planner: Option<Arc<dyn BatchPlanner>>,
}

impl WriteBack {
    /// Write the one victim frame, wait, evict it.
    pub const SINGLE: WriteBack = WriteBack {
        batches: false,
        n_w: 1,
        n_e: 1,
        buffers: 0,
        buffers_least: 0,
        under_way: u32::MAX,
        ahead: 0,
        cleaner_n_w: 0,
        lock: false,
        planner: None,
    };

    /// ACE with batches of `n_w`, and as many evictions where pages are prefetched.
    pub const fn ace(n_w: u32) -> WriteBack {
        WriteBack { batches: true, n_w, n_e: n_w, ..WriteBack::SINGLE }
    }

    /// The same with spare frames, always as many.
    pub fn with_buffers(self, buffers: u32) -> WriteBack {
        WriteBack { buffers, buffers_least: buffers, ..self }
    }

    /// The pages that are written together, by a miss or by the cleaner.
    pub fn batch_pages(&self) -> u32 {
        self.n_w.max(self.cleaner_n_w)
    }

    /// Whether a miss may write more than its victim frame, so that a plan is needed.
    #[inline]
    pub(crate) fn plans_batches(&self) -> bool {
        self.batches || self.planner.is_some()
    }

    /// Decides, given the frames in eviction order. `plan` is cleared first.
    pub fn plan(&self, mut order: impl Iterator<Item = FrameId>, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        // ACE prefetches only when it has written a batch; the others whenever they read.
        plan.prefetch = if self.batches { 0 } else { u32::MAX };
        plan.evict = order.next();
        let Some(victim) = plan.evict else { return };
        if let Some(planner) = &self.planner {
            planner.plan(victim, &mut order, frames, plan);
            plan.evict = Some(victim);
            // A dirty frame must not leave unwritten, even if the planner omits it or the batch is cut short.
            if frames.is_dirty(victim) {
                plan.write.insert(0, victim);
            }
            return keep_dirty(&mut plan.write, frames);
        }
        if !frames.is_dirty(victim) {
            return;
        }
        plan.write.push(victim);
        if self.batches {
            // The victim frame is one of the `n_e` and of the `n_w` frames.
            plan.prefetch = self.n_e - 1;
            plan.write.extend(order.filter(|frame| frames.is_dirty(*frame)).take(self.n_w as usize - 1));
        }
    }

    /// The cleaner's next batch: `plan.write` is left empty where all frames ahead are clean.
    pub fn plan_cleaning(&self, order: impl Iterator<Item = FrameId>, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        let mut ahead = order.take(self.ahead as usize);
        if let Some(planner) = &self.planner {
            planner.plan_cleaning(&mut ahead, frames, plan);
            return keep_dirty(&mut plan.write, frames);
        }
        let dirty = ahead.filter(|frame| frames.is_dirty(*frame));
        plan.write.extend(dirty.take(self.cleaner_n_w as usize));
    }
}

/// Leaves out what a user's own planner names in vain: frames that are clean or being written, or that somebody may be changing,
/// and frames that it names again.
fn keep_dirty(write: &mut Vec<FrameId>, frames: &FrameTable) {
    let mut seen = FxHashSet::default();
    write.retain(|frame| {
        frames.is_dirty(*frame) && !frames.is_latched_exclusively(*frame) && seen.insert(*frame)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<WriteBack, SpecError> {
        text.parse::<WriteBackConfig>()?.resolve(|| Ok(6))
    }

    #[test]
    fn a_default_written_out_changes_no_text_and_another_value_does() {
        WriteBackConfig::registry().check_texts().unwrap();
    }

    #[test]
    fn numbers_that_are_given_are_compared_and_one_that_follows_with_its_like_alone() {
        assert!(Number::Is(2) < Number::Is(3) && Number::Is(3) <= Number::Is(3));
        assert_eq!(Number::Follows.partial_cmp(&Number::Follows), Some(Ordering::Equal));
        assert_eq!(Number::Follows.partial_cmp(&Number::Is(3)), None);
    }

    #[test]
    fn what_is_not_given_follows_from_the_drive() {
        let numbers = |text: &str| {
            let WriteBack { n_w, n_e, buffers, buffers_least, under_way, ahead, cleaner_n_w, .. } =
                resolve(text).unwrap();
            [n_w, n_e, buffers, buffers_least, under_way, ahead, cleaner_n_w]
        };
        const NO_BOUND: u32 = u32::MAX;
        assert_eq!(numbers("single"), [1, 1, 0, 0, NO_BOUND, 0, 0]);
        assert_eq!(numbers("ace"), [6, 6, 0, 0, 12, 0, 0]);
        assert_eq!(numbers("ace:n_w=k_w,n_e=2,under_way=7"), [6, 2, 0, 0, 7, 0, 0]);
        assert_eq!(numbers("ace+raw:n_w=3"), [3, 3, 6, 1, 6, 0, 0]);
        assert_eq!(numbers("ace+raw:n_w=3,buffers=8,least=8"), [3, 3, 8, 8, 8, 0, 0]);
        assert_eq!(numbers("raw"), [1, 1, 12, 1, NO_BOUND, 0, 0]);
        assert_eq!(numbers("background:n_w=4"), [1, 1, 0, 0, NO_BOUND, 64, 4]);
        assert_eq!(resolve("background:n_w=4").unwrap().batch_pages(), 4);
        assert_eq!(["single", "single:lock=yes"].map(|text| resolve(text).unwrap().lock), [false, true]);
    }

    #[test]
    fn what_is_given_is_not_asked_of_the_drive() {
        let unasked = || -> Result<u32, SpecError> { panic!("the drive was asked") };
        for text in ["single", "single:lock=yes", "background", "ace:n_w=8", "raw:buffers=3", "ace+raw:n_w=2"]
        {
            text.parse::<WriteBackConfig>().unwrap().resolve(unasked).unwrap();
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let sentence = |text: &str| resolve(text).unwrap_err().to_string();
        for text in ["ace:n_w=4294967295", "ace:n_w=99999999999999", "background:n_w=65537", "ace:n_w=0"] {
            assert!(sentence(text).ends_with("is out of range; accepted: 1 to 65536"), "{}", sentence(text));
        }
        assert!(sentence("ace:n_e=7").starts_with("n_e=7 is more than n_w=6"));
        assert!(sentence("ace:under_way=5").starts_with("under_way=5 is less than n_w=6"));
        assert!(sentence("raw:buffers=3,least=4").starts_with("least=4 is more than buffers=3"));
        assert!(sentence("raw:lock=yes").contains("unknown option of raw `lock`"));
        assert!(sentence("raw:n_w=7").contains("unknown option of raw `n_w`"));
        assert!(sentence("auto").contains("needs the drive's curves"));
        assert!(sentence("aec").contains("did you mean `ace`?"));
    }

    /// What a plan writes, evicts and prefetches: `dirty` says of each frame of the order whether it is dirty.
    fn planned(write_back: &WriteBack, dirty: &[bool]) -> (Vec<u32>, Option<u32>, u32) {
        let (frames, order) = frames(dirty);
        let mut plan = Plan { write: vec![FrameId(99)], ..Plan::default() };
        write_back.plan(order, &frames, &mut plan);
        (plan.write.iter().map(|frame| frame.0).collect(), plan.evict.map(|frame| frame.0), plan.prefetch)
    }

    fn frames(dirty: &[bool]) -> (FrameTable, impl Iterator<Item = FrameId>) {
        let mut frames = FrameTable::new(dirty.len() as u32);
        for (frame, dirty) in (0..).map(FrameId).zip(dirty) {
            frames.set_dirty(frame, *dirty);
        }
        (frames, (0..dirty.len() as u32).map(FrameId))
    }

    /// The rule: ACE prefetches beside a batch, into the n_e - 1 frames that follow the victim, and never otherwise.
    #[test]
    fn ace_plans_a_batch_for_a_dirty_victim_and_nothing_for_a_clean_one() {
        let ace = WriteBack { n_e: 3, ..WriteBack::ace(4) };
        assert_eq!(planned(&ace, &[true, false, true, true, true, true]), (vec![0, 2, 3, 4], Some(0), 2));
        assert_eq!(planned(&ace, &[true, false]), (vec![0], Some(0), 2));
        assert_eq!(planned(&ace, &[false, true, true]), (vec![], Some(0), 0));
        assert_eq!(planned(&ace, &[]), (vec![], None, 0));
        assert_eq!(planned(&WriteBack::SINGLE, &[true, true]), (vec![0], Some(0), u32::MAX));
        assert_eq!(planned(&WriteBack::SINGLE, &[false, true]), (vec![], Some(0), u32::MAX));
    }

    /// The rule: the cleaner looks at `ahead` frames and at no more, and writes the first n_w dirty ones of them.
    #[test]
    fn the_cleaner_looks_as_far_ahead_as_it_is_told() {
        let cleaned = |n_w: u32, dirty: &[bool]| {
            let (frames, order) = frames(dirty);
            let mut plan = Plan { write: vec![FrameId(99)], ..Plan::default() };
            let cleaner = WriteBack { ahead: 3, cleaner_n_w: n_w, ..WriteBack::SINGLE };
            cleaner.plan_cleaning(order, &frames, &mut plan);
            plan.write.iter().map(|frame| frame.0).collect::<Vec<u32>>()
        };
        assert_eq!(cleaned(8, &[true; 6]), [0, 1, 2]);
        assert_eq!(cleaned(2, &[true; 6]), [0, 1]);
        assert_eq!(cleaned(8, &[false, true, false, true]), [1]);
        assert_eq!(cleaned(8, &[false, false, false, true]), []);
    }

    /// Writes every dirty frame that it sees, and nothing when asked for the cleaner's batch.
    #[derive(Debug)]
    struct All;

    impl BatchPlanner for All {
        fn plan(
            &self,
            _: FrameId,
            rest: &mut dyn Iterator<Item = FrameId>,
            frames: &FrameTable,
            plan: &mut Plan,
        ) {
            plan.write.extend(rest.filter(|frame| frames.is_dirty(*frame)));
        }
    }

    /// Names a frame twice, one that is clean, one that somebody changes, and a frame to evict.
    #[derive(Debug)]
    struct Careless;

    impl BatchPlanner for Careless {
        fn plan(
            &self,
            victim: FrameId,
            rest: &mut dyn Iterator<Item = FrameId>,
            _: &FrameTable,
            plan: &mut Plan,
        ) {
            let rest: Vec<FrameId> = rest.collect();
            plan.write.extend(rest.iter().chain(&rest).chain([&victim]));
            plan.evict = rest.first().copied();
        }

        fn plan_cleaning(&self, order: &mut dyn Iterator<Item = FrameId>, _: &FrameTable, plan: &mut Plan) {
            plan.write.extend(order.flat_map(|frame| [frame, frame]));
        }
    }

    /// The rule: of what a planner names, dirty frames that nobody changes are written, each once, the one that leaves first. So a
    /// batch that is cut short still has that one.
    #[test]
    fn what_a_careless_planner_names_does_no_harm() {
        let mut frames = FrameTable::new(4);
        for frame in [0, 2, 3] {
            frames.set_dirty(FrameId(frame), true);
        }
        assert!(frames.try_latch(FrameId(3), true));
        let own = WriteBack { planner: Some(Arc::new(Careless)), ahead: 4, ..WriteBack::SINGLE };
        let mut plan = Plan::default();
        let order = || [0, 1, 2, 3].map(FrameId).into_iter();
        own.plan(order(), &frames, &mut plan);
        assert_eq!((plan.evict, plan.write), (Some(FrameId(0)), vec![FrameId(0), FrameId(2)]));
        let mut plan = Plan::default();
        own.plan_cleaning(order(), &frames, &mut plan);
        assert_eq!(plan.write, [FrameId(0), FrameId(2)]);
    }

    #[derive(Debug)]
    struct Own;

    impl CustomWriteBack for Own {
        fn name(&self) -> &str {
            "own"
        }

        fn resolve(&self, _: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
            Ok(WriteBack::SINGLE)
        }
    }

    #[test]
    fn a_policy_without_options_is_written_as_its_name() {
        assert_eq!(Own.text(), "own");
    }

    /// The planner forgets the victim frame; the mechanism does not.
    #[test]
    fn a_planner_of_the_users_own_plans_and_no_dirty_frame_leaves_unwritten() {
        let mut frames = FrameTable::new(3);
        for frame in [0, 2] {
            frames.set_dirty(FrameId(frame), true);
        }
        let own = WriteBack { planner: Some(Arc::new(All)), ahead: 3, ..WriteBack::SINGLE };
        let mut plan = Plan::default();
        own.plan([0, 1, 2].map(FrameId).into_iter(), &frames, &mut plan);
        assert_eq!(
            (plan.evict, plan.write.as_slice()),
            (Some(FrameId(0)), [FrameId(0), FrameId(2)].as_slice())
        );
        // A clean victim frame is not written.
        own.plan([1, 0, 2].map(FrameId).into_iter(), &frames, &mut plan);
        assert_eq!(plan.write, [FrameId(0), FrameId(2)]);
        own.plan_cleaning([0, 1, 2].map(FrameId).into_iter(), &frames, &mut plan);
        assert!(plan.write.is_empty());
    }
}
