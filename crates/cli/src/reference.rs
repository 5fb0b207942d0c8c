//! Generates the book's reference of the commands as Markdown.

use crate::arguments::{Arguments, Page};
use clap::{Arg, Command, CommandFactory};
use fulgurite_study::reference::{self, cell};
use std::fmt::Write as _;

/// Returns the Markdown of a page of the reference.
pub(crate) fn text(page: Page) -> String {
    match page {
        Page::Commands => commands(),
        Page::Names => reference::names(),
        Page::Columns => reference::columns(),
    }
}

fn commands() -> String {
    let mut whole = Arguments::command();
    // `build` adds the full name of each command to its usage.
    whole.build();
    let mut text = "# Commands\n\n\
        This page is made from the program's own declarations; `fulgurite COMMAND --help` and `fulgurite man \
        COMMAND` \
        print the same.\n\n\
        Exit code 0: done. 1: the run failed, or a comparison or check found something. 2: the request was wrong, \
        and \
        one sentence says what would be accepted.\n\n\
        ## Options of every command\n\n"
        .to_owned();
    text += &options(whole.get_arguments().filter(|arg| arg.is_global_set()));
    for command in whole.get_subcommands().filter(|command| !is_left_out(command)) {
        push(&mut text, command, "fulgurite");
    }
    text
}

fn is_left_out(command: &Command) -> bool {
    command.is_hide_set() || command.get_name() == "help"
}

/// Appends the text about a command and its subcommands.
fn push(text: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(text, "\n## {name}\n\n{}.\n\n```text\n{usage}\n```\n\n", cell(&about));
    *text += &options(command.get_arguments().filter(|arg| !arg.is_global_set()));
    if let Some(after) = command.get_after_help() {
        let _ = write!(text, "\n```text\n{after}\n```\n");
    }
    for below in command.get_subcommands().filter(|below| !is_left_out(below)) {
        push(text, below, &name);
    }
}

/// Returns a Markdown table of options; empty if there are none.
fn options<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let is_shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let lines: Vec<String> = arguments.filter(is_shown).map(line).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("| option | meaning |\n|---|---|\n{}", lines.concat())
}

fn line(arg: &Arg) -> String {
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.map(|names| names.iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" "));
    let typed = match (arg.get_long(), value) {
        (Some(long), Some(value)) => format!("--{long} {value}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(value)) => value,
        (None, None) => arg.get_id().to_string().to_uppercase(),
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    format!("| `{}` | {} |\n", typed.replace('|', "\\|"), cell(&help))
}
