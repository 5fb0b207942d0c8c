//! Tests the help texts, the completion scripts and the manual pages.

use crate::folder::Folder;

const COMMANDS: &str = "list profile pool gc replay bench serve ctl crashtest advise study trace diff load get scan \
    stat check repair backup completions man";

/// Returns the example commands of a help text, each with its remark, which may be empty.
pub(crate) fn examples(help: &str) -> Vec<(String, String)> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Example"));
    let commands = lines.filter_map(|line| line.strip_prefix("  ").filter(|line| line.contains("fulgurite")));
    let parts = commands.map(|line| line.split_once("   ").unwrap_or((line, "")));
    parts.map(|(command, remark)| (command.to_owned(), remark.trim().to_owned())).collect()
}

#[test]
fn every_command_has_examples_that_work() {
    // The trace has as many lines as `advise` needs.
    let lines: Vec<String> = (0..2_000)
        .map(|at| format!("1,{at},{},512,{}\n", if at % 3 == 0 { "2a" } else { "28" }, at * 7 % 96))
        .collect();
    let folder = Folder::new()
        .with("trace.csv", format!("version,time,op,size,lbn\n{}", lines.concat()))
        .with("users.csv", "alice,1\n")
        .with(
            "my-study.toml",
            "title = 't'\nquestion = 'q'\ncommand = 'pool'\n[grid]\nworkload = 'zipf'\nops = 10\n",
        );
    folder.shell("printf '#!/bin/sh\\necho 1 >file' >work.sh; cp work.sh check.sh; chmod +x *.sh");
    folder.shell("gzip -k users.csv; mkdir -p results .local/share/bash-completion/completions");
    assert_eq!(folder.run("load my.store users --from users.csv --size 64MiB --log 1MiB").code, 0);
    for name in ["before", "after"] {
        assert_eq!(folder.run(&format!("study my-study.toml --out results/{name}")).code, 0);
        folder.shell(&format!("cp results/{name}/table.csv {name}.csv"));
    }
    let names = COMMANDS.split(' ').map(str::to_owned);
    let traces = ["info", "convert", "generate"].map(|name| format!("trace {name}"));
    for command in names.chain(traces).chain([String::new()]) {
        let help = folder.run(&format!("{command} --help")).stdout;
        let examples = examples(&help);
        assert!(!examples.is_empty(), "{command}: {help}");
        // The examples of a served drive do not end by themselves. The tests of `serve` execute them.
        let is_served = ["serve", "ctl"].contains(&command.as_str());
        for (example, _) in examples.into_iter().filter(|_| !is_served) {
            // Check runs only with a dry run, because some take minutes. Print a manual page without its
            // reader.
            let runs = ["profile ", "pool ", "gc ", "replay ", "bench ", "advise ", "study "];
            let is_run = runs.iter().any(|run| example.contains(&format!("fulgurite {run}")));
            let dry = if is_run && !example.contains("--help") && !example.contains("--dry-run") {
                " --dry-run"
            } else {
                ""
            };
            let example = example.replace("man -l -", "cat").replace("~/", "");
            if example == "fulgurite" {
                continue;
            }
            let outcome = folder.shell(&format!("set -o pipefail; {example}{dry}"));
            assert_eq!(outcome.code, 0, "{command}: {example}: {}", outcome.stderr);
        }
    }
}

#[test]
fn completions_and_the_manual_know_every_command() {
    let folder = Folder::new();
    let manual = folder.run("man").stdout;
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.run(&format!("completions {shell}")).stdout;
        for command in COMMANDS.split(' ') {
            assert!(script.contains(command), "{shell}: {command}");
            assert!(manual.contains(&format!("fulgurite\\-{command}(1)")), "{command}: {manual}");
        }
        assert!(script.contains("write-back") && script.contains("tolerance"), "{shell}");
    }
    let page = folder.run("man pool").stdout;
    assert!(page.starts_with(".ie") && page.contains(".SH EXAMPLES"), "{page}");
    // The synopsis lists the options of every command after those of the command itself.
    let synopsis = page.split(".SH DESCRIPTION").next().unwrap();
    let at = |option: &str| synopsis.find(option).unwrap_or_else(|| panic!("{option} is not in {synopsis}"));
    assert!(at("write\\-back") < at("\\-\\-seed") && at("\\-\\-format") < at("\\-\\-json"), "{synopsis}");
    for (arguments, words) in [("man pol", "did you mean `pool`"), ("completions bsh", "bash")] {
        let refused = folder.run(arguments);
        assert_eq!((refused.code, refused.stderr.lines().count()), (2, 1), "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{arguments}: {}", refused.stderr);
    }
}

/// The book's reference has every command, every option, every name with its options, and every column of
/// result rows.
#[test]
fn the_reference_is_complete() {
    let folder = Folder::new();
    let [commands, names, columns] =
        ["commands", "names", "columns"].map(|page| folder.run(&format!("reference {page}")).stdout);
    for command in COMMANDS.split(' ') {
        assert!(commands.contains(&format!("\n## fulgurite {command}\n")), "{command}");
        let help = folder.run(&format!("{command} --help")).stdout;
        let options = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        for option in options.map(|word| word.trim_end_matches([',', ']', '.', ';', ':', '`'])) {
            assert!(
                commands.contains(option) || option == "--help" || option == "--version",
                "{command} {option}"
            );
        }
    }
    for row in folder.rows("list").into_iter().chain(folder.rows("list device-parameters")) {
        let name = row["name"].as_str().unwrap();
        assert!(names.contains(&format!("`{name}` |")) || names.contains(&format!("`{name}=")), "{name}");
        let options = row["options"].as_str().unwrap_or_default().split_whitespace();
        for option in options.filter(|word| word.contains('=')) {
            let key = option.split('=').next().unwrap();
            assert!(names.contains(&format!("| `{key}=")), "{name}:{option}");
        }
    }
    for row in folder.rows("pool zipf --ops 1K").iter().chain(&folder.rows("profile optane --curve")) {
        for column in row.as_object().unwrap().keys() {
            let line = columns.lines().find(|line| line.starts_with(&format!("| `{column}` | ")));
            let cells: Vec<&str> = line.expect(column).split(" | ").collect();
            assert!(cells.len() == 5 && !cells[1].is_empty() && !cells[3].is_empty(), "{column}: {cells:?}");
        }
    }
}

/// With `--quiet` a command prints only its result.
#[test]
fn a_quiet_command_prints_its_result_alone() {
    let study = "title = 'T'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\nworkload = 'zipf'\nops = 1000\n";
    let folder = Folder::new().with("s.toml", study);
    let loud = folder.run("study s.toml --json");
    let quiet = folder.run("study s.toml --json --quiet");
    assert!(loud.stderr.contains("report: "), "{}", loud.stderr);
    assert_eq!((quiet.code, quiet.stderr.as_str(), quiet.stdout), (0, "", loud.stdout));
    let wrong = folder.run("pool zipf --frames 0 -q");
    assert!(wrong.code == 2 && wrong.stderr.contains("--frames"), "errors are said: {}", wrong.stderr);
}
