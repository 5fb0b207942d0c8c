//! Tests which plots are chosen for which rows.

use super::*;

fn row(values: &[(Column, Value)]) -> Row {
    let mut row = Row::default();
    values.iter().for_each(|(column, value)| row.set(*column, value.clone()));
    row
}

/// Creates a row of a pool with a policy, a number of users and figures that follow from both.
fn run(policy: &str, users: u64, throughput: f64) -> Row {
    row(&[
        (Column::Workload, "zipf".into()),
        (Column::WriteBack, policy.into()),
        (Column::Users, users.into()),
        (Column::ThroughputOpsS, throughput.into()),
        (Column::HitRatio, 0.5.into()),
        (Column::LatencyP50Ns, 80_000u64.into()),
        (Column::LatencyP99Ns, 90_000u64.into()),
        (Column::LatencyMaxNs, 3_000_000u64.into()),
    ])
}

fn drawn(rows: Vec<Row>, command: Command) -> Vec<Plot> {
    plots(&Table { rows }, command)
}

fn titles(plots: &[Plot]) -> Vec<&str> {
    plots.iter().map(|plot| plot.title.as_str()).collect()
}

fn names(plot: &Plot) -> [Vec<&str>; 2] {
    let panel = &plot.panels[0];
    [
        panel.x.iter().map(|place| place.name.as_str()).collect(),
        panel.series.iter().map(|series| series.name.as_str()).collect(),
    ]
}

/// The rule: a single run has the percentiles of its latency as bars, and no bars that would stand alone.
#[test]
fn a_single_run_shows_its_percentiles() {
    let plots = drawn(vec![run("single", 1, 15e3)], Command::Pool);
    assert_eq!(titles(&plots), ["Latency"]);
    assert_eq!(names(&plots[0])[0], ["p50", "p99", "longest"]);
    assert_eq!(plots[0].panels[0].series[0].values, [Some(80e3), Some(90e3), Some(3e6)]);
    assert!(plots[0].log_y && plots[0].is_ordered);
}

/// The rule: several runs have bars of each figure in which they differ. Equal figures are not drawn.
#[test]
fn runs_are_compared_in_the_figures_that_differ() {
    let plots = drawn(vec![run("single", 1, 15e3), run("ace", 1, 19e3)], Command::Pool);
    assert_eq!(titles(&plots), ["Throughput", "Latency"]);
    assert_eq!(names(&plots[0]), [vec!["single", "ace"], vec!["throughput"]]);
    assert_eq!(names(&plots[1]), [vec!["single", "ace"], vec!["p50", "p99", "longest"]]);
    // If another axis differs too, the policies have the colours.
    let rows = [1, 8].iter().flat_map(|users| [run("single", *users, 15e3), run("ace", *users, 19e3)]);
    let plots = drawn(rows.collect(), Command::Pool);
    assert_eq!(names(&plots[0]), [vec!["users 1", "users 8"], vec!["single", "ace"]]);
}

/// The rule: runs that differ in a number with more than two values are lines over that number. More lines
/// than a reader can follow are not drawn.
#[test]
fn a_number_with_several_values_is_an_axis() {
    let runs = |policies: usize| {
        let users = [1, 8, 64].into_iter();
        let of = move |users: u64| {
            (0..policies)
                .map(move |at| run(&format!("policy-{at}"), users, (users * 1000 + at as u64) as f64))
        };
        drawn(users.flat_map(of).collect(), Command::Pool)
    };
    let plots = runs(2);
    let plot = &plots[0];
    assert_eq!((plot.kind, plot.title.as_str(), plot.log_x), (PlotKind::Line, "Throughput by users", true));
    assert_eq!(names(plot), [vec!["1", "8", "64"], vec!["policy-0", "policy-1"]]);
    assert_eq!(plot.panels[0].series[1].values, [Some(1001.0), Some(8001.0), Some(64_001.0)]);
    let heat = &runs(LINES_AT_MOST + 1)[0];
    assert_eq!((heat.kind, &names(heat)[0]), (PlotKind::HeatMap, &vec!["1", "8", "64"]));
    assert_eq!(heat.panels[0].series.len(), LINES_AT_MOST + 1);
    assert!(runs(HEAT_LINES_AT_MOST + 1).iter().all(|plot| plot.kind == PlotKind::Bar));
}

/// The rule: a curve that was estimated has its interval as a band, within 0 and 1, and an exact one has none. A
/// heat map of many curves has some sizes, the last one among them.
#[test]
fn curves_have_bands_and_many_are_a_heat_map() {
    let drawn_of = |policies: usize, error: Option<f64>| {
        let row = |policy: usize, frames: u64| {
            let mut row = Row::default();
            row.set(Column::Workload, "zipf");
            row.set(Column::Replacement, format!("policy-{policy}"));
            row.set(Column::Frames, frames);
            row.set(Column::MissRatio, 1.0 / frames as f64);
            row.set_some(Column::MissRatioError, error);
            row
        };
        let rows = (0..policies).flat_map(|policy| (1..=64).map(move |frames| row(policy, frames)));
        drawn(rows.collect(), Command::Pool)
    };
    let [estimated, exact] = [Some(0.1), None].map(|error| drawn_of(2, error));
    let band = estimated[0].panels[0].series[1].band.as_ref().unwrap();
    assert_eq!((band[0], band[1]), (Some((0.9, 1.0)), Some((0.4, 0.6))));
    assert!(estimated[0].caption.contains("band") && !exact[0].caption.contains("band"));
    assert_eq!(exact[0].panels[0].series[0].band, None);
    let heat = &drawn_of(LINES_AT_MOST + 1, Some(0.1))[0];
    assert_eq!(names(heat)[0], ["2", "4", "8", "16", "32", "64"]);
    let values = &heat.panels[0].series[0].values;
    assert_eq!((heat.kind, values.len(), values[5]), (PlotKind::HeatMap, 6, Some(1.0 / 64.0)));
}

/// The rule: intervals are drawn over time. The percentiles of one run share a plot. Figures that are
/// always zero, and percentiles that are always equal, are not drawn.
#[test]
fn intervals_are_drawn_over_time() {
    let interval = |schedule: &str, at: u64| {
        row(&[
            (Column::Schedule, schedule.into()),
            (Column::TimeNs, (at * 1_000_000).into()),
            (Column::ThroughputOpsS, (at * 10).into()),
            (Column::LatencyP99Ns, (100 + at).into()),
            (Column::LatencyP999Ns, (200 + at).into()),
            (Column::LatencyMaxNs, (200 + at).into()),
            (Column::WaitGcMeanNs, 0u64.into()),
        ])
    };
    let of = |schedules: &[&str]| {
        let rows = schedules.iter().flat_map(|schedule| (0..4).map(move |at| interval(schedule, at)));
        drawn(rows.collect(), Command::Replay)
    };
    let one = of(&["paced"]);
    assert_eq!(titles(&one), ["Latency over time", "Throughput over time"]);
    assert_eq!(names(&one[0])[1], ["p99", "p99.9"]);
    let two = of(&["paced", "preemptive"]);
    assert_eq!(titles(&two), ["Throughput over time", "p99 latency over time"]);
    assert_eq!(names(&two[0])[1], ["paced", "preemptive"]);
    assert_eq!(two[1].panels[0].series[0].values.len(), 4);
}

#[test]
fn a_measured_drive_stands_beside_its_published_figures() {
    let drive = |name: &str, alpha: f64, k_w: &str| {
        row(&[
            (Column::Device, name.into()),
            (Column::Alpha, alpha.into()),
            (Column::AlphaTarget, 2.8.into()),
            (Column::KW, 8u64.into()),
            (Column::KWTarget, k_w.into()),
        ])
    };
    let plots = drawn(vec![drive("a", 2.7, "8"), drive("b", 1.5, ">11")], Command::Profile);
    assert_eq!(titles(&plots), ["Alpha"]);
    assert_eq!(plots[0].panels[0].series[0].expected, Some(vec![Some((2.8, 2.8)); 2]));
}

/// The rule: an advice is drawn beside the plain settings, and each change by itself.
#[test]
fn an_advice_is_drawn_beside_the_plain_settings() {
    let arm = |kind: &str, throughput: f64| {
        row(&[(Column::Kind, kind.into()), (Column::ThroughputOpsS, throughput.into())])
    };
    let setting = |name: &str, change: Option<f64>| {
        let mut row = row(&[
            (Column::Kind, "setting".into()),
            (Column::Name, name.into()),
            (Column::Plain, "lru".into()),
            (Column::Advised, "arc".into()),
        ]);
        row.set_some(Column::ThroughputChange, change);
        row
    };
    let rows = vec![
        arm("advice", 24e3),
        arm("plain", 16e3),
        setting("write_back", Some(0.29)),
        setting("prefetch", None),
    ];
    let plots = plots_of_advice(&Table { rows });
    assert_eq!(titles(&plots), ["Throughput with the advice and without", "Throughput by one setting alone"]);
    assert_eq!(names(&plots[0])[0], ["advice", "plain"]);
    assert_eq!(names(&plots[1])[0], ["--write-back arc instead of lru"]);
    assert_eq!(plots[1].scale, Scale::Change);
}
