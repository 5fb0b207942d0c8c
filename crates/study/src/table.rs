//! Defines the result of every command: a table of flat rows, and its formats for programs and pipes. All
//! columns have one fixed order. A table has each column in which at least one row has a value.

use crate::seeds::{Summary, varying_axes};
use fulgurite_stack::{Column, Command, Row, Value};
use serde_json::{Map, Number};
use std::fmt::Write as _;

/// The result rows of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The result rows, in the order of the runs.
    pub rows: Vec<Row>,
}

impl Table {
    /// Returns the columns in which at least one row has a value, in their fixed order.
    pub fn columns(&self) -> Vec<Column> {
        Column::all().filter(|column| self.rows.iter().any(|row| row.get(*column).is_some())).collect()
    }

    /// Returns the axes whose values differ between the rows.
    pub(crate) fn varying_axes(&self) -> impl Iterator<Item = Column> {
        varying_axes(&self.rows)
    }

    /// Returns the default columns for the rows of `command`: its main columns, and the axes that differ
    /// between the rows.
    pub fn columns_for_people(&self, command: Command) -> Vec<Column> {
        self.columns_first(|column| column.is_shown_by(command))
    }

    /// Returns the columns of the table that `is_main` selects, and the axes that differ between the rows.
    pub fn columns_first(&self, is_main: impl Fn(Column) -> bool) -> Vec<Column> {
        let axes: Vec<Column> = self.varying_axes().collect();
        self.columns().into_iter().filter(|column| is_main(*column) || axes.contains(column)).collect()
    }

    /// Returns the same rows with only these columns, or with all columns if `columns` is empty.
    pub fn with_columns(&self, columns: &[Column]) -> Table {
        let mut table = self.clone();
        if !columns.is_empty() {
            table.rows.iter_mut().for_each(|row| row.keep(columns));
        }
        table
    }

    /// Returns the rows as one JSON array of flat objects, with one object per line.
    pub fn to_json(&self) -> String {
        let rows: Vec<String> = self.json_rows().collect();
        if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
    }

    /// Returns the rows as JSON lines, with one object per row.
    pub(crate) fn to_json_lines(&self) -> String {
        self.json_rows().map(|row| row + "\n").collect()
    }

    fn json_rows(&self) -> impl Iterator<Item = String> {
        let columns = self.columns();
        self.rows.iter().map(move |row| {
            let cells =
                columns.iter().filter_map(|column| Some((column.name().to_owned(), json(row.get(*column)?))));
            serde_json::Value::Object(cells.collect::<Map<_, _>>()).to_string()
        })
    }

    /// Returns the rows as CSV with a header, as in RFC 4180.
    pub fn to_csv(&self) -> String {
        let columns = self.columns();
        if columns.is_empty() {
            // Avoids the CSV library, which would write a line with an empty cell for a table without
            // columns.
            return "\n".to_owned();
        }
        let mut csv = csv::Writer::from_writer(Vec::new());
        let whole = "rows of one length are written into memory";
        csv.write_record(columns.iter().map(|column| column.name())).expect(whole);
        for row in &self.rows {
            let cells = columns.iter().map(|column| row.get(*column).map(Value::exact).unwrap_or_default());
            csv.write_record(cells).expect(whole);
        }
        String::from_utf8(csv.into_inner().expect(whole)).expect("cells are text")
    }

    /// Returns an aligned table of `columns` for people. Text is aligned left and numbers right. Below the table
    /// are the summary of runs that differ only in their seed, and the notes.
    pub fn to_text(&self, columns: &[Column]) -> String {
        let cells: Vec<Vec<String>> =
            std::iter::once(columns.iter().map(|column| column.name().to_owned()).collect())
                .chain(self.rows.iter().map(|row| columns.iter().map(|column| row.text(*column)).collect()))
                .collect();
        let is_text: Vec<bool> = columns.iter().map(|column| self.is_text(*column)).collect();
        let mut text = aligned(&cells, &is_text);
        text += &self.over_seeds(columns);
        let mut notes: Vec<String> =
            self.rows.iter().map(|row| row.text(Column::Note)).filter(|note| !note.is_empty()).collect();
        notes.dedup();
        for note in notes {
            text += &format!("\n{note}\n");
        }
        text
    }

    /// Returns the summary of runs that differ only in their seed; empty without such runs.
    fn over_seeds(&self, columns: &[Column]) -> String {
        let Some(summary) = Summary::of(&self.rows, columns, |_, value| value.readable()) else {
            return String::new();
        };
        let lines = summary.columns[0].1.len();
        let head = summary.columns.iter().map(|(column, _)| column.name().to_owned()).collect();
        let line = |at: usize| summary.columns.iter().map(|(_, cells)| cells[at].clone()).collect();
        let cells: Vec<Vec<String>> = std::iter::once(head).chain((0..lines).map(line)).collect();
        let is_text: Vec<bool> = summary.columns.iter().map(|(column, _)| self.is_text(*column)).collect();
        format!("\n{}\n{}", summary.heading, aligned(&cells, &is_text))
    }

    /// Returns a note if `columns` show the write amplification of runs that wrote the drive less than once.
    pub fn note_on_fill(&self, columns: &[Column]) -> Option<String> {
        const OF_COLLECTION: [Column; 6] = [
            Column::Waf,
            Column::DriveWaf,
            Column::LayerWaf,
            Column::LifetimeBytesWritten,
            Column::LifetimeDwpd5y,
            Column::LifetimeYearsAtThisRate,
        ];
        let least = self.rows.iter().filter(|row| row.get(Column::Waf).is_some());
        let least = least.filter_map(|row| row.number(Column::DriveWrites)).min_by(f64::total_cmp)?;
        let is_shown = columns.iter().any(|column| OF_COLLECTION.contains(column));
        (is_shown && least < 1.0).then(|| {
            format!(
                "waf and lifetime belong to what the drive held before, not to the workload, where a run wrote the \
                 drive less than once (drive_writes {}); more --ops, or replay's --until-steady, changes that",
                Value::Real(least).readable()
            )
        })
    }

    /// Returns the transposed table, with one line per column. This suits few rows with many columns.
    pub fn to_upright_text(&self, columns: &[Column]) -> String {
        let line = |column: &Column| {
            std::iter::once(column.name().to_owned())
                .chain(self.rows.iter().map(|row| row.text(*column)))
                .collect()
        };
        let cells: Vec<Vec<String>> = columns.iter().map(line).collect();
        let mut is_text = vec![false; self.rows.len() + 1];
        is_text[0] = true;
        aligned(&cells, &is_text)
    }

    /// Whether a column contains names instead of numbers.
    pub(crate) fn is_text(&self, column: Column) -> bool {
        self.rows.iter().any(|row| matches!(row.get(column), Some(Value::Text(_))))
    }
}

/// Converts a cell to JSON. A number that is not finite becomes null.
pub(crate) fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.clone().into(),
        Value::Integer(integer) => (*integer).into(),
        Value::Real(real) => Number::from_f64(*real).map_or(serde_json::Value::Null, Into::into),
    }
}

/// Aligns cells in columns: text columns to the left, numbers to the right.
fn aligned(cells: &[Vec<String>], is_text: &[bool]) -> String {
    // The width counts characters and not bytes, because `µ` and `–` take several bytes.
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..is_text.len()).map(width).collect();
    let mut text = String::new();
    for row in cells {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let width = widths[at];
            let _ =
                if is_text[at] { write!(line, "{cell:<width$}  ") } else { write!(line, "{cell:>width$}  ") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut first = Row::default();
        first.set(Column::Alpha, 2.8166);
        first.set(Column::Device, "p4510:channels=4,op=7%");
        first.set(Column::Ops, 1_000_000u64);
        let mut second = Row::default();
        second.set(Column::Device, "sata");
        second.set(Column::Ops, 5u64);
        Table { rows: vec![first, second] }
    }

    #[test]
    fn columns_keep_the_common_order() {
        assert_eq!(table().columns(), [Column::Device, Column::Ops, Column::Alpha]);
    }

    #[test]
    fn all_formats_have_the_same_values() {
        let table = table();
        assert_eq!(table.to_csv(), "device,ops,alpha\n\"p4510:channels=4,op=7%\",1000000,2.8166\nsata,5,\n");
        assert_eq!(table.to_json_lines().lines().nth(1), Some(r#"{"device":"sata","ops":5}"#));
        let parsed: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        assert_eq!(parsed[0]["alpha"], 2.8166);
        assert_eq!(
            table.to_text(&table.columns()),
            "device                        ops  alpha\n\
             p4510:channels=4,op=7%  1,000,000  2.817\n\
             sata                            5\n"
        );
    }
}
