//! Tests the comparison of two results: which figures changed, and by how much.

use crate::folder::Folder;

const RUN: &str = "pool zipf,mixed-skewed --ops 2K --pages 4K";

/// Creates a folder with one result in each format, and another result with a throughput 10 % higher and
/// without a write amplification (WAF).
fn folder() -> Folder {
    let folder = Folder::new();
    let csv = folder.run(&format!("{RUN} --csv")).stdout;
    let json = folder.run(&format!("{RUN} --json")).stdout;
    let lines: String = json
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| line.trim_end_matches(',').to_owned() + "\n")
        .collect();
    let mut rows: Vec<serde_json::Map<_, _>> = serde_json::from_str(&json).unwrap();
    let faster = rows[1]["throughput_ops_s"].as_f64().unwrap() * 1.1;
    rows[1].insert("throughput_ops_s".to_owned(), faster.into());
    rows[1].insert("run_id".to_owned(), "of another version".into());
    rows[0].remove("waf");
    let changed = serde_json::to_string(&rows).unwrap();
    let one = serde_json::to_string(&rows[1..]).unwrap();
    let files = [
        ("a.csv", csv.clone()),
        ("a.json", json),
        ("a.jsonl", lines),
        ("b.json", changed),
        ("one.json", one),
    ];
    let folder = files.into_iter().fold(folder, |folder, (name, text)| folder.with(name, text));
    std::fs::create_dir(folder.0.join("a")).unwrap();
    std::fs::write(folder.0.join("a/table.csv"), csv).unwrap();
    folder
}

#[test]
fn every_form_of_a_result_is_equal_to_the_others() {
    let folder = folder();
    for a in ["a", "a.csv", "a.json", "a.jsonl"] {
        for b in ["a", "a.csv", "a.json", "a.jsonl"] {
            let outcome = folder.run(&format!("diff {a} {b}"));
            assert_eq!(outcome.code, 0, "{a} {b}: {}{}", outcome.stdout, outcome.stderr);
            assert!(outcome.stdout.starts_with("Nothing has changed: 2 rows with "), "{}", outcome.stdout);
            assert_eq!(outcome.stdout.lines().count(), 1, "{}", outcome.stdout);
        }
    }
    let piped = folder.shell("fulgurite diff a.json - < a.csv");
    assert_eq!(piped.code, 0, "{}", piped.stderr);
}

#[test]
fn a_change_has_its_place_its_size_and_an_exit_code() {
    let folder = folder();
    let outcome = folder.run("diff a.csv b.json --json");
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("2 figures have changed by more than 0%"), "{}", outcome.stderr);
    let rows: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
    // A figure that only one result has gives a change without a size. Such changes are first.
    assert_eq!((&rows[0]["workload"], &rows[0]["metric"]), (&"zipf".into(), &"waf".into()));
    assert_eq!((rows[0].get("b"), rows[0].get("change")), (None, None));
    assert_eq!(
        (&rows[1]["workload"], &rows[1]["metric"]),
        (&"mixed-skewed".into(), &"throughput_ops_s".into())
    );
    assert!((rows[1]["change"].as_f64().unwrap() - 0.1).abs() < 1e-9, "{rows}");
    // The exit code depends on the tolerance in both directions, and on the compared columns.
    let code = |arguments: &str| folder.run(&format!("diff {arguments}")).code;
    assert_eq!(code("a.csv b.json --columns throughput --tolerance 9%"), 1);
    assert_eq!(code("a.csv b.json --columns throughput --tolerance 11%"), 0);
    assert_eq!(code("b.json a.csv --columns throughput --tolerance 9%"), 1);
    assert_eq!(code("b.json a.csv --columns throughput --tolerance 9.2%"), 0, "1 / 1.1 is 9.1 % less");
    assert_eq!(code("a.csv b.json --columns hits"), 0);
    assert_eq!(code("a.csv b.json --tolerance 50%"), 1, "what is gone is beyond any tolerance");
    let missing = folder.run("diff b.json one.json --tolerance 50%");
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("1 row is only in A"), "{}", missing.stderr);
}

#[test]
fn results_that_cannot_be_compared_are_refused() {
    let folder = folder()
        .with("letter", "Dear reader,\n")
        .with("cut.json", "[{\"hits\":")
        .with("other.csv", "workload,hits\ntpcc,5\n");
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    for (name, workload) in [("one", "zipf"), ("two", "tpcc")] {
        std::fs::create_dir(folder.0.join(name)).unwrap();
        std::fs::write(folder.0.join(name).join("table.csv"), format!("workload,hits\n{workload},5\n"))
            .unwrap();
        std::fs::write(folder.0.join(name).join("study.toml"), format!("title = 'Study {name}'\n")).unwrap();
    }
    for (arguments, words) in [
        ("diff a.csv", "<B>"),
        ("diff a.csv nowhere", "B nowhere"),
        ("diff empty a.csv", "A empty"),
        ("diff a.csv letter", "B letter"),
        ("diff a.csv /dev/zero", "longer than 256 MiB"),
        ("diff cut.json a.csv", "A cut.json"),
        ("diff a.csv other.csv", "workload is mixed-skewed, zipf in A and tpcc in B"),
        ("diff one two", "A one is of the study `Study one`, and B two of `Study two`; accepted: "),
        ("diff a.csv a.json --tolerance 2", "--tolerance"),
        ("diff a.csv a.json --tolerance -2", "--tolerance"),
        ("diff a.csv a.json --columns k_w", "--columns k_w"),
        ("diff a.csv a.json --dry-run", "--dry-run"),
    ] {
        let refused = folder.run(arguments);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{arguments}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{arguments}: {}", refused.stderr);
    }
}

/// If two results asked for different settings, their difference is no change and is not listed as one.
#[test]
fn results_of_different_requests_are_not_compared() {
    let pool = "pool zipf --pages 4K --ops 2K";
    let replay = "replay synthetic --device optane --ops 500";
    let bench = "bench ycsb-c:records=2000 --device optane";
    for (a, b, words) in [
        (pool.to_owned(), "pool zipf --pages 4K --ops 1K".to_owned(), "ops is 2000 in A and 1000 in B"),
        (pool.to_owned(), format!("{pool} --skip 5"), "skip is absent in A and 5 in B"),
        (format!("{pool} --cores 2 --users 2"), format!("{pool} --users 2"), "cores is 2 in A and absent in"),
        (replay.to_owned(), format!("{replay} --layer log"), "layer is absent in A and log in B"),
        (format!("{replay} --users 2"), format!("{replay} --rate 2K"), "users is 2 in A and absent in"),
        (
            format!("{replay} --rate 1K"),
            format!("{replay} --rate 2K"),
            "rate_requests_s is 1000 in A and 2000",
        ),
        (format!("{bench} --time 1ms"), format!("{bench} --time 2ms"), "time_limit_ns is 1000000 in A and"),
        (format!("{bench} --time 1ms"), format!("{bench} --ops 500"), "ops is absent in A and 500 in"),
    ] {
        let folder = Folder::new();
        for (name, command) in [("a.csv", &a), ("b.csv", &b)] {
            let run = folder.run(&format!("{command} --csv"));
            assert_eq!(run.code, 0, "{command}: {}", run.stderr);
            std::fs::write(folder.0.join(name), run.stdout).unwrap();
        }
        let refused = folder.run("diff a.csv b.csv");
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{a}, {b}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{a}, {b}: {}", refused.stderr);
        assert_eq!(folder.run("diff a.csv a.csv").code, 0, "{a}");
    }
}

/// Three kinds of results are compared too: results of another version, rows without the columns that
/// `--columns` left out, and runs for a given time.
#[test]
fn results_of_one_request_are_compared_with_any_columns() {
    let row = |text: &str| format!("[{{{text}}}]");
    let folder = Folder::new()
        .with("old.json", row(r#""run_id":"1","workload":"zipf","ops":5,"hits":3"#))
        .with("new.json", row(r#""run_id":"2","workload":"zipf","ops":5,"place":"in-place","hits":4"#))
        .with("whole.json", row(r#""run_id":"2","workload":"zipf","users":8,"ops":5,"hits":3"#))
        .with("cut.json", row(r#""workload":"zipf","ops":5,"hits":4"#))
        .with("slow.json", row(r#""run_id":"1","benchmark":"tpcc","time_limit_ns":9,"ops":5"#))
        .with("fast.json", row(r#""run_id":"2","benchmark":"tpcc","time_limit_ns":9,"ops":6"#))
        .with("earlier.json", row(r#""run_id":"1","benchmark":"tpcc","ops":5"#))
        .with("later.json", row(r#""run_id":"1","benchmark":"tpcc","ops":6"#));
    for (a, b) in [("old", "new"), ("whole", "cut"), ("slow", "fast"), ("earlier", "later")] {
        let compared = folder.run(&format!("diff {a}.json {b}.json"));
        assert_eq!(compared.code, 1, "{a} {b}: {}", compared.stderr);
        assert!(compared.stdout.starts_with("1 of "), "{a} {b}: {}", compared.stdout);
    }
}
