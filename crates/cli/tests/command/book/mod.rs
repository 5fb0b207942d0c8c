//! Tests the book and the README: every command in them runs, and prints the shown output.
//!
//! In a block marked `console`, bash runs each line `$ COMMAND`, and the lines below it are the output on a
//! terminal of 100 columns. `…` matches any lines, or within a line any text. A comment `# exits with 1`
//! behind a command is the exit code of the command. Commands in a block marked `console dry-run` take long,
//! so they run with `--dry-run`. A block marked `… file=NAME` is a file for the commands below it. If NAME is
//! a file of the repository, the block must be a part of that file. All commands and files of a page share a
//! folder.

mod page;

use crate::folder::Folder;
use crate::terminal::on_terminal;
use page::{Block, Page};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The width in characters of the terminal whose output the book shows.
const WIDTH: u16 = 100;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the path of every page of the book in the repository.
fn pages() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    for folder in
        ["docs", "docs/tutorials", "docs/how-to", "docs/explanation", "docs/validation", "docs/store"]
    {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        found.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    found.sort();
    found
}

/// Creates a folder in which `fulgurite` is the command under test.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.0.join(".bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fulgurite"), folder.0.join(".bin/fulgurite")).unwrap();
    folder
}

fn bash(folder: &Folder, script: &str) -> Command {
    let path = format!("{}:{}", folder.0.join(".bin").display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.args(["-c", script]).env("PATH", path);
    command
}

/// Returns the faults in the blocks of a page.
fn faults(page: &Page) -> Vec<String> {
    let folder = folder();
    let mut faults = Vec::new();
    for block in &page.blocks {
        match block {
            Block::File { name, text } => faults.extend(file(&folder, name, text)),
            Block::Console { commands, is_dry } => {
                faults.extend(commands.iter().filter_map(|command| run(&folder, command, *is_dry)));
            }
            Block::Other { mark, text } => {
                let has_command =
                    text.lines().any(|line| line.trim_start_matches("$ ").starts_with("fulgurite "));
                let fault = format!("a block marked `{mark}` has a command, which nobody runs:\n{text}");
                faults.extend(has_command.then_some(fault));
            }
        }
    }
    faults
}

/// Writes a file into the folder, or compares the block with the repository's file of that name. Returns the
/// fault, if any.
fn file(folder: &Folder, name: &str, text: &str) -> Option<String> {
    let Ok(there) = fs::read_to_string(repository().join(name)) else {
        fs::write(folder.0.join(name), text).unwrap();
        return None;
    };
    let mut lines = there.lines().map(str::trim);
    let mut shown = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.ends_with('…'));
    let missing = shown.find(|line| !lines.any(|there| there == *line))?;
    Some(format!("{name} does not have this line, or not in this order: {missing}"))
}

fn run(folder: &Folder, command: &page::Command, is_dry: bool) -> Option<String> {
    let page::Command { typed, code, shown } = command;
    let script = if is_dry { format!("{typed} --dry-run") } else { typed.clone() };
    let outcome = on_terminal(folder, &mut bash(folder, &script), WIDTH);
    let printed = outcome.stdout + &outcome.stderr;
    if outcome.code != *code {
        return Some(format!("$ {script}\nexits with {} in place of {code}:\n{printed}", outcome.code));
    }
    (!page::is_as_shown(shown, &printed)).then(|| {
        let shown = shown.join("\n");
        format!("$ {script}\nshown:\n{shown}\nprinted:\n{printed}")
    })
}

/// Returns the faults of the commands in the text of a page. Each command must run, or mark missing words
/// with `…` or a word in capitals.
fn faults_of_text(page: &Page) -> Vec<String> {
    let folder = folder();
    let wrong = |command: &&String| {
        let outcome = bash(&folder, &format!("{command} --dry-run")).current_dir(&folder.0).output().unwrap();
        !outcome.status.success()
    };
    page.named.iter().filter(wrong).map(|command| format!("`{command}` is refused")).collect()
}

/// Checks every second page, beginning with page `half`, so that two tests can run in parallel.
fn check(half: usize) {
    let mut all = Vec::new();
    let pages = pages();
    assert!(pages.len() > 10, "{pages:?}");
    for path in pages.iter().skip(half).step_by(2) {
        let page = Page::read(&fs::read_to_string(repository().join(path)).unwrap());
        let mut faults = faults(&page);
        faults.extend(faults_of_text(&page));
        if path.contains("tutorials/") {
            faults.extend(page.unknown_figures());
        }
        all.extend(faults.into_iter().map(|fault| format!("{path}: {fault}")));
    }
    assert!(all.is_empty(), "{}", all.join("\n\n"));
}

/// The README begins with the output of the quickstart study.
#[test]
fn the_readme_shows_the_quickstart() {
    let page = Page::read(&fs::read_to_string(repository().join("README.md")).unwrap());
    let Block::Console { commands, is_dry: false } = &page.blocks[0] else { panic!("no commands") };
    assert_eq!(commands[0].typed, "fulgurite");
    assert!(
        commands[0].shown.iter().any(|line| line.contains("run time falls by")),
        "{:?}",
        commands[0].shown
    );
}

#[test]
fn the_first_half_of_the_book_matches_the_commands() {
    check(0);
}

#[test]
fn the_second_half_of_the_book_matches_the_commands() {
    check(1);
}

/// Several documents state the error of the simulated write amplification against its closed form. Each
/// states the figure that the study prints.
#[test]
fn documents_give_the_studys_error_of_the_closed_form() {
    let found = folder().run("study waf-closed-form --out waf --quiet").stdout;
    let figure = found.split(" is within ").nth(1).and_then(|rest| rest.split(" of its closed form").next());
    let wanted = format!("within {}", figure.unwrap_or_else(|| panic!("no figure is in: {found}")));
    let texts = pages().into_iter().map(|path| (fs::read_to_string(repository().join(&path)).unwrap(), path));
    let said: Vec<String> = texts
        .flat_map(|(text, path)| {
            let rows = text
                .lines()
                .filter(|line| line.starts_with('|') && line.contains("`fulgurite study waf-closed-form`"));
            rows.map(|row| format!("{path}: {row}")).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(said.len(), 3, "{said:?}");
    for row in said {
        assert!(row.contains(&wanted), "{wanted} is not in {row}");
    }
}
