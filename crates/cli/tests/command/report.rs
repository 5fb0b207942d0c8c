//! Tests `--report`: a page of a command's rows, beside the usual output.

use crate::folder::Folder;

const POOL: &str = "pool mixed-skewed --pages 1000 --frames 50 --ops 5000 --write-back single,ace";

/// Returns the texts between `from` and `to` in a page.
fn all<'a>(page: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    page.split(from).skip(1).map(|rest| rest.split(to).next().unwrap()).collect()
}

fn page(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.read(name)).unwrap()
}

/// The rule: every command that prints rows writes a page with plots of them, and prints the same as without
/// the page.
#[test]
fn every_command_with_rows_writes_a_page() {
    let lines: String = (0..2_000).map(|at| format!("0,{},4096,W,{}.0\n", at * 8 % 640, at)).collect();
    let folder = Folder::new().with("t.spc", lines);
    let gc = "gc zipf --logical 16MiB --physical 20MiB --segment 256KiB --ops 20K --placement none,sepbit";
    for (command, heading, plots) in [
        (POOL, "pool: mixed-skewed on p4510", "Latency"),
        (
            "pool postgres-pgbench --device none --curve --replacement lru,belady --sample 1/8",
            "pool: postgres-pgbench on none",
            "Miss ratio by frames",
        ),
        (gc, "gc: zipf", "Write amplification"),
        ("replay t.spc --device mem", "replay: t.spc on mem", "Latency of writes"),
        ("replay synthetic --ops 2000 --interval 100ms", "replay: synthetic on p4510", "Latency over time"),
        ("bench ycsb-a --ops 500 --users 1,8", "bench: ycsb-a on p4510", "Latency of commits"),
        ("profile optane", "profile: optane", "Most requests per second"),
        (
            "advise zipf --device optane --pages 500 --ops 3K --replacement lru,arc --write-back single \
             --prefetch none",
            "advise: zipf on optane",
            "Throughput with the advice and without",
        ),
    ] {
        let alone = folder.run(&format!("{command} --csv --columns workload,ops,latency_p99_ns"));
        let with =
            folder.run(&format!("{command} --csv --columns workload,ops,latency_p99_ns --report x.html"));
        assert_eq!((with.code, &with.stdout), (0, &alone.stdout), "{command}: {}", with.stderr);
        let page = page(&folder, "x.html");
        assert_eq!(all(&page, "<h1>", "</h1>"), [heading], "{command}");
        let titles = all(&page, "<figure>\n<h2>", "</h2>");
        assert!(titles.contains(&plots), "{command}: {titles:?}");
        assert!(page.contains(&format!("fulgurite {command} ")), "{command} is not repeated");
        assert!(!page.contains("study.toml") && !page.contains("sim_wall_s"), "{command}");
    }
}

/// The rule: the page has the finding, a row for each run with all columns, and the remarks of the runs, also
/// with `--quiet`. It has the exact values of the table.
#[test]
fn the_page_has_rows_and_remarks() {
    let folder = Folder::new();
    let outcome = folder.run(&format!("{POOL} --report x.html --quiet --csv"));
    let page = page(&folder, "x.html");
    assert!(page.contains("<strong>Found.</strong> ace has the highest throughput"));
    assert!(page.contains("2 runs, which differ in write_back (single, ace)."));
    assert!(page.contains("<li>waf and lifetime belong to what the drive held before"));
    let p99 = outcome.stdout.lines().next().unwrap().split(',').position(|name| name == "latency_p99_ns");
    for row in outcome.stdout.lines().skip(1) {
        let cell = row.split(',').nth(p99.unwrap()).unwrap();
        assert!(page.contains(&format!("data-value=\"{cell}\"")), "{cell}");
    }
    let back = Folder::new().with("t.spc", "0,0,4096,W,0.1\n0,8,4096,R,0.7\n0,8,4096,R,0.5\n");
    assert_eq!(back.run("replay t.spc --device mem --quiet --report x.html").code, 0);
    let page = String::from_utf8(back.read("x.html")).unwrap();
    assert!(page.contains("sets 1 times that go back"), "{page}");
}

/// The rule: an earlier page of `--report` is replaced. Any other file is refused before the runs begin, also
/// the report of a study.
#[test]
fn a_page_replaces_only_an_earlier_page() {
    let folder = Folder::new().with("other.html", "<!doctype html>\n<p>notes\n");
    for _ in 0..2 {
        assert_eq!(folder.run(&format!("{POOL} --report x.html")).code, 0);
    }
    assert_eq!(folder.run("study waf-closed-form --quick --out s").code, 0);
    for name in ["other.html", "s/report.html"] {
        let before = folder.read(name);
        let outcome = folder.run(&format!("{POOL} --report {name}"));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
        let said = format!("--report {name} exists and is no earlier report; accepted: another file");
        assert!(outcome.stderr.contains(&said) && !outcome.stderr.contains("--force"), "{}", outcome.stderr);
        assert_eq!(folder.read(name), before);
    }
}

#[test]
fn a_page_on_standard_output_leaves_the_table_to_standard_error() {
    let outcome = Folder::new().run(&format!("{POOL} --report -"));
    assert!(outcome.stdout.starts_with("<!doctype html>") && outcome.stdout.trim_end().ends_with("</html>"));
    assert!(outcome.stderr.contains("throughput_ops_s"), "{}", outcome.stderr);
}

#[test]
fn commands_without_runs_have_no_page() {
    let folder = Folder::new();
    for command in ["list", "study waf-closed-form", "trace convert x y --to spc", "diff a b", "stat x", ""] {
        let outcome = folder.run(&format!("{command} --report x.html"));
        assert_eq!(outcome.code, 2, "{command}");
        assert!(outcome.stderr.contains("--report is for pool, gc, replay"), "{command}: {}", outcome.stderr);
    }
    // A dry run runs nothing, so it has no page.
    assert_eq!(folder.run(&format!("{POOL} --dry-run --report x.html")).code, 0);
    assert!(folder.names().is_empty());
}
