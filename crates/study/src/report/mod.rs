//! The report: one HTML file that carries everything it needs and asks the network for nothing.
//!
//! What was asked, what was found, the plots, each with its numbers under it, the table, and how to
//! repeat it. Text and tables are plain HTML, so they are there without scripts too; ECharts draws the
//! plots from one JSON object, and `data-ready` on the body says how many it has drawn.

use crate::table::Table;
use fulgurite_stack::{Column, Unit, Value};
use serde_json::json;
use std::fmt::Write as _;

const ECHARTS: &str = include_str!(env!("FULGURITE_ECHARTS"));
const SCRIPT: &str = include_str!("report.js");
const STYLE: &str = include_str!("report.css");

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

/// The whole page.
pub fn html(report: &Report<'_>) -> String {
    let mut page = String::with_capacity(ECHARTS.len() + (64 << 10));
    let title = escape(report.title);
    let _ = write!(
        page,
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<meta name="generator" content="fulgurite {version}">
<title>{title}</title>
<style>
{STYLE}</style>
</head>
<body data-plots="{plots}">
<header>
<p class="brand">Fulgurite study <button type="button" id="theme" hidden>Dark</button></p>
<h1>{title}</h1>
</header>
<main>
"#,
        version = env!("CARGO_PKG_VERSION"),
        plots = report.plots.len(),
    );
    for paragraph in report.question.split("\n\n") {
        let _ = writeln!(page, "<p class=\"question\">{}</p>", prose(paragraph.trim()));
    }
    if !report.finding.is_empty() {
        let _ = writeln!(page, "<p class=\"finding\"><strong>Found.</strong> {}</p>", escape(report.finding));
    }
    verdicts(&mut page, report.verdicts);
    page += "<noscript><p>The plots need JavaScript; their numbers stand in the tables under them.</p></noscript>\n";
    for (at, plot) in report.plots.iter().enumerate() {
        figure(&mut page, at, plot);
    }
    full_table(&mut page, report);
    page += "<section>\n<h2>What to know</h2>\n<ul>\n";
    for note in report.notes {
        let _ = writeln!(page, "<li>{}</li>", escape(note));
    }
    page += "</ul>\n</section>\n<section>\n<h2>How to repeat it</h2>\n<pre><code>";
    for command in report.repeat {
        let _ = writeln!(page, "{}", escape(command));
    }
    let _ = write!(
        page,
        "</code></pre>\n<p>Beside this page lie <code>study.toml</code>, what was run, and <code>table.csv</code> and \
         <code>table.jsonl</code>, every row with every column. Made by fulgurite {}.</p>\n</section>\n</main>\n",
        env!("CARGO_PKG_VERSION")
    );
    let plots: Vec<_> = report.plots.iter().map(plot_json).collect();
    // Inside a script element only `<` could end the data early.
    let data = json!(plots).to_string().replace('<', "\\u003c");
    let _ = write!(
        page,
        "<script type=\"application/json\" id=\"plots\">{data}</script>\n<script>\n{ECHARTS}\n</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    page
}

fn verdicts(page: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    page.push_str("<section>\n<h2>Conclusions, checked</h2>\n<ul class=\"verdicts\">\n");
    for verdict in verdicts {
        let (class, sign) =
            if verdict.holds { ("holds", "✓ holds") } else { ("fails", "✗ does not hold here") };
        let _ = writeln!(
            page,
            "<li class=\"{class}\"><span class=\"sign\">{sign}</span> {} <span class=\"figure\">{}.</span></li>",
            escape(&verdict.says),
            escape(&verdict.figure)
        );
    }
    page.push_str("</ul>\n</section>\n");
}

fn figure(page: &mut String, at: usize, plot: &Plot) {
    let _ = write!(
        page,
        "<figure>\n<h2>{}</h2>\n<div class=\"plot\" id=\"plot-{at}\" role=\"img\" aria-label=\"{}\"></div>\n\
         <figcaption>{}</figcaption>\n<details><summary>The numbers</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>{}</th>",
        escape(&plot.title),
        escape(&format!("{}: {} over {}", plot.title, plot.y_label, plot.x_label)),
        prose(&plot.caption),
        escape(&plot.x_label)
    );
    for series in &plot.series {
        let _ = write!(page, "<th class=\"number\">{}</th>", escape(&series.name));
        if series.expected.is_some() {
            let _ = write!(page, "<th class=\"number\">{}, {}</th>", escape(&series.name), plot.expected_is);
        }
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (row, x) in plot.x.iter().enumerate() {
        let _ = write!(page, "<tr><th>{}</th>", escape(&x.readable()));
        for values in
            plot.series.iter().flat_map(|series| [Some(&series.values), series.expected.as_ref()]).flatten()
        {
            let text = values[row].map(|value| plot.unit.humane(value)).unwrap_or_default();
            let _ = write!(page, "<td class=\"number\">{}</td>", escape(&text));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div></details>\n</figure>\n");
}

fn full_table(page: &mut String, report: &Report<'_>) {
    let others = report.table.columns().into_iter().filter(|column| !report.columns.contains(column));
    let columns: Vec<(Column, &str)> = report
        .columns
        .iter()
        .map(|column| (*column, ""))
        .chain(others.map(|column| (column, " more")))
        .collect();
    page.push_str(
        "<section>\n<h2>The table</h2>\n<p class=\"tools\">A click on a heading sorts. \
         <button type=\"button\" id=\"columns\" hidden>Show every column</button></p>\n\
         <div class=\"scroll\"><table id=\"table\">\n<thead><tr>",
    );
    for (column, class) in &columns {
        let _ = write!(page, "<th class=\"{}{class}\">{}</th>", alignment(report.table, *column), column);
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &report.table.rows {
        page.push_str("<tr>");
        for (column, class) in &columns {
            let exact = row.get(*column).map(Value::exact).unwrap_or_default();
            let align = alignment(report.table, *column);
            let _ = write!(
                page,
                "<td class=\"{align}{class}\" data-value=\"{}\">{}</td>",
                escape(&exact),
                escape(&row.text(*column))
            );
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn alignment(table: &Table, column: Column) -> &'static str {
    if table.is_text(column) { "text" } else { "number" }
}

fn plot_json(plot: &Plot) -> serde_json::Value {
    let series: Vec<_> = plot
        .series
        .iter()
        .map(|series| json!({ "name": series.name, "values": series.values, "expected": series.expected }))
        .collect();
    json!({
        "kind": plot.kind.name(),
        "expectedIs": plot.expected_is,
        "xUnit": script_name(plot.x_unit),
        "xLabel": plot.x_label,
        "yLabel": plot.y_label,
        "logX": plot.log_x,
        "logY": plot.log_y,
        "unit": script_name(plot.unit),
        "reference": plot.reference,
        "x": plot.x.iter().map(crate::table::json).collect::<Vec<_>>(),
        "series": series,
    })
}

/// Text of a study's author: what stands between a pair of backquotes is set as code.
fn prose(text: &str) -> String {
    let pieces: Vec<&str> = text.split('`').collect();
    // Without its pair the last backquote is one.
    let pairs = (pieces.len() - 1) / 2 * 2;
    let mut set = escape(pieces[0]);
    for (at, piece) in pieces.iter().enumerate().skip(1) {
        set += match at {
            _ if at > pairs => "`",
            _ if at % 2 == 1 => "<code>",
            _ => "</code>",
        };
        set += &escape(piece);
    }
    set
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_stack::Row;

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
            question: HOSTILE,
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
        assert_eq!(prose("`a<b` and `c`"), "<code>a&lt;b</code> and <code>c</code>");
        assert_eq!(prose("an odd `x` ` here"), "an odd <code>x</code> ` here");
        assert_eq!(prose(""), "");
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
