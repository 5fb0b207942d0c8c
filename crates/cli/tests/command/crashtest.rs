//! Tests `fulgurite crashtest`: planted faults are found, right programs are not accused, and nothing is left behind.

use crate::folder::{Folder, Outcome};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The folder of the programs under test.
const RECIPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crashtest/recipes");

/// Appends a number to a file and prints it, again and again; the file is not synced.
const APPENDS: &str = "for n in 1 2 3 4; do echo $n >>log; echo $n; done";

/// Fails unless the file begins with what was printed.
const HAS_PRINTED: &str = "cat >/dev/shm/$$; size=$(stat -c %s /dev/shm/$$); touch log; \
    head -c $size log | cmp -s - /dev/shm/$$; code=$?; rm /dev/shm/$$; exit $code";

/// Runs `crashtest` with a check, with temporary files in the folder `tmp` of its folder.
fn crashtest(folder: &Folder, options: &str, check: &str, program: &str) -> Outcome {
    folder.write("check.sh", check);
    folder.write("program.sh", program);
    let there = folder.0.display();
    folder.shell(&format!(
        "mkdir -p tmp; TMPDIR={there}/tmp fulgurite crashtest -q {options} \
            --check 'sh {there}/check.sh' -- sh {there}/program.sh"
    ))
}

/// Runs a recipe with its own check. `python3` may be a slow wrapper of the interpreter, so that is asked for once.
fn recipe(folder: &Folder, options: &str, check: &str, program: &str) -> Outcome {
    let python = folder.shell("python3 -c 'import sys; print(sys.executable)'").stdout;
    let start = format!("exec {} -S {RECIPES}/", python.trim());
    crashtest(folder, options, &format!("{start}{check}"), &format!("{start}{program}"))
}

/// Returns the outcome that `--json` prints.
fn json(outcome: &Outcome) -> Value {
    let rows: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", outcome.stdout, outcome.stderr));
    rows[0].clone()
}

/// Fails if a mount or a temporary file of the folder is left.
fn is_clean(folder: &Folder) {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let there = folder.0.display().to_string();
    assert!(!mounts.contains(&there), "{mounts}");
    assert_eq!(fs::read_dir(folder.0.join("tmp")).unwrap().count(), 0, "temporary files are left");
}

/// The rule: cuts find each of these faults, and never a violation of the program without it. The changes that are
/// named are those whose loss shows the fault.
#[test]
fn planted_faults_are_found_and_their_repairs_pass() {
    // The first seeds are near those that find the rarer faults, which saves time.
    for (fault, rules, seed, guilty) in [
        ("rename-before-fsync", "journaled", 42, "extension of config to 512 bytes"),
        ("new-file-without-folder-sync", "strict", 42, "creation of job-"),
        ("overwrite-in-place", "journaled", 55, "write of 512 bytes at"),
        ("header-and-data-in-one-sync", "journaled", 82, "of table"),
        ("length-without-checksum", "strict", 61, "of log"),
    ] {
        let folder = Folder::new();
        let options = format!("--json --folder {rules} --seed {seed} --cuts");
        let check = format!("faults.py --check {fault}");
        let program = format!("faults.py {fault}");
        let found = recipe(&folder, &format!("{options} 60 --stop"), &check, &program);
        assert_eq!(found.code, 1, "{fault}: {}", found.stderr);
        let violation = &json(&found)["violations"][0];
        let named = violation["guilty"][0].as_str().unwrap_or_default();
        assert!(named.contains(guilty) && violation["repeats"] == true, "{fault}: {violation}");
        let right = recipe(
            &folder,
            &format!("{options} 5"),
            &format!("{check} --right"),
            &format!("{program} --right"),
        );
        assert_eq!(right.code, 0, "{fault}: {}{}", right.stdout, right.stderr);
        assert_eq!(json(&right)["violations"].as_array().unwrap().len(), 0, "{fault}");
        is_clean(&folder);
    }
}

/// The rule: a second cut finds a recovery that cannot be cut, and names the change of the recovery that was lost.
/// Without it nothing is found, and a right recovery is not accused.
#[test]
fn cuts_during_recovery_find_a_recovery_that_cannot_be_cut() {
    let fault = "journal-removed-before-sync";
    for (cuts, right, code) in [(1, "", 1), (0, "", 0), (1, " --right", 0)] {
        let folder = Folder::new();
        let options = format!("--json --seed 52 --cuts 1 --recovery-cuts {cuts}");
        let check = format!("faults.py --check {fault}{right}");
        let outcome = recipe(&folder, &options, &check, &format!("faults.py {fault}{right}"));
        let case = format!("{options}{right}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!((outcome.code, json(&outcome)["recovery_cuts"].as_u64()), (code, Some(cuts)), "{case}");
        if code == 1 {
            let violation = &json(&outcome)["violations"][0];
            let guilty = violation["recovery"]["guilty"][0].as_str().unwrap_or_default();
            assert!(guilty.contains("of table") && violation["repeats"] == true, "{case}");
        }
        is_clean(&folder);
    }
}

/// The rule: SQLite's promise of durable commits holds, so a violation of it would be a false alarm.
#[test]
fn durable_commits_of_sqlite_pass() {
    let folder = Folder::new();
    let program = "sqlite.py write --journal wal --synchronous full --transactions 6";
    let right = recipe(&folder, "--cuts 60 --json", "sqlite.py check", program);
    assert_eq!(right.code, 0, "{}{}", right.stdout, right.stderr);
    let outcome = json(&right);
    assert!(outcome["cuts"] == 60 && outcome["lost"].as_u64().unwrap() > 60, "{outcome}");
}

/// The rule: the same seeds give the same outcome, apart from its time, with any number of threads.
#[test]
fn the_same_seeds_give_the_same_outcome() {
    let folder = Folder::new();
    let outcomes = ["1", "3"].map(|threads| {
        let options = format!("--cuts 6 --seed 7 --json --threads {threads}");
        let mut outcome = json(&crashtest(&folder, &options, HAS_PRINTED, APPENDS));
        assert!(outcome.as_object_mut().unwrap().remove("seconds").is_some());
        outcome
    });
    assert!(outcomes[0]["violations"].as_array().unwrap().len() > 1, "{}", outcomes[0]);
    assert_eq!(outcomes[0], outcomes[1]);
}

/// The rule: a request that cannot say anything about cuts is refused with exit code 2 and one sentence, and leaves
/// nothing.
#[test]
fn requests_without_meaning_are_refused() {
    let folder = Folder::new().with("mine", "mine");
    for (options, check, program, words) in [
        (
            "",
            "exit 0",
            "echo 1 >a; echo no >&2; exit 3",
            "the program fails without a power cut (exit status: 3: no)",
        ),
        ("", "echo never; exit 1", "echo 1 >a", "--check fails without a power cut (exit status: 1: never)"),
        ("", "test ! -e b && touch b", "echo 1 >a", "--recovery-cuts 0"),
        ("", "exit 0", "cat *", "exit status: 1"),
        ("", "exit 0", "true", "changes nothing"),
        ("--setup 'exit 4'", "exit 0", "echo 1 >a", "--setup fails (exit status: 4: )"),
        ("--keep tmp", "exit 0", "echo 1 >a", "--keep tmp exists"),
        ("--junit mine", "exit 0", "echo 1 >a", "--junit mine"),
        ("--cuts 0", "exit 0", "echo 1 >a", "--cuts is 0"),
        ("--folder posix", "exit 0", "echo 1 >a", "strict"),
        ("--folder strict:tear=1536B", "exit 0", "echo 1 >a", "power of two"),
        ("--time 100ms", "exit 0", "echo 1 >a; sleep 9", "had not ended after 0.1 s"),
    ] {
        let refused = crashtest(&folder, options, check, program);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{words}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{words} is not in {}", refused.stderr);
        is_clean(&folder);
    }
    assert_eq!(folder.names(), ["check.sh", "mine", "program.sh", "tmp"]);
    assert_eq!(folder.read("mine"), b"mine");
    for (arguments, words) in [
        ("crashtest -- true", "--check"),
        ("crashtest --check true", "PROGRAM"),
        ("crashtest --check true -- ./absent", "./absent cannot be started"),
    ] {
        let refused = folder.run(arguments);
        assert_eq!(refused.code, 2, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{arguments}: {}", refused.stderr);
    }
}

/// The rule: a violation ends with exit code 1, and its files and a report are where the user wanted them.
#[test]
fn violations_are_kept_and_reported() {
    let folder = Folder::new();
    let options = "--cuts 4 --seed 7 --keep kept --junit report.xml";
    let found = crashtest(&folder, options, HAS_PRINTED, APPENDS);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    let kept = fs::read_dir(folder.0.join("kept")).unwrap().count();
    let report = String::from_utf8(folder.read("report.xml")).unwrap();
    assert!(report.contains(&format!("tests=\"4\" failures=\"{kept}\"")), "{kept}: {report}");
    for entry in fs::read_dir(folder.0.join("kept")).unwrap() {
        let path = entry.unwrap().path();
        let seed = path.file_name().unwrap().to_str().unwrap().replace('-', " ");
        assert!(report.contains(&format!("<testcase name=\"{seed}\"><failure")), "{seed}: {report}");
        let [printed, left] =
            ["output", "folder/log"].map(|name| fs::read(path.join(name)).unwrap_or_default());
        assert!(!left.starts_with(&printed), "{seed}: {left:?} has all of {printed:?}");
    }
    is_clean(&folder);
    assert_eq!(crashtest(&folder, "--cuts 2 --junit report.xml", "exit 0", APPENDS).code, 0);
    assert!(String::from_utf8(folder.read("report.xml")).unwrap().contains("failures=\"0\""));
}

/// The rule: an interrupt ends the program or the checker that runs, and leaves no mount, no file and no process.
#[test]
fn an_interrupt_leaves_nothing() {
    for (check, program) in
        [("exit 0", "echo 1 >a; touch $AT; sleep 60 & wait"), ("touch $AT; sleep 60", "echo 1 >a")]
    {
        let folder = Folder::new();
        let marker = folder.0.join("started");
        fs::create_dir(folder.0.join("tmp")).unwrap();
        for (name, script) in [("check", check), ("program", program)] {
            folder.write(name, script.replace("$AT", marker.to_str().unwrap()));
        }
        let check = format!("sh {}/check", folder.0.display());
        let mut command = folder.command("crashtest --check");
        command.args([check, "--".into(), "sh".into(), folder.0.join("program").display().to_string()]);
        let child =
            command.env("TMPDIR", folder.0.join("tmp")).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while !marker.exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "the program did not start");
            sleep(Duration::from_millis(5));
        }
        let mark = format!("FULGURITE_CRASHTEST={}-", child.id());
        assert!(is_any_marked(&mark), "the program runs");
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1) && said.contains("interrupted"),
            "{:?}: {said}",
            output.status
        );
        assert!(!is_any_marked(&mark), "a process is left");
        is_clean(&folder);
    }
}

/// Whether a process has this text in its environment.
fn is_any_marked(mark: &str) -> bool {
    let environments =
        fs::read_dir("/proc").unwrap().flatten().map(|entry| fs::read(entry.path().join("environ")));
    environments.flatten().any(|environment| String::from_utf8_lossy(&environment).contains(mark))
}
