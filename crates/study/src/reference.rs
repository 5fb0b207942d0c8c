//! Prints the reference of names and columns as Markdown. Parsing, lists and tables use the same
//! declarations, so the reference always agrees with them.

use crate::study;
use fulgurite_base::{Choice, OptionHelp};
use fulgurite_stack::catalogue::{DEVICE_PARAMETERS, Item, KINDS};
use fulgurite_stack::{Column, Command, Unit};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// Escapes a cell of a Markdown table: a `|` would end the cell, and a `<` would begin a tag.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// Returns the page of all names of all kinds with their options, defaults and bounds, and of all built-in
/// studies.
pub fn names() -> String {
    let mut text = "# Names\n\n\
        This page is made from the program's own declarations; `fulgurite list KIND` prints the same. A name takes its \
        options as `name:key=value,key=value`. An option that is not written has its default.\n"
        .to_owned();
    for (kind, items) in KINDS {
        let items = items();
        let _ = write!(text, "\n## {kind}\n\n");
        if kind == DEVICE_PARAMETERS {
            text += "Every simulated drive has these options. The defaults are those of `p4510`.\n\n";
            text += &table(items.iter().flat_map(|item| &item.options));
            continue;
        }
        text += "| name | what it is |\n|---|---|\n";
        for item in &items {
            let _ = writeln!(text, "| `{}` | {} |", name(item), cell(&about(item)));
        }
        for item in items.iter().filter(|item| !item.options.is_empty()) {
            let _ = write!(text, "\nOptions of `{}`:\n\n{}", name(item), table(item.options.iter()));
        }
    }
    text += "\n## studies\n\n| name | title |\n|---|---|\n";
    for (name, title) in study::names() {
        let _ = writeln!(text, "| `{name}` | {} |", cell(&title));
    }
    text
}

fn name(item: &Item) -> String {
    item.row.text(Column::Name)
}

fn about(item: &Item) -> String {
    let mut about = item.row.text(Column::About);
    for (column, says) in [(Column::Targets, "Published"), (Column::Source, "Source")] {
        let text = item.row.text(column);
        if !text.is_empty() {
            let _ = write!(about, ". {says}: {text}");
        }
    }
    about
}

fn table<'a>(options: impl Iterator<Item = &'a OptionHelp>) -> String {
    let mut text = "| option | default | from, to | meaning |\n|---|---|---|---|\n".to_owned();
    for OptionHelp { key, about, written, default, bounds } in options {
        let bounds = bounds.as_ref().map(|(least, most)| format!("{least}, {most}")).unwrap_or_default();
        let default = if default.is_empty() { String::new() } else { format!("`{}`", cell(default)) };
        let _ = writeln!(
            text,
            "| `{key}={}` | {default} | {} | {} |",
            written.replace('|', "\\|"),
            cell(&bounds),
            cell(about)
        );
    }
    text
}

/// Returns the page of all columns of all tables, with their units and meanings.
pub fn columns() -> String {
    let mut text = "# Columns\n\n\
        This page is made from the program's own declarations. `--json` and `--csv` use these names and exact values. \
        A row has only the columns that apply to it. An *axis* identifies the runs of a grid. *More* and *less* \
        tell which of two values is better. The last column names the commands that show a column first.\n\n\
        | column | unit | better | meaning | shown by |\n|---|---|---|---|---|\n"
        .to_owned();
    for column in Column::all() {
        let better = match column.better() {
            Some(Ordering::Greater) => "more",
            Some(_) => "less",
            None if column.is_axis() => "axis",
            None => "",
        };
        let shown = Command::NAMES.iter().filter(|(_, command)| column.is_shown_by(*command));
        let shown: Vec<&str> = shown.map(|(name, _)| *name).collect();
        let (unit, meaning) = (unit(column), cell(column.meaning()));
        let _ = writeln!(text, "| `{column}` | {unit} | {better} | {meaning} | {} |", shown.join(", "));
    }
    text
}

/// The ends of column names that imply a unit, with that unit. They apply to columns without a declared unit.
const SUFFIXES: [(&str, &str); 12] = [
    ("record_share", "%"),
    ("_ops_s", "1/s"),
    ("_requests_s", "1/s"),
    ("records_s", "1/s"),
    ("_iops", "1/s"),
    ("_iops_max", "1/s"),
    ("_ns2", "ns²"),
    ("_ns_per_op", "ns"),
    ("_s", "s"),
    ("_uj", "µJ"),
    ("_j", "J"),
    ("_ratio", "share of 1"),
];

fn unit(column: Column) -> &'static str {
    match column.unit() {
        Unit::Name => "text",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes/s",
        Unit::Number => {
            let name = column.name();
            let found = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix) || *suffix == name);
            match found {
                Some((_, unit)) => unit,
                None if name.contains("share") => "share of 1",
                None => "number",
            }
        }
    }
}
