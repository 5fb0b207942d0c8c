//! Two results beside each other: what has changed, and by how much.

use crate::folder::Folder;

const RUN: &str = "pool zipf,mixed-skewed --ops 2K --pages 4K";

/// A folder with a result in every form, and one in which a throughput is 10 % higher and a WAF is gone.
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
    // From something to nothing has no size and stands first.
    assert_eq!((&rows[0]["workload"], &rows[0]["metric"]), (&"zipf".into(), &"waf".into()));
    assert_eq!((rows[0].get("b"), rows[0].get("change")), (None, None));
    assert_eq!(
        (&rows[1]["workload"], &rows[1]["metric"]),
        (&"mixed-skewed".into(), &"throughput_ops_s".into())
    );
    assert!((rows[1]["change"].as_f64().unwrap() - 0.1).abs() < 1e-9, "{rows}");
    // It depends on the tolerance, up and down, and on the columns that count.
    let code = |arguments: &str| folder.run(&format!("diff {arguments}")).code;
    assert_eq!(code("a.csv b.json --columns throughput --tolerance 9%"), 1);
    assert_eq!(code("a.csv b.json --columns throughput --tolerance 11%"), 0);
    assert_eq!(code("b.json a.csv --columns throughput --tolerance 9%"), 1);
    assert_eq!(code("b.json a.csv --columns throughput --tolerance 9.2%"), 0, "1 / 1.1 is 9.1 % less");
    assert_eq!(code("a.csv b.json --columns hits"), 0);
    assert_eq!(code("a.csv b.json --tolerance 50%"), 1, "what is gone is beyond any tolerance");
    let missing = folder.run("diff b.json one.json --tolerance 50%");
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("1 row is in A alone"), "{}", missing.stderr);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = folder()
        .with("letter", "Dear reader,\n")
        .with("cut.json", "[{\"hits\":")
        .with("other.csv", "workload,hits\ntpcc,5\n");
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    for (arguments, words) in [
        ("diff a.csv", "<B>"),
        ("diff a.csv nowhere", "B nowhere"),
        ("diff empty a.csv", "A empty"),
        ("diff a.csv letter", "B letter"),
        ("diff a.csv /dev/zero", "longer than 256 MiB"),
        ("diff cut.json a.csv", "A cut.json"),
        ("diff a.csv other.csv", "workload is mixed-skewed zipf in one and tpcc in the other"),
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
