//! MiDAS against its own model: what it predicts is what is measured.

use fulgurite_base::Spec;
use fulgurite_base::StreamId;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::placement::midas::{Event, Midas, Why};
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, check};
use fulgurite_workload::GeneratorConfig;

const PAGES: u32 = 120_000;

/// The FTL after filling and 28 capacities of writes of each workload in turn.
fn run(placement: &str, victim: &str, workloads: &[&str]) -> Ftl {
    let placement = PlacementConfig::from_spec(Spec::parse(placement).unwrap()).unwrap();
    let victim = VictimConfig::from_spec(Spec::parse(victim).unwrap()).unwrap();
    let segments = (f64::from(PAGES) * 1.0737 / 128.0).ceil() as u32;
    let collect = Collect { placement, victim, reserve: 4, ..Collect::PLAIN };
    let config = FtlConfig { collect, ..FtlConfig::plain(PAGES, segments, 128) };
    let mut ftl = Ftl::new(config).unwrap();
    let mut sink = CountingSink::default();
    (0..PAGES).for_each(|lpn| ftl.write(lpn, 1, StreamId(0), &mut sink));
    for workload in workloads {
        let requests =
            workload.parse::<GeneratorConfig>().unwrap().start(u64::from(PAGES), 4096, 42).unwrap();
        for request in requests.take(28 * PAGES as usize) {
            ftl.write(request.page as u32, 1, StreamId(0), &mut sink);
        }
    }
    check::check(&ftl).unwrap();
    ftl
}

/// Mean difference of measured to predicted valid shares, and of WAF, at an event under a full configuration.
fn errors(event: &Event) -> (f64, f64) {
    let prediction = &event.configuration.as_ref().unwrap().prediction;
    let pairs: Vec<(f64, f64)> = prediction
        .valid
        .iter()
        .copied()
        .zip(event.measured[1..].iter().map(|share| share.unwrap()))
        .collect();
    let mean = pairs.iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / pairs.len() as f64;
    (mean, (event.waf / prediction.waf - 1.0).abs())
}

#[test]
fn predictions_hold_on_steady_traffic() {
    for (workload, victim) in [
        ("zipf:theta=1,write=100%", "greedy"),
        ("zipf:theta=1,write=100%", "cost-benefit"),
        ("zipf:theta=0.8,write=100%", "greedy"),
    ] {
        let ftl = run("midas", victim, &[workload]);
        let events = ftl.placer().policy::<Midas>().expect("MiDAS").events();
        let last = events.last().unwrap();
        assert!(matches!(last.why, Why::Unchanged(_)), "{workload} {victim}: {last:?}");
        let (shares, waf) = errors(last);
        println!("{workload} {victim}: valid shares {shares:.3}, waf {waf:.3}");
        assert!(shares < 0.05 && waf < 0.15, "{workload} {victim}: {shares} {waf}");
    }
}

#[test]
fn nothing_is_gained_or_lost_on_uniform_traffic() {
    let waf = |placement| {
        let ftl = run(placement, "greedy", &["mixed-uniform:write=100%"]);
        1.0 + ftl.counters().copied_pages as f64 / ftl.counters().host_pages as f64
    };
    let (none, midas) = (waf("none"), waf("midas"));
    assert!((midas / none - 1.0).abs() < 0.06, "{midas} {none}");
}

#[test]
fn a_change_of_the_workload_changes_the_groups() {
    let ftl = run("midas", "greedy", &["mixed-uniform:write=100%", "zipf:theta=1,write=100%"]);
    let changed = ftl
        .placer()
        .policy::<Midas>()
        .expect("MiDAS")
        .events()
        .iter()
        .filter(|event| event.at > 29 * u64::from(PAGES));
    let whys: Vec<Why> = changed.map(|event| event.why).collect();
    assert!(
        whys.iter().any(|why| matches!(why, Why::Lifetimes(difference) if *difference > 0.05)),
        "{whys:?}"
    );
}

#[test]
fn every_part_can_be_switched_off() {
    let events = |placement| {
        run(placement, "greedy", &["zipf:theta=1,write=100%"])
            .placer()
            .policy::<Midas>()
            .expect("MiDAS")
            .events()
            .to_vec()
    };
    assert!(events("midas:groups=fixed").iter().all(|event| event.configuration.is_none()));
    let without_hot = events("midas:hot=no");
    assert!(without_hot.iter().flat_map(|event| &event.configuration).all(|chosen| chosen.hot == 0));
    let irregular = |event: &&Event| matches!(event.why, Why::Irregular(..));
    assert_eq!(events("midas:irregular=no,error=0%").iter().filter(irregular).count(), 0);
    assert!(events("midas:error=0%").iter().filter(irregular).count() > 0, "nothing is predicted exactly");
}

/// Sizes that do worse than what was had are given up, and those that are kept do better: over a run that is long
/// enough groups with sizes are never much worse than the chain without any.
#[test]
fn what_does_worse_is_given_up() {
    let waf = |placement| {
        let ftl = run(placement, "cost-benefit", &["tpcc:blocks=yes"]);
        let events = ftl.placer().policy::<Midas>().expect("MiDAS").events().to_vec();
        (1.0 + ftl.counters().copied_pages as f64 / ftl.counters().host_pages as f64, events)
    };
    let (without, _) = waf("midas:groups=fixed");
    let (judged, events) = waf("midas");
    let (kept, unjudged) = waf("midas:judge=no,irregular=no");
    let is_worse = |event: &&Event| matches!(event.why, Why::Worse(..) | Why::Learned(..));
    assert!(events.iter().any(|event| is_worse(&event)), "{events:?}");
    assert_eq!(unjudged.iter().filter(is_worse).count(), 0);
    assert!(judged < 1.05 * without && kept > 1.1 * judged, "{judged} {without} {kept}");
}
