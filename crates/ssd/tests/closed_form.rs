//! Simulated write amplification against the closed forms, in counting mode: uniform random
//! single-page writes, FIFO and greedy victims, within 1 %.

use fulgurite_base::Prng;
use fulgurite_device::StreamId;
use fulgurite_ssd::placement::Placement;
use fulgurite_ssd::schedule::Schedule;
use fulgurite_ssd::victim::VictimPolicy;
use fulgurite_ssd::{CountingSink, Ftl, FtlConfig, analytic, check};

/// Steady WAF of `victim` at spare `rho_percent`, and the configuration that gave it.
fn simulate(
    victim: VictimPolicy,
    schedule: Schedule,
    rho_percent: u32,
    segment_pages: u32,
) -> (f64, FtlConfig) {
    let (segments, reserve) = (262_144 / segment_pages, 2);
    let effective = (segments - reserve) * segment_pages;
    let config = FtlConfig {
        logical_pages: (f64::from(effective) / (1.0 + f64::from(rho_percent) / 100.0)).round() as u32,
        segments,
        segment_pages,
        row_pages: 1,
        reserve,
        victim,
        placement: Placement::None,
        schedule,
    };
    let mut ftl = Ftl::new(config).unwrap();
    let mut sink = CountingSink::default();
    let mut prng = Prng::new(1, "closed-form");
    let logical = config.logical_pages;
    for lpn in 0..logical {
        ftl.write(lpn, 1, StreamId(0), &mut sink);
    }
    let mut overwrite = |ftl: &mut Ftl, sink: &mut CountingSink, writes: u32| {
        for _ in 0..writes {
            ftl.write(prng.below(u64::from(logical)) as u32, 1, StreamId(0), sink);
        }
    };
    overwrite(&mut ftl, &mut sink, 6 * logical);
    let before = sink;
    overwrite(&mut ftl, &mut sink, 6 * logical);
    check::check(&ftl).unwrap();
    assert_eq!(sink.programs, ftl.host_pages() + ftl.copied_pages(), "a program is a host page or a copy");
    assert_eq!(sink.reads, ftl.copied_pages());
    ((sink.programs - before.programs) as f64 / f64::from(6 * logical), config)
}

fn within(simulated: f64, expected: f64, tolerance: f64, what: &str) {
    let error = simulated / expected - 1.0;
    println!("{what}: simulated {simulated:.4}, closed form {expected:.4}, {:+.2} %", error * 100.0);
    assert!(error.abs() < tolerance, "{what}: simulated {simulated:.4}, closed form {expected:.4}");
}

#[test]
fn fifo_is_within_one_percent() {
    for rho in [7, 15, 28] {
        let (waf, config) = simulate(VictimPolicy::Fifo, Schedule::NonPreemptive, rho, 128);
        within(waf, analytic::waf_fifo(config.spare_effective()), 0.01, &format!("fifo, rho {rho} %"));
    }
}

#[test]
fn greedy_is_within_one_percent() {
    for (rho, pages) in [(7, 64), (15, 64), (28, 64), (7, 256), (15, 256), (28, 256)] {
        let (waf, config) = simulate(VictimPolicy::Greedy, Schedule::NonPreemptive, rho, pages);
        let expected = analytic::waf_greedy(config.spare_effective(), pages).unwrap();
        within(waf, expected, 0.01, &format!("greedy, {pages} pages, rho {rho} %"));
    }
}

/// Paced collection moves the same pages, a little later or earlier: its reserve is taken in part
/// while a victim is under way, which shifts the effective spare by at most one segment.
#[test]
fn pacing_does_not_change_write_amplification() {
    let (waf, config) = simulate(VictimPolicy::Greedy, Schedule::Paced, 15, 128);
    let expected = analytic::waf_greedy(config.spare_effective(), 128).unwrap();
    within(waf, expected, 0.01, "greedy paced, rho 15 %");
}
