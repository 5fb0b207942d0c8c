//! Policies from outside this crate: each runs in the place of one of ours and decides what it should.

use fulgurite_base::{NoOptions, Prng, Spec, StreamId};
use fulgurite_ftl::placement::{
    ConfiguredPlacement, DriveShape, PlacementConfig, PlacementPolicy, WriteContext,
};
use fulgurite_ftl::schedule::{FtlState, Schedule, ScheduleRule, ScheduleState};
use fulgurite_ftl::victim::{ConfiguredVictim, VictimConfig, VictimPolicy};
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, SegmentId, SegmentTable, check};

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

/// Odd pages and even ones apart.
#[derive(Clone)]
struct Parity;

impl PlacementPolicy for Parity {
    fn stream(&self, context: &WriteContext, _: &SegmentTable) -> StreamId {
        StreamId((context.lpn % 2) as u16)
    }
}

impl ConfiguredPlacement for Parity {
    type Config = NoOptions;

    fn streams(_: &NoOptions) -> u16 {
        2
    }

    fn start(_: &NoOptions, _: &DriveShape) -> Parity {
        Parity
    }
}

#[test]
fn a_placement_from_outside_keeps_its_streams_apart() {
    let placement = PlacementConfig::custom::<Parity>("parity", NoOptions);
    assert_eq!((placement.name(), placement.to_string().as_str()), ("parity", "parity"));
    let ftl = run(Collect { placement, ..Collect::PLAIN });
    for lpn in 0..PAGES {
        let segment = ftl.segment(ftl.lookup(lpn).unwrap());
        assert_eq!(ftl.segments().stream(segment).0, (lpn % 2) as u16, "page {lpn}");
    }
    assert!(ftl.placer().policy::<Parity>().is_some() && ftl.clone().placer().policy::<Parity>().is_some());
}

/// The segment that was sealed first, as `fifo`.
#[derive(Clone, Default)]
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

impl ConfiguredVictim for Oldest {
    type Config = NoOptions;

    fn start(_: &NoOptions, _: std::ops::Range<u32>, _: u32) -> Oldest {
        Oldest::default()
    }
}

#[test]
fn a_victim_policy_from_outside_picks() {
    let own = run(Collect { victim: VictimConfig::custom::<Oldest>("oldest", NoOptions), ..Collect::PLAIN });
    let fifo = run(Collect { victim: VictimConfig::FIFO, ..Collect::PLAIN });
    let greedy = run(Collect::PLAIN);
    assert_eq!(own.counters(), fifo.counters());
    assert_ne!(own.counters(), greedy.counters());
}

/// Collects as soon as five segments are all that is free.
static EARLY: ScheduleRule = ScheduleRule {
    name: "early",
    about: "collects below six free segments",
    decide: |state: &FtlState| {
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
fn a_schedule_from_outside_decides_when() {
    let schedule = Schedule::custom(&EARLY);
    let early = run(Collect { schedule, ..Collect::PLAIN });
    assert_eq!(schedule.to_string(), "early");
    assert!(early.free_segments() >= 5 && run(Collect::PLAIN).free_segments() < 5);
    // A rule is told by its name.
    static LATE: ScheduleRule = ScheduleRule { name: "late", ..EARLY };
    static SAME: ScheduleRule = ScheduleRule { about: "another text", ..EARLY };
    assert!(schedule == Schedule::custom(&SAME) && schedule != Schedule::custom(&LATE));
}

/// A policy from outside is itself and its clones, and nothing else that happens to have its name.
#[test]
fn policies_from_outside_are_equal_to_their_clones() {
    let [one, other] = [(); 2].map(|()| PlacementConfig::custom::<Parity>("parity", NoOptions));
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_ne!(one, PlacementConfig::ONE_STREAM);
}

/// What is written with its defaults is the same policy, with the same text, as the name alone.
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
    let text = VictimConfig::from_spec(Spec::parse("cost-benefit:cost=1+u,age=50%").unwrap()).unwrap();
    assert_eq!(text.to_string(), "cost-benefit:age=50%,cost=1+u");
}

/// As many draws as a pick could not end with are refused, and the bound is said.
#[test]
fn a_pick_that_would_not_end_is_refused() {
    let refused = VictimConfig::from_spec(Spec::parse("d-choices:d=4G").unwrap()).unwrap_err().to_string();
    assert!(refused.contains("accepted: 1 to 65536"), "{refused}");
    assert!(VictimConfig::from_spec(Spec::parse("d-choices:d=65536").unwrap()).is_ok());
}
