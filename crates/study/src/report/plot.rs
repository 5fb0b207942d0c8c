//! Represents a plot as data, which is the input of the page's script and of the table below the plot.

use super::form::{Form, Scale};
use crate::change;
use fulgurite_stack::{Unit, Value};
use serde_json::json;
use std::cmp::Ordering;

/// A plot with its labels and values.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The title, a sentence that says what the plot shows.
    pub title: String,
    /// The caption, which says how to read the plot.
    pub caption: String,
    /// The type of the plot.
    pub kind: PlotKind,
    /// The label of the x axis.
    pub x_label: String,
    /// The label of the y axis, without the unit.
    pub y_label: String,
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Whether the y axis is logarithmic.
    pub log_y: bool,
    /// The quantity that y values express, which decides their format.
    pub scale: Scale,
    /// The unit of x values.
    pub x_unit: Unit,
    /// The source of the expected values, in one word.
    pub expected_is: &'static str,
    /// The name of the baseline of relative values; `None` if the values are not relative.
    pub zero_is: Option<String>,
    /// The direction in which y values improve: `Greater` if more is better. `None` if no value is better
    /// than another.
    pub better: Option<Ordering>,
    /// Whether the order of the places on the x axis has a meaning. Otherwise the places are sorted by value.
    pub is_ordered: bool,
    /// The sentence that says why a place has no value.
    pub no_value: String,
    /// Whether a line continues over places at which it has no value.
    pub joins_gaps: bool,
    /// Whether each place has a colour of its own, instead of each series.
    pub colours_places: bool,
    /// The panels, which are side by side and have the same scale.
    pub panels: Vec<Panel>,
}

/// One panel of a plot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panel {
    /// The title of the panel; `None` if the plot has a single panel.
    pub title: Option<String>,
    /// The places on the x axis.
    pub x: Vec<Place>,
    /// The lines, or the groups of bars with one colour, over the places.
    pub series: Vec<Series>,
}

/// A position on the x axis that has values.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The value of the x axis's column at this place.
    pub value: Value,
    /// The label of the place on the page.
    pub name: String,
}

/// One line, or the bars of one colour.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// The exact name of the series. Series with the same key have the same colour in the whole report.
    pub key: String,
    /// The label of the series on the page.
    pub name: String,
    /// One value per place; `None` for a place without a value.
    pub values: Vec<Option<f64>>,
    /// The expected range of each value, from theory or from a publication; `None` if nothing is expected.
    pub expected: Option<Vec<Option<(f64, f64)>>>,
    /// The interval of each estimated value, which a line has as a band; `None` if the values are exact.
    pub band: Option<Vec<Option<(f64, f64)>>>,
}

/// The types of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlotKind {
    /// Horizontal bars, one place below the other.
    Bar,
    /// Lines over places that are numbers.
    Line,
    /// Stacked bars.
    Stack,
    /// One coloured cell for each place and series.
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

impl Plot {
    /// Returns the headings of the table below the plot.
    pub(crate) fn heads(&self) -> Vec<String> {
        let panels = self.panels.iter().any(|panel| panel.title.is_some()).then(String::new);
        let series = self.panels.first().map_or(&[][..], |panel| &panel.series);
        let named = series.iter().flat_map(|series| {
            let expected = series.expected.as_ref().map(|_| format!("{}, {}", series.name, self.expected_is));
            let band = series.band.as_ref().map(|_| format!("{}, 95 % interval", series.name));
            [Some(series.name.clone()), expected, band].into_iter().flatten()
        });
        panels.into_iter().chain([self.x_label.clone()]).chain(named).collect()
    }

    /// Returns the table below the plot, which has one line for each place with the values of all series.
    pub(crate) fn numbers(&self) -> Vec<Vec<String>> {
        let form = self.form();
        let lines = |panel: &Panel| -> Vec<Vec<String>> {
            (0..panel.x.len()).map(move |at| line(form, panel, at)).collect()
        };
        self.panels.iter().flat_map(lines).collect()
    }

    /// Whether any place has no value.
    pub(crate) fn has_gaps(&self) -> bool {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        series.flat_map(|series| &series.values).any(Option::is_none)
    }

    /// Whether a reader can see anything in the plot. A line needs three places. Changes that all round to
    /// zero show nothing, nor do several series with equal values.
    pub(crate) fn shows_something(&self) -> bool {
        if self.kind == PlotKind::Line && self.panels.iter().all(|panel| panel.x.len() < 3) {
            return false;
        }
        let series = || self.panels.iter().flat_map(|panel| &panel.series);
        let mut values = series().flat_map(|series| series.values.iter().flatten());
        match self.scale {
            Scale::Change | Scale::Factor => values.any(|change| !change::is_none(*change)),
            _ if series().nth(1).is_none() => values.next().is_some(),
            _ => values.next().is_some_and(|first| values.any(|value| value != first)),
        }
    }

    /// Returns the format of all measured and expected values.
    fn form(&self) -> Form {
        let series = || self.panels.iter().flat_map(|panel| &panel.series);
        let measured = series().flat_map(|series| series.values.iter().copied().flatten());
        let expected = series().flat_map(|series| series.expected.iter().flatten().copied().flatten());
        Form::of(self.scale, measured.chain(expected.flat_map(|(low, high)| [low, high])))
    }

    /// Returns the plot as JSON for the page's script.
    pub(super) fn json(&self) -> serde_json::Value {
        let form = self.form();
        let places = self.panels.iter().flat_map(|panel| &panel.x).filter_map(|place| place.value.as_f64());
        json!({
            "title": self.title,
            "kind": self.kind.name(),
            "expectedIs": self.expected_is,
            "xAxis": Form::of(Scale::Unit(self.x_unit), places).of_axis(),
            "yAxis": form.of_axis(),
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "logX": self.log_x,
            "logY": self.log_y,
            "isOfChanges": matches!(self.scale, Scale::Change | Scale::Factor),
            "zeroIs": self.zero_is,
            "isLessBetter": self.better == Some(Ordering::Less),
            "isOrdered": self.is_ordered,
            "joinsGaps": self.joins_gaps,
            "coloursPlaces": self.colours_places,
            "panels": self.panels.iter().map(|panel| panel.json(form)).collect::<Vec<_>>(),
        })
    }
}

/// Returns the line of a place in the table below the plot.
fn line(form: Form, panel: &Panel, at: usize) -> Vec<String> {
    let number = |value: f64| form.in_table(value);
    let none = || "–".to_owned();
    let mut line: Vec<String> = panel.title.iter().cloned().collect();
    line.push(panel.x[at].name.clone());
    for series in &panel.series {
        line.push(series.values[at].map_or_else(none, number));
        let expected = |of: (f64, f64)| range(of, number);
        let ranges = series.expected.iter().chain(&series.band);
        line.extend(ranges.map(|all| all[at].map_or_else(none, expected)));
    }
    line
}

/// Formats an expected range: one value, or the smallest and the largest value.
fn range((low, high): (f64, f64), text: impl Fn(f64) -> String) -> String {
    if low == high { text(low) } else { format!("{} to {}", text(low), text(high)) }
}

impl Panel {
    fn json(&self, form: Form) -> serde_json::Value {
        let x = |place: &Place| json!({ "key": place.value.exact(), "name": place.name, "at": place.value.as_f64() });
        let text = |value: &Option<f64>| value.map(|value| form.text(value));
        let expected = |all: &Vec<Option<(f64, f64)>>| -> Vec<Option<String>> {
            all.iter().map(|one| one.map(|of| range(of, |value| form.text(value)))).collect()
        };
        let series = |series: &Series| {
            json!({
                "key": series.key,
                "name": series.name,
                "values": series.values,
                "texts": series.values.iter().map(text).collect::<Vec<_>>(),
                "expected": series.expected,
                "band": series.band,
                "expectedTexts": series.expected.as_ref().map(expected),
            })
        };
        json!({
            "title": self.title,
            "x": self.x.iter().map(x).collect::<Vec<_>>(),
            "series": self.series.iter().map(series).collect::<Vec<_>>(),
        })
    }
}
