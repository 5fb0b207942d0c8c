//! Formats tables for a terminal, in its width and with units for people. The columns that differ between the
//! runs are first, and then the figures by which the runs are judged. The best value of each column is
//! marked. A sentence above the table states the result. A line below it lists the settings that all runs
//! have in common.
//!
//! [`crate::table`] formats tables for pipes, files and programs.

mod cell;
mod compare;
pub(crate) mod fit;

pub(crate) use cell::humane;
use cell::humane_in;
pub use cell::{column_called, head};
pub use compare::finding;
pub(crate) use compare::{compared, compared_by, differs, named, words};

use crate::seeds::Summary;
use crate::table::Table;

use compare::Comparison;
use fit::{Shown, broken, fitted};
use fulgurite_stack::{Column, Command};

/// The options that decide how a table is shown.
#[derive(Clone, Debug)]
pub struct View {
    /// The maximum width of a line in characters.
    pub width: usize,
    /// The columns to show; empty for the default columns.
    pub columns: Vec<Column>,
    /// Whether to show all columns, even if the lines become longer than `width`.
    pub is_wide: bool,
    /// Whether to omit the remark on hidden columns.
    pub is_quiet: bool,
    /// Whether headings are bold and the best values coloured.
    pub has_colours: bool,
}

/// Returns the most important figures of a command in their order. The command's other figures are shown
/// after these.
fn figures(command: Command) -> &'static [Column] {
    match command {
        Command::Pool => &[
            Column::ThroughputOpsS,
            Column::LatencyP99Ns,
            Column::ElapsedNs,
            Column::HitRatio,
            Column::WriteIos,
            Column::PagesWritten,
            Column::PagesRead,
            Column::Waf,
        ],
        Command::Gc => &[Column::WafSteady, Column::Waf, Column::WafClosedForm, Column::GcPagesCopied],
        Command::Replay => &[
            Column::LatencyMeanNs,
            Column::LatencyP99Ns,
            Column::LatencyP999Ns,
            Column::LatencyMaxNs,
            Column::OfferedOpsS,
            Column::ThroughputOpsS,
        ],
        Command::Bench => &[
            Column::ThroughputOpsS,
            Column::LatencyP50Ns,
            Column::LatencyP99Ns,
            Column::CommitLatencyP99Ns,
            Column::Waf,
        ],
        Command::Profile => &[],
        Command::Serve => &[
            Column::ThroughputOpsS,
            Column::LatencyMeanNs,
            Column::LatencyP99Ns,
            Column::LatencyMaxNs,
            Column::LateShare,
            Column::LatenessP99Ns,
        ],
    }
}

/// Formats the result rows of runs. `typed` are the names of the settings that the user gave. A line below
/// the table lists these, the workload, the benchmark and the device, if they are equal in all runs.
pub fn runs(table: &Table, command: Command, typed: &[&str], view: &View) -> String {
    let shown = table.columns_for_people(command);
    let found = finding(table, command).map(|finding| wrapped(&finding, view.width) + "\n");
    let mut text = found.unwrap_or_default();
    let (figures, note) = figures_and_note(table, figures(command), &shown, view);
    text += &figures;
    if table.rows.len() > 1 {
        text += &wrapped(&in_common(table, typed), view.width);
    }
    text + &note
}

/// Formats rows under `columns`. The columns that differ between the rows are first. `order` lists the most
/// important figures.
pub fn figures_of(table: &Table, order: &[Column], columns: &[Column], view: &View) -> String {
    let (figures, note) = figures_and_note(table, order, columns, view);
    figures + &note
}

/// Returns the formatted rows, and a note on the figures that are shown.
fn figures_and_note(table: &Table, order: &[Column], columns: &[Column], view: &View) -> (String, String) {
    let (chosen, kept) = chosen(table, order, columns, view);
    let comparison = Comparison::of(table);
    let shown = chosen.iter().map(|column| {
        let best = comparison.as_ref().map(|comparison| comparison.best(table, *column));
        shown(table, *column, &best.unwrap_or_else(|| vec![false; table.rows.len()]))
    });
    let shown: Vec<Shown> = shown.collect();
    let has_best = |shown: &Shown| shown.cells.iter().any(|(_, is_best)| *is_best);
    let marks = shown.iter().any(has_best);
    let width = if view.is_wide { usize::MAX } else { view.width };
    let (mut text, left_out) = fitted(shown, kept, width, view.has_colours);
    let more = table.columns().len().saturating_sub(chosen.len() - left_out);
    let mut remarks = Vec::new();
    if marks {
        remarks.push("* the best of its case".to_owned());
    }
    if more > 0 && view.columns.is_empty() && !view.is_quiet {
        remarks.push(format!("{more} more columns with --wide"));
    }
    if !remarks.is_empty() {
        text += &wrapped(&remarks.join("; "), view.width);
    }
    text += &over_seeds(table, &chosen, view);
    let note = table.note_on_fill(&chosen[..chosen.len() - left_out]).filter(|_| !view.is_quiet);
    let note = note.map_or_else(String::new, |note| format!("\n{}", wrapped(&note, view.width)));
    (text + &notes(table, view), note)
}

/// Formats the summary of runs that differ only in their seed; empty without such runs.
fn over_seeds(table: &Table, columns: &[Column], view: &View) -> String {
    let Some(Summary { heading, columns, axes }) = Summary::of(&table.rows, columns, humane) else {
        return String::new();
    };
    let shown = columns.into_iter().map(|(column, cells)| Shown {
        head: head(column).to_owned(),
        cells: cells.into_iter().map(|cell| (cell, false)).collect(),
        is_text: table.is_text(column),
    });
    let width = if view.is_wide { usize::MAX } else { view.width };
    let (text, _) = fitted(shown.collect(), axes.max(1), width, view.has_colours);
    format!("\n{}{text}", wrapped(&heading, view.width))
}

/// Returns the columns to show, and how many of the first of these are kept at any width.
fn chosen(table: &Table, order: &[Column], columns: &[Column], view: &View) -> (Vec<Column>, usize) {
    if !view.columns.is_empty() {
        let there = table.columns();
        let asked: Vec<Column> =
            view.columns.iter().copied().filter(|column| there.contains(column)).collect();
        let kept = asked.len();
        return (asked, kept);
    }
    let differs =
        |column: &Column| table.rows.iter().any(|row| row.get(*column) != table.rows[0].get(*column));
    let is_place = |column: &Column| {
        column.is_axis() || matches!(column, Column::TimeNs | Column::Transaction | Column::Group)
    };
    let all = if view.is_wide { table.columns() } else { columns.to_vec() };
    // Notes are printed below the table, not in a column.
    let all: Vec<Column> = all.into_iter().filter(|column| *column != Column::Note).collect();
    let (mut first, mut rest): (Vec<Column>, Vec<Column>) =
        all.into_iter().partition(|column| is_place(column) && differs(column));
    let kept = first.len();
    let rank = |column: &Column| order.iter().position(|known| known == column).unwrap_or(order.len());
    // Settings that all runs have in common are listed below the table, so their columns are dropped. Figures
    // stay, even if they are equal in all rows.
    rest.retain(|column| view.is_wide || !is_place(column));
    rest.sort_by_key(|column| (table.rows.len() > 1 && !differs(column), rank(column), *column));
    first.extend(rest);
    (first, kept)
}

fn shown(table: &Table, column: Column, best: &[bool]) -> Shown {
    let cell =
        |row: &fulgurite_stack::Row| row.get(column).map(|value| humane(column, value)).unwrap_or_default();
    Shown {
        head: head(column).to_owned(),
        cells: table.rows.iter().map(cell).zip(best.iter().copied()).collect(),
        is_text: table.is_text(column),
    }
}

/// Lists the settings that all runs have in common: the workload, the benchmark, the device, and those that
/// the user gave.
fn in_common(table: &Table, typed: &[&str]) -> String {
    let Some(first) = table.rows.first() else { return String::new() };
    let is_typed = |column: &Column| {
        let name = column.name();
        typed.iter().any(|setting| {
            name == *setting || name.strip_suffix("_bytes").is_some_and(|name| name == *setting)
        })
    };
    let always = [Column::Workload, Column::Benchmark, Column::Device];
    let same = Column::all().filter(|column| {
        column.is_axis()
            && table
                .rows
                .iter()
                .all(|row| row.get(*column).is_some() && row.get(*column) == first.get(*column))
    });
    let said: Vec<String> = same
        .filter(|column| always.contains(column) || is_typed(column))
        .filter_map(|column| Some(format!("{} {}", head(column), humane(column, first.get(column)?))))
        .collect();
    if said.is_empty() { String::new() } else { format!("The same in all runs: {}.\n", said.join(", ")) }
}

fn notes(table: &Table, view: &View) -> String {
    let mut notes: Vec<String> =
        table.rows.iter().map(|row| row.text(Column::Note)).filter(|note| !note.is_empty()).collect();
    notes.dedup();
    notes.iter().map(|note| format!("\n{}", wrapped(note, view.width))).collect()
}

/// Breaks a paragraph into lines of at most `width` characters.
pub fn wrapped(text: &str, width: usize) -> String {
    text.lines().flat_map(|line| broken(line, width.max(20))).map(|line| line + "\n").collect()
}

/// Formats a list of names with their meanings. All columns are kept, and long texts are broken into lines.
pub fn list(table: &Table, columns: &[Column], view: &View) -> String {
    let mut columns: Vec<Column> =
        if view.columns.is_empty() { columns.to_vec() } else { view.columns.clone() };
    // The column `kind` is omitted if all names are of one kind.
    let differs =
        |column: &Column| table.rows.iter().any(|row| row.get(*column) != table.rows[0].get(*column));
    let is_told = |column: &Column| *column == Column::Kind && !differs(column) && view.columns.is_empty();
    // Names of different kinds have only these columns in common, so the others are not shown.
    if columns.contains(&Column::Kind) && differs(&Column::Kind) && view.columns.is_empty() && !view.is_wide {
        columns.retain(|column| [Column::Kind, Column::Name, Column::About].contains(column));
    }
    let plain = vec![false; table.rows.len()];
    let shown: Vec<Shown> = columns
        .iter()
        .filter(|column| !is_told(column))
        .map(|column| shown(table, *column, &plain))
        .collect();
    let kept = shown.len();
    fitted(shown, kept, if view.is_wide { usize::MAX } else { view.width }, view.has_colours).0
}

/// Formats the transposed table, with one line per column. This suits few rows with many columns.
pub fn upright(table: &Table, columns: &[Column], view: &View) -> String {
    let there = table.columns();
    let asked = if view.columns.is_empty() { columns } else { &view.columns };
    let asked: Vec<Column> = asked.iter().copied().filter(|column| there.contains(column)).collect();
    let widest = asked.iter().map(|column| head(*column).len()).max().unwrap_or(0);
    let mut text = String::new();
    for column in asked {
        let cells = table.rows.iter().filter_map(|row| humane_in(row, column));
        let cells: Vec<String> = cells.collect();
        let room = if view.is_wide { usize::MAX } else { view.width.saturating_sub(widest + 2).max(8) };
        for (at, line) in broken(&cells.join("  "), room).iter().enumerate() {
            let name = if at == 0 { head(column) } else { "" };
            text += format!("{name:<widest$}  {line}").trim_end();
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_stack::Row;

    fn table() -> Table {
        let row = |write_back: &str, throughput: f64| {
            let mut row = Row::default();
            row.set(Column::Workload, "zipf");
            row.set(Column::Device, "p4510");
            row.set(Column::Replacement, "lru");
            row.set(Column::WriteBack, write_back);
            row.set(Column::Users, 8u64);
            row.set(Column::Frames, 6144u64);
            row.set(Column::ThroughputOpsS, throughput);
            row.set(Column::HitRatio, 0.5);
            row.set(Column::WriteIos, 100u64);
            row.set(Column::LatencyP99Ns, 2e9 / throughput);
            row
        };
        Table { rows: vec![row("single", 15_667.0), row("ace", 19_220.0)] }
    }

    fn view(width: usize) -> View {
        View { width, columns: Vec::new(), is_wide: false, is_quiet: false, has_colours: false }
    }

    #[test]
    fn differing_columns_come_first_and_common_settings_are_listed_once() {
        assert_eq!(
            runs(&table(), Command::Pool, &["workload", "users"], &view(100)),
            "ace has the highest throughput: 19.2 K/s, 22.7 % more than single, which has the lowest (15.7 K/s).\n\n\
             write_back  throughput  latency_p99  hit_ratio  write_ios\n\
             single       15.7 K/s       128 µs      50.0 %        100\n\
             ace          19.2 K/s*      104 µs*     50.0 %        100\n\
             * the best of its case; 5 more columns with --wide\n\
             The same in all runs: workload zipf, device p4510, users 8.\n"
        );
    }

    #[test]
    fn one_row_is_transposed_in_any_width() {
        let mut row = Row::default();
        row.set(Column::File, "a-trace-with-a-long-name.csv");
        row.set(Column::Requests, 39_062_500u64);
        row.set(Column::DurationNs, 7_200_000_000_000u64);
        let table = Table { rows: vec![row] };
        assert_eq!(
            upright(&table, &table.columns(), &view(80)),
            "file      a-trace-with-a-long-name.csv\nrequests  39.1 M\nduration  7200 s\n"
        );
        let narrow = upright(&table, &table.columns(), &view(26));
        assert!(narrow.lines().all(|line| line.len() <= 26), "{narrow}");
        assert!(narrow.starts_with("file      a-trace-with-a-l\n          ong-name.csv\n"), "{narrow}");
    }

    #[test]
    fn only_named_columns_are_shown() {
        let columns = vec![Column::WriteIos, Column::WriteBack];
        let text = figures_of(&table(), &[], &[], &View { columns, ..view(80) });
        assert_eq!(text, "write_ios  write_back\n      100  single\n      100  ace\n");
    }

    /// The rule: with `is_quiet` no remark below the table mentions hidden columns.
    #[test]
    fn a_quiet_table_has_no_remark_on_hidden_columns() {
        let text = |is_quiet| figures_of(&table(), &[], &[], &View { is_quiet, ..view(40) });
        assert!(text(false).ends_with("more columns with --wide\n"), "{}", text(false));
        assert!(!text(true).contains("--wide"), "{}", text(true));
    }
}
