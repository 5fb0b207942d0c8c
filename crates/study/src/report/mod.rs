//! The report: one HTML file that carries everything it needs and asks the network for nothing.
//!
//! It says what was asked and what was found, shows the plots, each with its numbers under it, and the table, and says
//! how to repeat the study. Text and tables are plain HTML (`templates/report.html`), so they are there without scripts
//! too. ECharts draws the plots from one JSON object; `data-ready` on the body says how many it has drawn.

use crate::table::{Table, json};
use askama::Template;
use fulgurite_stack::{Column, Row, Unit, Value};

const ECHARTS: &str = include_str!(env!("FULGURITE_ECHARTS"));
const SCRIPT: &str = include_str!("../../templates/report.js");
const STYLE: &str = include_str!("../../templates/report.css");
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a report says.
pub struct Report<'a> {
    /// Its heading.
    pub title: &'a str,
    /// What was asked, in a paragraph.
    pub question: &'a str,
    /// What was found, in one sentence with its number.
    pub finding: &'a str,
    /// Conclusions and whether they hold.
    pub verdicts: &'a [Verdict],
    /// What a reader must know besides.
    pub notes: &'a [String],
    /// The pictures.
    pub plots: &'a [Plot],
    /// Every row and column.
    pub table: &'a Table,
    /// The columns to show before the others are asked for.
    pub columns: &'a [Column],
    /// Commands that repeat the study.
    pub repeat: &'a [String],
}

/// Whether a conclusion holds in a study's rows.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The conclusion, in a sentence.
    pub says: String,
    /// Whether it does.
    pub holds: bool,
    /// What was measured, and where.
    pub figure: String,
}

/// A picture.
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Its shape.
    pub kind: PlotKind,
    /// The quantity on the x axis.
    pub x_label: String,
    /// The quantity on the y axis, without its unit.
    pub y_label: String,
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Whether the y axis is logarithmic.
    pub log_y: bool,
    /// What the values of y are, so that they are written readably.
    pub unit: Unit,
    /// The same for x.
    pub x_unit: Unit,
    /// Where expected values come from, in a word.
    pub expected_is: &'static str,
    /// A value of y to draw a line at, which everything is compared with.
    pub reference: Option<f64>,
    /// The places on the x axis.
    pub x: Vec<Value>,
    /// What is drawn over them.
    pub series: Vec<Series>,
}

/// The shape of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotKind {
    /// Groups of bars over names.
    Bar,
    /// Lines over numbers.
    Line,
    /// Bars on one another.
    Stack,
    /// A coloured field for every x and series.
    HeatMap,
}

impl PlotKind {
    fn name(self) -> &'static str {
        match self {
            PlotKind::Bar => "bar",
            PlotKind::Line => "line",
            PlotKind::Stack => "stack",
            PlotKind::HeatMap => "heatmap",
        }
    }
}

/// The unit's name in the page's script.
fn script_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Name | Unit::Number => "number",
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytesPerSecond",
    }
}

/// One line, or the bars of one colour.
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// A value for every x, where there is one.
    pub values: Vec<Option<f64>>,
    /// The same for what theory says, or a paper.
    pub expected: Option<Vec<Option<f64>>>,
}

impl Plot {
    /// The table under the picture: a place on the x axis, and what every series has there.
    fn numbers(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        self.x.iter().enumerate().map(|(row, x)| {
            let columns =
                self.series.iter().flat_map(|series| [Some(&series.values), series.expected.as_ref()]);
            let text = |value: Option<f64>| value.map(|value| self.unit.humane(value)).unwrap_or_default();
            (x.readable(), columns.flatten().map(|values| text(values[row])).collect())
        })
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report<'a>,
    /// The columns of the full table in the order in which they are shown, and their classes.
    columns: Vec<(Column, String)>,
    /// The plots as JSON.
    data: String,
}

/// The whole page.
pub fn html(report: &Report<'_>) -> String {
    let plots: Vec<_> = report.plots.iter().map(plot_json).collect();
    // Inside a script element only `<` could end the data early.
    let data = serde_json::json!(plots).to_string().replace('<', "\\u003c");
    // The chart library is most of the page.
    let mut page = String::with_capacity(ECHARTS.len() + (64 << 10));
    let rendered = Page { report, columns: columns(report), data }.render_into(&mut page);
    rendered.expect("a page in memory takes whatever is written");
    page
}

/// The chosen columns, then the others.
fn columns(report: &Report<'_>) -> Vec<(Column, String)> {
    let is_chosen = |column: &Column| report.columns.contains(column);
    let others = report.table.columns().into_iter().filter(|column| !is_chosen(column));
    let chosen = report.columns.iter().map(|column| (*column, ""));
    let alignment = |column| if report.table.is_text(column) { "text" } else { "number" };
    chosen
        .chain(others.map(|column| (column, " more")))
        .map(|(column, more)| (column, format!("{}{more}", alignment(column))))
        .collect()
}

fn text(row: &Row, column: &Column) -> String {
    row.text(*column)
}

fn exact(row: &Row, column: &Column) -> String {
    row.get(*column).map(Value::exact).unwrap_or_default()
}

fn plot_json(plot: &Plot) -> serde_json::Value {
    let series: Vec<_> = plot
        .series
        .iter()
        .map(|series| serde_json::json!({ "name": series.name, "values": series.values, "expected": series.expected }))
        .collect();
    serde_json::json!({
        "kind": plot.kind.name(),
        "expectedIs": plot.expected_is,
        "xUnit": script_name(plot.x_unit),
        "xLabel": plot.x_label,
        "yLabel": plot.y_label,
        "logX": plot.log_x,
        "logY": plot.log_y,
        "unit": script_name(plot.unit),
        "reference": plot.reference,
        "x": plot.x.iter().map(json).collect::<Vec<_>>(),
        "series": series,
    })
}

/// Text of a study's author in pieces, and whether each is code: what stands between a pair of backquotes is.
fn pieces(text: &str) -> Vec<(bool, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, code, after)) = rest
        .split_once('`')
        .and_then(|(before, opened)| opened.split_once('`').map(|(code, after)| (before, code, after)))
    {
        pieces.extend([(false, before), (true, code)]);
        rest = after;
    }
    // A backquote without its pair stays what it is.
    pieces.push((false, rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><script>alert('x')</script>\"&";

    fn page() -> String {
        let mut row = Row::default();
        row.set(Column::Workload, HOSTILE);
        row.set(Column::ElapsedNs, 1_500_000u64);
        row.set(Column::Seed, 42u64);
        let plot = Plot {
            title: HOSTILE.to_owned(),
            caption: HOSTILE.to_owned(),
            kind: PlotKind::Bar,
            x_label: HOSTILE.to_owned(),
            y_label: HOSTILE.to_owned(),
            x_unit: Unit::Number,
            log_x: false,
            log_y: false,
            unit: Unit::Nanoseconds,
            expected_is: "expected",
            reference: None,
            x: vec![HOSTILE.into()],
            series: vec![Series {
                name: HOSTILE.to_owned(),
                values: vec![Some(1_500_000.0)],
                expected: None,
            }],
        };
        html(&Report {
            title: HOSTILE,
            question: &format!("{HOSTILE}\n\nsay `a<b`"),
            finding: HOSTILE,
            verdicts: &[Verdict { says: HOSTILE.to_owned(), holds: true, figure: HOSTILE.to_owned() }],
            notes: &[HOSTILE.to_owned()],
            plots: &[plot],
            table: &Table { rows: vec![row] },
            columns: &[Column::Workload, Column::ElapsedNs],
            repeat: &[HOSTILE.to_owned()],
        })
    }

    #[test]
    fn text_never_becomes_markup() {
        let ours = page().replace(ECHARTS, "").replace(SCRIPT, "");
        assert!(!ours.contains("alert('x')</script>"), "a name got out of its place");
        assert!(!ours.contains("<script>alert"));
        assert_eq!(ours.matches("<script").count(), 3);
        assert_eq!(ours.matches("</script>").count(), 3);
    }

    #[test]
    fn names_in_backquotes_are_set_as_code() {
        assert_eq!(
            pieces("`a` and `c`"),
            [(false, ""), (true, "a"), (false, " and "), (true, "c"), (false, "")]
        );
        assert_eq!(pieces("an odd `x` ` here"), [(false, "an odd "), (true, "x"), (false, " ` here")]);
        assert!(page().contains("<p class=\"question\">say <code>a&#60;b</code></p>"));
    }

    #[test]
    fn nothing_is_asked_of_the_network() {
        let ours = page().replace(ECHARTS, "");
        for reference in ["src=", "href=", "url(", "@import", "fetch(", "http:", "https:"] {
            assert!(!ours.contains(reference), "{reference}");
        }
    }

    #[test]
    fn every_column_is_there_and_the_chosen_ones_come_first() {
        let page = page();
        let (elapsed, seed) = (page.find(">elapsed_ns<").unwrap(), page.find(">seed<").unwrap());
        assert!(elapsed < seed && page.contains("number more\">seed"));
        assert!(page.contains("<td class=\"number\">1.500 ms</td>"));
    }
}
