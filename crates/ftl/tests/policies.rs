//! Tests of every placement with every victim policy, and of victim policies against a scan of all segments.

use fulgurite_base::{Ppn, Prng, StreamId};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::victim::cost_benefit::{Cost, CostBenefitConfig};
use fulgurite_ftl::victim::windowed_greedy::WindowedGreedyConfig;
use fulgurite_ftl::{
    Collect, CountingSink, Ftl, FtlConfig, SegmentId, SegmentState, SegmentTable, UnitId, check,
};

const PAGES: u32 = 3_000;
const SEGMENTS: u32 = 110;
const SEGMENT_PAGES: u32 = 40;
const WRITES: usize = 60_000;

/// Returns writes after a fill, nine of ten to a tenth of the pages, and a few trims. Each entry is a page
/// and whether it is trimmed.
fn requests() -> Vec<(u32, bool)> {
    let mut prng = Prng::new(11, "placement");
    let mut draw = || {
        let page =
            if prng.below(10) < 9 { prng.below(u64::from(PAGES) / 10) } else { prng.below(u64::from(PAGES)) };
        (page as u32, prng.below(50) == 0)
    };
    (0..PAGES).map(|page| (page, false)).chain((0..WRITES).map(|_| draw())).collect()
}

/// Returns the time at which the page of each write is written again or trimmed, by a forward search.
fn future(requests: &[(u32, bool)]) -> Vec<u32> {
    let mut time = 0;
    let times: Vec<u32> = requests
        .iter()
        .map(|(_, trim)| {
            let at = time;
            time += u32::from(!trim);
            at
        })
        .collect();
    let ends = |from: usize| {
        let page = requests[from].0;
        (from + 1..requests.len()).find(|at| requests[*at].0 == page).map_or(u32::MAX, |at| times[at])
    };
    (0..requests.len()).filter(|at| !requests[*at].1).map(ends).collect()
}

fn config(placement: &str, victim: &str) -> FtlConfig {
    let placement = placement.parse::<PlacementConfig>().unwrap();
    let victim = victim.parse::<VictimConfig>().unwrap();
    let collect = Collect { placement, victim, ..Collect::PLAIN };
    FtlConfig { collect, ..FtlConfig::plain(PAGES, SEGMENTS, SEGMENT_PAGES) }
}

fn run(config: FtlConfig) -> (Ftl, CountingSink) {
    let requests = requests();
    let mut ftl = Ftl::new(config).unwrap();
    if ftl.config().collect.placement.needs_future() {
        ftl.foresee(future(&requests));
    }
    let mut sink = CountingSink::default();
    for (page, trim) in requests {
        if trim {
            ftl.trim(page);
        } else {
            ftl.write(page, 1, StreamId((page % 7) as u16), &mut sink);
        }
    }
    (ftl, sink)
}

fn segments(ftl: &Ftl) -> impl Iterator<Item = SegmentId> {
    (0..ftl.segments().len()).map(SegmentId)
}

fn waf(ftl: &Ftl) -> f64 {
    1.0 + ftl.counters().copied_pages as f64 / ftl.counters().host_pages as f64
}

#[test]
fn every_placement_goes_with_every_victim() {
    for placement in PlacementConfig::registry().names() {
        for victim in VictimConfig::registry().names() {
            let (ftl, sink) = run(config(placement, victim));
            let name = format!("{placement} {victim}");
            assert_eq!(check::check(&ftl), Ok(()), "{name}");
            let counters = ftl.counters();
            assert_eq!(sink.programs, counters.host_pages + counters.copied_pages, "{name}");
            assert!(counters.copied_pages > 0, "{name} copies something");
            for stream in 0..ftl.config().collect.placement.streams() {
                let in_use = segments(&ftl).filter(|id| ftl.segments().state(*id) != SegmentState::Free);
                let held = in_use.filter(|id| ftl.segments().stream(*id).0 == stream).count() as u32;
                assert_eq!(ftl.segments().in_stream(StreamId(stream)), held, "{name}, group {stream}");
            }
        }
    }
}

/// The rule: separating hot from cold pages copies fewer pages on this traffic, and knowing the future copies
/// the fewest.
#[test]
fn the_oracle_is_not_beaten() {
    let of = |placement: &str| waf(&run(config(placement, "cost-benefit")).0);
    let (none, oracle) = (of("none"), of("oracle"));
    for placement in PlacementConfig::registry()
        .names()
        .filter(|name| !["oracle", "nodap", "none", "hints"].contains(name))
    {
        let waf = of(placement);
        assert!(waf < none && waf > oracle, "{placement}: {waf}, none {none}, oracle {oracle}");
    }
    assert!(oracle < 1.3, "{oracle}");
}

/// Returns the least and the greatest score that the picked segment may have by the policy's definition,
/// given all sealed segments.
fn by_definition(victim: &VictimConfig, table: &SegmentTable, sealed: &[SegmentId]) -> (f64, f64) {
    let valid = |id: &SegmentId| f64::from(table.valid(*id));
    let least = |segments: &[SegmentId]| segments.iter().map(valid).fold(f64::INFINITY, f64::min);
    let mut times: Vec<u64> = sealed.iter().map(|id| table.sealed_at(*id)).collect();
    times.sort_unstable();
    match victim {
        VictimConfig::Fifo(_) => (times[0] as f64, times[0] as f64),
        VictimConfig::Greedy(_) => (least(sealed), least(sealed)),
        VictimConfig::WindowedGreedy(WindowedGreedyConfig { window }) => {
            let window = (f64::from(table.len()) * window.as_f64()).round() as usize;
            // If segments were sealed at the same time, any of them may be in the window.
            let youngest = times[window.min(times.len()) - 1];
            let up_to = |time: u64| {
                sealed.iter().copied().filter(|id| table.sealed_at(*id) <= time).collect::<Vec<_>>()
            };
            (least(&up_to(youngest)), least(&up_to(youngest.saturating_sub(1))))
        }
        VictimConfig::CostBenefit(config) => {
            let best = sealed.iter().map(|id| score(config, table, *id)).fold(0.0, f64::max);
            // Two ways to compute a power differ in the last digits.
            (best * (1.0 - 1e-12), best)
        }
        // Measured rates change the score for a rate of 1 / age by at most a factor of 160.
        VictimConfig::Hazard(_) => {
            let best = sealed.iter().map(|id| hazard(table, *id)).fold(0.0, f64::max);
            (best / 160.0, best)
        }
        // Any segment is allowed.
        _ => (0.0, f64::INFINITY),
    }
}

fn score(config: &CostBenefitConfig, table: &SegmentTable, segment: SegmentId) -> f64 {
    let (pages, valid) = (f64::from(table.segment_pages()), f64::from(table.valid(segment)));
    let cost = if config.cost == Cost::Copies { valid } else { pages + valid };
    let age = (table.now() - table.sealed_at(segment) + 1) as f64;
    age.powf(config.age.as_f64()) * ((pages - valid) / cost)
}

/// Returns the score of `hazard` for a death rate of 1 / age.
fn hazard(table: &SegmentTable, segment: SegmentId) -> f64 {
    let valid = f64::from(table.valid(segment)) / f64::from(table.segment_pages());
    let age = (table.now() - table.sealed_at(segment) + 1) as f64;
    age * if valid > 0.0 { 1.0 / valid - 1.0 + valid.ln() } else { f64::INFINITY }
}

#[test]
fn victims_agree_with_the_definition() {
    let options = ["cost-benefit:age=50%", "cost-benefit:age=30%", "cost-benefit:cost=1+u"];
    for name in VictimConfig::registry().names().chain(options) {
        let config = config("sep-gc", name);
        let victim = config.collect.victim.clone();
        let mut ftl = Ftl::new(config).unwrap();
        let mut sink = CountingSink::default();
        let mut picks = 0;
        for (page, trim) in requests() {
            if trim {
                ftl.trim(page);
                continue;
            }
            let stream = ftl.stream(page, StreamId(0));
            while !ftl.admit(UnitId(0), stream) {
                let sealed: Vec<SegmentId> =
                    segments(&ftl).filter(|id| ftl.segments().state(*id) == SegmentState::Sealed).collect();
                let (least, most) = by_definition(&victim, ftl.segments(), &sealed);
                let picked = ftl.pick(UnitId(0)).expect("something is sealed");
                let table = ftl.segments();
                assert!(sealed.contains(&picked));
                let got = match victim {
                    VictimConfig::Fifo(_) => table.sealed_at(picked) as f64,
                    VictimConfig::CostBenefit(config) => score(&config, table, picked),
                    VictimConfig::Hazard(_) => hazard(table, picked),
                    _ => f64::from(table.valid(picked)),
                };
                assert!((least..=most).contains(&got), "{victim}: {got}, not {least} to {most}");
                picks += 1;
                let pages = picked.0 * SEGMENT_PAGES..(picked.0 + 1) * SEGMENT_PAGES;
                for ppn in pages.map(Ppn) {
                    if ftl.mapping().is_valid(ppn) {
                        ftl.copy(ppn, &mut sink);
                    }
                }
                ftl.release(UnitId(0), &mut sink);
            }
            ftl.append(page, StreamId(0), UnitId(0), stream, &mut sink);
        }
        assert!(picks > 1_000, "{victim}: {picks}");
    }
}
