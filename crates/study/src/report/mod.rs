//! Renders the report of a study as one self-contained HTML file, which loads nothing from the network.
//!
//! The report contains the question and the finding, the plots with their numbers, the table, and the
//! commands that repeat the study. Text and tables are plain HTML (`templates/report.html`) and need no
//! script. Our scripts draw the plots from one JSON object. The attribute `data-ready` on the body is the
//! number of plots drawn.

mod form;
mod plot;
mod automatic;
mod of_runs;

use crate::people;
use crate::seeds::Summary;
use crate::table::Table;
use askama::Template;
pub(crate) use form::Scale;
use fulgurite_stack::{Column, Row, Value};
pub use of_runs::{ReportFile, of_advice, of_drives, of_runs, of_trace};
pub(crate) use plot::{Panel, Place, Plot, PlotKind, Series};

/// The scripts of the page. `plot.js` defines functions that the others use, so it is the first.
const SCRIPT: &str = concat!(
    include_str!("../../templates/plot.js"),
    include_str!("../../templates/bars.js"),
    include_str!("../../templates/lines.js"),
    include_str!("../../templates/report.js"),
    include_str!("../../templates/table.js"),
);
const STYLE: &str = include_str!("../../templates/report.css");
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The beginning of a page of `--report`, by which an earlier one is recognised.
const BEGINNING: &str = "<!doctype html><!-- Written by fulgurite --report. -->";
/// The command whose reports have a folder with further files.
pub(crate) const STUDY: &str = "study";

/// The contents of a report.
pub(crate) struct Report<'a> {
    /// The heading of the page.
    pub title: &'a str,
    /// The command that made the page: `study`, `pool`, …
    pub command: &'a str,
    /// The study's question.
    pub question: &'a str,
    /// Whether the runs are those of the study's `quick` settings, which are smaller.
    pub is_quick: bool,
    /// The finding of the study, in one sentence with its figures.
    pub finding: &'a str,
    /// The conclusions that were checked, with their outcomes.
    pub verdicts: &'a [Verdict],
    /// Further remarks for the reader.
    pub notes: &'a [String],
    /// The plots of the study.
    pub plots: &'a [Plot],
    /// The number of plots that are left out, because a quick run shows nothing in them.
    pub plots_left_out: usize,
    /// The complete table of result rows.
    pub table: &'a Table,
    /// The columns of the table that are visible at first.
    pub columns: &'a [Column],
    /// The commands that repeat the study.
    pub repeat: &'a [String],
}

/// The outcome of checking a conclusion against the rows of a study.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The conclusion, in a sentence.
    pub says: String,
    /// Whether the conclusion holds.
    pub answer: Answer,
    /// The measured figures, and the rows in which they occur.
    pub figure: String,
    /// The reason why the conclusion does not hold, or why it was not checked. `None` if it holds, or if the
    /// study gives no reason.
    pub why: Option<String>,
    /// An injected fault that makes the check fail, in words. `None` if no injected fault does, in which case
    /// the check proves nothing.
    pub noticed: Option<String>,
}

/// The answer of a check, which says whether the conclusion holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The conclusion holds in these rows.
    Holds,
    /// The conclusion holds in these rows, but the figures are too far from the published one.
    HoldsInDirection,
    /// The conclusion does not hold in these rows.
    Fails,
    /// The conclusion was not checked, because a quick run is too short to tell.
    NotChecked,
}

impl Answer {
    /// Returns the answer in words.
    pub fn words(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::HoldsInDirection => "direction holds, size does not",
            Answer::Fails => "does not hold here",
            Answer::NotChecked => "not checked in a quick run",
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Answer::Holds => "✓",
            Answer::HoldsInDirection => "≠",
            Answer::Fails => "✗",
            Answer::NotChecked => "○",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::HoldsInDirection => "direction",
            Answer::Fails => "fails",
            Answer::NotChecked => "not-checked",
        }
    }
}

impl Verdict {
    /// Whether the conclusion holds, whatever the distance from the published figure.
    pub(crate) fn holds(&self) -> bool {
        matches!(self.answer, Answer::Holds | Answer::HoldsInDirection)
    }

    /// Whether readers get the verdict: its conclusion was checked, or its check proves nothing.
    pub fn is_told(&self) -> bool {
        self.answer != Answer::NotChecked || self.noticed.is_none()
    }
}

/// Says how many conclusions a quick run did not check; `None` if it checked all.
pub fn left_for_full_run(verdicts: &[Verdict]) -> Option<String> {
    match verdicts.iter().filter(|verdict| verdict.answer == Answer::NotChecked).count() {
        0 => None,
        1 => Some("1 conclusion needs the full run, so it was not checked.".to_owned()),
        count => Some(format!("{count} conclusions need the full run, so they were not checked.")),
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report<'a>,
    /// The columns of the complete table in their order, with their CSS classes.
    columns: Vec<(Column, String)>,
    /// The summary of runs that differ only in their seed; `None` without such runs.
    seeds: Option<Summary>,
    /// The plots as JSON.
    data: String,
}

/// Renders the report as an HTML page.
pub(crate) fn html(report: &Report<'_>) -> String {
    let plots: Vec<_> = report.plots.iter().map(Plot::json).collect();
    // Escapes `<`, because in a script element only `<` could end the data early.
    let data = serde_json::json!(plots).to_string().replace('<', "\\u003c");
    let seeds = Summary::of(&report.table.rows, report.columns, people::humane);
    let page = Page { report, columns: columns(report), seeds, data }.render();
    page.expect("a page in memory takes whatever is written")
}

/// Returns the columns of the table with their CSS classes: first those that are visible at first, then the
/// others.
fn columns(report: &Report<'_>) -> Vec<(Column, String)> {
    let is_chosen = |column: &Column| report.columns.contains(column);
    let others = report.table.columns().into_iter().filter(|column| !is_chosen(column));
    let chosen = report.columns.iter().map(|column| (*column, ""));
    chosen
        .chain(others.map(|column| (column, " more")))
        .map(|(column, more)| (column, format!("{}{more}", alignment(report, &column))))
        .collect()
}

/// Returns the CSS class of a column, which aligns its cells.
fn alignment(report: &Report<'_>, column: &Column) -> &'static str {
    if report.table.is_text(*column) { "text" } else { "number" }
}

fn text(row: &Row, column: &Column) -> String {
    match row.text(*column) {
        text if text.is_empty() => "–".to_owned(),
        text => text,
    }
}

/// Whether any cell of the table is empty.
fn has_gaps(report: &Report<'_>) -> bool {
    let columns = report.table.columns();
    report.table.rows.iter().any(|row| columns.iter().any(|column| row.text(*column).is_empty()))
}

/// Counts the verdicts that readers get.
fn told(verdicts: &[Verdict]) -> usize {
    verdicts.iter().filter(|verdict| verdict.is_told()).count()
}

/// Counts the conclusions that hold, in words.
fn tally(verdicts: &[Verdict]) -> String {
    let count = |answer| verdicts.iter().filter(|verdict| verdict.answer == answer).count();
    let in_direction = match count(Answer::HoldsInDirection) {
        0 => String::new(),
        count => format!(", {count} in direction but not in size"),
    };
    match verdicts.len() - count(Answer::NotChecked) {
        0 => "none in a quick run".to_owned(),
        checked => format!("{} of {checked} hold{in_direction}", count(Answer::Holds)),
    }
}

/// Returns the label of the y axis, including the baseline of relative values and the word for a logarithmic
/// scale.
fn measure(plot: &Plot) -> String {
    let mut text = plot.y_label.clone();
    if let Some(zero) = &plot.zero_is {
        text += &match plot.scale {
            Scale::Factor => format!(", relative to {zero}"),
            _ => format!(", change against {zero}"),
        };
    }
    if plot.log_y {
        text += ", logarithmic scale";
    }
    text
}

fn exact(row: &Row, column: &Column) -> String {
    row.get(*column).map(Value::exact).unwrap_or_default()
}

/// Splits an author's text at pairs of backquotes. The flag of a piece is true for code.
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
    // A single backquote is kept as text.
    pieces.push((false, rest));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_stack::Unit;
    use serde_json::json;

    const HOSTILE: &str = "</script><script>alert('x')</script>\"&";

    fn verdict(answer: Answer) -> Verdict {
        Verdict {
            says: HOSTILE.to_owned(),
            answer,
            figure: HOSTILE.to_owned(),
            why: Some(HOSTILE.to_owned()),
            noticed: Some(HOSTILE.to_owned()),
        }
    }

    fn plot() -> Plot {
        Plot {
            title: HOSTILE.to_owned(),
            caption: HOSTILE.to_owned(),
            kind: PlotKind::Bar,
            x_label: HOSTILE.to_owned(),
            y_label: HOSTILE.to_owned(),
            x_unit: Unit::Number,
            log_x: false,
            log_y: false,
            scale: Scale::Unit(Unit::Nanoseconds),
            expected_is: "expected",
            zero_is: Some(HOSTILE.to_owned()),
            better: None,
            is_ordered: false,
            no_value: HOSTILE.to_owned(),
            joins_gaps: false,
            colours_places: false,
            panels: vec![Panel {
                title: Some(HOSTILE.to_owned()),
                x: [HOSTILE, "b"].map(|name| Place { value: name.into(), name: name.to_owned() }).into(),
                series: vec![Series {
                    key: HOSTILE.to_owned(),
                    name: HOSTILE.to_owned(),
                    values: vec![None, Some(1_500_000.0)],
                    expected: Some(vec![Some((1.0, 2.0)), None]),
                    band: None,
                }],
            }],
        }
    }

    fn page() -> String {
        page_with(&[verdict(Answer::Fails)])
    }

    fn page_with(verdicts: &[Verdict]) -> String {
        let mut row = Row::default();
        row.set(Column::Workload, HOSTILE);
        row.set(Column::ElapsedNs, 1_500_000u64);
        row.set(Column::Seed, 42u64);
        html(&Report {
            title: HOSTILE,
            command: STUDY,
            question: &format!("{HOSTILE}\n\nsay `a<b`"),
            is_quick: true,
            finding: HOSTILE,
            verdicts,
            notes: &[HOSTILE.to_owned()],
            plots: &[plot()],
            plots_left_out: 0,
            table: &Table { rows: vec![row] },
            columns: &[Column::Workload, Column::ElapsedNs],
            repeat: &[HOSTILE.to_owned()],
        })
    }

    #[test]
    fn text_never_becomes_markup() {
        let ours = page().replace(SCRIPT, "");
        assert!(!ours.contains("alert('x')</script>"), "a name got out of its place");
        assert!(!ours.contains("<script>alert"));
        assert_eq!(ours.matches("<script").count(), 2);
        assert_eq!(ours.matches("</script>").count(), 2);
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
    fn the_page_loads_nothing_from_the_network() {
        // The namespace of SVG is only a name, which no browser loads, so it is removed before the search.
        let ours = page().replace("http://www.w3.org/2000/svg", "");
        for reference in ["src=", "href=", "url(", "@import", "fetch(", "http:", "https:"] {
            assert!(!ours.contains(reference), "{reference}");
        }
    }

    #[test]
    fn the_table_has_every_column_and_the_chosen_ones_first() {
        let page = page();
        let (elapsed, seed) = (page.find(">elapsed_ns<").unwrap(), page.find(">seed<").unwrap());
        assert!(elapsed < seed && page.contains("number more\">seed"));
        assert!(page.contains(">1.50 ms</td>"));
    }

    /// The rule: runs that differ only in their seed are summarised above the table, one line for each, and a page
    /// without such runs has no such section.
    #[test]
    fn a_page_summarises_runs_over_their_seeds() {
        let of = |placement: &str, seed: u64, waf: f64| {
            let mut row = Row::default();
            row.set(Column::Placement, placement);
            row.set(Column::Seed, seed);
            row.set(Column::Waf, waf);
            row
        };
        let page = |rows: Vec<Row>| {
            html(&Report {
                title: "gc",
                command: "gc",
                question: "",
                is_quick: false,
                finding: "",
                verdicts: &[],
                notes: &[],
                plots: &[],
                plots_left_out: 0,
                table: &Table { rows },
                columns: &[Column::Placement, Column::Seed, Column::Waf],
                repeat: &[],
            })
        };
        let rows = vec![of("none", 1, 5.0), of("none", 2, 6.0), of("dac", 1, 2.0), of("dac", 2, 2.5)];
        let summarised = page(rows.clone());
        assert!(summarised.contains("Over 2 seeds, mean ± half of the range:"));
        let lines = [("none", "5.50 ± 0.50"), ("dac", "2.25 ± 0.25")];
        for (placement, waf) in lines {
            let line = format!("<tr><td class=\"text\">{placement}</td><td class=\"number\">{waf}</td></tr>");
            assert_eq!(summarised.matches(&line).count(), 1, "{line}");
        }
        assert!(summarised.find("<h2>Over the seeds") < summarised.find("<h2>The table"));
        assert!(!page(vec![rows[0].clone(), rows[2].clone()]).contains("Over the seeds"));
    }

    #[test]
    fn an_unchecked_conclusion_does_not_count_as_failed() {
        let all = [Answer::Holds, Answer::Holds, Answer::Fails, Answer::NotChecked].map(verdict);
        assert_eq!(tally(&all), "2 of 3 hold");
        // If no conclusion was checked, "0 of 0" would read like a failure.
        assert_eq!(tally(&[verdict(Answer::NotChecked)]), "none in a quick run");
        assert_eq!(tally(&all[..1]), "1 of 1 hold");
        let direction = [Answer::Holds, Answer::HoldsInDirection, Answer::Fails].map(verdict);
        assert_eq!(tally(&direction), "1 of 3 hold, 1 in direction but not in size");
    }

    /// The rule: the page of a quick run lists no conclusion that was not checked, and says how many need the
    /// full run. It still lists one whose check proves nothing.
    #[test]
    fn a_quick_page_lists_what_it_checked() {
        let unchecked =
            |noticed| Verdict { says: "unasked".to_owned(), noticed, ..verdict(Answer::NotChecked) };
        let of = |verdicts: &[Verdict]| page_with(verdicts);
        let page = of(&[verdict(Answer::Holds), unchecked(Some("fault".to_owned()))]);
        assert!(!page.contains("unasked") && page.contains("1 conclusion needs the full run"));
        let vacuous = of(&[unchecked(None)]);
        assert!(vacuous.contains("unasked") && vacuous.contains("proves nothing"));
        assert!(!of(&[verdict(Answer::Holds)]).contains("full run"));
    }

    /// The rule: a quick page draws no line of two points, no changes that are all zero, and no series that are
    /// all equal. A single series of equal values and a change that is everywhere the same are drawn.
    #[test]
    fn a_plot_that_shows_nothing_is_recognised() {
        let of = |scale, kind, values: &[&[f64]]| {
            let mut plot = plot();
            (plot.scale, plot.kind) = (scale, kind);
            let panel = &mut plot.panels[0];
            let series = panel.series[0].clone();
            panel.x = vec![panel.x[0].clone(); values[0].len()];
            let filled = |values: &&[f64]| Series {
                values: values.iter().copied().map(Some).collect(),
                ..series.clone()
            };
            panel.series = values.iter().map(filled).collect();
            plot.shows_something()
        };
        let time = Scale::Unit(Unit::Nanoseconds);
        assert!(!of(time, PlotKind::Line, &[&[1.0, 2.0]]) && of(time, PlotKind::Line, &[&[1.0, 2.0, 3.0]]));
        assert!(!of(Scale::Change, PlotKind::Bar, &[&[0.0, 0.0004]]));
        assert!(of(Scale::Change, PlotKind::Bar, &[&[0.31, 0.31]]));
        assert!(!of(time, PlotKind::Bar, &[&[7.0], &[7.0]]) && of(time, PlotKind::Bar, &[&[7.0], &[8.0]]));
        assert!(of(time, PlotKind::Bar, &[&[7.0, 7.0]]));
    }

    /// Creates a plot of two values with their expected ranges.
    fn plot_of(scale: Scale, values: [f64; 2], expected: [(f64, f64); 2]) -> Plot {
        let mut plot = plot();
        plot.scale = scale;
        plot.panels[0].series[0].values = values.map(Some).to_vec();
        plot.panels[0].series[0].expected = Some(expected.map(Some).to_vec());
        plot
    }

    /// Returns the texts that the page's script writes into a plot: those of the values, and those of the
    /// expected values.
    fn texts(plot: &Plot) -> [serde_json::Value; 2] {
        let series = plot.json()["panels"][0]["series"][0].clone();
        [series["texts"].clone(), series["expectedTexts"].clone()]
    }

    /// Returns the cells of the table below a plot, without the columns of the panel and of the x axis.
    fn cells(plot: &Plot) -> Vec<Vec<String>> {
        plot.numbers().into_iter().map(|line| line[2..].to_vec()).collect()
    }

    /// The rule: all measured and expected numbers of a plot have one format, and all numbers of its table
    /// have one format. If a single number has a fraction, all numbers get three significant digits in the
    /// plot, and four in the table.
    #[test]
    fn all_numbers_of_a_plot_have_one_format() {
        let number = Scale::Unit(Unit::Number);
        let counts = plot_of(number, [16.0, 2000.0], [(16.0, 16.0), (1000.0, 2000.0)]);
        assert_eq!(texts(&counts), [json!(["16", "2000"]), json!(["16", "1000 to 2000"])]);
        assert_eq!(cells(&counts), [["16", "16"], ["2,000", "1,000 to 2,000"]]);
        let measured = plot_of(number, [1.0, 1.68], [(2.0, 2.0), (1.0, 2000.0)]);
        assert_eq!(texts(&measured), [json!(["1.00", "1.68"]), json!(["2.00", "1.00 to 2000"])]);
        assert_eq!(cells(&measured), [["1.000", "2.000"], ["1.680", "1.000 to 2,000"]]);
        let published = plot_of(number, [16.0, 2000.0], [(16.5, 16.5), (2000.0, 2000.0)]);
        assert_eq!(texts(&published), [json!(["16.0", "2000"]), json!(["16.5", "2000"])]);
        let times = plot_of(Scale::Unit(Unit::Nanoseconds), [134_000.0, 2e9], [(1e6, 1e6), (1e6, 2e6)]);
        assert_eq!(texts(&times), [json!(["134 µs", "2.00 s"]), json!(["1.00 ms", "1.00 ms to 2.00 ms"])]);
    }

    /// The rule: for changes and for factors the page receives the texts of the numbers, the format of the
    /// axis, and the baseline. The script itself contains no format.
    #[test]
    fn the_page_receives_the_format_of_changes_and_factors() {
        let of = |scale| {
            let plot = plot_of(scale, [0.12, 1.95], [(-0.05, -0.05), (0.0, 1.0)]);
            let told = plot.json();
            (texts(&plot), told["yAxis"].clone(), told["isOfChanges"].clone(), measure(&plot))
        };
        let label = HOSTILE;
        assert_eq!(
            of(Scale::Change),
            (
                [json!(["+12.0 %", "+195 %"]), json!(["−5.0 %", "0.0 % to +100 %"])],
                json!({ "times": 100.0, "plus": 0.0, "isSigned": true, "units": [[0.0, 1.0, " %"]] }),
                json!(true),
                format!("{label}, change against {label}"),
            )
        );
        assert_eq!(
            of(Scale::Factor),
            (
                [json!(["1.12×", "2.95×"]), json!(["0.950×", "1.00× to 2.00×"])],
                json!({ "times": 1.0, "plus": 1.0, "isSigned": false, "units": [[0.0, 1.0, "×"]] }),
                json!(true),
                format!("{label}, relative to {label}"),
            )
        );
        let (shares, axis, is_of_changes, _) = of(Scale::Share);
        assert_eq!(shares[0], json!(["12.0 %", "195.0 %"]));
        assert_eq!((&axis["isSigned"], is_of_changes), (&json!(false), json!(false)));
        for form in ["=== \"factor\"", "=== \"change\"", "×", "\" %\""] {
            assert!(!SCRIPT.contains(form), "the script has a rule of its own for {form}");
        }
    }
}
