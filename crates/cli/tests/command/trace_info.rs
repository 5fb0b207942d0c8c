//! Tests `trace info`: how pages are requested again, intervals, and the report.

use crate::folder::{Folder, number};
use serde_json::Value;

/// A trace without times: 3,000 requests, the smaller pages more often, a third of them writes.
fn skewed() -> String {
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut line = || {
        let most = draw(50) + 1;
        let (page, op) = (draw(most), if draw(3) == 0 { 'W' } else { 'R' });
        format!("{op} {page}\n")
    };
    (0..3_000).map(|_| line()).collect()
}

/// The rule: a pool of LRU with more frames than a percentile of the reuse distances hits that share of the repeated
/// requests, and one with fewer frames does not.
#[test]
fn reuse_distances_are_those_of_lru() {
    let folder = Folder::new().with("t.pages", skewed());
    let info = &folder.rows("trace info t.pages")[0];
    let repeated = number(info, "requests") - number(info, "footprint_pages");
    let hits = |frames: f64| {
        let rows = folder.rows(&format!("pool t.pages --device none --replacement lru --frames {frames}"));
        number(&rows[0], "hits")
    };
    for (column, share) in
        [("reuse_distance_p50", 0.5), ("reuse_distance_p90", 0.9), ("reuse_distance_p99", 0.99)]
    {
        let distance = number(info, column);
        assert!(hits(distance + 1.0) >= share * repeated, "{column} {distance}");
        assert!(distance == 0.0 || hits(distance) < share * repeated, "{column} {distance}");
    }
}

/// The rule: each repeated request is one of four pairs with the request before for the same page, whatever its
/// volume is. A trim is no part of a pair.
#[test]
fn pairs_are_those_of_the_same_page() {
    let text = "fio version 2 iolog\na write 0 8192\na read 0 4096\na trim 0 4096\na read 0 4096\nb write 0 4096\n\
                a write 4096 4096\nb read 0 4096\na write 0 4096\n";
    let info = &Folder::new().with("t.fio2", text).rows("trace info t.fio2")[0];
    let shares = ["read_after_read", "read_after_write", "write_after_read", "write_after_write"]
        .map(|pair| number(info, &format!("{pair}_share")));
    assert_eq!(shares, [0.2, 0.4, 0.2, 0.2]);
}

/// The rule: intervals have the requests and the different pages of their time, or of their number of requests, also
/// if there are none.
#[test]
fn intervals_have_rows() {
    let line = |page: u64, op: char, at: f64| format!("0,{},4096,{op},{at}\n", page * 8);
    let text =
        [(1, 'R', 5.0), (2, 'W', 14.9), (3, 'R', 15.0), (1, 'R', 16.0), (1, 'R', 17.0), (9, 'R', 36.0)];
    let text: String = text.iter().map(|(page, op, at)| line(*page, *op, *at)).collect();
    let folder = Folder::new().with("t.spc", &text);
    let figures = |interval: &str| -> Vec<[f64; 5]> {
        let columns = ["requests", "reads", "working_set_pages", "new_pages", "rate_requests_s"];
        let rows = folder.rows(&format!("trace info t.spc --interval {interval}"));
        rows.iter().map(|row| columns.map(|column| row[column].as_f64().unwrap_or(-1.0))).collect()
    };
    let expected =
        [[2.0, 1.0, 2.0, 2.0, 0.2], [3.0, 3.0, 2.0, 1.0, 0.3], [0.0; 5], [1.0, 1.0, 1.0, 1.0, 0.1]];
    assert_eq!(figures("10s"), expected);
    assert_eq!(figures("4"), [[4.0, 3.0, 3.0, 3.0, -1.0], [2.0, 2.0, 2.0, 1.0, -1.0]]);
    let first = &folder.rows("trace info t.spc --interval 10s")[1];
    assert_eq!((number(first, "time_ns"), number(first, "interval_ns")), (1e10, 1e10));
    assert_eq!(number(&folder.rows("trace info t.spc --interval 4")[1], "time_requests"), 4.0);
}

/// The rule: intervals and reports that cannot be are refused with a reason, and nothing is written.
#[test]
fn wrong_intervals_and_reports_are_refused() {
    let folder = Folder::new()
        .with("t.spc", "0,8,4096,R,0\n0,16,4096,R,600\n")
        .with("t.pages", "R 1\nR 2\n")
        .with("kept.html", "mine");
    for (asked, words) in [
        ("trace info t.spc --interval 0s", &["--interval 0s is empty", "accepted: a time like 10s"][..]),
        ("trace info t.spc --interval 1ms", &["--interval", "more than 100000 intervals", "a longer one"]),
        ("trace info t.spc --interval soon", &["--interval", "soon"]),
        ("trace info t.pages --interval 10s", &["--interval 10s", "no times", "a number of requests"]),
        ("trace info t.spc --format spc:volume=list --interval 1s", &["--interval", "volume=list"]),
        ("trace info t.spc --format spc:volume=list --report r.html", &["--report", "one volume"]),
        ("trace info t.spc --report t.spc", &["t.spc"]),
        ("trace info t.spc --report kept.html", &["kept.html", "no earlier report"]),
        ("trace convert t.spc x.msr --to msr --report r.html", &["--report is for", "trace info"]),
    ] {
        let done = folder.run(asked);
        assert_eq!(done.code, 2, "{asked}: {}", done.stderr);
        for word in words {
            assert!(done.stderr.contains(word), "{asked}: {}", done.stderr);
        }
    }
    assert!(!folder.0.join("r.html").exists());
    assert_eq!(std::fs::read_to_string(folder.0.join("kept.html")).unwrap(), "mine");
}

/// The rule: the report has each picture that the trace allows, and a trace without times has none of time.
#[test]
fn the_report_has_pictures() {
    let timed: String = (0..4_000)
        .map(|number| {
            let op = if number % 3 == 0 { 'W' } else { 'R' };
            format!("0,{},4096,{op},{}.5\n", number * 7 % 120 * 8, number / 20 + number / 1_000 * 50)
        })
        .collect();
    let folder = Folder::new().with("t.spc", &timed).with("t.pages", skewed());
    let titles = |name: &str| -> Vec<&str> {
        let done = folder.run(&format!("trace info {name} --report {name}.html"));
        assert_eq!(done.code, 0, "{}", done.stderr);
        let page = std::fs::read_to_string(folder.0.join(format!("{name}.html"))).unwrap();
        let all = [
            "Requests over time",
            "Working set over time",
            "Reuse distances",
            "Reads and writes of the same page",
            "Sequential requests over time",
            "Bursts at every scale",
        ];
        all.into_iter().filter(|title| page.contains(title)).collect()
    };
    assert_eq!(titles("t.spc").len(), 5, "no request is sequential");
    let untimed = titles("t.pages");
    assert!(
        untimed.contains(&"Reuse distances") && !untimed.contains(&"Bursts at every scale"),
        "{untimed:?}"
    );
    let rows: Vec<Value> = folder.rows("trace info t.spc");
    assert_eq!(number(&rows[0], "sequential_share"), 0.0);
}
