//! Prints results to standard output, in the requested format or in the format for a terminal.

use crate::common::Common;
use fulgurite_files::output::standard_failed;
use fulgurite_study::people::{self, View};
use fulgurite_study::table::Table;
use fulgurite_study::{Column, StackError};
use rustix::termios::tcgetwinsize;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

/// The assumed width of a terminal that does not report its width.
const USUAL_WIDTH: usize = 80;

/// Returns the outcome of a write to standard output.
pub(crate) fn written(result: io::Result<()>) -> Result<(), StackError> {
    // Flush here, because an error when the process exits would be lost.
    result.and_then(|()| io::stdout().flush()).or_else(|error| Ok(standard_failed(&error)?))
}

/// Writes a line to standard error. An error of this write is ignored, because there is no other place to
/// report it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints the table in the requested format. `plain` formats the table for a pipe or a file, `shown` for a
/// terminal.
pub(crate) fn print(
    table: &Table,
    common: &Common,
    plain: impl Fn(&Table) -> String,
    shown: impl Fn(&Table, &View) -> String,
) -> Result<(), StackError> {
    tell_missing(table, common);
    let text = match (common.json, common.csv) {
        (true, _) => table.with_columns(&common.columns).to_json(),
        (_, true) => table.with_columns(&common.columns).to_csv(),
        _ => view(common).map_or_else(|| plain(table), |view| shown(table, &view)),
    };
    if common.is_stdout_taken {
        // Ignore an error, because standard error may be closed. The file on standard output is complete all
        // the same.
        let _ = io::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    written(io::stdout().write_all(text.as_bytes()))
}

/// Prints a table of one row with many columns, one column per line.
pub(crate) fn print_upright(table: &Table, common: &Common) -> Result<(), StackError> {
    let plain = |table: &Table| table.to_upright_text(&asked(table, &table.columns(), common));
    print(table, common, plain, |table, view| people::upright(table, &table.columns(), view))
}

/// Returns the columns that `--columns` or `--wide` ask for, otherwise `usual`.
pub(crate) fn asked(table: &Table, usual: &[Column], common: &Common) -> Vec<Column> {
    let there = table.columns();
    match (common.columns.is_empty(), common.wide) {
        (false, _) => common.columns.iter().copied().filter(|column| there.contains(column)).collect(),
        (_, true) => there,
        _ => usual.to_vec(),
    }
}

/// Reports requested columns that no row has.
fn tell_missing(table: &Table, common: &Common) {
    let there = table.columns();
    for column in common.columns.iter().filter(|column| !there.contains(column)) {
        if !common.quiet {
            say(&format!("no row has the column {column}"));
        }
    }
}

/// Returns the width and the style of a table on a terminal; `None` if the table does not go to a terminal.
fn view(common: &Common) -> Option<View> {
    let width = if common.is_stdout_taken { width(&io::stderr()) } else { width(&io::stdout()) }?;
    Some(View {
        width,
        columns: common.columns.clone(),
        is_wide: common.wide,
        is_quiet: common.quiet,
        has_colours: has_colours(),
    })
}

/// Whether a terminal shows colours. The variable `NO_COLOR` is described at no-color.org.
fn has_colours() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Returns the width of a terminal in characters; `None` if the stream is not a terminal.
fn width(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let told = tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    Some(if told == 0 { USUAL_WIDTH } else { told })
}
