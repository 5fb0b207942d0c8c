//! Tests the placement policy MiDAS against its own model, by measuring what the model predicts.

use fulgurite_base::Spec;
use fulgurite_base::StreamId;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::placement::midas::{Event, Midas, Why};
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, Ftl, FtlConfig, check};
use fulgurite_workload::{Generator, GeneratorConfig, Op};

const PAGES: u32 = 120_000;

/// Creates an FTL (flash translation layer) with `pages` logical pages in segments of `segment_pages`, and
/// fills it.
fn filled(placement: &str, victim: &str, pages: u32, segment_pages: u32) -> Ftl {
    let placement = PlacementConfig::from_spec(Spec::parse(placement).unwrap()).unwrap();
    let victim = VictimConfig::from_spec(Spec::parse(victim).unwrap()).unwrap();
    let segments = (f64::from(pages) * 1.0737 / f64::from(segment_pages)).ceil() as u32;
    let collect = Collect { placement, victim, reserve: 4, ..Collect::PLAIN };
    let config = FtlConfig { collect, ..FtlConfig::plain(pages, segments, segment_pages) };
    let mut ftl = Ftl::new(config).unwrap();
    (0..pages).for_each(|lpn| ftl.write(lpn, 1, StreamId(0), &mut CountingSink::default()));
    ftl
}

/// Starts the generator of a workload.
fn requests(workload: &str, pages: u32) -> Generator {
    workload.parse::<GeneratorConfig>().unwrap().start(u64::from(pages), 4096, 42).unwrap()
}

/// Returns the FTL after the fill, and after 28 times as many writes as there are pages from each workload in
/// turn.
fn run(placement: &str, victim: &str, workloads: &[&str]) -> Ftl {
    let mut ftl = filled(placement, victim, PAGES, 128);
    for workload in workloads {
        for request in requests(workload, PAGES).take(28 * PAGES as usize) {
            ftl.write(request.page as u32, 1, StreamId(0), &mut CountingSink::default());
        }
    }
    check::check(&ftl).unwrap();
    ftl
}

/// Returns the write amplification after the fill and 28 times as many writes as there are pages.
fn waf(placement: &str, victim: &str, workload: &str) -> f64 {
    let ftl = run(placement, victim, &[workload]);
    1.0 + ftl.counters().copied_pages as f64 / ftl.counters().host_pages as f64
}

/// Returns two errors of the predictions at an event under a full configuration: the mean difference of the
/// valid shares, and the relative difference of the write amplification.
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
    let waf = |placement| waf(placement, "greedy", "mixed-uniform:write=100%");
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

/// On traffic that the model cannot describe, MiDAS writes hardly more with group sizes that it chose than
/// without sizes, because it drops sizes that gain nothing. If it kept them, it would write more.
#[test]
fn sizes_that_gain_nothing_are_not_kept() {
    let waf = |placement| waf(placement, "cost-benefit", "tpcc:blocks=yes");
    let (without, judged) = (waf("midas:groups=fixed"), waf("midas"));
    assert!(judged < 1.02 * without, "{judged} {without}");
    let kept = waf("midas:judge=no");
    assert!(kept > 1.1 * without, "{kept} {without}");
}

/// Measures the error of the sampled lifetimes for each number of watched pages. The error is the largest
/// difference between the survival functions of the sample and of all pages. The table has its mean over four
/// drives with different popular pages.
#[test]
#[ignore = "prints a table, and takes minutes"]
fn error_of_sampling() {
    let lifetimes = |workload: &str, pages: u32, watch: &str| {
        let mut ftl = filled(&format!("midas:groups=fixed,watch={watch}"), "greedy", pages, 256);
        let requests = requests(workload, pages);
        let writes = requests.filter(|request| request.op == Op::Write).take(9 * pages as usize / 2);
        writes
            .for_each(|request| ftl.write(request.page as u32, 1, StreamId(0), &mut CountingSink::default()));
        ftl.placer().policy::<Midas>().and_then(Midas::lifetimes).expect("an epoch is over").clone()
    };
    for workload in ["fio-h", "tpcc:blocks=yes"] {
        for watch in ["1K", "4K", "16K", "64K"] {
            for short in ["yes", "no"] {
                let errors = (1..=4).map(|drive| {
                    let pages = 488_281 + 997 * drive;
                    let all = lifetimes(workload, pages, "100%");
                    let some = lifetimes(workload, pages, &format!("{watch},short={short}"));
                    let times = (0..4_000).map(|step| all.range() * (-f64::from(step) / 200.0).exp2());
                    let error = |time| (all.survival(time) - some.survival(time)).abs();
                    times.map(error).fold(0.0, f64::max)
                });
                let mean = errors.sum::<f64>() / 4.0;
                println!("{workload} watch={watch},short={short}: {:.2} %", 100.0 * mean);
                assert!(short == "no" || mean < 0.1, "{mean}");
            }
        }
    }
}
