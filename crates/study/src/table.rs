//! The result of every command: a table of flat rows. Columns come in one fixed order, and a column is
//! there if any row has it.

use fulgurite_stack::{Column, Command, Row, Value};
use serde_json::{Map, Number};
use std::fmt::Write as _;

/// Rows under common columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The rows, in the order of the runs.
    pub rows: Vec<Row>,
}

impl Table {
    /// The columns that any row has, in order.
    pub fn columns(&self) -> Vec<Column> {
        Column::all().filter(|column| self.rows.iter().any(|row| row.get(*column).is_some())).collect()
    }

    /// The columns that tell the rows apart.
    pub fn varying_axes(&self) -> impl Iterator<Item = Column> {
        Column::all()
            .filter(|column| column.is_axis())
            .filter(|column| self.rows.iter().any(|row| row.get(*column) != self.rows[0].get(*column)))
    }

    /// What to show people first of the rows of `command`: its main columns, and the columns that tell one run from
    /// another.
    pub fn columns_for_people(&self, command: Command) -> Vec<Column> {
        self.columns_first(|column| column.is_shown_by(command))
    }

    /// The columns that the table has and `is_main` wants, and those that tell the rows apart.
    pub fn columns_first(&self, is_main: impl Fn(Column) -> bool) -> Vec<Column> {
        let axes: Vec<Column> = self.varying_axes().collect();
        self.columns().into_iter().filter(|column| is_main(*column) || axes.contains(column)).collect()
    }

    /// The same rows with these columns alone; with all where none is named.
    pub fn with_columns(&self, columns: &[Column]) -> Table {
        let mut table = self.clone();
        if !columns.is_empty() {
            table.rows.iter_mut().for_each(|row| row.keep(columns));
        }
        table
    }

    /// One JSON array of flat objects, a row a line.
    pub fn to_json(&self) -> String {
        let rows: Vec<String> = self.json_rows().collect();
        if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
    }

    /// JSON lines: an object a row.
    pub fn to_json_lines(&self) -> String {
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

    /// CSV with a header, RFC 4180.
    pub fn to_csv(&self) -> String {
        let columns = self.columns();
        if columns.is_empty() {
            // The library would write a line of one empty cell.
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

    /// An aligned table of `columns` for people; text to the left, numbers to the right, notes
    /// underneath.
    pub fn to_text(&self, columns: &[Column]) -> String {
        let cells: Vec<Vec<String>> =
            std::iter::once(columns.iter().map(|column| column.name().to_owned()).collect())
                .chain(self.rows.iter().map(|row| columns.iter().map(|column| row.text(*column)).collect()))
                .collect();
        let is_text: Vec<bool> = columns.iter().map(|column| self.is_text(*column)).collect();
        let mut text = aligned(&cells, &is_text);
        let mut notes: Vec<String> =
            self.rows.iter().map(|row| row.text(Column::Note)).filter(|note| !note.is_empty()).collect();
        notes.dedup();
        for note in notes {
            text += &format!("\n{note}\n");
        }
        text
    }

    /// The same turned round: a line for every column. For few rows with many columns.
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

    /// Whether a column holds names rather than numbers.
    pub fn is_text(&self, column: Column) -> bool {
        self.rows.iter().any(|row| matches!(row.get(column), Some(Value::Text(_))))
    }
}

/// A cell as JSON; a number that is not finite is null.
pub(crate) fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Text(text) => text.clone().into(),
        Value::Integer(integer) => (*integer).into(),
        Value::Real(real) => Number::from_f64(*real).map_or(serde_json::Value::Null, Into::into),
    }
}

/// Cells under each other, those of a text column to the left.
fn aligned(cells: &[Vec<String>], is_text: &[bool]) -> String {
    // Width counts characters, because `µ` and `–` have several bytes.
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
    fn every_form_says_the_same() {
        let table = table();
        assert_eq!(table.to_csv(), "device,ops,alpha\n\"p4510:channels=4,op=7%\",1000000,2.8166\nsata,5,\n");
        assert_eq!(table.to_json_lines().lines().nth(1), Some(r#"{"device":"sata","ops":5}"#));
        let parsed: serde_json::Value = serde_json::from_str(&table.to_json()).unwrap();
        assert_eq!(parsed[0]["alpha"], 2.8166);
        assert_eq!(
            table.to_text(&table.columns()),
            "device                        ops  alpha\np4510:channels=4,op=7%  1,000,000  2.817\nsata                            5\n"
        );
    }
}
