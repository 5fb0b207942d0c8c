//! Tests of a user's own policies: each takes the place of a built-in policy and makes its decisions.

use fulgurite_base::{Prng, Spec, StreamId};
use fulgurite_ftl::placement::{
    AnyPlacement, CustomPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
};
use fulgurite_ftl::schedule::{FtlState, Schedule, ScheduleRule, ScheduleState};
use fulgurite_ftl::victim::{AnyVictim, CustomVictim, VictimConfig, VictimPolicy};
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, SegmentId, SegmentTable, check};
use std::sync::Arc;

const PAGES: u32 = 3_000;

fn run(collect: Collect) -> Ftl {
    let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(PAGES, 110, 40) }).unwrap();
    let (mut prng, mut sink) = (Prng::new(5, "own"), CountingSink::default());
    (0..PAGES).for_each(|page| ftl.write(page, 1, StreamId(0), &mut sink));
    for _ in 0..20 * PAGES {
        ftl.write(prng.below(u64::from(PAGES)) as u32, 1, StreamId(0), &mut sink);
    }
    assert_eq!(check::check(&ftl), Ok(()));
    ftl
}

/// A placement policy with odd and even pages in separate streams.
#[derive(Clone, Debug)]
struct Parity;

impl PlacementPolicy for Parity {
    fn stream(&self, context: &WriteContext, _: &SegmentTable) -> StreamId {
        StreamId((context.lpn % 2) as u16)
    }
}

impl CustomPlacement for Parity {
    fn name(&self) -> &str {
        "parity"
    }

    fn streams(&self) -> u16 {
        2
    }

    fn start(&self, _: &DriveShape) -> Box<dyn AnyPlacement> {
        Box::new(Parity)
    }
}

#[test]
fn a_users_placement_separates_its_streams() {
    let placement = PlacementConfig::Custom(Arc::new(Parity));
    assert_eq!((placement.name(), placement.to_string().as_str()), ("parity", "parity"));
    let ftl = run(Collect { placement, ..Collect::PLAIN });
    for lpn in 0..PAGES {
        let segment = ftl.segment(ftl.lookup(lpn).unwrap());
        assert_eq!(ftl.segments().stream(segment).0, (lpn % 2) as u16, "page {lpn}");
    }
    assert!(ftl.placer().policy::<Parity>().is_some() && ftl.clone().placer().policy::<Parity>().is_some());
}

/// A victim policy that picks the segment that was sealed first, as `fifo` does.
#[derive(Clone, Debug, Default)]
struct Oldest(Vec<SegmentId>);

impl VictimPolicy for Oldest {
    fn sealed(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.0.push(segment);
    }

    fn invalidated(&mut self, _: SegmentId, _: &SegmentTable) {}

    fn pick(&mut self, _: &SegmentTable) -> Option<SegmentId> {
        (!self.0.is_empty()).then(|| self.0.remove(0))
    }

    fn remove(&mut self, segment: SegmentId, _: &SegmentTable) {
        self.0.retain(|sealed| *sealed != segment);
    }
}

impl CustomVictim for Oldest {
    fn name(&self) -> &str {
        "oldest"
    }

    fn start(&self, _: std::ops::Range<u32>, _: u32) -> Box<dyn AnyVictim> {
        Box::new(Oldest::default())
    }
}

#[test]
fn a_users_victim_policy_picks() {
    let own = run(Collect { victim: VictimConfig::Custom(Arc::new(Oldest::default())), ..Collect::PLAIN });
    let fifo = run(Collect { victim: VictimConfig::FIFO, ..Collect::PLAIN });
    let greedy = run(Collect::PLAIN);
    assert_eq!(own.counters(), fifo.counters());
    assert_ne!(own.counters(), greedy.counters());
}

/// A schedule rule that collects when five segments or fewer are free.
static EARLY: ScheduleRule = ScheduleRule {
    name: "early",
    about: "collects below six free segments",
    decide: |state: &FtlState<'_>| {
        if state.collection.is_some() || state.free < 6 {
            ScheduleState::Exclusive
        } else {
            ScheduleState::Idle
        }
    },
    keeps_step: false,
    has_hard_threshold: false,
    steps_aside: false,
    suspends: false,
};

#[test]
fn a_users_schedule_decides_when_to_collect() {
    let schedule = Schedule::custom(&EARLY);
    let early = run(Collect { schedule, ..Collect::PLAIN });
    assert_eq!(schedule.to_string(), "early");
    assert!(early.free_segments() >= 5 && run(Collect::PLAIN).free_segments() < 5);
    // Rules are equal if their names are equal.
    static LATE: ScheduleRule = ScheduleRule { name: "late", ..EARLY };
    static SAME: ScheduleRule = ScheduleRule { about: "another text", ..EARLY };
    assert!(schedule == Schedule::custom(&SAME) && schedule != Schedule::custom(&LATE));
}

/// The rule: a user's own policy is equal to its clones, and not to another policy of the same name.
#[test]
fn a_users_policy_is_equal_to_its_clones() {
    let [one, other] = [(); 2].map(|()| PlacementConfig::Custom(Arc::new(Parity)));
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_ne!(one, PlacementConfig::ONE_STREAM);
}

/// The rule: a policy with its defaults written out is equal to the policy by its name alone, and has the
/// same text.
#[test]
fn defaults_written_out_change_nothing() {
    fn check<C: PartialEq + std::fmt::Debug + ToString>(
        name: &str,
        options: &[fulgurite_base::OptionHelp],
        make: impl Fn(Spec) -> C,
    ) {
        let usual = make(Spec::parse(name).unwrap());
        assert_eq!(usual.to_string(), name);
        for option in options {
            let text = format!("{name}:{}={}", option.key, option.default);
            let written_out = make(Spec::parse(&text).unwrap());
            assert_eq!((written_out.to_string().as_str(), &written_out), (name, &usual), "{text}");
        }
    }
    for entry in PlacementConfig::registry().entries {
        check(entry.name, &(entry.options)(), |spec| PlacementConfig::from_spec(spec).unwrap());
    }
    for entry in VictimConfig::registry().entries {
        check(entry.name, &(entry.options)(), |spec| VictimConfig::from_spec(spec).unwrap());
    }
    let text = "cost-benefit:cost=1+u,age=50%".parse::<VictimConfig>().unwrap();
    assert_eq!(text.to_string(), "cost-benefit:age=50%,cost=1+u");
}

/// The rule: more draws than a pick can make are refused, and the error names the bound.
#[test]
fn too_many_draws_are_refused() {
    let refused = "d-choices:d=4G".parse::<VictimConfig>().unwrap_err().to_string();
    assert!(refused.contains("accepted: 1 to 65536"), "{refused}");
    assert!(VictimConfig::from_spec(Spec::parse("d-choices:d=65536").unwrap()).is_ok());
}
