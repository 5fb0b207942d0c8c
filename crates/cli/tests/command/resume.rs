//! Tests that an interrupted study keeps its finished runs, and continues from them to the same table.

use crate::folder::Folder;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const LEDGER: &str = "out/finished-runs.jsonl";
const FILES: [&str; 4] = ["table.csv", "table.jsonl", "report.html", "study.toml"];

/// Returns a study whose runs take a while. One of its parts reads a trace. Its drives are only filled,
/// because a steady state would take several times as long as the runs.
fn study() -> String {
    let grid = |part: &str, text: &str| format!("[[parts]]\nname = '{part}'\n[parts.grid]\n{text}\n");
    let part = [
        grid(
            "made",
            "workload = ['zipf', 'mixed-skewed']\nwrite_back = ['single', 'ace', 'ace:n_w=8']\nops = 100000",
        ),
        grid("recorded", "workload = 't.pages'\nreplacement = ['lru', 'clock']"),
        grid("long", "workload = 'zipf'\nops = 300000\nseed = [1, 2, 3, 4, 5, 6]"),
    ];
    format!(
        "title = 'T'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\ndevice = 'p4510:precondition=fill'\n{}",
        part.concat()
    )
}

/// Returns the study with a tenth of the requests, for tests that interrupt nothing.
fn short_study() -> String {
    study().replace("00000", "0000")
}

fn folder() -> Folder {
    Folder::new().with("s.toml", study()).with("t.pages", "R 1\nW 2\nR 1\nW 3\n".repeat(50))
}

fn lines(folder: &Folder) -> usize {
    fs::read_to_string(folder.0.join(LEDGER)).map_or(0, |text| text.lines().count())
}

#[test]
fn a_resumed_study_gives_the_same_table() {
    let folder = folder();
    assert_eq!(folder.run("study s.toml --out whole").code, 0);
    let mut ended_by = Vec::new();
    for signal in ["-INT", "-KILL"] {
        let mut child = folder.start("study s.toml --out out --threads 1 --resume");
        let (start, before) = (Instant::now(), lines(&folder));
        while lines(&folder) < before + 3 {
            assert!(child.try_wait().unwrap().is_none(), "the study ended before it was interrupted");
            assert!(start.elapsed() < Duration::from_secs(60));
            sleep(Duration::from_millis(5));
        }
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        ended_by.push((output.status.code(), String::from_utf8(output.stderr).unwrap()));
        assert_eq!(fs::read_dir(folder.0.join("out")).unwrap().count(), 1, "only finished runs are left");
    }
    assert_eq!(ended_by[0].0, None, "it ends by the signal");
    let said = &ended_by[0].1;
    assert!(
        said.contains("kept in out") && said.contains("fulgurite study s.toml --out out --resume"),
        "{said}"
    );
    // A study without `--resume` reports the finished runs, and a dry run does not remove them.
    let finished = lines(&folder);
    let forgotten = folder.run("study s.toml --out out --dry-run");
    assert_eq!((forgotten.code, lines(&folder)), (0, finished));
    let looked = folder.run("study s.toml --out out --dry-run --resume");
    assert!(looked.stderr.contains(&format!("out has {finished} finished runs")), "{}", looked.stderr);
    let resumed = folder.run("study s.toml --out out --resume");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    for file in FILES {
        let [whole, resumed] = ["whole", "out"].map(|at| folder.read(&format!("{at}/{file}")));
        assert!(whole == resumed, "{file} differs");
    }
    assert!(!folder.0.join(LEDGER).exists(), "a complete study keeps nothing aside");
}

#[test]
fn two_studies_do_not_write_into_one_folder() {
    let folder = folder();
    let mut first = folder.start("study s.toml --out out --threads 1");
    let start = Instant::now();
    while lines(&folder) == 0 {
        assert!(first.try_wait().unwrap().is_none(), "the study ended before the other began");
        assert!(start.elapsed() < Duration::from_secs(60));
        sleep(Duration::from_millis(5));
    }
    let second = folder.run("study s.toml --out out --resume");
    assert_eq!(second.code, 2, "{}", second.stderr);
    assert!(
        second.stderr.contains("--out out: another study is writing there; accepted"),
        "{}",
        second.stderr
    );
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(lines(&folder) > 0, "what the first has finished is there");
    assert_eq!(folder.run("study s.toml --out out --resume").code, 0);
}

#[test]
fn a_finished_run_is_taken_from_the_file_and_not_run_again() {
    let folder = folder();
    fs::create_dir(folder.0.join("out")).unwrap();
    // The check asks for a column that no run gives, which fails the study when all of its runs are finished.
    let failing = short_study() + "[[checks]]\nsays = 's'\ncolumn = 'waf_closed_form'\nat_least = 0\n";
    fs::write(folder.0.join("s.toml"), failing).unwrap();
    let failed = folder.run("study s.toml --out out");
    assert_ne!(failed.code, 0);
    assert!(failed.stderr.contains("14 finished runs of 14 are kept in out"), "{}", failed.stderr);
    // Put a figure into the file that no run gives, to show that the rows come from the file. Rows of another
    // version are not used.
    let text = fs::read_to_string(folder.0.join(LEDGER)).unwrap();
    let marked = text.replacen("{\"integer\":30000}", "{\"integer\":30123}", 1);
    let (first, rest) = marked.split_once('\n').unwrap();
    let other_version = first.replace("\"version\":\"", "\"version\":\"other-");
    let ops_of_first = "{\"integer\":10000}";
    assert!(marked != text && first.contains(ops_of_first), "{first}");
    let first = other_version.replacen(ops_of_first, "{\"integer\":10321}", 1);
    fs::write(folder.0.join(LEDGER), format!("{first}\n{rest}")).unwrap();
    fs::write(folder.0.join("s.toml"), short_study()).unwrap();
    let resumed = folder.run("study s.toml --out out --resume --csv");
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stdout.contains(",30123,"), "{}", resumed.stdout);
    assert!(!resumed.stdout.contains(",10321,"), "{}", resumed.stdout);
}

#[test]
fn a_changed_trace_is_run_again() {
    let folder = folder().with("s.toml", short_study());
    let failing = short_study() + "[[checks]]\nsays = 's'\ncolumn = 'waf_closed_form'\nat_least = 0\n";
    fs::write(folder.0.join("failing.toml"), failing).unwrap();
    assert_ne!(folder.run("study failing.toml --out out").code, 0);
    fs::write(folder.0.join("t.pages"), "R 1\nW 2\nW 2\nW 3\n".repeat(50)).unwrap();
    for (out, resume) in [("whole", ""), ("out", " --resume")] {
        assert_eq!(folder.run(&format!("study s.toml --out {out}{resume}")).code, 0);
    }
    let [whole, resumed] = ["whole", "out"].map(|at| folder.read(&format!("{at}/table.csv")));
    assert!(whole == resumed, "the rows of the old trace were taken for those of the new one");
}

fn text(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.0.join(name)).unwrap()
}

/// A finished study is drawn again from its tables. A figure in them that no run gives shows that no run was
/// executed.
#[test]
fn a_finished_study_is_drawn_again_without_running() {
    let folder = folder().with("s.toml", short_study());
    assert_eq!(folder.run("study s.toml --out out").code, 0);
    for (file, from, to) in [("table.csv", ",30000,", ",30123,"), ("table.jsonl", ":30000,", ":30123,")] {
        let text = text(&folder, &format!("out/{file}"));
        let marked = text.replacen(from, to, 1);
        assert_ne!(marked, text, "{file}");
        fs::write(folder.0.join("out").join(file), marked).unwrap();
    }
    let check = "[[checks]]\nsays = 'a new check'\ncolumn = 'ops'\nat_least = 1\n";
    fs::write(folder.0.join("s.toml"), short_study() + check).unwrap();
    let again = folder.run("study s.toml --out out --resume --csv");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stdout.contains(",30123,"), "{}", again.stdout);
    assert!(text(&folder, "out/report.html").contains("a new check"));
    // A study with another grid, with another seed, or with a table that does not match the ledger executes
    // its runs.
    let other = short_study().replace("'lru', 'clock'", "'clock', 'lru'");
    fs::write(folder.0.join("other.toml"), other).unwrap();
    for run in ["study other.toml --out out --resume --csv", "study s.toml --out out --resume --csv --seed 7"]
    {
        let tables = ["table.csv", "table.jsonl", "study.toml"]
            .map(|file| (file, text(&folder, &format!("out/{file}"))));
        let run = folder.run(run);
        assert!(run.code == 0 && !run.stdout.contains(",30123,"), "{}", run.stderr);
        tables.iter().for_each(|(file, text)| fs::write(folder.0.join("out").join(file), text).unwrap());
    }
    let text = text(&folder, "out/table.csv").replacen(",30123,", ",30124,", 1);
    fs::write(folder.0.join("out/table.csv"), text).unwrap();
    let torn = folder.run("study s.toml --out out --resume --csv");
    assert!(torn.code == 0 && !torn.stdout.contains(",3012"), "{}", torn.stderr);
}

/// Only a result of the same study replaces a result, which may have taken hours. A quick result never
/// replaces a full one.
#[test]
fn a_result_is_not_replaced_by_a_smaller_one_or_another_study() {
    let small = |title: &str| {
        format!(
            "title = '{title}'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\ndevice = 'p4510'\nworkload = 'zipf'\nops \
                = 20000\n[quick]\nops = 10000\n"
        )
    };
    let folder = Folder::new().with("s.toml", small("T")).with("other.toml", small("Other"));
    let done = |arguments: &str| {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
    };
    let refused = |arguments: &str, words: &str| {
        let before = folder.read("out/table.csv");
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
        assert_eq!(folder.read("out/table.csv"), before);
    };
    done("study s.toml --out out --quick");
    let quick = folder.read("out/table.csv");
    done("study s.toml --out out");
    assert_ne!(folder.read("out/table.csv"), quick);
    refused("study s.toml --out out --quick", "--out out has the full result of this study");
    refused("study s.toml --out out --quick --resume", "--out out has the full result of this study");
    refused("study other.toml --out out", "--out out has the result of another study, `T`");
    done("study s.toml --out out");
}

/// Another study neither removes the finished runs of a study nor uses them as its own.
#[test]
fn finished_runs_are_not_lost_to_another_study() {
    let small = |title: &str, workload: &str, more: &str| {
        format!(
            "title = '{title}'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\nworkload = ['{workload}', \
                'mixed-skewed']\nops = 2000\n[quick]\nops = 1000\n{more}"
        )
    };
    // A check of a missing column fails the study when all of its runs are finished.
    let failing = "[[checks]]\nsays = 's'\ncolumn = 'waf_closed_form'\nat_least = 0\n";
    let folder = Folder::new()
        .with("s.toml", small("T", "zipf", failing))
        .with("like.toml", small("L", "mixed-uniform", ""))
        .with("other.toml", small("O", "mixed-uniform", "").replace("mixed-skewed", "cello-like"));
    assert!(folder.run("study s.toml --out out").stderr.contains("2 finished runs of 2 are kept in out"));
    let left = folder.read(LEDGER);
    for arguments in ["other.toml", "other.toml --resume", "s.toml --quick", "s.toml --quick --resume"] {
        let refused = folder.run(&format!("study {arguments} --out out"));
        assert_eq!(refused.code, 2, "{arguments}: {}", refused.stderr);
        let words =
            "--out out has the finished runs of another study, or of another size of this one; accepted";
        assert!(refused.stderr.contains(words), "{arguments}: {}", refused.stderr);
        assert_eq!(folder.read(LEDGER), left, "{arguments}");
    }
    // Only finished runs that match runs of the study are counted.
    for (study, counted) in
        [("other", None), ("like", Some("out has 1 finished runs")), ("s", Some("out has 2 "))]
    {
        let looked = folder.run(&format!("study {study}.toml --out out --resume --dry-run"));
        assert_eq!(looked.code, 0, "{study}: {}", looked.stderr);
        assert!(looked.stderr.contains(counted.unwrap_or_default()), "{study}: {}", looked.stderr);
        assert_eq!(looked.stderr.contains("finished runs"), counted.is_some(), "{study}: {}", looked.stderr);
    }
    // A study that asks for some of the same runs uses the rows of those runs.
    assert_eq!(folder.run("study like.toml --out out --resume").code, 0);
}
